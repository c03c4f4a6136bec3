//! Carrying out what the controller orders.
use std::sync::Arc;

use model::agent::{KillNote, Order, Report};
use model::command::{DutyResult, RequestId};
use model::node::Run;
use model::request::SignalScope;
use model::time::Span;
use model::{StepId, agent::Launch};
use tokio::sync::oneshot;

use crate::protocol::{ToSupervisor, Whom};
use crate::run::NotLaunched;
use crate::table::Agent;
use crate::{care, hooks, run, staging, unkillable};

pub fn obey(agent: &Arc<Agent>, order: Order) {
    match order {
        Order::Welcome => {
            agent.table().report_all_again();
            staging::send_inventory(agent);
        }
        Order::Refuse { why } => tracing::error!(why, "the controller does not want this agent"),
        Order::Launch { number, mut launch } => match launch.prolog.take() {
            Some(hook) => hooks::launch_after_prolog(agent, number, *launch, *hook),
            None => launch_run(agent, number, *launch),
        },
        Order::Kill { number, run, step, kill_wait, note } => kill(agent, number, run, step, kill_wait, note),
        Order::Freeze { number, run, grace } => {
            ask_all_in_turn(agent, number, run, move |number| ToSupervisor::Freeze { number, grace });
        }
        Order::Thaw { number, run } => ask_all_in_turn(agent, number, run, |number| ToSupervisor::Thaw { number }),
        Order::Signal { number, run, signal, scope, request } => {
            signal_run(agent, &run, signal, scope, request);
            answer_at_once(agent, number);
        }
        Order::Stop => stop(),
        Order::Notify { number, run, text, request } => {
            notify_run(agent, &run, &text, request);
            answer_at_once(agent, number);
        }
        Order::Acknowledge { sequences } => {
            let mut table = agent.table();
            sequences.into_iter().for_each(|sequence| table.acknowledge(sequence, &agent.spool));
        }
        Order::Ping => agent.table().report(Report::Heartbeat),
        Order::Stage { number, work } => staging::stage(agent, number, *work),
        Order::Remove { number, removal } => staging::remove(agent, number, removal),
        Order::Prolog { number, run, hook } => hooks::prolog(agent, number, run, *hook),
        Order::Epilog { number, run, hook } => hooks::epilog(agent, number, run, *hook),
        Order::ForgetHooks { run } => hooks::forget(agent, &run),
        Order::Check { program } => care::check(agent, program),
        Order::Reboot { number, program, issued } => care::reboot(agent, number, program, issued),
        Order::Neighbours(told) => {
            if let Some(remote) = &agent.options.remote {
                remote.know(*told);
            }
        }
        Order::Pools(told) => {
            let agent = agent.clone();
            tokio::task::spawn_blocking(move || agent.staging.pools.know(*told));
        }
        Order::StopMover { home, attempt } => staging::stop_mover(agent, home, attempt),
    }
}

pub fn launch_run(agent: &Arc<Agent>, number: u64, launch: Launch) {
    let node = agent.options.node.clone();
    let result = match run::launch(agent, launch) {
        Ok(()) => DutyResult::Done,
        Err(NotLaunched::Ended(why)) => DutyResult::Failed { node, why },
        // Every job that came here would fail.
        Err(NotLaunched::Spool(why)) => {
            tracing::error!(why, "this node can run nothing");
            DutyResult::HookFailed { nodes: vec![node], why, drained_for: run::LAUNCH_FAILED.into() }
        }
    };
    agent.table().report(Report::Answer { number, result });
}

/// Refuses later launches, ends what there is, and answers when nothing is left.
fn kill(agent: &Arc<Agent>, number: u64, run: Run, step: Option<StepId>, kill_wait: Span, note: KillNote) {
    let (mut waits, mut told) = (Vec::new(), Vec::new());
    {
        let mut table = agent.table();
        let path = agent.spool.dir().join("killed");
        if let Err(error) = table.killed.add(&run, step, &path) {
            tracing::error!(%error, "cannot note a killed run in the spool");
        }
        for id in table.of_run(&run, step) {
            let entry = table.runs.get_mut(&id).expect("just listed");
            if entry.has_ended {
                continue;
            }
            let (tell, end) = oneshot::channel();
            entry.on_end.push(tell);
            waits.push(end);
            entry.to.say(ToSupervisor::Kill { kill_wait, note });
            told.push(id);
        }
    }
    told.into_iter().for_each(|id| unkillable::enforce(agent, id, kill_wait));
    answer_after(agent, number, waits);
}

/// What waits for a prolog is launched first: nothing slips through running.
fn ask_all_in_turn(agent: &Arc<Agent>, number: u64, run: Run, message: impl Fn(u64) -> ToSupervisor + Send + 'static) {
    let Some(launched) = hooks::when_launched(agent, &run) else { return ask_all(agent, number, &run, message) };
    let agent = agent.clone();
    tokio::spawn(async move {
        launched.await;
        ask_all(&agent, number, &run, message);
    });
}

fn ask_all(agent: &Arc<Agent>, number: u64, run: &Run, message: impl Fn(u64) -> ToSupervisor) {
    let mut waits = Vec::new();
    {
        let mut table = agent.table();
        for id in table.of_run(run, None) {
            let entry = table.runs.get_mut(&id).expect("just listed");
            if entry.has_ended {
                continue;
            }
            let (tell, told) = oneshot::channel();
            entry.on_done.insert(number, tell);
            waits.push(told);
            entry.to.say(message(number));
        }
    }
    answer_after(agent, number, waits);
}

fn answer_after(agent: &Arc<Agent>, number: u64, waits: Vec<oneshot::Receiver<()>>) {
    let answer = Report::Answer { number, result: DutyResult::Done };
    if waits.is_empty() {
        return agent.table().report(answer);
    }
    let agent = agent.clone();
    tokio::spawn(async move {
        for wait in waits {
            // A waiter that is dropped has been replaced by the same order, come again.
            let _ = wait.await;
        }
        agent.table().report(answer);
    });
}

/// What supervisors are told reaches them: they outlive the agent.
fn answer_at_once(agent: &Agent, number: u64) {
    if number != 0 {
        agent.table().report(Report::Answer { number, result: DutyResult::Done });
    }
}

/// The batch script's output, if it is here; else that of every step.
fn notify_run(agent: &Agent, run: &Run, text: &str, request: Option<RequestId>) {
    let table = agent.table();
    let runs = table.of_run(run, None);
    let has_batch = runs.iter().any(|id| id.step == StepId::Batch);
    for id in runs.iter().filter(|id| !has_batch || id.step == StepId::Batch) {
        table.runs[id].to.say(ToSupervisor::Say { text: text.to_owned(), request });
    }
}

fn signal_run(agent: &Agent, run: &Run, signal: u32, scope: SignalScope, request: Option<RequestId>) {
    let table = agent.table();
    for id in table.of_run(run, None) {
        let is_batch = id.step == StepId::Batch;
        let whom = match scope {
            SignalScope::Steps if !is_batch => Whom::Everyone,
            SignalScope::BatchShell if is_batch => Whom::Leaders,
            SignalScope::Everything => Whom::Everyone,
            SignalScope::Step(step) if step == id.step => Whom::Everyone,
            SignalScope::Steps | SignalScope::BatchShell | SignalScope::Step(_) => continue,
        };
        table.runs[&id].to.say(ToSupervisor::Signal { signal, whom, request });
    }
}

/// As if an administrator had told it to here.
fn stop() {
    tracing::info!("the controller ends this agent");
    // SAFETY: a plain system call on this very process.
    unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
}
