//! What is going to be changed, and the words in which the user is told before it is.
use std::fmt::Write;

use model::accounts::{Accounts, AdminLevel, AssociationId, Change, Field, Value};

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
            if !words.parent.is_empty()
                && all.account_association(&words.parent).is_none()
                && !(all.are_unused() && words.parent == "root")
            {
                return refused(&format!(
                    " Parent account '{}' doesn't exist on cluster {}\n        Contact your admin to add this account.\n No associations created.",
                    words.parent, cluster.name
                ));
            }
            let new: Vec<String> = names.into_iter().filter(|name| !all.accounts.contains_key(name)).collect();
            if new.is_empty() {
                return Err((" Nothing new added.\n".into(), 1));
            }
            line(&mut text, format_args!(" Adding Account(s)"));
            new.iter().for_each(|name| line(&mut text, format_args!("  {name}")));
            line(&mut text, format_args!(" Settings"));
            let said = |field: Field| words.edits.iter().find(|edit| edit.field == field).map(|edit| &edit.value);
            match said(Field::Description) {
                Some(Value::Text(said)) => line(&mut text, format_args!("  Description     = {said}")),
                _ => line(&mut text, format_args!("  Description     = Account Name")),
            }
            match said(Field::Organization) {
                Some(Value::Text(said)) => line(&mut text, format_args!("  Organization    = {said}")),
                _ => line(&mut text, format_args!("  Organization    = Parent/Account Name")),
            }
            line(&mut text, format_args!(" Associations"));
            new.iter()
                .for_each(|name| line(&mut text, format_args!("  A = {name:<10.10} C = {:<10.10}", cluster.name)));
            let is_said = |(key, _): &&(String, String)| {
                let key = key.to_lowercase();
                !"description".starts_with(&key) && !"organization".starts_with(&key)
            };
            let said: Vec<&(String, String)> = words.told.iter().filter(is_said).collect();
            if !said.is_empty() {
                line(&mut text, format_args!(" Settings"));
                said.iter().for_each(|(key, value)| line(&mut text, format_args!("  {:<13} = {value}", titled(key))));
            }
            Ok((Change::AddAccounts { names: new, parent: words.parent.clone(), edits }, text))
        }
        Entity::User => {
            if names.is_empty() {
                return refused(" Need name of user to add.");
            }
            let mut accounts = words.accounts.clone();
            let default = words.edits.iter().find(|edit| edit.field == Field::DefaultAccount);
            if let (Some(Value::Text(account)), true) = (default.map(|edit| &edit.value), accounts.is_empty()) {
                accounts.push(account.clone());
            }
            let is_known = |name: &String| all.users.contains_key(name);
            if accounts.is_empty() {
                return refused(" Need name of account to add user to.");
            }
            if let Some(unknown) = accounts.iter().find(|account| all.account_association(account).is_none()) {
                return refused(&format!(
                    " This account '{unknown}' doesn't exist.\n        Contact your admin to add this account."
                ));
            }
            let partitions = list(&words.filter.partitions);
            let everywhere = [String::new()];
            let places = if partitions.is_empty() { &everywhere[..] } else { &partitions[..] };
            let mut associations = String::new();
            for name in &names {
                for account in &accounts {
                    for partition in places {
                        let is_there = all
                            .associations
                            .values()
                            .any(|one| one.user == *name && one.account == *account && one.partition == *partition);
                        if is_there {
                            continue;
                        }
                        let partition = match partition.as_str() {
                            "" => String::new(),
                            partition => format!(" P = {partition:<10.10}"),
                        };
                        line(
                            &mut associations,
                            format_args!(
                                "  U = {name:<9.9} A = {account:<10.10} C = {:<10.10}{partition}",
                                cluster.name
                            ),
                        );
                    }
                }
            }
            if associations.is_empty() {
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
            line(&mut text, format_args!(" Associations ="));
            text.push_str(&associations);
            line(&mut text, format_args!(" Non Default Settings"));
            let of_user = |key: &str| {
                ["defaultaccount", "defaultwckey", "adminlevel"]
                    .iter()
                    .any(|name| name.starts_with(&key.to_lowercase()))
            };
            for (key, value) in words.told.iter().filter(|(key, _)| !of_user(key)) {
                line(&mut text, format_args!("  {:<13} = {value}", titled(key)));
            }
            Ok((Change::AddUsers { names, accounts, partitions, edits }, text))
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
                _ => new.join(","),
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
        Entity::Wckey => Ok((Change::AddWckeys { names, users: list(&words.filter.users) }, text)),
        Entity::Cluster => refused(" This cluster is known already, and there is only one."),
        Entity::Association | Entity::Tres => refused(" Add users to accounts instead."),
    }
}

pub fn modify(all: &Accounts, cluster: &ClusterFacts, entity: Entity, words: &Words) -> Told {
    if words.edits.is_empty() {
        return refused(" You didn't give me anything to set");
    }
    let (filter, edits) = (words.filter.clone(), words.edits.clone());
    let nothing = || Err((" Nothing modified\n".to_string(), 1));
    let mut text = String::new();
    match entity {
        Entity::Account => {
            let chosen = all.chosen_accounts(&filter);
            if chosen.is_empty() {
                return nothing();
            }
            let of_account = |field: Field| matches!(field, Field::Description | Field::Organization);
            if edits.iter().any(|edit| of_account(edit.field)) {
                line(&mut text, format_args!(" Modified accounts..."));
                chosen.iter().for_each(|id| line(&mut text, format_args!("  {}", all.associations[id].account)));
            }
            if edits.iter().any(|edit| !of_account(edit.field)) {
                line(&mut text, format_args!(" Modified account associations..."));
                places(all, cluster, &chosen, &mut text);
            }
            Ok((Change::ModifyAccounts { filter, edits }, text))
        }
        Entity::User => {
            let chosen = all.chosen_users(&filter);
            if chosen.is_empty() {
                return nothing();
            }
            let of_user =
                |field: Field| matches!(field, Field::AdminLevel | Field::DefaultAccount | Field::DefaultWckey);
            if edits.iter().any(|edit| of_user(edit.field)) {
                let mut users: Vec<&str> = chosen.iter().map(|id| all.associations[id].user.as_str()).collect();
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
            let chosen: Vec<&String> =
                all.qos.keys().filter(|name| filter.names.is_empty() || filter.names.contains(*name)).collect();
            if chosen.is_empty() {
                return nothing();
            }
            line(&mut text, format_args!(" Modified qos..."));
            chosen.iter().for_each(|name| line(&mut text, format_args!("  {name}")));
            Ok((Change::ModifyQos { filter, edits }, text))
        }
        Entity::Cluster => {
            if !filter.names.is_empty() && !filter.names.contains(&cluster.name.to_lowercase()) {
                return nothing();
            }
            line(&mut text, format_args!(" Setting\n  Default Limits:"));
            for (key, value) in &words.told {
                let value = if value == "-1" { "NONE" } else { value };
                line(&mut text, format_args!("  {:<13} = {value}", titled(key)));
            }
            line(&mut text, format_args!(" Modified cluster defaults for associations..."));
            line(&mut text, format_args!("  C = {:<10} A = root", cluster.name));
            Ok((Change::ModifyCluster { edits }, text))
        }
        Entity::Association | Entity::Coordinator | Entity::Tres | Entity::Wckey => {
            refused(" Modify the account or the user instead.")
        }
    }
}

pub fn delete(all: &Accounts, cluster: &ClusterFacts, entity: Entity, words: &Words) -> Told {
    let filter = words.filter.clone();
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
            line(&mut text, format_args!(" Deleting accounts..."));
            chosen.iter().for_each(|id| line(&mut text, format_args!("  {}", all.associations[id].account)));
            Ok((Change::DeleteAccounts { filter }, text))
        }
        Entity::User => {
            let chosen = all.chosen_users(&filter);
            if chosen.is_empty() {
                return nothing();
            }
            if filter.accounts.is_empty() {
                let mut users: Vec<&str> = chosen.iter().map(|id| all.associations[id].user.as_str()).collect();
                users.dedup();
                line(&mut text, format_args!(" Deleting users..."));
                users.iter().for_each(|name| line(&mut text, format_args!("  {name}")));
            } else {
                line(&mut text, format_args!(" Deleting user associations..."));
                for id in &chosen {
                    let one = &all.associations[id];
                    line(
                        &mut text,
                        format_args!("  C = {:<10} A = {:<10} U = {:<9}", cluster.name, one.account, one.user),
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
            let names: Vec<String> = filter.names.iter().filter(|name| all.qos.contains_key(*name)).cloned().collect();
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
            line(&mut text, format_args!(" Removed Coordinators (sub accounts not listed)..."));
            for user in &users {
                accounts.iter().for_each(|name| line(&mut text, format_args!("  U = {user:<9} A = {name:<10}")));
            }
            Ok((Change::DeleteCoordinators { accounts, users }, text))
        }
        Entity::Wckey => Ok((Change::DeleteWckeys { names: list(&filter.names), users: list(&filter.users) }, text)),
        Entity::Association | Entity::Cluster | Entity::Tres => refused(" Delete the account or the user instead."),
    }
}

fn places(all: &Accounts, cluster: &ClusterFacts, chosen: &[AssociationId], text: &mut String) {
    for id in chosen {
        let one = &all.associations[id];
        let parent = all.associations.get(&one.parent).map(|parent| format!(" of {}", parent.account));
        match one.is_account() {
            true => {
                line(text, format_args!("  C = {:<10} A = {}{}", cluster.name, one.account, parent.unwrap_or_default()))
            }
            false => {
                let partition =
                    if one.partition.is_empty() { String::new() } else { format!(" P = {}", one.partition) };
                line(
                    text,
                    format_args!("  C = {:<10} A = {:<20} U = {:<9}{partition}", cluster.name, one.account, one.user),
                );
            }
        }
    }
}
