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
    Suspended,
    /// A step of a running job.
    Step,
    /// A trigger of the owner's, whose number is `{job}`.
    Trigger,
}

/// The call of the controller that the command comes to, the command, what it needs, and whether owner, coordinator, operator,
/// administrator and another user may. Owners may suspend their jobs unless `allow_owner_suspend` says otherwise. `{job}` is a job of the
/// owner's in account chem, which the coordinator looks after; `{role}` names the caller. What a row leaves behind the next find.
#[rustfmt::skip]
const TABLE: &[(&str, &str, Needs, [bool; 5])] = &[
    ("Submit", "sbatch -D / -o /dev/null -A chem --wrap true",    Needs::Nothing, [true,  true,  true,  true, true]),
    ("Hold", "scontrol hold {job}",                               Needs::Waiting, [true,  true,  true,  true, false]),
    ("Hold", "scontrol uhold {job}",                              Needs::Waiting, [true,  true,  true,  true, false]),
    ("Release", "scontrol release {job}",                         Needs::Held,    [true,  true,  true,  true, false]),
    ("UpdateJob", "scontrol update jobid={job} timelimit=5",      Needs::Waiting, [true,  true,  true,  true, false]),
    ("UpdateJob", "scontrol update jobid={job} timelimit=500",    Needs::Running, [false, true,  true,  true, false]),
    ("UpdateJob", "scontrol update jobid={job} sitefactor=3",     Needs::Waiting, [false, true,  true,  true, false]),
    ("UpdateJob", "scontrol update jobid={job} admincomment=x",   Needs::Waiting, [false, true,  true,  true, false]),
    ("Cancel", "scancel {job}",                                   Needs::Waiting, [true,  true,  true,  true, false]),
    ("Cancel", "scancel {job}",                                   Needs::Running, [true,  true,  true,  true, false]),
    ("Signal", "scancel -b -s CONT {job}",                        Needs::Running, [true,  true,  true,  true, false]),
    // A step runs as the owner of the job.
    ("CreateStep", "srun --jobid={job} -n1 --overlap true",       Needs::Running, [true,  false, false, false, false]),
    ("CancelStep", "scancel {job}.0",                             Needs::Step,    [true,  true,  true,  true, false]),
    ("Suspend", "scontrol suspend {job}",                         Needs::Running, [true,  true,  true,  true, false]),
    ("Resume", "scontrol resume {job}",                           Needs::Suspended, [true, true, true,  true, false]),
    ("Requeue", "scontrol requeue {job}",                         Needs::Running, [true,  true,  true,  true, false]),
    ("SetTrigger", "strigger --set --node --down --program=/bin/true", Needs::Nothing, [true, true, true, true, true]),
    ("ClearTriggers", "strigger --clear --id={job}",              Needs::Trigger, [true,  false, true,  true, false]),
    ("CreateReservation", "scontrol create reservation reservationname={role} starttime=now+1hours duration=5 nodes=n2 users=root flags=overlap",
                                                                  Needs::Nothing, [false, false, true,  true, false]),
    ("UpdateReservation", "scontrol update reservationname=standing duration=6", Needs::Nothing, [false, false, true, true, false]),
    ("DeleteReservation", "scontrol delete reservation=of{role}", Needs::Nothing, [false, false, true,  true, false]),
    ("UpdateNodes", "scontrol update nodename=n2 comment={role}", Needs::Nothing, [false, false, false, true, false]),
    ("UpdateNodes", "scontrol update nodename=n2 state=drain reason=x", Needs::Nothing, [false, false, false, true, false]),
    ("UpdateNodes", "scontrol update nodename=n2 state=resume",   Needs::Nothing, [false, false, false, true, false]),
    ("UpdatePartition", "scontrol update partitionname=debug maxtime=100", Needs::Nothing, [false, false, false, true, false]),
    ("CreatePartition", "scontrol create partitionname=p{role} nodes=n1", Needs::Nothing, [false, false, false, true, false]),
    ("DeletePartition", "scontrol delete partitionname=of{role}", Needs::Nothing, [false, false, false, true, false]),
    ("DropBuffer", "scontrol delete burstbuffer=none{role} 2>&1 | grep -v user", Needs::Nothing, [false, false, true, true, false]),
    ("SetDebug", "scontrol setdebug info",                        Needs::Nothing, [false, false, false, true, false]),
    ("SetDampening", "scontrol fsdampeningfactor 2",              Needs::Nothing, [false, false, false, true, false]),
    ("Reconfigure", "scontrol reconfigure",                       Needs::Nothing, [false, false, false, true, false]),
    ("UserToken", "scontrol token username=daemon lifespan=60",   Needs::Nothing, [true,  false, false, true, false]),
    ("ChangeTokens", "spur token revoke daemon --dir {dir}",      Needs::Nothing, [true,  false, false, true, false]),
    ("ChangeAccounts", "sacctmgr -i add account below{role} parent=chem", Needs::Nothing, [false, true, true, true, false]),
    ("ChangeAccounts", "sacctmgr -i add account beside{role} parent=root", Needs::Nothing, [false, false, true, true, false]),
    ("ChangeAccounts", "sacctmgr -i modify account chem set grpjobs=70", Needs::Nothing, [false, true, true, true, false]),
    ("ChangeAccounts", "sacctmgr -i modify account root set grpjobs=70", Needs::Nothing, [false, false, true, true, false]),
    ("ChangeAccounts", "sacctmgr -i add user u{role} account=chem", Needs::Nothing, [false, true, true, true, false]),
    ("ChangeAccounts", "sacctmgr -i modify user daemon set maxjobs=7 where account=chem", Needs::Nothing, [false, true, true, true, false]),
    ("ChangeAccounts", "sacctmgr -i modify user daemon set adminlevel=none", Needs::Nothing, [false, false, false, true, false]),
    // One's default account is one's own matter.
    ("ChangeAccounts", "sacctmgr -i modify user daemon set defaultaccount=chem", Needs::Nothing, [true, true, true, true, false]),
    ("ChangeAccounts", "sacctmgr -i add coordinator account=chem names=u{role}", Needs::Nothing, [false, true, true, true, false]),
    ("ChangeAccounts", "sacctmgr -i delete coordinator account=chem names=u{role}", Needs::Nothing, [false, true, true, true, false]),
    ("ChangeAccounts", "sacctmgr -i delete user ubin account=chem && sacctmgr -i add user ubin account=chem", Needs::Nothing, [false, true, true, true, false]),
    ("ChangeAccounts", "sacctmgr -i delete account below{role}",  Needs::Nothing, [false, false, true,  true, false]),
    ("ChangeAccounts", "sacctmgr -i modify user ubin set qos+=normal where account=chem", Needs::Nothing, [false, true, true, true, false]),
    ("ChangeAccounts", "sacctmgr -i modify user ubin set qos+=special where account=chem", Needs::Nothing, [false, false, true, true, false]),
    ("ChangeAccounts", "sacctmgr -i delete account beside{role}", Needs::Nothing, [false, false, true,  true, false]),
    ("ChangeAccounts", "sacctmgr -i add wckey name=w{role} user=daemon", Needs::Nothing, [false, false, true, true, false]),
    ("ChangeAccounts", "sacctmgr -i delete wckey name=w{role}",   Needs::Nothing, [false, false, true,  true, false]),
    ("ChangeAccounts", "sacctmgr -i add qos q{role}",             Needs::Nothing, [false, false, false, true, false]),
    ("ChangeAccounts", "sacctmgr -i modify qos normal set maxjobspu=70", Needs::Nothing, [false, false, false, true, false]),
    ("ChangeAccounts", "sacctmgr -i delete qos qgames",           Needs::Nothing, [false, false, false, true, false]),
    ("ChangeAccounts", "sacctmgr -i modify account chem set rawusage=0", Needs::Nothing, [false, false, false, true, false]),
    ("ChangeAccounts", "sacctmgr -i add resource r{role} count=3 type=license", Needs::Nothing, [false, false, false, true, false]),
    ("ChangeAccounts", "sacctmgr -i modify resource standing set description=x", Needs::Nothing, [false, false, true, true, false]),
    ("ChangeAccounts", "sacctmgr -i delete resource rgames",      Needs::Nothing, [false, false, false, true, false]),
    ("ChangeAccounts", "sacctmgr -i add cluster c{role}",         Needs::Nothing, [false, false, false, true, false]),
    ("ChangeAccounts", "sacctmgr -i modify cluster cgames set maxjobs=9", Needs::Nothing, [false, false, false, true, false]),
    ("ChangeAccounts", "sacctmgr -i delete cluster cgames",       Needs::Nothing, [false, false, false, true, false]),
    ("ChangeAccounts", "sacctmgr -i load {dir}/work/{role}.cfg",    Needs::Nothing, [false, false, true, true, false]),
    ("AmendHistory", "sacctmgr -i modify job jobid={job} set comment=x", Needs::Waiting, [true, false, true, true, false]),
    ("AmendHistory", "sacctmgr -i modify job jobid={job} set admincomment=x", Needs::Waiting, [false, false, true, true, false]),
    ("Backup", "f=$(mktemp -u); spur backup $f --dir {dir} && rm $f", Needs::Nothing, [false, false, false, true, false]),
    ("UpdateNodes", "scontrol reboot n2",                         Needs::Nothing, [false, false, false, true, false]),
    // Whoever comes last finds nobody.
    ("Shutdown", "scontrol shutdown slurmctld",                   Needs::Nothing, [false, false, false, true, false]),
];

/// Calls that are no user's command of their own, and who judges them.
const ELSEWHERE: &[&str] = &[
    // What salloc and srun say when they are done: the owner's word, judged as a cancellation is.
    "Complete",
    // Whoever is heard may.
    "Ping",
    // Of controllers and nodes that come and go: administrators only, by the controller's own table.
    "ChangeMembers",
    "MakeToken",
    "RemoveNode",
    "Join",
    // An agent's.
    "Attend",
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
    cluster.ok("sacctmgr -i add qos special");
}

/// What the rows change or take away.
fn standing(cluster: &Cluster) {
    let reservation = "starttime=now+1hours duration=5 nodes=n2 users=root flags=overlap";
    cluster.ok(&format!("scontrol create reservation reservationname=standing {reservation}"));
    cluster.ok("sacctmgr -i add resource standing count=3 type=license");
    for (name, _) in ALL {
        cluster.ok(&format!("scontrol create reservation reservationname=of{name} {reservation}"));
        cluster.ok(&format!("scontrol create partitionname=of{name} nodes=n1"));
    }
}

fn job(cluster: &Cluster, needs: Needs) -> String {
    if needs == Needs::Trigger {
        // It may still be there.
        cluster.run(&as_user(OWNER, "strigger --set --node --up --program=/bin/true"));
        let last = cluster.ok("strigger --get --noheader | grep -w up | tail -1");
        return last.split_whitespace().next().expect("a trigger's number").to_string();
    }
    let held = if matches!(needs, Needs::Waiting | Needs::Held) { "-H" } else { "" };
    let program = if needs == Needs::Step { "srun sleep 300" } else { "sleep 300" };
    let submit = format!("sbatch --parsable -D / -o /dev/null -t 10 {held} --wrap \"{program}\"");
    let job = cluster.ok(&as_user(OWNER, &submit));
    match needs {
        Needs::Nothing | Needs::Waiting | Needs::Held | Needs::Trigger => (),
        Needs::Running => cluster.wait_state(&job, "RUNNING"),
        Needs::Step => cluster.wait_for(&format!("squeue -h -s -j {job} -o %i | grep -c {job}.0"), "1"),
        Needs::Suspended => {
            cluster.wait_state(&job, "RUNNING");
            cluster.ok(&format!("scontrol suspend {job}"));
        }
    }
    job
}

#[test]
fn everybody_may_do_what_the_table_says_and_nothing_else() {
    if !is_root() {
        return eprintln!("skipped: needs root");
    }
    let is_walked = |call: &&str| TABLE.iter().any(|row| row.0 == *call) || ELSEWHERE.contains(call);
    let forgotten: Vec<&str> = controller::changing_calls().filter(|call| !is_walked(call)).collect();
    assert!(forgotten.is_empty(), "no row says who may do {forgotten:?}");
    let more = "[health]\nreboot_program = \"/bin/true\"\n[jobs]\nusers_set_triggers = true\n";
    let cluster = Cluster::configured(&format!("{CONF}{more}"));
    tree(&cluster);
    standing(&cluster);
    for (name, _) in ALL {
        let more = format!("\"Parent - 'root'\" \"Account - loaded{name}\"");
        cluster.ok(&format!(
            "sacctmgr dump rights file={name}.cfg && printf '%s\\n' {more} >> {name}.cfg && chmod 644 {name}.cfg"
        ));
    }
    let dir = cluster.dir.display().to_string();
    let held = job(&cluster, Needs::Running);
    cluster.ok(&as_user(COORDINATOR, &format!("scontrol requeuehold {held} && scancel {held}")));
    let mut wrong = Vec::new();
    for (_, line, needs, allowed) in TABLE {
        for (who, may) in ALL.into_iter().zip(allowed) {
            let job = if *needs == Needs::Nothing { String::new() } else { job(&cluster, *needs) };
            let said = cluster
                .run(&as_user(who, &line.replace("{job}", &job).replace("{role}", who.0).replace("{dir}", &dir)));
            // Several commands say no without a code, as Slurm's do.
            let is_done = said.code == 0 && !said.err.contains("denied");
            if is_done != *may {
                wrong.push(format!("{} as {}: {said:?}", line, who.0));
            }
            if !job.is_empty() && *needs != Needs::Trigger {
                cluster.run(&format!("scancel -Q {job}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
    // Programs of users run on the controller's machine only where the site says so.
    let set = format!("strigger --set -j {job} --fini -p /bin/true");
    for who in ALL {
        let said = cluster.run(&as_user(who, &set));
        assert_eq!((said.err.trim(), said.code), ("slurm_set_trigger: Access/permission denied", 1), "{}", who.0);
    }
    cluster.ok(&set);
    cluster.ok(&format!("printf '[jobs]\\nusers_set_triggers = true\\n' >> {}/spur.conf", cluster.dir.display()));
    cluster.ok("scontrol reconfigure");
    let said = cluster.run(&as_user(OTHER, &set));
    assert_eq!((said.err.trim(), said.code), ("slurm_set_trigger: Invalid job id specified", 1), "a private job");
    cluster.ok(&as_user(OWNER, &set));
    let seen = |who| cluster.ok(&as_user(who, "strigger --get -N | wc -l"));
    assert_eq!([OWNER, COORDINATOR, OPERATOR, OTHER].map(seen), ["2", "2", "2", "0"]);
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
