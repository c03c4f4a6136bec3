//! `scancel -s`: a signal for processes, delivered at once or not at all.
use model::agent::Order;
use model::command::JobResult;
use model::request::{SignalRequest, SignalScope};
use model::{Caller, Command, JobId, JobRef, Phase, Reject, Reply};
use state::Cluster;

use crate::agents::Agents;
use crate::leader::runner::signal_targets;

const SIGKILL: u32 = 9;
const SIGCONT: u32 = 18;
const SIGSTOP: u32 = 19;

/// The answer, and the note that the log must have of it.
pub fn signal(cluster: &Cluster, agents: &Agents, by: Caller, request: &SignalRequest) -> (Reply, Option<Command>) {
    let mut results = Vec::new();
    let mut signalled = Vec::new();
    for named in &request.jobs {
        let Some(jobs) = cluster.named(named) else {
            results.push(JobResult { job: named.clone(), result: Err(Reject::NoSuchJob) });
            continue;
        };
        for id in jobs {
            let mut result = may_signal(cluster, by, id, request.signal);
            // An allocation without steps has no output to write to.
            if result.is_ok() && !request.message.is_empty() && signal_targets(cluster, id).is_empty() {
                result = Err(Reject::NotBatch);
            }
            if result.is_ok() {
                send(cluster, agents, id, request);
                signalled.push(id);
            }
            results.push(JobResult { job: label(cluster, id), result });
        }
    }
    (Reply::Each(results), note(request, signalled))
}

/// Jobs as a whole, not single steps, are shown as STOPPED.
fn note(request: &SignalRequest, jobs: Vec<JobId>) -> Option<Command> {
    let is_stopped = match request.signal {
        SIGSTOP => true,
        SIGCONT => false,
        _ => return None,
    };
    let is_about_jobs = request.message.is_empty() && !matches!(request.scope, SignalScope::Step(_));
    (is_about_jobs && !jobs.is_empty()).then_some(Command::NoteStopped { jobs, is_stopped })
}

fn may_signal(cluster: &Cluster, by: Caller, id: JobId, signal: u32) -> Result<(), Reject> {
    let job = cluster.job(id).ok_or(Reject::NoSuchJob)?;
    if !by.may_act_for(job.spec.uid) {
        return Err(Reject::NotPermitted);
    }
    match job.phase {
        Phase::Pending => Err(Reject::JobPending),
        Phase::Starting | Phase::Running => Ok(()),
        Phase::Suspended if signal == SIGKILL => Ok(()),
        Phase::Suspended => Err(Reject::JobSuspended),
        Phase::Ending | Phase::Finishing | Phase::Done => Err(Reject::AlreadyOver),
    }
}

fn send(cluster: &Cluster, agents: &Agents, id: JobId, request: &SignalRequest) {
    for (node, run) in signal_targets(cluster, id) {
        if !request.message.is_empty() {
            agents.send(&node, Order::Notify { run, text: request.message.clone() });
            continue;
        }
        agents.send(&node, Order::Signal { run, signal: request.signal, scope: request.scope });
    }
}

fn label(cluster: &Cluster, id: JobId) -> JobRef {
    match cluster.job(id).map(|job| (job.array_id(), job.array_task())) {
        Some((Some(array), Some(task))) => JobRef { job: array, tasks: Some([task].into_iter().collect()) },
        _ => id.into(),
    }
}
