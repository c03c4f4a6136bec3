//! `srun`: runs a program as the tasks of a step, and carries their streams.
//!
//! ```text
//! arguments ─ plan ─► place: a job of its own (allocation) or a step in one (creation)
//!                        │
//!      stdin ─► session ◄┴─► one connection a node ─► agents
//!     stdout ◄─ writer
//! ```
mod apart;
pub mod around;
pub mod broadcast;
pub mod chatter;
pub mod connection;
pub mod creation;
pub mod fence;
pub mod files;
pub mod gres;
pub mod hosts;
pub mod input;
pub mod output;
pub mod parts;
pub mod plan;
pub mod programs;
pub mod session;
pub mod signals;
pub mod tasks;
pub mod terminal;
pub mod together;

pub use plan::build;

use config::Client;
use model::{Job, Step, StepId};
use wire::Controller;

use crate::allocation::{self, Failed, Granted};
use crate::sbatch::error_code;
use crate::submit::start::start;
use crate::submit::{Program, help};
use crate::watch::Watch;
use plan::{Place, Plan};
use session::Session;

const PROGRAM: Program = Program::Srun;

pub fn run(arguments: &[String]) -> i32 {
    start(PROGRAM, |caller| build(arguments, caller, terminal::size), carry_out)
}

async fn carry_out(cluster: &Client, plan: Plan) -> i32 {
    let talk = std::iter::once(&plan).chain(&plan.others).map(|part| part.talk.as_str());
    eprint!("{}", talk.collect::<String>());
    eprint!("{}", help::connections(PROGRAM, plan.behaviour.verbosity, cluster));
    if let Err(why) = files::check(&plan.streams) {
        return fail(&why).0;
    }
    let mut plan = plan;
    if let Err(Failed(code)) = creation::find_tasks(cluster, &mut plan).await {
        return code;
    }
    match around::Around::of(cluster, &plan.options) {
        Some(around) if !plan.behaviour.is_test => around.carry_out(cluster, plan).await,
        _ => carry_out_step(cluster, plan).await,
    }
}

async fn carry_out_step(cluster: &Client, plan: Plan) -> i32 {
    let is_one = plan.others.is_empty() && plan.group.unwrap_or(0) == 0;
    if !is_one && !plan.behaviour.is_test {
        return together::carry_out(cluster, plan).await;
    }
    let begun = match &plan.place {
        Place::Alone(spec) if plan.behaviour.is_test => return test(cluster, spec, &plan).await,
        Place::Inside(_) if plan.behaviour.is_test => Err(fail("--test-only is for jobs, not for steps")),
        Place::Alone(spec) => {
            match allocation::obtain(PROGRAM, cluster, std::slice::from_ref(spec), &plan.blobs, &plan.behaviour).await {
                Ok(granted) => first_step(granted).await,
                Err(failed) => Err(failed),
            }
        }
        Place::Inside(job) => creation::create(cluster, *job, &plan).await,
    };
    let (job, step, watch) = match begun {
        Ok(begun) => begun,
        Err(Failed(code)) => return code,
    };
    let waits = plan.behaviour.waits_for_data && matches!(plan.place, Place::Alone(_));
    let id = job.id;
    match Session::open(cluster, &plan, job, step.clone()).await {
        Ok(session) => {
            let code = session.carry(watch).await;
            let is_whole = !waits || crate::data_back::wait("srun", cluster, id).await;
            if is_whole { code } else { code.max(1) }
        }
        Err(why) => {
            withdraw(cluster, &step).await;
            fail(&why).0
        }
    }
}

/// The step that a job of its own is.
async fn first_step(granted: Granted) -> Result<(Job, Step, Watch), Failed> {
    let Granted { job, mut page, mut watch, .. } = granted;
    loop {
        if let Some(step) = page.steps.iter().find(|step| step.id == StepId::Number(0) && step.job == job.id) {
            let now = page.jobs.iter().find(|known| known.id == job.id).cloned();
            return Ok((now.unwrap_or(job), step.clone(), watch));
        }
        page = match watch.next().await {
            Ok(page) => page,
            Err(error) => return Err(fail(&format!("{}: {error}", PROGRAM.refusal()))),
        };
        if page.jobs.iter().all(Job::is_over) && page.steps.is_empty() {
            eprintln!("srun: Job has been cancelled");
            return Err(fail(&format!("{}: {}", PROGRAM.refusal(), model::Reject::AlreadyOver)));
        }
    }
}

async fn test(cluster: &Client, spec: &model::JobSpec, plan: &Plan) -> i32 {
    let other = |plan: &Plan| match &plan.place {
        Place::Alone(spec) => Some((**spec).clone()),
        Place::Inside(_) => None,
    };
    let specs: Vec<model::JobSpec> =
        std::iter::once(spec.clone()).chain(plan.others.iter().filter_map(other)).collect();
    let mut controller = match Controller::connect(&cluster.controller_socket).await {
        Ok(controller) => controller,
        Err(error) => return fail(&error.to_string()).0,
    };
    match controller.test_submit(&specs, &plan.blobs).await {
        Ok(submitted) => {
            submitted.told.lines().chain([submitted.text.as_str()]).for_each(|line| eprintln!("srun: {line}"));
            0
        }
        Err(error) => {
            allocation::site_says(PROGRAM, &error);
            eprintln!("allocation failure: {error}");
            error_code(1)
        }
    }
}

/// Ends a step that cannot be carried.
async fn withdraw(cluster: &Client, step: &Step) {
    if let Ok(mut controller) = Controller::connect(&cluster.controller_socket).await {
        let command = model::Command::CancelStep { job: step.job, step: step.id };
        // If it is over already, so much the better.
        let _ = controller.command(command).await;
    }
}

fn fail(text: &str) -> Failed {
    eprintln!("srun: error: {text}");
    Failed(error_code(1))
}
