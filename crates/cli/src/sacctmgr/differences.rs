//! What of a loaded file is news: edits that would change nothing are left out, the others are told.
use model::accounts::{Accounts, Association, Change, Edit, Field, ROOT, Shares, Value};

/// The changes without those that change nothing, and a line for each that alters what is there.
pub fn news(all: &Accounts, place: &str, changes: Vec<Change>) -> (Vec<Change>, Vec<String>) {
    let mut lines = Vec::new();
    let mut kept = Vec::new();
    for change in changes {
        match change {
            Change::ModifyAccounts { filter, edits } => {
                let name = filter.names.first().cloned().unwrap_or_default();
                let one = all.account_association_in(place, &name);
                let edits = altering(all, one, ("Account", &name), edits, &mut lines);
                if !edits.is_empty() {
                    kept.push(Change::ModifyAccounts { filter, edits });
                }
            }
            Change::ModifyUsers { filter, edits } => {
                let name = filter.names.first().cloned().unwrap_or_default();
                let is_it = |one: &&Association| {
                    one.cluster == place
                        && one.user == name
                        && filter.accounts.contains(&one.account)
                        && (filter.partitions.is_empty() || filter.partitions.contains(&one.partition))
                };
                let one = all.associations.values().find(is_it);
                let edits = altering(all, one, ("User", &name), edits, &mut lines);
                if !edits.is_empty() {
                    kept.push(Change::ModifyUsers { filter, edits });
                }
            }
            Change::ModifyCluster { edits, clusters } => {
                let name = clusters.first().cloned().unwrap_or_default();
                let one = all.account_association_in(place, ROOT);
                let edits = altering(all, one, ("Cluster", &name), edits, &mut lines);
                if !edits.is_empty() {
                    kept.push(Change::ModifyCluster { edits, clusters });
                }
            }
            Change::AddCoordinators { mut accounts, users } => {
                let looks_after = |name: &String| {
                    all.accounts.get(name).is_some_and(|one| users.iter().all(|user| one.coordinators.contains(user)))
                };
                accounts.retain(|name| !looks_after(name));
                if !accounts.is_empty() {
                    kept.push(Change::AddCoordinators { accounts, users });
                }
            }
            other => kept.push(other),
        }
    }
    (kept, lines)
}

fn altering(
    all: &Accounts,
    one: Option<&Association>,
    (kind, name): (&str, &str),
    edits: Vec<Edit>,
    lines: &mut Vec<String>,
) -> Vec<Edit> {
    let Some(one) = one else { return edits };
    let mut kept = Vec::new();
    for edit in edits {
        // Told of apart.
        if edit.field == Field::Classification {
            kept.push(edit);
            continue;
        }
        let Some((title, before, after)) = difference(all, one, &edit) else { continue };
        lines.push(format!(" Changed {title:<21.21} for {kind:<7.7} {name:<10.10} {before:>8} -> {after}"));
        kept.push(edit);
    }
    kept
}

/// What it is called, what it was and what it becomes; None: it is so already.
fn difference(all: &Accounts, one: &Association, edit: &Edit) -> Option<(String, String, String)> {
    let shares = |shares: &Shares| match shares {
        Shares::Number(number) => number.to_string(),
        Shares::Parent => "parent".into(),
    };
    let account = all.accounts.get(&one.account);
    let user = all.users.get(&one.user);
    let (title, before, after) = match (edit.field, &edit.value) {
        (Field::Shares, Value::Shares(new)) => ("fairshare".to_string(), shares(&one.shares), shares(new)),
        // Only who moves is told to.
        (Field::Parent, Value::Text(new)) => {
            let before = all.associations.get(&one.parent).map(|parent| parent.account.clone()).unwrap_or_default();
            return Some(("parent".into(), before, new.clone()));
        }
        (Field::Description, Value::Text(new)) => {
            ("description".into(), account.map(|account| account.description.clone()).unwrap_or_default(), new.clone())
        }
        (Field::Organization, Value::Text(new)) => (
            "organization".into(),
            account.map(|account| account.organization.clone()).unwrap_or_default(),
            new.clone(),
        ),
        (Field::AdminLevel, Value::Text(new)) => {
            let new = model::accounts::AdminLevel::parse(new).map_or("", |level| level.name()).to_string();
            ("admin level".into(), user.map(|user| user.admin_level.name().to_string()).unwrap_or_default(), new)
        }
        (Field::DefaultAccount, Value::Text(new)) => {
            let now = user.map(|user| user.default_account_in(&one.cluster).to_string());
            ("default account".into(), now.unwrap_or_default(), new.clone())
        }
        (Field::DefaultQos, Value::Text(new)) => ("default qos".into(), one.default_qos.clone(), new.clone()),
        (Field::Qos, Value::Names(names)) => {
            let before = all.allowed_qos(one.id);
            let mut after = before.clone();
            names.apply(&mut after);
            let list = |names: std::collections::BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(",");
            ("qos".into(), list(before), list(after))
        }
        (field, value) => {
            let mut limits = one.limits.clone();
            if !limits.set(field, value) {
                return Some((format!("{field:?}"), String::new(), String::new()));
            }
            (format!("{field:?}"), one.limits.shown(field), limits.shown(field))
        }
    };
    (before != after).then_some((title, before, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_changed_and_told() {
        let mut all = Accounts::default();
        let mut one = Association { id: 1, account: "a".into(), shares: Shares::Number(2), ..Default::default() };
        one.limits.max_jobs = Some(3);
        all.associations.insert(1, one);
        let edits = vec![
            Edit { field: Field::Shares, value: Value::Shares(Shares::Number(4)) },
            Edit { field: Field::MaxJobs, value: Value::Count(Some(3)) },
        ];
        let filter = model::accounts::EntityFilter { names: ["a".to_string()].into(), ..Default::default() };
        let (kept, lines) = news(&all, "", vec![Change::ModifyAccounts { filter: filter.clone(), edits }]);
        assert_eq!(lines, [" Changed fairshare             for Account a                 2 -> 4"]);
        assert!(matches!(&kept[..], [Change::ModifyAccounts { edits, .. }] if edits.len() == 1));
        let same = vec![Edit { field: Field::MaxJobs, value: Value::Count(Some(3)) }];
        assert_eq!(news(&all, "", vec![Change::ModifyAccounts { filter, edits: same }]), (Vec::new(), Vec::new()));
    }
}
