//! How a controller is started.
use std::path::PathBuf;

use model::Config;

pub struct Options {
    /// Read again by `scontrol reconfigure`.
    pub config_file: PathBuf,
    pub config: Config,
}
