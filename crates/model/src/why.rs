//! Why a job does not run: the answer to `spur why`.
use crate::{JobId, NodeName, Reason, Timestamp};

record! {
    pub struct Why {
        pub job: JobId,
        pub name: String,
        /// Slurm's word for its state.
        pub state: String,
        /// The first gate that holds it; none if nothing does.
        pub gate: Option<Reason>,
        /// What the gate means for this job.
        pub detail: String,
        /// What it asks for.
        pub needs: String,
        /// Nodes that could serve it now, and that could if nothing else ran.
        pub n_nodes_free: u32,
        pub n_nodes_fitting: u32,
        /// The nodes that will be free first, with those who hold them.
        pub held: Vec<HeldNode>,
        /// Jobs before it in the queue, and the first of them.
        pub n_ahead: u32,
        pub ahead: Vec<JobId>,
        pub expected_start: Option<Timestamp>,
        /// A hostlist.
        pub expected_nodes: String,
        pub hints: Vec<Hint>,
    }

    pub struct HeldNode {
        pub node: NodeName,
        pub by: JobId,
        /// None: nobody knows.
        pub until: Option<Timestamp>,
    }

    /// A change that would start the job sooner, as the same scheduler found.
    pub struct Hint {
        /// As an option of `scontrol update`.
        pub change: String,
        pub starts: Option<Timestamp>,
    }
}
