//! The site's programs around jobs: what each of them is told, and the running of those that run on the controller itself.
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::command::DutyResult;
use model::hooks::Hook;
use model::resources::repeated;
use model::time::Span;
use model::{Job, NodeName, Task, gpu_parts, hostlist};
use state::Cluster;

const SCRIPT: &str = model::loudness::DebugFlag::Script.target();

/// Where the controller finds its own files.
#[derive(Clone)]
pub struct Places {
    pub config_file: PathBuf,
    pub state_dir: PathBuf,
}

impl Places {
    fn records(&self) -> PathBuf {
        self.state_dir.join("hooks")
    }
}

/// What a node runs for this job.
pub fn on_node(cluster: &Cluster, job: &Job, node: &NodeName, task: Task, places: &Places) -> Hook {
    let hooks = &cluster.config().hooks;
    let mut environment = environment(cluster, job, task, places);
    environment.push(format!("SLURMD_NODENAME={node}"));
    if let Some(share) = job.allocation.share(node.as_str()) {
        let gpus: Vec<String> = gpu_parts::gpus_of(&share.gres).iter().map(u32::to_string).collect();
        if !gpus.is_empty() {
            let names = ["SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"];
            environment.extend(names.map(|name| format!("{name}={}", gpus.join(","))));
        }
        let percentage = gpu_parts::thread_percentage(&share.gres);
        environment.extend(percentage.map(|percentage| format!("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE={percentage}")));
    }
    Hook { environment, ..without_job(cluster, task, programs(hooks, task)) }
}

/// For a run that was given up when its node was lost; the agent remembers what its prolog was told, and whether it had one.
pub fn of_lost_run(cluster: &Cluster) -> Hook {
    without_job(cluster, Task::Epilog, programs(&cluster.config().hooks, Task::Epilog))
}

fn without_job(cluster: &Cluster, task: Task, programs: &[String]) -> Hook {
    let hooks = &cluster.config().hooks;
    Hook {
        programs: programs.to_vec(),
        environment: Vec::new(),
        timeout: timeout(cluster, task),
        is_serial: hooks.flags.serial,
    }
}

fn programs(hooks: &model::hooks::HooksConfig, task: Task) -> &[String] {
    match task {
        Task::ControllerProlog => &hooks.controller_prolog,
        Task::Prolog => &hooks.prolog,
        Task::Epilog => &hooks.epilog,
        Task::ControllerEpilog => &hooks.controller_epilog,
        _ => &[],
    }
}

fn timeout(cluster: &Cluster, task: Task) -> Option<Span> {
    let hooks = &cluster.config().hooks;
    match task {
        Task::Epilog | Task::ControllerEpilog => hooks.epilog_timeout,
        _ => hooks.prolog_timeout,
    }
}

/// Runs the controller's own, once a run, and says how it ended.
pub async fn run_here(cluster: &Cluster, job: &Job, task: Task, places: Places) -> DutyResult {
    let order = prolog::Order {
        programs: programs(&cluster.config().hooks, task).to_vec(),
        environment: environment(cluster, job, task, &places),
        timeout: timeout(cluster, task).map(|span| Duration::from_micros(span.0)),
    };
    // The site's own programs run whatever a job is called; what cannot be told to any is left out.
    let order = prolog::Order { environment: prolog::tellable(order.environment), ..order };
    let (id, attempt) = (job.id, job.attempt);
    tracing::debug!(target: SCRIPT, job = %id, task = word(task), programs = ?order.programs);
    let ran = tokio::task::spawn_blocking(move || {
        let records = places.records();
        if task == Task::ControllerEpilog {
            // It comes last, also when the job was cancelled meanwhile.
            prolog::wait(&records, &name(id, attempt, Task::ControllerProlog))?;
        }
        prolog::run_once(Path::new("/proc/self/exe"), &records, &name(id, attempt, task), &order)
    });
    let failed = |why: String| {
        tracing::error!(job = %id, task = word(task), why, "a program of the site failed");
        DutyResult::HookFailed { nodes: Vec::new(), why, drained_for: String::new() }
    };
    match ran.await {
        Ok(Ok(Ok(()))) => DutyResult::Done,
        Ok(Ok(Err(why))) => failed(why),
        Ok(Err(error)) => failed(error.to_string()),
        Err(error) => failed(error.to_string()),
    }
}

/// What it did is durable.
pub fn forget_here(job: model::JobId, attempt: u32, task: Task, places: &Places) {
    prolog::forget(&places.records(), &name(job, attempt, task));
}

/// Records of an earlier life that nobody asks for any more.
pub fn forget_strangers(cluster: &Cluster, places: &Places) {
    let wanted: Vec<String> = cluster
        .duties()
        .filter_map(|duty| match duty.owner {
            model::Owner::Job(job) => Some(name(job, duty.attempt, duty.task)),
            _ => None,
        })
        .collect();
    for name in prolog::names(&places.records()).unwrap_or_default() {
        if !wanted.contains(&name) {
            prolog::forget(&places.records(), &name);
        }
    }
}

fn name(job: model::JobId, attempt: u32, task: Task) -> String {
    format!("{job}.{attempt}.{}", word(task))
}

fn word(task: Task) -> &'static str {
    match task {
        Task::ControllerProlog | Task::Prolog => "prolog",
        _ => "epilog",
    }
}

fn environment(cluster: &Cluster, job: &Job, task: Task, places: &Places) -> Vec<String> {
    let spec = &job.spec;
    let context = match task {
        Task::ControllerProlog => "prolog_slurmctld",
        Task::Prolog => "prolog_slurmd",
        Task::Epilog => "epilog_slurmd",
        _ => "epilog_slurmctld",
    };
    let nodes = hostlist::compress_in_order(job.allocation.names().map(|name| name.as_str()));
    let mut given: Vec<(&str, String)> = vec![
        ("CLUSTER_NAME", cluster.config().cluster_name.clone()),
        ("CONF", places.config_file.display().to_string()),
        ("JOBID", job.id.to_string()),
        ("JOB_ID", job.id.to_string()),
        ("JOB_CPUS_PER_NODE", repeated(job.allocation.nodes.iter().map(|share| share.cpus.len()))),
        ("JOB_GID", spec.gid.to_string()),
        ("JOB_GROUP", spec.group.clone()),
        ("JOB_NAME", spec.name.clone()),
        ("JOB_NODELIST", nodes.clone()),
        ("NODELIST", nodes),
        ("JOB_NUM_NODES", job.allocation.nodes.len().to_string()),
        ("JOB_PARTITION", job.partition.clone()),
        ("JOB_RESTART_COUNT", job.restarts.to_string()),
        ("JOB_UID", spec.uid.to_string()),
        ("UID", spec.uid.to_string()),
        ("JOB_USER", spec.user.clone()),
        ("JOB_WORK_DIR", spec.work_dir.clone()),
        ("SCRIPT_CONTEXT", context.to_string()),
        ("JOB_ACCOUNT", spec.account.clone()),
        ("JOB_QOS", spec.qos.clone()),
        ("JOB_COMMENT", spec.comment.clone()),
        ("JOB_CONSTRAINTS", spec.size.features.clone()),
        ("WCKEY", spec.wckey.clone()),
        ("JOB_RESERVATION", job.reservation.clone()),
    ];
    if let Some(started) = job.started {
        given.push(("JOB_START_TIME", (started.0 / 1_000_000).to_string()));
    }
    if let Some(ends) = job.end_time() {
        given.push(("JOB_END_TIME", (ends.0 / 1_000_000).to_string()));
    }
    if let Some((array, task)) = job.array_id().and_then(|id| cluster.array(id)).zip(job.array_task()) {
        let facts = array.facts(task);
        given.push(("ARRAY_JOB_ID", facts.array.to_string()));
        given.push(("ARRAY_TASK_ID", facts.task.to_string()));
        given.push(("ARRAY_TASK_COUNT", facts.count.to_string()));
        given.push(("ARRAY_TASK_MIN", facts.min.to_string()));
        given.push(("ARRAY_TASK_MAX", facts.max.to_string()));
        given.push(("ARRAY_TASK_STEP", facts.stride.to_string()));
    }
    if matches!(task, Task::Epilog | Task::ControllerEpilog) {
        given.push(("JOB_EXIT_CODE", job.exit.to_wait_status().to_string()));
        given.push(("JOB_EXIT_CODE2", job.exit.to_string()));
        given.push(("JOB_DERIVED_EC", job.derived_exit.to_wait_status().to_string()));
    }
    given.retain(|(_, value)| !value.is_empty());
    let twice = |(name, value): (&str, String)| [format!("SLURM_{name}={value}"), format!("SPUR_{name}={value}")];
    // Without a path Slurm's programs must name everything in full; ours may do so too.
    given.into_iter().flat_map(twice).collect()
}
