//! What the scheduler decided: who gets what is scarce. Re-checked when it is applied.
use crate::spec::TimeLimit;
use crate::{JobId, NodeName, Reason, Timestamp};

record! {
    pub struct Plan {
        pub starts: Vec<Start>,
        /// Whose burst buffers are filled now.
        pub stage_ins: Vec<StageStart>,
        /// Whose burst buffers, filled ahead, make room for others that start sooner.
        pub stage_preemptions: Vec<StagePreemption>,
        /// Why the others still wait, where that has changed.
        pub reasons: Vec<WaitReason>,
        /// When and where waiting jobs will start, where that has changed.
        pub expected_starts: Vec<ExpectedStart>,
        /// Running jobs that must make room.
        pub preemptions: Vec<Preemption>,
        /// Jobs that begin to wait for few switches.
        pub switch_waits: Vec<JobId>,
        /// Jobs that others made room for, and that could not start there after all.
        pub forfeits: Vec<JobId>,
        /// When time alone may give another plan, where nothing else makes the leader plan before.
        pub look_again: Option<Timestamp>,
    }

    pub struct Start {
        pub job: JobId,
        /// For an array's waiting record: which task leaves it.
        pub task: Option<u32>,
        pub partition: String,
        pub nodes: Vec<Grant>,
        pub is_exclusive: bool,
        /// Shorter than asked, as `--time-min` allows.
        pub time_limit: Option<TimeLimit>,
        /// Empty: outside all reservations.
        pub reservation: String,
        /// Which of several licences it gets, where one is enough; empty: whichever is free.
        pub license: String,
        /// It may have CPUs that others hold, as its partition's OverSubscribe has it.
        pub shares_cpus: bool,
        /// It may have the CPUs of these, which then stand still.
        pub parks: Vec<JobId>,
    }

    pub struct StageStart {
        pub job: JobId,
        /// For an array's waiting record: which task leaves it.
        pub task: Option<u32>,
        /// Where it is expected to run; empty: not known yet, or of no matter.
        pub nodes: Vec<NodeName>,
    }

    pub struct StagePreemption {
        /// Who waits again.
        pub job: JobId,
        /// For whom.
        pub by: JobId,
    }

    /// How much of one node; the ledger picks which CPUs and units.
    pub struct Grant {
        pub node: NodeName,
        pub n_cpus: u32,
        pub memory_mb: u64,
        pub n_tasks: u32,
        /// Its part of the devices that the job asks for in all.
        pub gres: Vec<crate::gres::GresRequest>,
    }

    pub struct WaitReason {
        pub job: JobId,
        pub reason: Option<Reason>,
        pub text: String,
        pub expected_start: Option<Timestamp>,
    }

    pub struct ExpectedStart {
        pub job: JobId,
        /// None: it has no place on the timeline any more.
        pub at: Option<Timestamp>,
        /// A hostlist.
        pub nodes: String,
    }

    pub struct Preemption {
        /// Who must go.
        pub job: JobId,
        pub attempt: u32,
        /// For whom.
        pub by: JobId,
    }
}
