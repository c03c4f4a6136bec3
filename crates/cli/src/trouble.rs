//! Calls that gave no answer, in the words scripts look for.
use wire::{CallError, Controller};

use crate::context;

/// Why a command cannot go on.
#[derive(Debug)]
pub enum Trouble {
    /// No cluster is configured; the text says what to do.
    NoCluster(String),
    /// The controller refused or could not be asked.
    Call(String),
}

impl From<CallError> for Trouble {
    fn from(error: CallError) -> Self {
        Trouble::Call(text(&error))
    }
}

pub fn text(error: &CallError) -> String {
    match error {
        CallError::Unreachable { .. } => "Unable to contact slurm controller (connect failure)".into(),
        CallError::Refused(_) | CallError::Broken(_) | CallError::Other(_) => error.to_string(),
    }
}

/// The cluster and a connection to its controller.
pub async fn connect() -> Result<(config::Client, Controller), Trouble> {
    let cluster = context::cluster().map_err(Trouble::NoCluster)?;
    let controller = Controller::connect(&cluster.controller_socket).await?;
    Ok((cluster, controller))
}
