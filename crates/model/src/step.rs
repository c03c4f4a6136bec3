//! One `srun` in a job: what was asked for, and how far it has come.
use serde::{Deserialize, Serialize};

use crate::cpu_freq::CpuFrequency;
use crate::gres::GresRequest;
use crate::het::StepPart;
use crate::resources::NodeShare;
use crate::spec::{Distribution, Memory, ResourceLimit, TimeLimit};
use crate::{BlobId, CpuSet, ExitStatus, JobId, NodeName, StepId, Timestamp, Usage};

record! {
    /// What `srun` asked for.
    pub struct StepSpec {
        pub name: String,
        pub arguments: Vec<String>,
        pub environment: BlobId,
        pub work_dir: String,
        pub n_tasks: Option<u32>,
        pub min_nodes: u32,
        pub tasks_per_node: Option<u32>,
        pub cpus_per_task: Option<u32>,
        pub memory: Memory,
        pub distribution: Distribution,
        /// Nodes are filled one after the other, however the job was laid out (`-m pack`).
        pub packs: bool,
        /// Only these nodes of the allocation; empty is any.
        pub nodes: Vec<NodeName>,
        pub excluded: Vec<NodeName>,
        /// Where each task's streams go: to the `srun` that asked, or to files.
        pub stdin: StepStream,
        pub stdout: StepStream,
        pub stderr: StepStream,
        /// `--open-mode=append`
        pub appends: bool,
        /// Shares CPUs with other steps (`--overlap`).
        pub overlaps: bool,
        /// The first task's terminal is the user's (`--pty`).
        pub pty: Option<TerminalSize>,
        /// A task that fails ends all (`-K`).
        pub kill_on_bad_exit: bool,
        pub submit_host: String,
        /// Programs by rank (`--multi-prog`); where there are any, `arguments` names the file they came from.
        pub programs: Vec<RankedProgram>,
        pub cpu_bind: CpuBind,
        /// Each task says to which CPUs it is bound.
        pub tells_binding: bool,
        pub max_nodes: Option<u32>,
        /// Only the CPUs that its tasks need (`--exact`), not all that the job has on its nodes.
        pub is_exact: bool,
        /// More tasks than CPUs are fine.
        pub overcommit: bool,
        /// On each node; none: all that the job has there.
        pub gres: Option<Vec<GresRequest>>,
        /// For each task, besides `gres`.
        pub gres_per_task: Vec<GresRequest>,
        /// Over all nodes (`--gpus`).
        pub gres_total: Vec<GresRequest>,
        pub gpu_bind: GpuBind,
        /// The node of each task by rank (`--distribution=arbitrary`); empty: as `distribution` says.
        pub hosts: Vec<NodeName>,
        pub mpi: Mpi,
        /// Run before and after each task, as its user.
        pub task_prolog: String,
        pub task_epilog: String,
        /// Tasks find the numbers of nodes and tasks that srun itself found in its environment (`-E`).
        pub keeps_counts: bool,
        /// Of the step itself, inside an allocation.
        pub time_limit: Option<TimeLimit>,
        /// Resource limits of the `srun` itself, inside an allocation; empty: the job's.
        pub limits: Vec<ResourceLimit>,
        /// Lines begin with their task's number (`-l`), also in files that the tasks' nodes write.
        pub labels: bool,
        /// `--distribution` in Slurm's words (SLURM_DISTRIBUTION); empty: as `distribution` says.
        pub layout_words: String,
        /// The program itself is brought first (`--bcast`): no task starts before the client's word.
        pub waits_for_program: bool,
        /// The command line of the `srun`, as history shows it.
        pub submit_line: String,
        /// Each task says which GPUs it sees (`--gpu-bind=verbose`).
        pub tells_gpus: bool,
        pub asked: AskedWords,
        pub cpu_freq: CpuFrequency,
        /// So many ports of the cluster's range on each of its nodes (`--resv-ports`); none: as many as MPI needs, if it needs any.
        pub n_ports: Option<u32>,
        /// How much its supervisors tell of what they do (`--slurmd-debug`).
        pub supervisor_verbosity: u32,
        /// Its tasks stand still at the beginning, for a debugger (`--debugger-test`).
        pub is_debugged: bool,
    }

    /// What was said of GPUs, in Slurm's words; for display.
    pub struct AskedWords {
        pub cpus_per_tres: String,
        pub mem_per_tres: String,
        pub bind: String,
        pub freq: String,
        pub per_step: String,
        pub per_node: String,
        pub per_socket: String,
        pub per_task: String,
    }

    /// One line of a `--multi-prog` file.
    pub struct RankedProgram {
        /// None: all that no other line names.
        pub ranks: Option<CpuSet>,
        /// `%t` is the task's rank, `%o` its place among `ranks`.
        pub arguments: Vec<String>,
    }

    pub struct TerminalSize {
        pub rows: u16,
        pub columns: u16,
    }

    /// One step of a job, from its creation until the job's record goes.
    pub struct Step {
        pub job: JobId,
        pub id: StepId,
        /// The job's run it belongs to.
        pub attempt: u32,
        pub spec: Box<StepSpec>,
        pub phase: StepPhase,
        /// The step's part of the allocation, with its tasks by node.
        pub shares: Vec<NodeShare>,
        pub n_tasks: u32,
        /// Nodes whose tasks have all ended.
        pub ended_nodes: Vec<NodeName>,
        /// The worst so far.
        pub exit: ExitStatus,
        pub was_cancelled: bool,
        /// All parts of a step over several components, this one among them; empty for others.
        pub together: Vec<StepPart>,
        pub started: Option<Timestamp>,
        pub ended: Option<Timestamp>,
        /// What its tasks have used, on the nodes where they have ended.
        pub usage: Option<Box<Usage>>,
        /// A memory limit ended some of its tasks.
        pub out_of_memory: bool,
        /// Its own on each of its nodes while it lives.
        pub ports: Vec<u16>,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepPhase {
    /// The agents are to start its tasks.
    #[default]
    Starting,
    Running,
    /// Its processes are to be cleared away.
    Ending,
    Done,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepStream {
    /// Carried to and from the client that waits.
    #[default]
    Client,
    /// `/dev/null`
    Nothing,
    /// A file name pattern, opened by each task (or shared, where the pattern does not tell tasks apart).
    File(String),
    /// The client's stream, for this one task only (`--input=3`).
    ClientTask(u32),
}

/// Which of the step's GPUs on its node a task sees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GpuBind {
    #[default]
    All,
    /// So many of its own, in the order of the node's tasks.
    PerTask(u32),
    /// One, shared by so many tasks that follow each other.
    Single(u32),
    /// Places among the step's GPUs of the node, one set for each task in turn.
    Map(Vec<CpuSet>),
}

/// What helps the tasks find each other (`--mpi`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mpi {
    #[default]
    None,
    /// Our own server, which speaks both protocols of the process manager interface.
    Pmi2,
    /// A server on each node through the system's libpmix.
    Pmix,
}

impl Mpi {
    /// What a site may name as its default; PMIx by version too, whose library is looked for when a step starts.
    pub const NAMES: [&str; 6] = ["none", "pmi2", "pmix", "pmix_v3", "pmix_v4", "pmix_v5"];
}

/// To which CPUs of its node a task is bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CpuBind {
    #[default]
    None,
    /// Its own part of the step's CPUs.
    Threads,
    /// The same, widened to whole cores.
    Cores,
    /// The same, widened to whole sockets.
    Sockets,
    /// The CPU with the number of its place on the node.
    Rank,
    /// One of these for each task of a node, in turn.
    Map(Vec<CpuSet>),
}

impl GpuBind {
    /// Those of the step's GPUs on a node that the task with this place on it sees.
    pub fn choose(&self, gpus: &[u32], local_id: u32) -> Vec<u32> {
        let turn = |places: Vec<u64>| -> Vec<u32> {
            let n_gpus = gpus.len().max(1) as u64;
            let mut chosen: Vec<u32> =
                places.into_iter().filter_map(|place| gpus.get((place % n_gpus) as usize).copied()).collect();
            chosen.sort_unstable();
            chosen.dedup();
            chosen
        };
        let local_id = u64::from(local_id);
        match self {
            GpuBind::All => gpus.to_vec(),
            GpuBind::PerTask(count) => {
                let count = u64::from(*count).min(gpus.len() as u64);
                turn((0..count).map(|more| local_id * count + more).collect())
            }
            GpuBind::Single(n_tasks) => turn(vec![local_id / u64::from(*n_tasks).max(1)]),
            GpuBind::Map(sets) if sets.is_empty() => gpus.to_vec(),
            GpuBind::Map(sets) => {
                let set = &sets[(local_id % sets.len() as u64) as usize];
                set.iter().filter_map(|place| gpus.get(place as usize).copied()).collect()
            }
        }
    }
}

impl StepSpec {
    /// Ranks of the tasks on each node of these shares.
    pub fn ranks(&self, shares: &[NodeShare], n_tasks: u32) -> Vec<Vec<u32>> {
        if !self.hosts.is_empty() {
            let on = |node: &NodeName| -> Vec<u32> {
                let places = self.hosts.iter().take(n_tasks as usize).enumerate();
                places.filter(|(_, host)| *host == node).map(|(rank, _)| rank as u32).collect()
            };
            return shares.iter().map(|share| on(&share.node)).collect();
        }
        let counts: Vec<u32> = shares.iter().map(|share| share.n_tasks).collect();
        self.distribution.ranks(&counts)
    }

    /// The command line of the task with this rank; none if no line of the file names it.
    pub fn command(&self, rank: u32) -> Option<Vec<String>> {
        if self.programs.is_empty() {
            return Some(self.arguments.clone());
        }
        let is_named = |program: &&RankedProgram| program.ranks.as_ref().is_some_and(|ranks| ranks.contains(rank));
        let named = self.programs.iter().find(is_named);
        let program = named.or_else(|| self.programs.iter().find(|program| program.ranks.is_none()))?;
        let offset = match &program.ranks {
            Some(ranks) => ranks.iter().take_while(|other| *other < rank).count(),
            None => rank as usize,
        };
        let fill = |word: &String| word.replace("%t", &rank.to_string()).replace("%o", &offset.to_string());
        Some(program.arguments.iter().map(fill).collect())
    }
}

impl Step {
    /// `12000-12002,12010`
    pub fn port_list(&self) -> String {
        self.ports.iter().map(|port| u32::from(*port)).collect::<CpuSet>().to_string()
    }

    /// Ranks of the tasks on each node, in the order of `shares`.
    pub fn ranks(&self) -> Vec<Vec<u32>> {
        self.spec.ranks(&self.shares, self.n_tasks)
    }

    pub fn is_live(&self) -> bool {
        self.phase != StepPhase::Done
    }

    /// At that moment it had used up the time it was given for itself.
    pub fn has_outlived_limit(&self, at: Timestamp) -> bool {
        let limit = self.spec.time_limit.and_then(TimeLimit::span);
        limit.zip(self.started).is_some_and(|(limit, started)| at >= started + limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_see_the_gpus_they_are_bound_to() {
        let seen = |bind: GpuBind| (0..3).map(|task| bind.choose(&[2, 5, 7, 9], task)).collect::<Vec<_>>();
        assert_eq!(seen(GpuBind::PerTask(1)), [[2], [5], [7]]);
        assert_eq!(seen(GpuBind::PerTask(2)), [[2, 5], [7, 9], [2, 5]]);
        assert_eq!(seen(GpuBind::Single(2)), [[2], [2], [5]]);
        let map = GpuBind::Map(vec!["3".parse().unwrap(), "0-1".parse().unwrap()]);
        assert_eq!(seen(map), [vec![9], vec![2, 5], vec![9]]);
    }

    #[test]
    fn each_rank_has_its_own_program() {
        let program = |ranks: Option<&str>, words: &str| RankedProgram {
            ranks: ranks.map(|ranks| ranks.parse().unwrap()),
            arguments: words.split(' ').map(str::to_string).collect(),
        };
        let programs = vec![program(Some("4-6"), "echo %t of %o"), program(None, "hostname")];
        let spec = StepSpec { programs, ..Default::default() };
        let line = |rank| spec.command(rank).map(|words| words.join(" "));
        assert_eq!(line(5).as_deref(), Some("echo 5 of 1"));
        assert_eq!(line(0).as_deref(), Some("hostname"));
        let named_only = StepSpec { programs: vec![program(Some("0"), "true")], ..Default::default() };
        assert_eq!(named_only.command(1), None);
    }
}
