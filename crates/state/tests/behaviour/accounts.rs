//! What was used, who has used less than their share, and what that makes of priorities.
use model::accounts::{AdminLevel, Change, Edit, EntityFilter, Field, NamedValue, Shares, Value};
use model::priority::PriorityKind;
use model::spec::{JobSpec, TimeLimit};
use model::time::Span;
use model::{Command, ExitStatus, Reject, Timestamp, codec};
use state::Cluster;

use crate::lab::{ALICE, Lab, ROOT, batch, config};

fn change(lab: &mut Lab, change: Change) {
    lab.ok(ROOT, Command::ChangeAccounts { change: Box::new(change), by_name: "root".into() });
}

fn shares(number: u32) -> Vec<Edit> {
    vec![Edit { field: Field::Shares, value: Value::Shares(Shares::Number(number)) }]
}

fn accounts(lab: &mut Lab, names: &[&str], parent: &str, number: u32) {
    let names = names.iter().map(|name| name.to_string()).collect();
    change(lab, Change::AddAccounts { names, parent: parent.into(), edits: shares(number), clusters: Vec::new() });
}

fn user(lab: &mut Lab, name: &str, account: &str, number: u32) {
    let (names, accounts) = (vec![name.to_string()], vec![account.to_string()]);
    change(
        lab,
        Change::AddUsers { names, accounts, partitions: Vec::new(), edits: shares(number), clusters: Vec::new() },
    );
}

/// root > a1 > (a11: nobody 3, ann 1; a12: ann), a2: (daemon 3, ann 1), physics without users.
fn tree(half_life: Span) -> Lab {
    let mut lab = Lab::new();
    let mut config = config();
    config.scheduler.priority.kind = PriorityKind::Multifactor;
    config.scheduler.priority.weight_fair_share = 10_000;
    config.scheduler.priority.weight_qos = 1000;
    config.scheduler.priority.half_life = half_life;
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    accounts(&mut lab, &["a1", "a2"], "root", 1);
    accounts(&mut lab, &["physics"], "root", 10);
    accounts(&mut lab, &["a11", "a12"], "a1", 2);
    for (name, account, number) in
        [("ann", "a11", 1), ("ann", "a12", 1), ("ann", "a2", 1), ("nobody", "a11", 3), ("daemon", "a2", 3)]
    {
        user(&mut lab, name, account, number);
    }
    lab
}

fn job_in(account: &str) -> JobSpec {
    let mut spec = batch();
    (spec.user, spec.account) = ("ann".into(), account.into());
    spec.size.n_tasks = Some(2);
    spec.time_limit = Some(TimeLimit::Secs(3600));
    spec
}

fn used(lab: &Lab, user: &str, account: &str, at: u64) -> f64 {
    let all = lab.cluster.accounts();
    let one = all.associations.values().find(|one| one.user == user && one.account == account).unwrap();
    lab.cluster.standing(Timestamp::from_secs(at)).associations[&one.id].now.used.billing
}

/// Two CPUs for a hundred seconds, from second 1000 on.
fn hundred_seconds(lab: &mut Lab) {
    let job = lab.running(job_in("a11"), "n1");
    lab.at(1100);
    lab.exit(job, ExitStatus::exited(0)).unwrap();
}

#[test]
fn the_tree_ranks_users_as_slurm_does() {
    let mut lab = tree(Span(0));
    hundred_seconds(&mut lab);
    assert_eq!(used(&lab, "ann", "a11", 1100), 200.0);
    assert_eq!(used(&lab, "", "a1", 5000), 200.0);
    let standing = lab.cluster.standing(Timestamp::from_secs(1100));
    let all = lab.cluster.accounts();
    let factor = |user: &str, account: &str| {
        let one = all.associations.values().find(|one| one.user == user && one.account == account).unwrap();
        standing.associations[&one.id].fair_share.unwrap() * 6.0
    };
    // The root account's own user is one of six, and stands like a2, which has used nothing either; the rest is in the order a
    // 22.05 gives them.
    let line = [("root", "root"), ("daemon", "a2"), ("ann", "a2"), ("ann", "a12"), ("nobody", "a11"), ("ann", "a11")];
    let ranks: Vec<u32> = line.iter().map(|(user, account)| factor(user, account).round() as u32).collect();
    assert_eq!(ranks, [6, 6, 6, 3, 2, 1]);
    let a1 = all.account_association("a1").unwrap();
    let place = &standing.associations[&a1.id];
    assert_eq!((place.usage_norm, place.usage_effective), (1.0, 1.0));
    // The users of the root account share its level too.
    assert_eq!(place.shares_norm, 1.0 / 13.0);
}

/// As a 22.05 has them on the same tree: nobody has used anything, and nobody stands behind anybody.
#[test]
fn users_and_accounts_that_are_equals_stand_alike() {
    let lab = tree(Span(0));
    let standing = lab.cluster.standing(Timestamp::from_secs(1100));
    let factors: Vec<f64> = standing.associations.values().filter_map(|place| place.fair_share).collect();
    assert_eq!(factors, [1.0; 6]);
}

#[test]
fn what_was_used_is_halved_in_every_half_life_whatever_happens_in_between() {
    let mut lab = tree(Span::from_secs(1000));
    hundred_seconds(&mut lab);
    let before = used(&lab, "ann", "a11", 1100);
    assert!(before < 200.0 && before > 190.0, "{before}");
    let later = used(&lab, "ann", "a11", 3100);
    assert!((later - before / 4.0).abs() < 1e-9, "{later}");
    // Entries in between, and a snapshot, change nothing of it.
    for secs in [1350, 1777, 2500] {
        lab.at(secs);
        lab.submit(job_in("a12"));
    }
    let copy: Cluster = codec::decode(&codec::encode(&lab.cluster)).unwrap();
    assert_eq!(copy, lab.cluster);
    assert!((used(&lab, "ann", "a11", 3100) - later).abs() < 1e-9);
}

#[test]
fn those_who_used_less_go_first_and_a_qos_adds_its_priority() {
    let mut lab = tree(Span(0));
    hundred_seconds(&mut lab);
    let over = lab.submit(job_in("a11"));
    let under = lab.submit(job_in("a2"));
    lab.at(1500);
    let order: Vec<_> = lab.cluster.queue().map(|job| job.id).collect();
    assert_eq!(order, [under, over]);
    assert_eq!(lab.job(under).priority, 10_000);
    let priority = vec![Edit { field: Field::Priority, value: Value::Count(Some(10)) }];
    change(&mut lab, Change::AddQos { names: vec!["high".into()], edits: priority });
    let qos = Value::Names(NamedValue::Set(["normal".to_string(), "high".to_string()].into()));
    let filter = model::accounts::EntityFilter { names: ["ann".to_string()].into(), ..Default::default() };
    change(&mut lab, Change::ModifyUsers { filter, edits: vec![Edit { field: Field::Qos, value: qos }] });
    let high = lab.submit(JobSpec { qos: "high".into(), ..job_in("a11") });
    assert_eq!(lab.job(high).priority - lab.job(over).priority, 1000);
}

/// Who has lost a quality of service runs nothing in it.
#[test]
fn a_waiting_job_that_has_lost_its_qos_waits_until_it_is_given_back() {
    let mut lab = tree(Span::from_secs(100));
    let mut config = model::Config::clone(lab.cluster.config());
    config.accounting.enforce.qos = true;
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    change(&mut lab, Change::AddQos { names: vec!["high".into()], edits: Vec::new() });
    let allow = |lab: &mut Lab, names: &[&str]| {
        let value = Value::Names(NamedValue::Set(names.iter().map(|name| name.to_string()).collect()));
        change(lab, Change::ModifyAccounts { filter: one("a11"), edits: vec![Edit { field: Field::Qos, value }] });
    };
    allow(&mut lab, &["normal", "high"]);
    let high = lab.submit(JobSpec { qos: "high".into(), ..job_in("a11") });
    let plain = lab.submit(job_in("a11"));
    let runs = lab.running(JobSpec { qos: "high".into(), ..job_in("a11") }, "n1");
    allow(&mut lab, &["normal"]);
    assert_eq!(lab.job(high).reason, Some(model::Reason::InvalidQOS));
    assert_eq!(lab.job(runs).phase, model::Phase::Running);
    assert!(lab.cluster.queue().any(|job| job.id == plain));
    assert!(lab.cluster.queue().all(|job| job.id != high), "no plan looks at it");
    allow(&mut lab, &["normal", "high"]);
    assert_ne!(lab.job(high).reason, Some(model::Reason::InvalidQOS));
    assert!(lab.cluster.queue().any(|job| job.id == high));
}

#[test]
fn administrator_gives_a_waiting_job_any_qos_there_is() {
    let mut lab = tree(Span::from_secs(100));
    let mut config = model::Config::clone(lab.cluster.config());
    config.accounting.enforce.qos = true;
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    change(&mut lab, Change::AddQos { names: vec!["odd".into()], edits: Vec::new() });
    let job = lab.submit(job_in("a11"));
    let give = |lab: &mut Lab, by, qos: &str| {
        let changes = Box::new(model::update::JobChanges { qos: Some(qos.into()), ..Default::default() });
        lab.each(by, Command::UpdateJob { job: job.into(), changes })
    };
    assert_eq!(give(&mut lab, ALICE, "odd"), Err(Reject::BadQos));
    assert_eq!(give(&mut lab, ROOT, "none"), Err(Reject::BadQos));
    assert_eq!(give(&mut lab, ROOT, "odd"), Ok(()));
    assert_eq!((lab.job(job).spec.qos.as_str(), lab.job(job).reason), ("odd", Some(model::Reason::Priority)));
    assert!(lab.cluster.queue().any(|waiting| waiting.id == job));
}

fn one(name: &str) -> model::accounts::EntityFilter {
    model::accounts::EntityFilter { names: [name.to_string()].into(), ..Default::default() }
}

fn set_account(lab: &mut Lab, name: &str, field: Field, value: Value) {
    change(lab, Change::ModifyAccounts { filter: one(name), edits: vec![Edit { field, value }] });
}

#[test]
fn what_was_used_goes_with_an_account_to_its_new_place() {
    let mut lab = tree(Span(0));
    hundred_seconds(&mut lab);
    set_account(&mut lab, "a11", Field::Parent, Value::Text("a2".into()));
    let of = |lab: &Lab, account: &str| used(lab, "", account, 2000);
    assert_eq!([of(&lab, "a1"), of(&lab, "a2"), of(&lab, "a11"), of(&lab, "root")], [0.0, 200.0, 200.0, 200.0]);
    set_account(&mut lab, "a2", Field::RawUsage, Value::Count(Some(0)));
    assert_eq!([of(&lab, "a2"), of(&lab, "a11"), of(&lab, "root")], [0.0; 3]);
    assert_eq!(used(&lab, "ann", "a11", 2000), 0.0);
    // An account that goes below one of its own leaves its place to it.
    set_account(&mut lab, "a2", Field::Parent, Value::Text("a11".into()));
    let all = lab.cluster.accounts();
    let parent = |name: &str| all.associations[&all.account_association(name).unwrap().parent].account.clone();
    assert_eq!((parent("a11").as_str(), parent("a2").as_str()), ("root", "a11"));
}

#[test]
fn running_jobs_end_when_minutes_are_used_up_unless_limits_are_safe() {
    for is_safe in [false, true] {
        let mut lab = tree(Span(0));
        let mut config = (**lab.cluster.config()).clone();
        config.accounting.enforce.safe = is_safe;
        lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
        let minutes = Value::Tres(vec![("cpu".into(), Some(if is_safe { 200 } else { 5 }))]);
        set_account(&mut lab, "a1", Field::GrpTresMins, minutes);
        let job = lab.running(job_in("a11"), "n1");
        lab.at(1100);
        assert_eq!(lab.job(job).phase, model::Phase::Running);
        // Two CPUs for 150 seconds and more.
        lab.at(1300);
        assert_eq!(lab.job(job).phase == model::Phase::Running, is_safe);
    }
}

#[test]
fn partitions_bill_by_their_weights() {
    let mut lab = tree(Span(0));
    let mut config = (**lab.cluster.config()).clone();
    config.partitions[0].billing_weights = "CPU=0.5,Node=3".into();
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    hundred_seconds(&mut lab);
    assert_eq!(used(&lab, "ann", "a11", 1100), 400.0);
}

#[test]
fn a_qos_may_lift_limits_of_partitions_and_ask_for_a_reservation() {
    let mut lab = tree(Span(0));
    let mut config = (**lab.cluster.config()).clone();
    (config.partitions[0].max_nodes, config.partitions[0].max_time) = (Some(1), Some(TimeLimit::Secs(60)));
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    let flags = |names: &[&str]| {
        let names = names.iter().map(|name| name.to_string()).collect();
        vec![Edit { field: Field::Flags, value: Value::Names(NamedValue::Set(names)) }]
    };
    change(
        &mut lab,
        Change::AddQos { names: vec!["free".into()], edits: flags(&["PartitionMaxNodes", "PartitionTimeLimit"]) },
    );
    change(&mut lab, Change::AddQos { names: vec!["kept".into()], edits: flags(&["RequiresReservation"]) });
    let qos = Value::Names(NamedValue::Set(["normal", "free", "kept"].map(String::from).into()));
    change(&mut lab, Change::ModifyUsers { filter: one("ann"), edits: vec![Edit { field: Field::Qos, value: qos }] });
    let large = |qos: &str| {
        let mut spec = JobSpec { qos: qos.into(), ..job_in("a11") };
        spec.size.min_nodes = 2;
        spec
    };
    let bound = lab.submit(large("normal"));
    let free = lab.submit(large("free"));
    let queued: Vec<_> = lab.cluster.queue().map(|job| job.id).collect();
    assert_eq!(queued, [free], "{:?}", lab.job(bound).reason);
    let submit = Command::Submit { spec: Box::new(large("kept")), blobs: Vec::new() };
    assert_eq!(lab.apply(ROOT, submit), Err(model::Reject::BadQos));
}

#[test]
fn several_changes_are_all_made_or_none() {
    let mut lab = tree(Span(0));
    let add = |name: &str, parent: &str| Change::AddAccounts {
        names: vec![name.into()],
        parent: parent.into(),
        edits: Vec::new(),
        clusters: Vec::new(),
    };
    let command =
        |changes| Command::ChangeAccounts { change: Box::new(Change::Several(changes)), by_name: "root".into() };
    let before = lab.cluster.accounts().clone();
    assert!(lab.apply(ROOT, command(vec![add("x", "root"), add("y", "nowhere")])).is_err());
    assert_eq!(*lab.cluster.accounts(), before);
    lab.ok(ROOT, command(vec![add("x", "root"), add("y", "x")]));
    assert!(lab.cluster.accounts().account_association("y").is_some());
    let actions: Vec<String> = lab.cluster.chronicle().transactions.into_iter().map(|one| one.action).collect();
    assert!(
        actions.ends_with(&["Add Accounts", "Add Associations", "Add Accounts", "Add Associations"].map(String::from))
    );
}

/// Ages count only as far as limits let them; who may begin next is seen once a `calc_period`.
#[test]
fn only_so_many_waiting_jobs_grow_older() {
    let in_qos = |lab: &mut Lab, field: Field| {
        change(
            lab,
            Change::ModifyQos { filter: one("normal"), edits: vec![Edit { field, value: Value::Count(Some(2)) }] },
        );
    };
    type Limit<'a> = Box<dyn Fn(&mut Lab) + 'a>;
    let limits: Vec<Limit> = vec![
        Box::new(|lab| set_account(lab, "a1", Field::GrpJobsAccrue, Value::Count(Some(2)))),
        Box::new(|lab| set_account(lab, "a11", Field::MaxJobsAccrue, Value::Count(Some(2)))),
        Box::new(|lab| in_qos(lab, Field::GrpJobsAccrue)),
        Box::new(|lab| in_qos(lab, Field::MaxJobsAccrue)),
        Box::new(|lab| in_qos(lab, Field::MaxJobsAccrueAccount)),
    ];
    for limit in limits {
        let mut lab = tree(Span(0));
        limit(&mut lab);
        let jobs: Vec<_> = (0..4).map(|_| lab.submit(job_in("a11"))).collect();
        let accruing = |lab: &Lab| jobs.iter().filter(|id| lab.job(**id).accrue_time().is_some()).count();
        assert_eq!(accruing(&lab), 2);
        assert!(lab.job(jobs[3]).eligible.is_some());
        // The first leaves: its place is taken within a period, not at once.
        lab.at(1010);
        lab.ok(ROOT, Command::Cancel { jobs: vec![jobs[0].into()], hurry: false });
        assert_eq!(lab.job(jobs[2]).accrue_time(), None);
        lab.at(1310);
        assert_eq!(lab.job(jobs[2]).accrue_time(), Some(Timestamp::from_secs(1310)));
        assert_eq!(lab.job(jobs[3]).accrue_time(), None);
        // Whoever is held loses its place to the next.
        lab.ok(ROOT, Command::Hold { jobs: vec![jobs[1].into()], by_user: false });
        assert_eq!(lab.job(jobs[1]).accrue_time(), None);
        lab.at(1700);
        assert!(lab.job(jobs[3]).accrue_time().is_some());
        lab.ok(ROOT, Command::Release { jobs: vec![jobs[1].into()] });
        assert_eq!(lab.job(jobs[1]).accrue_time(), None);
    }
}

#[test]
fn of_an_array_so_many_tasks_grow_older_as_may() {
    let mut lab = tree(Span(0));
    set_account(&mut lab, "a1", Field::GrpJobsAccrue, Value::Count(Some(2)));
    let (tasks, limit) = model::ranges::parse_array("1-5").unwrap();
    let mut spec = job_in("a11");
    spec.array = Some(model::spec::ArraySpec { tasks, limit });
    lab.submit(spec);
    let tasks = |lab: &Lab, grows: bool| -> u64 {
        let records = lab.cluster.jobs().filter(|job| job.accrue_time().is_some() == grows);
        records.map(|job| job.n_tasks_waiting()).sum()
    };
    assert_eq!((tasks(&lab, true), tasks(&lab, false)), (2, 3));
}

#[test]
fn age_counts_again_from_the_release_of_a_held_job() {
    let mut lab = tree(Span(0));
    let job = lab.submit(job_in("a11"));
    assert_eq!(lab.job(job).accrue_time(), lab.job(job).eligible);
    lab.at(1100);
    lab.ok(ROOT, Command::Hold { jobs: vec![job.into()], by_user: false });
    assert_eq!(lab.job(job).accrue_time(), None);
    lab.at(1200);
    lab.ok(ROOT, Command::Release { jobs: vec![job.into()] });
    assert_eq!(lab.job(job).accrue_time(), Some(Timestamp::from_secs(1200)));
}

/// As a 22.05 with `NO_FAIR_TREE` had it: who, shares as part of the cluster, use that counts, factor; and with `DEPTH_OBLIVIOUS`.
type Told = (&'static str, &'static str, f64, [(f64, f64); 2]);
#[rustfmt::skip]
const CLASSIC: &[Told] = &[
    ("root",    "",       1.000000, [(1.000000, 0.500000), (1.000000, 0.500000)]),
    ("root",    "root",   0.076923, [(0.013139, 0.888343), (0.013139, 0.888343)]),
    ("a1",      "",       0.076923, [(0.592114, 0.004818), (0.592114, 0.004818)]),
    ("a11",     "",       0.038462, [(0.592114, 0.000023), (0.592114, 0.000023)]),
    ("a11",     "nobody", 0.028846, [(0.460533, 0.000016), (0.439594, 0.000026)]),
    ("a11",     "ann",    0.009615, [(0.542770, 0.000000), (0.526322, 0.000000)]),
    ("a12",     "",       0.038462, [(0.296057, 0.004818), (0.000000, 1.000000)]),
    ("a12",     "ann",    0.038462, [(0.296057, 0.004818), (0.000000, 1.000000)]),
    ("a2",      "",       0.076923, [(0.394747, 0.028523), (0.394747, 0.028523)]),
    ("a2",      "bin",    0.076923, [(0.394747, 0.028523), (0.394747, 0.028523)]),
    ("a2",      "daemon", 0.038462, [(0.197374, 0.028523), (0.000000, 1.000000)]),
    ("a2",      "ann",    0.012821, [(0.175443, 0.000076), (0.207761, 0.000013)]),
    ("kin",     "",       0.076923, [(0.394747, 0.028523), (0.394747, 0.028523)]),
    ("kin",     "games",  0.076923, [(0.394747, 0.028523), (0.394747, 0.028523)]),
    ("kin",     "sys",    0.025641, [(0.210532, 0.003375), (0.186986, 0.006379)]),
    ("physics", "",       0.769231, [(0.000000, 1.000000), (0.000000, 1.000000)]),
];

#[test]
fn without_a_fair_tree_shares_are_weighed_as_slurm_weighs_them() {
    let mut lab = tree(Span(0));
    let parents = vec![Edit { field: Field::Shares, value: Value::Shares(Shares::Parent) }];
    let add = |names: &str, account: &str, edits: &[Edit]| Change::AddUsers {
        names: vec![names.into()],
        accounts: vec![account.into()],
        partitions: Vec::new(),
        edits: edits.to_vec(),
        clusters: Vec::new(),
    };
    let kin = Change::AddAccounts {
        names: vec!["kin".into()],
        parent: "a2".into(),
        edits: parents.clone(),
        clusters: Vec::new(),
    };
    for one in [kin, add("bin", "a2", &parents), add("sys", "kin", &shares(2)), add("games", "kin", &parents)] {
        change(&mut lab, one);
    }
    // As much as the 22.05 had counted, in the same proportions.
    for (user, account, secs) in [
        ("nobody", "a11", 50_000),
        ("ann", "a11", 400_000),
        ("bin", "a2", 70_000),
        ("ann", "a2", 100_000),
        ("sys", "kin", 90_000),
        ("games", "kin", 40_000),
        ("root", "root", 9_986),
    ] {
        let mut spec = job_in(account);
        (spec.user, spec.size.n_tasks, spec.time_limit) = (user.into(), Some(1), None);
        let job = lab.running(spec, "n1");
        let end = lab.secs + secs;
        lab.at(end);
        lab.exit(job, ExitStatus::exited(0)).unwrap();
    }
    for (way, flag) in ["NO_FAIR_TREE", "DEPTH_OBLIVIOUS"].into_iter().enumerate() {
        let mut config = (**lab.cluster.config()).clone();
        assert!(config.scheduler.priority.set_flag(flag));
        lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
        let standing = lab.cluster.standing(Timestamp::from_secs(lab.secs));
        for (account, user, share, ways) in CLASSIC {
            let all = lab.cluster.accounts();
            let one = all.associations.values().find(|one| one.user == *user && one.account == *account).unwrap();
            let place = &standing.associations[&one.id];
            let (used, factor) = ways[way];
            let figures =
                [(place.shares_norm, *share), (place.usage_effective, used), (place.fair_share.unwrap(), factor)];
            let is_alike = |(ours, theirs): &(f64, f64)| (ours - theirs).abs() < 5e-6;
            assert!(figures.iter().all(is_alike), "{flag}: {user} in {account}: {figures:?}");
        }
    }
    let factor = |lab: &Lab| {
        let standing = lab.cluster.standing(Timestamp::from_secs(lab.secs));
        standing.associations[&lab.cluster.accounts().account_association("a1").unwrap().id].fair_share.unwrap()
    };
    let before = factor(&lab);
    lab.ok(ROOT, Command::SetDampening { factor: 3 });
    assert!((factor(&lab).powi(3) - before).abs() < 1e-9, "{before} is the third power of {}", factor(&lab));
    assert_eq!(lab.apply(ALICE, Command::SetDampening { factor: 4 }), Err(Reject::NotPermitted));
    assert!(lab.apply(ROOT, Command::SetDampening { factor: 0 }).is_err());
}

#[test]
fn running_jobs_are_weighed_again_only_where_the_site_wants_it() {
    for (flag, is_weighed) in [("ACCRUE_ALWAYS", false), ("CALCULATE_RUNNING", true)] {
        let mut lab = tree(Span(0));
        let mut config = (**lab.cluster.config()).clone();
        config.scheduler.priority.weight_age = 7 * 24 * 3600;
        config.scheduler.priority.calc_period = Span::from_secs(60);
        assert!(config.scheduler.priority.set_flag(flag));
        lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
        let job = lab.running(job_in("a11"), "n1");
        let before = lab.job(job).clone();
        lab.at(1300);
        let after = lab.job(job).clone();
        // Older by 300 s, and what it uses counts against it.
        let fell = before.account_factors.fair_share > after.account_factors.fair_share;
        assert_eq!((fell, before.priority != after.priority), (is_weighed, is_weighed), "{flag}");
        if is_weighed {
            let lost = (before.account_factors.fair_share - after.account_factors.fair_share) * 10_000.0;
            let expected = f64::from(before.priority) + 300.0 - lost;
            assert!((f64::from(after.priority) - expected).abs() <= 1.0, "{expected}, not {}", after.priority);
        }
    }
}

/// Whoever is asked for by a place, a number or a description is meant, and nobody else.
#[test]
fn a_change_reaches_those_who_were_asked_for() {
    let mut lab = tree(Span(0));
    let words = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let partitions = vec!["debug".to_string()];
    change(
        &mut lab,
        Change::AddUsers {
            names: vec!["daemon".into()],
            accounts: vec!["a1".into()],
            partitions,
            edits: Vec::new(),
            clusters: Vec::new(),
        },
    );
    let level = |text: &str| vec![Edit { field: Field::AdminLevel, value: Value::Text(text.into()) }];
    let filter = EntityFilter { partitions: words(&["debug"]), ..Default::default() };
    change(&mut lab, Change::ModifyUsers { filter, edits: level("operator") });
    let mighty: Vec<String> = (lab.cluster.accounts().users.values())
        .filter(|user| user.admin_level == AdminLevel::Operator)
        .map(|user| user.name.clone())
        .collect();
    assert_eq!(mighty, ["daemon"]);
    for (name, description) in [("q1", "one"), ("q2", "two")] {
        let edits = vec![Edit { field: Field::Description, value: Value::Text(description.into()) }];
        change(&mut lab, Change::AddQos { names: vec![name.into()], edits });
    }
    let id = lab.cluster.accounts().qos["q2"].id;
    let asked = [
        EntityFilter { ids: [id].into(), ..Default::default() },
        EntityFilter { descriptions: words(&["ONE"]), ..Default::default() },
        EntityFilter { preempt_modes: words(&["requeue"]), ..Default::default() },
        EntityFilter { clusters: words(&["elsewhere"]), ..Default::default() },
    ];
    for (number, filter) in (10..).zip(asked) {
        let edits = vec![Edit { field: Field::Priority, value: Value::Count(Some(number)) }];
        change(&mut lab, Change::ModifyQos { filter, edits });
    }
    let priorities = ["normal", "q1", "q2"].map(|name| lab.cluster.accounts().qos[name].priority);
    assert_eq!(priorities, [0, 11, 10]);
}

/// Coordinators give others nothing that they may not use themselves, and nobody takes over what another may do.
#[test]
fn rights_cannot_be_given_that_one_does_not_have() {
    let mut lab = tree(Span(0));
    change(&mut lab, Change::AddQos { names: vec!["high".into()], edits: Vec::new() });
    change(&mut lab, Change::AddCoordinators { accounts: vec!["a11".into()], users: vec!["ann".into()] });
    let set = |field, value| vec![Edit { field, value }];
    let level = set(Field::AdminLevel, Value::Text("operator".into()));
    change(&mut lab, Change::ModifyUsers { filter: one("nobody"), edits: level });
    let give = |name: &str| set(Field::Qos, Value::Names(NamedValue::Changes(vec![(true, name.into())])));
    let of = |name: &str| EntityFilter { accounts: ["a11".to_string()].into(), ..one(name) };
    let mut by = |name: &str, change: Change| {
        lab.apply(ALICE, Command::ChangeAccounts { change: Box::new(change), by_name: name.into() }).map(drop)
    };
    let modify = |filter, edits| Change::ModifyUsers { filter, edits };
    assert_eq!(by("ann", modify(of("nobody"), give("normal"))), Ok(()));
    assert_eq!(by("ann", modify(of("nobody"), give("high"))), Err(Reject::NotPermitted));
    assert_eq!(by("nobody", modify(of("ann"), give("high"))), Ok(()));
    assert_eq!(by("ann", modify(of("nobody"), give("high"))), Ok(()));
    let rename = || set(Field::NewName, Value::Text("other".into()));
    assert_eq!(by("ann", modify(of("ann"), rename())), Err(Reject::NotPermitted));
    assert_eq!(by("nobody", modify(one("nobody"), rename())), Err(Reject::NotPermitted));
    assert_eq!(by("nobody", modify(one("daemon"), rename())), Ok(()));
    let delete = |name: &str| Change::DeleteAccounts { filter: one(name) };
    assert_eq!(by("ann", delete("a11")), Err(Reject::NotPermitted));
    let long = Change::AddAccounts {
        names: vec!["x".repeat(256)],
        parent: "root".into(),
        edits: Vec::new(),
        clusters: Vec::new(),
    };
    assert!(matches!(by("nobody", long), Err(Reject::Accounts(_))), "a name that is too long");
}

/// Which of one's accounts is meant where none is named is one's own matter, and nothing else of oneself is.
#[test]
fn users_choose_their_own_default_account_and_coordinators_only_one_of_theirs() {
    let mut lab = tree(Span(0));
    change(&mut lab, Change::AddCoordinators { accounts: vec!["a11".into()], users: vec!["nobody".into()] });
    let set = |field, text: &str| Edit { field, value: Value::Text(text.into()) };
    let default = |account: &str| vec![set(Field::DefaultAccount, account)];
    let of = |lab: &Lab, name: &str| lab.cluster.accounts().users[name].default_account.clone();
    let by = |lab: &mut Lab, name: &str, filter: EntityFilter, edits: Vec<Edit>| {
        let change = Box::new(Change::ModifyUsers { filter, edits });
        lab.apply(ALICE, Command::ChangeAccounts { change, by_name: name.into() }).map(drop)
    };
    assert_eq!(by(&mut lab, "ann", one("ann"), default("a2")), Ok(()));
    assert_eq!(of(&lab, "ann"), "a2");
    assert!(by(&mut lab, "ann", one("ann"), default("physics")).is_err(), "ann is not in it");
    let both = || [default("a11"), vec![Edit { field: Field::MaxJobs, value: Value::Count(None) }]].concat();
    for (filter, edits) in [
        (one("daemon"), default("a2")),
        (EntityFilter::default(), default("a2")),
        (one("ann"), both()),
        (one("ann"), vec![set(Field::AdminLevel, "administrator")]),
        (one("ann"), Vec::new()),
    ] {
        assert_eq!(by(&mut lab, "ann", filter, edits), Err(Reject::NotPermitted));
    }
    let in_a11 = EntityFilter { accounts: ["a11".to_string()].into(), ..one("ann") };
    assert_eq!(by(&mut lab, "nobody", in_a11.clone(), default("a12")), Err(Reject::NotPermitted));
    assert_eq!(of(&lab, "ann"), "a2");
    assert_eq!(by(&mut lab, "nobody", in_a11, default("a11")), Ok(()));
    assert_eq!(of(&lab, "ann"), "a11");
    // Logs of before are judged as they were.
    let mut old = Lab { cluster: Cluster::default(), secs: 1000 };
    old.ok(ROOT, Command::Reconfigure { config: lab.cluster.config().as_ref().clone().into() });
    accounts(&mut old, &["a1"], "root", 1);
    user(&mut old, "ann", "a1", 1);
    assert_eq!(by(&mut old, "ann", one("ann"), default("a1")), Err(Reject::NotPermitted));
    old.ok(ROOT, Command::AdoptRules { edition: 2 });
    assert_eq!(by(&mut old, "ann", one("ann"), default("a1")), Ok(()));
}
