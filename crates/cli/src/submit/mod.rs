//! What sbatch, salloc and srun share: one table of options, read from the script, the environment and the arguments.
//!
//! ```text
//! #SBATCH lines ──► ┌───────┐
//! SBATCH_* etc.  ──►│ table │──► Request ──► JobSpec / StepSpec + blobs
//! arguments      ──►└───────┘     (a later source wins)
//! ```
pub mod caller;
pub mod components;
pub mod directives;
pub mod export;
mod foreign;
pub mod gpus;
pub mod help;
pub mod limits;
pub mod login;
mod mem_bind;
pub mod problem;
pub mod read;
pub mod request;
pub mod set;
pub mod set_broadcast;
pub mod set_hints;
pub mod set_layout;
pub mod set_network;
pub mod set_plugins;
pub mod set_size;
pub mod set_step;
pub mod spec;
pub mod start;
pub mod table;
#[cfg(test)]
mod tests;

pub use caller::Caller;
pub use problem::Problem;
pub use request::Request;

/// The three commands that ask for resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Sbatch,
    Salloc,
    Srun,
}

impl Program {
    pub fn name(self) -> &'static str {
        match self {
            Program::Sbatch => "sbatch",
            Program::Salloc => "salloc",
            Program::Srun => "srun",
        }
    }

    /// What stands before the controller's reason for a refusal.
    pub fn refusal(self) -> &'static str {
        match self {
            Program::Sbatch => "Batch job submission failed",
            Program::Salloc => "Job submit/allocate failed",
            Program::Srun => "Unable to allocate resources",
        }
    }
}
