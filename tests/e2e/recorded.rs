//! Every command beside a real Slurm: what one answered to the lines of `tests/side_by_side`, recorded by running it (`tests/golden`,
//! `run.py --record`), and what is answered here. Lines with a `~` are those of `docs/compat.md`, those with a `?` depend on the moment: where
//! lines follow each other on the same accounts and jobs, these are said too, and what is answered to them is not compared.
use crate::cluster::{Cluster, is_root};

/// The nodes and the shape of documents that the recorded Slurm had.
const CONF: &str = "cluster_name = \"bench\"\n[controller]\ndata_parser = \"v0.0.38\"\nmax_job_count = 4000000\n\
    max_array_size = 1000001\n[[nodes]]\nnames = \"n[1-8]\"\ncpus = 8\nmemory_mb = 64000\n\
    [[partitions]]\nname = \"debug\"\nnodes = \"n[1-8]\"\ndefault = true\n";

/// As the recorded Slurm with slurmdbd (`tests/side_by_side/accounts.py`).
const ACCOUNTS: &str = "[[partitions]]\nname = \"short\"\nnodes = \"n[1-2]\"\nqos = \"pq\"\n\
    billing_weights = \"CPU=2.0,Mem=10.0G,Node=0.5\"\n[accounting]\nextern_steps = false\nkeep_scripts = true\n\
    enforce = \"associations,limits,qos,safe\"\n[scheduler]\npriority = \"multifactor\"\npriority_half_life = 604800\n\
    priority_calc_period = 60\nweight_fair_share = 10000\nweight_qos = 1000\nweight_association = 500\n\
    default_memory_per_cpu_mb = 100\n";

/// As the recorded Slurm with CR_Core_Memory (`tests/side_by_side/cores.py`).
const CORES: &str = "cluster_name = \"bench\"\n[controller]\ndata_parser = \"v0.0.38\"\n[[nodes]]\nnames = \"n[1-8]\"\n\
    sockets = 2\ncores_per_socket = 2\nthreads_per_core = 2\nmemory_mb = 64000\n\
    [[partitions]]\nname = \"debug\"\nnodes = \"n[1-8]\"\ndefault = true\n[scheduler]\nhand_out = \"cores\"\n";

/// More than any line takes on a busy machine; one that hangs is told as one that differs.
const LINE_SECS: u32 = 120;
/// What the lines of shell share.
const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/side_by_side/accounts.lib");

#[derive(Clone, Debug, Default, PartialEq)]
struct Answer {
    out: String,
    err: String,
    code: String,
}

struct Case {
    line: String,
    /// The order of what is printed means nothing.
    is_sorted: bool,
    /// Its jobs are there for the next.
    stays: bool,
    is_alike: bool,
    answer: Answer,
}

fn cases(text: &str) -> Vec<Case> {
    let mut all: Vec<Case> = Vec::new();
    for row in text.lines().filter(|row| !row.starts_with('#')) {
        let (sign, rest) = row.split_at(1);
        let last = all.last_mut();
        let put = |to: &mut String| match rest.strip_suffix('\\') {
            Some(unended) => to.push_str(unended),
            None => to.extend([rest, "\n"]),
        };
        match (sign, last) {
            ("$" | "~" | "?", _) => {
                let mut line = rest.trim_start();
                let mut is_marked = |mark: &str| match line.strip_prefix(mark) {
                    Some(rest) => {
                        line = rest;
                        true
                    }
                    None => false,
                };
                let (is_sorted, stays) = (is_marked("sorted: "), is_marked("stays: "));
                all.push(Case {
                    line: line.to_string(),
                    is_sorted,
                    stays,
                    is_alike: sign == "$",
                    answer: Answer::default(),
                });
            }
            ("|", Some(case)) => put(&mut case.answer.out),
            ("!", Some(case)) => put(&mut case.answer.err),
            ("=", Some(case)) => case.answer.code = rest.trim().to_string(),
            _ => panic!("what is {row:?}?"),
        }
    }
    all
}

/// Numbers that differ from run to run, by the words before them, as `run.py` makes them alike.
const NUMBERED: [&str; 8] = ["StepId=", "JobId=", "job ", "Job ", "allocation ", "JOB ", "STEP ", "bcast_"];

fn normal(text: &str, top: &str, folder: &str) -> String {
    let text = text.replace(&format!("{top}/work/{folder}"), "DIR").replace(top, "DIR").replace(folder, "WORK");
    let waits = |line: &str| {
        let about = line.strip_prefix("srun: job ").or_else(|| line.strip_prefix("salloc: job "));
        let about = about.map(|rest| rest.trim_start_matches(|sign: char| sign.is_ascii_digit()));
        matches!(about, Some(" queued and waiting for resources\n" | " has been allocated resources\n"))
    };
    let mut text: String = text.split_inclusive('\n').filter(|line| !waits(line)).collect();
    for words in NUMBERED {
        text = numbered(&text, words, "ID");
    }
    text = numbered(&text, "pid ", "PID");
    moments(&text)
}

/// The digits behind these words make way for a name.
fn numbered(text: &str, words: &str, name: &str) -> String {
    let mut pieces = text.split(words);
    let mut out = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let rest = piece.trim_start_matches(|sign: char| sign.is_ascii_digit());
        out.push_str(words);
        if rest.len() < piece.len() {
            out.push_str(name);
        }
        out.push_str(rest);
    }
    out
}

/// `2026-11-18T00:40:31` is a time like any other.
fn moments(text: &str) -> String {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00";
    let bytes = text.as_bytes();
    let fits = |at: usize| {
        let found = bytes.get(at..at + SHAPE.len());
        found.is_some_and(|found| {
            found.iter().zip(SHAPE).all(|(sign, like)| if *like == b'0' { sign.is_ascii_digit() } else { sign == like })
        })
    };
    let (mut out, mut at) = (String::new(), 0);
    while let Some(sign) = text[at..].chars().next() {
        if fits(at) {
            out.push_str("TIME");
            at += SHAPE.len();
        } else {
            out.push(sign);
            at += sign.len_utf8();
        }
    }
    out
}

/// `Wed Nov` was the day of the recording.
fn days(text: &str) -> String {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut text = text.to_owned();
    for day in DAYS {
        for month in MONTHS {
            text = text.replace(&format!("{day} {month}"), "DAY");
        }
    }
    text
}

fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.sort_unstable();
    lines.concat()
}

/// Has Spur answer every case whose place in the file is `part` of `n_parts`.
fn replay(conf: &str, recording: &str, part: usize, n_parts: usize) {
    let all = cases(recording);
    let n_alike = all.iter().filter(|case| case.is_alike).count();
    assert!(n_alike > 40, "{n_alike} recordings");
    let has_python = std::process::Command::new("python3").arg("-V").output().is_ok();
    let cluster = Cluster::configured(conf);
    let has_pmix = cluster.ok("srun --mpi=list").contains("pmix");
    if !has_pmix {
        eprintln!("SKIPPED: lines with --mpi=pmix, for there is no libpmix here");
    }
    let is_ours = |case: &Case| {
        let texts = [&case.line, &case.answer.out, &case.answer.err];
        let told_of_root = texts.iter().any(|text| text.contains("root") || text.contains("--uid"));
        let wants_what_is_not_here =
            !has_python && case.line.contains("| kinds ") || !has_pmix && case.line.contains("--mpi=pmix");
        case.is_alike && (is_root() || !told_of_root) && !wants_what_is_not_here
    };
    let mine: Vec<(usize, &Case)> =
        all.iter().enumerate().filter(|(at, case)| at % n_parts == part && is_ours(case)).collect();
    compare(&cluster, &mine);
}

/// Has Spur answer all cases, one after the other: they are about the same accounts and jobs.
fn replay_with_accounts(recording: &str) {
    if !is_root() {
        return eprintln!("skipped: accounts of several users need root");
    }
    let all = cases(recording);
    let n_alike = all.iter().filter(|case| case.is_alike).count();
    assert!(n_alike > 15, "{n_alike} recordings");
    let cluster = Cluster::configured(&format!("{CONF}{ACCOUNTS}"));
    cluster.ok("sacctmgr -i add qos pq");
    compare(&cluster, &all.iter().enumerate().collect::<Vec<_>>());
}

fn compare(cluster: &Cluster, mine: &[(usize, &Case)]) {
    // One shell after the other, each in a folder of its own; the next finds an empty queue.
    let mut script = String::from("unset LD_LIBRARY_PATH\ntop=$PWD\n");
    for (at, case) in mine {
        std::fs::create_dir_all(cluster.dir.join(format!("work/work-{at}.d"))).unwrap();
        std::fs::write(cluster.dir.join(format!("work/{at}.line")), &case.line).unwrap();
        script.push_str(&format!(
            "cd $top/work-{at}.d; BASH_ENV={LIBRARY} timeout {LINE_SECS} bash -c \"$(cat ../{at}.line)\" </dev/null >../{at}.out 2>../{at}.err; echo $? >../{at}.code\n"
        ));
        if !case.stays {
            script.push_str("while [ -n \"$(squeue -h -o %i)\" ]; do scancel $(squeue -h -o %A); sleep 0.05; done\n");
        }
    }
    std::fs::write(cluster.dir.join("work/all.sh"), script).unwrap();
    cluster.ok("bash all.sh");
    let top = cluster.dir.display().to_string();
    let mut differ = Vec::new();
    // Without a start, sacct begins at midnight: in the first hour of a day an end an hour ago comes before that.
    let is_new_day = cluster.ok("date +%H") == "00";
    let hangs_on_the_hour = |case: &Case| is_new_day && case.line.contains("sacct -E now-1hour");
    if mine.iter().any(|(_, case)| hangs_on_the_hour(case)) {
        eprintln!("SKIPPED: sacct -E now-1hour, in the first hour of a day");
    }
    for (at, case) in mine.iter().filter(|(_, case)| case.is_alike && !hangs_on_the_hour(case)) {
        let folder = format!("work-{at}.d");
        let read = |what: &str| normal(&cluster.file(&format!("{at}.{what}")), &top, &folder);
        let mut here = Answer { out: read("out"), err: read("err"), code: read("code").trim().to_string() };
        let mut there = case.answer.clone();
        for answer in [&mut here, &mut there] {
            (answer.out, answer.err) = (days(&answer.out), days(&answer.err));
        }
        if case.is_sorted {
            for answer in [&mut here, &mut there] {
                (answer.out, answer.err) = (sorted(&answer.out), sorted(&answer.err));
            }
        }
        if here != there {
            differ.push(format!("$ {}\n  Slurm: {there:?}\n  here:  {here:?}", case.line));
        }
    }
    assert!(differ.is_empty(), "{} of {} differ:\n{}", differ.len(), mine.len(), differ.join("\n"));
}

#[test]
fn commands_answer_as_a_real_slurm_did() {
    replay(CONF, include_str!("../golden/commands.txt"), 0, 2);
}

#[test]
fn the_other_half_of_the_commands_answers_so_too() {
    replay(CONF, include_str!("../golden/commands.txt"), 1, 2);
}

#[test]
fn srun_answers_as_a_real_one_did() {
    replay(CONF, include_str!("../golden/srun.txt"), 0, 1);
}

#[test]
fn whole_cores_are_handed_out_as_by_a_real_slurm() {
    replay(CORES, include_str!("../golden/cores.txt"), 0, 1);
}

#[test]
fn what_scripts_hand_over_is_taken_as_by_a_real_slurm() {
    replay(CONF, include_str!("../golden/surface.txt"), 0, 1);
}

#[test]
fn squeue_and_sinfo_sort_a_motley_queue_as_a_real_slurm_did() {
    replay_with_accounts(include_str!("../golden/orders.txt"));
}

#[test]
fn accounts_shares_and_priorities_are_told_as_by_a_real_slurm() {
    replay_with_accounts(include_str!("../golden/shares.txt"));
}

#[test]
fn sacct_tells_of_every_end_as_a_real_one_did() {
    replay_with_accounts(include_str!("../golden/history.txt"));
}

#[test]
fn sacctmgr_knows_the_words_of_a_real_one() {
    replay_with_accounts(include_str!("../golden/account_words.txt"));
}

#[test]
fn sreport_has_the_headings_and_refusals_of_a_real_one() {
    replay_with_accounts(include_str!("../golden/sreport.txt"));
}

#[test]
fn clients_are_answered_as_by_a_slurm_with_slurmdbd() {
    replay_with_accounts(include_str!("../golden/clients.txt"));
}
