//! Programs that the site runs around jobs, steps and tasks: prologs and epilogs.
use serde::{Deserialize, Serialize};

use crate::time::Span;

/// What runs when. Node and controller programs may be patterns that name several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HooksConfig {
    /// On a node before anything of a job runs there, as the agent's own user.
    pub prolog: Vec<String>,
    /// On every node of a job when nothing of it is left there.
    pub epilog: Vec<String>,
    /// On the controller, before a job's nodes are prepared.
    pub controller_prolog: Vec<String>,
    /// On the controller, when a job's nodes are clear.
    pub controller_epilog: Vec<String>,
    /// Around each task, as the job's user.
    pub task_prolog: String,
    pub task_epilog: String,
    /// Around each step, by `srun` itself.
    pub srun_prolog: String,
    pub srun_epilog: String,
    /// What looks at submissions before they are taken, in this order: `all_partitions`, `require_timelimit`, or the path of
    /// a job_submit.lua.
    pub job_submit: Vec<String>,
    /// How long a job_submit.lua may take; none: as long as usual.
    pub job_submit_timeout: Option<Span>,
    pub flags: HookFlags,
    /// None: for ever.
    pub prolog_timeout: Option<Span>,
    pub epilog_timeout: Option<Span>,
}

/// As Slurm's PrologFlags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HookFlags {
    /// The prolog runs on all nodes of a job as soon as it has them, and the job waits for it.
    pub alloc: bool,
    /// Every job has an `.extern` step.
    pub contain: bool,
    /// With `alloc`: the job does not wait; what is launched on a node waits there.
    pub no_hold: bool,
    /// One at a time on each node.
    pub serial: bool,
    /// A failed prolog requeues also jobs that are not to be requeued.
    pub force_requeue: bool,
    /// A failed prolog requeues a job without holding it.
    pub no_hold_on_failure: bool,
}

record! {
    /// One of them, ready to run.
    pub struct Hook hides(environment) {
        /// Paths or patterns, in the order in which they run.
        pub programs: Vec<String>,
        /// `NAME=value`, and nothing else.
        pub environment: Vec<String>,
        pub timeout: Option<Span>,
        /// Not beside another one on the same node.
        pub is_serial: bool,
    }
}

impl HooksConfig {
    /// What can be asked of submissions without a script.
    pub const JOB_SUBMIT: [&str; 2] = ["all_partitions", "require_timelimit"];

    /// The site's scripts among what looks at submissions.
    pub fn job_submit_scripts(&self) -> impl Iterator<Item = &String> {
        self.job_submit.iter().filter(|word| word.starts_with('/'))
    }

    /// Something is run on nodes before or after jobs.
    pub fn on_nodes(&self) -> bool {
        !self.prolog.is_empty() || !self.epilog.is_empty()
    }
}
