//! Whose jobs the nodes can run. An agent that is not root's runs jobs of its own user only.
use model::{Command, JobSpec};

use crate::Cluster;

/// Where jobs of a user could run, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobHome {
    SomeNode,
    NoNode,
    /// No agent has said yet whose it is.
    Unknown,
}

pub fn home_of_jobs_of(cluster: &Cluster, uid: u32) -> JobHome {
    let machines = cluster.nodes().map(|node| &node.machine).filter(|machine| machine.agent_started.is_some());
    let mut home = JobHome::Unknown;
    for machine in machines {
        match machine.runs_only {
            Some(only) if only != uid => home = JobHome::NoNode,
            _ => return JobHome::SomeNode,
        }
    }
    home
}

/// The users as whom a submission's jobs would run.
pub fn owners_of_submission(command: &Command) -> Vec<u32> {
    let owners = |specs: &[JobSpec]| specs.iter().map(|spec| spec.uid).collect();
    match command {
        Command::Once { command, .. } => owners_of_submission(command),
        Command::Submit { spec, .. } => vec![spec.uid],
        Command::SubmitTogether { specs, .. } => owners(specs),
        _ => Vec::new(),
    }
}
