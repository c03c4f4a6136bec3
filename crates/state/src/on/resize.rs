//! What changes while a job runs: it gives nodes back, its steps get another time limit, its last end is said to be special.
use std::collections::BTreeSet;

use model::spec::TimeLimit;
use model::update::{JobChanges, StepLimit};
use model::{Caller, HeldBy, Job, JobId, NodeName, Phase, Reject, Step, StepId, StepPhase};

use super::node;
use crate::{Cluster, ledger};

/// The nodes that a running job is to keep, if the changes are about that.
pub(super) fn kept_nodes(
    cluster: &Cluster,
    job: &Job,
    changes: &JobChanges,
) -> Result<Option<BTreeSet<NodeName>>, Reject> {
    let asks = changes.nodes.is_some() || changes.min_nodes.is_some();
    // A script may ask before its start is confirmed.
    if !asks || !matches!(job.phase, Phase::Starting | Phase::Running) {
        return Ok(None);
    }
    if job.phase == Phase::Starting && (job.hook.is_some() || cluster.config.hooks.on_nodes()) {
        return Err(Reject::JobSuspended);
    }
    if job.het.is_some() {
        return Err(Reject::HetComponent);
    }
    let held: Vec<&NodeName> = job.allocation.names().collect();
    let kept: BTreeSet<NodeName> = match (&changes.nodes, changes.max_nodes.or(changes.min_nodes)) {
        (Some(names), _) => names.iter().cloned().collect(),
        (None, Some(count)) => held.iter().take(count as usize).map(|name| (*name).clone()).collect(),
        (None, None) => return Ok(None),
    };
    let grows = changes.nodes.is_none() && changes.min_nodes.is_some_and(|least| least as usize > held.len());
    if grows {
        return Err(Reject::NotSupported);
    }
    if let Some(other) = kept.iter().find(|name| !held.contains(name)) {
        return Err(Reject::NoSuchNode(other.to_string()));
    }
    if kept.is_empty() {
        return Err(Reject::TooManyNodes);
    }
    if job.runs_script() && job.script_node().is_some_and(|first| !kept.contains(first)) {
        return Err(Reject::NodesAreBusy);
    }
    // What the site, or a burst buffer, has done on a node must be undone there before others have it.
    if !cluster.config.hooks.epilog.is_empty() || job.buffer.is_some() {
        return Err(Reject::NotSupported);
    }
    // Tasks that run there are ended; what is just being started, or ended, has to come to that first.
    let may_lose = |step: &Step| step.phase == StepPhase::Running && cluster.rules() >= 2;
    let leaves = |step: &Step| step.shares.iter().any(|share| !kept.contains(&share.node));
    if cluster.steps_of(job.id).any(|step| step.is_live() && leaves(step) && !may_lose(step)) {
        return Err(Reject::NodesAreBusy);
    }
    Ok(Some(kept))
}

/// Nodes on which nothing runs are free at once, others when what runs there has ended.
pub(super) fn shrink(cluster: &mut Cluster, id: JobId, kept: &BTreeSet<NodeName>) {
    if cluster.jobs[&id].allocation.nodes.len() == kept.len() {
        return;
    }
    let live = cluster.steps_of(id).filter(|step| step.is_live());
    let used = live.flat_map(|step| step.shares.iter().map(|share| share.node.clone()));
    let cut: BTreeSet<NodeName> = used.filter(|name| !kept.contains(name)).collect();
    if cut.is_empty() || node::leave(cluster, id, &cut) {
        ledger::shrink(cluster, id, kept);
    }
}

/// A user may only shorten what an administrator may change as well.
pub(super) fn limit_steps(cluster: &mut Cluster, by: Caller, id: JobId, wish: &StepLimit) -> Result<(), Reject> {
    let limit = match wish.minutes {
        StepLimit::UNLIMITED => TimeLimit::Unlimited,
        minutes => TimeLimit::Secs(u64::from(minutes) * 60),
    };
    let is_meant = |step: &Step| step.is_live() && wish.step.is_none_or(|wanted| wanted == step.id);
    let steps: Vec<(StepId, Option<TimeLimit>)> =
        cluster.steps_of(id).filter(|step| is_meant(step)).map(|step| (step.id, step.spec.time_limit)).collect();
    if steps.is_empty() {
        return Err(Reject::NoSuchStep);
    }
    let is_longer = |old: &Option<TimeLimit>| old.is_some_and(|old| limit > old);
    if !by.is_admin && steps.iter().any(|(_, old)| is_longer(old)) {
        return Err(Reject::NotPermitted);
    }
    for (step, _) in steps {
        cluster.step_mut(id, step).spec.time_limit = Some(limit);
    }
    Ok(())
}

/// Only of a job that was requeued to be held.
pub(super) fn note_special_exit(cluster: &mut Cluster, id: JobId) -> Result<(), Reject> {
    if !matches!(cluster.jobs[&id].held, Some(HeldBy::Requeue | HeldBy::SpecialExit)) {
        return Err(Reject::JobRunning);
    }
    cluster.job_mut(id).held = Some(HeldBy::SpecialExit);
    Ok(())
}
