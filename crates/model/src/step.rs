//! One `srun` in a job: what was asked for, and how far it has come.
use serde::{Deserialize, Serialize};

use crate::resources::NodeShare;
use crate::spec::{Distribution, Memory};
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
        pub started: Option<Timestamp>,
        pub ended: Option<Timestamp>,
        /// What its tasks have used, on the nodes where they have ended.
        pub usage: Option<Box<Usage>>,
        /// A memory limit ended some of its tasks.
        pub out_of_memory: bool,
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

impl StepSpec {
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
    /// Ranks of the tasks on each node, in the order of `shares`.
    pub fn ranks(&self) -> Vec<Vec<u32>> {
        let counts: Vec<u32> = self.shares.iter().map(|share| share.n_tasks).collect();
        self.spec.distribution.ranks(&counts)
    }

    pub fn is_live(&self) -> bool {
        self.phase != StepPhase::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
