//! Accounts, users, associations, qualities of service: added, changed and deleted as `sacctmgr` asks.
use std::sync::Arc;

use model::accounts::{Accounts, Association, Change, Edit, Field, Qos, Tres};
use model::{Caller, Reject, Reply};

use super::Answer;
use crate::{Cluster, chronicle, fair_share, features, limits, settle};

mod add;
mod delete;
mod may;
mod resources;
mod set;

pub(crate) fn change(cluster: &mut Cluster, by: Caller, by_name: &str, change: &Change) -> Answer {
    let mut accounts = (*cluster.accounts).clone();
    add::roots(&mut accounts);
    let roots_only = accounts.clone();
    let changes: Vec<Change> = change.each().map(|one| seen_from(&cluster.config.cluster_name, one)).collect();
    let mut lines = Vec::new();
    for change in &changes {
        may::check(cluster.rules, &accounts, by, by_name, change)?;
        let before = accounts.clone();
        make(cluster, &mut accounts, change)?;
        lines.extend(chronicle::lines(&before, &accounts, change));
    }
    // A change that touches nothing is anybody's to ask for; it must not make this a cluster with accounts.
    if cluster.rules() >= 3 && cluster.accounts.are_unused() && accounts == roots_only {
        return Ok(Reply::Ok);
    }
    limits::settle_meters(cluster);
    chronicle::note_changes(cluster, by_name, lines);
    limits::move_use(cluster, &accounts);
    let is_another_tree = counts_for_others(&cluster.accounts, &accounts);
    let before = std::mem::replace(&mut cluster.accounts, Arc::new(accounts));
    for id in features::qualities_changed(cluster, &before) {
        settle::forget_wait(cluster, id);
        cluster.unsettled.insert(id);
    }
    changes.iter().for_each(|change| forget_use(cluster, change));
    match is_another_tree {
        true => limits::keep_all(cluster),
        false => limits::number_anew(cluster),
    }
    limits::minutes::watch(cluster);
    fair_share::refresh(cluster);
    Ok(Reply::Ok)
}

fn make(cluster: &Cluster, accounts: &mut Accounts, change: &Change) -> Result<(), Reject> {
    let own_name = &cluster.config.cluster_name;
    let meant = |accounts: &Accounts, names: &[String]| {
        accounts.clusters_meant(own_name, names).map_err(|name| no_cluster(&name))
    };
    match change {
        Change::AddAccounts { names, parent, edits, clusters } => {
            let clusters = meant(accounts, clusters)?;
            add::accounts(accounts, names, parent, edits, &clusters)
        }
        Change::AddUsers { names, accounts: into, partitions, edits, clusters } => {
            let clusters = meant(accounts, clusters)?;
            add::users(accounts, names, add::Places { accounts: into, partitions, clusters: &clusters }, edits)
        }
        Change::AddQos { names, edits } => add::qos(accounts, names, edits),
        Change::AddWckeys { names, users, clusters } => {
            let clusters = meant(accounts, clusters)?;
            for (name, user) in pairs(names, users) {
                known_user(accounts, user)?;
                add::wckey(accounts, name, user, &clusters);
            }
            Ok(())
        }
        Change::AddClusters { names, edits } => add::clusters(accounts, own_name, names, edits),
        Change::AddCoordinators { accounts: of, users } => set::coordinators(accounts, of, users, true),
        Change::DeleteCoordinators { accounts: of, users } => set::coordinators(accounts, of, users, false),
        Change::ModifyAccounts { filter, edits } => set::accounts(accounts, filter, edits),
        Change::ModifyUsers { filter, edits } => set::users(accounts, filter, edits),
        Change::ModifyQos { filter, edits } => set::qualities(accounts, filter, edits),
        Change::ModifyCluster { edits, clusters } => {
            let clusters = meant(accounts, clusters)?;
            clusters.iter().try_for_each(|name| set::cluster(accounts, name, edits))
        }
        Change::DeleteAccounts { filter } => delete::accounts(cluster, accounts, filter),
        Change::DeleteUsers { filter } => delete::users(cluster, accounts, filter),
        Change::DeleteQos { names } => delete::qos(cluster, accounts, names),
        Change::DeleteClusters { names } => delete::clusters(accounts, own_name, names),
        Change::DeleteWckeys { names, users, clusters } => {
            let clusters = meant(accounts, clusters)?;
            accounts.wckeys.retain(|key| {
                let is_meant = names.contains(&key.name) && (users.is_empty() || users.contains(&key.user));
                !(is_meant && clusters.contains(&key.cluster))
            });
            Ok(())
        }
        Change::AddResources { names, server, edit, clusters } => {
            let clusters = if clusters.is_empty() { Vec::new() } else { meant(accounts, clusters)? };
            resources::add(accounts, names, server, edit, &clusters)
        }
        Change::ModifyResources { filter, edit } => {
            let filter = filter.clone().seen_from(accounts, own_name).map_err(|name| no_cluster(&name))?;
            resources::modify(accounts, &filter, edit)
        }
        Change::DeleteResources { filter } => {
            let filter = filter.clone().seen_from(accounts, own_name).map_err(|name| no_cluster(&name))?;
            resources::delete(accounts, &filter)
        }
        // Taken apart before.
        Change::Several(_) => Ok(()),
    }
}

/// Filters name this cluster as associations do.
fn seen_from(own_name: &str, change: &Change) -> Change {
    let mut change = change.clone();
    match &mut change {
        Change::ModifyAccounts { filter, .. }
        | Change::ModifyUsers { filter, .. }
        | Change::ModifyQos { filter, .. }
        | Change::DeleteAccounts { filter }
        | Change::DeleteUsers { filter } => *filter = std::mem::take(filter).seen_from(own_name),
        Change::AddAccounts { .. }
        | Change::AddUsers { .. }
        | Change::AddQos { .. }
        | Change::AddWckeys { .. }
        | Change::AddClusters { .. }
        | Change::AddCoordinators { .. }
        | Change::ModifyCluster { .. }
        | Change::DeleteQos { .. }
        | Change::DeleteClusters { .. }
        | Change::DeleteWckeys { .. }
        | Change::DeleteCoordinators { .. }
        | Change::AddResources { .. }
        | Change::ModifyResources { .. }
        | Change::DeleteResources { .. }
        | Change::Several(_) => (),
    }
    change
}

fn resets(edits: &[Edit]) -> bool {
    edits.iter().any(|edit| edit.field == Field::RawUsage)
}

fn forget_use(cluster: &mut Cluster, change: &Change) {
    let accounts = Arc::clone(&cluster.accounts);
    match change {
        Change::ModifyAccounts { edits, .. } | Change::ModifyUsers { edits, .. } | Change::ModifyQos { edits, .. }
            if !resets(edits) => {}
        Change::ModifyAccounts { filter, .. } => limits::forget_use_of(cluster, &accounts.chosen_accounts(filter)),
        Change::ModifyUsers { filter, .. } => limits::forget_use_of(cluster, &accounts.chosen_users(filter)),
        Change::ModifyQos { filter, .. } => limits::forget_use_in(cluster, &accounts.chosen_qos(filter)),
        _ => (),
    }
}

/// Whether some job counts for others than before, or differently.
fn counts_for_others(before: &Accounts, after: &Accounts) -> bool {
    let moved = |one: &Association| after.associations.get(&one.id).map(|one| one.parent) != Some(one.parent);
    let factors = |accounts: &Accounts| -> Vec<(u32, Option<u32>)> {
        accounts.qos.values().map(|qos| (qos.id, qos.usage_factor_thousandths)).collect()
    };
    let node_limits = |accounts: &Accounts| -> Vec<(String, [bool; 3])> {
        let are_there = |tres: &Tres| tres.get("node").is_some();
        let of_qos = |qos: &Qos| {
            let limits = &qos.limits;
            let of = [&limits.grp_tres, &limits.max_tres_per_user, &limits.max_tres_per_account];
            (qos.name.clone(), of.map(are_there))
        };
        accounts.qos.values().map(of_qos).collect()
    };
    let has_node_limit = |one: &Association| one.limits.grp_tres.get("node").is_some();
    let counts_nodes = |one: &Association| {
        after.associations.get(&one.id).is_some_and(|other| has_node_limit(other) != has_node_limit(one))
    };
    before.associations.values().any(|one| moved(one) || counts_nodes(one))
        || factors(before) != factors(after)
        || node_limits(before) != node_limits(after)
}

fn pairs<'a>(first: &'a [String], second: &'a [String]) -> impl Iterator<Item = (&'a String, &'a String)> {
    first.iter().flat_map(move |one| second.iter().map(move |other| (one, other)))
}

fn good_name(name: &str) -> Result<(), Reject> {
    // As long as Slurm's database takes them.
    if name.len() > 255 {
        let begin: String = name.chars().take(32).collect();
        return Err(refused(&format!("The name `{begin}…` has more than 255 bytes")));
    }
    let is_good =
        !name.is_empty() && name.chars().all(|c| !c.is_whitespace() && !c.is_control() && !",=|'\"".contains(c));
    if is_good { Ok(()) } else { Err(refused(&format!("Bad name `{name}`"))) }
}

fn known_qos(accounts: &Accounts, name: &str) -> Result<(), Reject> {
    if accounts.qos.contains_key(name) { Ok(()) } else { Err(refused(&format!("You gave a bad qos '{name}'"))) }
}

fn known_user(accounts: &Accounts, name: &str) -> Result<(), Reject> {
    if accounts.users.contains_key(name) { Ok(()) } else { Err(refused(&format!("This user '{name}' doesn't exist"))) }
}

fn no_account(name: &str) -> Reject {
    refused(&format!("This account '{name}' doesn't exist"))
}

fn no_cluster(name: &str) -> Reject {
    refused(&format!("This cluster '{name}' doesn't exist"))
}

fn refused(why: &str) -> Reject {
    Reject::Accounts(why.to_string())
}
