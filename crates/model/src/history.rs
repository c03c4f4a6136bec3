//! What is remembered of jobs after they are gone, and how it is asked for. `accounting` keeps it, `sacct` shows it.
use serde::{Deserialize, Serialize};

use crate::amount::Amount;
use crate::spec::{Memory, TimeLimit};
use crate::time::Span;
use crate::usage::Usage;
use crate::{BlobId, ExitStatus, JobId, NodeName, Step, StepId, TaskSet, Timestamp};

/// One thing that history keeps a row of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Subject {
    /// The job's present run.
    Job(JobId),
    Step(JobId, StepId),
    /// A run that was followed by another: the job and the run's attempt.
    Past(JobId, u32),
}

impl Subject {
    pub fn job(self) -> JobId {
        match self {
            Subject::Job(job) | Subject::Step(job, _) | Subject::Past(job, _) => job,
        }
    }
}

/// So many runs are named in one request.
pub const RUNS_MOST: usize = 10_000;

record! {
    /// A run that was followed by another, as it ended.
    pub struct PastRun {
        pub job: crate::Job,
        pub steps: Vec<Step>,
    }

    /// One run of a job, one task of an array, or the part of an array that has not started.
    pub struct JobRecord {
        pub job: JobId,
        pub attempt: u32,
        pub submitted: Timestamp,
        pub restarts: u32,
        /// Nodes of each segment; 0: the job has none.
        pub segment: u32,
        pub array: Option<JobId>,
        pub task: Option<u32>,
        /// Tasks the record stands for, and how many of them may run at once.
        pub waiting: Option<TaskSet>,
        pub waiting_limit: Option<u32>,
        /// The first job of a heterogeneous job, and this one's place in it.
        pub het_job: Option<JobId>,
        pub het_offset: u32,
        pub name: String,
        pub uid: u32,
        pub gid: u32,
        pub user: String,
        pub group: String,
        pub account: String,
        pub qos: String,
        pub wckey: String,
        pub comment: String,
        pub admin_comment: String,
        pub system_comment: String,
        /// All that was asked for while it waits, the one it ran in afterwards.
        pub partition: String,
        pub reservation: String,
        pub licenses: String,
        pub constraints: String,
        pub command_line: String,
        pub work_dir: String,
        pub stdin: String,
        pub stdout: String,
        pub stderr: String,
        pub is_batch: bool,
        /// Slurm's word for the state.
        pub state: String,
        pub cancelled_by: Option<u32>,
        /// Why it waits, or why it ended.
        pub reason: String,
        pub failed_nodes: Vec<NodeName>,
        pub exit: ExitStatus,
        pub derived_exit: ExitStatus,
        pub eligible: Option<Timestamp>,
        pub started: Option<Timestamp>,
        pub ended: Option<Timestamp>,
        pub suspended: Span,
        /// Set while it is suspended.
        pub suspended_since: Option<Timestamp>,
        /// The suspensions that make up `suspended`; empty in rows of earlier releases.
        pub pauses: Vec<crate::job::Pause>,
        pub time_limit: Option<TimeLimit>,
        pub priority: u32,
        pub asked: Amount,
        pub memory: Memory,
        /// Empty while it has no nodes.
        pub held: Amount,
        /// A hostlist.
        pub nodes: String,
        /// Where the script and the environment are kept, if they are.
        pub script: Option<BlobId>,
        pub environment: Option<BlobId>,
        /// Has a step for what users start on its nodes themselves.
        pub has_extern: bool,
        /// Started by the scheduler's backfill.
        pub was_backfilled: bool,
    }

    /// One step of a run.
    pub struct StepRecord {
        pub job: JobId,
        pub attempt: u32,
        /// When the job was submitted; with its id and attempt, this names the run.
        pub submitted: Timestamp,
        pub step: StepId,
        pub name: String,
        pub state: String,
        pub cancelled_by: Option<u32>,
        pub exit: ExitStatus,
        pub started: Option<Timestamp>,
        pub ended: Option<Timestamp>,
        pub suspended: Span,
        pub held: Amount,
        pub nodes: String,
        /// How its tasks were spread.
        pub layout: String,
        pub command_line: String,
        pub usage: Option<Box<Usage>>,
    }

    /// Which jobs of history. Empty lists let everything pass.
    pub struct HistoryQuery {
        /// For sums of what was used, not for the jobs themselves.
        pub for_usage: bool,
        pub jobs: Vec<JobChoice>,
        pub uids: Vec<u32>,
        pub gids: Vec<u32>,
        pub accounts: Vec<String>,
        pub partitions: Vec<String>,
        pub qos: Vec<String>,
        pub wckeys: Vec<String>,
        pub names: Vec<String>,
        pub nodes: Vec<NodeName>,
        /// All of them must have been asked for.
        pub constraints: Vec<String>,
        pub reasons: Vec<String>,
        /// Slurm's words.
        pub states: Vec<String>,
        /// The time looked at; none is unbounded.
        pub after: Option<Timestamp>,
        pub before: Option<Timestamp>,
        pub n_nodes: Option<(u32, u32)>,
        pub n_cpus: Option<(u32, u32)>,
        /// In minutes.
        pub time_limit: Option<(u64, u64)>,
        /// Earlier runs of the same job id too.
        pub with_duplicates: bool,
        pub with_steps: bool,
        /// The contents of scripts or environments too.
        pub with_scripts: bool,
        pub with_environments: bool,
        /// Whether naming one part of a heterogeneous job means all of them; none: only if the first is named.
        pub whole_het_job: Option<bool>,
        /// Only jobs that the backfill scheduler started, or only those it did not.
        pub was_backfilled: Option<bool>,
    }

    /// `12`, `12_3`, `12+1`, `12.batch`
    pub struct JobChoice {
        pub job: JobId,
        pub tasks: Option<TaskSet>,
        pub het_offset: Option<u32>,
        pub step: Option<StepChoice>,
    }

    /// One run with its steps.
    pub struct RunHistory hides(script, environment) {
        pub job: JobRecord,
        pub steps: Vec<StepRecord>,
        #[serde(with = "crate::bytes")]
        pub script: Vec<u8>,
        #[serde(with = "crate::bytes")]
        pub environment: Vec<u8>,
    }

    /// What names a run.
    pub struct RunName {
        pub job: JobId,
        pub submitted: Timestamp,
        pub attempt: u32,
    }

    /// What is said of runs afterwards (`sacctmgr modify job`); none: it stays as it is.
    pub struct Amendment {
        pub comment: Option<String>,
        pub admin_comment: Option<String>,
        pub system_comment: Option<String>,
        pub wckey: Option<String>,
        pub derived_exit: Option<ExitStatus>,
    }

    pub struct AmendRequest {
        pub runs: Vec<RunName>,
        pub amendment: Amendment,
    }

    pub struct HistoryPage {
        pub runs: Vec<RunHistory>,
        pub now: Timestamp,
    }
}

impl JobRecord {
    pub fn run_name(&self) -> RunName {
        RunName { job: self.job, submitted: self.submitted, attempt: self.attempt }
    }

    pub fn amend(&mut self, amendment: &Amendment) {
        let Amendment { comment, admin_comment, system_comment, wckey, derived_exit } = amendment.clone();
        let set = |field: &mut String, text: Option<String>| *field = text.unwrap_or_else(|| std::mem::take(field));
        set(&mut self.comment, comment);
        set(&mut self.admin_comment, admin_comment);
        set(&mut self.system_comment, system_comment);
        set(&mut self.wckey, wckey);
        self.derived_exit = derived_exit.unwrap_or(self.derived_exit);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepChoice {
    Step(StepId),
    Extern,
}
