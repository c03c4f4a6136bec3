//! `scontrol show`: finds what is meant and renders it.
use model::Partition;
use model::config::Config;
use model::hostlist;
use model::request::{JobFilter, JobsPage, NodeView};

use crate::job_ids::{self, Target};
use crate::job_view::{JobView, Scene, TASKS_WIDTH};
use crate::json::{self, Shape};
use crate::node_view::Memberships;
use crate::squeue::{is_meant, steps};
use crate::zone::Clock;

use super::record::Style;
use super::{Reply, show_job, show_node};

/// What `show job ID` asks the controller; the error is for stderr.
pub fn job_request(id: Option<&str>) -> Result<JobFilter, String> {
    let jobs = match id {
        None => Vec::new(),
        Some(id) if task_of_any(id).is_some() => Vec::new(),
        Some(id) => {
            let job = job_ids::parse_job(id).ok_or("scontrol_print_job error: Invalid job id specified")?;
            vec![job]
        }
    };
    Ok(JobFilter { jobs, with_finished: true, ..JobFilter::default() })
}

/// To Slurm job 0 is every job, `0_3` the third task of every array.
fn task_of_any(id: &str) -> Option<Option<u32>> {
    match id.split_once('_') {
        None => (id == "0").then_some(None),
        Some(("0", task)) => task.parse().ok().map(Some),
        Some(_) => None,
    }
}

/// Renders `show job`, text or JSON.
pub fn jobs(
    id: Option<&str>,
    page: &JobsPage,
    config: &Config,
    clock: &Clock,
    style: Style,
    as_json: Option<Shape>,
) -> Reply {
    if let Some(id) = id.filter(|id| id.contains('+') && !page.unknown.is_empty()) {
        return Reply { code: 1, ..Reply::text(format!("Job {id} not found\n")) };
    }
    if id.is_some() && !page.unknown.is_empty() {
        return Reply::failed("slurm_load_jobs error: Invalid job id specified");
    }
    let scene = Scene {
        clock,
        config,
        progress: &page.progress,
        tasks_width: TASKS_WIDTH,
        converts: true,
        expands_patterns: false,
        largest: Default::default(),
        measures: Default::default(),
    };
    let of_any = id.and_then(task_of_any);
    let wanted = id.filter(|_| of_any.is_none()).and_then(job_ids::parse_job);
    let is_its_task = |job: &model::Job| of_any.flatten().is_none_or(|task| job.array_task() == Some(task));
    let mut views = Vec::new();
    // A task that was cancelled before it left its array is none to Slurm.
    let was_one = |job: &model::Job| job.array_task().is_none() || job.started.is_some() || !job.is_over();
    let is_wanted = |job: &model::Job| wanted.as_ref().is_none_or(|wanted| is_meant(wanted, job) && was_one(job));
    for job in page.jobs.iter().filter(|job| is_wanted(job) && is_its_task(job)) {
        let view = JobView::new(job, &scene);
        match (&job.waiting_tasks, wanted.as_ref().and_then(|wanted| wanted.tasks.as_ref())) {
            (Some(waiting), Some(tasks)) => {
                let both = tasks.iter().filter(|task| waiting.contains(*task));
                views.extend(both.map(|task| JobView { task: Some(task), ..view }));
            }
            _ => views.push(view),
        }
    }
    if let Some(shape) = as_json {
        return Reply::text(json::jobs(shape, "scontrol", &config.cluster_name, &views));
    }
    match (views.is_empty(), id) {
        (true, Some(id)) => return Reply { code: 1, ..Reply::text(format!("Job {id} not found\n")) },
        (true, None) => return Reply::text("No jobs in the system\n".into()),
        (false, _) => {}
    }
    let mut out = String::new();
    views.iter().for_each(|view| show_job::write_job(view, style, &mut out));
    Reply::text(out)
}

/// The job that `show step ID` is about.
pub fn job_of_step(id: &str) -> Option<model::JobRef> {
    job_ids::parse(id.trim_end_matches('.')).map(|wanted| wanted.job)
}

/// Renders `show step`; `12` is all steps of job 12.
pub fn steps(
    id: Option<&str>,
    page: &JobsPage,
    config: &Config,
    clock: &Clock,
    style: Style,
    as_json: Option<Shape>,
) -> Reply {
    if as_json.is_some_and(|shape| !shape.is_newer()) {
        return Reply::failed("scontrol: error: --json is not supported for show step by this data parser");
    }
    let wanted = match id.map(|id| job_ids::parse(id.trim_end_matches('.'))) {
        None => None,
        Some(Some(wanted)) => Some(wanted),
        Some(None) => return Reply::failed("Invalid job id specified"),
    };
    if wanted.is_some() && !page.unknown.is_empty() {
        return Reply::failed("slurm_get_job_steps error: Invalid job id specified");
    }
    let scene = Scene {
        clock,
        config,
        progress: &page.progress,
        tasks_width: TASKS_WIDTH,
        converts: true,
        expands_patterns: false,
        largest: Default::default(),
        measures: Default::default(),
    };
    let mut views = steps::live_steps(&page.jobs, &page.steps, &scene);
    if let Some(Target { job, step }) = &wanted {
        views.retain(|view| is_meant(job, view.job.job) && step.is_none_or(|step| step == view.id));
    }
    if let Some(shape) = as_json {
        return Reply::text(show_job::step_document(shape, &config.cluster_name, &views));
    }
    match (views.is_empty(), id) {
        (true, Some(id)) => {
            let dot = if id.contains('.') { "" } else { "." };
            return Reply { code: 1, ..Reply::text(format!("Job step {id}{dot} not found\n")) };
        }
        (true, None) => return Reply::text("No job steps in the system\n".into()),
        (false, _) => {}
    }
    let mut out = String::new();
    views.iter().for_each(|view| show_job::write_step(view, style, &mut out));
    Reply::text(out)
}

/// Renders `show node`.
pub fn nodes(
    list: Option<&str>,
    nodes: &[NodeView],
    config: &Config,
    clock: &Clock,
    style: Style,
    as_json: Option<Shape>,
) -> Reply {
    let mut reply = Reply::default();
    let mut found: Vec<&NodeView> = Vec::new();
    match list.filter(|list| !list.eq_ignore_ascii_case("ALL")) {
        None => found.extend(nodes),
        Some(list) => {
            let Ok(names) = hostlist::expand(list) else {
                return Reply { code: 1, ..Reply::text(format!("Node {list} not found\n")) };
            };
            for name in names {
                match nodes.iter().find(|node| node.node.name.as_str() == name) {
                    Some(node) => found.push(node),
                    None => {
                        reply.out.push_str(&format!("Node {name} not found\n"));
                        reply.code = 1;
                    }
                }
            }
        }
    }
    if let Some(shape) = as_json {
        return Reply { out: json::nodes(shape, "scontrol", &found, config), ..reply };
    }
    let network = crate::network::of(config, nodes);
    if found.is_empty() && list.is_none() {
        return Reply::text("No nodes in the system\n".into());
    }
    let memberships = Memberships::of(config);
    let out = &mut reply.out;
    found.iter().for_each(|node| show_node::write_node(node, &memberships, &network, clock, style, out));
    reply
}

/// Renders `show partition`.
pub fn partitions(
    name: Option<&str>,
    nodes: &[NodeView],
    config: &Config,
    style: Style,
    hidden: bool,
    as_json: Option<Shape>,
) -> Reply {
    let is_meant = |partition: &&Partition| match name {
        Some(name) => partition.name == name,
        None => hidden || !partition.is_hidden,
    };
    let found: Vec<&Partition> = config.partitions.iter().filter(is_meant).collect();
    if let (Some(name), true) = (name, found.is_empty()) {
        return Reply { code: 1, ..Reply::text(format!("Partition {name} not found\n")) };
    }
    if let Some(shape) = as_json {
        return Reply::text(json::partitions(shape, config, &found, nodes));
    }
    if found.is_empty() {
        return Reply::text("No partitions in the system\n".into());
    }
    let mut out = String::new();
    found.iter().for_each(|partition| show_node::write_partition(partition, nodes, config, style, &mut out));
    Reply::text(out)
}
