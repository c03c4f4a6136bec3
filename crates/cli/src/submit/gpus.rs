//! GPUs and other devices: what the options say of the whole job, of its nodes, sockets and tasks must be about the same ones.
use model::Reject;
use model::gres::GresRequest;
use model::spec::{Memory, Size, TresWords};
use model::step::AskedWords;

use super::request::{Gpus, Source};
use super::{Problem, Request};

/// Settles how many devices each node, each task, or the job in all is to have.
pub fn settle(size: &mut Size, request: &Request) -> Result<(), Problem> {
    let gpus = &request.gpus.of_some();
    let mut units: Vec<GresRequest> = gpus.gres.clone().unwrap_or_default();
    // What --gres says of the same devices counts.
    let is_said = |wanted: &GresRequest| {
        let said = gpus.gres.iter().flatten();
        said.into_iter().any(|unit| (&unit.name, &unit.kind) == (&wanted.name, &wanted.kind))
    };
    units.extend(gpus.per_node.iter().flatten().filter(|unit| !is_said(unit)).cloned());
    if let Some(n_tasks_each) = gpus.n_tasks_each {
        check_tasks_are_said_once(request)?;
        settle_tasks_per_gpu(size, gpus, n_tasks_each, &mut units)?;
    }
    let said = Said::of(gpus, &units);
    said.check_order()?;
    if request.is_given("cpus-per-gpu") && request.is_given("cpus-per-task") {
        return Err(invalid("--cpus-per-gpu is mutually exclusive with --cpus-per-task"));
    }
    if let Some(per_socket) = &gpus.per_socket {
        settle_sockets(size, said, per_socket, &mut units)?;
    }
    said.check_nodes(size)?;
    if gpus.per_task.is_some() {
        said.check_tasks(size, request.is_given("nodes"))?;
    }
    // Those of the nodes are the tasks' as well; a job's total is shared by its tasks.
    match (&gpus.per_job, &gpus.per_task, said.per_node) {
        (_, Some(per_task), None) => size.gres_per_task = per_task.clone(),
        (Some(per_job), None, None) => share(size, per_job, &mut units)?,
        _ => (),
    }
    size.gres = units;
    let all = size.gres.iter().chain(&size.gres_per_task).chain(&size.gres_total);
    let has_gpus = all.into_iter().any(|unit| unit.name == "gpu");
    match size.memory {
        Memory::PerGpuMb(megabytes) if !has_gpus => {
            Err(invalid(&format!("Requested mem_per_tres=gres:gpu:{megabytes} but did not request any GPU.")))
        }
        _ => Ok(()),
    }
}

/// As they were asked for, where that is not only on each node, and in one way.
pub fn words(request: &Request) -> TresWords {
    let gpus = &request.gpus;
    let is_said_twice = gpus.gres.is_some() && gpus.per_node.is_some();
    if gpus.per_job.is_none() && gpus.per_socket.is_none() && gpus.per_task.is_none() && !is_said_twice {
        return TresWords::default();
    }
    let words = |lists: &[&Option<Vec<GresRequest>>]| {
        let units = lists.iter().filter_map(|list| list.as_ref()).flatten();
        units.map(|unit| format!("gres:{unit}")).collect::<Vec<_>>().join(",")
    };
    TresWords {
        per_job: words(&[&gpus.per_job]),
        per_node: words(&[&gpus.per_node, &gpus.gres]),
        per_socket: words(&[&gpus.per_socket]),
        per_task: words(&[&gpus.per_task]),
        ..TresWords::default()
    }
}

/// The same of a step, with what each GPU brings along.
pub fn step_words(request: &Request, size: &Size) -> AskedWords {
    let (gpus, of_gpu) = (&request.gpus, |text: &String| match text.is_empty() {
        true => String::new(),
        false => format!("gpu:{text}"),
    });
    let is_gpu_step = gpus.per_job.is_some() || gpus.per_socket.is_some() || gpus.per_task.is_some();
    let asked = if is_gpu_step {
        words(request)
    } else {
        let units = gpus.gres.iter().chain(&gpus.per_node).flatten();
        let per_node = units.map(|unit| format!("gres:{unit}")).collect::<Vec<_>>().join(",");
        TresWords { per_node, ..TresWords::default() }
    };
    // Where tasks and CPUs of each are known, the total names them too.
    let per_task = gpus.per_task.as_deref().map(count).unwrap_or(0);
    let cpus = size.cpus_per_gpu.zip(size.n_tasks).map(|(cpus, n_tasks)| cpus * per_task * n_tasks);
    let per_step = match cpus.filter(|cpus| *cpus > 0 && !asked.per_job.is_empty()) {
        Some(cpus) => format!("cpu:{cpus},{}", asked.per_job),
        None => asked.per_job,
    };
    AskedWords {
        cpus_per_tres: size.cpus_per_gpu.map_or_else(String::new, |cpus| format!("gres:gpu:{cpus}")),
        mem_per_tres: match size.memory {
            Memory::PerGpuMb(megabytes) => format!("gres:gpu:{megabytes}"),
            _ => String::new(),
        },
        bind: of_gpu(&request.spec.gpu_bind_words),
        freq: of_gpu(&request.spec.gpu_freq_words),
        per_step,
        per_node: asked.per_node,
        per_socket: asked.per_socket,
        per_task: asked.per_task,
    }
}

/// A job's total is divided where its nodes are counted and it divides evenly; else the scheduler shares it out.
fn share(size: &mut Size, per_job: &[GresRequest], units: &mut Vec<GresRequest>) -> Result<(), Problem> {
    let total = count(per_job);
    if total < size.min_nodes {
        return Err(invalid("Failed to validate job spec, --gpus < -N"));
    }
    if total == 1 {
        size.max_nodes = Some(1);
    }
    let n_nodes = size.max_nodes.filter(|max| *max == size.min_nodes.max(1));
    match n_nodes.filter(|n_nodes| per_job.iter().all(|unit| unit.count.is_multiple_of(*n_nodes))) {
        Some(n_nodes) => {
            units.extend(per_job.iter().map(|unit| GresRequest { count: unit.count / n_nodes, ..unit.clone() }));
        }
        None => size.gres_total = per_job.to_vec(),
    }
    Ok(())
}

/// How many GPUs the options name.
#[derive(Clone, Copy)]
struct Said {
    per_job: Option<u32>,
    per_node: Option<u32>,
    per_socket: Option<u32>,
    per_task: Option<u32>,
}

impl Said {
    fn of(gpus: &Gpus, on_nodes: &[GresRequest]) -> Said {
        Said {
            per_job: gpus.per_job.as_deref().map(count),
            per_node: Some(count(on_nodes)).filter(|count| *count > 0),
            per_socket: gpus.per_socket.as_deref().map(count),
            per_task: gpus.per_task.as_deref().map(count),
        }
    }

    /// No part has more than the whole.
    fn check_order(self) -> Result<(), Problem> {
        let is_more =
            |part: Option<u32>, whole: Option<u32>| matches!((part, whole), (Some(part), Some(whole)) if part > whole);
        let Said { per_job, per_node, per_socket, per_task } = self;
        if is_more(per_node, per_job) || is_more(per_socket, per_job) || is_more(per_socket, per_node) {
            return Err(invalid("Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket"));
        }
        if is_more(per_task, per_job) {
            return Err(invalid("Failed to ensure --gpus >= --gpus-per-task"));
        }
        Ok(())
    }

    /// What the job has and what its nodes have tell how many nodes there are.
    fn check_nodes(self, size: &mut Size) -> Result<(), Problem> {
        let (Some(total), Some(each)) = (self.per_job, self.per_node) else { return Ok(()) };
        let Some(n_nodes) = quotient(total, each) else {
            return Err(invalid("Failed to validate job spec, --gpus is not multiple of --gres=gpu/--gpus-per-node"));
        };
        let (min, max) = (size.min_nodes.max(1), size.max_nodes.unwrap_or(u32::MAX - 1));
        if !(min..=max).contains(&n_nodes) {
            return Err(invalid(&format!(
                "Failed to validate job spec. Based on --gpu and --gres=gpu/--gpus-per-node required nodes ({n_nodes}) \
                 doesn't fall between min_nodes ({min}) and max_nodes ({max}) boundaries."
            )));
        }
        (size.min_nodes, size.max_nodes) = (n_nodes, Some(n_nodes));
        Ok(())
    }

    /// The same of tasks, and of the tasks of each node.
    fn check_tasks(self, size: &mut Size, has_nodes: bool) -> Result<(), Problem> {
        let Some(each) = self.per_task else { return Ok(()) };
        match (self.per_job, size.n_tasks, size.tasks_per_node) {
            (Some(total), n_tasks, _) => {
                let Some(wanted) = quotient(total, each) else {
                    return Err(invalid("Failed to validate job spec, --gpus not multiple of --gpus-per-task"));
                };
                if n_tasks.is_some_and(|n_tasks| n_tasks != wanted) {
                    return Err(invalid(
                        "Failed to validate job spec. Based on --gpus and --gpus-per-task number of requested tasks differ from -n/--ntasks.",
                    ));
                }
                size.n_tasks = Some(wanted);
            }
            // Where only nodes are counted, each has one task.
            (None, None, None) if self.per_node.is_none() && !has_nodes => {
                return Err(invalid(
                    "Failed to validate job spec. --gpus-per-task used without either --gpus or -n/--ntasks is not allowed.",
                ));
            }
            (None, ..) => (),
        }
        let Some(on_node) = self.per_node else { return Ok(()) };
        let Some(wanted) = quotient(on_node, each) else {
            return Err(invalid(
                "Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of --gpus-per-task.",
            ));
        };
        if size.tasks_per_node.is_some_and(|tasks| tasks != wanted) {
            return Err(invalid(
                "Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-task requested number of tasks per node differ from --ntasks-per-node.",
            ));
        }
        size.tasks_per_node = Some(wanted);
        Ok(())
    }
}

/// `--gpus-per-socket`: with the number of sockets, so many a node.
fn settle_sockets(
    size: &mut Size,
    said: Said,
    per_socket: &[GresRequest],
    units: &mut Vec<GresRequest>,
) -> Result<(), Problem> {
    let Some(sockets) = size.sockets_per_node else {
        return Err(invalid("--gpus-per-socket option requires --sockets-per-node specification"));
    };
    let Some(on_node) = said.per_node else {
        units.extend(per_socket.iter().map(|unit| GresRequest { count: unit.count * sockets, ..unit.clone() }));
        return Ok(());
    };
    let Some(wanted) = quotient(on_node, count(per_socket)) else {
        return Err(invalid(
            "Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of --gpus-per-socket.",
        ));
    };
    match wanted == sockets {
        true => Ok(()),
        false => Err(invalid(
            "Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-socket required number of sockets differ from --sockets-per-node.",
        )),
    }
}

/// How often it goes, if it goes evenly.
fn quotient(whole: u32, part: u32) -> Option<u32> {
    (part > 0 && whole.is_multiple_of(part)).then(|| whole / part)
}

fn count(units: &[GresRequest]) -> u32 {
    units.iter().filter(|unit| unit.name == "gpu").map(|unit| unit.count).sum()
}

/// Whoever counts the tasks of a GPU leaves those of nodes, and the GPUs of tasks and sockets, uncounted.
fn check_tasks_are_said_once(request: &Request) -> Result<(), Problem> {
    for name in ["ntasks-per-node", "gpus-per-task", "gpus-per-socket"] {
        let Some(given) = request.given.get(name) else { continue };
        let said = match given.source {
            Source::Environment => format!("SLURM_{}", name.replace('-', "_").to_uppercase()),
            Source::Script | Source::Arguments => format!("--{name}"),
        };
        return Err(Problem::fatal(format!(
            "{said} is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU"
        )));
    }
    Ok(())
}

/// `--ntasks-per-gpu`: from GPUs to tasks, or from tasks to GPUs.
fn settle_tasks_per_gpu(
    size: &mut Size,
    gpus: &Gpus,
    n_tasks_each: u32,
    units: &mut Vec<GresRequest>,
) -> Result<(), Problem> {
    let too_many = || Problem::refused(Reject::NeverFits);
    if let Some(per_job) = &gpus.per_job {
        size.n_tasks = Some(count(per_job).checked_mul(n_tasks_each).ok_or_else(too_many)?);
        return Ok(());
    }
    if count(units) > 0 {
        size.tasks_per_node = Some(count(units).checked_mul(n_tasks_each).ok_or_else(too_many)?);
        return Ok(());
    }
    let gpu = |count| GresRequest { name: "gpu".to_string(), count, ..GresRequest::default() };
    match (size.n_tasks, size.tasks_per_node) {
        (_, Some(per_node)) => units.push(gpu(per_node.div_ceil(n_tasks_each))),
        (Some(n_tasks), None) => {
            let Some(total) = quotient(n_tasks, n_tasks_each) else {
                return Err(invalid(
                    "Failed to validate job spec, -n/--ntasks has to be a multiple of --ntasks-per-gpu.",
                ));
            };
            share(size, &[gpu(total)], units)?;
        }
        (None, None) => {
            return Err(invalid(
                "gres_job_state_validate: --ntasks-per-tres needs either a GRES GPU specification or a node/ntask specification",
            ));
        }
    }
    Ok(())
}

fn invalid(why: &str) -> Problem {
    let mut problem = Problem::error(why);
    problem.lines.push(super::problem::Line::Error("Invalid generic resource (gres) specification".to_string()));
    problem
}
