//! What a worker is asked to do.
use serde::{Deserialize, Serialize};
use serde_json::Value;

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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Call {
    /// Loads the script and looks whether it has all functions.
    Check {
        script: String,
    },
    /// Loads the script and calls one function.
    Lua {
        script: String,
        function: String,
        arguments: Vec<String>,
        /// The table that comes last, if any.
        job_info: Option<Value>,
        cluster_name: String,
    },
    Program {
        path: String,
        name: String,
        arguments: Vec<String>,
    },
}
