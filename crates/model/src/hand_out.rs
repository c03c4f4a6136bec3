//! What of a node goes to a job together: single CPUs, whole cores or whole sockets; and which of those that are free.
//!
//! `NodeConfig::cpus_together` is the unit, worked out once when a configuration is adopted; counts (`fit`) and choices (here) go by it.
//! CPUs are numbered core by core, and cores socket by socket.
use serde::{Deserialize, Serialize};

use crate::CpuSet;
use crate::node::NodeConfig;
use crate::spec::{Size, SocketOrder};

/// What a cluster hands out (`SelectTypeParameters` in a slurm.conf).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HandOut {
    #[default]
    Cpus,
    Cores,
    Sockets,
}

impl HandOut {
    pub const ALL: [HandOut; 3] = [HandOut::Cpus, HandOut::Cores, HandOut::Sockets];

    pub fn word(self) -> &'static str {
        match self {
            HandOut::Cpus => "cpus",
            HandOut::Cores => "cores",
            HandOut::Sockets => "sockets",
        }
    }
}

impl NodeConfig {
    /// From now on these are handed out. Where CPUs kept from jobs leave no whole sockets, whole cores are; where they leave no whole
    /// cores, CPUs.
    pub fn hand_out(&mut self, what: HandOut) {
        let n_cpus = self.all_cpus();
        let threads = self.n_threads_per_core();
        // Where CPUs are counted as cores, each is one.
        let has_threads = self.sockets.max(1) * self.cores_per_socket.max(1) * threads == n_cpus;
        let core = if has_threads { threads } else { 1 };
        let socket = n_cpus / self.sockets.max(1);
        let leaves_whole = |unit: u32| {
            unit > 1
                && n_cpus.is_multiple_of(unit)
                && self.cpus.is_multiple_of(unit)
                && self.kept_cpus.n_touched(unit) * unit == self.kept_cpus.len()
        };
        self.cpus_together = match what {
            HandOut::Sockets if leaves_whole(socket) => socket,
            HandOut::Sockets | HandOut::Cores if leaves_whole(core) => core,
            HandOut::Cpus | HandOut::Cores | HandOut::Sockets => 0,
        };
    }

    /// CPUs that go to a job together, at least one.
    pub fn unit(&self) -> u32 {
        self.cpus_together.max(1)
    }

    /// Of how many CPUs nobody else can be given any, when these are held.
    pub fn cpus_taken(&self, held: &CpuSet) -> u32 {
        if self.cpus_together < 2 { held.len() } else { held.n_touched(self.cpus_together) * self.cpus_together }
    }

    fn cpus_per_socket(&self) -> u32 {
        (self.all_cpus() / self.sockets.max(1)).max(1)
    }

    /// So many of the free CPUs, for a job with `n_tasks` tasks here: single CPUs lowest first; whole cores over the sockets as the job wants it.
    /// Fewer if there are no more.
    pub fn pick_cpus(&self, free: &CpuSet, size: &Size, n_tasks: u32, n_cpus: u32) -> CpuSet {
        let unit = self.unit();
        if unit == 1 {
            return free.iter().take(n_cpus as usize).collect();
        }
        let wanted = n_cpus.div_ceil(unit) as usize;
        let per_socket = (self.cpus_per_socket() / unit).max(1);
        let mut sockets: Vec<Vec<u32>> = vec![Vec::new(); self.all_cpus().div_ceil(unit * per_socket) as usize];
        for at in 0..self.all_cpus() / unit {
            if (at * unit..(at + 1) * unit).all(|cpu| free.contains(cpu)) {
                sockets[(at / per_socket) as usize].push(at);
            }
        }
        let chosen = match size.socket_order {
            SocketOrder::Block => fill(sockets, wanted),
            SocketOrder::Usual | SocketOrder::Cyclic | SocketOrder::FullCyclic => {
                let mut chosen = self.whole_tasks(&mut sockets, size, n_tasks, wanted);
                chosen.extend(in_turn(&sockets, wanted - chosen.len()));
                chosen
            }
        };
        chosen.into_iter().flat_map(|at| at * unit..(at + 1) * unit).collect()
    }

    /// Tasks of several CPUs stay on their socket: each socket takes as many as it can. What fits on none is left over.
    fn whole_tasks(&self, sockets: &mut [Vec<u32>], size: &Size, n_tasks: u32, wanted: usize) -> Vec<u32> {
        let mut chosen = Vec::with_capacity(wanted);
        if size.n_cpus_per_task() == 1 || size.overcommit {
            return chosen;
        }
        let mut left = n_tasks;
        for socket in sockets {
            let room = socket.len() as u32 * self.unit();
            let here = size.n_tasks_on_cpus(room, self).min(size.tasks_per_socket.unwrap_or(u32::MAX)).min(left);
            let n_units = size.cpus_held_by(here, self) / self.unit();
            let n_units = (n_units as usize).min(socket.len()).min(wanted - chosen.len());
            chosen.extend(socket.drain(..n_units));
            left -= here;
        }
        chosen
    }
}

/// One from each socket in turn.
fn in_turn(sockets: &[Vec<u32>], wanted: usize) -> Vec<u32> {
    let deepest = sockets.iter().map(Vec::len).max().unwrap_or(0);
    let turns = (0..deepest).flat_map(|turn| sockets.iter().filter_map(move |socket| socket.get(turn).copied()));
    turns.take(wanted).collect()
}

/// The fullest socket that has enough, else the emptiest, and so on with what is missing.
fn fill(mut sockets: Vec<Vec<u32>>, wanted: usize) -> Vec<u32> {
    let mut chosen = Vec::with_capacity(wanted);
    while chosen.len() < wanted {
        let missing = wanted - chosen.len();
        let free = || sockets.iter().enumerate().filter(|(_, socket)| !socket.is_empty());
        let enough =
            free().filter(|(_, socket)| socket.len() >= missing).min_by_key(|(at, socket)| (socket.len(), *at));
        let most = || free().max_by_key(|(at, socket)| (socket.len(), std::cmp::Reverse(*at)));
        let Some(at) = enough.or_else(most).map(|(at, _)| at) else { break };
        let n_units = missing.min(sockets[at].len());
        chosen.extend(sockets[at].drain(..n_units));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets of four cores with two threads.
    fn wide() -> NodeConfig {
        let mut node =
            NodeConfig { cpus: 16, sockets: 2, cores_per_socket: 4, threads_per_core: 2, ..NodeConfig::default() };
        node.hand_out(HandOut::Cores);
        node
    }

    fn tasks(n_tasks: u32, cpus_per_task: u32) -> Size {
        Size { n_tasks: Some(n_tasks), cpus_per_task: Some(cpus_per_task), ..Size::default() }
    }

    #[track_caller]
    fn picked(node: &NodeConfig, free: &str, size: &Size) -> String {
        let n_tasks = size.n_tasks.unwrap_or(1);
        let n_cpus = size.part_of(node, n_tasks).n_cpus;
        node.pick_cpus(&free.parse().unwrap(), size, n_tasks, n_cpus).to_string()
    }

    #[test]
    fn cores_are_spread_over_sockets_as_by_a_22_05() {
        // As `CPU_IDs` of a real one showed them.
        for ((n_tasks, per_task), cpus) in [
            ((1, 1), "0-1"),
            ((3, 1), "0-1,8-9"),
            ((5, 1), "0-3,8-9"),
            ((7, 1), "0-3,8-11"),
            ((9, 1), "0-5,8-11"),
            ((2, 2), "0-3"),
            ((5, 2), "0-9"),
            ((2, 4), "0-7"),
            ((3, 4), "0-11"),
            ((2, 3), "0-5"),
            ((3, 3), "0-5,8-11"),
            ((4, 3), "0-5,8-13"),
            ((2, 6), "0-5,8-13"),
            ((1, 6), "0-5"),
            ((1, 10), "0-5,8-11"),
        ] {
            assert_eq!(picked(&wide(), "0-15", &tasks(n_tasks, per_task)), cpus, "-n{n_tasks} -c{per_task}");
        }
        let one_thread = |size: Size| Size { threads_per_core: Some(1), ..size };
        assert_eq!(picked(&wide(), "0-15", &one_thread(tasks(3, 1))), "0-3,8-9");
        assert_eq!(picked(&wide(), "0-15", &one_thread(tasks(2, 2))), "0-7");
        assert_eq!(picked(&wide(), "0-15", &one_thread(tasks(2, 3))), "0-5,8-13");
        let apart = Size { tasks_per_socket: Some(2), ..tasks(4, 2) };
        assert_eq!(picked(&wide(), "0-15", &apart), "0-3,8-11");
        assert_eq!(picked(&wide(), "4-15", &tasks(3, 1)), "4-5,8-9");
        assert_eq!(picked(&wide(), "6-7,12-15", &tasks(1, 2)), "6-7");
    }

    #[test]
    fn blocks_of_cores_leave_as_few_sockets_broken_as_may_be() {
        let block = |n_tasks, per_task| Size { socket_order: SocketOrder::Block, ..tasks(n_tasks, per_task) };
        assert_eq!(picked(&wide(), "0-15", &block(5, 1)), "0-5");
        assert_eq!(picked(&wide(), "6-15", &block(1, 2)), "6-7");
        assert_eq!(picked(&wide(), "4-15", &block(1, 6)), "8-13");
        assert_eq!(picked(&wide(), "4-7,14-15", &block(1, 6)), "4-7,14-15");
    }

    #[test]
    fn sockets_go_whole() {
        let mut node = wide();
        node.hand_out(HandOut::Sockets);
        assert_eq!(node.unit(), 8);
        assert_eq!(picked(&node, "0-15", &tasks(1, 1)), "0-7");
        assert_eq!(picked(&node, "2-15", &tasks(1, 3)), "8-15", "a socket that is broken into is nobody's");
        assert_eq!(picked(&node, "0-15", &tasks(9, 1)), "0-15");
    }

    #[test]
    fn what_is_kept_from_jobs_decides_what_can_go_whole() {
        let mut node = wide();
        assert!(node.keep_cores(1));
        node.hand_out(HandOut::Sockets);
        assert_eq!(node.unit(), 2, "no whole socket is left there");
        let mut odd = wide();
        assert!(odd.keep_cpus("3".parse().unwrap()));
        odd.hand_out(HandOut::Cores);
        assert_eq!(odd.unit(), 1);
        let mut as_cores = NodeConfig { cpus: 8, ..wide() };
        as_cores.hand_out(HandOut::Cores);
        assert_eq!(as_cores.unit(), 1, "CPUs counted as cores are cores");
        let mut flat = NodeConfig { cpus: 8, ..NodeConfig::default() };
        flat.hand_out(HandOut::Cores);
        assert_eq!(flat.unit(), 1);
    }

    #[test]
    fn cpus_of_a_core_that_is_broken_into_are_taken() {
        let taken = |list: &str| wide().cpus_taken(&list.parse().unwrap());
        assert_eq!((taken(""), taken("0"), taken("0-1"), taken("1-2"), taken("0,5,14-15")), (0, 2, 2, 4, 6));
    }
}
