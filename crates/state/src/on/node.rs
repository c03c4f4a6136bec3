//! Nodes come, go silent, come back, are drained, taken down and resumed.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::command::Exited;
use model::config::{Config, NamedNode};
use model::gres::Gres;
use model::node::{Machine, Node, NodePhase, NodeReason, NodeStart, Run};
use model::trigger::TriggerKind;
use model::update::NodeChange;
use model::{
    Caller, Duty, Event, ExitStatus, HeldBy, JobId, NodeName, Outcome, Owner, Phase, Reason, Reject, Reply, StepId,
    StepPhase, Task, Timestamp,
};

use super::{Answer, dynamic};
use crate::buffers::life;
use crate::derived::Derived;
use crate::{
    Cluster, chronicle, het, job_life, ledger, limits, on, only_step, reboots, reservations, step_life, triggers,
};

const NOT_RESPONDING: &str = "Not responding";

/// An agent has come, or come back. Its node keeps its state and its jobs; runs that are no longer its own must end first.
pub(crate) fn register(cluster: &mut Cluster, name: &NodeName, machine: &Machine, runs: &[Run]) -> Answer {
    dynamic::come(cluster, name, machine);
    let Some(node) = cluster.nodes.get(name).filter(|node| !node.is_removed) else {
        return Err(Reject::NoSuchNode(name.to_string()));
    };
    let was_lost = node.phase == NodePhase::Lost;
    let now = cluster.now;
    let stale: Vec<Run> = runs.iter().filter(|run| !is_current(cluster, name, run)).cloned().collect();
    // A state that was begun anew must not give the ids again that a node still has something of; others were never given.
    let most = JobId(cluster.config.controller.max_job_id);
    cluster.last_job = stale.iter().map(|run| run.job).filter(|job| *job <= most).fold(cluster.last_job, JobId::max);
    let vanished = vanished_runs(cluster, name, runs);
    let rules = &cluster.config.controller;
    let stays_down = was_lost && !rules.return_to_service;
    let is_restarted = !node.machine.boot_id.is_empty() && node.machine.boot_id != machine.boot_id;
    let is_awaited = node.reboot.as_ref().is_some_and(|reboot| reboot.issued.is_some());
    // Somebody should look why.
    let is_suspect = is_restarted && !is_awaited && !rules.returns_from_down && node.phase != NodePhase::Down;
    let is_new_agent = !node.answers || node.machine.agent_started != machine.agent_started;
    let returns = rules.returns_from_down && node.phase == NodePhase::Down && is_new_agent && !is_awaited;
    dynamic::settle_place(cluster, name, machine, is_restarted);
    let node = cluster.node_mut(name.as_str());
    let known = std::mem::replace(&mut node.machine, machine.clone());
    // A new agent has not looked yet; what was in the way before is still there.
    for report in &mut node.machine.pools {
        let before = known.pools.iter().find(|before| before.pool == report.pool);
        report.foreign_bytes = before.map_or(0, |before| before.foreign_bytes);
    }
    node.attempt += 1;
    node.answers = true;
    node.registered = Some(now);
    node.stale_runs = stale;
    if returns || (node.phase != NodePhase::Down && !stays_down) {
        node.phase = if node.stale_runs.is_empty() { NodePhase::Up } else { NodePhase::Clearing };
        if (was_lost || returns) && !node.drain {
            node.reason = None;
        }
    }
    if stays_down {
        node.phase = NodePhase::Down;
    }
    if is_suspect {
        node.phase = NodePhase::Down;
        if node.reason.as_ref().is_none_or(|reason| reason.text == NOT_RESPONDING) {
            node.reason = Some(NodeReason { text: "Node unexpectedly rebooted".into(), by_uid: 0, at: now });
        }
    }
    reboots::came(cluster, name);
    set_duty(cluster, name);
    if is_restarted {
        life::node_restarted(cluster, name);
    }
    life::node_came(cluster);
    freeze_again(cluster, name);
    for id in vanished {
        lose_run(cluster, id, name);
    }
    if is_suspect {
        fail_jobs_but(cluster, name, runs);
    }
    changed(cluster, name);
    Ok(Reply::Ok)
}

/// A run that is being ended counts as stale: whoever waits for its end may have stopped waiting for a node that was away.
fn is_current(cluster: &Cluster, node: &NodeName, run: &Run) -> bool {
    cluster.jobs.get(&run.job).is_some_and(|job| {
        let is_live = matches!(job.phase, Phase::Starting | Phase::Running | Phase::Suspended);
        is_live && job.attempt == run.attempt && job.allocation.share(node.as_str()).is_some()
    })
}

/// Jobs whose processes should be on the node, but are not known there any more: the machine has been restarted.
fn vanished_runs(cluster: &Cluster, name: &NodeName, runs: &[Run]) -> Vec<JobId> {
    let known: BTreeSet<(JobId, u32)> = runs.iter().map(|run| (run.job, run.attempt)).collect();
    let node = &cluster.nodes[name];
    let is_gone = |id: &&JobId| {
        let job = &cluster.jobs[*id];
        let launched = matches!(job.phase, Phase::Running | Phase::Suspended);
        let batch_here = job.runs_script() && job.script_node() == Some(name);
        let step_here = cluster.steps_of(**id).any(|step| {
            step.phase == StepPhase::Running
                && step.shares.iter().any(|share| share.node == *name)
                && !step.ended_nodes.contains(name)
        });
        launched && (batch_here || step_here) && !known.contains(&(**id, job.attempt))
    };
    node.jobs.iter().filter(is_gone).copied().collect()
}

/// A restarted machine no longer knows what is to stand still there.
fn freeze_again(cluster: &mut Cluster, name: &NodeName) {
    let jobs: Vec<JobId> = cluster.nodes[name].jobs.iter().copied().collect();
    for id in jobs {
        if cluster.jobs[&id].phase == Phase::Suspended {
            cluster.job_mut(id).done.remove(&Task::Stop);
            cluster.unsettled.insert(id);
        }
    }
}

/// A job's processes on the node are gone without a report.
fn lose_run(cluster: &mut Cluster, id: JobId, name: &NodeName) {
    let job = &cluster.jobs[&id];
    if job.runs_script() && job.script_node() == Some(name) {
        return node_failed(cluster, id);
    }
    // Steps that are being launched are launched again; steps that are being ended need no more.
    let was_there = |step: &&Arc<model::Step>| {
        step.phase == StepPhase::Running && step.shares.iter().any(|share| share.node == *name)
    };
    let launched: Vec<StepId> = cluster.steps_of(id).filter(was_there).map(|step| step.id).collect();
    for step in launched {
        let exit = ExitStatus::signaled(9);
        step_life::node_ended(cluster, &Exited { job: id, step, node: name.clone(), exit, ..Default::default() });
        only_step::ended(cluster, id, step);
    }
    cluster.unsettled.insert(id);
}

pub(crate) fn lost(cluster: &mut Cluster, name: &NodeName) -> Answer {
    let node = cluster.nodes.get(name).ok_or_else(|| Reject::NoSuchNode(name.to_string()))?;
    if !node.answers {
        return Err(Reject::Stale);
    }
    let now = cluster.now;
    let node = cluster.node_mut(name.as_str());
    node.answers = false;
    if node.phase != NodePhase::Down {
        node.phase = NodePhase::Lost;
        node.reason.get_or_insert(NodeReason { text: NOT_RESPONDING.into(), by_uid: 0, at: now });
    }
    set_duty(cluster, name);
    fail_jobs(cluster, name);
    life::node_lost(cluster, name);
    changed(cluster, name);
    Ok(Reply::Ok)
}

/// The stale runs of a node that came back have ended.
pub(crate) fn cleared(cluster: &mut Cluster, name: &NodeName) {
    let node = cluster.node_mut(name.as_str());
    node.stale_runs.clear();
    if node.phase == NodePhase::Clearing {
        node.phase = NodePhase::Up;
    }
    set_duty(cluster, name);
    changed(cluster, name);
}

pub(crate) fn update(cluster: &mut Cluster, by: Caller, names: &[NodeName], change: &NodeChange) -> Answer {
    if !by.is_admin {
        return Err(Reject::NotPermitted);
    }
    match change {
        NodeChange::Create(config) => return dynamic::create(cluster, names, config),
        NodeChange::Delete => return dynamic::delete(cluster, names),
        _ => (),
    }
    if let Some(unknown) = names.iter().find(|name| !cluster.nodes.contains_key(*name)) {
        return Err(Reject::NoSuchNode(unknown.to_string()));
    }
    for name in names {
        check_change(&cluster.nodes[name], change)?;
    }
    if let NodeChange::Topology(Some(place)) = change {
        dynamic::has_place(cluster, place)?;
    }
    if let NodeChange::InstanceIds(given) | NodeChange::InstanceTypes(given) = change
        && given.len() > 1
        && given.len() != names.len()
    {
        return Err(Reject::InvalidValue(format!("instances: {} names, {} nodes", given.len(), names.len())));
    }
    for (place, name) in names.iter().enumerate() {
        let own = |given: &[String]| given.get(place.min(given.len().saturating_sub(1))).cloned().unwrap_or_default();
        match change {
            NodeChange::InstanceIds(given) => cluster.node_mut(name.as_str()).instance_id = own(given),
            NodeChange::InstanceTypes(given) => cluster.node_mut(name.as_str()).instance_type = own(given),
            _ => change_node(cluster, by, name, change),
        }
        changed(cluster, name);
    }
    Ok(Reply::Ok)
}

fn check_change(node: &Node, change: &NodeChange) -> Result<(), Reject> {
    match change {
        NodeChange::Drain { reason } | NodeChange::Down { reason } | NodeChange::Fail { reason }
            if reason.is_empty() && node.reason.is_none() =>
        {
            Err(Reject::ReasonRequired)
        }
        NodeChange::Resume if node.phase == NodePhase::Up && !node.drain && node.reboot.is_none() => {
            Err(Reject::InvalidNodeState)
        }
        NodeChange::Idle
            if node.phase == NodePhase::Up && !node.drain && node.reboot.is_none() && !node.jobs.is_empty() =>
        {
            Err(Reject::InvalidNodeState)
        }
        NodeChange::CancelReboot if node.reboot.as_ref().is_none_or(|reboot| reboot.issued.is_some()) => {
            Err(Reject::InvalidNodeState)
        }
        NodeChange::ActiveFeatures(active) if active.iter().any(|one| !node.config.features.contains(one)) => {
            Err(Reject::BadActiveFeatures)
        }
        NodeChange::Gres(gres) if !keeps_devices(node, gres) => Err(Reject::StepGres),
        NodeChange::Gres(gres) if !has_units_in_use(node, gres) => Err(Reject::NodesBusy(node.name.to_string())),
        _ => Ok(()),
    }
}

/// Devices that files stand for are as many as their files, or none.
fn keeps_devices(node: &Node, gres: &[Gres]) -> bool {
    let with_files: Vec<&Gres> = node.config.gres.iter().filter(|own| !own.files.is_empty()).collect();
    let stands = |one: &Gres| {
        let mut of_name = with_files.iter().filter(|own| own.name == one.name).peekable();
        of_name.peek().is_none() || of_name.any(|own| own.kind == one.kind && own.count == one.count)
    };
    gres.iter().all(|one| one.count == 0 || stands(one))
}

/// What jobs use now must stay.
fn has_units_in_use(node: &Node, gres: &[Gres]) -> bool {
    let count = |list: &mut dyn Iterator<Item = (&String, u32)>, name: &String| -> u32 {
        list.filter(|(one, _)| *one == name).map(|(_, count)| count).sum()
    };
    node.used.gres.iter().all(|used| {
        let in_use = count(&mut node.used.gres.iter().map(|one| (&one.name, one.units.len())), &used.name);
        in_use <= count(&mut gres.iter().map(|one| (&one.name, one.count)), &used.name)
    })
}

fn change_node(cluster: &mut Cluster, by: Caller, name: &NodeName, change: &NodeChange) {
    let at = cluster.now;
    let node = cluster.node_mut(name.as_str());
    let note = |node: &mut Node, text: &str| {
        if !text.is_empty() {
            node.reason = Some(NodeReason { text: text.into(), by_uid: by.uid, at });
        }
    };
    match change {
        NodeChange::Drain { reason } => {
            node.drain = true;
            note(node, reason);
        }
        NodeChange::Undrain => {
            node.drain = false;
            node.has_failed = false;
            node.reason = None;
        }
        NodeChange::Fail { reason } => {
            node.drain = true;
            node.has_failed = true;
            note(node, reason);
        }
        NodeChange::NotResponding => {
            node.answers = false;
            if node.phase != NodePhase::Down {
                node.phase = NodePhase::Lost;
            }
            set_duty(cluster, name);
        }
        NodeChange::Down { reason } => {
            node.phase = NodePhase::Down;
            note(node, reason);
            fail_jobs(cluster, name);
        }
        NodeChange::Resume | NodeChange::Idle => {
            node.drain = false;
            node.has_failed = false;
            node.reason = None;
            node.reboot = None;
            if node.phase == NodePhase::Down {
                node.phase = match (node.answers, node.stale_runs.is_empty()) {
                    (true, true) => NodePhase::Up,
                    (true, false) => NodePhase::Clearing,
                    (false, _) => NodePhase::Lost,
                };
            }
            cluster.reboots.remove(name);
            set_duty(cluster, name);
            if *change == NodeChange::Resume {
                triggers::happened_to(cluster, TriggerKind::Resume, name);
            }
        }
        NodeChange::Reason(text) => note(node, text),
        NodeChange::Features(features) => {
            node.config.features = features.clone();
            node.active_features = None;
        }
        NodeChange::ActiveFeatures(features) => node.active_features = Some(features.clone()),
        NodeChange::Gres(gres) => {
            let before = std::mem::take(&mut node.config.gres);
            node.config.gres = gres.clone();
            for one in &mut node.config.gres {
                let same =
                    before.iter().find(|own| own.name == one.name && own.kind == one.kind && own.count == one.count);
                one.files = same.map_or(Vec::new(), |own| own.files.clone());
                one.is_explicit = before.iter().any(|own| own.name == one.name && own.is_explicit);
            }
        }
        NodeChange::Comment(text) => node.comment = text.clone(),
        NodeChange::Extra(text) => node.extra = text.clone(),
        NodeChange::Weight(weight) => node.config.weight = *weight,
        NodeChange::Topology(place) => {
            node.topology = place.clone();
            cluster.network = Derived::default();
        }
        NodeChange::Reboot { is_asap, next, reason } => reboots::request(cluster, by, name, *is_asap, *next, reason),
        NodeChange::CancelReboot => reboots::cancel(cluster, name),
        NodeChange::InstanceIds(_) | NodeChange::InstanceTypes(_) => unreachable!("each node has its own"),
        NodeChange::Create(_) | NodeChange::Delete => unreachable!("these concern nodes as a whole"),
    }
}

fn fail_jobs(cluster: &mut Cluster, name: &NodeName) {
    fail_jobs_but(cluster, name, &[]);
}

/// Those of which the node still has something to tell are left to that.
fn fail_jobs_but(cluster: &mut Cluster, name: &NodeName, runs: &[Run]) {
    let is_known = |id: &JobId| runs.iter().any(|run| run.job == *id && run.attempt == cluster.jobs[id].attempt);
    let jobs: Vec<JobId> = cluster.nodes[name].jobs.iter().copied().filter(|id| !is_known(id)).collect();
    for id in jobs {
        match goes_on_without(cluster, id, name) {
            true => do_without(cluster, id, name),
            // What it was ending there cannot be waited for; the runner looks again.
            false => node_failed(cluster, id),
        }
    }
}

/// `--no-kill`: a job that runs on others too, and whose script is not there, keeps those.
fn goes_on_without(cluster: &Cluster, id: JobId, name: &NodeName) -> bool {
    let job = &cluster.jobs[&id];
    job.spec.no_kill
        && matches!(job.phase, Phase::Running | Phase::Suspended)
        && job.allocation.nodes.len() > 1
        // What a buffer holds there cannot be done without.
        && job.buffer.is_none()
        && !(job.runs_script() && job.script_node() == Some(name))
}

/// Steps lose their tasks there; those that were just being launched cannot be.
fn do_without(cluster: &mut Cluster, id: JobId, name: &NodeName) {
    let uses_it = |step: &&Arc<model::Step>| {
        step.phase == StepPhase::Starting && step.shares.iter().any(|share| share.node == *name)
    };
    let starting: Vec<StepId> = cluster.steps_of(id).filter(uses_it).map(|step| step.id).collect();
    for step in starting {
        het::end_step(cluster, id, step);
    }
    let was_left = leave(cluster, id, &BTreeSet::from([name.clone()]));
    if was_left {
        limits::keep(cluster, id);
        on::job::touched(cluster, id);
    }
}

/// The job goes on without these nodes, and its steps without the tasks they have there; whether it goes on at all.
pub(super) fn leave(cluster: &mut Cluster, id: JobId, gone: &BTreeSet<NodeName>) -> bool {
    for name in gone {
        lose_run(cluster, id, name);
        if !cluster.jobs[&id].holds_nodes() || cluster.jobs[&id].phase == Phase::Ending {
            return false;
        }
    }
    let kept = cluster.jobs[&id].allocation.names().filter(|one| !gone.contains(*one)).cloned().collect();
    ledger::shrink(cluster, id, &kept);
    // What is left of its steps is on the others.
    for step in step_life::live(cluster, id) {
        cluster.step_mut(id, step).shares.retain(|share| !gone.contains(&share.node));
    }
    // One that still answers must end what runs there, before others have it; a lost one tells when it comes back.
    let run = Run { job: id, attempt: cluster.jobs[&id].attempt };
    let may_wait = cluster.rules() >= 2;
    // One that was removed has gone with its last job.
    for name in gone.iter().filter(|name| cluster.nodes.contains_key(*name)).cloned().collect::<Vec<_>>() {
        let node = cluster.node_mut(name.as_str());
        if !node.answers || node.stale_runs.contains(&run) {
            continue;
        }
        node.stale_runs.push(run.clone());
        let is_kept_from_others = may_wait && node.phase == NodePhase::Up;
        if is_kept_from_others {
            node.phase = NodePhase::Clearing;
        }
        set_duty(cluster, &name);
        if is_kept_from_others {
            changed(cluster, &name);
        }
    }
    true
}

fn node_failed(cluster: &mut Cluster, id: JobId) {
    let job = &cluster.jobs[&id];
    let requeues = job.spec.is_batch() && job.spec.requeue.unwrap_or(cluster.config.scheduler.requeues);
    let was_suspended = job.is_suspended_by_hand();
    if !job_life::end(cluster, id, Outcome::NodeFail, Some(Reason::NodeDown)) {
        return;
    }
    let job = cluster.job_mut(id);
    job.requeue = requeues;
    if requeues && was_suspended {
        job.held = Some(HeldBy::Admin);
    }
    cluster.unsettled.insert(id);
}

/// Nodes where the site's own program failed take no more jobs. Who drained one before has the better reason.
pub(crate) fn drain_after(cluster: &mut Cluster, names: &[NodeName], text: &str) {
    let at = cluster.now;
    for name in names {
        if cluster.nodes.get(name).is_none_or(|node| node.drain) {
            continue;
        }
        let node = cluster.node_mut(name.as_str());
        node.drain = true;
        node.reason = Some(NodeReason { text: text.into(), by_uid: 0, at });
        changed(cluster, name);
    }
}

/// A node with stale runs has the duty to end them, as long as it answers.
fn set_duty(cluster: &mut Cluster, name: &NodeName) {
    let node = &cluster.nodes[name];
    let owner = Owner::Node(name.clone());
    if node.answers && !node.stale_runs.is_empty() {
        let duty = Duty { owner: owner.clone(), attempt: node.attempt, task: Task::Clear, sequence: 0 };
        cluster.duties.insert(owner, duty);
    } else if !reboots::set_duty(cluster, name) {
        cluster.duties.remove(&owner);
    }
}

pub(crate) fn changed(cluster: &mut Cluster, name: &NodeName) {
    let at = cluster.now;
    chronicle::note_node(cluster, name);
    reservations::node_changed(cluster, name);
    cluster.tell(Event::NodeChanged { node: name.clone(), at });
}

/// What was changed of nodes at run time (features, weights, devices) is as the configuration has it again.
pub(crate) fn forget_changes(cluster: &mut Cluster) {
    let config = cluster.config.clone();
    for named in &config.nodes {
        let Some(node) = cluster.nodes.get(&named.name) else { continue };
        if node.config != named.config || node.active_features.is_some() {
            let node = cluster.node_mut(named.name.as_str());
            node.config = named.config.clone();
            node.active_features = None;
            changed(cluster, &named.name);
        }
    }
}

/// Makes the nodes those of the configuration; nodes that are gone from it stay until their last job has left.
pub(crate) fn configure(cluster: &mut Cluster) {
    let config = cluster.config.clone();
    let wanted: BTreeSet<&NodeName> = config.nodes.iter().map(|node| &node.name).collect();
    let in_order = topology::in_order(&config);
    let ranks: BTreeMap<&NodeName, u32> = in_order.iter().zip(0..).collect();
    let mut partitions = partitions_of_nodes(&config);
    for named in &config.nodes {
        let rank = ranks[&named.name];
        let partitions = partitions.remove(&named.name).unwrap_or_default();
        match cluster.nodes.get_mut(&named.name) {
            Some(node) => {
                let node = Arc::make_mut(node);
                if node.config != named.config {
                    node.active_features = None;
                }
                node.config = named.config.clone();
                node.rank = rank;
                node.partitions = partitions;
                node.is_removed = false;
            }
            None => {
                let node = Node { partitions, ..first_seen(named, rank, cluster.now) };
                cluster.nodes.insert(named.name.clone(), Arc::new(node));
            }
        }
    }
    let gone: Vec<NodeName> = cluster.nodes.keys().filter(|name| !wanted.contains(name)).cloned().collect();
    for name in gone {
        cluster.duties.remove(&Owner::Node(name.clone()));
        reboots::forget(cluster, &name);
        life::node_removed(cluster, &name);
        if cluster.nodes[&name].jobs.is_empty() {
            cluster.nodes.remove(&name);
        } else {
            cluster.node_mut(name.as_str()).is_removed = true;
        }
    }
}

/// Makes the nodes members of the partitions of the configuration.
pub(crate) fn configure_partitions(cluster: &mut Cluster) {
    let config = cluster.config.clone();
    let mut partitions = partitions_of_nodes(&config);
    let names: Vec<NodeName> = cluster.nodes.keys().cloned().collect();
    for name in names {
        let own = partitions.remove(&name).unwrap_or_default();
        if cluster.nodes[&name].partitions != own {
            cluster.node_mut(name.as_str()).partitions = own;
        }
    }
}

fn partitions_of_nodes(config: &Config) -> BTreeMap<&NodeName, Vec<String>> {
    let mut partitions: BTreeMap<&NodeName, Vec<String>> = BTreeMap::new();
    for partition in &config.partitions {
        let members: BTreeSet<&NodeName> = partition.nodes.iter().collect();
        members.into_iter().for_each(|name| partitions.entry(name).or_default().push(partition.name.clone()));
    }
    partitions
}

/// A node as its configuration wants it to begin.
fn first_seen(named: &NamedNode, rank: u32, now: Timestamp) -> Node {
    let start = named.config.starts_as;
    let mut node = Node { name: named.name.clone(), rank, config: named.config.clone(), ..Default::default() };
    node.drain = start == NodeStart::Drained;
    if start == NodeStart::Down {
        node.phase = NodePhase::Down;
    }
    if start != NodeStart::Usable {
        let text = match named.config.start_reason.as_str() {
            "" => "set in the configuration".into(),
            reason => reason.to_string(),
        };
        node.reason = Some(NodeReason { text, by_uid: 0, at: now });
    }
    node
}
