//! Who may take whose place, and how: the one answer that scheduler, adoption and display share.
use std::collections::BTreeMap;
use std::sync::Arc;

use model::accounts::Qos;
use model::job::Remark;
use model::partition::PreemptMode;
use model::plan::Preemption;
use model::preemption::PreemptKind;
use model::time::Span;
use model::{Job, Outcome, Partition, Phase, Timestamp};

use crate::on::job::touched;
use crate::{Cluster, features};

/// How a job gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// CANCEL, REQUEUE or SUSPEND.
    pub mode: PreemptMode,
    /// So long it may go on once it has been told.
    pub grace: Span,
    /// Until then it is left alone.
    pub exempt_until: Timestamp,
}

/// How `victim`, which runs, would give way to `by` if that were to start in `partition`. None: it would not.
pub fn terms(cluster: &Cluster, by: &Job, partition: &Partition, victim: &Job) -> Option<Terms> {
    if let Some(terms) = terms_of_reservation(cluster, by, victim) {
        return Some(terms);
    }
    let rules = &cluster.config.scheduler.preemption;
    let is_exempt = rules.min_exempt_priority.is_some_and(|least| victim.priority >= least);
    if is_exempt || !outranks(cluster, by, partition, victim) {
        return None;
    }
    let own = cluster.config.partition(&victim.partition);
    let (mode, grace, exempt) = match (rules.kind, qos_of(cluster, victim)) {
        (PreemptKind::Nothing, _) => return None,
        (PreemptKind::Qos, Some(qos)) => {
            let mode = PreemptMode::parse(&qos.preempt_mode).unwrap_or(rules.mode);
            let exempt = qos.preempt_exempt_secs.map(|secs| Span::from_secs(secs.into()));
            (mode, Span::from_secs(qos.grace_secs.into()), exempt)
        }
        (PreemptKind::PartitionTier | PreemptKind::Qos, _) => {
            let mode = own.and_then(|own| own.preempt_mode).unwrap_or(rules.mode);
            (mode, own.map(|own| own.grace_time).unwrap_or_default(), None)
        }
    };
    let mode = match mode {
        PreemptMode::Cancel | PreemptMode::Requeue | PreemptMode::Suspend => mode,
        PreemptMode::SuspendGang => PreemptMode::Suspend,
        PreemptMode::Off | PreemptMode::Gang | PreemptMode::Within => return None,
    };
    let exempt_until = victim.started? + exempt.unwrap_or(rules.exempt_time);
    // Frozen processes hear no warning.
    let grace = if victim.phase == Phase::Suspended { Span(0) } else { grace };
    Some(Terms { mode, grace, exempt_until })
}

/// A job that ran into a reservation (`--signal=R:`) goes when one of the reservation's own needs its place, whatever the site's
/// rules: it hears its own signal, and has the time it asked for with it.
fn terms_of_reservation(cluster: &Cluster, by: &Job, victim: &Job) -> Option<Terms> {
    let warning = victim.spec.warning.as_ref().filter(|warning| warning.overlaps_reservations)?;
    let is_right = |reservation: &&Arc<model::Reservation>| {
        let is_outside = reservation.name != victim.reservation && reservation.waits_for(&victim.spec);
        is_outside && victim.allocation.names().any(|node| reservation.nodes.contains(node))
    };
    cluster.reservations_for(by).into_iter().find(is_right)?;
    let grace = if victim.phase == Phase::Suspended { Span(0) } else { warning.before };
    Some(Terms { mode: PreemptMode::Requeue, grace, exempt_until: victim.started? })
}

/// Some reservation lets jobs run into it that must go again.
pub fn reservations_preempt(cluster: &Cluster) -> bool {
    cluster.reservations().any(|reservation| reservation.max_start_delay.is_some())
}

/// Whether `by`, in that partition, goes before `victim`, which runs.
pub(crate) fn outranks(cluster: &Cluster, by: &Job, partition: &Partition, victim: &Job) -> bool {
    let rules = &cluster.config.scheduler.preemption;
    match rules.kind {
        PreemptKind::Nothing => false,
        PreemptKind::PartitionTier => {
            let tier = cluster.config.partition(&victim.partition).map(|own| own.priority_tier);
            tier.is_some_and(|tier| tier < partition.priority_tier)
        }
        PreemptKind::Qos => {
            let is_within = by.spec.qos == victim.spec.qos && by.priority > victim.priority;
            qos_of(cluster, by).is_some_and(|qos| {
                let within = rules.is_within_qos || PreemptMode::parse(&qos.preempt_mode) == Some(PreemptMode::Within);
                qos.preempt.contains(&victim.spec.qos) || (within && is_within)
            })
        }
    }
}

/// How strong jobs are against each other: whoever goes before another is stronger.
pub(crate) struct Strengths {
    by_qos: Option<BTreeMap<String, u32>>,
}

impl Strengths {
    pub fn of(&self, cluster: &Cluster, job: &Job) -> u32 {
        match &self.by_qos {
            Some(by_qos) => by_qos.get(&job.spec.qos).copied().unwrap_or(0),
            None => rank(cluster, job),
        }
    }
}

pub(crate) fn strengths(cluster: &Cluster) -> Strengths {
    if cluster.config.scheduler.preemption.kind != PreemptKind::Qos {
        return Strengths { by_qos: None };
    }
    // One more than the strongest it goes before; a circle of QOS ends somewhere.
    let all = &cluster.accounts.qos;
    let mut by_qos: BTreeMap<String, u32> = all.keys().map(|name| (name.clone(), 0)).collect();
    for _ in 0..all.len() {
        for (name, qos) in all {
            let below = qos.preempt.iter().filter_map(|other| by_qos.get(other)).max();
            let strength = below.map_or(0, |below| (below + 1).min(all.len() as u32));
            by_qos.insert(name.clone(), strength);
        }
    }
    Strengths { by_qos: Some(by_qos) }
}

/// It may be made to stand still for another.
pub fn may_stand_still(job: &Job) -> bool {
    let stands = job.phase == Phase::Suspended && job.is_parked;
    let goes = matches!(job.phase, Phase::Starting | Phase::Running) && !job.is_being_prepared();
    (goes || stands) && job.het.is_none() && job.preempt_ends.is_none()
}

/// The job could go before somebody in that partition, when the lowest of those that run has this rank.
pub fn goes_before_some(cluster: &Cluster, job: &Job, partition: &Partition, lowest: u32) -> bool {
    if cluster.reservations_for(job).iter().any(|reservation| reservation.max_start_delay.is_some()) {
        return true;
    }
    let rules = &cluster.config.scheduler.preemption;
    match rules.kind {
        PreemptKind::Nothing => false,
        PreemptKind::PartitionTier => partition.priority_tier > lowest,
        PreemptKind::Qos => qos_of(cluster, job)
            .is_some_and(|qos| !qos.preempt.is_empty() || rules.is_within_qos || qos.preempt_mode == "within"),
    }
}

/// Of those who may be preempted, the lowest go first.
pub fn rank(cluster: &Cluster, job: &Job) -> u32 {
    match cluster.config.scheduler.preemption.kind {
        PreemptKind::Qos => qos_of(cluster, job).map_or(0, |qos| qos.priority),
        PreemptKind::Nothing | PreemptKind::PartitionTier => {
            cluster.config.partition(&job.partition).map_or(0, |partition| partition.priority_tier)
        }
    }
}

fn qos_of<'c>(cluster: &'c Cluster, job: &Job) -> Option<&'c Qos> {
    cluster.accounts.qos.get(&job.spec.qos)
}

/// It runs, or stands still, and nobody has told it to go.
pub fn may_be_told(job: &Job) -> bool {
    matches!(job.phase, Phase::Running | Phase::Suspended) && job.preempt_ends.is_none()
}

/// Tells the job to make room, if all is still as it was when the plan was made; says whether it was told.
pub(crate) fn begin(cluster: &mut Cluster, preemption: &Preemption) -> bool {
    let (Some(victim), Some(by)) = (cluster.jobs.get(&preemption.job), cluster.jobs.get(&preemption.by)) else {
        return false;
    };
    let partitions = by.spec.partitions.iter().filter_map(|name| cluster.config.partition(name));
    let taking = partitions.filter(|partition| features::partition_refusal(cluster, partition, by).is_none());
    let found = taking.into_iter().find_map(|partition| {
        let terms = terms(cluster, by, partition, victim)?;
        let is_due = terms.mode != PreemptMode::Suspend && terms.exempt_until <= cluster.now;
        is_due.then(|| (terms, partition.name.clone()))
    });
    let is_right = cluster.is_eligible(by) && victim.attempt == preemption.attempt && may_be_told(victim);
    let Some((terms, partition)) = found.filter(|_| is_right) else { return false };
    let may_run_again = victim.spec.is_batch() && victim.spec.requeue.unwrap_or(cluster.config.scheduler.requeues);
    let text = format!("preempted by job {}, which runs in partition {partition}", preemption.by);
    let now = cluster.now;
    cluster.claims.insert(preemption.by);
    let job = cluster.job_mut(preemption.job);
    job.preempted_at = Some(now);
    job.preempted_by = Some(preemption.by);
    job.preempt_ends = Some(now + terms.grace);
    job.preempt_requeues = terms.mode == PreemptMode::Requeue && may_run_again;
    job.remarks.push(Remark { at: now, text });
    touched(cluster, preemption.job);
    true
}

/// A job that fails while it makes room was preempted; one that ends well has made room by itself.
pub(crate) fn outcome_of(job: &Arc<Job>, outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Failed if job.preempt_ends.is_some() => Outcome::Preempted,
        outcome => outcome,
    }
}
