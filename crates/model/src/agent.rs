//! What the controller and its agents say to each other.
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::command::{DutyResult, Exited, RequestId};
use crate::hooks::Hook;
use crate::node::{Machine, Run};
use crate::pool::Pool;
use crate::request::SignalScope;
use crate::resources::NodeShare;
use crate::staging::{Home, Inventory, Progress, Removal, StageResult, StageWork};
use crate::time::Span;
use crate::{CpuSet, JobId, JobSpec, NodeName, StepId, StepSpec, Timestamp};

/// Controller to agent. Every order may come twice: agents answer one already carried out at once.
/// Why a node is drained on which processes of a run cannot be ended, in Slurm's words.
pub const KILL_FAILED: &str = "Kill task failed";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// The agent is known; it may go on.
    Welcome,
    /// The agent is not wanted here; why.
    Refuse {
        why: String,
    },
    Launch {
        number: u64,
        launch: Box<Launch>,
    },
    /// Ends all of a run, or one step of it: SIGCONT and SIGTERM, then SIGKILL after `kill_wait`. Answered when nothing is left.
    /// A later launch of the same run (and step) is refused.
    Kill {
        number: u64,
        run: Run,
        step: Option<StepId>,
        kill_wait: Span,
        note: KillNote,
    },
    /// SIGTSTP, then after `grace` everything of the run stands still. Answered when it does.
    Freeze {
        number: u64,
        run: Run,
        #[serde(default)]
        grace: Span,
    },
    Thaw {
        number: u64,
        run: Run,
    },
    /// The agent ends; what it runs goes on.
    Stop,
    /// Answered when it has gone to the run's processes. Not answered without a number.
    Signal {
        #[serde(default)]
        number: u64,
        run: Run,
        signal: u32,
        scope: SignalScope,
        /// One that comes again, from the next leader, is not delivered again.
        #[serde(default)]
        request: Option<RequestId>,
    },
    /// Words for the output of the batch script, or of the steps where there is none. As a signal.
    Notify {
        #[serde(default)]
        number: u64,
        run: Run,
        text: String,
        #[serde(default)]
        request: Option<RequestId>,
    },
    /// These reports are durable; the spool may forget them.
    Acknowledge {
        sequences: Vec<u64>,
    },
    /// What the agent holds must be exactly these runs; others are ended.
    Ping,
    /// Fills or empties one directory of a burst buffer; answered with `Staged`. See `staging`.
    Stage {
        number: u64,
        work: Box<StageWork>,
    },
    /// Removes one directory of a burst buffer; answered with `Staged`.
    Remove {
        number: u64,
        removal: Removal,
    },
    /// Runs the site's program, once a run, before anything else of the run; answered when it has ended.
    Prolog {
        number: u64,
        run: Run,
        hook: Box<Hook>,
    },
    /// As `Prolog`, when nothing of the run is left here. Without an environment: with that of the prolog.
    Epilog {
        number: u64,
        run: Run,
        hook: Box<Hook>,
    },
    /// What these programs did for the run is durable; not answered.
    ForgetHooks {
        run: Run,
    },
    /// Runs the site's health check; not answered.
    Check {
        program: String,
    },
    /// Runs the program that starts the machine anew, once for each time it was issued; answered when it runs.
    Reboot {
        number: u64,
        program: String,
        #[serde(default)]
        issued: Timestamp,
    },
    /// Who else is in the cluster, on other machines; not answered.
    Neighbours(Box<Neighbours>),
    /// Another agent has taken over what a mover here does.
    StopMover {
        home: Home,
        attempt: u32,
    },
    /// Which burst buffer pools this node has; not answered.
    Pools(Box<NodePools>),
}

/// What the job's output says about being ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum KillNote {
    #[default]
    Silent,
    Cancelled,
    TimeLimit,
    NodeFailure,
    Preempted,
    Requeued,
}

/// Agent to controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// First on every stream: who this is and which runs live here.
    Hello {
        node: NodeName,
        machine: Box<Machine>,
        runs: Vec<Run>,
    },
    /// The answer to the order with this number.
    Answer {
        number: u64,
        result: DutyResult,
    },
    /// From the spool; sent again until acknowledged.
    Exited {
        sequence: u64,
        exited: Exited,
    },
    Heartbeat,
    /// The answer to a `Stage` or `Remove` with this number.
    Staged {
        number: u64,
        result: StageResult,
    },
    Progress {
        works: Vec<Progress>,
    },
    Inventory(Inventory),
    /// How busy the machine is; comes with the heartbeat.
    Load(Load),
}

/// A longer sentence about a failure says nothing more.
const SENTENCE_MOST_BYTES: usize = 4096;

impl Report {
    /// Shortens what an agent says of failures: names that a user chose stand in it, and no user may make a report unreadable.
    pub fn shorten_sentences(&mut self) {
        match self {
            Report::Answer { result: DutyResult::Failed { why, .. }, .. } => shorten(why),
            Report::Answer { result: DutyResult::HookFailed { why, drained_for, .. }, .. } => {
                shorten(why);
                shorten(drained_for);
            }
            Report::Exited { exited, .. } => {
                exited.launch_error.iter_mut().for_each(shorten);
                shorten(&mut exited.drained_for);
            }
            Report::Staged { result: StageResult::Failed(failure), .. } => {
                shorten(&mut failure.why);
                shorten(&mut failure.operation);
            }
            Report::Hello { .. }
            | Report::Answer { result: DutyResult::Done, .. }
            | Report::Heartbeat
            | Report::Staged { result: StageResult::Done(_), .. }
            | Report::Progress { .. }
            | Report::Inventory(_)
            | Report::Load(_) => (),
        }
    }
}

fn shorten(sentence: &mut String) {
    if sentence.len() > SENTENCE_MOST_BYTES {
        sentence.truncate(sentence.floor_char_boundary(SENTENCE_MOST_BYTES - 3));
        sentence.push_str("...");
    }
    if sentence.contains('\0') {
        *sentence = sentence.replace('\0', "\u{fffd}");
    }
}

record! {
    /// How busy a machine is.
    pub struct Load {
        /// Of the last minute, in hundredths: 150 is a load of 1.5.
        pub cpu_hundredths: u32,
        /// What programs could still have, without anything being swapped.
        pub free_mb: u64,
    }

    /// What an agent that is heard by other machines must know of them.
    pub struct Neighbours {
        /// Where controllers are reached.
        pub controllers: Vec<String>,
        /// Fingerprints of certificates that were taken back.
        pub revoked: Vec<String>,
        /// Root of another node is nobody here.
        pub root_squash: bool,
        /// Certificates of controllers. None: the controllers are of an earlier release.
        pub standing: Vec<StandingCertificate>,
        /// The fingerprint that a controller shows which was made from a backup.
        pub recovery: String,
    }

    /// A certificate that is believed because the state knows it.
    pub struct StandingCertificate {
        pub fingerprint: String,
        /// Until then its owner shows it; the next one is known long before.
        pub until: Timestamp,
    }

    /// The pools of one node, with its own roots.
    pub struct NodePools {
        pub pools: Vec<Pool>,
        /// How often what is in them is measured.
        pub measure_interval: Span,
    }

    /// All that a supervisor needs to run the batch script, or one node's tasks of a step.
    pub struct Launch hides(script, environment, buffer_environment) {
        pub job: JobId,
        pub attempt: u32,
        pub restarts: u32,
        pub step: StepId,
        pub job_spec: Arc<JobSpec>,
        /// None for the batch script.
        pub step_spec: Option<Box<StepSpec>>,
        /// Array id, task number, and lowest, highest, step, count of the whole array.
        pub array: Option<ArrayFacts>,
        #[serde(with = "crate::bytes")]
        pub script: Vec<u8>,
        /// The submitter's environment, NUL-ended entries.
        #[serde(with = "crate::bytes")]
        pub environment: Vec<u8>,
        pub partition: String,
        /// The reservation the job runs in; empty: none.
        pub reservation: String,
        pub cluster_name: String,
        /// The whole allocation of the job, node by node.
        pub job_shares: Vec<NodeShare>,
        /// The shares of this step (for the batch script: its one node).
        pub step_shares: Vec<NodeShare>,
        /// The step's own on each of its nodes (SLURM_STEP_RESV_PORTS); empty: none.
        pub ports: String,
        /// Which of `step_shares` is this node's.
        pub node_index: u32,
        /// Ranks of this node's tasks; empty: one task of rank 0.
        pub ranks: Vec<u32>,
        /// Of the whole step.
        pub n_tasks: u32,
        pub started: Option<Timestamp>,
        pub ends: Option<Timestamp>,
        /// `%j` of the output file is appended to instead of truncated: a later run of the job.
        pub is_rerun: bool,
        /// `NAME=value`: where the job's burst buffers are on this node.
        pub buffer_environment: Vec<String>,
        /// Where this node is in the network, and what the parts of that are; empty: it has no place.
        pub topology_address: String,
        pub topology_pattern: String,
        /// What the node's machine is called, where that is not the node's name: `%N` in names of files.
        pub hostname: String,
        /// The job is suspended: what is started stands still at once.
        pub is_suspended: bool,
        /// The whole that the job is a component of.
        pub het: Option<Box<HetFacts>>,
        /// What its processes are held to.
        pub bounds: Bounds,
        /// Signals but SIGKILL reach the tasks themselves and nothing that they have started.
        pub signal_tasks_only: bool,
        /// No program that its processes run gives them rights (`PR_SET_NO_NEW_PRIVS`).
        pub no_new_privileges: bool,
        /// What must have been run on the node before it.
        pub prolog: Option<Box<Hook>>,
        /// The site's programs around each task; empty: none.
        pub task_prolog: String,
        pub task_epilog: String,
    }

    /// What a run may use of its node; none where the site does not hold it to anything.
    pub struct Bounds {
        pub memory_mb: Option<u64>,
        pub cpus: Option<CpuSet>,
        /// The node's CPUs, where they are counted core by core since cores go whole; 0: their numbers are the machine's.
        pub n_cpus_by_core: u32,
        /// Device files that belong to others.
        pub denied_files: Vec<String>,
    }

    /// What the components of a heterogeneous job know of each other.
    pub struct HetFacts {
        pub leader: JobId,
        pub components: Vec<HetComponent>,
        /// For a step that spans several of them.
        pub step: Option<HetStep>,
    }

    pub struct HetComponent {
        pub job: JobId,
        pub spec: Arc<JobSpec>,
        pub partition: String,
        pub shares: Vec<NodeShare>,
    }

    /// A step's parts, seen as one.
    pub struct HetStep {
        pub job_shares: Vec<NodeShare>,
        pub step_shares: Vec<NodeShare>,
        /// Which of `step_shares` is this node's.
        pub node_index: u32,
        pub n_tasks: u32,
    }

    pub struct ArrayFacts {
        pub array: JobId,
        pub task: u32,
        pub min: u32,
        pub max: u32,
        pub stride: u32,
        pub count: u32,
    }
}

impl Launch {
    /// The rank of the task with this place on the node.
    pub fn rank(&self, local_id: u32) -> u32 {
        self.ranks.get(local_id as usize).copied().unwrap_or(local_id)
    }
}
