//! What the user asked for, gathered from all sources: the job, the step, and how the command itself is to behave.
use std::collections::BTreeMap;
use std::time::Duration;

use model::cpu_freq::CpuFrequency;
use model::duration::Limit;
use model::gres::GresRequest;
use model::license::LicenseCount;
use model::step::{CpuBind, GpuBind, Mpi};
use model::{JobId, JobSpec};

use super::login::Login;
use super::mem_bind::MemBind;
use crate::users::Account;

/// Everything that options set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    pub spec: JobSpec,
    pub behaviour: Behaviour,
    pub step: StepRequest,
    pub gpus: Gpus,
    /// Licences of each task (`--tres-per-task=license/a:2`).
    pub task_licenses: Vec<LicenseCount>,
    /// So many threads of a core work (`--hint`).
    pub hinted_threads: Option<u32>,
    /// Of each socket a node must have at least so many.
    pub hinted_cores: Option<u32>,
    /// Of the job's files; none: the caller's.
    pub umask: Option<u32>,
    /// `--export`, as written.
    pub export: Option<String>,
    pub export_file: Option<String>,
    pub login: Option<Login>,
    pub propagate: Option<String>,
    /// What SLURM_PROFILE tells the job's programs; empty: nothing.
    pub profile: String,
    pub mem_bind: Option<MemBind>,
    /// Errors that stop nothing.
    pub complaints: Vec<String>,
    /// Plain lines for the user.
    pub remarks: Vec<String>,
    /// Whose job it is, and of which group, where that is not the caller's (`--uid`, `--gid`).
    pub user: Option<Account>,
    pub group: Option<u32>,
    /// Options as given, by name, for `-v` and for the checks that need to know whether.
    pub given: BTreeMap<&'static str, Given>,
}

/// What an option was given, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    pub value: Option<String>,
    pub source: Source,
}

/// Where an option stands. A later one overrides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Script,
    Environment,
    Arguments,
}

/// What the command does besides asking for a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Behaviour {
    pub verbosity: u32,
    pub is_quiet: bool,
    pub is_parsable: bool,
    pub waits: bool,
    /// Until the job's data is back from its burst buffer.
    pub waits_for_data: bool,
    pub is_test: bool,
    pub wrap: Option<String>,
    /// Give up when resources have not come after this long.
    pub immediate: Option<Duration>,
    pub no_shell: bool,
    pub bell: Bell,
    /// What the user's command gets when the allocation goes (`salloc -K`).
    pub kill_command: Option<u32>,
    pub asks: Option<Question>,
}

/// Questions that a command answers instead of doing anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    Help,
    Usage,
    Version,
    MpiList,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bell {
    /// When it took long.
    #[default]
    AfterDelay,
    Always,
    Never,
}

/// What only a step has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepRequest {
    pub job: Option<JobId>,
    /// The job is an array's, and this is the task of it that is meant (`--jobid=7_3`).
    pub task: Option<u32>,
    /// `--het-group`; empty is its own place among the components.
    pub groups: Vec<u32>,
    pub labels: bool,
    pub unbuffered: bool,
    pub pty: bool,
    pub overlaps: bool,
    pub kill_on_bad_exit: Option<bool>,
    /// `-W`: how long the others may go on after the first task has ended.
    pub wait: Option<Duration>,
    pub ignores_status_key: bool,
    pub quits_on_interrupt: bool,
    pub relative: Option<u32>,
    pub cpu_bind: CpuBind,
    pub tells_binding: bool,
    pub is_exact: bool,
    pub gpu_bind: Option<GpuBind>,
    pub tells_gpus: bool,
    pub mpi: Mpi,
    pub task_prolog: String,
    pub task_epilog: String,
    /// What srun itself runs around the step; `none` for nothing, whatever the site says.
    pub srun_prolog: Option<String>,
    pub srun_epilog: Option<String>,
    /// `--distribution=arbitrary`: tasks go where a list says.
    pub is_arbitrary: bool,
    /// `--distribution=pack`: node after node is filled.
    pub packs: bool,
    /// `--distribution` in Slurm's words.
    pub layout_words: String,
    /// The command is a file that names programs by rank.
    pub has_programs: bool,
    pub time_limit: Option<Limit>,
    /// `-N` stands in the arguments.
    pub counts_nodes: bool,
    /// `-E`
    pub keeps_counts: bool,
    pub broadcast: Broadcast,
    pub cpu_freq: CpuFrequency,
    /// `--resv-ports`
    pub n_ports: Option<u32>,
    /// `--debugger-test`
    pub is_debugged: bool,
    /// `--slurmd-debug`
    pub supervisor_verbosity: u32,
}

/// The program is brought to the nodes first (`--bcast`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Broadcast {
    /// Where to; an empty path is the working directory, one with a slash at its end a directory.
    pub dest: Option<String>,
    pub with_libraries: bool,
    /// Libraries in these directories stay; none: the system's.
    pub excluded: Option<String>,
    /// What is to be said about the options.
    pub complaints: Vec<String>,
}

/// GPUs asked for otherwise than on each node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gpus {
    pub per_job: Option<Vec<GresRequest>>,
    pub per_task: Option<Vec<GresRequest>>,
    pub per_node: Option<Vec<GresRequest>>,
    pub per_socket: Option<Vec<GresRequest>>,
    pub gres: Option<Vec<GresRequest>>,
    /// `--ntasks-per-gpu`
    pub n_tasks_each: Option<u32>,
}

impl Gpus {
    /// Whoever asks for none in all, or for each task, asks for nothing: such options only say so.
    pub fn of_some(&self) -> Gpus {
        let some = |units: &Option<Vec<GresRequest>>| {
            units.clone().filter(|units| units.is_empty() || units.iter().any(|unit| unit.count > 0))
        };
        Gpus { per_job: some(&self.per_job), per_task: some(&self.per_task), ..self.clone() }
    }
}

impl Request {
    pub fn is_given(&self, option: &str) -> bool {
        self.given.contains_key(option)
    }

    /// The option stands in the arguments themselves, not only in an inherited environment.
    pub fn is_argument(&self, option: &str) -> bool {
        self.given.get(option).is_some_and(|given| given.source == Source::Arguments)
    }
}
