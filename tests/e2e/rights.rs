//! Who may do what: one table of commands and callers, walked with real users. Needs root, to become them.
use crate::cluster::{Cluster, is_root};

const CONF: &str = "cluster_name = \"rights\"\n\
    [accounting]\n\
    private_data = \"none\"\n\
    [[nodes]]\n\
    names = \"n[1-2]\"\n\
    cpus = 8\n\
    memory_mb = 1000\n\
    [[partitions]]\n\
    name = \"debug\"\n\
    nodes = \"ALL\"\n\
    default = true\n";

/// Users that every Linux has: name and number.
const OWNER: (&str, u32) = ("daemon", 1);
const COORDINATOR: (&str, u32) = ("bin", 2);
const OPERATOR: (&str, u32) = ("sys", 3);
const ADMINISTRATOR: (&str, u32) = ("games", 5);
const OTHER: (&str, u32) = ("nobody", 65534);
const ALL: [(&str, u32); 5] = [OWNER, COORDINATOR, OPERATOR, ADMINISTRATOR, OTHER];

fn as_user(who: (&str, u32), line: &str) -> String {
    format!("setpriv --reuid={0} --regid={0} --clear-groups bash -c '{line}'", who.1)
}

/// What the command needs before.
#[derive(Clone, Copy, PartialEq)]
enum Needs {
    Nothing,
    Waiting,
    Held,
    Running,
}

/// Command, what it needs, and whether owner, coordinator, operator, administrator and another user may.
/// Owners may suspend their jobs unless `allow_owner_suspend` says otherwise. `{job}` is a job of the owner's in account chem, which the coordinator looks after; `{role}` names the caller.
#[rustfmt::skip]
const TABLE: &[(&str, Needs, [bool; 5])] = &[
    ("scontrol hold {job}",                                     Needs::Waiting, [true,  true,  true,  true, false]),
    ("scontrol uhold {job}",                                    Needs::Waiting, [true,  true,  true,  true, false]),
    ("scontrol release {job}",                                  Needs::Held,    [true,  true,  true,  true, false]),
    ("scontrol update jobid={job} timelimit=5",                 Needs::Waiting, [true,  true,  true,  true, false]),
    ("scontrol update jobid={job} sitefactor=3",                Needs::Waiting, [false, true,  true,  true, false]),
    ("scancel {job}",                                           Needs::Waiting, [true,  true,  true,  true, false]),
    ("scancel {job}",                                           Needs::Running, [true,  true,  true,  true, false]),
    ("scancel -b -s CONT {job}",                                Needs::Running, [true,  true,  true,  true, false]),
    ("scontrol suspend {job}",                                  Needs::Running, [true,  true,  true,  true, false]),
    ("scontrol requeue {job}",                                  Needs::Running, [true,  true,  true,  true, false]),
    ("scontrol create reservation reservationname={role} starttime=now+1hours duration=5 nodes=n2 users=root flags=overlap",
                                                                Needs::Nothing, [false, false, true,  true, false]),
    ("scontrol update nodename=n2 comment={role}",              Needs::Nothing, [false, false, false, true, false]),
    ("scontrol update partitionname=debug maxtime=100",         Needs::Nothing, [false, false, false, true, false]),
    ("scontrol create partitionname=p{role} nodes=n1",          Needs::Nothing, [false, false, false, true, false]),
    ("scontrol reconfigure",                                    Needs::Nothing, [false, false, false, true, false]),
    ("sacctmgr -i add account below{role} parent=chem",         Needs::Nothing, [false, true,  true,  true, false]),
    ("sacctmgr -i add account beside{role} parent=root",        Needs::Nothing, [false, false, true,  true, false]),
    ("sacctmgr -i add user u{role} account=chem",               Needs::Nothing, [false, true,  true,  true, false]),
    ("sacctmgr -i modify user daemon set maxjobs=7 where account=chem", Needs::Nothing, [false, true, true, true, false]),
    ("sacctmgr -i modify user daemon set adminlevel=none",      Needs::Nothing, [false, false, false, true, false]),
    ("sacctmgr -i add coordinator account=chem names=u{role}",  Needs::Nothing, [false, true,  true,  true, false]),
    ("sacctmgr -i add qos q{role}",                             Needs::Nothing, [false, false, false, true, false]),
    ("sacctmgr -i modify account chem set rawusage=0",          Needs::Nothing, [false, false, false, true, false]),
    ("sacctmgr -i modify job jobid={job} set comment=x",        Needs::Waiting, [true,  false, true,  true, false]),
    ("sacctmgr -i modify job jobid={job} set admincomment=x",   Needs::Waiting, [false, false, true,  true, false]),
    ("sacctmgr -i add resource r{role} count=3 type=license",   Needs::Nothing, [false, false, false, true, false]),
    ("sacctmgr -i modify resource rgames set description=x",    Needs::Nothing, [false, false, true,  true, false]),
    ("sacctmgr -i delete resource rgames",                      Needs::Nothing, [false, false, false, true, false]),
    ("sacctmgr -i add cluster c{role}",                         Needs::Nothing, [false, false, false, true, false]),
];

fn tree(cluster: &Cluster) {
    cluster.ok("sacctmgr -i add account chem");
    for (name, _) in ALL {
        cluster.ok(&format!("sacctmgr -i add user {name} account=chem"));
        cluster.ok(&format!("sacctmgr -i add user u{name} account=root"));
    }
    cluster.ok("sacctmgr -i add coordinator account=chem names=bin");
    cluster.ok("sacctmgr -i modify user sys set adminlevel=operator");
    cluster.ok("sacctmgr -i modify user games set adminlevel=administrator");
}

fn job(cluster: &Cluster, needs: Needs) -> String {
    let held = if needs == Needs::Running { "" } else { "-H" };
    let job =
        cluster.ok(&as_user(OWNER, &format!("sbatch --parsable -D / -o /dev/null -t 10 {held} --wrap \"sleep 300\"")));
    if needs == Needs::Running {
        cluster.wait_state(&job, "RUNNING");
    }
    job
}

#[test]
fn everybody_may_do_what_the_table_says_and_nothing_else() {
    if !is_root() {
        return eprintln!("skipped: needs root");
    }
    let cluster = Cluster::configured(CONF);
    tree(&cluster);
    let mut wrong = Vec::new();
    for (line, needs, allowed) in TABLE {
        for (who, may) in ALL.into_iter().zip(allowed) {
            let job = if *needs == Needs::Nothing { String::new() } else { job(&cluster, *needs) };
            let said = cluster.run(&as_user(who, &line.replace("{job}", &job).replace("{role}", who.0)));
            // Several commands say no without a code, as Slurm's do.
            let is_done = said.code == 0 && !said.err.contains("denied");
            if is_done != *may {
                wrong.push(format!("{} as {}: {said:?}", line, who.0));
            }
            if !job.is_empty() {
                cluster.run(&format!("scancel -Q {job}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Whom a coordinator holds up, only those above the owner let go.
    let held = job(&cluster, Needs::Running);
    cluster.ok(&as_user(COORDINATOR, &format!("scontrol requeuehold {held}")));
}

#[test]
fn what_is_private_is_seen_by_its_owner_and_those_above() {
    if !is_root() {
        return eprintln!("skipped: needs root");
    }
    let private = "accounts,events,jobs,nodes,reservations,usage,users";
    let cluster = Cluster::configured(&CONF.replace("\"none\"", &format!("\"{private}\"")));
    tree(&cluster);
    assert!(cluster.ok("scontrol show config").contains(&format!("PrivateData             = {private}")));
    let job = job(&cluster, Needs::Running);
    cluster.ok("scontrol create reservation reservationname=r starttime=now+1hours duration=5 nodes=n2 users=bin");
    let sees = |who, line: &str, what: &str| cluster.run(&as_user(who, line)).out.contains(what);
    let table: &[(&str, &str, [bool; 5])] = &[
        ("squeue -h -o %i", job.as_str(), [true, true, true, true, false]),
        ("sacct -n -X -a -o jobid -S now-1hour", job.as_str(), [true, false, true, true, false]),
        ("sinfo -h -N -o %N", "n1", [false, false, true, true, false]),
        ("scontrol show reservation", "ReservationName=r", [false, true, true, true, false]),
        ("sacctmgr -n -P list user format=user", "nobody", [false, true, true, true, true]),
        ("sacctmgr -n -P list account format=account", "chem", [true, true, true, true, true]),
        ("sacctmgr -n -P list events all_time format=node", "error", [false, false, false, false, false]),
    ];
    let mut wrong = Vec::new();
    for (line, what, seen) in table {
        for (who, expected) in ALL.into_iter().zip(seen) {
            if sees(who, line, what) != *expected {
                wrong.push(format!("{line} as {}: {:?}", who.0, cluster.run(&as_user(who, line))));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let hidden = cluster.run(&as_user(OTHER, &format!("scontrol show job {job}")));
    assert!(hidden.err.contains("Invalid job id specified"), "{hidden:?}");
}

/// A command, the words it is refused with, and its exit code.
type Told = (&'static str, &'static str, i32);

/// What is hidden, and what those who may not see it are told.
const HIDDEN: &[(&str, &[Told])] = &[
    (
        "partitions",
        &[
            ("sinfo", "slurm_load_partitions: Access/permission denied", 1),
            ("sinfo -N", "slurm_load_partitions: Access/permission denied", 1),
            ("scontrol show partition", "slurm_load_partitions error: Access/permission denied", 1),
            ("scontrol show partition debug", "slurm_load_partitions error: Access/permission denied", 1),
            ("scontrol show node n1", "slurm_load_partitions error: Access/permission denied", 1),
            ("squeue", "slurm_load_partitions: Access/permission denied", 0),
            ("squeue -s", "", 0),
        ],
    ),
    (
        "nodes",
        &[
            ("sinfo", "slurm_load_node: Access/permission denied", 1),
            ("sinfo -R", "slurm_load_node: Access/permission denied", 1),
            ("scontrol show node n1", "slurm_load_node error: Access/permission denied", 1),
            ("scontrol show partition", "", 0),
            ("squeue", "", 0),
        ],
    ),
];

#[test]
fn what_is_hidden_is_refused_in_slurms_words() {
    if !is_root() {
        return eprintln!("skipped: needs root");
    }
    for (word, lines) in HIDDEN {
        let cluster = Cluster::configured(&CONF.replace("\"none\"", &format!("\"{word}\"")));
        for (line, words, code) in *lines {
            let said = cluster.run(&as_user(OTHER, line));
            assert_eq!((said.err.trim(), said.code), (*words, *code), "{word}: {line}: {said:?}");
            let said = cluster.run(line);
            assert_eq!((said.err.trim(), said.code), ("", 0), "{word}: {line} as root: {said:?}");
        }
        // Jobs go on as ever.
        let job = cluster.ok(&as_user(OTHER, "sbatch --parsable -D / -o /dev/null -p debug --wrap true"));
        cluster.wait_state(&job, "COMPLETED");
        if *word == "nodes" {
            let shown = cluster.ok(&as_user(OTHER, "scontrol show partition"));
            assert!(shown.contains("TotalCPUs=16 TotalNodes=2") && shown.contains("TRES=cpu=16,mem=2000M"), "{shown}");
        }
    }
}
