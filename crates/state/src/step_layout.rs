//! Which nodes and CPUs of a job a step gets, and how its tasks are laid out over them.
use model::spec::{Distribution, Memory};
use model::{CpuSet, Job, NodeShare, Reject, Step, StepSpec};

pub(crate) struct Layout {
    pub shares: Vec<NodeShare>,
    pub n_tasks: u32,
}

/// Lays the step out over what `others` leave free of the job's allocation.
/// Too large for the whole allocation: never. Too large for what is free now: later.
pub(crate) fn lay_out<'a>(
    job: &Job,
    spec: &StepSpec,
    others: impl Iterator<Item = &'a Step>,
) -> Result<Layout, Reject> {
    let busy: Vec<&NodeShare> = others.filter(|step| !step.spec.overlaps).flat_map(|step| &step.shares).collect();
    let mut whole: Vec<NodeShare> = job.allocation.nodes.clone();
    whole.retain(|share| !spec.excluded.contains(&share.node));
    if let Some(missing) = spec.nodes.iter().find(|name| !whole.iter().any(|share| share.node == **name)) {
        return Err(Reject::NoSuchNode(missing.to_string()));
    }
    if !spec.nodes.is_empty() {
        whole.retain(|share| spec.nodes.contains(&share.node));
    }
    if whole.is_empty() || (whole.len() as u32) < spec.min_nodes {
        return Err(Reject::StepTooLarge);
    }
    let possible = place(spec, &whole).ok_or(Reject::StepTooLarge)?;
    if spec.overlaps || busy.is_empty() {
        return Ok(possible);
    }
    let mut free = whole;
    for share in &mut free {
        for taken in busy.iter().filter(|taken| taken.node == share.node) {
            share.cpus = share.cpus.difference(&taken.cpus);
            share.memory_mb = share.memory_mb.saturating_sub(taken.memory_mb);
        }
    }
    free.retain(|share| !share.cpus.is_empty());
    place(spec, &free).ok_or(Reject::StepMustWait)
}

/// One task on each of the fewest nodes asked for, then node by node as far as CPUs reach.
fn place(spec: &StepSpec, room: &[NodeShare]) -> Option<Layout> {
    let per_task = spec.cpus_per_task.unwrap_or(1).max(1);
    let capacities: Vec<u32> =
        room.iter().map(|share| (share.cpus.len() / per_task).min(spec.tasks_per_node.unwrap_or(u32::MAX))).collect();
    let min_nodes = spec.min_nodes.max(1) as usize;
    let n_tasks = match (spec.n_tasks, spec.tasks_per_node) {
        (Some(n_tasks), _) => n_tasks,
        (None, Some(per_node)) => per_node * min_nodes as u32,
        (None, None) => min_nodes as u32,
    };
    let usable: Vec<usize> = (0..room.len()).filter(|at| capacities[*at] > 0).collect();
    if usable.len() < min_nodes
        || n_tasks == 0
        || capacities.iter().map(|n| u64::from(*n)).sum::<u64>() < u64::from(n_tasks)
    {
        return None;
    }
    if spec.distribution != Distribution::Block {
        return place_in_turn(spec, room, &capacities, min_nodes, n_tasks);
    }
    let mut counts = vec![0; room.len()];
    let mut left = n_tasks;
    for at in usable.iter().take(min_nodes.min(n_tasks as usize)) {
        counts[*at] = 1;
        left -= 1;
    }
    // As the job itself was laid out, where the step is the job's full width.
    for at in &usable {
        let wanted = room[*at].n_tasks.min(capacities[*at]).saturating_sub(counts[*at]).min(left);
        counts[*at] += wanted;
        left -= wanted;
    }
    for at in &usable {
        let more = (capacities[*at] - counts[*at]).min(left);
        counts[*at] += more;
        left -= more;
    }
    Some(shares(spec, room, counts, n_tasks))
}

/// Goes round the first nodes that are enough.
fn place_in_turn(
    spec: &StepSpec,
    room: &[NodeShare],
    capacities: &[u32],
    min_nodes: usize,
    n_tasks: u32,
) -> Option<Layout> {
    let usable: Vec<usize> = (0..room.len()).filter(|at| capacities[*at] > 0).collect();
    let counts = (min_nodes..=usable.len()).find_map(|n_nodes| {
        let first: Vec<u32> = usable[..n_nodes].iter().map(|at| capacities[*at]).collect();
        spec.distribution.counts(n_tasks, &first)
    })?;
    let mut all = vec![0; room.len()];
    for (at, count) in usable.iter().zip(counts) {
        all[*at] = count;
    }
    Some(shares(spec, room, all, n_tasks))
}

fn shares(spec: &StepSpec, room: &[NodeShare], counts: Vec<u32>, n_tasks: u32) -> Layout {
    let per_task = spec.cpus_per_task.unwrap_or(1).max(1);
    let chosen = room.iter().zip(counts).filter(|(_, n_tasks)| *n_tasks > 0);
    let shares = chosen.map(|(share, n_tasks)| take_share(spec, share, n_tasks, n_tasks * per_task)).collect();
    Layout { shares, n_tasks }
}

fn take_share(spec: &StepSpec, share: &NodeShare, n_tasks: u32, n_cpus: u32) -> NodeShare {
    let cpus: CpuSet = share.cpus.lowest(n_cpus).unwrap_or_else(|| share.cpus.clone());
    let memory_mb = match spec.memory {
        Memory::Default | Memory::WholeNode => 0,
        Memory::PerNodeMb(memory_mb) => memory_mb,
        Memory::PerCpuMb(memory_mb) => memory_mb * u64::from(cpus.len()),
        Memory::PerGpuMb(memory_mb) => {
            let gpus = share.gres.iter().filter(|units| units.name == "gpu").map(|units| units.units.len());
            memory_mb * u64::from(gpus.sum::<u32>())
        }
    };
    NodeShare {
        node: share.node.clone(),
        cpus,
        memory_mb: memory_mb.min(share.memory_mb),
        gres: share.gres.clone(),
        n_tasks,
    }
}
