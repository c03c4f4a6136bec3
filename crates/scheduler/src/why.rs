//! Why a job waits, when it will start, and what would start it sooner: the same scheduler, on forks of the state.
use model::spec::{Size, TimeLimit};
use model::update::{JobChanges, TimeLimitChange};
use model::why::{HeldNode, Hint, Why};
use model::{Caller, Command, Entry, Job, JobId, Phase, Reason, Timestamp, duration};
use state::Cluster;

use crate::pick::Offer;
use crate::request::Request;
use crate::room::{PoolId, Room, SpotId};
use crate::timeline::{Clock, Interval, Slot};

mod scarce;

/// So deep in the queue a place is still looked for.
const DEEPEST: usize = 1000;
const N_SHOWN: usize = 5;

/// None if there is no such job.
pub fn why(cluster: &Cluster, id: JobId) -> Option<Why> {
    let job = cluster.job(id)?;
    let mut why = Why {
        job: id,
        name: job.spec.name.clone(),
        state: job.state().name().into(),
        gate: job.reason,
        detail: job.reason_text.clone(),
        needs: needs(job),
        ..Default::default()
    };
    if job.phase != Phase::Pending {
        return Some(why);
    }
    why.n_ahead = cluster.queue().take_while(|other| other.id != id).count() as u32;
    if !cluster.is_eligible(job) {
        why.n_ahead = 0;
        why.detail = gate(cluster, job);
        // It starts no sooner; where, nobody has looked yet.
        why.expected_start = not_before(cluster, job);
        return Some(why);
    }
    why.ahead = cluster.queue().take(why.n_ahead as usize).take(N_SHOWN).map(|other| other.id).collect();
    look_at_nodes(cluster, job, &mut why);
    let outlook = foresee(cluster, id);
    why.gate = outlook.reason.or(job.reason);
    let more = match why.gate {
        Some(Reason::Licenses) => scarce::licenses(cluster, job),
        _ => unusable(cluster, job),
    };
    let detail = [std::mem::take(&mut why.detail), more].into_iter().filter(|text| !text.is_empty());
    why.detail = detail.collect::<Vec<_>>().join("; ");
    why.expected_start = outlook.starts;
    why.expected_nodes = outlook.nodes;
    why.hints = hints(cluster, job, outlook.starts);
    Some(why)
}

/// The time until which its gate is shut.
fn not_before(cluster: &Cluster, job: &Job) -> Option<Timestamp> {
    match job.reason {
        Some(Reason::BeginTime) => job.spec.begin,
        Some(Reason::Reservation) => {
            let named = job.spec.reservations.iter().filter_map(|name| cluster.reservation(name));
            named.filter_map(|one| one.windows(cluster.now()).next()).map(|(start, _)| start).min()
        }
        _ => None,
    }
}

/// Nodes that the job could have, were they not out of use; the named ones if it names any.
fn unusable(cluster: &Cluster, job: &Job) -> String {
    let wanted = |node: &&std::sync::Arc<model::Node>| {
        let is_named = job.spec.size.nodes.is_empty() || job.spec.size.nodes.contains(&node.name);
        is_named && node.partitions.iter().any(|name| job.spec.partitions.contains(name))
    };
    let out = cluster.nodes().filter(|node| !node.is_usable()).filter(wanted);
    let text = |node: &std::sync::Arc<model::Node>| {
        let state = if node.drain { "drained" } else { "down" };
        let why = node.reason.as_ref().map_or(String::new(), |reason| format!(": {}", reason.text));
        format!("{} is {state}{why}", node.name)
    };
    let all: Vec<String> = out.map(text).collect();
    let more = if all.len() > N_SHOWN { format!(" and {} more", all.len() - N_SHOWN) } else { String::new() };
    all.into_iter().take(N_SHOWN).collect::<Vec<_>>().join(", ") + &more
}

/// What its partitions have against the job.
fn partition_limits(cluster: &Cluster, job: &Job) -> String {
    let mut parts = Vec::new();
    for partition in job.spec.partitions.iter().filter_map(|name| cluster.config().partition(name)) {
        if let (Some(TimeLimit::Secs(asked)), Some(TimeLimit::Secs(most))) = (job.spec.time_limit, partition.max_time)
            && asked > most
        {
            let (asked, most) = (duration::show(asked), duration::show(most));
            parts.push(format!("asks for {asked}, partition {} allows {most}", partition.name));
        }
        let (min, _) = job.spec.size.node_bounds();
        if let Some(most) = partition.max_nodes.filter(|most| min > *most) {
            parts.push(format!("asks for {min} nodes, partition {} allows {most}", partition.name));
        } else if min > partition.nodes.len() as u32 {
            parts.push(format!("asks for {min} nodes, partition {} has {}", partition.name, partition.nodes.len()));
        }
    }
    parts.join("; ")
}

/// What holds a job that is not in the queue.
fn gate(cluster: &Cluster, job: &Job) -> String {
    if !job.reason_text.is_empty() {
        return job.reason_text.clone();
    }
    match job.reason {
        Some(Reason::Dependency) => format!("waits for {}", awaited(job)),
        Some(Reason::DependencyNeverSatisfied) => format!("what it wanted of {} can never be met", awaited(job)),
        Some(Reason::BeginTime) => "waits for its begin time".into(),
        Some(Reason::Reservation) => format!("waits for reservation {}", job.spec.reservations.join(", ")),
        Some(Reason::PartitionTimeLimit | Reason::PartitionNodeLimit | Reason::PartitionConfig) => {
            partition_limits(cluster, job)
        }
        Some(Reason::JobHeldUser) => format!("held; scontrol release {}", job.id),
        Some(Reason::JobHeldAdmin) => "held by an administrator, who must release it".into(),
        Some(Reason::BurstBufferResources) => scarce::space(cluster, job),
        Some(Reason::JobArrayTaskLimit) => "as many tasks of its array run as its limit allows".into(),
        _ => String::new(),
    }
}

fn awaited(job: &Job) -> String {
    let jobs: Vec<String> =
        job.dependency.terms.iter().filter_map(|term| term.job).map(|job| job.to_string()).collect();
    match &jobs[..] {
        [] => "other jobs of its name".into(),
        [one] => format!("job {one}"),
        several => format!("jobs {}", several.join(", ")),
    }
}

fn count(number: u32, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn needs(job: &Job) -> String {
    let size = &job.spec.size;
    let (min, max) = size.node_bounds();
    let nodes = match (min, max) {
        (min, max) if min == max => count(min, "node"),
        (min, u32::MAX) => format!("at least {}", count(min, "node")),
        (min, max) => format!("{min} to {max} nodes"),
    };
    let mut parts = vec![nodes];
    match size.n_tasks {
        Some(n_tasks) => parts.push(format!("{} of {}", count(n_tasks, "task"), count(size.n_cpus_per_task(), "CPU"))),
        None if size.wants_whole_nodes() => parts.push("nobody else on them".into()),
        None => parts.push(format!("{} on each", count(size.cpus_for(size.n_tasks_each().unwrap_or(1)), "CPU"))),
    }
    let gres = size.gres_for(size.n_tasks_each().unwrap_or(1));
    parts.extend(gres.iter().filter(|one| one.count > 0).map(|one| format!("{one} on each")));
    if !size.features.is_empty() {
        parts.push(format!("features {}", size.features));
    }
    if let Some(TimeLimit::Secs(secs)) = job.spec.time_limit {
        parts.push(format!("for {}", duration::show(secs)));
    }
    parts.join(", ")
}

/// Which nodes could serve the job now, and who holds those that will be free first.
fn look_at_nodes(cluster: &Cluster, job: &Job, why: &mut Why) {
    let clock = Clock::of(cluster);
    let mut room = Room::new(cluster, &clock);
    room.look_ahead();
    room.look_for(&job.spec.size);
    let Some(request) = Request::waiting(&Request::all(cluster, &room.closures, job)) else { return };
    let partitions = job.spec.partitions.iter().filter_map(|name| cluster.config().partition(name));
    let pools: Vec<PoolId> = partitions.map(|partition| room.pool(cluster, partition)).collect();
    let Some(pool) = pools.first() else { return };
    let interval = Interval { from: Slot::NOW, until: clock.interval(Slot::NOW, request.length).until };
    let offer = Offer::of_spots(&room, *pool, interval, &request);
    let (mut free, mut taken): (u32, Vec<SpotId>) = (0, Vec::new());
    for spot in room.members(*pool).iter().filter(|spot| offer.n_tasks_fitting_alone(**spot).is_some()) {
        match offer.n_tasks_fitting(*spot) {
            Some(_) => free += 1,
            None => taken.push(*spot),
        }
    }
    why.n_nodes_free = free;
    why.n_nodes_fitting = free + taken.len() as u32;
    let mut held: Vec<HeldNode> = taken.iter().filter_map(|spot| last_holder(&room, *spot)).collect();
    held.sort_by_key(|one| (one.until.unwrap_or(Timestamp(u64::MAX)), one.by));
    held.truncate(N_SHOWN);
    why.held = held;
}

fn last_holder(room: &Room, spot: SpotId) -> Option<HeldNode> {
    let spot = room.spot(spot);
    let last = spot.held().uses.last()?;
    Some(HeldNode { node: spot.node.name.clone(), by: last.job, until: last.ends_at })
}

struct Foreseen {
    starts: Option<Timestamp>,
    nodes: String,
    reason: Option<Reason>,
}

/// When the job would start on this state.
fn foresee(cluster: &Cluster, id: JobId) -> Foreseen {
    let mut fork = cluster.clone();
    let place = cluster.queue().position(|job| job.id == id).unwrap_or(0);
    let mut config = (**cluster.config()).clone();
    let backfill = &mut config.scheduler.backfill;
    backfill.n_reservations = backfill.n_reservations.max(place.min(DEEPEST) as u32 + 1);
    apply(&mut fork, Command::Reconfigure { config: Box::new(config) });
    let plan = crate::plan(&fork);
    apply(&mut fork, Command::AdoptPlan(plan));
    match fork.job(id) {
        Some(job) if job.holds_nodes() => {
            let nodes = model::hostlist::compress(job.allocation.names().map(|name| name.as_str()));
            Foreseen { starts: Some(cluster.now()), nodes, reason: None }
        }
        Some(job) => Foreseen { starts: job.expected_start, nodes: job.expected_nodes.clone(), reason: job.reason },
        None => Foreseen { starts: None, nodes: String::new(), reason: None },
    }
}

/// Changes that would start the job sooner than `expected`, each found by trying.
fn hints(cluster: &Cluster, job: &Job, expected: Option<Timestamp>) -> Vec<Hint> {
    if job.waiting_tasks.is_some() || expected.is_some_and(|at| at <= cluster.now()) {
        return Vec::new();
    }
    let is_sooner = |at: Option<Timestamp>| match (at, expected) {
        (Some(at), Some(expected)) => at < expected,
        (Some(_), None) => true,
        (None, _) => false,
    };
    let tried = |changes: Vec<(String, JobChanges)>| {
        let tried =
            changes.into_iter().map(|(change, changes)| Hint { change, starts: attempt(cluster, job.id, changes) });
        // The least change that helps is the first in its list.
        tried.into_iter().find(|hint| is_sooner(hint.starts))
    };
    [tried(shorter(job)), tried(narrower(&job.spec.size)), tried(elsewhere(cluster, job))]
        .into_iter()
        .flatten()
        .collect()
}

fn attempt(cluster: &Cluster, id: JobId, changes: JobChanges) -> Option<Timestamp> {
    let mut fork = cluster.clone();
    let command = Command::UpdateJob { job: id.into(), changes: Box::new(changes) };
    let entry = Entry { at: cluster.now(), by: Caller::SYSTEM, command };
    match state::apply(&mut fork, &entry).reply {
        Ok(model::Reply::Each(results)) if results.iter().all(|one| one.result.is_ok()) => foresee(&fork, id).starts,
        _ => None,
    }
}

fn shorter(job: &Job) -> Vec<(String, JobChanges)> {
    let secs = match job.spec.time_limit {
        Some(TimeLimit::Secs(secs)) => secs,
        Some(TimeLimit::Unlimited) | None => 24 * 3600,
    };
    let limits = [secs / 2, secs / 4, secs / 8].map(|secs| secs / 60 * 60);
    let limits = limits.into_iter().filter(|secs| *secs >= 60);
    let change = |secs| {
        let limit = TimeLimitChange::To(TimeLimit::Secs(secs));
        (format!("TimeLimit={}", duration::show(secs)), JobChanges { time_limit: Some(limit), ..Default::default() })
    };
    limits.map(change).collect()
}

fn narrower(size: &Size) -> Vec<(String, JobChanges)> {
    let (min, _) = size.node_bounds();
    let mut counts = vec![min.saturating_sub(1), min * 3 / 4, min / 2, min / 4, 1];
    counts.retain(|count| *count >= 1 && *count < min);
    counts.dedup();
    let change = |count| {
        let max_nodes = size.max_nodes.map(|_| count);
        let changes = JobChanges { min_nodes: Some(count), max_nodes, ..Default::default() };
        (format!("NumNodes={count}"), changes)
    };
    counts.into_iter().map(change).collect()
}

fn elsewhere(cluster: &Cluster, job: &Job) -> Vec<(String, JobChanges)> {
    let others = cluster.config().partitions.iter().filter(|partition| {
        !job.spec.partitions.contains(&partition.name) && partition.state.starts_jobs() && !partition.root_only
    });
    let change = |partition: &model::Partition| {
        let partitions = Some(vec![partition.name.clone()]);
        (format!("Partition={}", partition.name), JobChanges { partitions, ..Default::default() })
    };
    others.take(N_SHOWN).map(change).collect()
}

fn apply(fork: &mut Cluster, command: Command) {
    let entry = Entry { at: fork.now(), by: Caller::SYSTEM, command };
    // A fork that refuses foresees nothing.
    let _ = state::apply(fork, &entry);
}
