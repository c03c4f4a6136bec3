//! How much of a node a job needs, and which nodes together are enough: the arithmetic that submission, scheduling and
//! adoption share.
use crate::gres::{GresRequest, GresUnits};
use crate::node::NodeConfig;
use crate::spec::{Distribution, Memory, NetworkWish, Sharing, Size};
use crate::{Node, NodeName};

/// What a node has to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub cpus: u32,
    pub memory_mb: u64,
}

/// What a job gets of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub n_cpus: u32,
    pub memory_mb: u64,
}

/// A node that could take part in a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The node's place in natural name order; neighbours differ by one.
    pub rank: u32,
    /// Tasks it can take; at least one.
    pub n_tasks: u32,
    /// The job named it.
    pub is_required: bool,
}

impl NodeConfig {
    pub fn n_threads_per_core(&self) -> u32 {
        self.threads_per_core.max(1)
    }

    fn n_cores(&self) -> u32 {
        (self.cpus / self.n_threads_per_core()).max(1)
    }

    pub fn room(&self) -> Room {
        Room { cpus: self.cpus, memory_mb: self.memory_mb }
    }

    /// The whole node has the units asked for.
    pub fn has_gres(&self, wanted: &[GresRequest]) -> bool {
        wanted.is_empty() || self.pick_gres(&[], wanted).is_some()
    }
}

impl Node {
    pub fn free_room(&self) -> Room {
        Room { cpus: self.free_cpus(), memory_mb: self.free_memory_mb() }
    }

    pub fn has_free_gres(&self, wanted: &[GresRequest]) -> bool {
        wanted.is_empty() || self.config.pick_gres(&self.used.gres, wanted).is_some()
    }

    /// The node may ever serve the job: features, exclusions, disk, devices.
    pub fn suits(&self, size: &Size) -> bool {
        !self.is_removed
            && !size.excluded.contains(&self.name)
            && (size.network.among.is_empty() || size.network.among.contains(&self.name))
            && size.tmp_disk_mb <= self.config.tmp_disk_mb
            && size.node_memory_mb <= self.config.memory_mb
            && size.constraint.as_ref().is_none_or(|constraint| constraint.is_met_by(self.features()))
            && size.feature_sets.may_have(self.features())
            && self.config.has_gres(&size.gres_for(size.n_tasks_each().unwrap_or(1)))
            && size.threads_per_core.is_none_or(|threads| threads <= self.config.n_threads_per_core())
            && size.sockets_per_node.is_none_or(|sockets| sockets <= self.config.sockets.max(1))
            && size.cores_per_socket.is_none_or(|cores| cores <= self.config.cores_per_socket.max(1))
    }
}

impl NetworkWish {
    /// The job asks for a common switch of its own accord.
    pub fn needs_switch(&self) -> bool {
        self.n_switches > 0 || self.most_level.is_some()
    }

    /// It is made of several segments when it has so many nodes.
    pub fn is_segmented(&self, n_nodes: u32) -> bool {
        self.segment > 0 && n_nodes > self.segment
    }
}

impl Size {
    /// The nodes that the job names, be it that it must have them or may choose among them.
    pub fn listed_nodes(&self) -> &[NodeName] {
        if self.nodes.is_empty() { &self.network.among } else { &self.nodes }
    }

    pub fn wants_whole_nodes(&self) -> bool {
        self.sharing == Sharing::WholeNodes
    }

    /// Asks nothing of a node's kind, so that every node that is not removed suits it.
    pub fn suits_every_node(&self) -> bool {
        self.excluded.is_empty()
            && self.network.among.is_empty()
            && self.tmp_disk_mb == 0
            && self.node_memory_mb == 0
            && self.constraint.is_none()
            && self.feature_sets.is_empty()
            && self.preference.is_none()
            && self.gres.is_empty()
            && self.gres_per_task.is_empty()
            && self.gres_total.is_empty()
            && self.threads_per_core.is_none()
            && self.sockets_per_node.is_none()
            && self.cores_per_socket.is_none()
    }

    /// CPUs that work for `n_tasks` on one node.
    pub fn cpus_for(&self, n_tasks: u32) -> u32 {
        let cpus = if self.overcommit { 1 } else { n_tasks.saturating_mul(self.n_cpus_per_task()) };
        let for_gpus = self.cpus_per_gpu.map_or(0, |cpus| cpus.saturating_mul(self.n_gpus_for(n_tasks)));
        cpus.max(self.min_cpus_per_node.unwrap_or(1)).max(for_gpus).max(1)
    }

    /// CPUs held for so many tasks on one node: whole cores, where only some threads of a core may work, and whole units of what the
    /// node hands out.
    pub(crate) fn cpus_held_by(&self, n_tasks: u32, node: &NodeConfig) -> u32 {
        let n_cpus = self.cpus_for(n_tasks);
        let (unit, all) = (node.unit(), node.n_threads_per_core());
        let threads = self.threads_per_core.filter(|threads| *threads < all).map(|threads| threads.max(1));
        if unit == 1 {
            return threads.map_or(n_cpus, |threads| n_cpus.div_ceil(threads).saturating_mul(all));
        }
        let threads = threads.unwrap_or(all);
        let n_cores = n_cpus.div_ceil(threads).max(self.cores_apart(n_tasks, threads));
        n_cores.saturating_mul(all).div_ceil(unit).saturating_mul(unit)
    }

    /// CPUs that may work when so many are held.
    fn cpus_working(&self, n_cpus: u32, node: &NodeConfig) -> u32 {
        let all = node.n_threads_per_core();
        let whole = n_cpus / node.unit() * node.unit();
        match self.threads_per_core.filter(|threads| *threads < all) {
            Some(threads) => whole / all * threads.max(1),
            None => whole,
        }
    }

    /// How many of so many held CPUs of a node work, where whole units are handed out and not all threads of a core do; 0: all.
    pub fn n_working_of(&self, n_cpus: u32, node: &NodeConfig) -> u32 {
        let n_working = self.cpus_working(n_cpus, node);
        if node.unit() > 1 && n_working < n_cpus { n_working } else { 0 }
    }

    /// The fewest cores for so many tasks of which only some may share a core, with so many CPUs of each.
    fn cores_apart(&self, n_tasks: u32, threads: u32) -> u32 {
        match self.tasks_per_core {
            None => 0,
            _ if self.overcommit => 0,
            Some(0 | 1) => n_tasks.saturating_mul(self.n_cpus_per_task().div_ceil(threads)),
            Some(most) => n_tasks.div_ceil(most),
        }
    }

    /// Tasks that so many CPUs of the node are enough for.
    pub(crate) fn n_tasks_on_cpus(&self, n_cpus: u32, node: &NodeConfig) -> u32 {
        let working = self.cpus_working(n_cpus, node);
        let by_cpus = working / self.n_cpus_per_task();
        if node.unit() == 1 {
            return by_cpus;
        }
        let all = node.n_threads_per_core();
        let threads = self.threads_per_core.unwrap_or(all).clamp(1, all);
        let n_cores = n_cpus / node.unit() * node.unit() / all;
        let apart = match self.tasks_per_core {
            None => u32::MAX,
            Some(0 | 1) => n_cores / self.n_cpus_per_task().div_ceil(threads),
            Some(most) => n_cores.saturating_mul(most),
        };
        by_cpus.min(apart)
    }

    /// At most so many tasks share a socket; where cores go whole, as many as the cores for these take.
    fn n_tasks_on_socket(&self, most: u32, node: &NodeConfig) -> u32 {
        if node.unit() == 1 { most } else { self.n_tasks_on_cpus(self.cpus_held_by(most, node), node).max(most) }
    }

    /// CPUs that could be held where there is memory for so many.
    fn cpus_with_memory(&self, n_cpus: u32, node: &NodeConfig) -> u32 {
        let all = node.n_threads_per_core();
        match self.threads_per_core.filter(|threads| *threads < all && node.unit() > 1) {
            Some(threads) => (n_cpus / threads.max(1)).saturating_mul(all),
            None => n_cpus,
        }
    }

    /// Where memory goes by CPUs: those that it goes by when so many are held.
    fn cpus_for_memory(&self, n_cpus: u32, node: &NodeConfig) -> u32 {
        if node.unit() == 1 { n_cpus } else { self.cpus_working(n_cpus, node) }
    }

    /// Generic resources on a node with `n_tasks` tasks.
    pub fn gres_for(&self, n_tasks: u32) -> Vec<GresRequest> {
        let for_tasks = self.gres_per_task.iter().map(|unit| {
            let count = unit.count.saturating_mul(n_tasks);
            GresRequest { count, ..unit.clone() }
        });
        self.gres.iter().cloned().chain(for_tasks).collect()
    }

    pub fn asks_for_gpus(&self) -> bool {
        self.gres.iter().chain(&self.gres_per_task).chain(&self.gres_total).any(|unit| unit.name == "gpu")
    }

    fn n_gpus_for(&self, n_tasks: u32) -> u32 {
        let count = |units: &[GresRequest]| -> u32 {
            units.iter().filter(|unit| unit.name == "gpu").map(|unit| unit.count).sum()
        };
        count(&self.gres).saturating_add(count(&self.gres_per_task).saturating_mul(n_tasks))
    }

    /// No node with less memory is of use.
    pub fn least_memory_mb(&self) -> u64 {
        match self.memory {
            Memory::PerNodeMb(memory_mb) => memory_mb,
            Memory::PerCpuMb(memory_mb) => memory_mb.saturating_mul(u64::from(self.cpus_for(1))),
            Memory::Default | Memory::PerGpuMb(_) | Memory::WholeNode => 0,
        }
    }

    /// Memory on a node where the job has `n_tasks` and `n_cpus`, of a node that has `whole_mb`.
    fn memory_mb_for(&self, n_tasks: u32, n_cpus: u32, whole_mb: u64) -> u64 {
        match self.memory {
            Memory::Default => 0,
            Memory::PerNodeMb(memory_mb) => memory_mb,
            Memory::PerCpuMb(memory_mb) => memory_mb.saturating_mul(u64::from(n_cpus)),
            Memory::PerGpuMb(memory_mb) => memory_mb.saturating_mul(u64::from(self.n_gpus_for(n_tasks))),
            Memory::WholeNode => whole_mb,
        }
    }

    /// What the job gets of a node on which `n_tasks` of its tasks are laid out.
    pub fn part_of(&self, node: &NodeConfig, n_tasks: u32) -> Part {
        if self.wants_whole_nodes() {
            let memory_mb = match self.memory {
                // Who has the node alone has all of its GPUs.
                Memory::PerGpuMb(each) => {
                    let gpus = node.gres.iter().filter(|gres| gres.name == "gpu").map(|gres| gres.count).sum::<u32>();
                    each.saturating_mul(gpus.max(self.n_gpus_for(n_tasks)).into())
                }
                _ => self.memory_mb_for(n_tasks, self.cpus_for_memory(node.cpus, node), node.memory_mb),
            };
            let memory_mb = memory_mb.min(node.memory_mb);
            return Part { n_cpus: self.whole_of(node), memory_mb };
        }
        let n_cpus = self.cpus_held_by(n_tasks, node);
        let memory_mb = self.memory_mb_for(n_tasks, self.cpus_for_memory(n_cpus, node), node.memory_mb);
        Part { n_cpus, memory_mb }
    }

    /// The CPUs of a node that the job has alone.
    pub fn whole_of(&self, node: &NodeConfig) -> u32 {
        if self.spared.is_some() { node.job_cpus_beside(self.spared).len() } else { node.cpus }
    }

    /// Who says what is left to the system has the rest of a node on which nothing runs, and nothing of others.
    fn room_beside_spared(&self, room: Room, node: &NodeConfig) -> Room {
        match self.spared {
            None => room,
            Some(_) if room.cpus < node.cpus => Room { cpus: 0, ..room },
            Some(_) => Room { cpus: self.whole_of(node), ..room },
        }
    }

    /// On nodes with fewer free CPUs than this the tasks cannot be.
    pub fn least_cpus_for(&self, n_tasks: u32) -> u32 {
        if self.spared.is_some() { 1 } else { self.cpus_for(n_tasks) }
    }

    /// How many tasks a node with `room` can take, when `in_use` is taken of its generic resources. None: it cannot serve at all.
    pub fn n_tasks_fitting(&self, room: Room, node: &NodeConfig, in_use: &[GresUnits]) -> Option<u32> {
        let room = self.room_beside_spared(room, node);
        let by_cpus = match self.overcommit {
            true => u32::MAX,
            false => self.n_tasks_on_cpus(room.cpus, node),
        };
        let by_memory = match self.memory {
            Memory::PerCpuMb(memory_mb) if memory_mb > 0 && !self.overcommit => {
                let cpus = u32::try_from(room.memory_mb / memory_mb).unwrap_or(u32::MAX);
                self.n_tasks_on_cpus(self.cpus_with_memory(cpus, node), node)
            }
            _ => u32::MAX,
        };
        let by_parts = |each: Option<u32>, n_parts: u32| each.map_or(u32::MAX, |each| each.saturating_mul(n_parts));
        let mut n_tasks = by_cpus
            .min(by_memory)
            .min(self.tasks_per_node.unwrap_or(u32::MAX))
            .min(by_parts(self.tasks_per_socket.map(|most| self.n_tasks_on_socket(most, node)), node.sockets.max(1)))
            .min(by_parts(self.tasks_per_core, node.n_cores()));
        let least = self.n_tasks_each().unwrap_or(1).max(1);
        if !self.gres_per_task.is_empty() {
            // No node has more units than this; the count goes down to what the units reach for.
            let units: u32 = node.gres.iter().map(|gres| gres.count).sum();
            n_tasks = n_tasks.min(units);
            while n_tasks >= least && !self.has_room(n_tasks, room, node, in_use) {
                n_tasks -= 1;
            }
        }
        let is_enough = n_tasks >= least;
        let cpus = self.cpus_held_by(1, node);
        let memory_mb = self.memory_mb_for(1, self.cpus_for_memory(cpus, node), node.memory_mb);
        (is_enough && cpus <= room.cpus && memory_mb <= room.memory_mb).then_some(n_tasks)
    }

    fn has_room(&self, n_tasks: u32, room: Room, node: &NodeConfig, in_use: &[GresUnits]) -> bool {
        let cpus = self.cpus_held_by(n_tasks, node);
        cpus <= room.cpus
            && self.memory_mb_for(n_tasks, self.cpus_for_memory(cpus, node), node.memory_mb) <= room.memory_mb
            && node.pick_gres(in_use, &self.gres_for(n_tasks)).is_some()
    }

    /// Tasks that every node gets, where the job does not say how many there are in all.
    pub fn n_tasks_each(&self) -> Option<u32> {
        match self.n_tasks {
            Some(_) => None,
            None => Some(self.tasks_per_node.unwrap_or(1)),
        }
    }

    /// The fewest nodes it may have, and the most.
    pub fn node_bounds(&self) -> (u32, u32) {
        let min = self.min_nodes.max(1).max(self.nodes.len() as u32).max(self.feature_sets.least_nodes());
        (min, self.max_nodes.unwrap_or(u32::MAX).max(min))
    }

    /// How many nodes it would rather have, within `bounds`: as many as it said it could use, and tasks can fill.
    pub fn n_nodes_wanted(&self, (min, max): (u32, u32)) -> u32 {
        if self.prefers_few_nodes {
            return min;
        }
        if self.spreads {
            return max.min(self.n_tasks.unwrap_or(min)).max(min);
        }
        match (self.max_nodes, self.n_tasks) {
            (None, _) => min,
            (Some(_), None) => max,
            (Some(_), Some(n_tasks)) => max.min(n_tasks).max(min),
        }
    }

    /// Whether nodes that take `n_tasks` together are enough.
    fn is_filled_by(&self, n_tasks: u64) -> bool {
        self.n_tasks.is_none_or(|wanted| u64::from(wanted) <= n_tasks)
    }

    /// Picks the roomiest of the candidates (in natural order of nodes), and no more than it needs; finds a way if there is one.
    /// Gives their places in the list, in order.
    pub fn choose(&self, bounds: (u32, u32), candidates: &[Candidate]) -> Option<Vec<usize>> {
        let n_required = candidates.iter().filter(|candidate| candidate.is_required).count();
        if n_required < self.nodes.len() {
            return None;
        }
        if self.contiguous {
            return self.choose_neighbours(bounds, candidates, n_required);
        }
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        let roominess = |at: &usize| (!candidates[*at].is_required, std::cmp::Reverse(candidates[*at].n_tasks));
        order.sort_by_key(roominess);
        let mut chosen = Vec::new();
        let mut n_tasks = 0;
        let wanted = self.n_nodes_wanted(bounds) as usize;
        for at in order {
            let is_enough = chosen.len() >= wanted.max(n_required) && self.is_filled_by(n_tasks);
            if is_enough || chosen.len() >= bounds.1 as usize {
                break;
            }
            chosen.push(at);
            n_tasks += u64::from(candidates[at].n_tasks);
        }
        chosen.sort_unstable();
        (chosen.len() >= bounds.0 as usize && self.is_filled_by(n_tasks)).then_some(chosen)
    }

    fn choose_neighbours(
        &self,
        (min, max): (u32, u32),
        candidates: &[Candidate],
        n_required: usize,
    ) -> Option<Vec<usize>> {
        let mut fewest: Option<std::ops::Range<usize>> = None;
        for first in 0..candidates.len() {
            let (mut n_tasks, mut required_here) = (0, 0);
            for last in first..candidates.len() {
                let n_nodes = last - first + 1;
                let is_neighbour = last == first || candidates[last].rank == candidates[last - 1].rank + 1;
                if !is_neighbour || n_nodes > max as usize {
                    break;
                }
                n_tasks += u64::from(candidates[last].n_tasks);
                required_here += usize::from(candidates[last].is_required);
                if n_nodes >= min as usize && required_here == n_required && self.is_filled_by(n_tasks) {
                    if fewest.as_ref().is_none_or(|range| n_nodes < range.len()) {
                        fewest = Some(first..last + 1);
                    }
                    break;
                }
            }
        }
        fewest.map(Iterator::collect)
    }

    /// Lays the tasks out over nodes that can take so many each: one a node, then the first nodes are filled; whole nodes, and
    /// those that are overcommitted, get alike many (packed or not: that is for steps). None if they do not fit.
    pub fn lay_out<'n>(&self, capacities: &[u32], node: impl Fn(usize) -> &'n NodeConfig) -> Option<Vec<u32>> {
        let Some(n_tasks) = self.n_tasks else {
            let fills = self.wants_whole_nodes() && self.tasks_per_node.is_none() && !self.overcommit;
            let each = self.tasks_per_node.unwrap_or(1);
            return Some(capacities.iter().map(|capacity| if fills { *capacity } else { each }).collect());
        };
        let distribution = if self.spreads { Distribution::Cyclic } else { self.distribution };
        match distribution {
            Distribution::Block if self.wants_whole_nodes() || self.overcommit => {
                Distribution::Cyclic.counts(n_tasks, capacities)
            }
            Distribution::Block if capacities.len() > 1 && (0..capacities.len()).any(|at| node(at).unit() > 1) => {
                self.lay_out_units(n_tasks, capacities, node)
            }
            distribution => distribution.counts(n_tasks, capacities),
        }
    }

    /// Each node gives a unit of what it hands out, then the first are filled; the tasks go round what they give.
    fn lay_out_units<'n>(
        &self,
        n_tasks: u32,
        capacities: &[u32],
        node: impl Fn(usize) -> &'n NodeConfig,
    ) -> Option<Vec<u32>> {
        let beside = |at: usize, n_tasks: u32| self.n_tasks_on_cpus(self.cpus_held_by(n_tasks, node(at)), node(at));
        let (mut counts, mut left) = (vec![0; capacities.len()], n_tasks);
        for most in [|_, _| 1, |_, beside: u32| beside, |capacity: u32, _| capacity] {
            for (at, count) in counts.iter_mut().enumerate() {
                let most = most(capacities[at], beside(at, 1)).min(capacities[at]);
                let more = most.saturating_sub(*count).min(left);
                *count += more;
                left -= more;
            }
        }
        let given = counts.iter().enumerate().map(|(at, count)| beside(at, *count).min(capacities[at]));
        Distribution::Cyclic.counts(n_tasks, &given.collect::<Vec<_>>()).filter(|_| left == 0)
    }
}

impl Distribution {
    /// How many of the tasks each node gets, none more than it can take; none if they do not all fit.
    pub fn counts(self, n_tasks: u32, capacities: &[u32]) -> Option<Vec<u32>> {
        let mut counts = vec![0; capacities.len()];
        let mut left = n_tasks;
        let mut give = |most: u32, counts: &mut [u32]| {
            let before = left;
            for (count, capacity) in counts.iter_mut().zip(capacities) {
                let more = left.min(most).min(capacity.saturating_sub(*count));
                *count += more;
                left -= more;
            }
            before - left
        };
        match self {
            Distribution::Block => {
                give(1, &mut counts);
                give(u32::MAX, &mut counts);
            }
            Distribution::Cyclic | Distribution::Even => while give(1, &mut counts) > 0 {},
            Distribution::Plane(size) => while give(size.max(1), &mut counts) > 0 {},
        }
        (left == 0).then_some(counts)
    }

    /// The ranks of each node's tasks, where the nodes have so many.
    pub fn ranks(self, counts: &[u32]) -> Vec<Vec<u32>> {
        let at_once = match self {
            Distribution::Block | Distribution::Even => u32::MAX,
            Distribution::Cyclic => 1,
            Distribution::Plane(size) => size.max(1),
        };
        let mut left = counts.to_vec();
        let mut ranks = vec![Vec::new(); counts.len()];
        let mut next = 0;
        while left.iter().any(|left| *left > 0) {
            for (left, ranks) in left.iter_mut().zip(&mut ranks) {
                let more = at_once.min(*left);
                ranks.extend(next..next + more);
                next += more;
                *left -= more;
            }
        }
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hand_out::HandOut;

    #[test]
    fn tasks_are_laid_out_as_slurm_does() {
        // Recorded on Slurm 22.05: nodes of eight CPUs.
        let eight = NodeConfig { cpus: 8, ..Default::default() };
        let laid = |n_tasks, n_nodes| {
            let size = Size { n_tasks, ..Default::default() };
            size.lay_out(&vec![8; n_nodes], |_| &eight).unwrap()
        };
        assert_eq!(laid(Some(4), 2), [3, 1]);
        assert_eq!(laid(Some(5), 2), [4, 1]);
        assert_eq!(laid(Some(6), 3), [4, 1, 1]);
        assert_eq!(laid(Some(16), 2), [8, 8]);
        assert_eq!(laid(Some(1), 2), [1, 0]);
        assert_eq!(laid(None, 4), [1, 1, 1, 1]);
        let whole = Size { sharing: Sharing::WholeNodes, ..Default::default() };
        assert_eq!(whole.lay_out(&[8], |_| &eight).unwrap(), [8]);
        let alike = Size { n_tasks: Some(5), ..whole };
        assert_eq!(alike.lay_out(&[8, 8], |_| &eight).unwrap(), [3, 2]);
    }

    #[test]
    fn neighbours_are_chosen_without_gaps() {
        let size = Size { contiguous: true, min_nodes: 2, ..Default::default() };
        let candidates = [1, 3, 4, 9].map(|rank| Candidate { rank, n_tasks: 1, is_required: false });
        assert_eq!(size.choose((2, 2), &candidates), Some(vec![1, 2]));
        assert_eq!(size.choose((3, 3), &candidates), None);
    }

    #[test]
    fn ranks_follow_the_distribution() {
        let laid = |distribution: Distribution, n_tasks| {
            let counts = distribution.counts(n_tasks, &[4, 2, 4]).unwrap();
            distribution.ranks(&counts)
        };
        assert_eq!(laid(Distribution::Block, 5), [vec![0, 1, 2], vec![3], vec![4]]);
        assert_eq!(laid(Distribution::Cyclic, 7), [vec![0, 3, 6], vec![1, 4], vec![2, 5]]);
        assert_eq!(laid(Distribution::Plane(2), 7), [vec![0, 1, 6], vec![2, 3], vec![4, 5]]);
        assert_eq!(laid(Distribution::Even, 7), [vec![0, 1, 2], vec![3, 4], vec![5, 6]]);
        assert_eq!(Distribution::Cyclic.counts(11, &[4, 2, 4]), None);
    }

    fn node() -> NodeConfig {
        let gpus = crate::gres::Gres { name: "gpu".into(), count: 3, ..Default::default() };
        NodeConfig {
            cpus: 16,
            memory_mb: 8000,
            sockets: 2,
            cores_per_socket: 4,
            threads_per_core: 2,
            gres: vec![gpus],
            ..Default::default()
        }
    }

    /// As a 22.05 with CR_Core_Memory gave them: nodes of two sockets, two cores each, of two threads.
    #[test]
    fn whole_cores_are_counted_as_by_a_22_05() {
        let mut node = NodeConfig { cpus: 8, memory_mb: 64_000, ..node() };
        node.cores_per_socket = 2;
        node.hand_out(HandOut::Cores);
        let tasks = |n: u32, each: u32| Size { n_tasks: Some(n), cpus_per_task: Some(each), ..Default::default() };
        let held = |size: &Size| size.part_of(&node, size.n_tasks.unwrap_or(1)).n_cpus;
        for ((n, each), n_cpus) in [((1, 1), 2), ((3, 1), 4), ((2, 2), 4), ((2, 3), 6), ((1, 3), 4), ((1, 5), 6)] {
            assert_eq!(held(&tasks(n, each)), n_cpus, "-n{n} -c{each}");
        }
        let apart = |size: Size| Size { tasks_per_core: Some(1), ..size };
        for ((n, each), n_cpus) in [((2, 1), 4), ((2, 3), 8), ((2, 2), 4), ((3, 2), 6)] {
            assert_eq!(held(&apart(tasks(n, each))), n_cpus, "--ntasks-per-core=1 -n{n} -c{each}");
        }
        let single = |size: Size| Size { threads_per_core: Some(1), memory: Memory::PerCpuMb(10), ..size };
        assert_eq!(single(tasks(3, 1)).part_of(&node, 3), Part { n_cpus: 6, memory_mb: 30 });
        let memory = |size: Size| Size { memory: Memory::PerCpuMb(10), ..size };
        assert_eq!(memory(tasks(3, 1)).part_of(&node, 3), Part { n_cpus: 4, memory_mb: 40 });
        let fits = |size: &Size| size.n_tasks_fitting(node.room(), &node, &[]);
        assert_eq!((fits(&tasks(9, 1)), fits(&tasks(3, 3)), fits(&apart(tasks(8, 1)))), (Some(8), Some(2), Some(4)));
        assert_eq!((fits(&single(tasks(9, 1))), fits(&apart(tasks(8, 3)))), (Some(4), Some(2)));
        let much = |each| Size { memory: Memory::PerCpuMb(20_000), ..tasks(3, each) };
        assert_eq!((fits(&much(1)), fits(&much(3))), (Some(2), None));
        for (n, n_nodes, counts) in [(3, 2, vec![2, 1]), (5, 2, vec![3, 2]), (9, 2, vec![7, 2]), (13, 2, vec![7, 6])]
            .into_iter()
            .chain([(10, 3, vec![6, 2, 2]), (20, 3, vec![8, 8, 4]), (24, 3, vec![8, 8, 8]), (4, 3, vec![2, 1, 1])])
        {
            assert_eq!(tasks(n, 1).lay_out(&vec![8; n_nodes], |_| &node), Some(counts), "-n{n} -N{n_nodes}");
        }
        assert_eq!(tasks(3, 3).lay_out(&[2, 2], |_| &node), Some(vec![2, 1]));
    }

    #[test]
    fn gpus_for_each_task_bound_the_tasks_of_a_node() {
        let gpu = GresRequest { name: "gpu".into(), count: 1, ..Default::default() };
        let size = Size { n_tasks: Some(8), gres_per_task: vec![gpu], ..Default::default() };
        assert_eq!(size.n_tasks_fitting(node().room(), &node(), &[]), Some(3));
        let used = node().pick_gres(&[], &size.gres_for(2)).unwrap();
        assert_eq!(size.n_tasks_fitting(node().room(), &node(), &used), Some(1));
        let hungry = Size { cpus_per_gpu: Some(6), memory: Memory::PerGpuMb(1000), ..size };
        assert_eq!(hungry.n_tasks_fitting(node().room(), &node(), &[]), Some(2));
        assert_eq!(hungry.part_of(&node(), 2), Part { n_cpus: 12, memory_mb: 2000 });
    }

    #[test]
    fn cores_and_sockets_bound_the_tasks_of_a_node() {
        let fitting = |size: Size| size.n_tasks_fitting(node().room(), &node(), &[]);
        let size = Size { n_tasks: Some(20), ..Default::default() };
        assert_eq!(fitting(size.clone()), Some(16));
        assert_eq!(fitting(Size { tasks_per_socket: Some(3), ..size.clone() }), Some(6));
        assert_eq!(fitting(Size { tasks_per_core: Some(1), ..size.clone() }), Some(8));
        let alone = Size { threads_per_core: Some(1), ..size };
        assert_eq!(fitting(alone.clone()), Some(8));
        assert_eq!(alone.part_of(&node(), 3).n_cpus, 6);
    }
}
