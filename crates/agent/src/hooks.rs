//! The site's programs on this node: a prolog before anything of a run, an epilog when nothing is left of it; each once a run.
//! Their records are in the spool, from before they begin until the controller says that their ends are durable.
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use model::JobId;
use model::agent::{Launch, Report};
use model::command::DutyResult;
use model::hooks::Hook;
use model::node::Run;
use tokio::sync::{Notify, oneshot};

use crate::table::Agent;
use crate::{Options, orders};

/// How many runs are remembered for which nothing is to be run any more, whatever order still comes.
const OVER_MAX: usize = 20_000;

#[derive(Default)]
pub struct Hooks {
    memory: Mutex<Memory>,
    /// Held where one may not run beside another.
    turn: tokio::sync::Mutex<()>,
    /// A launch that waited for a prolog has been made, or refused.
    launched: Notify,
}

#[derive(Default)]
struct Memory {
    /// Launches that wait for a prolog.
    waiting: HashMap<(u32, u32), u32>,
    over: HashSet<(u32, u32)>,
    over_order: VecDeque<(u32, u32)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Prolog,
    Epilog,
}

impl Hooks {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().expect("no panic while it is held")
    }
}

pub fn prolog(agent: &Arc<Agent>, number: u64, run: Run, hook: Hook) {
    let agent = agent.clone();
    tokio::spawn(async move {
        let ended = run_once(&agent, &run, Which::Prolog, hook).await;
        answer(&agent, number, ended);
    });
}

/// Waits until nothing of the run is left here.
pub fn epilog(agent: &Arc<Agent>, number: u64, run: Run, hook: Hook) {
    let agent = agent.clone();
    tokio::spawn(async move {
        for ended in ends_of(&agent, &run) {
            let _ = ended.await;
        }
        let ended = run_once(&agent, &run, Which::Epilog, hook).await;
        answer(&agent, number, ended);
    });
}

/// Launches what the prolog allows; until then the run counts as being launched.
pub fn launch_after_prolog(agent: &Arc<Agent>, number: u64, launch: Launch, hook: Hook) {
    let run = Run { job: launch.job, attempt: launch.attempt };
    let key = key(&run);
    *agent.hooks.memory().waiting.entry(key).or_default() += 1;
    let agent = agent.clone();
    tokio::spawn(async move {
        match run_once(&agent, &run, Which::Prolog, hook).await {
            Ok(()) => orders::launch_run(&agent, number, launch),
            Err(fault) => answer(&agent, number, Err(fault)),
        }
        let mut memory = agent.hooks.memory();
        if let Some(count) = memory.waiting.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                memory.waiting.remove(&key);
            }
        }
        drop(memory);
        agent.hooks.launched.notify_waiters();
    });
}

/// Returns when no launch of the run waits for a prolog; none if none does now.
pub fn when_launched(agent: &Arc<Agent>, run: &Run) -> Option<impl Future<Output = ()> + use<>> {
    let key = key(run);
    let waits = agent.hooks.memory().waiting.contains_key(&key);
    let agent = agent.clone();
    waits.then_some(async move {
        loop {
            let told = agent.hooks.launched.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if !agent.hooks.memory().waiting.contains_key(&key) {
                return;
            }
            told.await;
        }
    })
}

/// What they did is durable.
pub fn forget(agent: &Agent, run: &Run) {
    let mut memory = agent.hooks.memory();
    let key = key(run);
    if memory.over.insert(key) {
        memory.over_order.push_back(key);
    }
    if memory.over_order.len() > OVER_MAX
        && let Some(oldest) = memory.over_order.pop_front()
    {
        memory.over.remove(&oldest);
    }
    drop(memory);
    let records = records(&agent.options);
    [Which::Prolog, Which::Epilog].iter().for_each(|which| prolog::forget(&records, &name(run, *which)));
}

/// Runs of which there are records here.
pub fn runs(agent: &Agent) -> Vec<Run> {
    let names = prolog::names(&records(&agent.options)).unwrap_or_else(|error| {
        tracing::error!(%error, "cannot list the records of prologs and epilogs");
        Vec::new()
    });
    let run = |name: &String| {
        let mut parts = name.split('.');
        let (job, attempt) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Run { job: JobId(job), attempt })
    };
    names.iter().filter_map(run).collect()
}

/// Ends what runs, for a cluster that is taken down.
pub fn end_all(options: &Options) {
    if let Err(error) = prolog::end_all(&records(options)) {
        tracing::warn!(%error, "cannot end prologs and epilogs");
    }
}

/// Whose fault it is that a hook did not end well.
enum HookFault {
    /// What the user chose cannot be passed on to any program.
    Job(String),
    Node(String),
}

async fn run_once(agent: &Arc<Agent>, run: &Run, which: Which, mut hook: Hook) -> Result<(), HookFault> {
    match which {
        // Nothing of the job begins without its prolog.
        Which::Prolog => prolog::can_be_told(&hook.environment).map_err(HookFault::Job)?,
        // What has begun is cleared up after, whatever its names are.
        Which::Epilog => hook.environment = prolog::tellable(hook.environment),
    }
    let _turn = if hook.is_serial { Some(agent.hooks.turn.lock().await) } else { None };
    if agent.hooks.memory().over.contains(&key(run)) {
        return Ok(());
    }
    let records = records(&agent.options);
    let (prolog, own) = (name(run, Which::Prolog), name(run, which));
    let ran = tokio::task::spawn_blocking(move || {
        let mut environment = hook.environment;
        if which == Which::Epilog {
            // A prolog that is still running is not cut short: what it began is its epilog's to undo.
            prolog::wait(&records, &prolog)?;
            if environment.is_empty() {
                environment = prolog::tellable(of_epilog(prolog::environment(&records, &prolog).unwrap_or_default()));
            }
            // Nobody knows what it would be about.
            if environment.is_empty() {
                return Ok(Ok(()));
            }
        }
        let timeout = hook.timeout.map(|span| Duration::from_micros(span.0));
        let order = prolog::Order { programs: hook.programs, environment, timeout };
        if order.programs.is_empty() {
            if which == Which::Prolog {
                prolog::note(&records, &own, &order)?;
            }
            return Ok(Ok(()));
        }
        prolog::run_once(Path::new("/proc/self/exe"), &records, &own, &order)
    });
    let ended = match ran.await {
        Ok(Ok(ended)) => ended,
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(why) = &ended {
        let (job, what) = (run.job, word(which));
        tracing::error!(%job, what, why, "a program of the site failed");
    }
    ended.map_err(HookFault::Node)
}

/// What the prolog was told, told to the epilog.
fn of_epilog(environment: Vec<String>) -> Vec<String> {
    environment.into_iter().map(|entry| entry.replace("SCRIPT_CONTEXT=prolog_", "SCRIPT_CONTEXT=epilog_")).collect()
}

fn answer(agent: &Agent, number: u64, ended: Result<(), HookFault>) {
    let result = match ended {
        Ok(()) => DutyResult::Done,
        Err(HookFault::Job(why)) => DutyResult::Failed { node: agent.options.node.clone(), why },
        Err(HookFault::Node(why)) => {
            DutyResult::HookFailed { nodes: vec![agent.options.node.clone()], why, drained_for: String::new() }
        }
    };
    agent.table().report(Report::Answer { number, result });
}

fn ends_of(agent: &Agent, run: &Run) -> Vec<oneshot::Receiver<()>> {
    let mut table = agent.table();
    let mut ends = Vec::new();
    for id in table.of_run(run, None) {
        let entry = table.runs.get_mut(&id).expect("just listed");
        if !entry.has_ended {
            let (tell, told) = oneshot::channel();
            entry.on_end.push(tell);
            ends.push(told);
        }
    }
    ends
}

fn records(options: &Options) -> PathBuf {
    options.spool_dir.join("hooks")
}

fn key(run: &Run) -> (u32, u32) {
    (run.job.0, run.attempt)
}

fn name(run: &Run, which: Which) -> String {
    format!("{}.{}.{}", run.job, run.attempt, word(which))
}

fn word(which: Which) -> &'static str {
    match which {
        Which::Prolog => "prolog",
        Which::Epilog => "epilog",
    }
}
