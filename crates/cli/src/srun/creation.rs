//! A new step in an existing allocation: asked for, and asked for again while others hold what it needs.
use std::time::Duration;

use config::Client;
use model::request::JobFilter;
use model::{Job, JobId, JobRef, Reject, Step, StepId, StepSpec};
use tokio::time::{Instant, sleep_until};
use wire::{CallError, Controller};

use super::fail;
use super::plan::{Place, Plan};
use crate::allocation::Failed;
use crate::watch::Watch;

/// Without `--immediate` the step waits as long as its job lives.
pub(super) const DISTANT: Duration = Duration::from_secs(86_400 * 365);

/// `--jobid=7_3`: the plan's job, and those of its other parts, are the task's own.
pub async fn find_tasks(cluster: &Client, plan: &mut Plan) -> Result<(), Failed> {
    find_task(cluster, plan).await?;
    for other in &mut plan.others {
        find_task(cluster, other).await?;
    }
    Ok(())
}

async fn find_task(cluster: &Client, plan: &mut Plan) -> Result<(), Failed> {
    let (Place::Inside(array), Some(task)) = (&mut plan.place, plan.options.task) else { return Ok(()) };
    let asked = JobRef::task(*array, task);
    let filter = JobFilter { jobs: vec![asked.clone()], ..JobFilter::default() };
    let found = match Controller::connect(&cluster.controller_socket).await {
        Ok(mut controller) => controller.all_jobs(&filter).await,
        Err(error) => return Err(fail(&format!("Unable to create step for job {asked}: {error}"))),
    };
    let page = found.map_err(|error| fail(&format!("Unable to create step for job {asked}: {error}")))?;
    match page.jobs.iter().find(|job| job.holds_nodes()) {
        Some(job) => *array = job.id,
        None => {
            let why = if page.jobs.is_empty() { Reject::NoSuchJob } else { Reject::JobPending };
            return Err(unconfirmed(&asked, &CallError::Refused(why)));
        }
    }
    Ok(())
}

/// Creates the step and waits until its place is known.
pub async fn create(cluster: &Client, id: JobId, plan: &Plan) -> Result<(Job, Step, Watch), Failed> {
    let mut controller = match Controller::connect(&cluster.controller_socket).await {
        Ok(controller) => controller,
        Err(error) => return Err(fail(&format!("Unable to create step for job {id}: {error}"))),
    };
    let filter = JobFilter { jobs: vec![id.into()], with_finished: true, ..JobFilter::default() };
    let mut watch = Watch::new(cluster, filter, Some(controller.clone()));
    let mut spec = plan.step.clone();
    if let Some(first) = plan.options.relative {
        restrict(&mut spec, id, (first, plan.options.counts_nodes), &mut watch).await?;
    }
    let step = wait_for_room(&mut controller, &mut watch, id, spec, plan).await?;
    watch.narrow(step);
    loop {
        let page = watch.next().await.map_err(|error| refused(id, &error))?;
        let job = page.jobs.into_iter().find(|job| job.id == id);
        let found = page.steps.into_iter().find(|known| known.id == step && known.job == id);
        match (job, found) {
            (Some(job), Some(found)) => return Ok((job, found, watch)),
            (None, _) => return Err(refused(id, &CallError::Refused(Reject::AlreadyOver))),
            (Some(_), None) => {}
        }
    }
}

/// `-r`: only nodes from the n-th of the allocation on.
async fn restrict(
    spec: &mut StepSpec,
    id: JobId,
    (first, is_counted): (u32, bool),
    watch: &mut Watch,
) -> Result<(), Failed> {
    let page = watch.next().await.map_err(|error| refused(id, &error))?;
    let job = page.jobs.iter().find(|job| job.id == id);
    let Some(job) = job else { return Err(refused(id, &CallError::Refused(Reject::NoSuchJob))) };
    let n_nodes = job.allocation.nodes.len() as u32;
    // The count that the job's own environment gives is that of the whole job.
    let wanted = if is_counted { spec.min_nodes } else { spec.min_nodes.min(n_nodes.saturating_sub(first)).max(1) };
    if first.saturating_add(wanted) > n_nodes {
        return Err(fail(&format!(
            "--relative and --nodes option incompatible with count of allocated nodes ({first}+{wanted}>{n_nodes})"
        )));
    }
    spec.nodes = job.allocation.names().skip(first as usize).cloned().collect();
    spec.min_nodes = wanted;
    Ok(())
}

async fn wait_for_room(
    controller: &mut Controller,
    watch: &mut Watch,
    id: JobId,
    spec: StepSpec,
    plan: &Plan,
) -> Result<StepId, Failed> {
    let give_up = Instant::now() + plan.behaviour.immediate.unwrap_or(DISTANT);
    let mut has_waited = false;
    loop {
        let refusal = match controller.create_step(id, spec.clone(), plan.blobs.clone()).await {
            Ok(step) => {
                if has_waited && !plan.behaviour.is_quiet {
                    eprintln!("srun: Step created for job {id}");
                }
                return Ok(step);
            }
            Err(CallError::Refused(why @ (Reject::StepMustWait | Reject::StepsDisabled | Reject::PortsInUse))) => {
                if !has_waited && plan.behaviour.immediate.is_none() && !plan.behaviour.is_quiet {
                    eprintln!("srun: Job {id} step creation temporarily disabled, retrying ({why})");
                }
                if !has_waited {
                    watch.for_room(&spec);
                }
                has_waited = true;
                why
            }
            Err(CallError::Refused(Reject::StepTooLarge)) => return Err(too_large(controller, id, &spec).await),
            Err(error) => return Err(refused(id, &error)),
        };
        tokio::select! {
            page = watch.next() => {
                page.map_err(|error| refused(id, &error))?;
            }
            () = sleep_until(give_up) => {
                return Err(fail(&format!("Unable to create step for job {id}: {refusal}")));
            }
        }
    }
}

/// Says which of the allocation's bounds was met.
async fn too_large(controller: &mut Controller, id: JobId, spec: &StepSpec) -> Failed {
    let filter = JobFilter { jobs: vec![id.into()], ..JobFilter::default() };
    let jobs = controller.all_jobs(&filter).await.map(|page| page.jobs).unwrap_or_default();
    if let Some(job) = jobs.first() {
        let n_nodes = job.allocation.nodes.len() as u32;
        if spec.min_nodes > n_nodes {
            return fail(&format!("Only allocated {n_nodes} nodes asked for {}", spec.min_nodes));
        }
        let n_cpus = spec.n_tasks.unwrap_or(spec.min_nodes).saturating_mul(spec.cpus_per_task.unwrap_or(1));
        let mut sizes: Vec<u32> = job.allocation.nodes.iter().map(|share| share.cpus.len()).collect();
        sizes.sort_unstable_by(|left, right| right.cmp(left));
        let most = spec.max_nodes.unwrap_or(n_nodes).min(n_nodes) as usize;
        if n_cpus > sizes[..most].iter().sum() {
            return fail(&format!("Unable to create step for job {id}: More processors requested than permitted"));
        }
    }
    fail(&format!("Unable to create step for job {id}: {}", Reject::StepTooLarge))
}

fn unconfirmed(id: &dyn std::fmt::Display, error: &CallError) -> Failed {
    eprintln!("srun: error: Unable to confirm allocation for job {id}: {error}");
    eprintln!("srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {id}");
    Failed(crate::sbatch::error_code(1))
}

pub(super) fn refused(id: JobId, error: &CallError) -> Failed {
    match error {
        CallError::Refused(Reject::NoSuchJob | Reject::AlreadyOver | Reject::JobPending) => unconfirmed(&id, error),
        CallError::Refused(Reject::NoSuchNode(_)) => {
            let why = Reject::NeverFits;
            fail(&format!("Unable to create step for job {id}: {why}"))
        }
        _ => fail(&format!("Unable to create step for job {id}: {error}")),
    }
}
