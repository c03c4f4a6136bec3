//! Jobs that hold the same CPUs: who of them runs now, and who stands still.
//!
//! A job stands still while one that goes before it holds CPUs of its own: one that preempts by suspension, or, where jobs take
//! turns, one of its partition whose turn is before its own. All others run. Nothing is remembered but the turns, so that whatever
//! happens is followed by looking again.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::node::NodePhase;
use model::partition::{OverSubscribe, PreemptMode};
use model::{Command, CpuSet, Job, JobId, NodeName, Phase, Timestamp};

use crate::job_life::{self, Step};
use crate::{Cluster, preemption};

/// Looks again who stands still, if anything about shared CPUs has changed.
pub(crate) fn settle(cluster: &mut Cluster) {
    if !std::mem::take(&mut cluster.sharing_changed) {
        return;
    }
    let verdict = judge(cluster);
    cluster.slice_ends = match (verdict.somebody_waits_for_a_turn, cluster.slice_ends) {
        (true, None) => Some(cluster.now + cluster.config.scheduler.preemption.time_slice),
        (true, ends) => ends,
        (false, _) => None,
    };
    for id in verdict.stand_still {
        park(cluster, id);
    }
    for id in verdict.go_on {
        let resumed = job_life::take(cluster, id, Step::Resume);
        debug_assert!(resumed, "only suspended jobs go on");
        cluster.unsettled.insert(id);
    }
}

/// What changes rules, nodes or jobs may change who goes before whom.
pub(crate) fn heed(cluster: &mut Cluster, command: &Command) {
    let concerns = matches!(
        command,
        Command::UpdateJob { .. }
            | Command::ChangeAccounts { .. }
            | Command::UpdateNodes { .. }
            | Command::RegisterNode { .. }
            | Command::NodeLost { .. }
            | Command::UpdatePartition { .. }
    );
    cluster.sharing_changed |= concerns && (!cluster.parked.is_empty() || !cluster.shared_nodes.is_empty());
}

/// The turn is over: those who ran stand behind the others.
pub(crate) fn tick(cluster: &mut Cluster) {
    if cluster.slice_ends.is_none_or(|ends| cluster.now < ends) {
        return;
    }
    let mut ran: Vec<(u64, JobId)> = involved(cluster)
        .into_iter()
        .filter(|job| takes_turns(cluster, job) && matches!(job.phase, Phase::Starting | Phase::Running))
        .map(|job| (job.turn, job.id))
        .collect();
    ran.sort_unstable();
    for (_, id) in ran {
        give_turn(cluster, id);
    }
    cluster.slice_ends = Some(cluster.now + cluster.config.scheduler.preemption.time_slice);
    cluster.sharing_changed = true;
}

pub(crate) fn next_deadline(cluster: &Cluster) -> Option<Timestamp> {
    cluster.slice_ends
}

/// The last place among those who take turns.
pub(crate) fn give_turn(cluster: &mut Cluster, id: JobId) {
    cluster.last_turn += 1;
    let turn = cluster.last_turn;
    cluster.job_mut(id).turn = turn;
}

/// `victim` would stand still for `by`, were that to start in the partition now.
pub(crate) fn may_park(cluster: &Cluster, by: &Job, partition: &model::Partition, victim: JobId) -> bool {
    cluster.jobs.get(&victim).is_some_and(|victim| {
        let terms = preemption::terms(cluster, by, partition, victim);
        preemption::may_stand_still(victim)
            && terms.is_some_and(|terms| terms.mode == PreemptMode::Suspend && terms.exempt_until <= cluster.now)
    })
}

fn park(cluster: &mut Cluster, id: JobId) {
    if cluster.jobs[&id].phase == Phase::Starting {
        // The launch is still done first; then what it started is frozen.
        job_life::take(cluster, id, Step::Launched);
    }
    cluster.job_mut(id).is_parked = true;
    cluster.parked.insert(id);
    let parked = job_life::take(cluster, id, Step::Suspend);
    debug_assert!(parked, "only running jobs are parked");
    cluster.unsettled.insert(id);
}

#[derive(Default)]
struct Verdict {
    stand_still: Vec<JobId>,
    go_on: Vec<JobId>,
    somebody_waits_for_a_turn: bool,
}

/// Everybody whose CPUs others hold too, and those who stand still for somebody who may be gone.
fn involved(cluster: &Cluster) -> Vec<&Arc<Job>> {
    let nodes = cluster.shared_nodes.iter().filter_map(|name| cluster.nodes.get(name));
    let ids: BTreeSet<JobId> = nodes.flat_map(|node| node.jobs.iter()).chain(&cluster.parked).copied().collect();
    ids.iter().filter_map(|id| cluster.jobs.get(id)).collect()
}

fn judge(cluster: &Cluster) -> Verdict {
    let mut jobs = involved(cluster);
    let strength = preemption::strengths(cluster);
    // Those that cannot be moved stand first; then the stronger before the weaker, and each in its turn.
    jobs.sort_by_cached_key(|job| (is_movable(job), std::cmp::Reverse(strength.of(cluster, job)), job.turn, job.id));
    let mut verdict = Verdict::default();
    let mut running: BTreeMap<&NodeName, Vec<&Arc<Job>>> = BTreeMap::new();
    // Whoever is suspended by hand is in nobody's way.
    for job in jobs.into_iter().filter(|job| !job.is_suspended_by_hand()) {
        let before = job.allocation.nodes.iter().flat_map(|share| {
            let others = running.get(&share.node).into_iter().flatten();
            others.filter(|other| overlap(&share.cpus, other, &share.node))
        });
        let gives_way = |other: &&&Arc<Job>| is_movable(job) && goes_before(cluster, other, job);
        let mut before = before.filter(gives_way).peekable();
        if before.peek().is_none() {
            for share in &job.allocation.nodes {
                running.entry(&share.node).or_default().push(job);
            }
            if job.is_parked && nodes_answer(cluster, job) {
                verdict.go_on.push(job.id);
            }
            continue;
        }
        verdict.somebody_waits_for_a_turn |= before.any(|other| take_turns(cluster, other, job));
        if !job.is_parked {
            verdict.stand_still.push(job.id);
        }
    }
    verdict
}

/// It runs, or stands still for others; not one that somebody suspended, or that is being ended.
fn is_movable(job: &Job) -> bool {
    job.het.is_none()
        && match job.phase {
            Phase::Starting => !job.is_being_prepared(),
            Phase::Running => true,
            Phase::Suspended => job.is_parked,
            Phase::Pending | Phase::Ending | Phase::Finishing | Phase::Done => false,
        }
}

fn overlap(cpus: &CpuSet, other: &Job, node: &NodeName) -> bool {
    let held = other.allocation.share(node.as_str());
    held.is_some_and(|held| held.cpus.iter().any(|cpu| cpus.contains(cpu)))
}

fn goes_before(cluster: &Cluster, one: &Job, other: &Job) -> bool {
    let partition = cluster.config.partition(&one.partition);
    let terms = partition.and_then(|partition| preemption::terms(cluster, one, partition, other));
    terms.is_some_and(|terms| terms.mode == PreemptMode::Suspend) || take_turns(cluster, one, other)
}

fn take_turns(cluster: &Cluster, one: &Job, other: &Job) -> bool {
    one.partition == other.partition && takes_turns(cluster, one) && takes_turns(cluster, other)
}

/// Jobs of such partitions take turns; where only one may have a CPU, nobody's turn comes.
fn takes_turns(cluster: &Cluster, job: &Job) -> bool {
    let partition = cluster.config.partition(&job.partition);
    let shares =
        partition.is_some_and(|one| matches!(one.oversubscribe, OverSubscribe::Force(2..) | OverSubscribe::Yes(2..)));
    cluster.config.scheduler.preemption.is_gang && shares && job.het.is_none()
}

fn nodes_answer(cluster: &Cluster, job: &Job) -> bool {
    let is_down = |name: &NodeName| {
        cluster.nodes.get(name).is_none_or(|node| matches!(node.phase, NodePhase::Down | NodePhase::Lost))
    };
    !job.allocation.names().any(is_down)
}

/// Indexes say what the jobs say, and looking again changes nothing.
pub(crate) fn check(cluster: &Cluster) -> Result<(), String> {
    let parked = cluster.jobs().filter(|job| job.is_parked).map(|job| job.id);
    if !parked.eq(cluster.parked.iter().copied()) {
        return Err("jobs that stand still for others are miscounted".into());
    }
    if cluster.jobs().any(|job| job.is_parked && job.phase != Phase::Suspended) {
        return Err("a job counts as standing still though it is not suspended".into());
    }
    let shared = cluster.nodes().filter(|node| node.shares_cpus).map(|node| &node.name);
    if !shared.eq(cluster.shared_nodes.iter()) {
        return Err("nodes with shared CPUs are miscounted".into());
    }
    let verdict = judge(cluster);
    match verdict.stand_still.is_empty() && verdict.go_on.is_empty() {
        true => Ok(()),
        false => Err(format!("should stand still: {:?}; should go on: {:?}", verdict.stand_still, verdict.go_on)),
    }
}
