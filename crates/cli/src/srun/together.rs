//! A step in several parts: each component of a heterogeneous job has its own, and srun carries them all.
use config::Client;
use model::request::{JobFilter, JobsPage};
use model::{Job, JobId, JobSpec, NodeName, Reject, Step, StepId, StepSpec};
use tokio::time::{Instant, sleep_until};
use wire::{CallError, Controller};

use super::plan::{Place, Plan};
use super::session::{Part, Session};
use super::{PROGRAM, apart, creation, fail};
use crate::allocation::{self, Failed, Granted};
use crate::watch::Watch;

/// Gives the highest exit code of the parts.
pub async fn carry_out(cluster: &Client, plan: Plan) -> i32 {
    let plans: Vec<&Plan> = std::iter::once(&plan).chain(&plan.others).collect();
    let begun = match &plan.place {
        Place::Alone(_) => obtain(cluster, &plans).await,
        Place::Inside(_) => create(cluster, &plans).await,
    };
    let begun = match begun {
        Ok(begun) => begun,
        Err(Failed(code)) => return code,
    };
    let n_tasks: u32 = begun.iter().map(|(_, step)| step.n_tasks).sum();
    let mut first_rank = 0;
    let mut sessions = Vec::new();
    for (index, (plan, (job, step))) in plans.iter().zip(begun).enumerate() {
        let part = Part { first_rank, n_tasks, leads: index == 0 };
        first_rank += step.n_tasks;
        let watch = watch(cluster, job.id, None);
        match Session::open_part(cluster, plan, job, step.clone(), part).await {
            Ok(session) => sessions.push(session.carry(watch)),
            Err(why) => {
                super::withdraw(cluster, &step).await;
                return fail(&why).0;
            }
        }
    }
    futures::future::join_all(sessions).await.into_iter().max().unwrap_or(0)
}

/// A job of its own: the components start together, each with its step.
async fn obtain(cluster: &Client, plans: &[&Plan]) -> Result<Vec<(Job, Step)>, Failed> {
    let spec = |plan: &&Plan| match &plan.place {
        Place::Alone(spec) => Some((**spec).clone()),
        Place::Inside(_) => None,
    };
    let specs: Vec<JobSpec> = plans.iter().filter_map(spec).collect();
    if specs.len() != plans.len() {
        return Err(fail("--jobid must hold for all components or for none"));
    }
    let blobs: Vec<_> = plans.iter().flat_map(|plan| plan.blobs.clone()).collect();
    let granted = allocation::obtain(PROGRAM, cluster, &specs, &blobs, &plans[0].behaviour).await?;
    let Granted { mut page, mut watch, .. } = granted;
    loop {
        let begun: Vec<(Job, Step)> =
            page.jobs.iter().filter_map(|job| step_of(&page, job.id, StepId::Number(0))).collect();
        if begun.len() == plans.len() {
            return Ok(begun);
        }
        page = watch.next().await.map_err(|error| fail(&format!("{}: {error}", PROGRAM.refusal())))?;
        if page.jobs.iter().all(Job::is_over) && page.steps.is_empty() {
            eprintln!("srun: Job has been cancelled");
            return Err(fail(&format!("{}: {}", PROGRAM.refusal(), Reject::AlreadyOver)));
        }
    }
}

fn step_of(page: &JobsPage, job: JobId, step: StepId) -> Option<(Job, Step)> {
    let job = page.jobs.iter().find(|known| known.id == job)?;
    let step = page.steps.iter().find(|known| known.job == job.id && known.id == step)?;
    Some((job.clone(), step.clone()))
}

/// In an allocation: all parts are created at once, or none.
async fn create(cluster: &Client, plans: &[&Plan]) -> Result<Vec<(Job, Step)>, Failed> {
    let named = match &plans[0].place {
        Place::Inside(job) => *job,
        Place::Alone(_) => return Err(fail("--jobid must hold for all components or for none")),
    };
    let refused = |error: &CallError| creation::refused(named, error);
    let mut controller = Controller::connect(&cluster.controller_socket).await.map_err(|error| refused(&error))?;
    let parts = resolve(&mut controller, plans).await?;
    let mut watch = watch(cluster, named, Some(controller.clone()));
    let blobs: Vec<_> = plans.iter().flat_map(|plan| plan.blobs.clone()).collect();
    let behaviour = &plans[0].behaviour;
    let give_up = Instant::now() + behaviour.immediate.unwrap_or(creation::DISTANT);
    let mut has_waited = false;
    let created = loop {
        let refusal = match controller.create_step_together(parts.clone(), blobs.clone()).await {
            Ok(created) => break created,
            Err(CallError::Refused(why @ (Reject::StepMustWait | Reject::StepsDisabled | Reject::PortsInUse))) => {
                if !has_waited && behaviour.immediate.is_none() && !behaviour.is_quiet {
                    eprintln!("srun: Job {named} step creation temporarily disabled, retrying ({why})");
                }
                has_waited = true;
                why
            }
            Err(error) => return Err(refused(&error)),
        };
        tokio::select! {
            page = watch.next() => {
                page.map_err(|error| refused(&error))?;
            }
            () = sleep_until(give_up) => return Err(refused(&CallError::Refused(refusal))),
        }
    };
    let filter = JobFilter {
        jobs: created.iter().map(|part| part.job.into()).collect(),
        with_finished: true,
        with_steps: true,
        ..JobFilter::default()
    };
    let page = controller.all_jobs(&filter).await.map_err(|error| refused(&error))?;
    let begun = created.iter().map(|part| step_of(&page, part.job, part.step)).collect::<Option<Vec<_>>>();
    begun.ok_or_else(|| refused(&CallError::Refused(Reject::AlreadyOver)))
}

/// The job of each part: the component that it names, or the job itself where it has none.
async fn resolve(controller: &mut Controller, plans: &[&Plan]) -> Result<Vec<(JobId, StepSpec)>, Failed> {
    let mut parts = Vec::new();
    let mut plain: Option<Vec<NodeName>> = None;
    let highest = plans.iter().filter_map(|plan| plan.group).max().unwrap_or(0);
    for plan in plans {
        let Place::Inside(job) = &plan.place else {
            return Err(fail("--jobid must hold for all components or for none"));
        };
        let filter = JobFilter { jobs: vec![(*job).into()], ..JobFilter::default() };
        let page = controller.all_jobs(&filter).await.map_err(|error| creation::refused(*job, &error))?;
        let record = page.jobs.iter().find(|known| known.id == *job);
        let place = record.and_then(|record| record.het.as_ref());
        let id = match (place, plan.group) {
            (Some(het), Some(group)) if het.is_leader() => match het.ids.get(group as usize) {
                Some(id) => *id,
                None if plans.len() > 1 => {
                    let most = het.ids.len().saturating_sub(1);
                    return Err(fail(&format!(
                        "Attempt to run a job step with het group value of {highest}, but the job allocation has maximum value of {most}"
                    )));
                }
                None => return Err(too_high(group, het.ids.len() as u32)),
            },
            (None, Some(group)) if group > 0 => return Err(too_high(group, 1)),
            _ => *job,
        };
        let mut step = plan.step.clone();
        // In a plain allocation no part is as wide as the whole job unless it says so.
        if place.is_none() && plans.len() > 1 && !plan.has_own_size {
            let n_nodes = (step.nodes.len() as u32).max(1);
            (step.n_tasks, step.tasks_per_node) = (Some(n_nodes), None);
            (step.min_nodes, step.max_nodes) = (n_nodes, Some(n_nodes));
        }
        if place.is_none() {
            plain = record.map(|record| record.allocation.nodes.iter().map(|share| share.node.clone()).collect());
        }
        parts.push((id, step));
    }
    let is_one_job = parts.windows(2).all(|pair| pair[0].0 == pair[1].0);
    if let Some(nodes) = plain.filter(|_| is_one_job && parts.len() > 1) {
        let (jobs, mut steps): (Vec<JobId>, Vec<StepSpec>) = parts.into_iter().unzip();
        apart::keep(&nodes, &mut steps).map_err(|why| fail(&why))?;
        parts = jobs.into_iter().zip(steps).collect();
    }
    Ok(parts)
}

fn too_high(group: u32, size: u32) -> Failed {
    let highest = size.saturating_sub(1);
    fail(&format!("Requested het-group offset exceeds highest hetjob index ({group} > {highest})"))
}

fn watch(cluster: &Client, job: JobId, controller: Option<Controller>) -> Watch {
    let filter = JobFilter { jobs: vec![job.into()], with_finished: true, with_steps: true, ..JobFilter::default() };
    Watch::new(cluster, filter, controller)
}
