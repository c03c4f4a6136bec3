//! Who changed which accounts, and when nodes were out of service: the latest of both are kept, for administrators to look up.
use imbl::{OrdMap, Vector};
use model::accounts::{Accounts, Association, Change, Edit, EntityFilter, Field, Resource, Value};
use model::chronicle::{BufferEvent, Chronicle, NodeEvent, Transaction};
use model::node::{Node, NodePhase};
use model::{NodeName, PersistentBuffer, Reservation, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::Cluster;

/// As many of each are remembered.
const MOST: usize = 10_000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kept {
    transactions: Vector<Arc<Transaction>>,
    last_transaction: u64,
    /// Those that are over.
    events: Vector<Arc<NodeEvent>>,
    open: OrdMap<NodeName, Arc<NodeEvent>>,
    /// Persistent buffers that are gone.
    buffers: Vector<Arc<BufferEvent>>,
    /// Reservations whose time is over, or that were deleted in it.
    reservations: Vector<Arc<Reservation>>,
    began: Option<Timestamp>,
}

impl Cluster {
    /// The earliest first.
    pub fn chronicle(&self) -> Chronicle {
        let gone = self.chronicle.buffers.iter().map(|one| (**one).clone());
        let there = self.persistent.values().map(|buffer| of_buffer(buffer, None));
        let mut buffers: Vec<BufferEvent> = gone.chain(there).collect();
        buffers.sort_by(|one, other| (one.from, &one.name).cmp(&(other.from, &other.name)));
        Chronicle { buffers, ..self.chronicle.all() }
    }
}

fn of_buffer(buffer: &PersistentBuffer, until: Option<Timestamp>) -> BufferEvent {
    BufferEvent {
        name: buffer.name.clone(),
        pool: buffer.pool.clone(),
        plugin: buffer.plugin.word().into(),
        user: buffer.user.clone(),
        account: buffer.account.clone(),
        bytes: buffer.bytes,
        from: buffer.created,
        until,
    }
}

/// A persistent buffer is gone.
pub(crate) fn note_buffer(cluster: &mut Cluster, buffer: &PersistentBuffer) {
    let event = of_buffer(buffer, Some(cluster.now));
    push(&mut cluster.chronicle.buffers, event);
}

/// The first entry of all.
pub(crate) fn note_beginning(cluster: &mut Cluster, at: Timestamp) {
    if cluster.now == Timestamp::default() {
        cluster.chronicle.began = Some(at);
    }
}

/// Its present time ends now, if it has begun.
pub(crate) fn note_reservation(cluster: &mut Cluster, reservation: &Reservation) {
    let end = reservation.end.min(cluster.now);
    if reservation.start < end {
        push(&mut cluster.chronicle.reservations, Reservation { end, ..reservation.clone() });
    }
}

impl Kept {
    fn all(&self) -> Chronicle {
        let mut events: Vec<NodeEvent> =
            self.events.iter().chain(self.open.values()).map(|one| (**one).clone()).collect();
        events.sort_by(|one, other| (one.from, &one.node).cmp(&(other.from, &other.node)));
        let transactions = self.transactions.iter().map(|one| (**one).clone()).collect();
        let reservations = self.reservations.iter().map(|one| (**one).clone()).collect();
        Chronicle { transactions, events, buffers: Vec::new(), reservations, began: self.began }
    }
}

fn push<T: Clone>(list: &mut Vector<Arc<T>>, one: T) {
    list.push_back(Arc::new(one));
    if list.len() > MOST {
        list.pop_front();
    }
}

/// A node has changed: what it is out of service for may have begun or ended.
pub(crate) fn note_node(cluster: &mut Cluster, name: &NodeName) {
    let now = cluster.now;
    let outage = cluster.nodes.get(name).and_then(|node| outage(node, now));
    let open = cluster.chronicle.open.get(name);
    let is_same = match (open, &outage) {
        (None, None) => true,
        (Some(open), Some(outage)) => open.state == outage.state && open.reason == outage.reason,
        _ => false,
    };
    if is_same {
        return;
    }
    if let Some(open) = cluster.chronicle.open.remove(name) {
        push(&mut cluster.chronicle.events, NodeEvent { until: Some(now), ..(*open).clone() });
    }
    if let Some(outage) = outage {
        cluster.chronicle.open.insert(name.clone(), Arc::new(outage));
    }
}

fn outage(node: &Node, now: Timestamp) -> Option<NodeEvent> {
    // A node that has not come yet is not out of service.
    let is_away = node.phase == NodePhase::Down || (node.phase == NodePhase::Lost && node.registered.is_some());
    let state = match (is_away, node.drain, node.has_failed) {
        (false, false, _) => return None,
        (true, drain, _) => {
            let silent = if node.answers { "" } else { "*" };
            format!("DOWN{silent}{}", if drain { "+DRAIN" } else { "" })
        }
        (false, true, true) => "FAIL".into(),
        (false, true, false) => "DRAIN".into(),
    };
    let reason = node.reason.as_ref();
    Some(NodeEvent {
        node: node.name.clone(),
        from: now,
        until: None,
        state,
        reason: reason.map(|reason| reason.text.clone()).unwrap_or_default(),
        by_uid: reason.map_or(0, |reason| reason.by_uid),
        n_cpus: node.config.cpus,
    })
}

pub(crate) fn note_changes(cluster: &mut Cluster, actor: &str, lines: Vec<Transaction>) {
    let at = cluster.now;
    for line in lines {
        cluster.chronicle.last_transaction += 1;
        let id = cluster.chronicle.last_transaction;
        push(&mut cluster.chronicle.transactions, Transaction { id, at, actor: actor.into(), ..line });
    }
}

/// What a change comes to, one line for each kind of thing that it touches.
pub(crate) fn lines(before: &Accounts, after: &Accounts, change: &Change) -> Vec<Transaction> {
    let line = |action: &str, whom: String, info: String| Transaction {
        action: action.into(),
        whom,
        info,
        ..Transaction::default()
    };
    let new_places = || {
        let fresh = after.associations.values().filter(|one| !before.associations.contains_key(&one.id));
        fresh.map(|one| of_place("Add Associations", &format!("id_assoc={}", one.id), one, place_info(one)))
    };
    match change {
        Change::AddAccounts { names, .. } => {
            let fresh = names.iter().filter(|name| !before.accounts.contains_key(*name));
            let of = |name: &String| {
                let account = after.accounts.get(name).cloned().unwrap_or_default();
                let info = format!("description='{}', organization='{}'", account.description, account.organization);
                Transaction { accounts: vec![name.clone()], ..line("Add Accounts", name.clone(), info) }
            };
            fresh.map(of).chain(new_places()).collect()
        }
        Change::AddUsers { names, .. } => {
            let fresh = names.iter().filter(|name| !before.users.contains_key(*name));
            let of = |name: &String| {
                let level = after.users.get(name).map_or(1, |user| user.admin_level as u32 + 1);
                Transaction {
                    users: vec![name.clone()],
                    ..line("Add Users", name.clone(), format!("admin_level={level}"))
                }
            };
            fresh.map(of).chain(new_places()).collect()
        }
        Change::AddClusters { names, edits } => {
            let fresh = names.iter().filter(|name| !before.clusters.contains_key(*name));
            let of = |name: &String| Transaction {
                cluster: name.clone(),
                ..line("Add Clusters", name.clone(), told(edits))
            };
            fresh.map(of).chain(new_places().filter(|one| !one.users.is_empty())).collect()
        }
        Change::AddQos { names, edits } => {
            let fresh = names.iter().filter(|name| !before.qos.contains_key(*name));
            fresh.map(|name| line("Add QOS", name.clone(), told(edits))).collect()
        }
        Change::AddWckeys { names, users, .. } => {
            let each = names.iter().flat_map(|name| users.iter().map(move |user| (name, user)));
            each.map(|(name, user)| Transaction {
                users: vec![user.clone()],
                ..line("Add WCKeys", name.clone(), format!("user='{user}'"))
            })
            .collect()
        }
        Change::AddCoordinators { accounts, users } => {
            let one = line("Add Account Coord", users.join(","), accounts.join(","));
            vec![Transaction { accounts: accounts.clone(), users: users.clone(), ..one }]
        }
        Change::DeleteCoordinators { accounts, users } => {
            let each = |list: &[String], word: &str| {
                list.iter().map(|name| format!("{word}='{name}'")).collect::<Vec<_>>().join(" || ")
            };
            let whom = format!("({}) && ({})", each(accounts, "acct"), each(users, "user"));
            let one = line("Remove Account Coordinators", whom, String::new());
            vec![Transaction { accounts: accounts.clone(), users: users.clone(), ..one }]
        }
        Change::ModifyAccounts { filter, edits } => {
            let chosen: Vec<&Association> =
                before.chosen_accounts(filter).iter().map(|id| &before.associations[id]).collect();
            let of_account = |edit: &&Edit| matches!(edit.field, Field::Description | Field::Organization);
            modified(&chosen, edits, "Modify Accounts", of_account, |one| &one.account)
        }
        Change::ModifyUsers { filter, edits } => {
            let chosen: Vec<&Association> =
                before.chosen_users(filter).iter().map(|id| &before.associations[id]).collect();
            let of_user = |edit: &&Edit| matches!(edit.field, Field::AdminLevel | Field::DefaultWckey | Field::NewName);
            modified(&chosen, edits, "Modify Users", of_user, |one| &one.user)
        }
        Change::ModifyQos { filter, edits } => {
            let names: Vec<String> = before.chosen_qos(filter).iter().map(|name| format!("name='{name}'")).collect();
            vec![line("Modify QOS", format!("({})", names.join(" || ")), told(edits))]
        }
        Change::ModifyCluster { edits, .. } => {
            vec![line("Modify Associations", "(acct='root')".into(), told(edits))]
        }
        Change::DeleteAccounts { filter } => {
            let chosen = before.chosen_accounts(filter);
            removed("Remove Accounts", chosen.iter().map(|id| before.associations[id].account.clone()), filter)
        }
        Change::DeleteUsers { filter } => {
            let chosen = before.chosen_users(filter);
            let gone: Vec<&Association> = chosen.iter().map(|id| &before.associations[id]).collect();
            match !filter.asks_for_places() {
                true => removed("Remove Users", gone.iter().map(|one| one.user.clone()), filter),
                false => gone
                    .into_iter()
                    .map(|one| of_place("Remove Associations", &format!("id_assoc={}", one.id), one, String::new()))
                    .collect(),
            }
        }
        Change::DeleteQos { names } => removed("Remove QOS", names.iter().cloned(), &EntityFilter::default()),
        Change::DeleteClusters { names } => removed("Remove Clusters", names.iter().cloned(), &EntityFilter::default()),
        Change::AddResources { .. } | Change::ModifyResources { .. } | Change::DeleteResources { .. } => {
            resource_lines(before, after)
        }
        Change::Several(_) => Vec::new(),
        Change::DeleteWckeys { names, .. } => removed("Remove WCKeys", names.iter().cloned(), &EntityFilter::default()),
    }
}

fn resource_lines(before: &Accounts, after: &Accounts) -> Vec<Transaction> {
    let line = |action: &str, one: &Resource, info: String| Transaction {
        action: action.into(),
        whom: one.license(),
        info,
        ..Transaction::default()
    };
    let told = |one: &Resource| {
        let shares = one.shares.iter().map(|(cluster, percent)| format!(", percent_allowed({cluster})={percent}"));
        let parts: String = shares.collect();
        format!("count={}, description='{}', manager='{}'{parts}", one.count, one.description, one.server_type)
    };
    let added_or_changed = after.resources.values().filter_map(|one| match before.resources.get(&one.id) {
        Some(known) if known == one => None,
        Some(_) => Some(line("Modify Resource", one, told(one))),
        None => Some(line("Add Resource", one, told(one))),
    });
    let gone = before.resources.values().filter(|one| !after.resources.contains_key(&one.id));
    added_or_changed.chain(gone.map(|one| line("Remove Resource", one, String::new()))).collect()
}

fn of_place(action: &str, whom: &str, one: &Association, info: String) -> Transaction {
    Transaction {
        action: action.into(),
        whom: whom.into(),
        info,
        accounts: vec![one.account.clone()],
        users: if one.is_account() { Vec::new() } else { vec![one.user.clone()] },
        cluster: one.cluster.clone(),
        ..Transaction::default()
    }
}

fn place_info(one: &Association) -> String {
    format!("acct='{}', user='{}', partition='{}'", one.account, one.user, one.partition)
}

fn modified(
    chosen: &[&Association],
    edits: &[Edit],
    action: &str,
    of_entity: impl Fn(&&Edit) -> bool,
    name: fn(&Association) -> &String,
) -> Vec<Transaction> {
    let (entity, place): (Vec<&Edit>, Vec<&Edit>) = edits.iter().partition(|edit| of_entity(edit));
    let mut names: Vec<String> = chosen.iter().map(|one| name(one).clone()).collect();
    names.dedup();
    let ids: Vec<String> = chosen.iter().map(|one| format!("id_assoc={}", one.id)).collect();
    let quoted: Vec<String> = names.iter().map(|name| format!("name='{name}'")).collect();
    let (accounts, users) = (
        chosen.iter().map(|one| one.account.clone()).collect::<Vec<_>>(),
        chosen.iter().filter(|one| !one.is_account()).map(|one| one.user.clone()).collect::<Vec<_>>(),
    );
    let line = |action: &str, whom: Vec<String>, edits: Vec<&Edit>| Transaction {
        action: action.into(),
        whom: format!("({})", whom.join(" || ")),
        info: told(edits),
        accounts: accounts.clone(),
        users: users.clone(),
        ..Transaction::default()
    };
    let mut lines = Vec::new();
    if !entity.is_empty() {
        lines.push(line(action, quoted, entity));
    }
    if !place.is_empty() {
        lines.push(line("Modify Associations", ids, place));
    }
    lines
}

fn removed(action: &str, names: impl Iterator<Item = String>, filter: &EntityFilter) -> Vec<Transaction> {
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.dedup();
    let quoted: Vec<String> = names.iter().map(|name| format!("name='{name}'")).collect();
    let one = Transaction {
        action: action.into(),
        whom: quoted.join(" || "),
        cluster: filter.clusters.first().cloned().unwrap_or_default(),
        ..Transaction::default()
    };
    let is_user = action == "Remove Users";
    vec![match is_user {
        true => Transaction { users: names, ..one },
        false => Transaction { accounts: names, ..one },
    }]
}

/// What was set, in words.
fn told<'a>(edits: impl IntoIterator<Item = &'a Edit>) -> String {
    let one = |edit: &Edit| {
        let value = match &edit.value {
            Value::Count(Some(count)) => count.to_string(),
            Value::Count(None) => "NULL".into(),
            Value::Text(text) => format!("'{text}'"),
            Value::Shares(model::accounts::Shares::Number(number)) => number.to_string(),
            Value::Shares(model::accounts::Shares::Parent) => "parent".into(),
            Value::Tres(list) => {
                let amount = |amount: &Option<u64>| amount.map_or("NULL".to_string(), |amount| amount.to_string());
                list.iter().map(|(name, most)| format!("{name}={}", amount(most))).collect::<Vec<_>>().join(",")
            }
            Value::Names(names) => names.names().cloned().collect::<Vec<_>>().join(","),
        };
        format!("{}={value}", snake(edit.field))
    };
    edits.into_iter().map(one).collect::<Vec<_>>().join(", ")
}

/// `MaxJobs` as `max_jobs`.
fn snake(field: Field) -> String {
    let mut text = String::new();
    for letter in format!("{field:?}").chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}
