//! What goes: accounts with everything below them, users, qualities of service, other clusters.
use std::collections::BTreeSet;

use model::accounts::{Accounts, Association, AssociationId, EntityFilter, ROOT};
use model::{Job, Reject};

use super::{known_qos, no_cluster, refused};
use crate::Cluster;

pub(super) fn accounts(cluster: &Cluster, accounts: &mut Accounts, filter: &EntityFilter) -> Result<(), Reject> {
    let chosen = accounts.chosen_accounts(filter);
    if chosen.iter().any(|id| accounts.associations[id].account == ROOT) {
        return Err(refused("The root account can not be deleted"));
    }
    let gone: BTreeSet<AssociationId> = chosen.iter().flat_map(|id| accounts.with_all_below(*id)).collect();
    places(cluster, accounts, &gone)?;
    // An account without a place anywhere is none.
    let placed: BTreeSet<String> = accounts.associations.values().map(|one| one.account.clone()).collect();
    accounts.accounts.retain(|name, _| placed.contains(name));
    Ok(())
}

pub(super) fn users(cluster: &Cluster, accounts: &mut Accounts, filter: &EntityFilter) -> Result<(), Reject> {
    let chosen: BTreeSet<AssociationId> = accounts.chosen_users(filter).into_iter().collect();
    if chosen.iter().any(|id| accounts.associations[id].user == ROOT && accounts.associations[id].account == ROOT) {
        return Err(refused("The root user can not be deleted"));
    }
    places(cluster, accounts, &chosen)
}

/// Takes out these associations. Nobody may be left without the account that their jobs go to.
fn places(cluster: &Cluster, accounts: &mut Accounts, gone: &BTreeSet<AssociationId>) -> Result<(), Reject> {
    let is_gone = |one: &Association| gone.contains(&one.id);
    for one in gone.iter().map(|id| &accounts.associations[id]).filter(|one| !one.is_account()) {
        let is_default = accounts.users.get(&one.user).map(|user| user.default_account_in(&one.cluster));
        let mut others = accounts
            .associations
            .values()
            .filter(|other| other.user == one.user && other.cluster == one.cluster && !is_gone(other));
        let keeps_account = |other: &Association| other.account == one.account;
        if is_default == Some(one.account.as_str()) && others.clone().any(|other| !keeps_account(other)) {
            if others.any(keeps_account) {
                continue;
            }
            return Err(refused(&format!(
                "You can not remove the default account of a user: {} has {}",
                one.user, one.account
            )));
        }
    }
    no_jobs(cluster, |job| gone.contains(&job.association))?;
    accounts.associations.retain(|id, _| !gone.contains(id));
    forget_users_without_place(accounts);
    Ok(())
}

pub(super) fn qos(cluster: &Cluster, accounts: &mut Accounts, names: &[String]) -> Result<(), Reject> {
    names.iter().try_for_each(|name| known_qos(accounts, name))?;
    no_jobs(cluster, |job| names.contains(&job.spec.qos))?;
    accounts.qos.retain(|name, _| !names.contains(name));
    for association in accounts.associations.values_mut() {
        if let Some(allowed) = &mut association.qos {
            allowed.retain(|name| !names.contains(name));
        }
        if names.contains(&association.default_qos) {
            association.default_qos.clear();
        }
    }
    for qos in accounts.qos.values_mut() {
        qos.preempt.retain(|name| !names.contains(name));
    }
    Ok(())
}

pub(super) fn clusters(accounts: &mut Accounts, own_name: &str, names: &[String]) -> Result<(), Reject> {
    for name in names {
        match accounts.cluster_known_as(own_name, name) {
            None => return Err(no_cluster(name)),
            Some(here) if here.is_empty() => {
                return Err(refused(&format!("{name} is this cluster; it can not be deleted from its own records")));
            }
            Some(other) => {
                accounts.associations.retain(|_, one| one.cluster != other);
                accounts.wckeys.retain(|key| key.cluster != other);
                accounts.users.values_mut().for_each(|user| drop(user.elsewhere.remove(&other)));
                for resource in accounts.resources.values_mut() {
                    resource.shares.remove(&other);
                }
                accounts.clusters.remove(&other);
            }
        }
    }
    // Accounts and users stay, as in Slurm, even those that have no place now.
    Ok(())
}

fn forget_users_without_place(accounts: &mut Accounts) {
    let placed: BTreeSet<String> = accounts.associations.values().map(|one| one.user.clone()).collect();
    let here: BTreeSet<(String, String)> =
        accounts.associations.values().map(|one| (one.user.clone(), one.cluster.clone())).collect();
    accounts.users.retain(|name, _| placed.contains(name));
    for user in accounts.users.values_mut() {
        let is_placed = |cluster: &str| here.contains(&(user.name.clone(), cluster.to_string()));
        if !is_placed("") {
            user.default_account.clear();
        }
        let name = user.name.clone();
        user.elsewhere.retain(|cluster, _| here.contains(&(name.clone(), cluster.clone())));
    }
    accounts.wckeys.retain(|key| placed.contains(&key.user));
    for account in accounts.accounts.values_mut() {
        account.coordinators.retain(|name| placed.contains(name));
    }
}

fn no_jobs(cluster: &Cluster, concerns: impl Fn(&Job) -> bool) -> Result<(), Reject> {
    match cluster.jobs().any(|job| !job.is_over() && concerns(job)) {
        true => Err(refused("Job(s) active, cancel job(s) before remove")),
        false => Ok(()),
    }
}
