//! Which nodes, CPUs, memory and devices of a job a step gets, and how its tasks are laid out over them.
use model::gres::{self, GresRequest, GresUnits};
use model::spec::{Distribution, Memory};
use model::{CpuSet, Job, NodeName, NodeShare, Reject, Step, StepSpec};

/// Tasks on a node, where its CPUs do not bound them; as Slurm's MaxTasksPerNode.
const OVERCOMMITTED_TASKS_MAX: u32 = 512;

pub(crate) struct Layout {
    pub shares: Vec<NodeShare>,
    pub n_tasks: u32,
}

/// What one node of the job has for a step.
#[derive(Clone)]
struct Room {
    share: NodeShare,
    /// All the job has there, whatever other steps hold.
    n_cpus: u32,
    gres: Vec<GresUnits>,
    /// A job without a memory limit has as much as a step wants.
    is_memory_counted: bool,
    /// Its leaf switch or base block, where the job is placed by the network.
    unit: Option<u32>,
    /// CPUs that the node hands out together.
    cpus_together: u32,
}

/// What of a node a step's layout has to know besides the job's share of it.
pub(crate) struct Place {
    /// Its leaf switch or base block, where the job is placed by the network.
    pub unit: Option<u32>,
    /// CPUs that the node hands out together; steps get whole cores as jobs do.
    pub cpus_together: u32,
}

/// Lays the step out over what `others` leave free of the job's allocation; nodes of one `unit` of the network rather than of
/// several. Too large for the whole allocation: never. Too large for what is free now: later.
pub(crate) fn lay_out<'a>(
    job: &Job,
    spec: &StepSpec,
    others: impl Iterator<Item = &'a Step>,
    place_of: impl Fn(&NodeName) -> Place,
) -> Result<Layout, Reject> {
    let room = |share: &NodeShare| Room::all_of(share, place_of(&share.node));
    let mut whole: Vec<Room> = job.allocation.nodes.iter().map(room).collect();
    whole.retain(|room| !spec.excluded.contains(&room.share.node));
    let named = spec.nodes.iter().chain(&spec.hosts);
    if let Some(missing) = named.clone().find(|name| !whole.iter().any(|room| room.share.node == **name)) {
        return Err(Reject::NoSuchNode(missing.to_string()));
    }
    if !spec.nodes.is_empty() {
        // Those that are named, and as many others as it takes besides.
        let is_named = |room: &Room| spec.nodes.contains(&room.share.node);
        let n_named = whole.iter().filter(|room| is_named(room)).count() as u32;
        let mut missing = spec.min_nodes.saturating_sub(n_named);
        whole.retain(|room| {
            let is_besides = !is_named(room) && missing > 0;
            missing -= u32::from(is_besides);
            is_besides || is_named(room)
        });
    }
    if whole.is_empty() || (whole.len() as u32) < spec.min_nodes {
        return Err(Reject::StepTooLarge);
    }
    let possible = place(spec, &whole)?;
    let busy: Vec<&NodeShare> = others.filter(|step| !step.spec.overlaps).flat_map(|step| &step.shares).collect();
    if spec.overlaps || busy.is_empty() {
        return Ok(possible);
    }
    for room in &mut whole {
        for taken in busy.iter().filter(|taken| taken.node == room.share.node) {
            room.share.cpus = room.share.cpus.difference(&taken.cpus);
            room.share.memory_mb = room.share.memory_mb.saturating_sub(taken.memory_mb);
            room.share.gres = gres::without_units(&room.share.gres, &taken.gres);
        }
    }
    whole.retain(|room| match spec.is_exact {
        true => !room.share.cpus.is_empty(),
        false => room.share.cpus.len() == room.n_cpus,
    });
    place(spec, &whole).map_err(|_| Reject::StepMustWait)
}

impl Room {
    fn all_of(share: &NodeShare, place: Place) -> Self {
        Room {
            share: share.clone(),
            n_cpus: share.cpus.len(),
            gres: share.gres.clone(),
            is_memory_counted: share.memory_mb > 0,
            unit: place.unit,
            cpus_together: place.cpus_together.max(1),
        }
    }

    /// How many of the step's tasks fit, at most.
    fn capacity(&self, spec: &StepSpec) -> u32 {
        let per_task = spec.cpus_per_task.unwrap_or(1).max(1);
        let by_cpus = match (spec.overcommit, self.share.cpus.is_empty()) {
            (true, false) => OVERCOMMITTED_TASKS_MAX,
            _ => self.share.cpus.len() / per_task,
        };
        let by_memory = match spec.memory {
            Memory::PerCpuMb(memory_mb) if self.is_memory_counted && memory_mb > 0 && !spec.overcommit => {
                u32::try_from(self.share.memory_mb / memory_mb).unwrap_or(u32::MAX) / per_task
            }
            Memory::PerNodeMb(memory_mb) if self.is_memory_counted && memory_mb > self.share.memory_mb => 0,
            _ => u32::MAX,
        };
        let by_gres = spec.gres_per_task.iter().filter(|unit| unit.count > 0).map(|unit| {
            let suits = |held: &&GresUnits| held.name == unit.name && (unit.kind.is_empty() || held.kind == unit.kind);
            self.share.gres.iter().filter(suits).map(|held| held.units.len()).sum::<u32>() / unit.count
        });
        by_cpus.min(by_memory).min(by_gres.min().unwrap_or(u32::MAX)).min(spec.tasks_per_node.unwrap_or(u32::MAX))
    }
}

/// Which of the bounds was met, when there is no place for it even in an empty allocation.
fn why_not(spec: &StepSpec, rooms: &[Room]) -> Reject {
    let lacks_memory = |room: &&Room| match spec.memory {
        Memory::PerNodeMb(memory_mb) => room.is_memory_counted && memory_mb > room.share.memory_mb,
        Memory::PerCpuMb(memory_mb) => room.is_memory_counted && memory_mb > room.share.memory_mb,
        Memory::Default | Memory::PerGpuMb(_) | Memory::WholeNode => false,
    };
    let fits_without_gres = || {
        let bare =
            StepSpec { gres: Some(Vec::new()), gres_per_task: Vec::new(), gres_total: Vec::new(), ..spec.clone() };
        counts(&bare, rooms).is_some()
    };
    if rooms.iter().any(|room| lacks_memory(&room)) {
        return Reject::StepMemory;
    }
    let wants_gres = spec.gres.as_ref().is_some_and(|units| !units.is_empty())
        || !spec.gres_per_task.is_empty()
        || !spec.gres_total.is_empty();
    if wants_gres && fits_without_gres() { Reject::StepGres } else { Reject::StepTooLarge }
}

fn place(spec: &StepSpec, rooms: &[Room]) -> Result<Layout, Reject> {
    let (counts, n_tasks) = counts(spec, rooms).ok_or_else(|| why_not(spec, rooms))?;
    let chosen: Vec<(&Room, u32)> = rooms.iter().zip(counts).filter(|(_, n_tasks)| *n_tasks > 0).collect();
    let mut missing = spec.gres_total.clone();
    let mut shares = Vec::with_capacity(chosen.len());
    for (at, (room, n_tasks)) in chosen.iter().enumerate() {
        let n_after = (chosen.len() - at - 1) as u32;
        let share = take_share(spec, room, *n_tasks, &mut missing, n_after).ok_or_else(|| why_not(spec, rooms))?;
        shares.push(share);
    }
    match missing.iter().all(|unit| unit.count == 0) {
        true => Ok(Layout { shares, n_tasks }),
        false => Err(Reject::StepGres),
    }
}

/// Tasks for each room, and all of them.
fn counts(spec: &StepSpec, rooms: &[Room]) -> Option<(Vec<u32>, u32)> {
    let mut capacities: Vec<u32> = rooms.iter().map(|room| room.capacity(spec)).collect();
    let min_nodes = spec.min_nodes.max(1) as usize;
    let n_tasks = match (spec.n_tasks, spec.tasks_per_node) {
        (Some(n_tasks), _) => n_tasks,
        (None, _) if !spec.hosts.is_empty() => spec.hosts.len() as u32,
        (None, Some(per_node)) => per_node.checked_mul(min_nodes as u32)?,
        // Told only how many CPUs a task has, the nodes take as many tasks as that allows.
        (None, None) if spec.cpus_per_task.is_some() && !spec.overcommit => {
            let usable = capacities.iter().copied().filter(|capacity| *capacity > 0);
            usable.take(min_nodes).sum::<u32>().max(min_nodes as u32)
        }
        (None, None) => min_nodes as u32,
    };
    if !spec.hosts.is_empty() {
        return arbitrary(spec, rooms, &capacities, n_tasks);
    }
    keep_fewest(spec, rooms, &mut capacities, n_tasks);
    let usable: Vec<usize> = (0..rooms.len()).filter(|at| capacities[*at] > 0).collect();
    let reach: u64 = capacities.iter().map(|n| u64::from(*n)).sum();
    if usable.len() < min_nodes || n_tasks == 0 || reach < u64::from(n_tasks) {
        return None;
    }
    if spec.distribution != Distribution::Block {
        return Some((in_turn(spec, &usable, &capacities, min_nodes, n_tasks)?, n_tasks));
    }
    let mut counts = vec![0; rooms.len()];
    let mut left = n_tasks;
    for at in usable.iter().take(min_nodes.min(n_tasks as usize)) {
        counts[*at] = 1;
        left -= 1;
    }
    // As the job itself was laid out, where the step is the job's full width.
    for at in usable.iter().filter(|_| !spec.packs) {
        let wanted = rooms[*at].share.n_tasks.min(capacities[*at]).saturating_sub(counts[*at]).min(left);
        counts[*at] += wanted;
        left -= wanted;
    }
    for at in &usable {
        // What is overcommitted is spread; all else fills node by node.
        let own = if spec.overcommit { rooms[*at].share.cpus.len().min(capacities[*at]) } else { capacities[*at] };
        let more = own.saturating_sub(counts[*at]).min(left);
        counts[*at] += more;
        left -= more;
    }
    let open = |counts: &[u32]| usable.iter().copied().filter(|at| counts[*at] < capacities[*at]).collect::<Vec<_>>();
    while left > 0 {
        let open = open(&counts);
        if open.is_empty() {
            return None;
        }
        let each = (left / open.len() as u32).max(1);
        for at in open {
            let more = each.min(capacities[at] - counts[at]).min(left);
            counts[at] += more;
            left -= more;
        }
    }
    Some((counts, n_tasks))
}

/// `--nodes` bounds how many may take part: the first ones, of one unit if one has so many, unless only roomier ones are enough.
fn keep_fewest(spec: &StepSpec, rooms: &[Room], capacities: &mut [u32], n_tasks: u32) {
    let Some(most) = spec.max_nodes.map(|most| most as usize) else { return };
    let usable: Vec<usize> = (0..capacities.len()).filter(|at| capacities[*at] > 0).collect();
    if usable.len() <= most {
        return;
    }
    let reach = |chosen: &[usize]| chosen.iter().map(|at| u64::from(capacities[*at])).sum::<u64>();
    // Nodes are in the order of their units.
    let mut units = usable.chunk_by(|one, next| rooms[*one].unit == rooms[*next].unit);
    let is_enough =
        |own: &&[usize]| rooms[own[0]].unit.is_some() && own.len() >= most && reach(&own[..most]) >= n_tasks.into();
    let mut chosen = units.find(is_enough).unwrap_or(&usable)[..most].to_vec();
    if reach(&chosen) < u64::from(n_tasks) {
        let mut by_size = usable;
        by_size.sort_by_key(|at| std::cmp::Reverse(capacities[*at]));
        chosen = by_size[..most].to_vec();
    }
    for (at, capacity) in capacities.iter_mut().enumerate() {
        if !chosen.contains(&at) {
            *capacity = 0;
        }
    }
}

/// Each task where the list says.
fn arbitrary(spec: &StepSpec, rooms: &[Room], capacities: &[u32], n_tasks: u32) -> Option<(Vec<u32>, u32)> {
    let hosts = spec.hosts.get(..n_tasks as usize)?;
    let on = |room: &Room| hosts.iter().filter(|host| **host == room.share.node).count() as u32;
    let counts: Vec<u32> = rooms.iter().map(on).collect();
    let fits = counts.iter().zip(capacities).all(|(count, capacity)| count <= capacity);
    (fits && n_tasks > 0 && counts.iter().sum::<u32>() == n_tasks).then_some((counts, n_tasks))
}

/// Goes round the first nodes that are enough.
fn in_turn(spec: &StepSpec, usable: &[usize], capacities: &[u32], min_nodes: usize, n_tasks: u32) -> Option<Vec<u32>> {
    let counts = (min_nodes..=usable.len()).find_map(|n_nodes| {
        let first: Vec<u32> = usable[..n_nodes].iter().map(|at| capacities[*at]).collect();
        spec.distribution.counts(n_tasks, &first)
    })?;
    let mut all = vec![0; capacities.len()];
    for (at, count) in usable.iter().zip(counts) {
        all[*at] = count;
    }
    Some(all)
}

/// What the step gets of a node; `missing` is what its nodes together still have to give, with so many of them after this one.
fn take_share(
    spec: &StepSpec,
    room: &Room,
    n_tasks: u32,
    missing: &mut [GresRequest],
    n_after: u32,
) -> Option<NodeShare> {
    let share = &room.share;
    let n_cpus = match spec.is_exact {
        true => n_tasks.saturating_mul(spec.cpus_per_task.unwrap_or(1).max(1)),
        false => share.cpus.len(),
    };
    let together = n_cpus.div_ceil(room.cpus_together).saturating_mul(room.cpus_together);
    let cpus: CpuSet = share.cpus.lowest(together).unwrap_or_else(|| share.cpus.clone());
    let n_working = if n_cpus < cpus.len() { n_cpus } else { 0 };
    let n_cpus = n_cpus.min(cpus.len());
    let gres = take_gres(spec, room, n_tasks, missing, n_after)?;
    let memory_mb = match spec.memory {
        Memory::Default | Memory::WholeNode => 0,
        Memory::PerNodeMb(memory_mb) => memory_mb,
        Memory::PerCpuMb(memory_mb) => memory_mb.saturating_mul(u64::from(n_cpus)),
        Memory::PerGpuMb(memory_mb) => {
            let gpus = gres.iter().filter(|units| units.name == "gpu").map(|units| units.units.len());
            memory_mb.saturating_mul(u64::from(gpus.sum::<u32>()))
        }
    };
    let memory_mb = if room.is_memory_counted { memory_mb.min(share.memory_mb) } else { memory_mb };
    Some(NodeShare { node: share.node.clone(), cpus, memory_mb, gres, n_tasks, n_working })
}

fn take_gres(
    spec: &StepSpec,
    room: &Room,
    n_tasks: u32,
    missing: &mut [GresRequest],
    n_after: u32,
) -> Option<Vec<GresUnits>> {
    let free = &room.share.gres;
    let is_asked = spec.gres.is_some() || !spec.gres_per_task.is_empty() || !missing.is_empty();
    if !is_asked {
        return (*free == room.gres).then(|| free.clone());
    }
    let for_tasks = spec.gres_per_task.iter().map(|unit| {
        let count = unit.count.saturating_mul(n_tasks);
        GresRequest { count, ..unit.clone() }
    });
    let mut wanted: Vec<GresRequest> = spec.gres.iter().flatten().cloned().chain(for_tasks).collect();
    for unit in missing.iter_mut().filter(|unit| unit.count > 0) {
        // As much as there is, but one is left for each node that follows.
        let reserved = n_after.min(unit.count - 1);
        let there: u32 = free.iter().filter(|held| held.name == unit.name).map(|held| held.units.len()).sum();
        let mut count = (unit.count - reserved).min(there);
        let fits = |count: u32| {
            let all: Vec<GresRequest> = wanted.iter().cloned().chain([GresRequest { count, ..unit.clone() }]).collect();
            gres::take_units(free, &all).is_some()
        };
        while count > 0 && !fits(count) {
            count -= 1;
        }
        unit.count -= count;
        wanted.push(GresRequest { count, ..unit.clone() });
    }
    gres::take_units(free, &wanted)
}
