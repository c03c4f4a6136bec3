//! A step in the JSON of newer Slurms.
use model::spec::TimeLimit;

use crate::squeue::steps::StepView;

use super::Json;

/// Writes the fields of one step.
pub fn write(view: &StepView, tres: &str, distribution: &str, json: &mut Json) {
    let job = view.job.job;
    let asked = view.step.map(|step| step.spec.asked.clone()).unwrap_or_default();
    json.object_field("array", |json| {
        json.field("job_id", job.array_id().map_or(0, |id| id.0));
        json.field("task_id", job.array_task().unwrap_or(0));
    });
    json.field("cluster", &view.job.scene.config.cluster_name);
    json.field("container", "");
    json.field("container_id", "");
    json.object_field("cpu", |json| {
        json.object_field("frequency", |json| {
            ["min", "max", "governor"].iter().for_each(|name| json.number(name, None));
        });
    });
    json.object_field("tres", |json| {
        json.object_field("per", |json| {
            json.field("cpu", &asked.cpus_per_tres);
            json.field("memory", &asked.mem_per_tres);
            json.field("step", &asked.per_step);
            json.field("node", &asked.per_node);
            json.field("socket", &asked.per_socket);
            json.field("task", &asked.per_task);
        });
        json.field("allocation", tres);
        json.field("binding", &asked.bind);
        json.field("frequency", &asked.freq);
    });
    json.field("name", view.name());
    json.field("network", "");
    json.field("nodes", &view.nodes());
    json.field("number_cpus", view.step.map_or(0, |_| view.n_cpus()));
    json.field("number_tasks", view.step.map_or(1, |step| step.n_tasks));
    json.field("partition", &job.partition);
    json.field("reserved_ports", &view.step.map(|step| step.port_list()).unwrap_or_default());
    json.object_field("time", |json| {
        json.number("running", Some(view.run_secs() as i64));
        let started = view.step.map_or(job.started, |step| step.started);
        json.number("start", started.map(|at| at.secs() as i64));
        let limit = match view.step.and_then(|step| step.spec.time_limit) {
            Some(TimeLimit::Secs(secs)) => Some(secs.div_ceil(60) as i64),
            Some(TimeLimit::Unlimited) | None => None,
        };
        json.limit("limit", limit, true);
    });
    json.object_field("srun", |json| {
        json.field("host", view.step.map_or("", |step| &step.spec.submit_host));
        json.field("pid", 0_u32);
    });
    json.list_field("state", |json| json.item(view.state()));
    json.field("id", &view.full_id());
    json.field("submit_line", "");
    json.object_field("task", |json| json.field("distribution", distribution));
    json.field("user", &view.job.spec().user);
}
