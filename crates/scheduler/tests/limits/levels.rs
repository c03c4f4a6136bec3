//! Every limit at every level, below it, at it and above it; whom it counts, and that every reason is one that some limit has.
use model::Reject;
use model::accounts::{Change, Field, Value};

use crate::lab::{change, flag, lab, outcome, set, spec, submit};
use crate::world::World;

/// A job's QOS and that of its partition; the association of its user, the account, and those above it.
const LEVELS: [&str; 6] = ["qos", "pq", "user", "a11", "a1", "root"];

fn is_qos(level: &str) -> bool {
    matches!(level, "qos" | "pq")
}

/// What becomes of jobs that a limit at this level concerns.
fn outcomes(world: &mut World, level: &str, jobs: &[&str]) -> String {
    let there = |job: &&str| if level == "pq" { format!("{job} -pshort") } else { job.to_string() };
    let jobs: Vec<String> = jobs.iter().map(there).collect();
    let jobs: Vec<&str> = jobs.iter().map(String::as_str).collect();
    outcome(world, if level == "qos" { "q1" } else { "" }, &jobs)
}

/// What a limit lets pass below it and at it, and whom it stops above: the last of each list is the one it is about.
type Bounds<'a> = (Field, &'a str, [&'a [&'a str]; 3], &'a str, &'a str);

#[rustfmt::skip]
const BOUNDS: &[Bounds] = &[
    // limit, below, at, above; the reason of a QOS, and of an association; empty: it has no such limit
    (Field::MaxJobs,          "2",        [&[""], &["", ""], &["", "", ""]],             "QOSMaxJobsPerUserLimit",        "AssocMaxJobsLimit"),
    (Field::MaxJobsAccount,   "2",        [&[""], &["", ""], &["", "", ""]],             "MaxJobsPerAccount",             ""),
    (Field::MaxSubmit,        "2",        [&[""], &["", ""], &["", "", ""]],             "!QOSMaxSubmitJobPerUserLimit",  "!AssocMaxSubmitJobLimit"),
    (Field::MaxSubmitAccount, "2",        [&[""], &["", ""], &["", "", ""]],             "!MaxSubmitJobsPerAccount",      ""),
    (Field::GrpJobs,          "2",        [&[""], &["", ""], &["", "", ""]],             "QOSGrpJobsLimit",               "AssocGrpJobsLimit"),
    (Field::GrpSubmit,        "2",        [&[""], &["", ""], &["", "", ""]],             "!QOSGrpSubmitJobsLimit",        "!AssocGrpSubmitJobsLimit"),
    (Field::GrpWall,          "10",       [&["-t9"], &["-t10"], &["-t11"]],              "QOSGrpWallLimit",               "AssocGrpWallLimit"),
    (Field::MaxWall,          "10",       [&["-t9"], &["-t10"], &["-t11"]],              "QOSMaxWallDurationPerJobLimit", "AssocMaxWallDurationPerJobLimit"),
    (Field::MaxTres,          "cpu=3",    [&["-n2"], &["-n3"], &["-n4"]],                "QOSMaxCpuPerJobLimit",          "AssocMaxCpuPerJobLimit"),
    (Field::MaxTres,          "node=2",   [&["-N1"], &["-N2"], &["-N3"]],                "QOSMaxNodePerJobLimit",         "AssocMaxNodePerJobLimit"),
    (Field::MaxTres,          "mem=200M", [&["-m199"], &["-m200"], &["-m201"]],          "QOSMaxMemoryPerJob",            "AssocMaxMemPerJob"),
    (Field::MaxTresPerNode,   "cpu=3",    [&["-N1 -n2"], &["-N1 -n3"], &["-N1 -n4"]],    "QOSMaxCpuPerNode",              "AssocMaxCpuPerNode"),
    (Field::MaxTresUser,      "cpu=4",    [&["-n2", "-n1"], &["-n2", "-n2"], &["-n2", "-n3"]], "QOSMaxCpuPerUserLimit",   ""),
    (Field::MaxTresUser,      "node=2",   [&["-N1"], &["-N2"], &["-N3"]],                "QOSMaxNodePerUserLimit",        ""),
    (Field::MaxTresUser,      "mem=200M", [&["-m99", "-m100"], &["-m100", "-m100"], &["-m100", "-m101"]], "QOSMaxMemoryPerUser", ""),
    (Field::MaxTresUser,      "billing=3",[&["-n2"], &["-n3"], &["-n4"]],                "QOSMaxBillingPerUser",          ""),
    (Field::MaxTresAccount,   "cpu=4",    [&["-n2", "-n1"], &["-n2", "-n2"], &["-n2", "-n3"]], "MaxCpuPerAccount",        ""),
    (Field::MaxTresAccount,   "mem=200M", [&["-m99", "-m100"], &["-m100", "-m100"], &["-m100", "-m101"]], "MaxMemoryPerAccount", ""),
    (Field::GrpTres,          "cpu=4",    [&["-n2", "-n1"], &["-n2", "-n2"], &["-n2", "-n3"]], "QOSGrpCpuLimit",          "AssocGrpCpuLimit"),
    (Field::GrpTres,          "node=2",   [&["-N1"], &["-N2"], &["-N3"]],                "QOSGrpNodeLimit",               "AssocGrpNodeLimit"),
    (Field::GrpTres,          "mem=200M", [&["-m99", "-m100"], &["-m100", "-m100"], &["-m100", "-m101"]], "QOSGrpMemLimit", "AssocGrpMemLimit"),
    (Field::GrpTres,          "billing=3",[&["-n2"], &["-n3"], &["-n4"]],                "QOSGrpBilling",                 "AssocGrpBilling"),
    (Field::GrpTresMins,      "cpu=10",   [&["-n1 -t9"], &["-n1 -t10"], &["-n1 -t11"]],  "QOSGrpCPUMinutesLimit",         "AssocGrpCPUMinutesLimit"),
    (Field::GrpTresRunMins,   "cpu=10",   [&["-n1 -t9"], &["-n1 -t10"], &["-n1 -t11"]],  "QOSGrpCPURunMinutesLimit",      "AssocGrpCPURunMinutesLimit"),
    (Field::MaxTresMins,      "cpu=10",   [&["-n1 -t9"], &["-n1 -t10"], &["-n1 -t11"]],  "QOSMaxCpuMinutesPerJobLimit",   "AssocMaxCpuMinutesPerJobLimit"),
    (Field::MaxTresRunMins,   "cpu=10",   [&["-n1 -t4", "-n1 -t5"], &["-n1 -t5", "-n1 -t5"], &["-n1 -t5", "-n1 -t6"]], "", "AssocMaxCPURunMinutesLimit"),
    (Field::MaxTresRunMins,   "node=10",  [&["-N2 -t4"], &["-N2 -t5"], &["-N2 -t6"]],    "",                              "AssocMaxNodeRunMinutes"),
    (Field::MaxTresRunMinsUser,    "cpu=10", [&["-n1 -t9"], &["-n1 -t10"], &["-n1 -t11"]], "MaxCpuRunMinsPerUser",     ""),
    (Field::MaxTresRunMinsAccount, "cpu=10", [&["-n1 -t9"], &["-n1 -t10"], &["-n1 -t11"]], "MaxCpuRunMinsPerAccount",  ""),
    (Field::MinTres,          "cpu=3",    [&["-n4"], &["-n3"], &["-n2"]],                "QOSMinCpuNotSatisfied",         ""),
    (Field::MinTres,          "node=2",   [&["-N3"], &["-N2"], &["-N1"]],                "QOSMinNode",                    ""),
    (Field::MinTres,          "mem=200M", [&["-m201"], &["-m200"], &["-m199"]],          "QOSMinMemory",                  ""),
];

#[test]
fn every_limit_at_every_level_lets_pass_what_is_within_it_and_nothing_beyond() {
    let mut wrong = Vec::new();
    for (field, value, lists, of_qos, of_association) in BOUNDS {
        for level in LEVELS {
            let reason = if is_qos(level) { of_qos } else { of_association };
            if reason.is_empty() {
                continue;
            }
            for (which, jobs) in ["within", "at", "beyond"].iter().zip(lists) {
                let mut world = lab();
                set(&mut world, level, *field, value);
                let found = outcomes(&mut world, level, jobs);
                let mut expected = vec!["R"; jobs.len()];
                if *which == "beyond" {
                    expected[jobs.len() - 1] = reason;
                }
                if found != expected.join(" ") {
                    wrong.push(format!("{level} {field:?}={value} {which} {jobs:?}: {found}, not {expected:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each resource: its name, a job with so many of it, and its name in reasons of a QOS and of an association.
const RESOURCES: [(&str, &str, u32, &str, &str); 5] = [
    ("mem", "-m", 10, "Memory", "Mem"),
    ("node", "-N", 1, "Node", "Node"),
    ("billing", "-n", 1, "Billing", "Billing"),
    ("gres/gpu", "-G", 1, "GRES", "GRES"),
    ("license/a", "-L", 1, "License", "License"),
];

/// Limits on resources, with the reasons of a QOS and of an association: `*` is the resource. Those whose reasons are spelled in
/// another way are in the table above.
#[rustfmt::skip]
const OF_RESOURCES: &[(Field, bool, &str, &str)] = &[
    // limit, whether it is on minutes
    (Field::GrpTres,               false, "QOSGrp*",               "AssocGrp*"),
    (Field::MaxTres,               false, "QOSMax*PerJob",         "AssocMax*PerJob"),
    (Field::MaxTresUser,           false, "QOSMax*PerUser",        ""),
    (Field::MaxTresAccount,        false, "Max*PerAccount",        ""),
    (Field::MinTres,               false, "QOSMin*",               ""),
    (Field::MaxTresPerNode,        false, "QOSMax*PerNode",        "AssocMax*PerNode"),
    (Field::GrpTresMins,           true,  "QOSGrp*Minutes",        "AssocGrp*Minutes"),
    (Field::GrpTresRunMins,        true,  "QOSGrp*RunMinutes",     "AssocGrp*RunMinutes"),
    (Field::MaxTresMins,           true,  "QOSMax*MinutesPerJob",  "AssocMax*MinutesPerJob"),
    (Field::MaxTresRunMins,        true,  "",                      "AssocMax*RunMinutes"),
    (Field::MaxTresRunMinsUser,    true,  "Max*RunMinsPerUser",    ""),
    (Field::MaxTresRunMinsAccount, true,  "Max*RunMinsPerAccount", ""),
];

#[test]
fn every_resource_is_held_to_every_limit_at_every_level() {
    let mut wrong = Vec::new();
    let mut n_seen = 0;
    for (tres, flag, unit, in_qos, in_association) in RESOURCES {
        for (field, is_time, of_qos, of_association) in OF_RESOURCES {
            let jobs: [String; 3] = match is_time {
                true => [9, 10, 11].map(|minutes| format!("{flag}{unit} -t{minutes}")),
                false => [2, 3, 4].map(|amount| format!("{flag}{}", amount * unit)),
            };
            let limit = format!("{tres}={}", unit * if *is_time { 10 } else { 3 });
            for level in LEVELS {
                let (pattern, name) = if is_qos(level) { (of_qos, in_qos) } else { (of_association, in_association) };
                let reason = pattern.replace('*', name);
                // Spelled in another way, or no such limit. Licences are of no node.
                if reason.parse::<model::Reason>().is_err() || reason.contains("LicensePerNode") {
                    continue;
                }
                n_seen += 1;
                let stopped = if *field == Field::MinTres { 0 } else { 2 };
                for (which, job) in jobs.iter().enumerate() {
                    let mut world = lab();
                    set(&mut world, level, *field, &limit);
                    let found = outcomes(&mut world, level, &[job]);
                    if found != if which == stopped { reason.as_str() } else { "R" } {
                        wrong.push(format!("{level} {field:?} {limit}, {job}: {found} ({reason})"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_seen > 100, "{n_seen} limits were looked at");
}

/// Limits that are about something else than a job's start, and the test of each.
#[rustfmt::skip]
const ELSEWHERE: &[(Field, &str)] = &[
    (Field::GrpJobsAccrue,        "state accounts::only_so_many_waiting_jobs_grow_older"),
    (Field::MaxJobsAccrue,        "state accounts::only_so_many_waiting_jobs_grow_older"),
    (Field::MaxJobsAccrueAccount, "state accounts::only_so_many_waiting_jobs_grow_older"),
    (Field::MinPriority,          "whoever_is_not_important_enough_has_no_place_kept"),
    (Field::Priority,             "state accounts: the priority of an association or QOS is a factor"),
];

/// Whatever can be set of an association's limits, or a QOS's, is a limit that a test here sees hold: none is taken and ignored.
#[test]
fn every_limit_that_can_be_set_is_one_that_holds() {
    let values = || {
        let tres = Value::Tres(model::accounts::tres::parse("cpu=3").unwrap());
        [Value::Count(Some(3)), tres].into_iter()
    };
    let mut ignored = Vec::new();
    for field in Field::ALL {
        let mut limits = model::accounts::Limits::default();
        let mut of_qos = model::accounts::QosLimits::default();
        let has = |qos: bool| BOUNDS.iter().any(|row| row.0 == *field && !(if qos { row.3 } else { row.4 }).is_empty());
        let is_elsewhere = ELSEWHERE.iter().any(|(known, _)| known == field);
        if values().any(|value| limits.set(*field, &value)) && !has(false) && !is_elsewhere {
            ignored.push(format!("{field:?} of an association"));
        }
        if values().any(|value| of_qos.set(*field, &value)) && !has(true) && !is_elsewhere {
            ignored.push(format!("{field:?} of a QOS"));
        }
    }
    assert!(ignored.is_empty(), "{ignored:?}");
}

/// Who has a job already when another of ann's in account a11 and QOS q1 comes.
const OTHERS: [(&str, &str, &str); 4] =
    [("bob", "a11", "q1"), ("cat", "a2", "q1"), ("ann", "a2", "q1"), ("ann", "a11", "normal")];

/// Limits that two jobs of two CPUs and five minutes break, and whose they count with: each of `OTHERS`, `x` if it counts.
#[rustfmt::skip]
const COUNTED: &[(&str, Field, &str, &str)] = &[
    ("qos",  Field::GrpJobs,               "1",      "xxx."),
    ("qos",  Field::GrpTres,               "cpu=3",  "xxx."),
    ("qos",  Field::GrpTresMins,           "cpu=19", "xxx."),
    ("qos",  Field::GrpTresRunMins,        "cpu=19", "xxx."),
    ("qos",  Field::MaxJobs,               "1",      "..x."),
    ("qos",  Field::MaxTresUser,           "cpu=3",  "..x."),
    ("qos",  Field::MaxTresUser,           "mem=300","..x."),
    ("qos",  Field::MaxTresRunMinsUser,    "cpu=19", "..x."),
    ("qos",  Field::MaxJobsAccount,        "1",      "x..."),
    ("qos",  Field::MaxTresAccount,        "cpu=3",  "x..."),
    ("qos",  Field::MaxTresRunMinsAccount, "cpu=19", "x..."),
    ("user", Field::GrpJobs,               "1",      "...x"),
    ("user", Field::GrpTres,               "cpu=3",  "...x"),
    ("user", Field::GrpTresMins,           "cpu=19", "...x"),
    ("user", Field::GrpTresRunMins,        "cpu=19", "...x"),
    ("user", Field::MaxJobs,               "1",      "...x"),
    ("user", Field::MaxTresRunMins,        "cpu=19", "...x"),
    ("a11",  Field::GrpJobs,               "1",      "x..x"),
    ("a11",  Field::GrpTres,               "cpu=3",  "x..x"),
    ("a11",  Field::GrpTresRunMins,        "cpu=19", "x..x"),
    ("a11",  Field::MaxJobs,               "1",      "...x"),
    ("a11",  Field::MaxTresRunMins,        "cpu=19", "...x"),
    ("a1",   Field::GrpJobs,               "1",      "x..x"),
    ("a1",   Field::GrpTresMins,           "cpu=19", "x..x"),
    ("a1",   Field::MaxJobs,               "1",      "...x"),
    ("root", Field::GrpJobs,               "1",      "xxxx"),
    ("root", Field::GrpTres,               "mem=300","xxxx"),
    ("root", Field::GrpTresMins,           "cpu=19", "xxxx"),
    ("root", Field::MaxJobs,               "1",      "...x"),
    ("qos",  Field::GrpSubmit,             "1",      "xxx."),
    ("qos",  Field::MaxSubmit,             "1",      "..x."),
    ("qos",  Field::MaxSubmitAccount,      "1",      "x..."),
    ("user", Field::GrpSubmit,             "1",      "...x"),
    ("a11",  Field::GrpSubmit,             "1",      "x..x"),
    ("a11",  Field::MaxSubmit,             "1",      "...x"),
    ("root", Field::GrpSubmit,             "1",      "xxxx"),
    ("root", Field::MaxSubmit,             "1",      "...x"),
];

#[test]
fn every_limit_counts_the_jobs_of_those_it_is_about_and_of_nobody_else() {
    let mut wrong = Vec::new();
    for (level, field, value, expected) in COUNTED {
        let counts = |(user, account, qos): (&str, &str, &str)| {
            let mut world = lab();
            another_account(&mut world);
            // One limit is set for a user everywhere.
            set(&mut world, if *level == "user" { "ann in a11" } else { level }, *field, value);
            let job = |user: &str, account: &str, qos: &str| model::JobSpec {
                user: user.into(),
                account: account.into(),
                ..spec("-n2 -t5", qos)
            };
            submit(&mut world, job(user, account, qos)).unwrap();
            world.schedule();
            let own = submit(&mut world, job("ann", "a11", "q1"));
            world.schedule();
            state::check::check(&world.cluster).unwrap();
            match own {
                Ok(id) => !world.is_running(id),
                Err(reject) => matches!(reject, Reject::Limit(_)),
            }
        };
        let found: String = OTHERS.map(|other| if counts(other) { 'x' } else { '.' }).iter().collect();
        if found != *expected {
            wrong.push(format!("{level} {field:?}={value}: {found}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Account a2 beside a1, with ann and cat in it.
fn another_account(world: &mut World) {
    let add = Change::AddAccounts {
        names: vec!["a2".into()],
        parent: "root".into(),
        edits: Vec::new(),
        clusters: Vec::new(),
    };
    change(world, add);
    let names = vec!["ann".into(), "cat".into()];
    let edits = vec![crate::lab::both_qualities()];
    let accounts = vec!["a2".into()];
    change(world, Change::AddUsers { names, accounts, partitions: Vec::new(), edits, clusters: Vec::new() });
}

/// Limits of jobs that are there or run together say nothing of one alone.
fn is_of_several(field: Field) -> bool {
    use Field::{GrpJobs, MaxJobs, MaxJobsAccount};
    matches!(field, GrpJobs | MaxJobs | MaxJobsAccount)
}

#[test]
fn a_qos_that_denies_refuses_whatever_no_limit_at_any_level_would_ever_let_start() {
    let mut wrong = Vec::new();
    let mut n_seen = 0;
    for (field, value, lists, of_qos, of_association) in BOUNDS {
        for level in LEVELS {
            let reason = if is_qos(level) { of_qos } else { of_association };
            if reason.is_empty() || is_of_several(*field) || lists[2].len() > 1 {
                continue;
            }
            n_seen += 1;
            let mut world = lab();
            set(&mut world, level, *field, value);
            flag(&mut world, if level == "pq" { "pq" } else { "q1" }, "DenyOnLimit");
            let there = if level == "pq" { " -pshort" } else { "" };
            let qos = if level == "pq" { "" } else { "q1" };
            let [below, at, above] = lists.map(|jobs| outcome(&mut world, qos, &[&format!("{}{there}", jobs[0])]));
            let is_let = |word: &str| !word.starts_with('!');
            if !is_let(&below) || !is_let(&at) || above != format!("!{reason}") {
                wrong.push(format!("{level} {field:?}={value}: {below}, {at}, {above} and not !{reason}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_seen > 60, "{n_seen} were looked at");
}
