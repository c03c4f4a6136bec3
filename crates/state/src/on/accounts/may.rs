//! Who may change which accounts.
use model::accounts::{Accounts, AdminLevel, Association, AssociationId, Change, Edit, Field, User, Value};
use model::{Caller, Reject};

/// Administrators may do everything, operators everything but make others as mighty; coordinators what is below their accounts, but not
/// what they may not use themselves.
pub(super) fn check(rules: u32, accounts: &Accounts, by: Caller, by_name: &str, change: &Change) -> Result<(), Reject> {
    let level = accounts.users.get(by_name).map_or(AdminLevel::None, |user| user.admin_level);
    if by.uid == 0 || level == AdminLevel::Administrator || (by.is_admin && level != AdminLevel::Operator) {
        return Ok(());
    }
    let is_fine = match level {
        AdminLevel::Operator => may_operator(accounts, change),
        _ if rules < 2 => may_coordinator(accounts, by_name, change),
        _ => {
            let is_theirs = |account: &String| accounts.coordinates(by_name, account);
            sets_own_default(by_name, change)
                || (may_coordinator(accounts, by_name, change) && default_accounts(change).all(is_theirs))
        }
    };
    if is_fine { Ok(()) } else { Err(Reject::NotPermitted) }
}

fn sets(edits: &[Edit], field: Field) -> bool {
    edits.iter().any(|edit| edit.field == field)
}

/// Which of one's accounts, and of one's keys, is meant where none is named is one's own matter.
fn sets_own_default(by_name: &str, change: &Change) -> bool {
    let Change::ModifyUsers { filter, edits } = change else { return false };
    let is_default = |edit: &Edit| matches!(edit.field, Field::DefaultAccount | Field::DefaultWckey);
    let is_own = filter.names.len() == 1 && filter.names.contains(by_name) && !by_name.is_empty();
    is_own && !edits.is_empty() && edits.iter().all(is_default)
}

/// Those that somebody is to have from now on.
fn default_accounts(change: &Change) -> impl Iterator<Item = &String> {
    edits(change).iter().filter_map(|edit| match (edit.field, &edit.value) {
        (Field::DefaultAccount, Value::Text(account)) => Some(account),
        _ => None,
    })
}

fn edits(change: &Change) -> &[Edit] {
    match change {
        Change::AddAccounts { edits, .. }
        | Change::AddUsers { edits, .. }
        | Change::AddQos { edits, .. }
        | Change::AddClusters { edits, .. }
        | Change::ModifyAccounts { edits, .. }
        | Change::ModifyUsers { edits, .. }
        | Change::ModifyQos { edits, .. }
        | Change::ModifyCluster { edits, .. } => edits,
        Change::AddWckeys { .. }
        | Change::AddCoordinators { .. }
        | Change::DeleteAccounts { .. }
        | Change::DeleteUsers { .. }
        | Change::DeleteQos { .. }
        | Change::DeleteWckeys { .. }
        | Change::DeleteCoordinators { .. }
        | Change::DeleteClusters { .. }
        | Change::AddResources { .. }
        | Change::ModifyResources { .. }
        | Change::DeleteResources { .. }
        | Change::Several(_) => &[],
    }
}

/// Clusters, qualities of service, which resources there are, and what was used are administrators' matters, as is who is one.
fn may_operator(accounts: &Accounts, change: &Change) -> bool {
    let is_high = matches!(
        change,
        Change::AddQos { .. }
            | Change::ModifyQos { .. }
            | Change::DeleteQos { .. }
            | Change::AddClusters { .. }
            | Change::ModifyCluster { .. }
            | Change::DeleteClusters { .. }
            | Change::AddResources { .. }
            | Change::DeleteResources { .. }
    );
    let sets = |field| sets(edits(change), field);
    !is_high && !sets(Field::AdminLevel) && !sets(Field::RawUsage) && !renames_the_mighty(accounts, change)
}

/// Whoever has the new name would have what the old one may do.
fn renames_the_mighty(accounts: &Accounts, change: &Change) -> bool {
    let Change::ModifyUsers { filter, edits } = change else { return false };
    let is_mighty = |user: &User| user.admin_level != AdminLevel::None && filter.passes_user(user);
    sets(edits, Field::NewName) && accounts.users.values().any(is_mighty)
}

/// Whether a coordinator may use what it lets others use there.
fn has_what_it_gives(accounts: &Accounts, by_name: &str, edits: &[Edit], there: &[String]) -> bool {
    let given = edits.iter().filter_map(|edit| match (edit.field, &edit.value) {
        (Field::Qos, Value::Names(names)) => Some(names.names()),
        _ => None,
    });
    let given: Vec<&String> = given.flatten().collect();
    let has_all = |account: &String| {
        let is_own = |one: &&Association| one.is_here() && one.user == by_name && one.account == *account;
        let own = accounts.associations.values().find(is_own).or_else(|| accounts.account_association(account));
        let allowed = own.map(|one| accounts.allowed_qos(one.id)).unwrap_or_default();
        given.iter().all(|name| allowed.contains(*name))
    };
    given.is_empty() || there.iter().all(has_all)
}

fn may_coordinator(accounts: &Accounts, by_name: &str, change: &Change) -> bool {
    if [Field::AdminLevel, Field::RawUsage, Field::NewName].iter().any(|field| sets(edits(change), *field)) {
        return false;
    }
    let coordinates =
        |names: &[String]| !names.is_empty() && names.iter().all(|name| accounts.coordinates(by_name, name));
    let accounts_of = |ids: Vec<AssociationId>| -> Vec<String> {
        ids.iter().map(|id| accounts.associations[id].account.clone()).collect()
    };
    let gives_well = |there: &[String]| has_what_it_gives(accounts, by_name, edits(change), there);
    match change {
        Change::AddAccounts { parent, .. } => {
            accounts.coordinates(by_name, parent) && gives_well(std::slice::from_ref(parent))
        }
        Change::AddUsers { accounts: into, .. } => coordinates(into) && gives_well(into),
        Change::AddCoordinators { accounts: of, .. } | Change::DeleteCoordinators { accounts: of, .. } => {
            coordinates(of)
        }
        Change::ModifyAccounts { filter, edits } => {
            // An account goes only where its coordinator has a say too.
            let is_moved_well = edits.iter().all(|edit| match (edit.field, &edit.value) {
                (Field::Parent, Value::Text(parent)) => accounts.coordinates(by_name, parent),
                _ => true,
            });
            let there = accounts_of(accounts.chosen_accounts(filter));
            is_moved_well && coordinates(&there) && gives_well(&there)
        }
        Change::ModifyUsers { filter, .. } => {
            let there = accounts_of(accounts.chosen_users(filter));
            coordinates(&there) && gives_well(&there)
        }
        Change::DeleteUsers { filter } => {
            !filter.accounts.is_empty() && coordinates(&accounts_of(accounts.chosen_users(filter)))
        }
        Change::DeleteAccounts { .. }
        | Change::AddQos { .. }
        | Change::ModifyQos { .. }
        | Change::DeleteQos { .. }
        | Change::AddWckeys { .. }
        | Change::DeleteWckeys { .. }
        | Change::AddClusters { .. }
        | Change::ModifyCluster { .. }
        | Change::DeleteClusters { .. }
        | Change::AddResources { .. }
        | Change::ModifyResources { .. }
        | Change::DeleteResources { .. }
        | Change::Several(_) => false,
    }
}
