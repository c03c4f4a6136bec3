//! Programs that srun itself runs before and after its step: `--prolog`, `--epilog`, SrunProlog, SrunEpilog.
use std::process::Stdio;

use config::Client;
use model::{Command, ExitStatus, Job, JobKind, JobSpec};
use wire::Controller;

use super::PROGRAM;
use super::plan::{Place, Plan};
use super::signals::{Heard, Signals};
use crate::allocation::{self, Failed, Granted};
use crate::salloc::{het_variables, variables};
use crate::submit::request::StepRequest;

/// What runs around the step; empty: nothing.
pub struct Around {
    prolog: String,
    epilog: String,
}

impl Around {
    /// What the arguments say goes before what the site says; `none` is nothing.
    pub fn of(cluster: &Client, options: &StepRequest) -> Option<Around> {
        let choose = |own: &Option<String>, site: &str| {
            let chosen = own.as_deref().unwrap_or(site);
            if chosen.eq_ignore_ascii_case("none") { String::new() } else { chosen.to_string() }
        };
        let prolog = choose(&options.srun_prolog, &cluster.srun_prolog);
        let epilog = choose(&options.srun_epilog, &cluster.srun_epilog);
        (!prolog.is_empty() || !epilog.is_empty()).then_some(Around { prolog, epilog })
    }

    /// Carries out the plan between the two programs. A job of its own is an allocation here, so that it has its nodes before
    /// the first, and keeps them until the second has ended.
    pub async fn carry_out(self, cluster: &Client, mut plan: Plan) -> i32 {
        let own = match move_in(cluster, &mut plan).await {
            Ok(own) => own,
            Err(Failed(code)) => return code,
        };
        let job = own.as_ref().map(|own| &own.job);
        let environment = match &own {
            None => Vec::new(),
            Some(own) if own.components.len() > 1 => het_variables(&own.components, &cluster.cluster_name),
            Some(own) => variables(&own.job, &own.job.spec, &cluster.cluster_name),
        };
        let arguments = plan.step.arguments.clone();
        let code = match run(&self.prolog, "prolog_srun", &arguments, &environment).await {
            Ended::Left => super::carry_out_step(cluster, plan).await,
            Ended::Interrupted => 1,
        };
        // What it says is its own business, as is how it ends.
        run(&self.epilog, "epilog_srun", &arguments, &environment).await;
        if let Some(job) = job {
            give_back(cluster, job, code).await;
        }
        code
    }
}

/// The allocation that the step runs in.
struct Own {
    job: Job,
    components: Vec<Job>,
}

/// Where the plan has no allocation to run in, obtains one; the plan then runs inside it.
async fn move_in(cluster: &Client, plan: &mut Plan) -> Result<Option<Own>, Failed> {
    let own = |plan: &Plan| match &plan.place {
        Place::Alone(spec) => Some(as_allocation(spec)),
        Place::Inside(_) => None,
    };
    let Some(first) = own(plan) else { return Ok(None) };
    let specs: Vec<JobSpec> = std::iter::once(first).chain(plan.others.iter().filter_map(own)).collect();
    let blobs: Vec<_> = plan.blobs.iter().chain(plan.others.iter().flat_map(|other| &other.blobs)).cloned().collect();
    let granted = allocation::obtain(PROGRAM, cluster, &specs, &blobs, &plan.behaviour).await?;
    let Granted { job, page, .. } = granted;
    let is_whole = !plan.others.is_empty();
    let limits = specs.into_iter().map(|spec| spec.limits);
    for (group, other) in (1..).zip(&mut plan.others) {
        (other.place, other.group) = (Place::Inside(job.id), Some(group));
    }
    (plan.place, plan.group) = (Place::Inside(job.id), is_whole.then_some(0));
    let steps = std::iter::once(&mut plan.step).chain(plan.others.iter_mut().map(|other| &mut other.step));
    steps.zip(limits).for_each(|(step, limits)| step.limits = limits);
    Ok(Some(Own { job, components: page.jobs }))
}

fn as_allocation(spec: &JobSpec) -> JobSpec {
    JobSpec { kind: JobKind::Allocation, ..spec.clone() }
}

enum Ended {
    /// By itself, whatever its exit code.
    Left,
    /// The user wants no more.
    Interrupted,
}

/// Runs one of them with the step's command line as its arguments, and waits for it.
async fn run(program: &str, context: &str, arguments: &[String], environment: &[(String, String)]) -> Ended {
    if program.is_empty() {
        return Ended::Left;
    }
    let mut signals = Signals::new();
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::inherit()).envs(environment.iter().cloned());
    command.env("SLURM_SCRIPT_CONTEXT", context).env("SPUR_SCRIPT_CONTEXT", context);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let why = match error.kind() {
                std::io::ErrorKind::NotFound => "No such file or directory".to_string(),
                std::io::ErrorKind::PermissionDenied => "Permission denied".to_string(),
                _ => error.to_string(),
            };
            eprintln!("srun: Access denied for {program}: {why}");
            return Ended::Left;
        }
    };
    let mut is_interrupted = false;
    loop {
        tokio::select! {
            biased;
            _ended = child.wait() => break,
            heard = signals.next() => match heard {
                // The terminal has told the program as well.
                Heard::Interrupt | Heard::End(libc::SIGQUIT) => is_interrupted = true,
                Heard::End(signal) => {
                    is_interrupted = true;
                    tell(&child, signal);
                }
                Heard::Forward(signal) => tell(&child, signal),
                Heard::Resized => {}
            },
        }
    }
    if is_interrupted { Ended::Interrupted } else { Ended::Left }
}

fn tell(child: &tokio::process::Child, signal: i32) {
    if let Some(pid) = child.id() {
        // SAFETY: a plain system call; the child is not reaped while its id is known.
        unsafe { libc::kill(pid as i32, signal) };
    }
}

async fn give_back(cluster: &Client, job: &Job, code: i32) {
    let exit = ExitStatus::exited(code.clamp(0, 255) as u8);
    let done = match Controller::connect(&cluster.controller_socket).await {
        Ok(mut controller) => controller.command(Command::Complete { job: job.id, exit }).await.map(drop),
        Err(error) => Err(error),
    };
    match done {
        Ok(()) | Err(wire::CallError::Refused(model::Reject::AlreadyOver | model::Reject::NoSuchJob)) => {}
        Err(error) => eprintln!("srun: error: Unable to clean up job allocation {}: {error}", job.id),
    }
}
