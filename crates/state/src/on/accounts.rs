//! Accounts, users, associations, qualities of service: added, changed and deleted as `sacctmgr` asks.
use std::collections::BTreeSet;
use std::sync::Arc;

use model::accounts::{
    Account, Accounts, AdminLevel, Association, AssociationId, Change, Edit, EntityFilter, Field, NORMAL, Qos, ROOT,
    User, Value, Wckey,
};
use model::{Caller, Job, Reject, Reply};

use super::Answer;
use crate::{Cluster, fair_share, limits};

pub(crate) fn change(cluster: &mut Cluster, by: Caller, by_name: &str, change: &Change) -> Answer {
    may_change(&cluster.accounts, by, by_name, change)?;
    let mut accounts = (*cluster.accounts).clone();
    make_roots(&mut accounts);
    match change {
        Change::AddAccounts { names, parent, edits } => add_accounts(&mut accounts, names, parent, edits)?,
        Change::AddUsers { names, accounts: into, partitions, edits } => {
            add_users(&mut accounts, names, into, partitions, edits)?;
        }
        Change::AddQos { names, edits } => add_qos(&mut accounts, names, edits)?,
        Change::AddWckeys { names, users } => {
            for (name, user) in pairs(names, users) {
                known_user(&accounts, user)?;
                accounts.wckeys.insert(Wckey { name: name.clone(), user: user.clone() });
            }
        }
        Change::AddCoordinators { accounts: of, users } => coordinators(&mut accounts, of, users, true)?,
        Change::DeleteCoordinators { accounts: of, users } => coordinators(&mut accounts, of, users, false)?,
        Change::ModifyAccounts { filter, edits } => modify_accounts(&mut accounts, filter, edits)?,
        Change::ModifyUsers { filter, edits } => modify_users(&mut accounts, filter, edits)?,
        Change::ModifyQos { filter, edits } => modify_qos(&mut accounts, filter, edits)?,
        Change::ModifyCluster { edits } => {
            let root = accounts.account_association(ROOT).expect("the root is always there").id;
            edits.iter().try_for_each(|edit| set_association(&mut accounts, root, edit))?;
        }
        Change::DeleteAccounts { filter } => delete_accounts(cluster, &mut accounts, filter)?,
        Change::DeleteUsers { filter } => delete_users(cluster, &mut accounts, filter)?,
        Change::DeleteQos { names } => delete_qos(cluster, &mut accounts, names)?,
        Change::DeleteWckeys { names, users } => {
            accounts
                .wckeys
                .retain(|key| !(names.contains(&key.name) && (users.is_empty() || users.contains(&key.user))));
        }
    }
    limits::settle_meters(cluster);
    let is_another_tree = counts_for_others(&cluster.accounts, &accounts);
    cluster.accounts = Arc::new(accounts);
    if is_another_tree {
        limits::keep_all(cluster);
    }
    fair_share::refresh(cluster);
    Ok(Reply::Ok)
}

/// Whether some job counts for others than before, or differently.
fn counts_for_others(before: &Accounts, after: &Accounts) -> bool {
    let moved = |one: &Association| after.associations.get(&one.id).map(|one| one.parent) != Some(one.parent);
    let factors = |accounts: &Accounts| -> Vec<(u32, Option<u32>)> {
        accounts.qos.values().map(|qos| (qos.id, qos.usage_factor_thousandths)).collect()
    };
    before.associations.values().any(moved) || factors(before) != factors(after)
}

/// Administrators may do everything, operators everything but make others as mighty; coordinators what is below their accounts.
fn may_change(accounts: &Accounts, by: Caller, by_name: &str, change: &Change) -> Result<(), Reject> {
    let level = accounts.users.get(by_name).map_or(AdminLevel::None, |user| user.admin_level);
    if by.uid == 0 || level == AdminLevel::Administrator || (by.is_admin && level != AdminLevel::Operator) {
        return Ok(());
    }
    let raises = |edits: &[Edit]| edits.iter().any(|edit| edit.field == Field::AdminLevel);
    if level == AdminLevel::Operator {
        let is_fine = match change {
            Change::AddUsers { edits, .. } | Change::ModifyUsers { edits, .. } => !raises(edits),
            _ => true,
        };
        return if is_fine { Ok(()) } else { Err(Reject::NotPermitted) };
    }
    let coordinates =
        |names: &[String]| !names.is_empty() && names.iter().all(|name| accounts.coordinates(by_name, name));
    let accounts_of = |ids: Vec<AssociationId>| -> Vec<String> {
        ids.iter().map(|id| accounts.associations[id].account.clone()).collect()
    };
    let is_fine = match change {
        Change::AddAccounts { parent, .. } => accounts.coordinates(by_name, parent),
        Change::AddUsers { accounts: into, edits, .. } => !raises(edits) && coordinates(into),
        Change::AddCoordinators { accounts: of, .. } | Change::DeleteCoordinators { accounts: of, .. } => {
            coordinates(of)
        }
        Change::ModifyAccounts { filter, .. } | Change::DeleteAccounts { filter } => {
            coordinates(&accounts_of(accounts.chosen_accounts(filter)))
        }
        Change::ModifyUsers { filter, edits } => {
            !raises(edits) && coordinates(&accounts_of(accounts.chosen_users(filter)))
        }
        Change::DeleteUsers { filter } => {
            !filter.accounts.is_empty() && coordinates(&accounts_of(accounts.chosen_users(filter)))
        }
        _ => false,
    };
    if is_fine { Ok(()) } else { Err(Reject::NotPermitted) }
}

/// The root account, its user, and the QOS that everybody has.
fn make_roots(accounts: &mut Accounts) {
    if !accounts.accounts.is_empty() {
        return;
    }
    let root = Account {
        name: ROOT.into(),
        description: "default root account".into(),
        organization: ROOT.into(),
        coordinators: BTreeSet::new(),
    };
    accounts.accounts.insert(ROOT.into(), root);
    let top = insert_association(accounts, Association { account: ROOT.into(), ..Association::default() });
    let user = User {
        name: ROOT.into(),
        default_account: ROOT.into(),
        admin_level: AdminLevel::Administrator,
        ..User::default()
    };
    accounts.users.insert(ROOT.into(), user);
    let place = Association { parent: top, account: ROOT.into(), user: ROOT.into(), ..Association::default() };
    insert_association(accounts, place);
    accounts.last_qos += 1;
    let normal =
        Qos { id: accounts.last_qos, name: NORMAL.into(), description: "Normal QOS default".into(), ..Qos::default() };
    accounts.qos.insert(NORMAL.into(), normal);
}

fn insert_association(accounts: &mut Accounts, association: Association) -> AssociationId {
    accounts.last_association += 1;
    let id = accounts.last_association;
    accounts.associations.insert(id, Association { id, ..association });
    id
}

fn add_accounts(accounts: &mut Accounts, names: &[String], parent: &str, edits: &[Edit]) -> Result<(), Reject> {
    let parent = if parent.is_empty() { ROOT } else { parent };
    let above = accounts.account_association(parent).ok_or_else(|| no_account(parent))?.id;
    for name in names {
        good_name(name)?;
        if accounts.accounts.contains_key(name) {
            continue;
        }
        let mut account = Account {
            name: name.clone(),
            description: name.clone(),
            organization: parent_organization(accounts, parent, name),
            ..Account::default()
        };
        for edit in edits {
            set_account(&mut account, edit);
        }
        accounts.accounts.insert(name.clone(), account);
        let id = insert_association(
            accounts,
            Association { parent: above, account: name.clone(), ..Association::default() },
        );
        set_all(accounts, id, edits.iter().filter(|edit| !is_of_account(edit.field)))?;
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

fn add_users(
    accounts: &mut Accounts,
    names: &[String],
    into: &[String],
    partitions: &[String],
    edits: &[Edit],
) -> Result<(), Reject> {
    for account in into {
        accounts.account_association(account).ok_or_else(|| no_account(account))?;
    }
    let everywhere = [String::new()];
    let partitions = if partitions.is_empty() { &everywhere } else { partitions };
    for name in names {
        good_name(name)?;
        if !accounts.users.contains_key(name) {
            let default_account = match text_of(edits, Field::DefaultAccount) {
                Some(account) => account.to_string(),
                None => into
                    .first()
                    .cloned()
                    .ok_or_else(|| refused("You need a default account for these users to move forward"))?,
            };
            accounts.users.insert(name.clone(), User { name: name.clone(), default_account, ..User::default() });
        }
        for (account, partition) in pairs(into, partitions) {
            let is_there =
                |one: &Association| one.account == *account && one.user == *name && one.partition == *partition;
            if accounts.associations.values().any(is_there) {
                continue;
            }
            let parent = accounts.account_association(account).expect("just looked up").id;
            let place = Association {
                parent,
                account: account.clone(),
                user: name.clone(),
                partition: partition.clone(),
                ..Association::default()
            };
            let id = insert_association(accounts, place);
            set_all(accounts, id, edits.iter().filter(|edit| !is_of_user(edit.field)))?;
        }
        edits.iter().filter(|edit| is_of_user(edit.field)).try_for_each(|edit| set_user(accounts, name, edit))?;
    }
    Ok(())
}

fn add_qos(accounts: &mut Accounts, names: &[String], edits: &[Edit]) -> Result<(), Reject> {
    for name in names {
        good_name(name)?;
        if accounts.qos.contains_key(name) {
            continue;
        }
        accounts.last_qos += 1;
        let mut qos = Qos { id: accounts.last_qos, name: name.clone(), description: name.clone(), ..Qos::default() };
        set_qos(accounts, &mut qos, edits)?;
        accounts.qos.insert(name.clone(), qos);
    }
    Ok(())
}

fn set_qos(accounts: &Accounts, qos: &mut Qos, edits: &[Edit]) -> Result<(), Reject> {
    for edit in edits {
        if let (Field::Preempt, Value::Names(names)) = (edit.field, &edit.value) {
            names.names().try_for_each(|name| known_qos(accounts, name))?;
        }
        if !qos.set(edit) {
            return Err(refused("A QOS has no such field"));
        }
    }
    Ok(())
}

fn modify_accounts(accounts: &mut Accounts, filter: &EntityFilter, edits: &[Edit]) -> Result<(), Reject> {
    for id in accounts.chosen_accounts(filter) {
        let name = accounts.associations[&id].account.clone();
        for edit in edits {
            if is_of_account(edit.field) {
                set_account(accounts.accounts.get_mut(&name).expect("every account has a record"), edit);
            } else {
                set_association(accounts, id, edit)?;
            }
        }
    }
    Ok(())
}

fn modify_users(accounts: &mut Accounts, filter: &EntityFilter, edits: &[Edit]) -> Result<(), Reject> {
    let chosen = accounts.chosen_users(filter);
    let users: BTreeSet<String> = chosen.iter().map(|id| accounts.associations[id].user.clone()).collect();
    for user in &users {
        edits.iter().filter(|edit| is_of_user(edit.field)).try_for_each(|edit| set_user(accounts, user, edit))?;
    }
    chosen.into_iter().try_for_each(|id| set_all(accounts, id, edits.iter().filter(|edit| !is_of_user(edit.field))))
}

fn modify_qos(accounts: &mut Accounts, filter: &EntityFilter, edits: &[Edit]) -> Result<(), Reject> {
    let chosen = accounts.qos.keys().filter(|name| filter.names.is_empty() || filter.names.contains(*name));
    for name in chosen.cloned().collect::<Vec<_>>() {
        let mut qos = accounts.qos[&name].clone();
        set_qos(accounts, &mut qos, edits)?;
        accounts.qos.insert(name, qos);
    }
    Ok(())
}

fn delete_accounts(cluster: &Cluster, accounts: &mut Accounts, filter: &EntityFilter) -> Result<(), Reject> {
    let mut gone: BTreeSet<String> =
        accounts.chosen_accounts(filter).iter().map(|id| accounts.associations[id].account.clone()).collect();
    if gone.contains(ROOT) {
        return Err(refused("The root account can not be deleted"));
    }
    let below: Vec<String> = gone.iter().flat_map(|account| accounts.accounts_below(account)).collect();
    gone.extend(below);
    let stays =
        |user: &User| accounts.associations.values().any(|one| one.user == user.name && !gone.contains(&one.account));
    if let Some(user) = accounts.users.values().find(|user| gone.contains(&user.default_account) && stays(user)) {
        return Err(refused(&format!(
            "You can not remove the default account of a user: {} has {}",
            user.name, user.default_account
        )));
    }
    no_jobs(cluster, |job| gone.contains(&job.spec.account))?;
    accounts.associations.retain(|_, one| !gone.contains(&one.account));
    accounts.accounts.retain(|name, _| !gone.contains(name));
    forget_users_without_place(accounts);
    Ok(())
}

fn delete_users(cluster: &Cluster, accounts: &mut Accounts, filter: &EntityFilter) -> Result<(), Reject> {
    let chosen: BTreeSet<AssociationId> = accounts.chosen_users(filter).into_iter().collect();
    let places = |one: &Association| chosen.contains(&one.id);
    if chosen.iter().any(|id| accounts.associations[id].user == ROOT) {
        return Err(refused("The root user can not be deleted"));
    }
    for id in &chosen {
        let one = &accounts.associations[id];
        let user = &accounts.users[&one.user];
        let keeps = accounts.associations.values().any(|other| other.user == one.user && !places(other));
        if keeps && user.default_account == one.account {
            return Err(refused(&format!(
                "You can not remove the default account of a user: {} has {}",
                one.user, one.account
            )));
        }
    }
    no_jobs(cluster, |job| {
        chosen.iter().any(|id| {
            let one = &accounts.associations[id];
            one.user == job.spec.user && one.account == job.spec.account
        })
    })?;
    accounts.associations.retain(|id, _| !chosen.contains(id));
    forget_users_without_place(accounts);
    Ok(())
}

fn delete_qos(cluster: &Cluster, accounts: &mut Accounts, names: &[String]) -> Result<(), Reject> {
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

fn forget_users_without_place(accounts: &mut Accounts) {
    let placed: BTreeSet<String> = accounts.associations.values().map(|one| one.user.clone()).collect();
    accounts.users.retain(|name, _| placed.contains(name));
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

fn coordinators(accounts: &mut Accounts, of: &[String], users: &[String], add: bool) -> Result<(), Reject> {
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

fn is_of_account(field: Field) -> bool {
    matches!(field, Field::Description | Field::Organization)
}

fn is_of_user(field: Field) -> bool {
    matches!(field, Field::DefaultAccount | Field::DefaultWckey | Field::AdminLevel)
}

fn set_account(account: &mut Account, edit: &Edit) {
    match (edit.field, &edit.value) {
        (Field::Description, Value::Text(text)) => account.description.clone_from(text),
        (Field::Organization, Value::Text(text)) => account.organization.clone_from(text),
        _ => (),
    }
}

fn set_user(accounts: &mut Accounts, name: &str, edit: &Edit) -> Result<(), Reject> {
    let Value::Text(text) = &edit.value else { return Err(refused("A name is expected")) };
    let has_place = accounts.associations.values().any(|one| one.user == name && one.account == *text);
    let user = accounts.users.get_mut(name).expect("callers look the user up first");
    match edit.field {
        Field::DefaultAccount if !has_place => {
            return Err(refused(&format!("{name} has no association in account {text}")));
        }
        Field::DefaultAccount => user.default_account.clone_from(text),
        Field::DefaultWckey => {
            user.default_wckey.clone_from(text);
            accounts.wckeys.insert(Wckey { name: text.clone(), user: name.into() });
        }
        Field::AdminLevel => {
            user.admin_level = AdminLevel::parse(text).ok_or_else(|| refused(&format!("Bad admin level {text}")))?;
        }
        _ => return Err(refused("A user has no such field")),
    }
    Ok(())
}

fn set_all<'a>(
    accounts: &mut Accounts,
    id: AssociationId,
    mut edits: impl Iterator<Item = &'a Edit>,
) -> Result<(), Reject> {
    edits.try_for_each(|edit| set_association(accounts, id, edit))
}

fn set_association(accounts: &mut Accounts, id: AssociationId, edit: &Edit) -> Result<(), Reject> {
    match (edit.field, &edit.value) {
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
                if !accounts.allowed_qos(id).contains(name) {
                    return Err(refused(&format!("QOS {name} is not among those allowed here")));
                }
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

/// Nothing becomes its own ancestor.
fn move_account(accounts: &mut Accounts, id: AssociationId, parent: &str) -> Result<(), Reject> {
    let above = accounts.account_association(parent).ok_or_else(|| no_account(parent))?.id;
    let association = &accounts.associations[&id];
    if !association.is_account() || association.account == ROOT {
        return Err(refused("Only accounts below the root have a parent to change"));
    }
    if accounts.lineage(above).any(|one| one.id == id) {
        return Err(refused(&format!("{parent} is below {}", association.account)));
    }
    accounts.associations.get_mut(&id).expect("just seen").parent = above;
    Ok(())
}

fn text_of(edits: &[Edit], field: Field) -> Option<&str> {
    edits.iter().find_map(|edit| match &edit.value {
        Value::Text(text) if edit.field == field => Some(text.as_str()),
        _ => None,
    })
}

fn pairs<'a>(first: &'a [String], second: &'a [String]) -> impl Iterator<Item = (&'a String, &'a String)> {
    first.iter().flat_map(move |one| second.iter().map(move |other| (one, other)))
}

fn good_name(name: &str) -> Result<(), Reject> {
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

fn refused(why: &str) -> Reject {
    Reject::Accounts(why.to_string())
}
