//! `sacctmgr list`: which rows, in which order, as a table.
use std::collections::BTreeMap;

use model::accounts::{Accounts, Association, AssociationId, EntityFilter, ROOT};

use super::columns::{self, Row};
use super::words::Words;
use super::{Entity, Options};
use crate::table::Table;

/// What is known of the cluster itself.
#[derive(Clone, Debug, Default)]
pub struct ClusterFacts {
    pub name: String,
    pub host: String,
    /// Names of the countable resources besides CPUs and memory.
    pub gres: Vec<String>,
}

/// The table; the error is the field of the format that means nothing.
pub fn render(
    all: &Accounts,
    cluster: &ClusterFacts,
    entity: Entity,
    words: &Words,
    options: &Options,
) -> Result<String, String> {
    let with_associations = words.with_associations || options.with_associations;
    let format = match &words.format {
        Some(format) => format.as_str(),
        None => columns::usual(entity, with_associations, words.without_limits),
    };
    let (fields, columns): (Vec<_>, Vec<_>) = columns::chosen(format)?.into_iter().unzip();
    let table = Table { columns, style: options.style.clone() };
    let mut text = String::new();
    if options.has_heading {
        table.heading(&mut text);
    }
    let is_other_cluster =
        !words.filter.clusters.is_empty() && !words.filter.clusters.contains(&cluster.name.to_lowercase());
    if is_other_cluster {
        return Ok(text);
    }
    let mut put = |row: Row| {
        let texts: Vec<String> = fields.iter().map(|field| field.text(&row)).collect();
        table.row(texts.iter().map(String::as_str), &mut text);
    };
    let blank = Row {
        all,
        cluster,
        account: None,
        user: None,
        association: None,
        qos: None,
        name: "",
        other: "",
        number: 0,
        depth: 0,
    };
    match entity {
        Entity::Account => accounts(all, &words.filter, with_associations, blank, &mut put),
        Entity::User => users(all, &words.filter, with_associations || needs_place(&words.format), blank, &mut put),
        Entity::Association => {
            for (id, depth) in tree(all) {
                let one = &all.associations[&id];
                if passes(all, &words.filter, one) {
                    let depth = if words.is_tree { depth } else { 0 };
                    put(Row { association: Some(one), depth, ..blank });
                }
            }
        }
        Entity::Cluster => put(Row { association: all.account_association(ROOT), ..blank }),
        Entity::Qos => {
            let mut list: Vec<_> = all.qos.values().filter(|qos| fits(&words.filter.names, &qos.name)).collect();
            list.sort_by_key(|qos| qos.id);
            list.into_iter().for_each(|qos| put(Row { qos: Some(qos), ..blank }));
        }
        Entity::Coordinator => {
            for account in all.accounts.values().filter(|account| fits(&words.filter.accounts, &account.name)) {
                for user in account.coordinators.iter().filter(|user| fits(&words.filter.names, user)) {
                    put(Row { name: user, other: &account.name, ..blank });
                }
            }
        }
        Entity::Tres => tres(cluster, blank, &mut put),
        Entity::Wckey => {
            for key in all
                .wckeys
                .iter()
                .filter(|key| fits(&words.filter.names, &key.name) && fits(&words.filter.users, &key.user))
            {
                put(Row { name: &key.user, other: &key.name, ..blank });
            }
        }
    }
    Ok(text)
}

fn fits(wanted: &std::collections::BTreeSet<String>, value: &str) -> bool {
    wanted.is_empty() || wanted.contains(value)
}

/// `list user format=account` shows the user's places even without `withassoc`.
fn needs_place(format: &Option<String>) -> bool {
    let places = ["account", "partition", "share", "qos", "defaultqos", "cluster", "fairshare"];
    let is_place = |word: &str| places.contains(&word.split('%').next().unwrap_or("").to_lowercase().as_str());
    format.as_deref().is_some_and(|format| format.split(',').any(is_place))
}

fn passes(all: &Accounts, filter: &EntityFilter, one: &Association) -> bool {
    fits(&filter.names, &one.account) && filter.passes_association(all, one)
}

fn accounts<'a>(
    all: &'a Accounts,
    filter: &EntityFilter,
    with_associations: bool,
    blank: Row<'a>,
    put: &mut impl FnMut(Row<'a>),
) {
    for account in all.accounts.values().filter(|account| filter.passes_account(account)) {
        if !with_associations {
            put(Row { account: Some(account), ..blank });
            continue;
        }
        let mut places: Vec<&Association> =
            all.associations.values().filter(|one| one.account == account.name).collect();
        places.sort_by(|a, b| (&a.user, &a.partition).cmp(&(&b.user, &b.partition)));
        places.into_iter().for_each(|one| put(Row { account: Some(account), association: Some(one), ..blank }));
    }
}

fn users<'a>(
    all: &'a Accounts,
    filter: &EntityFilter,
    with_associations: bool,
    blank: Row<'a>,
    put: &mut impl FnMut(Row<'a>),
) {
    for user in all.users.values().filter(|user| filter.passes_user(user)) {
        if !with_associations {
            put(Row { user: Some(user), ..blank });
            continue;
        }
        let places =
            all.associations.values().filter(|one| one.user == user.name && filter.passes_association(all, one));
        places.for_each(|one| put(Row { user: Some(user), association: Some(one), ..blank }));
    }
}

fn tres<'a>(cluster: &'a ClusterFacts, blank: Row<'a>, put: &mut impl FnMut(Row<'a>)) {
    let fixed = ["cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"];
    for (number, tres) in (1..).zip(fixed) {
        let (other, name) = tres.split_once('/').unwrap_or((tres, ""));
        put(Row { name, other, number, ..blank });
    }
    for (number, name) in (1001..).zip(&cluster.gres) {
        put(Row { name, other: "gres", number, ..blank });
    }
}

/// Accounts before what is below them, siblings by name, users of an account before its accounts.
pub fn tree(all: &Accounts) -> Vec<(AssociationId, usize)> {
    let mut children: BTreeMap<AssociationId, Vec<&Association>> = BTreeMap::new();
    all.associations.values().for_each(|one| children.entry(one.parent).or_default().push(one));
    for siblings in children.values_mut() {
        let place =
            |one: &&Association| (one.is_account(), one.account.clone(), one.user.clone(), one.partition.clone());
        // The last is taken first from the stack.
        siblings.sort_by_key(|one| std::cmp::Reverse(place(one)));
    }
    let mut order = Vec::new();
    let mut open: Vec<(AssociationId, usize)> =
        all.account_association(ROOT).map(|root| (root.id, 0)).into_iter().collect();
    while let Some((id, depth)) = open.pop() {
        order.push((id, depth));
        open.extend(children.get(&id).into_iter().flatten().map(|child| (child.id, depth + 1)));
    }
    order
}
