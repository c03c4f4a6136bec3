//! What runs on the nodes of a job right now, asked of their agents.
use config::Client;
use model::ask::{Answer, LiveRun, Question};
use model::request::JobFilter;
use model::{Job, JobId, NodeName, Step};
use wire::{CallError, Controller, NodeAgent, Way};

/// The runs of a job with the node of each; nodes that do not answer are left out.
pub async fn runs(cluster: &Client, job: &Job) -> Vec<(NodeName, LiveRun)> {
    let mut found = Vec::new();
    for node in job.allocation.names() {
        let runs = runs_on(cluster, node.as_str(), Some(job.id)).await.unwrap_or_default();
        found.extend(runs.into_iter().map(|run| (node.clone(), run)));
    }
    found
}

/// How the agent of a node is reached from here.
pub fn way(cluster: &Client, node: &str) -> Way {
    let (socket, through) = (cluster.agent_socket_of(node), cluster.controller_socket.clone());
    Way { node: node.to_owned(), socket, through }
}

pub async fn runs_on(cluster: &Client, node: &str, job: Option<JobId>) -> Result<Vec<LiveRun>, CallError> {
    let mut agent = NodeAgent::connect(&way(cluster, node)).await?;
    match agent.ask(&Question::Runs { job }).await? {
        Answer::Runs(runs) => Ok(runs),
        Answer::Refused { why } => Err(CallError::Other(why)),
        Answer::Written | Answer::Moved(_) | Answer::MoveErrors(_) => Err(other_answer()),
    }
}

pub fn other_answer() -> CallError {
    CallError::Other("an answer to another question".into())
}

/// A job that holds nodes now, with its steps.
pub async fn job(controller: &mut Controller, id: JobId) -> Result<Option<(Job, Vec<Step>)>, CallError> {
    let filter = JobFilter { jobs: vec![id.into()], with_steps: true, ..JobFilter::default() };
    let page = controller.all_jobs(&filter).await?;
    let Some(job) = page.jobs.into_iter().find(|job| job.id == id && job.holds_nodes()) else { return Ok(None) };
    let own = |step: &Step| step.job == id && step.attempt == job.attempt;
    let steps = page.steps.into_iter().filter(own).collect();
    Ok(Some((job, steps)))
}
