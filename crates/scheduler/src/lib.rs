//! Who goes where and when: a pure function from the cluster's state to a plan.
//!
//! ```text
//! order ──▶ next job ──▶ pick (which nodes of a partition) ──▶ a start, and less room for the rest
//!                          └──▶ nothing fits ──▶ reasons (why it stays)
//! ```
//! A plan is a proposal: `state` checks each part again when it is adopted, so a plan may be made on an older state.
use model::plan::Grant;
use model::spec::Size;
use model::{Job, Plan, Start};
use state::Cluster;

mod failed;
mod order;
mod pick;
mod reasons;
mod room;
mod timeline;

use failed::Failed;
use order::Order;
use reasons::Reasons;
use room::Room;

/// Once nothing is free, only the heads of the queue can still need another reason.
const N_LOOKED_AT_WHEN_FULL: u32 = 128;

/// Starts what fits now, the most important first, and says why the others wait.
pub fn plan(cluster: &Cluster) -> Plan {
    let mut plan = Plan::default();
    if cluster.n_queued() == 0 {
        return plan;
    }
    let mut order = Order::new(cluster);
    let mut room = Room::new(cluster);
    let mut failed = Failed::default();
    let mut reasons = Reasons::new(cluster);
    let mut n_when_full = 0;
    for job in cluster.queue().take(cluster.config().scheduler.depth as usize) {
        if room.is_full() {
            n_when_full += 1;
            if n_when_full > N_LOOKED_AT_WHEN_FULL {
                break;
            }
        }
        let mut stays = true;
        for task in order.tasks(job) {
            stays = !start(cluster, &mut room, &mut failed, job, task, &mut plan);
            if stays {
                break;
            }
            order.started(job);
        }
        if stays {
            reasons.of_blocked(&mut room, job, &mut plan);
        }
    }
    plan
}

/// Nodes that also have what the job would rather have (`--prefer`).
fn preferred(room: &Room, pool: room::PoolId, partition: &model::Partition, size: &Size) -> Option<Vec<Grant>> {
    let preference = size.preference.clone()?;
    let constraint = match size.constraint.clone() {
        Some(required) => required.and(preference),
        None => preference,
    };
    pick::pick(room, pool, partition, &Size { constraint: Some(constraint), ..size.clone() })
}

/// Starts the job, or one task of it, in the first of its partitions where it fits.
fn start<'a>(
    cluster: &'a Cluster,
    room: &mut Room<'a>,
    failed: &mut Failed<'a>,
    job: &'a Job,
    task: Option<u32>,
    plan: &mut Plan,
) -> bool {
    let size = &job.spec.size;
    room.look_for(&job.spec);
    let seeker = room.seeker();
    for name in &job.spec.partitions {
        let Some(partition) = cluster.config().partition(name) else { continue };
        if state::partition_refusal(partition, job).is_some() {
            continue;
        }
        let pool = room.pool(partition);
        if failed.is_known(pool, seeker, size) || !timeline::may_start_now(job) {
            continue;
        }
        match preferred(room, pool, partition, size).or_else(|| pick::pick(room, pool, partition, size)) {
            Some(nodes) => {
                room.take(&nodes, size);
                let is_exclusive = size.wants_whole_nodes();
                plan.starts.push(Start { job: job.id, task, partition: name.clone(), nodes, is_exclusive });
                return true;
            }
            None => failed.remember(pool, seeker, size),
        }
    }
    false
}
