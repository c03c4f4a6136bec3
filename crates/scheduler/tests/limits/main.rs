//! Limits of accounts and qualities of service, each at its level: who starts, and why the others wait. The words are those of
//! a Slurm 22.05 with the same tree and the same jobs.
use lab::{change, filter, flag, lab, outcome, set, spec, submit};
use model::accounts::{Change, Edit, Field, NamedValue, Value};
use model::config::Enforce;
use model::spec::{ArraySpec, JobSpec, TimeLimit};
use model::time::Span;
use model::{Command, JobId, Reject};
use proptest::prelude::*;
use world::World;

mod buffers;
mod lab;
mod levels;
#[path = "../world/mod.rs"]
mod world;

fn check(level: &str, field: Field, value: &str, jobs: &[&str], expected: &str) {
    let mut world = lab();
    set(&mut world, level, field, value);
    let qos = if level == "qos" { "q1" } else { "" };
    assert_eq!(outcome(&mut world, qos, jobs), expected, "{level} {field:?}={value}");
}

#[test]
fn every_limit_of_a_qos_has_its_reason() {
    use Field::*;
    let qos = |field, value: &str, jobs: &[&str], expected: &str| check("qos", field, value, jobs, expected);
    qos(MaxJobs, "1", &["", ""], "R QOSMaxJobsPerUserLimit");
    qos(MaxJobsAccount, "1", &["", ""], "R MaxJobsPerAccount");
    qos(MaxSubmit, "1", &["", ""], "R !QOSMaxSubmitJobPerUserLimit");
    qos(MaxSubmitAccount, "1", &["", ""], "R !MaxSubmitJobsPerAccount");
    qos(GrpJobs, "1", &["", ""], "R QOSGrpJobsLimit");
    qos(GrpSubmit, "1", &["", ""], "R !QOSGrpSubmitJobsLimit");
    qos(GrpWall, "10", &["-t5", "-t11"], "R QOSGrpWallLimit");
    qos(MaxWall, "10", &["-t11", "-t10", ""], "QOSMaxWallDurationPerJobLimit R R");
    qos(MaxTresUser, "cpu=2", &["-n2", "-n1", "-n3"], "R QOSMaxCpuPerUserLimit QOSMaxCpuPerUserLimit");
    qos(MaxTresUser, "node=1", &["-N1", "-N2"], "R QOSMaxNodePerUserLimit");
    qos(MaxTresUser, "mem=200M", &["-m200", "-m201"], "R QOSMaxMemoryPerUser");
    qos(MaxTresAccount, "cpu=2", &["-n2", "-n1", "-n3"], "R MaxCpuPerAccount MaxCpuPerAccount");
    qos(MaxTresAccount, "mem=200M", &["-m200", "-m201"], "R MaxMemoryPerAccount");
    qos(MaxTres, "cpu=2", &["-n3", "-n2"], "QOSMaxCpuPerJobLimit R");
    qos(MaxTres, "node=1", &["-N2", "-N1"], "QOSMaxNodePerJobLimit R");
    qos(MaxTres, "mem=200M", &["-m201", "-m200"], "QOSMaxMemoryPerJob R");
    qos(MaxTresPerNode, "cpu=2", &["-n3 -N1", "-n2 -N1"], "QOSMaxCpuPerNode R");
    qos(GrpTres, "cpu=2", &["-n2", "-n1", "-n3"], "R QOSGrpCpuLimit QOSGrpCpuLimit");
    qos(GrpTres, "node=1", &["-N1", "-N2"], "R QOSGrpNodeLimit");
    qos(GrpTres, "mem=200M", &["-m200", "-m100", "-m300"], "R QOSGrpMemLimit QOSGrpMemLimit");
    qos(GrpTresMins, "cpu=10", &["-n1 -t11", "-n1 -t5", "-n2 -t5"], "QOSGrpCPUMinutesLimit R QOSGrpCPUMinutesLimit");
    let run = "QOSGrpCPURunMinutesLimit R QOSGrpCPURunMinutesLimit";
    qos(GrpTresRunMins, "cpu=10", &["-n1 -t11", "-n1 -t5", "-n2 -t5"], run);
    qos(MaxTresMins, "cpu=10", &["-n1 -t11", "-n1 -t5"], "QOSMaxCpuMinutesPerJobLimit R");
    qos(MinTres, "cpu=2", &["-n1", "-n2"], "QOSMinCpuNotSatisfied R");
    qos(MinTres, "node=2", &["-N1", "-N2"], "QOSMinNode R");
    qos(MinTres, "mem=200M", &["-m100"], "QOSMinMemory");
    qos(MaxTresUser, "billing=2", &["-n3", "-n1"], "QOSMaxBillingPerUser R");
    qos(GrpTres, "billing=2", &["-n3", "-n1"], "QOSGrpBilling R");
}

#[test]
fn every_limit_of_an_association_has_its_reason_at_every_level() {
    use Field::*;
    for level in ["user", "a11", "a1"] {
        let at = |field, value: &str, jobs: &[&str], expected: &str| check(level, field, value, jobs, expected);
        at(MaxJobs, "1", &["", ""], "R AssocMaxJobsLimit");
        at(MaxSubmit, "1", &["", ""], "R !AssocMaxSubmitJobLimit");
        at(GrpJobs, "1", &["", ""], "R AssocGrpJobsLimit");
        at(GrpSubmit, "1", &["", ""], "R !AssocGrpSubmitJobsLimit");
        at(GrpWall, "10", &["-t5", "-t11"], "R AssocGrpWallLimit");
        at(MaxWall, "10", &["-t11", "-t10", ""], "AssocMaxWallDurationPerJobLimit R R");
        at(MaxTres, "cpu=2", &["-n3", "-n2"], "AssocMaxCpuPerJobLimit R");
        at(MaxTres, "node=1", &["-N2", "-N1"], "AssocMaxNodePerJobLimit R");
        at(MaxTres, "mem=200M", &["-m201", "-m200"], "AssocMaxMemPerJob R");
        at(MaxTresPerNode, "cpu=2", &["-N1 -n3", "-N1 -n2"], "AssocMaxCpuPerNode R");
        at(GrpTres, "cpu=2", &["-n2", "-n1", "-n3"], "R AssocGrpCpuLimit AssocGrpCpuLimit");
        at(GrpTres, "node=1", &["-N1", "-N2"], "R AssocGrpNodeLimit");
        at(GrpTres, "mem=200M", &["-m200", "-m100", "-m300"], "R AssocGrpMemLimit AssocGrpMemLimit");
        let mins = "AssocGrpCPUMinutesLimit R AssocGrpCPUMinutesLimit";
        at(GrpTresMins, "cpu=10", &["-n1 -t11", "-n1 -t5", "-n2 -t5"], mins);
        let run = "AssocGrpCPURunMinutesLimit R AssocGrpCPURunMinutesLimit";
        at(GrpTresRunMins, "cpu=10", &["-n1 -t11", "-n1 -t5", "-n2 -t5"], run);
        at(MaxTresMins, "cpu=10", &["-n1 -t11", "-n1 -t5"], "AssocMaxCpuMinutesPerJobLimit R");
    }
}

#[test]
fn whoever_is_not_important_enough_has_no_place_kept() {
    for level in ["qos", "user", "a11", "a1"] {
        let mut world = lab();
        let qos = if level == "qos" { "q1" } else { "" };
        outcome(&mut world, "", &["-N4 -n32 -t10"]);
        let important = |priority| JobSpec { priority: Some(priority), ..spec("-N4 -n32 -t10", qos) };
        let waits = submit(&mut world, important(99)).unwrap();
        world.schedule();
        assert!(world.expected(waits).is_some());
        set(&mut world, level, Field::MinPriority, "100");
        world.schedule();
        assert_eq!(world.expected(waits), None, "{level}");
        let waits = submit(&mut world, important(100)).unwrap();
        world.schedule();
        assert!(world.expected(waits).is_some(), "{level}");
    }
}

#[test]
fn a_job_that_names_no_time_gets_what_minutes_allow() {
    let limit_of = |levels: &[(&str, Field, &str)], job: &str| {
        let mut world = lab();
        flag(&mut world, "q1", "DenyOnLimit");
        levels.iter().for_each(|(level, field, value)| set(&mut world, level, *field, value));
        let id = submit(&mut world, spec(job, "q1")).unwrap();
        world.cluster.job(id).unwrap().spec.time_limit
    };
    let minutes = |minutes: u64| Some(TimeLimit::Secs(minutes * 60));
    let (qos, user) = (("qos", Field::MaxTresMins, "cpu=10"), ("user", Field::MaxTresMins, "node=3"));
    assert_eq!(limit_of(&[qos], "-n2"), minutes(5));
    assert_eq!(limit_of(&[qos, user], "-n2"), minutes(3));
    assert_eq!(limit_of(&[qos, ("qos", Field::MaxWall, "2")], "-n2"), minutes(2));
    assert_eq!(limit_of(&[qos], "-n2 -t4"), minutes(4));
}

#[test]
fn a_qos_that_denies_refuses_what_could_never_start() {
    use Field::*;
    let check = |field, value: &str, jobs: &[&str], expected: &str| {
        let mut world = lab();
        set(&mut world, "qos", field, value);
        let flags = Value::Names(NamedValue::Set(["DenyOnLimit".to_string()].into()));
        let edits = vec![Edit { field: Flags, value: flags }];
        change(&mut world, Change::ModifyQos { filter: filter("q1"), edits });
        assert_eq!(outcome(&mut world, "q1", jobs), expected, "{field:?}={value}");
    };
    check(MaxJobs, "1", &["", ""], "R QOSMaxJobsPerUserLimit");
    check(GrpWall, "10", &["-t5", "-t11"], "R !QOSGrpWallLimit");
    check(MaxWall, "10", &["-t11", "-t10", ""], "!QOSMaxWallDurationPerJobLimit R R");
    check(MaxTresUser, "cpu=2", &["-n2", "-n1", "-n3"], "R QOSMaxCpuPerUserLimit !QOSMaxCpuPerUserLimit");
    check(GrpTres, "cpu=2", &["-n2", "-n1", "-n3"], "R QOSGrpCpuLimit !QOSGrpCpuLimit");
    let mins = "!QOSGrpCPUMinutesLimit R QOSGrpCPUMinutesLimit";
    check(GrpTresMins, "cpu=10", &["-n1 -t11", "-n1 -t5", "-n2 -t5"], mins);
    check(MinTres, "cpu=2", &["-n1", "-n2"], "!QOSMinCpuNotSatisfied R");
}

#[test]
fn the_partitions_qos_goes_before_the_jobs_own_unless_that_goes_over_it() {
    let mut world = lab();
    let limit = |most| vec![Edit { field: Field::MaxJobs, value: Value::Count(Some(most)) }];
    change(&mut world, Change::ModifyQos { filter: filter("pq"), edits: limit(1) });
    change(&mut world, Change::ModifyQos { filter: filter("q1"), edits: limit(2) });
    let mut over = World { cluster: world.cluster.clone(), now: world.now };
    let jobs = ["-pshort", "-pshort", "-pshort"];
    assert_eq!(outcome(&mut world, "q1", &jobs), "R QOSMaxJobsPerUserLimit QOSMaxJobsPerUserLimit");
    let flags = Value::Names(NamedValue::Set(["OverPartQOS".to_string()].into()));
    let edits = vec![Edit { field: Field::Flags, value: flags }];
    change(&mut over, Change::ModifyQos { filter: filter("q1"), edits });
    assert_eq!(outcome(&mut over, "q1", &jobs), "R R QOSMaxJobsPerUserLimit");
}

#[test]
fn a_qos_may_lift_what_the_partition_allows_of_nodes() {
    let mut world = lab();
    let mut config = (**world.cluster.config()).clone();
    config.partitions.iter_mut().for_each(|partition| (partition.min_nodes, partition.max_nodes) = (2, Some(3)));
    world.apply(Command::Reconfigure { config: Box::new(config) });
    let mut free = World { cluster: world.cluster.clone(), now: world.now };
    assert_eq!(outcome(&mut world, "q1", &["-N4", "-N2"]), "PartitionNodeLimit R");
    let flags = Value::Names(NamedValue::Set(["PartitionMaxNodes", "PartitionMinNodes"].map(String::from).into()));
    change(
        &mut free,
        Change::ModifyQos { filter: filter("q1"), edits: vec![Edit { field: Field::Flags, value: flags }] },
    );
    assert_eq!(outcome(&mut free, "q1", &["-N4 -n4"]), "R");
    assert_eq!(outcome(&mut free, "q1", &["-N1 -n1"]), "R");
    let last = free.cluster.jobs().last().expect("just submitted");
    assert_eq!(last.allocation.nodes.len(), 1, "no more than it asks for");
}

#[test]
fn a_limit_of_the_qos_stands_in_for_that_of_the_association() {
    let mut world = lab();
    set(&mut world, "user", Field::GrpTres, "cpu=1");
    set(&mut world, "qos", Field::GrpTres, "cpu=3");
    assert_eq!(outcome(&mut world, "q1", &["-n2", "-n2"]), "R QOSGrpCpuLimit");
    let mut world = lab();
    set(&mut world, "user", Field::GrpTres, "cpu=1,mem=500M");
    set(&mut world, "qos", Field::GrpTres, "cpu=3");
    assert_eq!(outcome(&mut world, "q1", &["-n2 -m600"]), "AssocGrpMemLimit");
}

#[test]
fn tasks_of_an_array_are_counted_one_by_one() {
    let mut world = lab();
    set(&mut world, "user", Field::MaxSubmit, "5");
    let mut array = spec("", "");
    let mut tasks = model::TaskSet::new();
    tasks.insert_range(0, 3, 1);
    array.array = Some(ArraySpec { tasks, limit: None });
    let first = submit(&mut world, array.clone()).unwrap();
    assert!(matches!(submit(&mut world, array), Err(Reject::Limit(_))));
    set(&mut world, "user", Field::MaxJobs, "3");
    let plan = world.schedule();
    assert_eq!(plan.starts.len(), 3);
    assert_eq!(world.cluster.job(first).unwrap().reason.unwrap().to_string(), "AssocMaxJobsLimit");
}

#[test]
fn a_node_that_several_jobs_share_counts_once() {
    for level in ["user", "a1", "qos"] {
        let mut world = lab();
        set(&mut world, level, Field::GrpTres, "node=1");
        let (qos, word) = if level == "qos" { ("q1", "QOSGrpNodeLimit") } else { ("", "AssocGrpNodeLimit") };
        // The first three share a node of eight CPUs; the fourth would need another.
        let expected = format!("R R R {word}");
        assert_eq!(outcome(&mut world, qos, &["-n3", "-n3", "-n2", "-n1"]), expected, "{level}");
        // Whoever counts nodes only now counts those that are held already.
        let mut world = lab();
        assert_eq!(outcome(&mut world, qos, &["-n3", "-n3"]), "R R");
        set(&mut world, level, Field::GrpTres, "node=1");
        assert_eq!(outcome(&mut world, qos, &["-n2", "-N2"]), format!("R {word}"), "{level}");
        set(&mut world, level, Field::GrpTres, "node=3");
        world.schedule();
        assert_eq!(world.cluster.jobs().filter(|job| job.holds_nodes()).count(), 4, "{level}");
    }
}

#[test]
fn limits_of_a_relative_qos_are_hundredths_of_the_cluster_or_of_the_partition() {
    // 32 CPUs on four nodes.
    let mut world = lab();
    set(&mut world, "qos", Field::MaxTresUser, "cpu=25,node=50");
    flag(&mut world, "q1", "Relative");
    assert_eq!(outcome(&mut world, "q1", &["-n6", "-n3", "-n2"]), "R QOSMaxCpuPerUserLimit R");
    let mut world = lab();
    let mut config = (**world.cluster.config()).clone();
    config.partitions[0].nodes.truncate(2);
    world.apply(Command::Reconfigure { config: Box::new(config) });
    let edits = vec![Edit { field: Field::GrpTres, value: Value::Tres(vec![("cpu".into(), Some(50))]) }];
    change(&mut world, Change::ModifyQos { filter: filter("pq"), edits });
    flag(&mut world, "pq", "Relative");
    let jobs = ["-n6 -N1 -pshort", "-n3 -pshort", "-n2 -pshort", "-n4"];
    assert_eq!(outcome(&mut world, "", &jobs), "R QOSGrpCpuLimit R R");
    // It is the partition's: nobody asks for it himself.
    let qos = Value::Names(NamedValue::Changes(vec![(true, "pq".to_string())]));
    let edits = vec![Edit { field: Field::Qos, value: qos }];
    change(&mut world, Change::ModifyUsers { filter: filter("ann"), edits });
    assert!(matches!(submit(&mut world, spec("", "pq")), Err(Reject::BadQos)));
}

#[test]
fn minutes_of_running_jobs_are_weighed_by_the_usage_factor() {
    let mut world = lab();
    set(&mut world, "qos", Field::UsageFactor, "2000");
    set(&mut world, "a1", Field::GrpTresRunMins, "cpu=20");
    assert_eq!(outcome(&mut world, "q1", &["-t8", "-t5"]), "R AssocGrpCPURunMinutesLimit");
    let id = world.cluster.accounts().account_association("a1").unwrap().id;
    assert_eq!(world.cluster.standing(world.now).associations[&id].now.run_secs.cpu, 2 * 8 * 60);
}

/// With the flag, a job must be able to end within the minutes that are left, weighed as they will be.
#[test]
fn a_safe_usage_factor_counts_beforehand() {
    for (is_safe, expected) in [(false, "R"), (true, "QOSGrpCPUMinutesLimit")] {
        let mut world = lab();
        set(&mut world, "qos", Field::UsageFactor, "2000");
        set(&mut world, "qos", Field::GrpTresMins, "cpu=10");
        if is_safe {
            flag(&mut world, "q1", "UsageFactorSafe");
        }
        assert_eq!(outcome(&mut world, "q1", &["-t8"]), expected, "{is_safe}");
        assert_eq!(outcome(&mut world, "q1", &["-t1"]).contains('R'), is_safe);
    }
}

#[test]
fn no_place_is_kept_for_jobs_of_a_qos_that_wants_none() {
    let mut world = lab();
    outcome(&mut world, "", &["-N4 -n32 -t10"]);
    let waits = submit(&mut world, spec("-N4 -n32 -t10", "q1")).unwrap();
    world.schedule();
    assert!(world.expected(waits).is_some());
    flag(&mut world, "q1", "NoReserve");
    world.schedule();
    assert_eq!(world.expected(waits), None);
}

#[test]
fn whoever_is_below_the_threshold_of_a_qos_waits_if_it_is_enforced() {
    for is_enforced in [false, true] {
        let mut world = lab();
        let mut config = (**world.cluster.config()).clone();
        config.scheduler.priority.kind = model::priority::PriorityKind::Multifactor;
        config.scheduler.priority.weight_fair_share = 1000;
        world.apply(Command::Reconfigure { config: Box::new(config) });
        // The second of three in the line has two thirds.
        set(&mut world, "qos", Field::UsageThreshold, "900");
        if is_enforced {
            flag(&mut world, "q1", "EnforceUsageThreshold");
        }
        let job = submit(&mut world, spec("-n1 -t100", "")).unwrap();
        world.schedule();
        assert!(world.is_running(job));
        world.pass(600);
        let job = submit(&mut world, spec("-n1", "q1")).unwrap();
        world.pass(1);
        world.schedule();
        assert_eq!(world.is_running(job), !is_enforced);
        let word = world.reason(job).0.map(|reason| reason.to_string()).unwrap_or_default();
        assert_eq!(word == "QOSUsageThreshold", is_enforced, "{word}");
    }
}

#[test]
fn what_running_jobs_may_still_use_gets_less_with_time() {
    let mut world = lab();
    set(&mut world, "user", Field::GrpTresRunMins, "cpu=10");
    assert_eq!(outcome(&mut world, "", &["-t8", "-t5"]), "R AssocGrpCPURunMinutesLimit");
    world.now = world.now + Span::from_secs(180);
    world.apply(Command::Tick);
    assert_eq!(world.schedule().starts.len(), 1);
}

fn arbitrary_limit() -> impl Strategy<Value = (usize, usize, u64)> {
    (0..5usize, 0..25usize, 1..9u64)
}

fn arbitrary_job() -> impl Strategy<Value = (u32, u32, u64, bool, bool)> {
    (1..5u32, 1..3u32, 1..20u64, any::<bool>(), any::<bool>())
}

/// Whose jobs they are, and how much memory each asks for.
fn arbitrary_owner() -> impl Strategy<Value = (bool, Option<u32>)> {
    (any::<bool>(), proptest::option::of(100..900u32))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However jobs come and go, the counts are their sum (asked after every entry), and no plan breaks a limit of jobs or CPUs.
    #[test]
    fn plans_keep_to_limits(
        limits in proptest::collection::vec(arbitrary_limit(), 0..8),
        jobs in proptest::collection::vec((arbitrary_job(), arbitrary_owner()), 1..24),
        is_safe in any::<bool>(),
    ) {
        let mut world = lab();
        if !is_safe {
            let mut config = (**world.cluster.config()).clone();
            config.accounting.enforce = Enforce::parse("associations,limits,qos").unwrap();
            world.apply(Command::Reconfigure { config: Box::new(config) });
        }
        let mut grp_cpus: Vec<(String, u64)> = Vec::new();
        for (level, kind, amount) in limits {
            let level = ["qos", "user", "a11", "a1", "pq"][level];
            let is_qos = matches!(level, "qos" | "pq");
            let (field, value) = match kind {
                0 => (Field::GrpJobs, amount.to_string()),
                1 => (Field::MaxJobs, amount.to_string()),
                2 => (Field::GrpTresMins, format!("cpu={}", amount * 10)),
                3 => (Field::GrpTresRunMins, format!("cpu={}", amount * 10)),
                4 => (Field::MaxTres, format!("cpu={amount}")),
                5 => (Field::GrpTres, format!("mem={}", amount * 100)),
                6 => (Field::GrpTres, format!("node={}", 1 + amount % 4)),
                7 => (Field::GrpJobsAccrue, amount.to_string()),
                8 => (Field::MaxJobsAccrue, amount.to_string()),
                9 => (Field::MaxWall, (amount * 2).to_string()),
                10 => (Field::GrpWall, (amount * 3).to_string()),
                11 => (Field::MaxTresMins, format!("cpu={}", amount * 5)),
                12 => (Field::MaxTres, format!("mem={}", amount * 100)),
                13 => (Field::MaxTres, format!("node={}", 1 + amount % 2)),
                14 => (Field::MaxTresPerNode, format!("cpu={amount}")),
                18 if is_qos => (Field::MaxTresUser, format!("cpu={amount}")),
                19 if is_qos => (Field::MaxTresUser, format!("node={}", 1 + amount % 4)),
                20 if is_qos => (Field::MaxTresAccount, format!("mem={}", amount * 100)),
                21 if is_qos => (Field::MaxJobsAccount, amount.to_string()),
                22 if is_qos => (Field::MaxTresRunMinsUser, format!("cpu={}", amount * 10)),
                23 if is_qos => (Field::UsageFactor, (amount * 500).to_string()),
                24 if is_qos => (Field::MinTres, format!("cpu={}", amount % 3)),
                15 if !is_qos => (Field::MaxTresRunMins, format!("cpu={}", amount * 10)),
                16 => (Field::GrpTres, format!("billing={amount}")),
                _ => (Field::GrpTres, format!("cpu={amount}")),
            };
            if field == Field::GrpTres && value.starts_with("cpu") && !is_qos {
                grp_cpus.retain(|(known, _)| known != level);
                grp_cpus.push((level.to_string(), amount));
            }
            set(&mut world, level, field, &value);
        }
        let decides = |qos: &str| world.cluster.accounts().qos[qos].limits.grp_tres.get("cpu").is_some();
        let qos_decides = decides("q1") || decides("pq");
        let mut running: Vec<JobId> = Vec::new();
        for ((n_tasks, n_nodes, minutes, in_qos, ends), (is_bobs, memory_mb)) in jobs {
            let memory = memory_mb.map(|megabytes| format!(" -m{megabytes}")).unwrap_or_default();
            let partition = if minutes % 3 == 0 { " -pshort" } else { "" };
            let text = format!("-n{} -N{n_nodes} -t{minutes}{memory}{partition}", n_tasks.max(n_nodes));
            let mut spec = spec(&text, if in_qos { "q1" } else { "" });
            if is_bobs {
                spec.user = "bob".into();
            }
            let _ = submit(&mut world, spec);
            world.schedule();
            world.now = world.now + Span::from_secs(30);
            running = world.cluster.jobs().filter(|job| job.holds_nodes() && !job.is_over()).map(|job| job.id).collect();
            for (level, most) in grp_cpus.iter().filter(|_| !qos_decides) {
                let jobs = running.iter().map(|id| world.cluster.job(*id).unwrap());
                let concerned = jobs.filter(|job| level != "user" || job.spec.user == "ann");
                let held: u64 = concerned.map(|job| u64::from(job.held().n_cpus)).sum();
                prop_assert!(held <= *most, "{held} CPUs are held below {level}, {most} are allowed");
            }
            if let (Some(id), true) = (running.first(), ends) {
                world.apply(Command::Cancel { jobs: vec![(*id).into()], hurry: false });
            }
        }
        drop(running);
    }
}

/// Dependency, begin time, the limit of a QOS, resources; and the limit of an array as soon as one of its tasks runs.
#[test]
fn whoever_is_kept_by_several_things_shows_the_first() {
    let mut world = lab();
    let limit = Edit { field: Field::GrpJobs, value: Value::Count(Some(1)) };
    change(&mut world, Change::ModifyQos { filter: filter("q1"), edits: vec![limit] });
    let other = submit(&mut world, spec("-n1 -N1", "normal")).unwrap();
    let holder = submit(&mut world, spec("-n1 -N1", "q1")).unwrap();
    world.schedule();
    let mut waiting = spec("-n32 -N4", "q1");
    let (tasks, limit) = model::ranges::parse_array("1-3%1").unwrap();
    waiting.array = Some(ArraySpec { tasks, limit });
    waiting.dependency = model::dependency::parse(&format!("afterany:{other}")).unwrap();
    waiting.begin = Some(world.now + Span::from_secs(60));
    let waiting = submit(&mut world, waiting).unwrap();
    let reason = |world: &World| world.reason(waiting).0.map(|reason| reason.to_string()).unwrap_or_default();
    assert_eq!(reason(&world), "Dependency");
    world.finish(other);
    assert_eq!(reason(&world), "BeginTime");
    world.pass(60);
    world.schedule();
    assert_eq!(reason(&world), "QOSGrpJobsLimit");
    let lone = submit(&mut world, spec("-n8 -N1", "normal")).unwrap();
    world.schedule();
    world.finish(holder);
    world.schedule();
    assert_eq!(reason(&world), "Resources", "{:?}", world.reason(lone));
    world.finish(lone);
    world.schedule();
    let rest = world.cluster.jobs().find(|job| job.waiting_tasks.is_some()).expect("two wait");
    assert_eq!(rest.reason.map(|reason| reason.to_string()).as_deref(), Some("JobArrayTaskLimit"));
}

#[test]
fn who_can_do_with_fewer_nodes_gets_as_many_as_limits_leave() {
    for (level, field, value, expected) in [
        ("qos", Field::MaxTres, "node=3", 3),
        ("user", Field::MaxTres, "node=2", 2),
        ("a1", Field::GrpTres, "cpu=3", 3),
        ("qos", Field::MaxTres, "node=9", 4),
    ] {
        let mut world = lab();
        set(&mut world, level, field, value);
        let mut wide = spec("", if level == "qos" { "q1" } else { "" });
        (wide.size.min_nodes, wide.size.max_nodes) = (1, Some(4));
        let job = submit(&mut world, wide).unwrap();
        world.schedule();
        state::check::check(&world.cluster).unwrap();
        let n_nodes = world.cluster.job(job).unwrap().allocation.nodes.len();
        assert_eq!(n_nodes, expected, "{level} {field:?} {value}");
    }
}
