//! Which devices of its job a step asks for.
use model::gres::GresRequest;
use model::step::GpuBind;

use crate::submit::{Caller, Problem, Request};

#[derive(Debug, Default, PartialEq)]
pub struct StepGres {
    /// None: all that the job has.
    pub per_node: Option<Vec<GresRequest>>,
    pub per_task: Vec<GresRequest>,
    pub total: Vec<GresRequest>,
    pub bind: GpuBind,
}

/// `SLURM_STEP_GRES`: as `--gres`, for steps alone; `none` is none of the job's.
pub fn by_environment(caller: &Caller) -> Result<Option<Vec<GresRequest>>, Problem> {
    let list = caller.variable("SLURM_STEP_GRES").map(model::gres::parse_list);
    list.transpose().map_err(|_| Problem::error("Invalid generic resource (gres) specification"))
}

/// In a job of its own, the step has what the job asked for. In an allocation the variables name what the whole job has,
/// except for those of each task, which are the step's as well.
pub fn of_step(request: &Request) -> StepGres {
    let gpus = &request.gpus;
    let per_task = gpus.per_task.clone().unwrap_or_default();
    let count: u32 = per_task.iter().filter(|unit| unit.name == "gpu").map(|unit| unit.count).sum();
    let bind = match &request.step.gpu_bind {
        Some(bind) => bind.clone(),
        None => match gpus.n_tasks_each {
            Some(n_tasks_each) => GpuBind::Single(n_tasks_each),
            None if count > 0 => GpuBind::PerTask(count),
            None => GpuBind::All,
        },
    };
    if request.step.job.is_none() {
        return StepGres { bind, ..StepGres::default() };
    }
    let argued = |option: &str, units: &Option<Vec<GresRequest>>| units.clone().filter(|_| request.is_argument(option));
    let per_node = match (argued("gres", &gpus.gres), argued("gpus-per-node", &gpus.per_node)) {
        (None, None) => None,
        (some, more) => Some(some.into_iter().chain(more).flatten().collect()),
    };
    let total = argued("gpus", &gpus.per_job).unwrap_or_default();
    // With a total too, the total is what is held.
    let per_task = if total.is_empty() { per_task } else { Vec::new() };
    StepGres { per_node, per_task, total, bind }
}
