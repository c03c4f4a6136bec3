//! From the gathered request to what is sent: defaults, checks that need several options at once, the environment.
use model::kept::Spared;
use model::license::LicenseCount;
use model::spec::{Size, TimeLimit};
use model::{JobSpec, Reject};

use super::problem::Line;
use super::request::{Given, Source};
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
    if program == Program::Srun && request.behaviour.is_quiet && request.behaviour.verbosity > 0 {
        return Err(Problem::error("don't specify both --verbose (-v) and --quiet (-Q)"));
    }
    if request.is_given("partition") && request.spec.partitions.is_empty() && request.step.job.is_none() {
        let lines =
            vec![Line::Error("invalid partition specified: (null)".into()), Line::Refused(Reject::NoSuchPartition)];
        return Err(Problem { lines, code: 1 });
    }
    let mut spec = request.spec.clone();
    if let (Some(begin), Some(deadline)) = (spec.begin, spec.deadline)
        && deadline < begin
    {
        return Err(Problem::error("Incompatible begin and deadline time specification"));
    }
    let mut warnings: Vec<String> = request.complaints.iter().map(|line| format!("error: {line}")).collect();
    warnings.extend(request.remarks.iter().cloned());
    spec.size.spared = special_resources(request, caller, &mut warnings)?;
    settle_hint(request, &mut spec.size, &mut warnings);
    if request.step.is_arbitrary {
        // The list names a node for each task, and may name one several times.
        let mut seen = std::collections::BTreeSet::new();
        spec.size.nodes.retain(|name| seen.insert(name.clone()));
        // The network has nothing left to choose.
        spec.size.network.topology.get_or_insert(model::topology::TopologyKind::Flat);
    }
    if let (Some(TimeLimit::Secs(least)), Some(TimeLimit::Secs(most))) = (spec.time_min, spec.time_limit)
        && least > most
    {
        return Err(Problem::refused(Reject::BadTimeMin));
    }
    settle_nodes(program, &mut spec.size, &mut warnings)?;
    settle_sockets(&mut spec.size);
    super::set_network::settle(program, &mut spec.size, caller)?;
    settle_licenses(request, &mut spec, &mut warnings)?;
    // Inside a job the variables name what the whole job has.
    if request.step.job.is_none() {
        super::gpus::settle(&mut spec.size, request)?;
        spec.tres_words = super::gpus::words(request);
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
    spec.umask = Some(request.umask.unwrap_or_else(|| umask(caller)));
    Ok(Finished { spec, warnings })
}

/// Those of the tasks come to those of the job; steps have the job's.
fn settle_licenses(request: &Request, spec: &mut JobSpec, warnings: &mut Vec<String>) -> Result<(), Problem> {
    if request.task_licenses.is_empty() {
        return Ok(());
    }
    if request.step.job.is_some() {
        if request.is_argument("tres-per-task") {
            warnings.push("Ignoring --tres-per-task license specification: steps use the licenses of their job".into());
        }
        return Ok(());
    }
    let refused = || Problem::refused(Reject::BadLicenses);
    if spec.licenses.any_is_enough {
        return Err(refused());
    }
    let size = &spec.size;
    let n_tasks = size.n_tasks.unwrap_or_else(|| size.min_nodes.max(1) * size.tasks_per_node.unwrap_or(1).max(1));
    for each in &request.task_licenses {
        let count = each.count.checked_mul(n_tasks).ok_or_else(refused)?;
        match spec.licenses.list.iter_mut().find(|own| own.name == each.name) {
            Some(own) => own.count = own.count.checked_add(count).ok_or_else(refused)?,
            None => spec.licenses.list.push(LicenseCount { name: each.name.clone(), count }),
        }
    }
    Ok(())
}

/// What the job leaves to the system; where AllowSpecResourcesUsage is No, Slurm says that it does not count.
fn special_resources(
    request: &Request,
    caller: &Caller,
    warnings: &mut Vec<String>,
) -> Result<Option<Spared>, Problem> {
    let source = |name: &str| request.given.get(name).map(|given| given.source);
    match (source("core-spec"), source("thread-spec")) {
        (Some(Source::Environment), Some(Source::Environment)) => Err(Problem::fatal(
            "Both --core-spec and --thread-spec set using environment variables. Those options are mutually exclusive.",
        )),
        (Some(cores), Some(threads)) if cores == threads => {
            Err(Problem::fatal("-S/--core-spec and --thred-spec options are mutually exclusive"))
        }
        (None, None) => Ok(None),
        (cores, threads) => {
            let (option, name) = if cores > threads { ("-S", "core-spec") } else { ("--thread-spec", "thread-spec") };
            let count = request.given.get(name).and_then(|given| given.value.as_deref()?.trim().parse().ok());
            if let Some(count) = count.filter(|_| caller.may_spare) {
                return Ok(Some(if cores > threads { Spared::Cores(count) } else { Spared::Threads(count) }));
            }
            warnings.push(format!(
                "error: Ignoring {option} since it's not allowed by configuration (AllowSpecResourcesUsage = No)"
            ));
            Ok(None)
        }
    }
}

/// A hint gives way to options that say the same more exactly.
fn settle_hint(request: &Request, size: &mut Size, warnings: &mut Vec<String>) {
    let Some(hint) = request.given.get("hint") else { return };
    if hint_counts(request) {
        size.threads_per_core = request.hinted_threads.or(size.threads_per_core);
        size.cores_per_socket = size.cores_per_socket.or(request.hinted_cores);
    } else if request.behaviour.verbosity > 0 && hint.source != Source::Environment {
        warnings.push(
            "Following options are mutually exclusive with --hint: --ntasks-per-core, --threads-per-core, -B and --cpu-bind \
             (other then --cpu-bind=verbose). Ignoring --hint."
                .to_string(),
        );
    }
}

/// Nothing says more exactly what the hint only hints at.
pub fn hint_counts(request: &Request) -> bool {
    let binds = |given: &Given| {
        let is_talk = |word: &str| matches!(word, "" | "v" | "verbose" | "q" | "quiet");
        !given.value.as_deref().unwrap_or_default().split(',').all(is_talk)
    };
    let is_told = ["ntasks-per-core", "threads-per-core", "extra-node-info"].iter().any(|name| request.is_given(name))
        || request.given.get("cpu-bind").is_some_and(binds);
    !is_told
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
    // Of several segments each chooses among the nodes named.
    if n_listed > size.min_nodes && !size.network.is_segmented(size.min_nodes) {
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
