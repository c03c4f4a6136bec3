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
    /// What documents are shaped like.
    pub data_parser: crate::json::Shape,
    /// Names of the countable resources besides CPUs and memory.
    pub gres: Vec<String>,
    pub nodes: String,
    pub n_nodes: usize,
    pub tres: String,
    /// What there is in all, by the names of resources.
    pub amounts: Vec<(&'static str, u64)>,
}

impl ClusterFacts {
    /// The name of a cluster that is known as associations name it.
    pub fn shown<'a>(&'a self, cluster: &'a str) -> &'a str {
        if cluster.is_empty() { &self.name } else { cluster }
    }

    /// Those that were asked for, as associations name them, by name.
    pub fn chosen<'a>(&'a self, accounts: &'a Accounts, words: &Words) -> Vec<&'a str> {
        let class = |name: &str| accounts.clusters.get(name).map_or("", |other| other.classification.as_str());
        let is_asked = |name: &&str| {
            !words.is_elsewhere
                && fits_name(&words.filter.names, self.shown(name))
                && fits_name(&words.classifications, class(name))
        };
        self.all(accounts).into_iter().filter(is_asked).collect()
    }

    /// All clusters as associations name them, by name.
    pub fn all<'a>(&'a self, accounts: &'a Accounts) -> Vec<&'a str> {
        let mut all: Vec<&str> = accounts.clusters.keys().map(String::as_str).chain([""]).collect();
        all.sort_by_key(|cluster| self.shown(cluster));
        all
    }
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
    let with_federations = match words.format.is_none() && words.with_federations {
        true => format!("{format},Federation,ID,Features,FedState"),
        false => format.to_string(),
    };
    let format = with_federations.as_str();
    let with_coordinators = match words.format.is_none() && words.with_coordinators {
        true => format!("{format},Coordinators"),
        false => format.to_string(),
    };
    let (fields, columns): (Vec<_>, Vec<_>) = columns::chosen(&with_coordinators, words.is_tree)?.into_iter().unzip();
    let table = Table { columns, style: options.style.clone() };
    let mut text = String::new();
    if options.has_heading {
        table.heading(&mut text);
    }
    let by_place = with_associations || entity == Entity::User && needs_place(&words.format);
    each(all, cluster, entity, words, by_place, |row| {
        let texts: Vec<String> = fields.iter().map(|field| field.text(&row)).collect();
        table.row(texts.iter().map(String::as_str), &mut text);
    });
    Ok(text)
}

/// The rows that the words ask for, in their order; accounts and users once for each of their associations, if these are wanted.
pub fn each<'a>(
    all: &'a Accounts,
    cluster: &'a ClusterFacts,
    entity: Entity,
    words: &Words,
    with_associations: bool,
    mut put: impl FnMut(Row<'a>),
) {
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
        place: "",
        inherits: !words.without_inherited,
        span: (0, 0),
        default_in: None,
        is_cluster: false,
    };
    let filter = &words.filter.clone().seen_from(&cluster.name);
    match entity {
        Entity::Account => accounts(all, filter, with_associations, blank, &mut put),
        Entity::User => users(all, words, filter, with_associations, blank, &mut put),
        Entity::Association => {
            let mut found = places(all, cluster);
            // Of one user, by account; else as the tree has them.
            if !filter.users.is_empty() && !words.is_tree {
                found.sort_by_key(|one| (&one.association.cluster, &one.association.account));
            }
            for one in found {
                if passes(all, words, filter, one.association) {
                    let depth = if words.is_tree { one.depth } else { 0 };
                    put(Row { association: Some(one.association), depth, span: one.span, ..blank });
                }
            }
        }
        Entity::Cluster => {
            for name in cluster.chosen(all, words) {
                let association = all.account_association_in(name, ROOT);
                put(Row { association, place: name, is_cluster: true, ..blank });
            }
        }
        Entity::Qos => {
            let mut list: Vec<_> = all.qos.values().filter(|qos| filter.passes_qos(qos)).collect();
            list.sort_by_key(|qos| qos.id);
            list.into_iter().for_each(|qos| put(Row { qos: Some(qos), ..blank }));
        }
        Entity::Coordinator => {
            for account in all.accounts.values().filter(|account| fits(&filter.accounts, &account.name)) {
                for user in account.coordinators.iter().filter(|user| fits(&filter.names, user)) {
                    put(Row { name: user, other: &account.name, ..blank });
                }
            }
        }
        Entity::Tres => tres(cluster, blank, &mut |row: Row<'a>| {
            let is_asked = fits_name(&words.kinds, row.other)
                && fits_name(&filter.names, row.name)
                && (filter.ids.is_empty() || filter.ids.contains(&row.number));
            if is_asked {
                put(row);
            }
        }),
        Entity::Wckey => {
            let named = |key: &&model::accounts::Wckey| {
                fits(&filter.names, &key.name) && fits(&filter.users, &key.user) && fits(&filter.clusters, &key.cluster)
            };
            for key in all.wckeys.iter().filter(named) {
                put(Row { name: &key.user, other: &key.name, place: &key.cluster, ..blank });
            }
        }
    }
}

/// An association at its place in the tree of its cluster.
struct PlaceInTree<'a> {
    association: &'a Association,
    depth: usize,
    span: (u32, u32),
}

/// All associations, cluster by cluster, each before what is below it.
fn places<'a>(all: &'a Accounts, cluster: &ClusterFacts) -> Vec<PlaceInTree<'a>> {
    let mut places = Vec::new();
    for name in cluster.all(all) {
        let order = tree_of(all, name);
        let mut next = 1;
        let first = places.len();
        let mut open: Vec<usize> = Vec::new();
        let close = |open: &mut Vec<usize>, places: &mut Vec<PlaceInTree>, next: &mut u32, depth: usize| {
            while let Some(last) = open.pop_if(|last| places[*last].depth >= depth) {
                places[last].span.1 = *next;
                *next += 1;
            }
        };
        for (id, depth) in order {
            close(&mut open, &mut places, &mut next, depth);
            open.push(places.len());
            places.push(PlaceInTree { association: &all.associations[&id], depth, span: (next, 0) });
            next += 1;
        }
        close(&mut open, &mut places, &mut next, 0);
        debug_assert!(places[first..].iter().all(|one| one.span.0 < one.span.1));
    }
    places
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

fn fits_name(wanted: &std::collections::BTreeSet<String>, value: &str) -> bool {
    wanted.is_empty() || wanted.iter().any(|name| name.eq_ignore_ascii_case(value))
}

fn passes(all: &Accounts, words: &Words, filter: &EntityFilter, one: &Association) -> bool {
    let is_default = || {
        all.users.get(&one.user).is_some_and(|user| user.default_account_in(&one.cluster) == one.account)
            && one.partition.is_empty()
    };
    let by_account = match words.with_sub_accounts && !filter.accounts.is_empty() {
        true => all.lineage(one.id).any(|above| above.is_account() && filter.accounts.contains(&above.account)),
        false => fits(&filter.accounts, &one.account),
    };
    by_account
        && (!words.only_defaults || is_default())
        && EntityFilter { accounts: Default::default(), ..filter.clone() }.passes_association(all, one)
}

fn accounts<'a>(
    all: &'a Accounts,
    filter: &EntityFilter,
    with_associations: bool,
    blank: Row<'a>,
    put: &mut impl FnMut(Row<'a>),
) {
    for account in all.accounts.values().filter(|account| filter.passes_account(account)) {
        let of_account = |one: &&Association| one.account == account.name && filter.passes_association(all, one);
        let mut places: Vec<&Association> = all.associations.values().filter(of_account).collect();
        if !with_associations {
            if !filter.asks_for_places() && filter.users.is_empty() || !places.is_empty() {
                put(Row { account: Some(account), ..blank });
            }
            continue;
        }
        places.sort_by(|a, b| (&a.cluster, &a.user, &a.partition).cmp(&(&b.cluster, &b.user, &b.partition)));
        places.into_iter().for_each(|one| put(Row { account: Some(account), association: Some(one), ..blank }));
    }
}

fn users<'a>(
    all: &'a Accounts,
    words: &Words,
    filter: &EntityFilter,
    with_associations: bool,
    blank: Row<'a>,
    put: &mut impl FnMut(Row<'a>),
) {
    let has_key = |user: &&model::accounts::User| {
        words.wckeys.is_empty()
            || all.wckeys.iter().any(|key| key.user == user.name && words.wckeys.contains(&key.name))
    };
    for user in all.users.values().filter(|user| filter.passes_user(user)).filter(has_key) {
        let of_user = |one: &&Association| one.user == user.name && filter.passes_association(all, one);
        let mut places = all.associations.values().filter(of_user);
        if !with_associations {
            // Somebody who has no place here is shown with the default of another cluster.
            let elsewhere = user.elsewhere.keys().next().filter(|_| user.default_account.is_empty());
            let is_shown = !filter.asks_for_places() || places.next().is_some();
            if is_shown {
                put(Row { user: Some(user), default_in: elsewhere.map(String::as_str), ..blank });
            }
            continue;
        }
        let mut places: Vec<&Association> = places.collect();
        places.sort_by_key(|one| (&one.cluster, &one.account, &one.partition));
        places.into_iter().for_each(|one| put(Row { user: Some(user), association: Some(one), ..blank }));
    }
}

/// In the order of their numbers.
const COUNTED_EVERYWHERE: [&str; 8] = ["cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"];

/// The number by which a resource is known; 0: it has none.
pub fn tres_number(cluster: &ClusterFacts, name: &str) -> u32 {
    let fixed = (1..).zip(COUNTED_EVERYWHERE).find(|(_, known)| *known == name).map(|(number, _)| number);
    let gres = || {
        let own = name.strip_prefix("gres/")?;
        (1001..).zip(&cluster.gres).find(|(_, known)| *known == own).map(|(number, _)| number)
    };
    fixed.or_else(gres).unwrap_or(0)
}

fn tres<'a>(cluster: &'a ClusterFacts, blank: Row<'a>, put: &mut impl FnMut(Row<'a>)) {
    for (number, tres) in (1..).zip(COUNTED_EVERYWHERE) {
        let (other, name) = tres.split_once('/').unwrap_or((tres, ""));
        put(Row { name, other, number, ..blank });
    }
    for (number, name) in (1001..).zip(&cluster.gres) {
        put(Row { name, other: "gres", number, ..blank });
    }
}

/// Accounts before what is below them, siblings by name, users of an account before its accounts.
pub fn tree(all: &Accounts) -> Vec<(AssociationId, usize)> {
    tree_of(all, "")
}

fn tree_of(all: &Accounts, cluster: &str) -> Vec<(AssociationId, usize)> {
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
        all.account_association_in(cluster, ROOT).map(|root| (root.id, 0)).into_iter().collect();
    while let Some((id, depth)) = open.pop() {
        order.push((id, depth));
        open.extend(children.get(&id).into_iter().flatten().map(|child| (child.id, depth + 1)));
    }
    order
}
