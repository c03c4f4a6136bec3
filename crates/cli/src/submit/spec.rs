//! From the gathered request to what is sent: defaults, checks that need several options at once, the environment.
use model::gres::GresRequest;
use model::spec::{Memory, Size};
use model::{JobSpec, Reject};

use super::request::{Given, Gpus, Source};
use super::{Caller, Problem, Program, Request, limits};

/// A finished job request, and what to tell the user about it on the way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finished {
    pub spec: JobSpec,
    pub warnings: Vec<String>,
}

/// Fills in what the caller's own process says and settles what several options say together.
pub fn finish(program: Program, request: &Request, caller: &Caller) -> Result<Finished, Problem> {
    if request.is_given("bb") && request.is_given("bbf") {
        let option = if program == Program::Salloc { "--bb" } else { "--burst-buffer" };
        return Err(Problem::error(format!("Cannot specify both {option} and --bbf")));
    }
    let mut spec = request.spec.clone();
    if let (Some(begin), Some(deadline)) = (spec.begin, spec.deadline)
        && deadline < begin
    {
        return Err(Problem::error("Incompatible begin and deadline time specification"));
    }
    let mut warnings = Vec::new();
    special_resources(request, &mut warnings)?;
    settle_hint(request, &mut spec.size, &mut warnings);
    if request.step.is_arbitrary {
        // The list names a node for each task, and may name one several times.
        let mut seen = std::collections::BTreeSet::new();
        spec.size.nodes.retain(|name| seen.insert(name.clone()));
    }
    settle_nodes(program, &mut spec.size, &mut warnings)?;
    settle_sockets(&mut spec.size);
    super::set_network::settle(program, &mut spec.size, caller)?;
    // Inside a job the variables name what the whole job has.
    if request.step.job.is_none() {
        settle_gres(&mut spec.size, request)?;
    }
    // The controller knows the name by the kernel's word on who asks.
    let (uid, gid, user) = match &request.user {
        Some(user) => (user.uid, user.gid, user.name.clone()),
        None => (caller.uid, caller.gid, caller.account.get().map(|own| own.name.clone()).unwrap_or_default()),
    };
    (spec.uid, spec.gid, spec.user) = (uid, request.group.unwrap_or(gid), user);
    spec.submit_host = caller.host.clone();
    spec.submit_line = caller.command_line.clone();
    if spec.work_dir.is_empty() {
        spec.work_dir = caller.work_dir.clone();
    }
    spec.limits = limits::chosen(&caller.limits, request.propagate.as_deref());
    spec.umask = Some(umask(caller));
    Ok(Finished { spec, warnings })
}

/// What Slurm says where AllowSpecResourcesUsage is No, as it always is here.
fn special_resources(request: &Request, warnings: &mut Vec<String>) -> Result<(), Problem> {
    let source = |name: &str| request.given.get(name).map(|given| given.source);
    match (source("core-spec"), source("thread-spec")) {
        (Some(Source::Environment), Some(Source::Environment)) => Err(Problem::fatal(
            "Both --core-spec and --thread-spec set using environment variables. Those options are mutually exclusive.",
        )),
        (Some(cores), Some(threads)) if cores == threads => {
            Err(Problem::fatal("-S/--core-spec and --thred-spec options are mutually exclusive"))
        }
        (None, None) => Ok(()),
        (cores, threads) => {
            let option = if cores > threads { "-S" } else { "--thread-spec" };
            warnings.push(format!(
                "error: Ignoring {option} since it's not allowed by configuration (AllowSpecResourcesUsage = No)"
            ));
            Ok(())
        }
    }
}

/// A hint gives way to options that say the same more exactly.
fn settle_hint(request: &Request, size: &mut Size, warnings: &mut Vec<String>) {
    let Some(hint) = request.given.get("hint") else { return };
    let binds = |given: &Given| {
        let is_talk = |word: &str| matches!(word, "" | "v" | "verbose" | "q" | "quiet");
        !given.value.as_deref().unwrap_or_default().split(',').all(is_talk)
    };
    let is_told = ["ntasks-per-core", "threads-per-core", "extra-node-info"].iter().any(|name| request.is_given(name))
        || request.given.get("cpu-bind").is_some_and(binds);
    if !is_told {
        size.threads_per_core = request.hinted_threads.or(size.threads_per_core);
    } else if request.behaviour.verbosity > 0 && hint.source != Source::Environment {
        warnings.push(
            "Following options are mutually exclusive with --hint: --ntasks-per-core, --threads-per-core, -B and --cpu-bind \
             (other then --cpu-bind=verbose). Ignoring --hint."
                .to_string(),
        );
    }
}

/// `SLURM_UMASK` overrides what the process has.
fn umask(caller: &Caller) -> u32 {
    let asked = caller.variable("SLURM_UMASK").and_then(|text| u32::from_str_radix(text, 8).ok());
    asked.filter(|mask| *mask <= 0o777).unwrap_or(caller.umask)
}

fn settle_nodes(program: Program, size: &mut Size, warnings: &mut Vec<String>) -> Result<(), Problem> {
    // Only what creates or destroys persistent burst buffers runs nowhere; the controller knows.
    if size.max_nodes == Some(0) {
        size.min_nodes = 0;
        return match program {
            Program::Sbatch => Ok(()),
            Program::Salloc | Program::Srun => Err(Problem::refused(Reject::TooManyNodes)),
        };
    }
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

/// Sockets and tasks on each tell how many tasks there are.
fn settle_sockets(size: &mut Size) {
    let is_told = size.n_tasks.is_some() || size.tasks_per_node.is_some();
    if let (false, Some(sockets), Some(per_socket)) = (is_told, size.sockets_per_node, size.tasks_per_socket) {
        size.tasks_per_node = Some(sockets.saturating_mul(per_socket));
    }
}

/// A node's share, or a task's, is what can be asked for; a job's total is divided when it divides evenly.
fn settle_gres(size: &mut Size, request: &Request) -> Result<(), Problem> {
    let gpus = &request.gpus;
    let mut units: Vec<GresRequest> = gpus.gres.clone().unwrap_or_default();
    units.extend(gpus.per_node.clone().unwrap_or_default());
    if let Some(n_tasks_each) = gpus.n_tasks_each {
        settle_tasks_per_gpu(size, request, n_tasks_each, &mut units)?;
    }
    check_gpu_counts(size, gpus)?;
    if let (Some(per_job), Some(per_node)) = (&gpus.per_job, &gpus.per_node) {
        // Both say the same of the same GPUs: how many nodes there are.
        let n_nodes = count(per_job) / count(per_node).max(1);
        (size.min_nodes, size.max_nodes) = (n_nodes, Some(n_nodes));
    } else if let Some(per_job) = &gpus.per_job {
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
        if size.n_tasks.is_none() && size.tasks_per_node.is_none() && gpus.per_job.is_none() {
            return Err(tasks_unknown());
        }
        if let (Some(per_job), None) = (&gpus.per_job, size.n_tasks) {
            size.n_tasks = Some((count(per_job) / count(per_task).max(1)).max(1));
        }
        // With a total too, the total is what is held.
        if gpus.per_job.is_none() {
            size.gres_per_task = per_task.clone();
        }
    }
    size.gres = units;
    let has_gpus = size.gres.iter().chain(&size.gres_per_task).any(|unit| unit.name == "gpu");
    match size.memory {
        Memory::PerGpuMb(megabytes) if !has_gpus => {
            Err(invalid_gres(format!("Requested mem_per_tres=gres:gpu:{megabytes} but did not request any GPU.")))
        }
        _ => Ok(()),
    }
}

fn count(units: &[GresRequest]) -> u32 {
    units.iter().map(|unit| unit.count).sum()
}

/// What is said of the whole job, of its nodes and of its tasks must be about the same GPUs.
fn check_gpu_counts(size: &Size, gpus: &Gpus) -> Result<(), Problem> {
    let Some(total) = gpus.per_job.as_deref().map(count) else { return Ok(()) };
    let least = size.min_nodes.max(1);
    let nodes_fit = |each: u32| {
        let n_nodes = total / each.max(1);
        each > 0 && total.is_multiple_of(each) && n_nodes >= least && size.max_nodes.is_none_or(|most| n_nodes <= most)
    };
    let tasks_fit =
        |each: u32| size.n_tasks.is_none_or(|n_tasks| u64::from(each) * u64::from(n_tasks) == u64::from(total));
    let fits = gpus.per_node.as_deref().map(count).is_none_or(nodes_fit)
        && gpus.per_task.as_deref().map(count).is_none_or(tasks_fit);
    if fits { Ok(()) } else { Err(Problem::refused(Reject::StepGres)) }
}

/// `--ntasks-per-gpu`: from GPUs to tasks, or from tasks to GPUs.
fn settle_tasks_per_gpu(
    size: &mut Size,
    request: &Request,
    n_tasks_each: u32,
    units: &mut Vec<GresRequest>,
) -> Result<(), Problem> {
    let count =
        |units: &[GresRequest]| -> u32 { units.iter().filter(|unit| unit.name == "gpu").map(|unit| unit.count).sum() };
    let too_many = || Problem::refused(Reject::NeverFits);
    if let Some(per_job) = &request.gpus.per_job {
        size.n_tasks = Some(count(per_job).checked_mul(n_tasks_each).ok_or_else(too_many)?);
        return Ok(());
    }
    if count(units) > 0 {
        size.tasks_per_node = Some(count(units).checked_mul(n_tasks_each).ok_or_else(too_many)?);
        return Ok(());
    }
    let (n_tasks, n_nodes) = match (size.n_tasks, size.tasks_per_node) {
        (_, Some(per_node)) => (per_node, 1),
        (Some(n_tasks), None) => {
            let n_nodes = size.max_nodes.unwrap_or(size.min_nodes);
            size.max_nodes = Some(n_nodes);
            (n_tasks, n_nodes)
        }
        (None, None) => {
            return Err(invalid_gres(
                "gres_job_state_validate: --ntasks-per-tres needs either a GRES GPU specification or a node/ntask specification"
                    .to_string(),
            ));
        }
    };
    if n_nodes != size.min_nodes.max(1) && size.tasks_per_node.is_none() || !n_tasks.is_multiple_of(n_nodes) {
        return Err(uneven("ntasks-per-gpu"));
    }
    let gpus = (n_tasks / n_nodes).div_ceil(n_tasks_each);
    units.push(GresRequest { name: "gpu".to_string(), count: gpus, ..GresRequest::default() });
    Ok(())
}

fn uneven(option: &str) -> Problem {
    Problem::error(format!(
        "--{option} is not supported by this version of Spur where nodes would get different counts; use --gpus-per-node"
    ))
}

fn tasks_unknown() -> Problem {
    invalid_gres(
        "Failed to validate job spec. --gpus-per-task used without either --gpus or -n/--ntasks is not allowed."
            .to_string(),
    )
}

fn invalid_gres(why: String) -> Problem {
    let mut problem = Problem::error(why);
    problem.lines.push(super::problem::Line::Error("Invalid generic resource (gres) specification".to_string()));
    problem
}
