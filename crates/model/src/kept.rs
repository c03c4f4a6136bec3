//! What of a node is kept from jobs for the system itself (`CoreSpecCount`, `CpuSpecList`, `MemSpecLimit`), and what a job that
//! may say so itself leaves to it instead (`--core-spec`, `--thread-spec`).
use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::node::NodeConfig;

/// What a job leaves to the system on each of its nodes, whatever the site keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Spared {
    Cores(u32),
    Threads(u32),
}

impl NodeConfig {
    /// All CPUs of the node, also those kept from jobs.
    pub fn all_cpus(&self) -> u32 {
        self.cpus + self.kept_cpus.len()
    }

    pub fn all_memory_mb(&self) -> u64 {
        self.memory_mb + self.kept_memory_mb
    }

    /// The numbers of the CPUs that jobs may have.
    pub fn job_cpus(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.all_cpus()).filter(|cpu| !self.kept_cpus.contains(*cpu))
    }

    /// The CPUs that a job may have which spares these; none if that leaves nothing.
    pub fn job_cpus_beside(&self, spared: Option<Spared>) -> CpuSet {
        let mut node = self.clone();
        let all = node.all_cpus();
        let leaves_some = match spared {
            None => true,
            Some(Spared::Cores(n_cores)) => node.keep_cores(n_cores),
            Some(Spared::Threads(n_cpus)) => node.keep_cpus((all.saturating_sub(n_cpus)..all).collect()),
        };
        if leaves_some { node.job_cpus().collect() } else { CpuSet::default() }
    }

    /// Keeps the last cores of the sockets from jobs, the last socket's first. False: nothing would be left.
    #[must_use]
    pub fn keep_cores(&mut self, n_cores: u32) -> bool {
        let all = self.all_cpus();
        let (threads, n_sockets) = (self.threads_per_core.max(1), self.sockets.max(1));
        // Where CPUs are counted as cores, each is one.
        let threads = if self.sockets * self.cores_per_socket * threads == all { threads } else { 1 };
        let per_socket = all / threads / n_sockets;
        if per_socket == 0 || n_cores >= all / threads {
            return false;
        }
        let kept = (0..n_cores).map(|index| {
            let (turn, socket) = (index / n_sockets, n_sockets - 1 - index % n_sockets);
            (socket + 1) * per_socket - 1 - turn
        });
        let cpus = kept.flat_map(|core| core * threads..(core + 1) * threads).collect();
        self.kept_cores = n_cores;
        self.keep_cpus(cpus)
    }

    /// Keeps these CPUs from jobs. False: they are not there, or nothing would be left.
    #[must_use]
    pub fn keep_cpus(&mut self, cpus: CpuSet) -> bool {
        let all = self.all_cpus();
        let fits = cpus.len() < all && cpus.iter().all(|cpu| cpu < all);
        if fits {
            self.cpus = all - cpus.len();
            self.kept_cpus = cpus;
        }
        fits
    }

    /// Keeps so much memory from jobs. False: nothing would be left.
    #[must_use]
    pub fn keep_memory(&mut self, megabytes: u64) -> bool {
        let all = self.all_memory_mb();
        let fits = megabytes < all;
        if fits {
            (self.memory_mb, self.kept_memory_mb) = (all - megabytes, megabytes);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cores_of_the_last_sockets_are_kept_first() {
        let shape =
            NodeConfig { cpus: 16, sockets: 2, cores_per_socket: 4, threads_per_core: 2, ..NodeConfig::default() };
        for (n_cores, kept) in [(1, "14-15"), (2, "6-7,14-15"), (3, "6-7,12-15")] {
            let mut node = shape.clone();
            assert!(node.keep_cores(n_cores));
            assert_eq!((node.kept_cpus.to_string(), node.cpus), (kept.to_string(), 16 - 2 * n_cores));
            assert_eq!((node.all_cpus(), node.job_cpus().count() as u32), (16, node.cpus));
        }
        assert!(!shape.clone().keep_cores(8), "something must be left");
        let mut flat = NodeConfig { cpus: 4, ..NodeConfig::default() };
        assert!(flat.keep_cores(1) && flat.keep_cores(2), "the later word counts");
        assert_eq!((flat.kept_cpus.to_string(), flat.cpus), ("2-3".to_string(), 2));
    }

    #[test]
    fn a_job_may_spare_more_or_less_than_the_site_keeps() {
        let mut node =
            NodeConfig { cpus: 8, sockets: 1, cores_per_socket: 4, threads_per_core: 2, ..NodeConfig::default() };
        assert!(node.keep_cores(1));
        let left = |spared| node.job_cpus_beside(spared).to_string();
        assert_eq!(left(None), "0-5");
        assert_eq!(left(Some(Spared::Cores(0))), "0-7");
        assert_eq!(left(Some(Spared::Cores(2))), "0-3");
        assert_eq!(left(Some(Spared::Threads(1))), "0-6");
        assert_eq!((left(Some(Spared::Cores(4))), left(Some(Spared::Threads(9)))), (String::new(), String::new()));
    }

    #[test]
    fn cpus_that_are_not_there_cannot_be_kept() {
        let mut node = NodeConfig { cpus: 4, memory_mb: 1000, ..NodeConfig::default() };
        assert!(!node.keep_cpus("4".parse().unwrap()) && !node.keep_cpus("0-3".parse().unwrap()));
        assert!(node.keep_cpus("0".parse().unwrap()));
        assert_eq!(node.job_cpus().collect::<Vec<_>>(), [1, 2, 3]);
        assert!(!node.keep_memory(1000) && node.keep_memory(300));
        assert_eq!((node.memory_mb, node.all_memory_mb()), (700, 1000));
    }
}
