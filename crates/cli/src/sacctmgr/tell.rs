//! What is going to be changed, and the words in which the user is told before it is.
use std::collections::BTreeSet;
use std::fmt::Write;

use model::accounts::{Accounts, AdminLevel, Association, AssociationId, Change, Edit, Field, Value, Wckey};

use super::Entity;
use super::show::ClusterFacts;
use super::words::Words;

/// The change with its announcement, or what is said instead of it, with the exit code.
pub type Told = Result<(Change, String), (String, i32)>;

fn list(names: &std::collections::BTreeSet<String>) -> Vec<String> {
    names.iter().cloned().collect()
}

fn refused(text: &str) -> Told {
    Err((format!("{text}\n"), 1))
}

/// Slurm's spelling of a key that may have been cut short.
fn titled(key: &str) -> String {
    super::words::title(key).unwrap_or(key).to_string()
}

fn line(text: &mut String, content: std::fmt::Arguments) {
    writeln!(text, "{content}").expect("a string takes any text");
}

pub fn add(all: &Accounts, cluster: &ClusterFacts, entity: Entity, words: &Words) -> Told {
    let names = list(&words.filter.names);
    let edits = words.edits.iter().filter(|edit| edit.field != Field::Parent).cloned().collect();
    let mut text = String::new();
    match entity {
        Entity::Account => {
            if names.is_empty() {
                return refused(" Need name of account to add.");
            }
            let clusters = meant(all, cluster, words)?;
            let parent = if words.parent.is_empty() { "root" } else { words.parent.as_str() };
            let has_parent = |cluster: &String| all.account_association_in(cluster, parent).is_some();
            let begins = |place: &String| all.are_unused() && place.is_empty() && parent == "root";
            if let Some(place) = clusters.iter().find(|place| !has_parent(place) && !begins(place)) {
                return refused(&format!(
                    " Parent account '{parent}' doesn't exist on cluster {}\n        Contact your admin to add this account.\n No associations created.",
                    cluster.shown(place)
                ));
            }
            let mut places = String::new();
            for name in &names {
                for place in clusters.iter().filter(|place| all.account_association_in(place, name).is_none()) {
                    line(&mut places, format_args!("  A = {name:<10.10} C = {:<10.10}", cluster.shown(place)));
                }
            }
            if places.is_empty() {
                return Err((" Nothing new added.\n".into(), 1));
            }
            let new: Vec<&String> = names.iter().filter(|name| !all.accounts.contains_key(*name)).collect();
            if !new.is_empty() {
                line(&mut text, format_args!(" Adding Account(s)"));
                new.iter().for_each(|name| line(&mut text, format_args!("  {name}")));
                line(&mut text, format_args!(" Settings"));
                let said = |field: Field, unsaid: &str| {
                    let said = words.edits.iter().find(|edit| edit.field == field).map(|edit| edit.value.clone());
                    if let Some(Value::Text(said)) = said { said } else { unsaid.to_string() }
                };
                line(&mut text, format_args!("  Description     = {}", said(Field::Description, "Account Name")));
                line(
                    &mut text,
                    format_args!("  Organization    = {}", said(Field::Organization, "Parent/Account Name")),
                );
            }
            line(&mut text, format_args!(" Associations"));
            text.push_str(&places);
            let is_said = |(key, _): &&(String, String)| {
                let key = key.to_lowercase();
                !"description".starts_with(&key) && !"organization".starts_with(&key)
            };
            let said = words.told.iter().filter(is_said).map(|(key, value)| (titled(key), value));
            let mut said: Vec<(String, &String)> = said.collect();
            let root = model::accounts::ROOT.to_string();
            if !said.is_empty() && words.parent.is_empty() {
                said.push(("Parent".into(), &root));
            }
            said.sort();
            if !said.is_empty() {
                line(&mut text, format_args!(" Settings"));
                said.iter().for_each(|(title, value)| line(&mut text, format_args!("  {title:<13} = {value}")));
            }
            Ok((Change::AddAccounts { names, parent: words.parent.clone(), edits, clusters: named(words) }, text))
        }
        Entity::User => {
            if names.is_empty() {
                return refused(" Need name of user to add.");
            }
            let mut accounts = words.accounts.clone();
            let default = words.edits.iter().find(|edit| edit.field == Field::DefaultAccount);
            // A user has a place in the default account too.
            if let Some(Value::Text(account)) = default.map(|edit| &edit.value)
                && !account.is_empty()
                && !accounts.contains(account)
            {
                accounts.push(account.clone());
            }
            let is_known = |name: &String| all.users.contains_key(name);
            if accounts.is_empty() && words.wckeys.is_empty() {
                return refused(" Need name of account to add user to.");
            }
            let clusters = meant(all, cluster, words)?;
            let is_in = |place: &String, account: &String| all.account_association_in(place, account).is_some();
            let known = |account: &&String| clusters.iter().any(|place| is_in(place, account));
            if let Some(unknown) = accounts.iter().find(|account| !known(account)) {
                return refused(&format!(
                    " This account '{unknown}' doesn't exist.\n        Contact your admin to add this account.\n No associations or wckeys created."
                ));
            }
            let is_named = !words.filter.clusters.is_empty();
            let misses = |place: &&String| accounts.iter().any(|account| !is_in(place, account));
            if let Some(place) = clusters.iter().filter(|_| is_named).find(misses) {
                let account = accounts.iter().find(|account| !is_in(place, account)).expect("one is missing there");
                return refused(&format!(
                    " This account '{account}' doesn't exist on cluster {}\n        Contact your admin to add this account.",
                    cluster.shown(place)
                ));
            }
            let partitions = list(&words.filter.partitions);
            let everywhere = [String::new()];
            let parts = if partitions.is_empty() { &everywhere[..] } else { &partitions[..] };
            let mut associations = String::new();
            for name in &names {
                for account in &accounts {
                    for place in clusters.iter().filter(|place| is_in(place, account)) {
                        for partition in parts {
                            let is_it = |one: &Association| {
                                (&one.user, &one.account, &one.partition, &one.cluster)
                                    == (name, account, partition, place)
                            };
                            if all.associations.values().any(is_it) {
                                continue;
                            }
                            let partition = match partition.as_str() {
                                "" => String::new(),
                                partition => format!(" P = {partition:<10.10}"),
                            };
                            let shown = cluster.shown(place);
                            line(
                                &mut associations,
                                format_args!("  U = {name:<9.9} A = {account:<10.10} C = {shown:<10.10}{partition}"),
                            );
                        }
                    }
                }
            }
            let mut keys = String::new();
            for (name, key) in names.iter().flat_map(|name| words.wckeys.iter().map(move |key| (name, key))) {
                let is_new = |place: &&String| {
                    !all.wckeys.contains(&Wckey { name: key.clone(), user: name.clone(), cluster: place.to_string() })
                };
                for place in clusters.iter().filter(is_new) {
                    let shown = cluster.shown(place);
                    line(&mut keys, format_args!("  U = {name:<9.9} W = {key:<10.10} C = {shown:<10.10}"));
                }
            }
            let associations_are_none = associations.is_empty();
            if associations.is_empty() && keys.is_empty() {
                return Err((" Nothing new added.\n".into(), 1));
            }
            let new: Vec<&String> = names.iter().filter(|name| !is_known(name)).collect();
            if !new.is_empty() {
                line(&mut text, format_args!(" Adding User(s)"));
                new.iter().for_each(|name| line(&mut text, format_args!("  {name}")));
                let of_user = [
                    ("defaultaccount", "Default Account"),
                    ("defaultwckey", "Default WCKey"),
                    ("adminlevel", "Admin Level"),
                ];
                let said = |(name, title): &(&str, &'static str)| {
                    let given =
                        words.told.iter().find(|(key, _)| key.len() > 1 && name.starts_with(&key.to_lowercase()))?;
                    let level = AdminLevel::parse(&given.1).map(|level| level.name().to_string());
                    Some((*title, if *name == "adminlevel" { level.unwrap_or_default() } else { given.1.clone() }))
                };
                let said: Vec<(&str, String)> = of_user.iter().filter_map(said).collect();
                if !said.is_empty() {
                    line(&mut text, format_args!(" Settings ="));
                    said.iter().for_each(|(title, value)| line(&mut text, format_args!("  {title:<15} = {value}")));
                }
            }
            if !associations.is_empty() {
                line(&mut text, format_args!(" Associations ="));
                text.push_str(&associations);
            }
            if !keys.is_empty() {
                line(&mut text, format_args!(" WCKeys ="));
                text.push_str(&keys);
            }
            line(&mut text, format_args!(" Non Default Settings"));
            let of_user = |key: &str| {
                ["defaultaccount", "defaultwckey", "adminlevel"]
                    .iter()
                    .any(|name| name.starts_with(&key.to_lowercase()))
            };
            for (key, value) in words.told.iter().filter(|(key, _)| !of_user(key)) {
                line(&mut text, format_args!("  {:<13} = {value}", titled(key)));
            }
            // The first by name becomes a new user's own, unless another is named.
            accounts.sort();
            let users = Change::AddUsers { names: names.clone(), accounts, partitions, edits, clusters: named(words) };
            let only_keys = words.accounts.is_empty() && associations_are_none;
            let change = match words.wckeys.is_empty() {
                true => users,
                false if only_keys => {
                    Change::AddWckeys { names: words.wckeys.clone(), users: names, clusters: named(words) }
                }
                false => {
                    let keys = Change::AddWckeys { names: words.wckeys.clone(), users: names, clusters: named(words) };
                    Change::Several(vec![users, keys])
                }
            };
            Ok((change, text))
        }
        Entity::Qos => {
            let new: Vec<String> = names.into_iter().filter(|name| !all.qos.contains_key(name)).collect();
            if new.is_empty() {
                return Err((" Nothing new added.\n".into(), 1));
            }
            line(&mut text, format_args!(" Adding QOS(s)"));
            new.iter().for_each(|name| line(&mut text, format_args!("  {name}")));
            line(&mut text, format_args!(" Settings"));
            let description = words.edits.iter().find(|edit| edit.field == Field::Description);
            let description = match description.map(|edit| &edit.value) {
                Some(Value::Text(text)) => text.clone(),
                // Each is called by its name; Slurm tells the last.
                _ => new.last().cloned().unwrap_or_default(),
            };
            line(&mut text, format_args!("  {:<14} = {description}", "Description"));
            let mut said: Vec<(String, &String)> = words.told.iter().map(|(key, value)| (titled(key), value)).collect();
            said.retain(|(title, _)| title != "Description");
            said.sort();
            said.iter().for_each(|(title, value)| line(&mut text, format_args!("  {title:<24} = {value}")));
            Ok((Change::AddQos { names: new, edits }, text))
        }
        Entity::Coordinator => {
            let (accounts, users) = (list(&words.filter.accounts), names);
            if accounts.is_empty() || users.is_empty() {
                return refused(" You need to specify a user list and an account list here.");
            }
            line(&mut text, format_args!(" Adding Coordinator User(s)"));
            users.iter().for_each(|name| line(&mut text, format_args!("  {name}")));
            line(&mut text, format_args!(" To Account(s) and all sub-accounts"));
            accounts.iter().for_each(|name| line(&mut text, format_args!("  {name}")));
            Ok((Change::AddCoordinators { accounts, users }, text))
        }
        Entity::Wckey => {
            let users = list(&words.filter.users);
            if names.is_empty() {
                return refused(" Need name of wckey to add.");
            }
            if users.is_empty() {
                return refused(" Need name of user to add wckey.");
            }
            line(&mut text, format_args!(" Adding WCKey(s)"));
            for (name, user) in names.iter().flat_map(|name| users.iter().map(move |user| (name, user))) {
                line(&mut text, format_args!("  U = {user:<9.9} W = {name:<10.10}"));
            }
            let change = Change::AddWckeys { names, users, clusters: named(words) };
            Ok((change, text))
        }
        Entity::Cluster => {
            if names.is_empty() {
                return refused(" Need name of cluster to add.");
            }
            let is_there = |name: &&String| all.cluster_known_as(&cluster.name, name).is_some();
            let mut told = String::new();
            for name in names.iter().filter(is_there) {
                line(&mut told, format_args!(" This cluster {name} already exists.  Not adding."));
            }
            let new: Vec<String> = names.iter().filter(|name| !is_there(name)).cloned().collect();
            if new.is_empty() {
                return Err((told, 1));
            }
            line(&mut told, format_args!(" Adding Cluster(s)"));
            new.iter().for_each(|name| line(&mut told, format_args!("  Name           = {name}")));
            if !words.told.is_empty() {
                told.push_str(&default_limits(words));
            }
            Ok((Change::AddClusters { names: new, edits }, told))
        }
        Entity::Association | Entity::Tres => refused(" Add users to accounts instead."),
    }
}

pub fn modify(all: &Accounts, cluster: &ClusterFacts, entity: Entity, words: &Words) -> Told {
    if words.edits.is_empty() {
        return refused(" You didn't give me anything to set");
    }
    let (mut filter, edits) = (words.filter.clone().seen_from(&cluster.name), words.edits.clone());
    let nothing = || Err((" Nothing modified\n".to_string(), 1));
    let mut text = String::new();
    match entity {
        // `where user=`: the places of these users in the account.
        Entity::Account if !filter.users.is_empty() => {
            let of_account =
                |edit: &&Edit| matches!(edit.field, Field::Description | Field::Organization | Field::Parent);
            if let Some(edit) = edits.iter().find(of_account) {
                return refused(&format!(" {:?} is of an account, not of its users", edit.field));
            }
            let names = std::mem::take(&mut filter.users);
            let accounts = std::mem::replace(&mut filter.names, names);
            filter.accounts.extend(accounts);
            let chosen = all.chosen_users(&filter);
            if chosen.is_empty() {
                return nothing();
            }
            line(&mut text, format_args!(" Modified account associations..."));
            places(all, cluster, &chosen, &mut text);
            Ok((Change::ModifyUsers { filter, edits }, text))
        }
        Entity::Account => {
            let chosen = all.chosen_accounts(&filter);
            if chosen.is_empty() {
                return nothing();
            }
            if let Some(Value::Text(parent)) =
                edits.iter().find(|edit| edit.field == Field::Parent).map(|edit| &edit.value)
                && !all.accounts.contains_key(parent)
            {
                return refused(&format!(" Parent Account {parent} doesn't exist."));
            }
            let of_account = |field: Field| matches!(field, Field::Description | Field::Organization);
            if edits.iter().any(|edit| of_account(edit.field)) {
                line(&mut text, format_args!(" Modified accounts..."));
                chosen.iter().for_each(|id| line(&mut text, format_args!("  {}", all.associations[id].account)));
            }
            if edits.iter().any(|edit| !of_account(edit.field)) {
                line(&mut text, format_args!(" Modified account associations..."));
                places(all, cluster, &chosen, &mut text);
                places(all, cluster, &heirs(all, &chosen, &edits), &mut text);
            }
            Ok((Change::ModifyAccounts { filter, edits }, text))
        }
        Entity::User if !words.wckeys.is_empty() => refused(&format!(
            " Unknown condition: wckeys={}\n Use keyword 'set' to modify value",
            words.wckeys.join(",")
        )),
        Entity::User => {
            let chosen = all.chosen_users(&filter);
            if chosen.is_empty() {
                return nothing();
            }
            let of_user =
                |field: Field| matches!(field, Field::AdminLevel | Field::DefaultAccount | Field::DefaultWckey);
            if edits.iter().any(|edit| of_user(edit.field)) {
                let mut users: Vec<&str> = chosen.iter().map(|id| all.associations[id].user.as_str()).collect();
                users.sort();
                users.dedup();
                line(&mut text, format_args!(" Modified users..."));
                users.iter().for_each(|name| line(&mut text, format_args!("  {name}")));
            }
            if edits.iter().any(|edit| !of_user(edit.field)) {
                line(&mut text, format_args!(" Modified user associations..."));
                places(all, cluster, &chosen, &mut text);
            }
            Ok((Change::ModifyUsers { filter, edits }, text))
        }
        Entity::Qos => {
            let chosen = all.chosen_qos(&filter);
            if chosen.is_empty() {
                return nothing();
            }
            line(&mut text, format_args!(" Modified qos..."));
            chosen.iter().for_each(|name| line(&mut text, format_args!("  {name}")));
            Ok((Change::ModifyQos { filter, edits }, text))
        }
        Entity::Cluster => {
            let chosen = cluster.chosen(all, words);
            if chosen.is_empty() {
                return nothing();
            }
            text.push_str(&default_limits(words));
            line(&mut text, format_args!(" Modified cluster defaults for associations..."));
            for name in &chosen {
                line(&mut text, format_args!("  C = {:<10} A = root", cluster.shown(name)));
            }
            let clusters = chosen.iter().map(|name| cluster.shown(name).to_string()).collect();
            Ok((Change::ModifyCluster { edits, clusters }, text))
        }
        Entity::Association | Entity::Coordinator | Entity::Tres | Entity::Wckey => {
            refused(" Modify the account or the user instead.")
        }
    }
}

/// What everybody in a cluster inherits, as the user is told.
fn default_limits(words: &Words) -> String {
    let mut text = " Setting\n  Default Limits:\n".to_string();
    for (key, value) in &words.told {
        let value = if value == "-1" { "NONE" } else { value };
        line(&mut text, format_args!("  {:<13} = {value}", titled(key)));
    }
    text
}

/// The clusters that were named, as they were.
fn named(words: &Words) -> Vec<String> {
    list(&words.filter.clusters)
}

/// The clusters that something is added in, as associations name them.
fn meant(all: &Accounts, cluster: &ClusterFacts, words: &Words) -> Result<Vec<String>, (String, i32)> {
    let unknown = |name: String| {
        (format!(" This cluster '{name}' doesn't exist.\n        Contact your admin to add it to accounting.\n"), 1)
    };
    all.clusters_meant(&cluster.name, &words.filter.clusters).map_err(unknown)
}

pub fn delete(all: &Accounts, cluster: &ClusterFacts, entity: Entity, words: &Words) -> Told {
    let filter = words.filter.clone().seen_from(&cluster.name);
    let nothing = || Err((" Nothing deleted\n".to_string(), 1));
    if filter.is_empty() {
        return refused(" No conditions given to remove, not executing.");
    }
    let mut text = String::new();
    match entity {
        Entity::Account => {
            let chosen = all.chosen_accounts(&filter);
            if chosen.is_empty() {
                return nothing();
            }
            if filter.clusters.is_empty() {
                let mut names: Vec<&str> = chosen.iter().map(|id| all.associations[id].account.as_str()).collect();
                names.sort();
                names.dedup();
                line(&mut text, format_args!(" Deleting accounts..."));
                names.iter().for_each(|name| line(&mut text, format_args!("  {name}")));
            } else {
                line(&mut text, format_args!(" Deleting account associations..."));
                places(all, cluster, &chosen, &mut text);
            }
            Ok((Change::DeleteAccounts { filter }, text))
        }
        Entity::User if !words.wckeys.is_empty() => {
            let is_meant = |key: &&Wckey| words.wckeys.contains(&key.name) && filter.names.contains(&key.user);
            let keys: Vec<&Wckey> = all.wckeys.iter().filter(is_meant).collect();
            if keys.is_empty() {
                return nothing();
            }
            line(&mut text, format_args!(" Deleting user wckeys..."));
            for key in keys {
                let shown = cluster.shown(&key.cluster);
                line(&mut text, format_args!("  U = {:<9.9} W = {:<10.10} C = {shown:<10.10}", key.user, key.name));
            }
            let (names, users) = (words.wckeys.clone(), list(&filter.names));
            Ok((Change::DeleteWckeys { names, users, clusters: named(words) }, text))
        }
        Entity::User => {
            let chosen = all.chosen_users(&filter);
            if chosen.is_empty() {
                return nothing();
            }
            if !filter.asks_for_places() {
                let mut users: Vec<&str> = chosen.iter().map(|id| all.associations[id].user.as_str()).collect();
                users.sort();
                users.dedup();
                line(&mut text, format_args!(" Deleting users..."));
                users.iter().for_each(|name| line(&mut text, format_args!("  {name}")));
            } else {
                line(&mut text, format_args!(" Deleting user associations..."));
                for id in &chosen {
                    let one = &all.associations[id];
                    line(
                        &mut text,
                        format_args!(
                            "  C = {:<10} A = {:<10} U = {:<9}",
                            cluster.shown(&one.cluster),
                            one.account,
                            one.user
                        ),
                    );
                }
                let stays =
                    |user: &str| all.associations.values().any(|one| one.user == user && !chosen.contains(&one.id));
                let mut gone: Vec<&str> = chosen.iter().map(|id| all.associations[id].user.as_str()).collect();
                gone.dedup();
                gone.retain(|user| !stays(user));
                if !gone.is_empty() {
                    line(&mut text, format_args!(" Deleting users (No Associations)..."));
                    gone.iter().for_each(|user| line(&mut text, format_args!("  {user}")));
                }
            }
            Ok((Change::DeleteUsers { filter }, text))
        }
        Entity::Qos => {
            let names = all.chosen_qos(&filter);
            if names.is_empty() {
                return nothing();
            }
            line(&mut text, format_args!(" Deleting QOS(s)..."));
            names.iter().for_each(|name| line(&mut text, format_args!("  {name}")));
            Ok((Change::DeleteQos { names }, text))
        }
        Entity::Coordinator => {
            let (accounts, users) = (list(&filter.accounts), list(&filter.names));
            if accounts.is_empty() || users.is_empty() {
                return refused(" You need to specify a user list and an account list here.");
            }
            line(&mut text, format_args!(" Removing Coordinators with user name"));
            users.iter().for_each(|name| line(&mut text, format_args!("  {name}")));
            line(&mut text, format_args!(" From Account(s)"));
            accounts.iter().for_each(|name| line(&mut text, format_args!("  {name}")));
            let looks_after = |account: &String, user: &String| {
                all.accounts.get(account).is_some_and(|one| one.coordinators.contains(user))
            };
            let mut removed = String::new();
            for user in &users {
                for account in accounts.iter().filter(|account| looks_after(account, user)) {
                    line(&mut removed, format_args!("  U = {user:<9} A = {account:<10}"));
                }
            }
            if removed.is_empty() {
                line(&mut text, format_args!(" Nothing removed"));
                return Err((text, 1));
            }
            line(&mut text, format_args!(" Removed Coordinators (sub accounts not listed)..."));
            text.push_str(&removed);
            Ok((Change::DeleteCoordinators { accounts, users }, text))
        }
        Entity::Wckey => {
            let clusters = list(&words.filter.clusters);
            let is_meant = |key: &&Wckey| {
                let is_one = |wanted: &BTreeSet<String>, name: &str| wanted.is_empty() || wanted.contains(name);
                is_one(&filter.names, &key.name) && is_one(&filter.users, &key.user)
            };
            let gone: Vec<&Wckey> = all.wckeys.iter().filter(is_meant).collect();
            if gone.is_empty() {
                return nothing();
            }
            line(&mut text, format_args!(" Deleting WCKey(s)..."));
            for key in gone {
                line(&mut text, format_args!("  U = {:<9.9} W = {:<10.10}", key.user, key.name));
            }
            Ok((Change::DeleteWckeys { names: list(&filter.names), users: list(&filter.users), clusters }, text))
        }
        Entity::Cluster => {
            let chosen = cluster.chosen(all, words);
            let names: Vec<String> = chosen.into_iter().map(|name| cluster.shown(name).to_string()).collect();
            if names.is_empty() {
                return nothing();
            }
            line(&mut text, format_args!(" Deleting clusters..."));
            names.iter().for_each(|name| line(&mut text, format_args!("  {name}")));
            Ok((Change::DeleteClusters { names }, text))
        }
        Entity::Association | Entity::Tres => refused(" Delete the account or the user instead."),
    }
}

/// The users below who take over what is changed: they have none of their own, nor has an account in between.
fn heirs(all: &Accounts, chosen: &[AssociationId], edits: &[Edit]) -> Vec<AssociationId> {
    let is_left_open = |one: &Association, field: Field| match field {
        Field::MaxJobs => one.limits.max_jobs.is_none(),
        Field::MaxJobsAccrue => one.limits.max_jobs_accrue.is_none(),
        Field::MaxSubmit => one.limits.max_submit.is_none(),
        Field::MaxWall => one.limits.max_wall.is_none(),
        Field::MinPriority => one.limits.min_priority.is_none(),
        Field::MaxTres => one.limits.max_tres.is_empty(),
        Field::MaxTresPerNode => one.limits.max_tres_per_node.is_empty(),
        Field::MaxTresMins => one.limits.max_tres_mins.is_empty(),
        Field::MaxTresRunMins => one.limits.max_tres_run_mins.is_empty(),
        Field::Priority => one.limits.priority.is_none(),
        Field::DefaultQos => one.default_qos.is_empty(),
        Field::Qos => one.qos.is_none(),
        _ => false,
    };
    let takes_over = |id: AssociationId, field: Field| {
        let below = all.lineage(id).take_while(|one| !chosen.contains(&one.id));
        let mut below = below.peekable();
        below.peek().is_some() && below.all(|one| is_left_open(one, field))
    };
    let is_below = |id: AssociationId| all.lineage(id).any(|one| chosen.contains(&one.id));
    let order = super::show::tree(all).into_iter().map(|(id, _)| id);
    let users = order.filter(|id| !all.associations[id].is_account() && is_below(*id));
    users.filter(|id| edits.iter().any(|edit| takes_over(*id, edit.field))).collect()
}

/// By account, as Slurm tells them.
fn places(all: &Accounts, cluster: &ClusterFacts, chosen: &[AssociationId], text: &mut String) {
    let mut chosen: Vec<&Association> = chosen.iter().map(|id| &all.associations[id]).collect();
    if chosen.iter().all(|one| !one.is_account()) {
        chosen.sort_by_key(|one| (&one.account, &one.user, &one.partition));
    }
    for one in chosen {
        let parent = all.associations.get(&one.parent).map(|parent| format!(" of {}", parent.account));
        match one.is_account() {
            true => {
                let parent = parent.unwrap_or_default();
                line(text, format_args!("  C = {:<10} A = {}{parent}", cluster.shown(&one.cluster), one.account));
            }
            false => {
                let partition =
                    if one.partition.is_empty() { String::new() } else { format!(" P = {}", one.partition) };
                line(
                    text,
                    format_args!(
                        "  C = {:<10} A = {:<20} U = {:<9}{partition}",
                        cluster.shown(&one.cluster),
                        one.account,
                        one.user
                    ),
                );
            }
        }
    }
}
