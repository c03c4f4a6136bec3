//! What a job holds on its nodes.
use crate::spec::Size;
use crate::{CpuSet, NodeName, gres::GresUnits};

record! {
    /// Everything a job holds. Kept after the job has ended, for display.
    pub struct Allocation {
        pub nodes: Vec<NodeShare>,
        /// No other job may share these nodes.
        pub is_exclusive: bool,
    }

    /// What a job holds on one node.
    pub struct NodeShare {
        pub node: NodeName,
        pub cpus: CpuSet,
        pub memory_mb: u64,
        pub gres: Vec<GresUnits>,
        /// Tasks that are laid out here.
        pub n_tasks: u32,
        /// CPUs that work for them, where whole cores are held of which only some threads do; 0: all.
        pub n_working: u32,
    }
}

impl NodeShare {
    /// CPUs that work, of those that are held.
    pub fn n_working_cpus(&self) -> u32 {
        if self.n_working > 0 { self.n_working } else { self.cpus.len() }
    }

    /// Tasks that a job of this size is told to have here: where it says no number, as many as have room.
    pub fn n_tasks_told(&self, size: &Size) -> u32 {
        let has_number = size.n_tasks.is_some() || size.tasks_per_node.is_some() || size.overcommit;
        let room = if has_number { 0 } else { self.n_working_cpus() / size.n_cpus_per_task() };
        self.n_tasks.max(room).max(1)
    }
}

impl Allocation {
    pub fn names(&self) -> impl Iterator<Item = &NodeName> {
        self.nodes.iter().map(|share| &share.node)
    }

    pub fn n_cpus(&self) -> u32 {
        self.nodes.iter().map(|share| share.cpus.len()).sum()
    }

    pub fn memory_mb(&self) -> u64 {
        self.nodes.iter().map(|share| share.memory_mb).sum()
    }

    pub fn share(&self, node: &str) -> Option<&NodeShare> {
        self.nodes.iter().find(|share| share.node.as_str() == node)
    }

    /// The node that runs the batch script.
    pub fn first(&self) -> Option<&NodeName> {
        self.nodes.first().map(|share| &share.node)
    }
}

/// `4,1(x2)`
pub fn repeated(counts: impl Iterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for count in counts {
        match runs.last_mut() {
            Some((last, times)) if *last == count => *times += 1,
            _ => runs.push((count, 1)),
        }
    }
    let text = |(count, times): &(u32, u32)| match times {
        1 => count.to_string(),
        times => format!("{count}(x{times})"),
    };
    runs.iter().map(text).collect::<Vec<_>>().join(",")
}
