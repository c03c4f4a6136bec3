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
}
