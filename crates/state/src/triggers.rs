//! Triggers: who set them, what they wait for, and which are due. Their programs are run by the leader.
//!
//! ```text
//! set ──▶ waits ──▶ something happens: `fire` ──▶ its time comes: due ──▶ the leader runs it, `TriggerRan` ──▶ gone, or waits anew
//! ```
use std::collections::BTreeSet;
use std::sync::Arc;

use model::node::NodePhase;
use model::time::Span;
use model::trigger::{Fire, NodeMark, Trigger, TriggerFilter, TriggerKind};
use model::{Caller, Event, Job, JobId, Node, NodeName, Phase, Reject, Reply, Timestamp};

use crate::Cluster;
use crate::on::Answer;

/// What happens to several nodes within this time is told at once.
const GATHERING: Span = Span::from_secs(1);
/// No trigger looks further.
const OFFSET_MAX_SECS: i64 = 32_000;
/// Of all users together,
const N_MAX: usize = 10_000;
/// and of one who is no administrator.
const N_OF_USER_MAX: usize = 500;

impl Cluster {
    /// All of them, in the order in which they were set.
    pub fn triggers(&self) -> impl Iterator<Item = &Arc<Trigger>> {
        self.triggers.values()
    }

    /// Those whose programs are to run now.
    pub fn due_triggers(&self) -> impl Iterator<Item = &Arc<Trigger>> {
        self.triggers.values().filter(|trigger| trigger.fire.as_ref().is_some_and(|fire| fire.at <= self.now))
    }
}

pub(crate) fn set(cluster: &mut Cluster, by: Caller, wanted: &Trigger) -> Answer {
    if wanted.uid != by.uid && !by.is_admin {
        return Err(Reject::NotPermitted);
    }
    check(cluster, wanted)?;
    if cluster.rules() >= 3 && !by.is_admin && n_of(cluster, wanted.uid) >= N_OF_USER_MAX {
        return Err(Reject::TooManyTriggers);
    }
    let is_same = |known: &&Arc<Trigger>| {
        let blank = Trigger { id: 0, fire: None, n_fired: 0, look_at: None, ..(***known).clone() };
        blank == Trigger { id: 0, fire: None, n_fired: 0, look_at: None, ..wanted.clone() }
    };
    if cluster.triggers.values().any(|known| is_same(&known)) {
        return Err(Reject::DuplicateTrigger);
    }
    if cluster.triggers.is_empty() {
        cluster.node_marks = cluster.nodes.values().filter_map(|node| Some((node.name.clone(), mark(node)?))).collect();
    }
    cluster.last_trigger += 1;
    let id = cluster.last_trigger;
    let trigger = Trigger { id, fire: None, n_fired: 0, look_at: None, ..wanted.clone() };
    cluster.triggers.insert(id, Arc::new(trigger));
    look(cluster, id);
    Ok(Reply::Ok)
}

fn n_of(cluster: &Cluster, uid: u32) -> usize {
    cluster.triggers.values().filter(|trigger| trigger.uid == uid).count()
}

fn check(cluster: &Cluster, wanted: &Trigger) -> Result<(), Reject> {
    let invalid = |what: &str| Err(Reject::InvalidValue(what.into()));
    if wanted.kinds.is_empty() || wanted.kinds.len() > TriggerKind::ALL.len() {
        return invalid("trigger");
    }
    if !wanted.program.starts_with('/') || wanted.program.len() > 1024 {
        return invalid("program");
    }
    if wanted.offset_secs.abs() > OFFSET_MAX_SECS {
        return invalid("offset");
    }
    if cluster.triggers.len() >= N_MAX {
        return Err(Reject::TooManyTriggers);
    }
    if let Some(unknown) = wanted.nodes.iter().find(|name| !cluster.nodes.contains_key(*name)) {
        return Err(Reject::NoSuchNode(unknown.to_string()));
    }
    let of_jobs = wanted.kinds.iter().any(|kind| matches!(kind, TriggerKind::Time | TriggerKind::Fini));
    match wanted.job.map(|job| cluster.jobs.get(&job)) {
        Some(None) => Err(Reject::NoSuchJob),
        Some(Some(job)) if is_over(job) => Err(Reject::AlreadyOver),
        None if of_jobs => Err(Reject::NoSuchJob),
        _ => Ok(()),
    }
}

/// Whoever may, clears all that fit; one that is not theirs refuses everything.
pub(crate) fn clear(cluster: &mut Cluster, by: Caller, filter: &TriggerFilter) -> Answer {
    let fitting: Vec<&Arc<Trigger>> = cluster.triggers.values().filter(|trigger| filter.fits(trigger)).collect();
    if fitting.iter().any(|trigger| !by.may_act_for(trigger.uid)) {
        return Err(Reject::NotPermitted);
    }
    if fitting.is_empty() {
        return Err(Reject::NoSuchTrigger);
    }
    let ids: Vec<u32> = fitting.iter().map(|trigger| trigger.id).collect();
    ids.into_iter().for_each(|id| remove(cluster, id));
    Ok(Reply::Ok)
}

/// Its program has run, or could not be run.
pub(crate) fn ran(cluster: &mut Cluster, id: u32, n_fired: u32) -> Answer {
    let known = cluster.triggers.get(&id).filter(|trigger| trigger.n_fired == n_fired && trigger.fire.is_some());
    let Some(trigger) = known else { return Err(Reject::Stale) };
    if !trigger.is_permanent || trigger.job.is_some_and(|job| cluster.jobs.get(&job).is_none_or(|job| is_over(job))) {
        remove(cluster, id);
        return Ok(Reply::Ok);
    }
    let trigger = trigger_mut(cluster, id);
    (trigger.fire, trigger.n_fired) = (None, n_fired + 1);
    // What is so already is no news: an idle node is one when it becomes idle again.
    if !trigger.kinds.contains(&TriggerKind::Time) {
        trigger.look_at = None;
    }
    Ok(Reply::Ok)
}

/// Something that only the leader, or another part of the state, knows of.
pub(crate) fn happened(cluster: &mut Cluster, kind: TriggerKind) {
    let waiting: Vec<u32> = waiting_for(cluster, kind).collect();
    waiting.into_iter().for_each(|id| fire(cluster, id, None));
}

/// Follows what the entry in hand has changed.
pub(crate) fn settle(cluster: &mut Cluster) {
    let touched = std::mem::take(&mut cluster.touched_nodes);
    if cluster.triggers.is_empty() {
        return;
    }
    for name in touched {
        node_changed(cluster, &name);
    }
    let events = cluster.events.clone();
    for event in &events {
        match event {
            Event::JobChanged { job, .. } | Event::JobUpdated { job, .. } => job_changed(cluster, *job),
            Event::JobGone { job, .. } => job_gone(cluster, *job),
            Event::Reconfigured { .. } => happened(cluster, TriggerKind::Reconfig),
            Event::JobSubmitted { .. }
            | Event::StepChanged { .. }
            | Event::BufferChanged { .. }
            | Event::TimeUsed { .. }
            | Event::NodeChanged { .. }
            | Event::ReservationChanged { .. } => (),
        }
    }
}

pub(crate) fn tick(cluster: &mut Cluster) {
    let now = cluster.now;
    let due = |trigger: &&Arc<Trigger>| trigger.look_at.is_some_and(|at| at <= now);
    let due: Vec<u32> = cluster.triggers.values().filter(due).map(|trigger| trigger.id).collect();
    due.into_iter().for_each(|id| look(cluster, id));
}

pub(crate) fn next_deadline(cluster: &Cluster) -> Option<Timestamp> {
    let next = |trigger: &Arc<Trigger>| {
        let fire = trigger.fire.as_ref().map(|fire| fire.at).filter(|at| *at > cluster.now);
        fire.into_iter().chain(trigger.look_at).min()
    };
    cluster.triggers.values().filter_map(next).min()
}

/// To this node.
pub(crate) fn happened_to(cluster: &mut Cluster, kind: TriggerKind, name: &NodeName) {
    let waiting: Vec<u32> = waiting_for(cluster, kind).filter(|id| is_meant(cluster, *id, name)).collect();
    waiting.into_iter().for_each(|id| fire(cluster, id, Some(name)));
}

fn node_changed(cluster: &mut Cluster, name: &NodeName) {
    let before = cluster.node_marks.get(name).cloned().unwrap_or_default();
    let node = cluster.nodes.get(name);
    let after = node.and_then(|node| mark(node)).unwrap_or_default();
    let is_idle = node.is_some_and(|node| is_idle(node));
    let news = [
        (TriggerKind::Down, !before.is_down && after.is_down),
        (TriggerKind::Up, before.is_down && !after.is_down),
        (TriggerKind::Drained, !before.is_drained && after.is_drained),
        (TriggerKind::Draining, !before.is_draining && after.is_draining),
        (TriggerKind::Fail, !before.has_failed && after.has_failed),
    ];
    match after == NodeMark::default() {
        true => cluster.node_marks.remove(name),
        false => cluster.node_marks.insert(name.clone(), after),
    };
    for (kind, _) in news.into_iter().filter(|(_, is_new)| *is_new) {
        happened_to(cluster, kind, name);
    }
    if is_idle {
        let waiting: Vec<u32> =
            waiting_for(cluster, TriggerKind::Idle).filter(|id| is_meant(cluster, *id, name)).collect();
        waiting.into_iter().for_each(|id| look(cluster, id));
    }
}

fn job_changed(cluster: &mut Cluster, id: JobId) {
    let Some(job) = cluster.jobs.get(&id) else { return };
    let has_ended = is_over(job);
    let of_job = cluster.triggers.values().filter(|trigger| trigger.job == Some(id));
    let of_job: Vec<u32> = of_job.map(|trigger| trigger.id).collect();
    for trigger in of_job {
        if has_ended && cluster.triggers[&trigger].kinds.contains(&TriggerKind::Fini) {
            fire(cluster, trigger, None);
        } else {
            look(cluster, trigger);
        }
    }
}

fn job_gone(cluster: &mut Cluster, id: JobId) {
    let useless = cluster.triggers.values().filter(|trigger| trigger.job == Some(id) && trigger.fire.is_none());
    let useless: Vec<u32> = useless.map(|trigger| trigger.id).collect();
    useless.into_iter().for_each(|id| remove(cluster, id));
}

/// Looks whether it is time, and when to look again.
fn look(cluster: &mut Cluster, id: u32) {
    let trigger = &cluster.triggers[&id];
    if trigger.fire.is_some() {
        trigger_mut(cluster, id).look_at = None;
        return;
    }
    let mut next: Option<Timestamp> = None;
    if trigger.kinds.contains(&TriggerKind::Time) {
        let end = trigger.job.and_then(|job| cluster.jobs.get(&job)).filter(|job| job.phase == Phase::Running);
        next = end.and_then(|job| job.end_time()).map(|end| shifted(end, trigger.offset_secs));
        if next.is_some_and(|at| at <= cluster.now) {
            return fire(cluster, id, None);
        }
    }
    if trigger.kinds.contains(&TriggerKind::Idle) {
        let since = |node: &&Arc<Node>| shifted(node.last_busy.unwrap_or_default(), trigger.offset_secs.max(0));
        let idle = cluster.nodes.values().filter(|node| is_idle(node) && is_meant(cluster, id, &node.name));
        let (long, short): (Vec<&Arc<Node>>, Vec<&Arc<Node>>) = idle.partition(|node| since(node) <= cluster.now);
        // Of a permanent one, nodes that it has told of are told of again only when they were busy meanwhile.
        let is_news =
            |node: &&&Arc<Node>| trigger.n_fired == 0 || node.last_busy.is_some_and(|at| at + GATHERING >= cluster.now);
        let long: Vec<NodeName> = long.iter().filter(is_news).map(|node| node.name.clone()).collect();
        next = next.into_iter().chain(short.iter().map(since)).min();
        if !long.is_empty() {
            long.iter().for_each(|name| fire(cluster, id, Some(name)));
            return;
        }
    }
    trigger_mut(cluster, id).look_at = next;
}

fn fire(cluster: &mut Cluster, id: u32, node: Option<&NodeName>) {
    let now = cluster.now;
    let trigger = trigger_mut(cluster, id);
    // What lies before the event has been waited for already.
    let later = Span::from_secs(trigger.offset_secs.max(0) as u64);
    let waited = trigger.kinds.iter().any(|kind| matches!(kind, TriggerKind::Time | TriggerKind::Idle));
    let gathering = if node.is_some() { GATHERING } else { Span(0) };
    let at = now + gathering + if waited { Span(0) } else { later };
    let fire = trigger.fire.get_or_insert_with(|| Fire { at, nodes: BTreeSet::new() });
    fire.nodes.extend(node.cloned());
    trigger.look_at = None;
}

fn waiting_for(cluster: &Cluster, kind: TriggerKind) -> impl Iterator<Item = u32> {
    cluster.triggers.values().filter(move |trigger| trigger.kinds.contains(&kind)).map(|trigger| trigger.id)
}

/// The trigger is about that node.
fn is_meant(cluster: &Cluster, id: u32, name: &NodeName) -> bool {
    let trigger = &cluster.triggers[&id];
    match trigger.job.map(|job| cluster.jobs.get(&job)) {
        Some(job) => job.is_some_and(|job| job.holds_nodes() && job.allocation.names().any(|node| node == name)),
        None => trigger.nodes.is_empty() || trigger.nodes.contains(name),
    }
}

fn remove(cluster: &mut Cluster, id: u32) {
    cluster.triggers.remove(&id);
    if cluster.triggers.is_empty() {
        cluster.node_marks = Default::default();
    }
}

fn trigger_mut(cluster: &mut Cluster, id: u32) -> &mut Trigger {
    Arc::make_mut(cluster.triggers.get_mut(&id).expect("callers look the trigger up first"))
}

/// None: an ordinary node.
fn mark(node: &Node) -> Option<NodeMark> {
    let mark = NodeMark {
        is_down: matches!(node.phase, NodePhase::Lost | NodePhase::Down),
        is_drained: node.drain && node.jobs.is_empty(),
        is_draining: node.drain && !node.jobs.is_empty(),
        has_failed: node.has_failed,
    };
    (mark != NodeMark::default()).then_some(mark)
}

fn is_idle(node: &Node) -> bool {
    node.is_usable() && node.jobs.is_empty()
}

/// It will not run again by itself.
fn is_over(job: &Job) -> bool {
    job.is_over() && !job.requeue
}

fn shifted(at: Timestamp, secs: i64) -> Timestamp {
    let micros = secs.saturating_mul(1_000_000);
    Timestamp(at.0.saturating_add_signed(micros))
}
