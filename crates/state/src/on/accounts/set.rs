//! Values of what is there already.
use std::collections::BTreeSet;

use model::Reject;
use model::accounts::{
    Account, Accounts, AdminLevel, AssociationId, Edit, EntityFilter, Field, Qos, ROOT, User, Value,
};

use super::{add, known_qos, known_user, no_account, no_cluster, pairs, refused};

pub(super) fn accounts(accounts: &mut Accounts, filter: &EntityFilter, edits: &[Edit]) -> Result<(), Reject> {
    for id in accounts.chosen_accounts(filter) {
        let name = accounts.associations[&id].account.clone();
        for edit in edits {
            if is_of_account(edit.field) {
                account(accounts.accounts.get_mut(&name).expect("every account has a record"), edit);
            } else {
                association(accounts, id, edit)?;
            }
        }
        default_is_allowed(accounts, id, edits)?;
    }
    Ok(())
}

/// Whoever changes the default QOS of an association must have it allowed; new ones may have it allowed later.
fn default_is_allowed(accounts: &Accounts, id: AssociationId, edits: &[Edit]) -> Result<(), Reject> {
    let name = &accounts.associations[&id].default_qos;
    let is_set = edits.iter().any(|edit| edit.field == Field::DefaultQos) && !name.is_empty();
    match is_set && !accounts.allowed_qos(id).contains(name) {
        true => Err(refused(&format!("QOS {name} is not among those allowed here"))),
        false => Ok(()),
    }
}

pub(super) fn users(accounts: &mut Accounts, filter: &EntityFilter, edits: &[Edit]) -> Result<(), Reject> {
    let chosen = accounts.chosen_users(filter);
    let (of_user, of_place): (Vec<&Edit>, Vec<&Edit>) = edits.iter().partition(|edit| is_of_user(edit.field));
    // A user without a place may still be made mighty.
    let is_asked = |user: &&User| filter.passes_user(user) && !filter.asks_for_places();
    let placeless = accounts.users.values().filter(is_asked);
    let of_chosen = chosen.iter().map(|id| accounts.associations[id].user.clone());
    let users: BTreeSet<String> = of_chosen.chain(placeless.map(|user| user.name.clone())).collect();
    for name in &users {
        let places = accounts.associations.values().filter(|one| one.user == *name);
        let places = places.filter(|one| filter.clusters.is_empty() || filter.clusters.contains(&one.cluster));
        let clusters: Vec<String> =
            places.map(|one| one.cluster.clone()).collect::<BTreeSet<_>>().into_iter().collect();
        of_user.iter().try_for_each(|edit| user(accounts, name, &clusters, edit))?;
    }
    let of_place: Vec<Edit> = of_place.into_iter().cloned().collect();
    for id in chosen {
        all(accounts, id, of_place.iter())?;
        default_is_allowed(accounts, id, edits)?;
    }
    rename(accounts, &users, edits)
}

/// `newname=` of one user: everything of the user's goes along.
fn rename(accounts: &mut Accounts, users: &BTreeSet<String>, edits: &[Edit]) -> Result<(), Reject> {
    let Some(edit) = edits.iter().find(|edit| edit.field == Field::NewName) else { return Ok(()) };
    let (Value::Text(new), 1) = (&edit.value, users.len()) else {
        return Err(refused("You can only modify one user name at a time"));
    };
    super::good_name(new)?;
    let old = users.first().expect("one is there").clone();
    if old == ROOT {
        return Err(refused("The root user keeps its name"));
    }
    if accounts.users.contains_key(new) {
        return Err(refused(&format!("User {new} already exists")));
    }
    let user = accounts.users.remove(&old).expect("it was chosen");
    accounts.users.insert(new.clone(), User { name: new.clone(), ..user });
    accounts.associations.values_mut().filter(|one| one.user == old).for_each(|one| one.user.clone_from(new));
    let keys = std::mem::take(&mut accounts.wckeys);
    accounts.wckeys = keys
        .into_iter()
        .map(|mut key| {
            if key.user == old {
                key.user.clone_from(new);
            }
            key
        })
        .collect();
    for account in accounts.accounts.values_mut() {
        if account.coordinators.remove(&old) {
            account.coordinators.insert(new.clone());
        }
    }
    Ok(())
}

pub(super) fn qualities(accounts: &mut Accounts, filter: &EntityFilter, edits: &[Edit]) -> Result<(), Reject> {
    for name in accounts.chosen_qos(filter) {
        let mut changed = accounts.qos[&name].clone();
        qos(accounts, &mut changed, edits)?;
        accounts.qos.insert(name, changed);
    }
    Ok(())
}

pub(super) fn qos(accounts: &Accounts, qos: &mut Qos, edits: &[Edit]) -> Result<(), Reject> {
    for edit in edits.iter().filter(|edit| edit.field != Field::RawUsage) {
        if let (Field::Preempt, Value::Names(names)) = (edit.field, &edit.value) {
            names.names().try_for_each(|name| known_qos(accounts, name))?;
        }
        if !qos.set(edit) {
            return Err(refused("A QOS has no such field"));
        }
    }
    Ok(())
}

/// The top of a cluster's tree: what everybody there inherits.
pub(super) fn cluster(accounts: &mut Accounts, name: &str, edits: &[Edit]) -> Result<(), Reject> {
    let root = accounts.account_association_in(name, ROOT).ok_or_else(|| no_cluster(name))?.id;
    for edit in edits {
        match (edit.field, &edit.value, accounts.clusters.get_mut(name)) {
            (Field::Classification, Value::Text(text), Some(other)) => other.classification.clone_from(text),
            (Field::Classification, ..) => {
                return Err(refused("The classification of a cluster is kept where its accounts are kept for it"));
            }
            _ => association(accounts, root, edit)?,
        }
    }
    Ok(())
}

pub(super) fn coordinators(accounts: &mut Accounts, of: &[String], users: &[String], add: bool) -> Result<(), Reject> {
    for (account, user) in pairs(of, users) {
        known_user(accounts, user)?;
        let account = accounts.accounts.get_mut(account).ok_or_else(|| no_account(account))?;
        match add {
            true => drop(account.coordinators.insert(user.clone())),
            false => drop(account.coordinators.remove(user)),
        }
    }
    Ok(())
}

pub(super) fn is_of_account(field: Field) -> bool {
    matches!(field, Field::Description | Field::Organization)
}

pub(super) fn is_of_user(field: Field) -> bool {
    matches!(field, Field::DefaultAccount | Field::DefaultWckey | Field::AdminLevel | Field::NewName)
}

pub(super) fn account(account: &mut Account, edit: &Edit) {
    match (edit.field, &edit.value) {
        (Field::Description, Value::Text(text)) => account.description.clone_from(text),
        (Field::Organization, Value::Text(text)) => account.organization.clone_from(text),
        _ => (),
    }
}

pub(super) fn user(accounts: &mut Accounts, name: &str, clusters: &[String], edit: &Edit) -> Result<(), Reject> {
    let Value::Text(text) = &edit.value else { return Err(refused("A name is expected")) };
    match edit.field {
        Field::DefaultAccount => {
            let has_place = |cluster: &&String| {
                accounts
                    .associations
                    .values()
                    .any(|one| one.user == name && one.account == *text && one.cluster == **cluster)
            };
            let places: Vec<String> = clusters.iter().filter(has_place).cloned().collect();
            if places.is_empty() {
                return Err(refused(&format!("{name} has no association in account {text}")));
            }
            let user = accounts.users.get_mut(name).expect("callers look the user up first");
            places.iter().for_each(|cluster| user.set_default_account_in(cluster, text));
        }
        Field::DefaultWckey => {
            let user = accounts.users.get_mut(name).expect("callers look the user up first");
            user.default_wckey.clone_from(text);
            if !text.is_empty() {
                add::wckey(accounts, text, name, clusters);
            }
        }
        Field::AdminLevel => {
            let user = accounts.users.get_mut(name).expect("callers look the user up first");
            user.admin_level = AdminLevel::parse(text).ok_or_else(|| refused(&format!("Bad admin level {text}")))?;
        }
        // Everything else is set under the old name first.
        Field::NewName => (),
        _ => return Err(refused("A user has no such field")),
    }
    Ok(())
}

pub(super) fn all<'a>(
    accounts: &mut Accounts,
    id: AssociationId,
    mut edits: impl Iterator<Item = &'a Edit>,
) -> Result<(), Reject> {
    edits.try_for_each(|edit| association(accounts, id, edit))
}

fn association(accounts: &mut Accounts, id: AssociationId, edit: &Edit) -> Result<(), Reject> {
    match (edit.field, &edit.value) {
        // What was used is not kept here.
        (Field::RawUsage, _) => (),
        (Field::Parent, Value::Text(parent)) => return move_account(accounts, id, parent),
        (Field::Qos, Value::Names(names)) => {
            names.names().try_for_each(|name| known_qos(accounts, name))?;
            let mut allowed = accounts.allowed_qos(id);
            names.apply(&mut allowed);
            accounts.associations.get_mut(&id).expect("callers look it up").qos = Some(allowed);
        }
        (Field::DefaultQos, Value::Text(name)) => {
            if !name.is_empty() {
                known_qos(accounts, name)?;
            }
            accounts.associations.get_mut(&id).expect("callers look it up").default_qos.clone_from(name);
        }
        (field, value) => {
            let association = accounts.associations.get_mut(&id).expect("callers look it up");
            match (field, value) {
                (Field::Shares, Value::Shares(shares)) => association.shares = *shares,
                (Field::Comment, Value::Text(text)) => association.comment.clone_from(text),
                _ if association.limits.set(field, value) => (),
                _ => return Err(refused("An association has no such field")),
            }
        }
    }
    Ok(())
}

/// Nothing becomes its own ancestor: an account that goes below one of its own leaves its place to that one.
fn move_account(accounts: &mut Accounts, id: AssociationId, parent: &str) -> Result<(), Reject> {
    let association = &accounts.associations[&id];
    let above = accounts.account_association_in(&association.cluster, parent).ok_or_else(|| no_account(parent))?.id;
    if !association.is_account() || association.account == ROOT {
        return Err(refused("Only accounts below the root have a parent to change"));
    }
    if above == id {
        return Err(refused(&format!("{parent} can not be its own parent")));
    }
    let old_parent = association.parent;
    if accounts.lineage(above).any(|one| one.id == id) {
        accounts.associations.get_mut(&above).expect("just looked up").parent = old_parent;
    }
    accounts.associations.get_mut(&id).expect("just seen").parent = above;
    Ok(())
}
