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
        let is_het = jobs.first().and_then(|id| cluster.job(*id)).is_some_and(|job| job.het.is_some());
        let mut all = Vec::new();
        for id in jobs {
            let result = signal_one(cluster, agents, by, id, request);
            if result.is_ok() {
                signalled.push(id);
            }
            all.push(JobResult { job: label(cluster, id), result });
        }
        match is_het {
            // One job to its user: one answer.
            true => {
                let result = all.into_iter().find_map(|one| one.result.err()).map_or(Ok(()), Err);
                results.push(JobResult { job: named.clone(), result });
            }
            false => results.append(&mut all),
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

fn signal_one(
    cluster: &Cluster,
    agents: &Agents,
    by: Caller,
    id: JobId,
    request: &SignalRequest,
) -> Result<(), Reject> {
    may_signal(cluster, by, id, request.signal)?;
    let is_component = cluster.job(id).is_some_and(|job| job.het.as_ref().is_some_and(|het| !het.is_leader()));
    // An allocation without steps has no output to write to; a component has that of its leader.
    if !request.message.is_empty() && signal_targets(cluster, id).is_empty() && !is_component {
        return Err(Reject::NotBatch);
    }
    send(cluster, agents, id, request);
    Ok(())
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
        Some((Some(array), Some(task))) => JobRef::task(array, task),
        _ => id.into(),
    }
}
