//! How a controller is started.
use std::path::PathBuf;

use model::Config;
use model::config::ControllerConfig;

use crate::members::Place;

pub struct Options {
    /// Read again by `scontrol reconfigure`.
    pub config_file: PathBuf,
    pub config: Config,
    /// Where this very controller keeps its things; those that share a machine have different places.
    pub own: ControllerConfig,
    pub place: Place,
    /// A user's own cluster (`spur up`), whose agents can run nobody else's jobs: strangers are not heard.
    pub is_private: bool,
}
