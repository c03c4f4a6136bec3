//! `dump` and `load`: a cluster's tree as a file.
use model::accounts::{Account, Accounts, AdminLevel, Association, Change, Edit, EntityFilter, Field, ROOT, Value};
use wire::Controller;

use super::agree::commit;
use super::{Options, asked, differences, dump};
use crate::output::print;
use crate::trouble::Trouble;

/// `dump CLUSTER [FILE=…]` writes the tree, `load FILE` makes it so.
pub fn dump_or_load(verb: &str, words: &[String], options: &Options) -> i32 {
    let value = |key: &str| {
        let named = words.iter().filter_map(|word| word.split_once('='));
        named.filter(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value.to_string()).next()
    };
    let plain: Vec<String> = words.iter().filter(|word| !word.contains('=')).cloned().collect();
    let cleans = verb == "load" && plain.iter().any(|word| word.eq_ignore_ascii_case("clean"));
    let plain = plain.into_iter().find(|word| !(cleans && word.eq_ignore_ascii_case("clean")));
    let file = value("file");
    asked(async |controller, facts| {
        let all = controller.accounts().await?;
        match verb {
            "dump" => Ok(dump_to(&all, &facts.name, plain.or(value("cluster")), file)),
            _ => {
                let told_with = if file.is_some() { "file=" } else { "" };
                let order = Load { file: file.or(plain), told_with, cluster: value("cluster"), cleans };
                load(controller, &all, &facts.name, order, options).await
            }
        }
    })
}

fn dump_to(all: &Accounts, own_name: &str, wanted: Option<String>, file: Option<String>) -> i32 {
    let Some(wanted) = wanted else {
        eprintln!(" We need a cluster to dump.");
        return 1;
    };
    let Some(place) = all.cluster_known_as(own_name, &wanted) else {
        eprintln!(" This cluster '{wanted}' doesn't exist. Contact your admin to add it to accounting.");
        return 1;
    };
    let cluster = if place.is_empty() { own_name } else { &place };
    let file = file.unwrap_or_else(|| {
        print(&format!(" No filename given, using ./{cluster}.cfg.\n"));
        format!("./{cluster}.cfg")
    });
    dump::lines(all, cluster, &place).iter().for_each(|line| eprintln!("sacctmgr: {line}"));
    match std::fs::write(&file, dump::file(all, cluster, &place)) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("sacctmgr: error: Can't open file {file}: {error}");
            1
        }
    }
}

struct Load {
    file: Option<String>,
    /// What stood before the file's name.
    told_with: &'static str,
    cluster: Option<String>,
    /// What the file does not have goes first.
    cleans: bool,
}

/// All that the file asks for, or nothing.
async fn load(
    controller: &mut Controller,
    all: &Accounts,
    own_name: &str,
    order: Load,
    options: &Options,
) -> Result<i32, Trouble> {
    if options.is_readonly {
        eprintln!("sacctmgr: error: Can't run this command in readonly mode.");
        return Ok(1);
    }
    let Some(file) = order.file else {
        eprintln!(" No filename given.");
        return Ok(1);
    };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) => {
            let text = error.to_string();
            let why = text.split(" (os error").next().unwrap_or(&text);
            eprintln!(" Unable to read \"{}{file}\": {why}", order.told_with);
            return Ok(1);
        }
    };
    let cluster = dump::cluster_of(&text, order.cluster.as_deref()).unwrap_or_else(|| own_name.to_lowercase());
    let place = all.cluster_known_as(own_name, &cluster);
    let mut before = all.clone();
    let mut changes = Vec::new();
    if place.is_none() {
        changes.push(Change::AddClusters { names: vec![cluster.clone()], edits: Vec::new() });
    }
    let place = place.unwrap_or_else(|| cluster.clone());
    if order.cleans {
        let is_top = |one: &Association| one.parent == 0 || one.account == ROOT;
        let own = |one: &&Association| one.cluster == place && one.is_account() && !is_top(one);
        let names: std::collections::BTreeSet<String> =
            all.associations.values().filter(own).map(|one| one.account.clone()).collect();
        if !names.is_empty() {
            let filter = EntityFilter { names, clusters: [cluster.clone()].into(), ..EntityFilter::default() };
            changes.push(Change::DeleteAccounts { filter });
        }
        before.associations.retain(|_, one| one.cluster != place || is_top(one));
        // An account that has no place left is gone, and so are those who looked after it.
        let has_place = |name: &String| before.associations.values().any(|one| one.account == *name);
        before.accounts = all.accounts.iter().filter(|(name, _)| has_place(name)).map(pair).collect();
    }
    match dump::changes(&before, &cluster, &place, &text) {
        Ok(found) => changes.extend(found.into_iter().map(|change| still_mighty(all, change))),
        Err(why) => {
            eprintln!("sacctmgr: error: {why}");
            return Ok(1);
        }
    }
    dump::misplaced(&text).iter().for_each(|note| eprintln!("sacctmgr: {note}"));
    let (changes, lines) = differences::news(&before, &place, changes);
    if changes.is_empty() {
        print(&format!("For cluster {cluster}\n Nothing new added.\n"));
        return Ok(0);
    }
    let class = text.lines().filter(|line| line.to_lowercase().trim_start().starts_with("cluster"));
    let class = class.flat_map(|line| line.split(':')).find_map(|part| part.trim().strip_prefix("Classification="));
    let before_it = all.clusters.get(&place).map(|other| other.classification.as_str());
    let before_it = before_it.filter(|class| !class.is_empty() && !order.cleans);
    let told = |class: &str| match before_it.filter(|before| *before != class) {
        Some(before) => format!("  Classification: {before} -> {class}\n"),
        None => format!("  Classification: {class}\n"),
    };
    let class = class.map_or(String::new(), |class| told(class.trim_matches(['\'', '"'])));
    let mut text = format!("For cluster {cluster}\n{class}");
    lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    let added = changes.iter().filter_map(added).collect::<Vec<_>>();
    if !added.is_empty() {
        text.push_str(&format!(" Adding\n{}", added.concat()));
    }
    commit(controller, Change::Several(changes), &text, options).await
}

fn pair((name, account): (&String, &Account)) -> (String, Account) {
    (name.clone(), account.clone())
}

/// Whoever leaves the tree and comes back at once keeps the rights that the file says nothing of.
fn still_mighty(all: &Accounts, change: Change) -> Change {
    let Change::AddUsers { names, accounts, partitions, mut edits, clusters } = change else { return change };
    let level = names.first().and_then(|name| all.users.get(name)).map(|user| user.admin_level);
    let is_told = edits.iter().any(|edit| edit.field == Field::AdminLevel);
    if let Some(level) = level.filter(|level| *level != AdminLevel::None && !is_told && names.len() == 1) {
        edits.push(Edit { field: Field::AdminLevel, value: Value::Text(level.name().to_lowercase()) });
    }
    Change::AddUsers { names, accounts, partitions, edits, clusters }
}

/// A line for what is new.
fn added(change: &Change) -> Option<String> {
    match change {
        Change::AddAccounts { names, parent, .. } => Some(format!("  Account {} of {parent}\n", names.join(","))),
        Change::AddUsers { names, accounts, .. } => {
            Some(format!("  User {} in {}\n", names.join(","), accounts.join(",")))
        }
        Change::AddCoordinators { accounts, users } => {
            Some(format!("  Coordinator {} of {}\n", users.join(","), accounts.join(",")))
        }
        Change::AddWckeys { names, users, .. } => Some(format!("  WCKey {} of {}\n", names.join(","), users.join(","))),
        Change::AddClusters { names, .. } => Some(format!("  Cluster {}\n", names.join(","))),
        _ => None,
    }
}
