//! How much of a node a job needs: the arithmetic that submission, scheduling and adoption share.
use crate::Node;
use crate::gres::GresRequest;
use crate::node::NodeConfig;
use crate::spec::{Memory, Sharing, Size};

/// What a node has to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub cpus: u32,
    pub memory_mb: u64,
}

impl NodeConfig {
    pub fn room(&self) -> Room {
        Room { cpus: self.cpus, memory_mb: self.memory_mb }
    }

    /// The whole node has the units asked for.
    pub fn has_gres(&self, wanted: &[GresRequest]) -> bool {
        wanted.iter().all(|request| {
            let fitting = self.gres.iter().filter(|gres| gres.name == request.name);
            let fitting = fitting.filter(|gres| request.kind.is_empty() || gres.kind == request.kind);
            fitting.map(|gres| gres.count).sum::<u32>() >= request.count
        })
    }
}

impl Node {
    pub fn free_room(&self) -> Room {
        Room { cpus: self.free_cpus(), memory_mb: self.free_memory_mb() }
    }

    pub fn has_free_gres(&self, wanted: &[GresRequest]) -> bool {
        wanted.iter().all(|request| self.free_gres(&request.name, &request.kind).len() >= request.count)
    }

    /// The node may ever serve the job: features, exclusions, disk, devices.
    pub fn suits(&self, size: &Size) -> bool {
        !self.is_removed
            && !size.excluded.contains(&self.name)
            && size.tmp_disk_mb <= self.config.tmp_disk_mb
            && size.constraint.as_ref().is_none_or(|constraint| constraint.is_met_by(&self.config.features))
            && self.config.has_gres(&size.gres)
    }
}

impl Size {
    pub fn wants_whole_nodes(&self) -> bool {
        self.sharing == Sharing::WholeNodes
    }

    /// CPUs for `n_tasks` on one node.
    pub fn cpus_for(&self, n_tasks: u32) -> u32 {
        let cpus = if self.overcommit { 1 } else { n_tasks.saturating_mul(self.n_cpus_per_task()) };
        cpus.max(self.min_cpus_per_node.unwrap_or(1)).max(1)
    }

    /// Memory on a node where the job has `n_cpus`, of a node that has `whole_mb`.
    pub fn memory_mb_for(&self, n_cpus: u32, whole_mb: u64) -> u64 {
        match self.memory {
            Memory::Default => 0,
            Memory::PerNodeMb(memory_mb) => memory_mb,
            Memory::PerCpuMb(memory_mb) => memory_mb.saturating_mul(u64::from(n_cpus)),
            Memory::WholeNode => whole_mb,
        }
    }

    /// How many tasks a node with `room` can take; `whole_mb` is the node's memory. None: not even one.
    pub fn n_tasks_fitting(&self, room: Room, whole_mb: u64) -> Option<u32> {
        let by_cpus = match self.overcommit {
            true => u32::MAX,
            false => room.cpus / self.n_cpus_per_task(),
        };
        let by_memory = match self.memory {
            Memory::PerCpuMb(memory_mb) if memory_mb > 0 && !self.overcommit => {
                let cpus = u32::try_from(room.memory_mb / memory_mb).unwrap_or(u32::MAX);
                cpus / self.n_cpus_per_task()
            }
            _ => u32::MAX,
        };
        let n_tasks = by_cpus.min(by_memory).min(self.tasks_per_node.unwrap_or(u32::MAX));
        let cpus = self.cpus_for(1);
        let fits = n_tasks > 0 && cpus <= room.cpus && self.memory_mb_for(cpus, whole_mb) <= room.memory_mb;
        fits.then_some(n_tasks)
    }

    /// The fewest nodes it may have, and the most.
    pub fn node_bounds(&self) -> (u32, u32) {
        let min = self.min_nodes.max(1).max(self.nodes.len() as u32);
        (min, self.max_nodes.unwrap_or(u32::MAX).max(min))
    }
}
