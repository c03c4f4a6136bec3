//! What a worker is asked to do.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a burst_buffer.lua must have.
pub const FUNCTIONS: [&str; 13] = [
    "slurm_bb_job_process",
    "slurm_bb_pools",
    "slurm_bb_job_teardown",
    "slurm_bb_setup",
    "slurm_bb_data_in",
    "slurm_bb_test_data_in",
    "slurm_bb_real_size",
    "slurm_bb_paths",
    "slurm_bb_pre_run",
    "slurm_bb_post_run",
    "slurm_bb_data_out",
    "slurm_bb_test_data_out",
    "slurm_bb_get_status",
];

/// What a job_submit.lua must have.
pub const SUBMIT_FUNCTIONS: [&str; 2] = ["slurm_job_submit", "slurm_job_modify"];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Call {
    /// Loads the script and looks whether it has all functions.
    Check {
        script: String,
        functions: Vec<String>,
    },
    /// Loads the script and calls one function.
    Lua {
        script: String,
        function: String,
        arguments: Vec<String>,
        /// The table that comes last, if any.
        job_info: Option<Value>,
        around: Surroundings,
    },
    /// Runs a script's text and has one function change a table; the answer is an [`Edited`].
    Edit(Box<Edit>),
    Program {
        path: String,
        name: String,
        arguments: Vec<String>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Edit {
    /// Where the text comes from, for messages.
    pub script: String,
    pub text: String,
    pub function: String,
    /// The first argument: what the function may change.
    pub table: Map<String, Value>,
    /// The arguments behind it.
    pub others: Vec<Value>,
    /// Tables below `slurm`.
    pub known: Map<String, Value>,
    pub around: Surroundings,
}

/// What scripts may ask about where they run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Surroundings {
    pub cluster_name: String,
    /// Of each QOS, by its name.
    pub qos_priorities: BTreeMap<String, u32>,
}

/// What became of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Edited {
    /// What the function returned; none: the script has a fault, and all is as before.
    pub code: Option<i64>,
    /// For whoever waits for it.
    pub told: String,
    /// Fields that are not as they were; those that are gone are null.
    pub changed: Map<String, Value>,
}

impl Call {
    /// What programs find in SLURM_SCRIPT_CONTEXT.
    pub fn context(&self) -> &'static str {
        match self {
            Call::Edit(_) => "job_submit.lua",
            Call::Check { .. } | Call::Lua { .. } | Call::Program { .. } => "burst_buffer.lua",
        }
    }
}
