//! Who may change which accounts.
use model::accounts::{Accounts, AdminLevel, AssociationId, Change, Edit, Field};
use model::{Caller, Reject};

/// Administrators may do everything, operators everything but make others as mighty; coordinators what is below their accounts.
pub(super) fn check(accounts: &Accounts, by: Caller, by_name: &str, change: &Change) -> Result<(), Reject> {
    let level = accounts.users.get(by_name).map_or(AdminLevel::None, |user| user.admin_level);
    if by.uid == 0 || level == AdminLevel::Administrator || (by.is_admin && level != AdminLevel::Operator) {
        return Ok(());
    }
    let is_fine = match level {
        AdminLevel::Operator => may_operator(change),
        _ => may_coordinator(accounts, by_name, change),
    };
    if is_fine { Ok(()) } else { Err(Reject::NotPermitted) }
}

fn sets(edits: &[Edit], field: Field) -> bool {
    edits.iter().any(|edit| edit.field == field)
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
fn may_operator(change: &Change) -> bool {
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
    !is_high && !sets(edits(change), Field::AdminLevel) && !sets(edits(change), Field::RawUsage)
}

fn may_coordinator(accounts: &Accounts, by_name: &str, change: &Change) -> bool {
    if sets(edits(change), Field::AdminLevel) || sets(edits(change), Field::RawUsage) {
        return false;
    }
    let coordinates =
        |names: &[String]| !names.is_empty() && names.iter().all(|name| accounts.coordinates(by_name, name));
    let accounts_of = |ids: Vec<AssociationId>| -> Vec<String> {
        ids.iter().map(|id| accounts.associations[id].account.clone()).collect()
    };
    match change {
        Change::AddAccounts { parent, .. } => accounts.coordinates(by_name, parent),
        Change::AddUsers { accounts: into, .. } => coordinates(into),
        Change::AddCoordinators { accounts: of, .. } | Change::DeleteCoordinators { accounts: of, .. } => {
            coordinates(of)
        }
        Change::ModifyAccounts { filter, edits } => {
            // An account goes only where its coordinator has a say too.
            let is_moved_well = edits.iter().all(|edit| match (edit.field, &edit.value) {
                (Field::Parent, model::accounts::Value::Text(parent)) => accounts.coordinates(by_name, parent),
                _ => true,
            });
            is_moved_well && coordinates(&accounts_of(accounts.chosen_accounts(filter)))
        }
        Change::DeleteAccounts { filter } => coordinates(&accounts_of(accounts.chosen_accounts(filter))),
        Change::ModifyUsers { filter, .. } => coordinates(&accounts_of(accounts.chosen_users(filter))),
        Change::DeleteUsers { filter } => {
            !filter.accounts.is_empty() && coordinates(&accounts_of(accounts.chosen_users(filter)))
        }
        Change::AddQos { .. }
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
