//! New accounts, users, clusters and qualities of service.
use std::collections::BTreeSet;

use model::Reject;
use model::accounts::{
    Account, Accounts, AdminLevel, Association, AssociationId, Edit, Field, OtherCluster, Qos, ROOT, User, Value, Wckey,
};

use super::{good_name, no_account, pairs, refused, set};

/// The root account, its user, and the QOS that everybody has.
pub(super) fn roots(accounts: &mut Accounts) {
    if !accounts.accounts.is_empty() {
        return;
    }
    *accounts = std::mem::take(accounts).with_normal_qos();
    let root = Account {
        name: ROOT.into(),
        description: "default root account".into(),
        organization: ROOT.into(),
        coordinators: BTreeSet::new(),
    };
    accounts.accounts.insert(ROOT.into(), root);
    let user = User { name: ROOT.into(), admin_level: AdminLevel::Administrator, ..User::default() };
    accounts.users.insert(ROOT.into(), user);
    root_of(accounts, "");
}

/// The top of a cluster's tree, with its user.
fn root_of(accounts: &mut Accounts, cluster: &str) -> AssociationId {
    let own = Association { account: ROOT.into(), cluster: cluster.into(), ..Association::default() };
    let top = insert(accounts, own.clone());
    insert(accounts, Association { parent: top, user: ROOT.into(), ..own });
    if let Some(root) = accounts.users.get_mut(ROOT) {
        root.set_default_account_in(cluster, ROOT);
    }
    top
}

fn insert(accounts: &mut Accounts, association: Association) -> AssociationId {
    accounts.last_association += 1;
    let id = accounts.last_association;
    accounts.associations.insert(id, Association { id, ..association });
    id
}

pub(super) fn clusters(
    accounts: &mut Accounts,
    own_name: &str,
    names: &[String],
    edits: &[Edit],
) -> Result<(), Reject> {
    for name in names {
        good_name(name)?;
        if accounts.cluster_known_as(own_name, name).is_some() {
            continue;
        }
        accounts.clusters.insert(name.clone(), OtherCluster { name: name.clone(), ..OtherCluster::default() });
        root_of(accounts, name);
        set::cluster(accounts, name, edits)?;
    }
    Ok(())
}

pub(super) fn accounts(
    accounts: &mut Accounts,
    names: &[String],
    parent: &str,
    edits: &[Edit],
    clusters: &[String],
) -> Result<(), Reject> {
    let parent = if parent.is_empty() { ROOT } else { parent };
    for name in names {
        good_name(name)?;
        if !accounts.accounts.contains_key(name) {
            let mut account = Account {
                name: name.clone(),
                description: name.clone(),
                organization: parent_organization(accounts, parent, name),
                ..Account::default()
            };
            edits.iter().for_each(|edit| set::account(&mut account, edit));
            accounts.accounts.insert(name.clone(), account);
        }
        for cluster in clusters {
            if accounts.account_association_in(cluster, name).is_some() {
                continue;
            }
            let above = accounts.account_association_in(cluster, parent).ok_or_else(|| no_account(parent))?.id;
            let own = Association {
                parent: above,
                account: name.clone(),
                cluster: cluster.clone(),
                ..Association::default()
            };
            let id = insert(accounts, own);
            set::all(accounts, id, edits.iter().filter(|edit| !set::is_of_account(edit.field)))?;
        }
    }
    Ok(())
}

/// As Slurm: an account's organization is its parent's, or its own name directly under the root.
fn parent_organization(accounts: &Accounts, parent: &str, name: &str) -> String {
    if parent == ROOT {
        return name.into();
    }
    accounts.accounts.get(parent).map(|account| account.organization.clone()).unwrap_or_default()
}

/// Where users go.
pub(super) struct Places<'a> {
    pub accounts: &'a [String],
    pub partitions: &'a [String],
    pub clusters: &'a [String],
}

pub(super) fn users(accounts: &mut Accounts, names: &[String], places: Places, edits: &[Edit]) -> Result<(), Reject> {
    let everywhere = [String::new()];
    let partitions = if places.partitions.is_empty() { &everywhere } else { places.partitions };
    let named_default = text_of(edits, Field::DefaultAccount).map(str::to_string);
    if places.accounts.is_empty() {
        return Err(refused("You need a default account for these users to move forward"));
    }
    for name in names {
        good_name(name)?;
        let fresh = User { name: name.clone(), ..User::default() };
        accounts.users.entry(name.clone()).or_insert(fresh);
        let mut has_place = false;
        for cluster in places.clusters {
            // Users go where the account is.
            let known = |account: &&String| accounts.account_association_in(cluster, account).is_some();
            let into: Vec<String> = places.accounts.iter().filter(known).cloned().collect();
            has_place |= !into.is_empty();
            for (account, partition) in pairs(&into, partitions) {
                add_place(accounts, cluster, account, name, partition, edits)?;
            }
            let Some(first) = into.first() else { continue };
            let default = named_default.as_ref().filter(|account| into.contains(account)).unwrap_or(first);
            let user = accounts.users.get_mut(name).expect("just put there");
            if user.default_account_in(cluster).is_empty() {
                user.set_default_account_in(cluster, default);
            }
        }
        if !has_place {
            return Err(no_account(&places.accounts[0]));
        }
        for edit in edits.iter().filter(|edit| set::is_of_user(edit.field)) {
            set::user(accounts, name, places.clusters, edit)?;
        }
    }
    Ok(())
}

fn add_place(
    accounts: &mut Accounts,
    cluster: &str,
    account: &str,
    user: &str,
    partition: &str,
    edits: &[Edit],
) -> Result<(), Reject> {
    let is_there = |one: &Association| {
        one.account == account && one.user == user && one.partition == partition && one.cluster == cluster
    };
    if accounts.associations.values().any(is_there) {
        return Ok(());
    }
    let parent = accounts.account_association_in(cluster, account).ok_or_else(|| no_account(account))?.id;
    let place = Association {
        parent,
        cluster: cluster.into(),
        account: account.into(),
        user: user.into(),
        partition: partition.into(),
        ..Association::default()
    };
    let id = insert(accounts, place);
    set::all(accounts, id, edits.iter().filter(|edit| !set::is_of_user(edit.field)))
}

pub(super) fn qos(accounts: &mut Accounts, names: &[String], edits: &[Edit]) -> Result<(), Reject> {
    for name in names {
        good_name(name)?;
        if accounts.qos.contains_key(name) {
            continue;
        }
        accounts.last_qos += 1;
        let mut qos = Qos { id: accounts.last_qos, name: name.clone(), description: name.clone(), ..Qos::default() };
        set::qos(accounts, &mut qos, edits)?;
        accounts.qos.insert(name.clone(), qos);
    }
    Ok(())
}

/// The key that a user's jobs have when they name none is one of the user's own.
pub(super) fn wckey(accounts: &mut Accounts, name: &str, user: &str, clusters: &[String]) {
    let key = |cluster: &String| Wckey { name: name.into(), user: user.into(), cluster: cluster.clone() };
    accounts.wckeys.extend(clusters.iter().map(key));
}

fn text_of(edits: &[Edit], field: Field) -> Option<&str> {
    edits.iter().find_map(|edit| match &edit.value {
        Value::Text(text) if edit.field == field => Some(text.as_str()),
        _ => None,
    })
}
