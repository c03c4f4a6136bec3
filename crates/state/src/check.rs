//! What must always hold. Run by the simulator after every entry, and by tests.
use std::collections::{BTreeMap, BTreeSet};

use model::{BlobId, HeldBy, Job, Owner, Phase, StepPhase, Wake};

use crate::{Cluster, blobs, buffers, gang, het, history, ledger, licenses, limits, on, settle};

pub fn check(cluster: &Cluster) -> Result<(), String> {
    ensure(cluster.unsettled.is_empty(), || "unsettled jobs are left between commands".into())?;
    check_nodes(cluster)?;
    for job in cluster.jobs() {
        check_job(cluster, job).map_err(|violation| format!("job {}: {violation}", job.id))?;
    }
    check_indexes(cluster)?;
    check_steps(cluster)?;
    check_arrays(cluster)?;
    check_blobs(cluster)?;
    check_components(cluster)?;
    history::check(cluster)?;
    buffers::check::check(cluster)?;
    check_licenses(cluster)?;
    limits::check(cluster)?;
    gang::check(cluster)?;
    check_settled(cluster)
}

/// No component runs without its leader, or on a node of another.
fn check_components(cluster: &Cluster) -> Result<(), String> {
    for job in cluster.jobs().filter(|job| job.het.is_some()) {
        let id = job.id;
        let lives = |job: &Job| matches!(job.phase, Phase::Starting | Phase::Running | Phase::Suspended);
        for other in het::siblings(cluster, job) {
            let is_leader = other.het.as_ref().is_some_and(|het| het.is_leader());
            ensure(!(lives(job) && is_leader) || lives(other), || {
                format!("component {id} lives on without its leader")
            })?;
            let shares = |name: &model::NodeName| lives(other) && other.allocation.share(name.as_str()).is_some();
            ensure(!lives(job) || !job.allocation.names().any(shares), || {
                format!("component {id} is on a node of {}", other.id)
            })?;
        }
    }
    Ok(())
}

/// Nobody has missed a wake: once the deadlines that have passed are dealt with, looking at every job again changes nothing.
fn check_settled(cluster: &Cluster) -> Result<(), String> {
    let mut settled = cluster.clone();
    on::tick::tick(&mut settled).map_err(|reject| reject.to_string())?;
    settle::settle_all(&mut settled);
    let mut again = settled.clone();
    again.unsettled.extend(settled.jobs.keys());
    again.sharing_changed = true;
    settle::settle_all(&mut again);
    settled.events.clear();
    again.events.clear();
    let differs = || {
        let changed = settled.jobs().find(|job| again.jobs.get(&job.id) != Some(job));
        let changed = changed.map(|job| (job, again.jobs.get(&job.id)));
        let others = [
            ("queue", settled.queue != again.queue),
            ("waiters", settled.waiters != again.waiters),
            ("duties", settled.duties != again.duties),
            ("turns", (settled.slice_ends, &settled.parked) != (again.slice_ends, &again.parked)),
            ("nodes", settled.nodes != again.nodes),
            ("history", settled.history != again.history),
            ("counts of limits", settled.tally != again.tally),
        ];
        let others: Vec<&str> = others.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
        format!("a job should have been looked at again: {changed:?}, {others:?}")
    };
    ensure(settled == again, differs)
}

/// A refused command may move the clock, nothing else.
pub fn left_no_trace(before: &Cluster, after: &Cluster) -> Result<(), String> {
    let expected = Cluster { now: after.now, ..before.clone() };
    ensure(expected == *after, || "a refused command changed the state".into())
}

/// No job, and nothing that a job leaves.
pub fn is_empty(cluster: &Cluster) -> bool {
    cluster.jobs.is_empty()
        && cluster.steps.is_empty()
        && cluster.arrays.is_empty()
        && cluster.blobs.is_empty()
        && cluster.duties.is_empty()
        && cluster.waiters.is_empty()
        && cluster.queue.is_empty()
        && cluster.claims.is_empty()
        && cluster.live_names.is_empty()
        && cluster.history.is_empty()
        && cluster.n_to_stage() == 0
        && cluster.buffers.is_empty()
        && cluster.buffer_places.is_empty()
        && cluster.license_use.is_empty()
        && cluster.license_holders.is_empty()
        && cluster.parked.is_empty()
        && cluster.shared_nodes.is_empty()
        && cluster.slice_ends.is_none()
}

/// What is in use is what the jobs hold, of licences that there are enough of.
fn check_licenses(cluster: &Cluster) -> Result<(), String> {
    let held = licenses::recount(cluster);
    let used: BTreeMap<String, u32> = cluster.license_use.iter().map(|(name, count)| (name.clone(), *count)).collect();
    ensure(held == used, || format!("licences: the ledger says {used:?}, the jobs hold {held:?}"))?;
    let holders = cluster.jobs().filter(|job| job.holds_nodes() && !job.licenses.is_empty()).map(|job| job.id);
    ensure(holders.eq(cluster.license_holders.iter().copied()), || "licence holders are miscounted".into())?;
    let inside = |job: &&std::sync::Arc<Job>| job.holds_nodes() && !job.reservation.is_empty();
    for job in cluster.jobs().filter(inside) {
        let Some(reservation) = cluster.reservation(&job.reservation) else { continue };
        let is_flex = reservation.has(model::reservation::Flag::Flex);
        ensure(is_flex || job.must_end_by.is_some(), || format!("{} outlives its reservation", job.id))?;
    }
    Ok(())
}

fn check_nodes(cluster: &Cluster) -> Result<(), String> {
    let rebooting: Vec<_> =
        cluster.nodes.values().filter(|node| node.reboot.is_some()).map(|node| &node.name).collect();
    ensure(rebooting.iter().copied().eq(cluster.reboots.iter()), || {
        format!("{rebooting:?} start anew, {:?} are listed", cluster.reboots)
    })?;
    for node in cluster.nodes() {
        let name = &node.name;
        let mut held = ledger::recount(cluster, node);
        let mut used = node.used.clone();
        held.gres.sort_by_key(|gres| format!("{gres:?}"));
        used.gres.sort_by_key(|gres| format!("{gres:?}"));
        ensure(held == used, || format!("{name}: the ledger says {used:?}, the jobs hold {held:?}"))?;
        let each_cpu_once: u32 = sum_of_cpus(cluster, node);
        let may_share = node.shares_cpus && each_cpu_once > used.cpus.len();
        ensure(may_share || each_cpu_once == used.cpus.len(), || format!("{name}: a CPU is held twice"))?;
        let jobs_here = cluster.jobs().filter(|job| job.holds_nodes() && job.allocation.share(name.as_str()).is_some());
        ensure(jobs_here.map(|job| job.id).eq(node.jobs.iter().copied()), || format!("{name}: jobs are miscounted"))?;
        // A state of an earlier release has no count of users.
        let n_jobs: u32 = node.users.values().map(|user| user.n_jobs).sum();
        ensure(node.users.is_empty() || n_jobs as usize == node.jobs.len(), || {
            format!("{name}: users are miscounted: {:?}", node.users)
        })?;
        let lends = |id: &&model::JobId| cluster.jobs.get(*id).is_some_and(|job| job.lends_cpus);
        let n_lenders = node.jobs.iter().filter(lends).count();
        ensure(n_lenders == node.n_lenders as usize, || format!("{name}: those who lend CPUs are miscounted"))?;
        ensure(node.exclusive_job.is_none() || node.jobs.len() - n_lenders == 1 || node.shares_cpus, || {
            format!("{name}: an exclusive node is shared")
        })?;
    }
    Ok(())
}

fn sum_of_cpus(cluster: &Cluster, node: &model::Node) -> u32 {
    let holders = node.jobs.iter().filter_map(|id| cluster.jobs.get(id)).filter(|job| !job.lends_cpus);
    holders.filter_map(|job| job.allocation.share(node.name.as_str())).map(|share| share.cpus.len()).sum()
}

fn check_job(cluster: &Cluster, job: &Job) -> Result<(), String> {
    let id = job.id;
    ensure(!job.holds_nodes() || !job.allocation.nodes.is_empty(), || format!("{:?} without nodes", job.phase))?;
    let has_duty = cluster.duties.contains_key(&Owner::Job(id));
    let waits = has_duty || !job.wakes.is_empty();
    let may_rest = match job.phase {
        Phase::Pending => cluster.is_eligible(job) || cluster.may_be_staged(job),
        Phase::Running | Phase::Suspended => true,
        Phase::Starting | Phase::Ending | Phase::Finishing | Phase::Done => false,
    };
    ensure(waits || may_rest, || format!("stuck in {:?}", job.phase))?;
    ensure(job.phase != Phase::Done || job.outcome.is_some(), || "done without an outcome".into())?;
    ensure(!job.lends_cpus || job.is_suspended_by_hand(), || "lends CPUs though it is not suspended".into())?;
    ensure(job.suspended_at.is_some() == (job.phase == Phase::Suspended), || "suspended_at is set wrongly".into())?;
    // A state of an earlier release knows only the sum.
    let pauses = job.pauses.iter().fold(model::time::Span(0), |sum, pause| sum + (pause.until - pause.from));
    ensure(job.pauses.is_empty() || pauses == job.total_suspended, || "suspensions do not add up".into())?;
    let queued = cluster.is_eligible(job);
    ensure(!queued || job.held.is_none(), || "queued though held".into())?;
    let is_over = matches!(job.phase, Phase::Ending | Phase::Finishing | Phase::Done);
    let named = cluster.live_names.contains(&(job.spec.uid, job.spec.name.clone(), id));
    ensure(named != is_over, || "is in the list of names wrongly".into())?;
    ensure(job.waiting_tasks.is_none() || !job.holds_nodes(), || "an array's waiting record runs".into())?;
    let known_hold = job.held.is_none_or(|held| {
        matches!(
            held,
            HeldBy::User
                | HeldBy::Admin
                | HeldBy::Requeue
                | HeldBy::SpecialExit
                | HeldBy::MaxRequeue
                | HeldBy::BurstBuffer
                | HeldBy::ReservationGone
                | HeldBy::LaunchFailed
        )
    });
    ensure(known_hold, || "unknown hold".into())
}

fn check_indexes(cluster: &Cluster) -> Result<(), String> {
    for (wake, id) in &cluster.waiters {
        let listed = cluster.jobs.get(id).is_some_and(|job| job.wakes.contains(wake));
        ensure(listed, || format!("{id} is woken by {wake:?} but does not know"))?;
    }
    for job in cluster.jobs() {
        for wake in &job.wakes {
            let listed = cluster.waiters.contains(&(wake.clone(), job.id));
            ensure(listed, || format!("{} waits for {wake:?} but nobody knows", job.id))?;
        }
    }
    for key in &cluster.queue {
        let right =
            cluster.jobs.get(&key.job).is_some_and(|job| job.phase == Phase::Pending && cluster.queue_key(job) == *key);
        ensure(right, || format!("{} is queued wrongly", key.job))?;
    }
    for key in cluster.staging_queue.iter().chain(&cluster.unpooled_staging_queue) {
        let right = cluster
            .jobs
            .get(&key.job)
            .is_some_and(|job| job.phase == Phase::Pending && job.buffer.is_none() && cluster.queue_key(job) == *key);
        ensure(right && !cluster.queue.contains(key), || format!("{} is to be staged wrongly", key.job))?;
    }
    for id in &cluster.claims {
        let waits = cluster.jobs.get(id).is_some_and(|job| job.phase == Phase::Pending);
        ensure(waits, || format!("{id} has a claim and does not wait"))?;
    }
    for duty in cluster.duties() {
        let exists = match &duty.owner {
            Owner::Job(id) => cluster.jobs.get(id).is_some_and(|job| job.attempt == duty.attempt),
            Owner::Step(job, step) => cluster.step(*job, *step).is_some_and(|step| step.attempt == duty.attempt),
            Owner::Buffer(id) => cluster.buffers.get(id).is_some_and(|buffer| buffer.attempt == duty.attempt),
            Owner::Persistent(name) => {
                cluster.persistent.get(name).is_some_and(|buffer| buffer.attempt == duty.attempt)
            }
            Owner::Node(node) => cluster.nodes.get(node).is_some_and(|node| node.attempt == duty.attempt),
        };
        ensure(exists, || format!("{duty:?} is nobody's"))?;
    }
    let overdue = |(wake, _): &&(Wake, model::JobId)| matches!(wake, Wake::At(at) if at.0 == 0);
    ensure(!cluster.waiters.iter().any(|waiter| overdue(&waiter)), || "a deadline at the beginning of time".into())
}

fn check_steps(cluster: &Cluster) -> Result<(), String> {
    let mut ports = BTreeSet::new();
    for ((job_id, id), step) in &cluster.steps {
        let job = cluster.jobs.get(job_id).ok_or_else(|| format!("step {job_id}.{id} has no job"))?;
        ensure(!step.is_live() || job.holds_nodes(), || format!("step {job_id}.{id} outlives its job's nodes"))?;
        let has_duty = cluster.duties.contains_key(&Owner::Step(*job_id, *id));
        let job_clears = job.phase == Phase::Ending;
        let needs = matches!(step.phase, StepPhase::Starting | StepPhase::Ending) && !job_clears;
        ensure(has_duty == needs, || format!("step {job_id}.{id} is stuck in {:?}", step.phase))?;
        let within = step.shares.iter().all(|share| {
            job.allocation.share(share.node.as_str()).is_some_and(|whole| share.cpus.is_subset(&whole.cpus))
        });
        ensure(within || !step.is_live(), || format!("step {job_id}.{id} holds more than its job"))?;
        for share in step.shares.iter().filter(|_| step.is_live()) {
            let own = step.ports.iter().all(|port| ports.insert((&share.node, *port)));
            ensure(own, || format!("step {job_id}.{id} shares a port on {}", share.node))?;
        }
    }
    Ok(())
}

fn check_arrays(cluster: &Cluster) -> Result<(), String> {
    for (id, array) in &cluster.arrays {
        let tasks: Vec<_> = cluster.jobs().filter(|job| job.array_id() == Some(*id)).collect();
        let live = tasks.iter().filter(|job| job.holds_nodes()).count() as u32;
        ensure(live == array.n_live, || format!("array {id}: {live} tasks live, counted {}", array.n_live))?;
        let over = tasks.iter().filter(|job| job.phase == Phase::Done).map(|job| job.n_tasks_waiting()).sum::<u64>();
        ensure(over <= array.n_over, || format!("array {id}: {over} tasks over, counted {}", array.n_over))?;
        let known = tasks.iter().all(|job| match job.array_task() {
            Some(task) => array.tasks.get(&task) == Some(&job.id),
            None => array.waiting.contains(&job.id),
        });
        ensure(known, || format!("array {id} does not know one of its records"))?;
    }
    Ok(())
}

fn check_blobs(cluster: &Cluster) -> Result<(), String> {
    let mut users: BTreeMap<BlobId, u32> = BTreeMap::new();
    let of_jobs = cluster.jobs().flat_map(|job| blobs::of_job(&job.spec));
    let of_steps = cluster.steps.values().flat_map(|step| blobs::of_step(&step.spec));
    of_jobs.chain(of_steps).for_each(|id| *users.entry(id).or_default() += 1);
    let stored = cluster.blobs.iter().map(|(id, blob)| (*id, blob.n_users));
    ensure(users.into_iter().eq(stored), || "blobs are miscounted".into())
}

pub(crate) fn ensure(holds: bool, violation: impl Fn() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(violation()) }
}
