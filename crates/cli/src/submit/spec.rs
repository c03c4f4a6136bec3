//! From the gathered request to what is sent: defaults, checks that need several options at once, the environment.
use model::gres::GresRequest;
use model::spec::Size;
use model::{JobSpec, Reject};

use super::{Caller, Problem, Program, Request, limits};

/// A finished job request, and what to tell the user about it on the way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finished {
    pub spec: JobSpec,
    pub warnings: Vec<String>,
}

/// Fills in what the caller's own process says and settles what several options say together.
pub fn finish(program: Program, request: &Request, caller: &Caller) -> Result<Finished, Problem> {
    let mut spec = request.spec.clone();
    let mut warnings = Vec::new();
    settle_nodes(program, &mut spec.size, &mut warnings)?;
    settle_gres(&mut spec.size, request)?;
    spec.uid = caller.uid;
    spec.gid = caller.gid;
    // The controller knows the name by the kernel's word on who asks.
    spec.user = caller.account.get().map(|account| account.name.clone()).unwrap_or_default();
    spec.submit_host = caller.host.clone();
    if spec.work_dir.is_empty() {
        spec.work_dir = caller.work_dir.clone();
    }
    spec.limits = limits::chosen(&caller.limits, request.propagate.as_deref());
    spec.umask = Some(umask(caller));
    Ok(Finished { spec, warnings })
}

/// `SLURM_UMASK` overrides what the process has.
fn umask(caller: &Caller) -> u32 {
    let asked = caller.variable("SLURM_UMASK").and_then(|text| u32::from_str_radix(text, 8).ok());
    asked.filter(|mask| *mask <= 0o777).unwrap_or(caller.umask)
}

fn settle_nodes(program: Program, size: &mut Size, warnings: &mut Vec<String>) -> Result<(), Problem> {
    let n_listed = size.nodes.len() as u32;
    if n_listed > size.min_nodes {
        if let Some(max) = size.max_nodes.filter(|max| *max < n_listed) {
            return Err(Problem::error(format!("invalid number of nodes (-N {n_listed}-{max})")));
        }
        size.min_nodes = n_listed;
    }
    size.min_nodes = size.min_nodes.max(1);
    if let (Some(n_tasks), Some(max)) = (size.n_tasks, size.max_nodes)
        && n_tasks < size.min_nodes
        && program != Program::Salloc
    {
        let asked = size.min_nodes;
        warnings.push(format!("Warning: can't run {n_tasks} processes on {asked} nodes, setting nnodes to {n_tasks}"));
        size.min_nodes = n_tasks;
        size.max_nodes = Some(max.min(n_tasks));
    }
    Ok(())
}

/// A node's share is what can be asked for; a job's total is divided when it divides evenly.
fn settle_gres(size: &mut Size, request: &Request) -> Result<(), Problem> {
    let gpus = &request.gpus;
    let mut units: Vec<GresRequest> = gpus.gres.clone().unwrap_or_default();
    units.extend(gpus.per_node.clone().unwrap_or_default());
    if let Some(per_job) = &gpus.per_job {
        let n_nodes = match size.max_nodes {
            None if size.min_nodes == 1 => {
                size.max_nodes = Some(1);
                1
            }
            Some(max) if max == size.min_nodes => max,
            _ => return Err(uneven("gpus")),
        };
        for unit in per_job {
            if !unit.count.is_multiple_of(n_nodes) {
                return Err(uneven("gpus"));
            }
            units.push(GresRequest { count: unit.count / n_nodes, ..unit.clone() });
        }
    }
    if let Some(per_task) = &gpus.per_task {
        let n_tasks = match (size.tasks_per_node, size.n_tasks, size.max_nodes) {
            (Some(tasks), ..) => tasks,
            (None, Some(tasks), Some(1)) => tasks,
            (None, Some(tasks), None) if size.min_nodes == 1 => {
                size.max_nodes = Some(1);
                tasks
            }
            (None, Some(tasks), Some(max)) if max == size.min_nodes && tasks.is_multiple_of(max) => tasks / max,
            (None, None, _) => return Err(tasks_unknown()),
            _ => return Err(uneven("gpus-per-task")),
        };
        for unit in per_task {
            let count = unit.count.checked_mul(n_tasks).ok_or_else(|| Problem::refused(Reject::NeverFits))?;
            units.push(GresRequest { count, ..unit.clone() });
        }
    }
    size.gres = units;
    Ok(())
}

fn uneven(option: &str) -> Problem {
    Problem::error(format!(
        "--{option} is not supported by this version of Spur where nodes would get different counts; use --gpus-per-node"
    ))
}

fn tasks_unknown() -> Problem {
    let mut problem = Problem::error(
        "Failed to validate job spec. --gpus-per-task used without either --gpus or -n/--ntasks is not allowed.",
    );
    problem.lines.push(super::problem::Line::Error("Invalid generic resource (gres) specification".to_string()));
    problem
}
