//! `scancel -s`: a signal for processes. It is answered when it has arrived wherever it is meant for.
use std::time::Duration;

use model::agent::Order;
use model::command::{JobResult, RequestId};
use model::node::Run;
use model::request::{SignalRequest, SignalScope};
use model::{Caller, Command, JobId, JobRef, NodeName, Phase, Reject, Reply, StepId};
use state::Cluster;
use tokio::sync::oneshot;

use crate::leader::runner::{Handle, signal_targets};

const SIGKILL: u32 = 9;
const SIGCONT: u32 = 18;
const SIGSTOP: u32 = 19;

/// What is asked, and the id by which it is known again where it comes twice: over the agent's next stream, from the next leader.
pub struct Asked<'a> {
    pub request: &'a SignalRequest,
    pub id: RequestId,
}

/// Whoever has not taken it by then is not there; nodes that the log knows to be away are not waited for.
const ARRIVES_WITHIN: Duration = Duration::from_secs(10);

/// What was sent, and is to arrive.
pub type Arrivals = Vec<(NodeName, oneshot::Receiver<()>)>;

/// Waits until all have arrived; else names a node that did not answer.
pub async fn arrive(arrivals: Arrivals) -> Result<(), String> {
    let until = tokio::time::Instant::now() + ARRIVES_WITHIN;
    for (node, arrival) in arrivals {
        let arrived = tokio::time::timeout_at(until, arrival).await;
        arrived.ok().and_then(Result::ok).ok_or_else(|| format!("node {node} does not answer"))?;
    }
    Ok(())
}

/// The answer, what is to arrive before it is given, and the note that the log must have of it.
pub fn signal(cluster: &Cluster, runner: &Handle, by: Caller, asked: &Asked) -> (Reply, Arrivals, Option<Command>) {
    let request = asked.request;
    let mut arrivals = Vec::new();
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
            let result = signal_one(cluster, by, id, request);
            if result.is_ok() {
                signalled.push(id);
                arrivals.extend(send(cluster, runner, id, asked));
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
    (Reply::Each(results), arrivals, note(request, signalled))
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

fn signal_one(cluster: &Cluster, by: Caller, id: JobId, request: &SignalRequest) -> Result<(), Reject> {
    may_signal(cluster, by, id, request.signal)
}

/// Words for those who hold an allocation: they have a terminal of their own.
pub fn notices(cluster: &Cluster, request: &SignalRequest, reply: &Reply) -> Vec<(JobId, String)> {
    let Reply::Each(results) = reply else { return Vec::new() };
    let told = results.iter().filter(|one| one.result.is_ok() && !request.message.is_empty()).map(|one| one.job.job);
    let is_held = |id: &JobId| cluster.job(*id).is_some_and(|job| !job.spec.is_batch());
    told.filter(is_held).map(|id| (id, request.message.clone())).collect()
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

fn send(cluster: &Cluster, runner: &Handle, id: JobId, asked: &Asked) -> Arrivals {
    let SignalRequest { signal, message, .. } = asked.request;
    let scope = heard_by(cluster, id, asked.request);
    let request = Some(asked.id);
    let answers = |node: &NodeName| cluster.node(node.as_str()).is_some_and(|node| node.answers);
    let targets = signal_targets(cluster, id).into_iter().filter(|(node, _)| answers(node));
    let send = |(node, run): (NodeName, Run)| {
        let order = match message.is_empty() {
            true => Order::Signal { number: 0, run, signal: *signal, scope, request },
            false => Order::Notify { number: 0, run, text: message.clone(), request },
        };
        (node.clone(), runner.deliver(node, order))
    };
    targets.map(send).collect()
}

/// `scancel --full` is about a script and all that it has started: its steps hear of a signal from their own `srun`, once.
/// What stops, continues or kills goes to all, since no `srun` can pass it on.
fn heard_by(cluster: &Cluster, id: JobId, request: &SignalRequest) -> SignalScope {
    let is_passed_on = ![SIGSTOP, SIGCONT, SIGKILL].contains(&request.signal);
    let has_script = cluster.job(id).is_some_and(|job| job.runs_script());
    match request.scope {
        SignalScope::Everything if is_passed_on && has_script => SignalScope::Step(StepId::Batch),
        scope => scope,
    }
}

fn label(cluster: &Cluster, id: JobId) -> JobRef {
    match cluster.job(id).map(|job| (job.array_id(), job.array_task())) {
        Some((Some(array), Some(task))) => JobRef::task(array, task),
        _ => id.into(),
    }
}
