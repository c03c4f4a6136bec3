//! A small tree of accounts, and administrators who keep changing its limits.
use model::Command;
use model::accounts::{Change, Edit, EntityFilter, Field, NamedValue, ResourceEdit, ResourceFilter, Shares, Value};

use crate::dice::Dice;
use crate::setting::UIDS;

pub const ACCOUNTS: [&str; 3] = ["a", "b", "c"];
pub const QOS: [&str; 4] = ["normal", "fast", "slow", "part"];

pub fn user(uid: u32) -> String {
    format!("u{uid}")
}

/// Two accounts, one below the other, with all users in both, and three QOS; `part` is for a partition.
pub fn first() -> Vec<Command> {
    let users = UIDS.iter().map(|uid| user(*uid)).collect();
    let qos: NamedValue = NamedValue::Set(["normal", "fast", "slow"].map(String::from).into());
    let edit = |field, value| vec![Edit { field, value }];
    let accounts = vec!["a".to_string(), "b".to_string()];
    [
        Change::AddQos { names: vec!["slow".into(), "part".into()], edits: Vec::new() },
        Change::AddQos {
            names: vec!["fast".into()],
            edits: edit(Field::Preempt, Value::Names(NamedValue::Set(["slow", "normal"].map(String::from).into()))),
        },
        Change::AddAccounts { names: vec!["a".into()], parent: "root".into(), edits: Vec::new(), clusters: Vec::new() },
        Change::AddAccounts { names: vec!["b".into()], parent: "a".into(), edits: Vec::new(), clusters: Vec::new() },
        Change::AddUsers {
            names: users,
            accounts,
            partitions: Vec::new(),
            edits: edit(Field::Qos, Value::Names(qos)),
            clusters: Vec::new(),
        },
    ]
    .map(command)
    .into()
}

fn command(change: Change) -> Command {
    Command::ChangeAccounts { change: Box::new(change), by_name: "root".into() }
}

pub fn change(dice: &mut Dice) -> Command {
    let one = |name: &str| EntityFilter { names: [name.to_string()].into(), ..Default::default() };
    let account = dice.pick(&ACCOUNTS);
    let who = user(dice.pick(&UIDS));
    let forget = || vec![Edit { field: Field::RawUsage, value: Value::Count(Some(0)) }];
    command(match dice.below(18) {
        16 | 17 => resources(dice),
        12 => Change::AddClusters { names: vec!["other".into()], edits: vec![limit(dice)] },
        13 => Change::DeleteClusters { names: vec!["other".into()] },
        14 => Change::ModifyAccounts { filter: one(account), edits: forget() },
        15 => Change::Several(vec![
            Change::ModifyQos { filter: one(dice.pick(&QOS)), edits: forget() },
            Change::ModifyUsers {
                filter: one(&who),
                edits: vec![Edit {
                    field: Field::Shares,
                    value: Value::Shares(Shares::Number(1 + dice.below(9) as u32)),
                }],
            },
        ]),
        0 => Change::AddAccounts {
            names: vec!["c".into()],
            parent: "root".into(),
            edits: Vec::new(),
            clusters: Vec::new(),
        },
        1 => Change::DeleteAccounts { filter: one("c") },
        2 => {
            let parent = Edit { field: Field::Parent, value: Value::Text(dice.pick(&["root", "a", "b", "c"]).into()) };
            Change::ModifyAccounts { filter: one(account), edits: vec![parent] }
        }
        3 => {
            let accounts = vec![account.to_string()];
            let partitions = if dice.one_in(2) { vec!["short".into()] } else { Vec::new() };
            Change::AddUsers { names: vec![who], accounts, partitions, edits: Vec::new(), clusters: Vec::new() }
        }
        4 => Change::DeleteUsers { filter: one(&who) },
        5 | 6 => Change::ModifyAccounts { filter: one(account), edits: vec![limit(dice)] },
        7 | 8 => Change::ModifyUsers { filter: one(&who), edits: vec![limit(dice)] },
        _ => Change::ModifyQos { filter: one(dice.pick(&QOS)), edits: vec![limit_of_qos(dice)] },
    })
}

/// Licences of a server: a cluster's part of them comes, changes and goes.
fn resources(dice: &mut Dice) -> Change {
    let filter = || ResourceFilter { names: ["c".to_string()].into(), ..ResourceFilter::default() };
    let of_cluster = || ResourceFilter { clusters: ["spur".to_string()].into(), ..filter() };
    let percent = dice.pick(&[0, 40, 60, 100, 120]);
    let count = dice.below(5) as u32;
    match dice.below(6) {
        0..=2 => Change::AddResources {
            names: vec!["c".into()],
            server: "s".into(),
            edit: ResourceEdit { count: Some(count), percent: Some(percent), ..ResourceEdit::default() },
            clusters: vec!["spur".into()],
        },
        3 => Change::ModifyResources {
            filter: filter(),
            edit: ResourceEdit { count: Some(count), ..Default::default() },
        },
        4 => Change::ModifyResources {
            filter: of_cluster(),
            edit: ResourceEdit { percent: Some(percent), ..ResourceEdit::default() },
        },
        _ => Change::DeleteResources { filter: if dice.one_in(2) { filter() } else { of_cluster() } },
    }
}

fn limit(dice: &mut Dice) -> Edit {
    let count = dice.maybe(2, 6);
    let amount = dice.maybe(2, 12).map(u64::from);
    let tres = |name: &str, scale: u64| Value::Tres(vec![(name.to_string(), amount.map(|amount| amount * scale))]);
    let (field, value) = match dice.below(15) {
        0 => (Field::GrpJobs, Value::Count(count)),
        1 => (Field::GrpSubmit, Value::Count(count.map(|count| count + 4))),
        2 => (Field::MaxJobs, Value::Count(count)),
        3 => (Field::MaxSubmit, Value::Count(count.map(|count| count + 4))),
        4 => (Field::GrpTres, tres("cpu", 1)),
        5 => (Field::GrpTres, tres("mem", 500)),
        6 => (Field::MaxTres, tres("node", 1)),
        7 => (Field::GrpTresMins, tres("cpu", 2)),
        8 => (Field::GrpTresRunMins, tres("cpu", 1)),
        9 => (Field::MaxWall, Value::Count(count)),
        10 => (Field::GrpWall, Value::Count(count)),
        11 => (Field::GrpTres, tres("node", 1)),
        12 => (Field::GrpJobsAccrue, Value::Count(count)),
        13 => (Field::MaxJobsAccrue, Value::Count(count)),
        _ => (Field::GrpTres, tres("gres/gpu", 1)),
    };
    Edit { field, value }
}

fn limit_of_qos(dice: &mut Dice) -> Edit {
    let amount = dice.maybe(2, 12).map(u64::from);
    let cpus = Value::Tres(vec![("cpu".to_string(), amount)]);
    let (field, value) = match dice.below(10) {
        0 => (Field::MaxTresUser, cpus),
        1 => (Field::MaxTresAccount, cpus),
        2 => (Field::UsageFactor, Value::Count(dice.maybe(2, 3000))),
        3 => (Field::Flags, Value::Names(NamedValue::Set(flags(dice)))),
        5 => (Field::UsageThreshold, Value::Count(dice.maybe(2, 700))),
        6 => (Field::MaxJobsAccrueAccount, Value::Count(dice.maybe(2, 6))),
        7 => (Field::MaxTresUser, Value::Tres(vec![("node".to_string(), amount)])),
        4 => (Field::MinTres, Value::Tres(vec![("cpu".to_string(), dice.maybe(2, 3).map(u64::from))])),
        _ => return limit(dice),
    };
    Edit { field, value }
}

fn flags(dice: &mut Dice) -> std::collections::BTreeSet<String> {
    let all = [
        "DenyOnLimit",
        "NoDecay",
        "OverPartQOS",
        "NoReserve",
        "PartitionMaxNodes",
        "PartitionTimeLimit",
        "UsageFactorSafe",
        "EnforceUsageThreshold",
        "Relative",
    ];
    all.into_iter().filter(|_| dice.one_in(2)).map(String::from).collect()
}
