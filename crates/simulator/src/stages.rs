//! Burst buffers as they really are: directories on disks, and the orders about them, which come late, twice or not at all.
use std::collections::{BTreeMap, BTreeSet};

use model::buffer::Place;
use model::command::PlaceResult;
use model::pool::PoolReport;
use model::staging::{Access, Home, Moved, StageFailure, StageResult};
use model::{Buffer, BufferPhase, Caller, Command, Duty, Job, JobId, NodeName, Owner, Phase, Reason, Task};
use state::Cluster;
use state::buffers::capacity::{Usage, holdable_on, total_on};

use crate::World;

/// One directory of one buffer.
type Key = (Owner, Access, NodeName);

#[derive(Clone, Debug)]
pub struct Errand {
    key: Key,
    duty: Duty,
    home: Home,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    In,
    Out,
    Remove,
}

/// What there is, whatever the log says.
#[derive(Default)]
pub struct Disks {
    shared: BTreeSet<Home>,
    private: BTreeSet<(NodeName, Home)>,
    /// Machines that came back empty have lost these.
    wiped: BTreeSet<(NodeName, Home)>,
}

impl Disks {
    fn has(&self, node: &NodeName, home: &Home) -> bool {
        if is_shared(home) { self.shared.contains(home) } else { self.private.contains(&(node.clone(), home.clone())) }
    }

    fn put(&mut self, node: &NodeName, home: &Home) {
        if is_shared(home) {
            self.shared.insert(home.clone());
        } else {
            self.private.insert((node.clone(), home.clone()));
            self.wiped.remove(&(node.clone(), home.clone()));
        }
    }

    fn remove(&mut self, node: &NodeName, home: &Home) {
        self.shared.remove(home);
        self.private.remove(&(node.clone(), home.clone()));
    }

    pub fn wipe(&mut self, node: &NodeName) {
        let lost: Vec<_> = self.private.iter().filter(|(on, _)| on == node).cloned().collect();
        lost.iter().for_each(|one| {
            self.private.remove(one);
        });
        self.wiped.extend(lost);
    }

    pub fn is_empty(&self) -> bool {
        !self.shared.iter().any(|home| matches!(home, Home::Job { .. })) && self.private.is_empty()
    }
}

fn is_shared(home: &Home) -> bool {
    !matches!(home, Home::Job { access: Access::Private, .. })
}

/// What the leader remembers of orders given; lost when it restarts.
#[derive(Default)]
pub struct Open {
    given: BTreeMap<Key, Duty>,
    answers: Vec<(Errand, StageResult)>,
}

pub fn lead(world: &mut World) {
    let cluster = world.cluster.clone();
    world.leader.stages.given.retain(|key, duty| cluster.duty(&key.0) == Some(duty));
    for duty in cluster.duties() {
        for errand in errands(&cluster, duty) {
            let is_given = world.leader.stages.given.contains_key(&errand.key);
            let node = errand.key.2.clone();
            let is_there = world.agents.get(&node).is_some_and(|agent| agent.is_welcome);
            if !is_given && is_there && (world.is_healing || !world.dice.one_in(3)) {
                world.leader.stages.given.insert(errand.key.clone(), duty.clone());
                world.agent(&node).stages.push(errand);
            }
        }
    }
    for (errand, result) in std::mem::take(&mut world.leader.stages.answers) {
        if !world.is_healing && world.dice.one_in(4) {
            world.leader.stages.answers.push((errand, result));
            continue;
        }
        world.leader.stages.given.remove(&errand.key);
        let (_, access, node) = errand.key;
        let results = vec![PlaceResult { access, node, result }];
        world.leader.propose_later(Command::Staged { duty: errand.duty, results });
    }
}

fn errands(cluster: &Cluster, duty: &Duty) -> Vec<Errand> {
    let errand = |access, node: &NodeName, home, kind| Errand {
        key: (duty.owner.clone(), access, node.clone()),
        duty: duty.clone(),
        home,
        kind,
    };
    match &duty.owner {
        Owner::Buffer(id) => {
            let Some(buffer) = cluster.buffer(*id) else { return Vec::new() };
            let of_place = |place: &model::buffer::Place| {
                let is_open = !place.is_done && place.failure.is_empty();
                let kind = match duty.task {
                    Task::TearDown => Kind::Remove,
                    _ if place.is_unwanted => Kind::Remove,
                    Task::StageIn | Task::PreRun if is_open => Kind::In,
                    Task::StageOut if is_open => Kind::Out,
                    _ => return None,
                };
                let home = buffer.home(place);
                Some(errand(place.access, &place.node, home, kind))
            };
            buffer.places.iter().filter_map(of_place).collect()
        }
        Owner::Persistent(name) => {
            let Some(buffer) = cluster.persistent(name) else { return Vec::new() };
            let kind = if duty.task == Task::Destroy { Kind::Remove } else { Kind::In };
            vec![errand(Access::Shared, &buffer.node, Home::Persistent { name: name.clone() }, kind)]
        }
        Owner::Job(_) | Owner::Step(..) | Owner::Node(_) => Vec::new(),
    }
}

/// The agent carries out what has come; its answer is lost with the stream.
pub fn obey(world: &mut World, name: &NodeName) {
    for errand in std::mem::take(&mut world.agent(name).stages) {
        if !world.is_healing && world.dice.one_in(3) {
            world.agent(name).stages.push(errand);
            continue;
        }
        if !world.is_healing && world.dice.one_in(8) {
            world.agent(name).stages.push(errand.clone());
        }
        // Another order about the same directory has been here already.
        let seen = world.agent(name).stage_attempts.entry(errand.home.clone()).or_default();
        if *seen > errand.duty.attempt {
            continue;
        }
        *seen = errand.duty.attempt;
        let result = carry_out(world, name, &errand);
        if world.agent(name).connection.is_some() {
            world.leader.stages.answers.push((errand, result));
        }
    }
}

fn carry_out(world: &mut World, name: &NodeName, errand: &Errand) -> StageResult {
    let failed = |why: &str| StageResult::Failed(StageFailure { why: why.into(), ..Default::default() });
    if !world.is_healing && world.dice.one_in(12) {
        return failed("the disk is tired");
    }
    let removed = (errand.home.clone(), errand.duty.attempt);
    match errand.kind {
        Kind::In if world.agent(name).removed.contains(&removed) => return failed("it has been removed"),
        Kind::In => world.disks.put(name, &errand.home),
        Kind::Out => {
            if world.disks.wiped.contains(&(name.clone(), errand.home.clone())) {
                return failed("the data is gone with its machine");
            }
            // A late order of a buffer that is gone meanwhile finds nothing, and nobody listens to its answer.
            let stands = world.cluster.duty(&errand.duty.owner) == Some(&errand.duty);
            if stands && !world.disks.has(name, &errand.home) {
                world.ensure(Err(format!("{:?} is to be staged out of {name}, but is not there", errand.home)));
            }
        }
        Kind::Remove => {
            world.agent(name).removed.insert(removed);
            world.disks.remove(name, &errand.home);
        }
    }
    StageResult::Done(Moved { n_files: 1, n_bytes: 10, ..Default::default() })
}

/// The agent is registered: what it was ordered is ordered again, and what it has and nobody knows of goes.
pub fn welcome(world: &mut World, node: &NodeName) {
    world.leader.stages.given.retain(|key, _| key.2 != *node);
    world.leader.stages.answers.retain(|(errand, _)| errand.key.2 != *node);
    let cluster = &world.cluster;
    let is_known = |on: Option<&NodeName>, home: &Home| match home {
        Home::Persistent { .. } => true,
        Home::Job { job, epoch, access } => cluster.buffer(*job).is_some_and(|buffer| {
            let is_it = |it: &Place| it.access == *access && buffer.epoch_of(it) == *epoch;
            buffer.places.iter().any(|it| is_it(it) && on.is_none_or(|on| it.node == *on))
        }),
    };
    let strays = world.disks.shared.iter().filter(|home| !is_known(None, home)).cloned();
    let own = world.disks.private.iter().filter(|(on, home)| on == node && !is_known(Some(on), home));
    let strays: Vec<Home> = strays.chain(own.map(|(_, home)| home.clone())).collect();
    strays.iter().for_each(|home| world.disks.remove(node, home));
}

/// Now and then an agent finds more or less in its pools than buffers have put there.
pub fn find_foreign_files(world: &mut World) {
    let names: Vec<NodeName> = world.agents.iter().filter(|it| it.1.is_welcome).map(|it| it.0.clone()).collect();
    for node in names {
        if world.dice.one_in(12) {
            let foreign = world.dice.below(4);
            seen(world, node, foreign);
        }
    }
}

/// Whatever was there is gone.
pub fn clear_foreign_files(world: &mut World) {
    let names: Vec<NodeName> = world.agents.keys().cloned().collect();
    names.into_iter().for_each(|node| seen(world, node, 0));
}

fn seen(world: &mut World, node: NodeName, foreign_gib: u64) {
    let Some(config) = world.cluster.config().burst_buffer.clone() else { return };
    let report = |pool: &model::pool::Pool| {
        let total_bytes = pool.total_bytes.unwrap_or(0);
        let foreign_bytes = (foreign_gib << 30).min(total_bytes);
        PoolReport { pool: pool.name.clone(), total_bytes, foreign_bytes, ..Default::default() }
    };
    let pools = config.pools.iter().map(report).collect();
    world.leader.propose_later(Command::PoolsSeen { node, pools });
}

/// What is given out anew is there to be given out, whatever lies in the pools besides.
fn is_to_be_had(before: &Cluster, after: &Cluster) -> Result<(), String> {
    let Some(config) = &after.config().burst_buffer else { return Ok(()) };
    let (old, new) = (Usage::of(before), Usage::of(after));
    for pool in &config.pools {
        let most = pool.total_bytes.unwrap_or(0).min(after.usable(&pool.name).unwrap_or(u64::MAX));
        let (had, has) = (old.of_shared(&pool.name), new.of_shared(&pool.name));
        if has > had && has > most {
            return Err(format!("{has} of pool {} are given out, where {most} can be had", pool.name));
        }
        for node in after.nodes() {
            let (had, has) = (old.on_node(&pool.name, &node.name), new.on_node(&pool.name, &node.name));
            let most = holdable_on(after, pool, &node.name);
            if has > had && has > most {
                return Err(format!("{has} of pool {} on {} are given out of {most}", pool.name, node.name));
            }
        }
    }
    Ok(())
}

/// Space is given back only when nothing is left of what was there.
pub fn observe(before: &Cluster, world: &World, command: &Command) -> Result<(), String> {
    if matches!(command, Command::AdoptPlan(_)) {
        is_to_be_had(before, &world.cluster)?;
    }
    // An operator has given up on it, or on the node it is on; the agent removes it when it comes back.
    if matches!(command, Command::DropBuffer { .. } | Command::Reconfigure { .. }) {
        return Ok(());
    }
    let epoch = |cluster: &Cluster, job: JobId| cluster.buffer(job).map(|buffer| buffer.epoch);
    for gone in before.buffers().filter(|buffer| epoch(&world.cluster, buffer.job) != Some(buffer.epoch)) {
        let next = world.cluster.buffer(gone.job);
        let is_charged = |home: &Home, node: &NodeName| {
            let is_it = |next: &Buffer, place: &Place| next.home(place) == *home && place.node == *node;
            next.is_some_and(|next| next.places.iter().any(|place| is_it(next, place)))
        };
        for place in &gone.places {
            let home = gone.home(place);
            if world.disks.has(&place.node, &home) && !is_charged(&home, &place.node) {
                return Err(format!("the buffer of {} is complete, but {home:?} is left", gone.job));
            }
        }
    }
    Ok(())
}

/// No job runs without its data, and no pool is given out twice.
pub fn check(world: &World) -> Result<(), String> {
    let cluster = &world.cluster;
    for buffer in cluster.buffers().filter(|buffer| buffer.phase == BufferPhase::InUse) {
        let runs = |id: JobId| cluster.job(id).is_some_and(|job| job.phase == Phase::Running);
        for place in buffer.places.iter().filter(|place| !place.is_unwanted && runs(buffer.job)) {
            let home = buffer.home(place);
            let is_wiped = world.disks.wiped.contains(&(place.node.clone(), home.clone()));
            if !is_wiped && !world.disks.has(&place.node, &home) {
                return Err(format!("job {} runs without {home:?} on {}", buffer.job, place.node));
            }
        }
    }
    for buffer in cluster.buffers() {
        check_staged(world, buffer)?;
    }
    let Some(config) = &cluster.config().burst_buffer else { return Ok(()) };
    let usage = Usage::of(cluster);
    for pool in &config.pools {
        if usage.of_shared(&pool.name) > pool.total_bytes.unwrap_or(0) {
            return Err(format!("pool {} is given out twice", pool.name));
        }
        for node in cluster.nodes().filter(|node| usage.on_node(&pool.name, &node.name) > 0) {
            if usage.on_node(&pool.name, &node.name) > total_on(cluster, pool, &node.name) {
                return Err(format!("pool {} is given out twice on {}", pool.name, node.name));
            }
        }
    }
    Ok(())
}

/// What the log says is staged in is there, unless the machine has started anew and nobody has heard of it yet.
fn check_staged(world: &World, buffer: &Buffer) -> Result<(), String> {
    use BufferPhase::{PreRun, Revoked, StagedIn};
    if !matches!(buffer.phase, StagedIn | PreRun | Revoked) {
        return Ok(());
    }
    let is_known = |node: &NodeName| {
        let boot = world.agents.get(node).map(|agent| agent.n_boots.to_string());
        world.cluster.node(node.as_str()).map(|node| node.machine.boot_id.clone()) == boot
    };
    for place in buffer.places.iter().filter(|place| place.is_staged && !place.is_unwanted && is_known(&place.node)) {
        let home = buffer.home(place);
        if !world.disks.has(&place.node, &home) {
            return Err(format!("{home:?} counts as staged in on {}, but is not there", place.node));
        }
    }
    Ok(())
}

/// Somebody looks after data that could not be brought back, and after those who wait for buffers that nobody makes.
pub fn help(world: &mut World) {
    let cluster = world.cluster.clone();
    for job in cluster.jobs().filter(|job| job.spec.buffer.is_some()) {
        let jobs = vec![job.id.into()];
        // Somebody else's buffer is in its way, for ever.
        let never = job.buffer_hold.contains("permission denied") || job.buffer_hold.contains("Duplicate buffer name");
        if job.phase == Phase::Pending && never {
            let _ = world.propose(Caller::SYSTEM, Command::Cancel { jobs, hurry: false });
            continue;
        }
        let stage_out_failed = job.buffer == Some(BufferPhase::StagingOut) && !job.buffer_failure.is_empty();
        let command = match (job.phase, job.buffer) {
            (Phase::Finishing | Phase::Done | Phase::Pending, _) if stage_out_failed => {
                Command::Cancel { jobs, hurry: true }
            }
            (Phase::Pending, Some(BufferPhase::Allocating)) => Command::Cancel { jobs, hurry: false },
            _ => continue,
        };
        let _ = world.propose(Caller::SYSTEM, command);
    }
    // Nobody destroys what is left of those who made it, and it takes up the pool.
    let waits = |job: &&std::sync::Arc<Job>| job.reason == Some(Reason::BurstBufferResources);
    if cluster.jobs().any(|job| waits(&job)) {
        for name in cluster.persistent_buffers().map(|buffer| buffer.name.clone()) {
            let _ = world.propose(Caller::SYSTEM, Command::DropBuffer { buffer: Owner::Persistent(name) });
        }
    }
}
