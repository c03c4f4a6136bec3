//! The version users' scripts look for.

/// The release of Slurm whose behaviour the commands follow.
pub const SLURM: &str = "22.05.8";

/// What `--version` prints.
pub fn line() -> String {
    format!("slurm {SLURM}\n")
}
