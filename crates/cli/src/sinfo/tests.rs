//! Golden text: the oracle's, wherever its values can be had here.
use super::*;
use crate::fixture;

fn shown(line: &str, nodes: &[NodeView]) -> String {
    let arguments: Vec<String> = line.split_whitespace().map(|word| word.replace('~', " ")).collect();
    match parse(&arguments, &|_| None) {
        Ok(Asked::Show(options)) => {
            let shown = render(&options, nodes, &fixture::config(), &fixture::clock());
            shown.text + &shown.complaints.iter().map(|line| format!("{line}\n")).collect::<String>()
        }
        Ok(Asked::Print(text)) => text,
        Err(refusal) => refusal.stdout + &refusal.stderr,
    }
}

#[track_caller]
fn check_idle(line: &str, expected: &str) {
    assert_eq!(shown(line, &fixture::idle_nodes()), expected, "{line}");
}

#[track_caller]
fn check(line: &str, expected: &str) {
    assert_eq!(shown(line, &fixture::mixed_nodes()), expected, "{line}");
}

#[test]
fn the_default_table_gathers_nodes_by_state() {
    check_idle(
        "",
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
debug*       up   infinite      8   idle n[1-8]
down       down   infinite      8   idle n[1-8]
short        up      10:00      2   idle n[1-2]
limited      up 2-00:00:00      2   idle n[3-4]
rootonly     up   infinite      8   idle n[1-8]
drained   drain   infinite      2   idle n[1-2]
inact     inact   infinite      2   idle n[1-2]
",
    );
    check(
        "-p debug,limited",
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
debug*       up   infinite      1   drng n3
debug*       up   infinite      1  drain n4
debug*       up   infinite      2    mix n[2,7]
debug*       up   infinite      1  alloc n1
debug*       up   infinite      1   idle n6
debug*       up   infinite      2   down n[5,8]
limited      up 2-00:00:00      1   drng n3
limited      up 2-00:00:00      1  drain n4
",
    );
}

#[test]
fn long_and_node_tables_are_slurms() {
    check_idle(
        "-l -p short,limited,rootonly",
        "Sun Nov 15 22:01:12 2026
PARTITION AVAIL  TIMELIMIT   JOB_SIZE ROOT OVERSUBS     GROUPS  NODES       STATE NODELIST
short        up      10:00 1-infinite   no       NO        all      2        idle n[1-2]
limited      up 2-00:00:00          1   no       NO        all      2        idle n[3-4]
rootonly     up   infinite 1-infinite   no       NO       root      8        idle n[1-8]
",
    );
    check(
        "-N -p debug",
        "NODELIST   NODES PARTITION STATE 
n1             1    debug* alloc 
n2             1    debug* mix   
n3             1    debug* drng  
n4             1    debug* drain 
n5             1    debug* down  
n6             1    debug* idle  
n7             1    debug* mix   
n8             1    debug* down  
",
    );
    check(
        "-Nl -h -p debug -n n[3-5]",
        "n3             1    debug*    draining 8       8:1:1   4000        0      1 fast,amd disk is failing badl
n4             1    debug*     drained 8       8:1:1   4000        0      1 fast,amd bad                 
n5             1    debug*        down 8       8:1:1   4000        0      1      big dead fan            
",
    );
}

#[test]
fn summaries_and_reasons() {
    check(
        "-s -p debug,short,limited",
        "PARTITION AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST
debug*       up   infinite          4/1/3/8 n[1-8]
short        up      10:00          2/0/0/2 n[1-2]
limited      up 2-00:00:00          1/0/1/2 n[3-4]
",
    );
    check(
        "-R",
        "REASON               USER      TIMESTAMP           NODELIST
disk is failing badl root      2026-11-15T22:02:12 n3
bad                  root      2026-11-15T22:02:12 n4
dead fan             root      2026-11-15T22:02:13 n5
off                  root      2026-11-15T22:02:14 n8
",
    );
    check(
        "-Rl -h",
        "disk is failing badl root(0)      2026-11-15T22:02:12 drng   n3
bad                  root(0)      2026-11-15T22:02:12 drain  n4
dead fan             root(0)      2026-11-15T22:02:13 down   n5
off                  root(0)      2026-11-15T22:02:14 down   n8
",
    );
}

#[test]
fn nodes_are_gathered_by_the_columns_asked_for() {
    check("-h -p debug,short -o %N", "n[1-8]\n");
    check("-h -p debug,short -o %F", "4/1/3/8\n");
    check("-h -p debug,short -o %P~%C", "debug* 14/20/30/64\nshort 11/5/0/16\n");
    check("-h -p debug -o %P|%f|%G", "debug*|big|gpu:2\ndebug*|fast,amd|(null)\ndebug*|big|(null)\n");
    check("-h -p debug -o %T", "draining\ndrained\nmixed\nallocated\nidle\ndown\n");
    check("-h -o %R -p debug,short", "debug\nshort\n");
    check("-p debug -o %10P|%.10P|%3P|%.3P|", "PARTITION | PARTITION|PAR|PAR|\ndebug*    |    debug*|de*|de*|\n");
    check(
        "-p debug -O CPUs,Memory,Partition",
        "CPUS                MEMORY              PARTITION           \n8                   4000                debug*              \n",
    );
    check("-p debug -O cpus:5,memory:.8", "CPUS   MEMORY\n8        4000\n");
    check(
        "-p debug -O CPUs,nosuch",
        "CPUS                \n8                   \nsinfo: error: Invalid job format specification: nosuch\n",
    );
    check("-p debug -o %!", "%!\n%!\nInvalid node format specification: !\n");
    check("-h -o %P -S -P -p debug,short", "short\ndebug*\n");
    check("-h -o %P -S -P,j -p debug,short", "short\ndebug*\n");
}

#[test]
fn filters_choose() {
    check("-h -p debug -t idle -o %N", "n[4,6]\n");
    check("-h -p debug -t alloc -o %N", "n[1-3,7]\n");
    check("-h -p debug -t mix -o %N", "n[2,7]\n");
    check("-h -p debug -t drain -o %N", "n[3-4]\n");
    check("-h -p debug -t drained -o %N", "n4\n");
    check("-h -p debug -t drng -o %N", "n3\n");
    check("-h -p debug -t drain&idle -o %N", "n4\n");
    check("-h -p debug -t down,idle -o %N", "n[4-6,8]\n");
    check(
        "-h -n n1 -p debug,limited",
        "debug*       up   infinite      1  alloc n1\nlimited      up 2-00:00:00      0    n/a \n",
    );
    check("-h -p debug -d", "debug*       up   infinite      0    n/a \n");
    check("-h -p nosuch", "");
    assert!(shown("-t nosuch", &[]).starts_with("sinfo: error: Bad state string: \"nosuch\"\n"));
    assert_eq!(shown("-i x", &[]), "sinfo: error: Error: invalid entry for --iterate=x\n");
}

#[test]
fn json_lists_the_nodes() {
    let read: serde_json::Value =
        serde_json::from_str(&shown("--json=v0.0.38 -p limited", &fixture::mixed_nodes())).expect("JSON");
    let names: Vec<&str> =
        read["nodes"].as_array().expect("a list").iter().filter_map(|node| node["name"].as_str()).collect();
    assert_eq!(names, ["n3", "n4"]);
    assert_eq!(read["nodes"][0]["state_flags"][0], "DRAIN");
    assert_eq!(read["nodes"][0]["reason_set_by_user"], "root");
}

/// Recorded on a Slurm 22.05.8 (`tests/golden/columns.txt`).
#[test]
fn every_column_of_slurm_is_here_under_its_heading() {
    let rows =
        include_str!("../../../../tests/golden/columns.txt").lines().filter_map(|line| line.strip_prefix("sinfo\t"));
    let mut wrong = Vec::new();
    let mut n_rows = 0;
    for (key, heading) in rows.filter_map(|row| row.split_once('\t')).filter(|(_, heading)| *heading != "-") {
        n_rows += 1;
        let column = match key.strip_prefix('%').and_then(|letter| letter.chars().next()) {
            Some(letter) => COLUMNS.iter().find(|column| column.letter == letter),
            None => COLUMNS.iter().find(|column| column.name.eq_ignore_ascii_case(key)),
        };
        match column {
            Some(column) if heading == "?" || column.title == heading => {}
            Some(column) => wrong.push(format!("{key}: {} instead of {heading}", column.title)),
            None => wrong.push(format!("{key}: missing")),
        }
    }
    assert!(n_rows > 40 && wrong.is_empty(), "{n_rows} rows, wrong:\n{}", wrong.join("\n"));
}
