//! What processes have used: measured on the nodes, reported when a run ends, added up for a step.
use serde::{Deserialize, Serialize};

use crate::NodeName;
use crate::time::Span;

record! {
    /// What the tasks of a step (or the batch script, a step of one task) have used. Zero tasks: nothing was measured.
    pub struct Usage {
        /// Of all processes, also those that no task waited for.
        pub user_cpu: Span,
        pub system_cpu: Span,
        /// Tasks that were measured; averages divide by this.
        pub n_tasks: u32,
        /// CPU time of each task and what it waited for, in microseconds.
        pub cpu_micros: Spread,
        /// The most memory each task had resident at once.
        pub rss_bytes: Spread,
        /// The largest address space of each task that a look at it found.
        pub vsize_bytes: Spread,
        /// Page faults that had to wait for a disk.
        pub page_faults: Spread,
        /// Read and written through system calls, wherever it came from and went.
        pub read_bytes: Spread,
        pub written_bytes: Spread,
    }
}

/// One measure over the tasks of a step: what sacct shows as Min…, Max… (with task and node), Ave… and Tot….
/// Written without names, since every run's end carries six of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Spread {
    pub total: u64,
    pub max: u64,
    pub max_task: u32,
    /// Empty in a node's own report.
    pub max_node: NodeName,
    pub min: u64,
    pub min_task: u32,
    pub min_node: NodeName,
    /// How many values it is made of.
    pub count: u32,
}

type Written = (u64, (u64, u32, NodeName), (u64, u32, NodeName), u32);

impl From<Written> for Spread {
    fn from((total, (max, max_task, max_node), (min, min_task, min_node), count): Written) -> Self {
        Spread { total, max, max_task, max_node, min, min_task, min_node, count }
    }
}

impl From<Spread> for Written {
    fn from(all: Spread) -> Self {
        (all.total, (all.max, all.max_task, all.max_node), (all.min, all.min_task, all.min_node), all.count)
    }
}

impl Usage {
    /// Adds what was used on another node, or by another task.
    pub fn add(&mut self, other: &Usage) {
        self.user_cpu = self.user_cpu + other.user_cpu;
        self.system_cpu = self.system_cpu + other.system_cpu;
        self.n_tasks += other.n_tasks;
        self.cpu_micros.add(&other.cpu_micros);
        self.rss_bytes.add(&other.rss_bytes);
        self.vsize_bytes.add(&other.vsize_bytes);
        self.page_faults.add(&other.page_faults);
        self.read_bytes.add(&other.read_bytes);
        self.written_bytes.add(&other.written_bytes);
    }

    /// As reported by this node, with its name.
    pub fn on(&self, node: &NodeName) -> Usage {
        let mut named = self.clone();
        for spread in [
            &mut named.cpu_micros,
            &mut named.rss_bytes,
            &mut named.vsize_bytes,
            &mut named.page_faults,
            &mut named.read_bytes,
            &mut named.written_bytes,
        ] {
            (spread.max_node, spread.min_node) = (node.clone(), node.clone());
        }
        named
    }

    pub fn total_cpu(&self) -> Span {
        self.user_cpu + self.system_cpu
    }

    pub fn is_measured(&self) -> bool {
        self.n_tasks > 0
    }
}

impl Spread {
    pub fn of(value: u64, task: u32) -> Self {
        Spread { total: value, max: value, max_task: task, min: value, min_task: task, count: 1, ..Spread::default() }
    }

    /// Of two that are alike, the earlier stays.
    pub fn add(&mut self, other: &Spread) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 || other.max > self.max {
            (self.max, self.max_task, self.max_node) = (other.max, other.max_task, other.max_node.clone());
        }
        if self.count == 0 || other.min < self.min {
            (self.min, self.min_task, self.min_node) = (other.min, other.min_task, other.min_node.clone());
        }
        self.total = self.total.saturating_add(other.total);
        self.count += other.count;
    }

    pub fn average(&self) -> u64 {
        self.total / u64::from(self.count.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_knows_its_extremes_and_where_they_are() {
        let mut step = Usage::default();
        for (value, task, name) in [(5, 0, "n1"), (9, 1, "n1"), (1, 2, "n2"), (9, 3, "n2")] {
            let one = Usage { rss_bytes: Spread::of(value, task), ..Default::default() };
            step.add(&one.on(&name.into()));
        }
        let mut all = step.rss_bytes;
        assert_eq!((all.max, all.max_task, all.max_node.as_str()), (9, 1, "n1"));
        assert_eq!((all.min, all.min_task, all.min_node.as_str()), (1, 2, "n2"));
        assert_eq!((all.total, all.average(), all.count), (24, 6, 4));
        all.add(&Spread::default());
        assert_eq!(all.count, 4);
    }
}
