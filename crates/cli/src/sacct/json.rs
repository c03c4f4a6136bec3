//! Runs in the shape of Slurm's `sacct --json`.
use model::amount::Amount;
use model::history::{RunHistory, StepRecord};
use model::time::Span;
use model::usage::{Spread, Usage};
use model::{ExitStatus, StepId, Timestamp, hostlist, signal};

use crate::json::{self, Json, Shape};

use super::row::{self, Part, Row, Scene};

pub fn document(shape: Shape, runs: &[RunHistory], scene: &Scene) -> String {
    json::document(shape, "sacct", &scene.config.cluster_name, "jobs", |json| {
        for run in runs {
            json.object(|json| write(&Row { run, part: Part::Job, scene }, json));
        }
    })
}

fn secs(moment: Option<Timestamp>) -> u64 {
    moment.map_or(0, Timestamp::secs)
}

fn write(row: &Row, json: &mut Json) {
    let job = row.job();
    json.field("account", &job.account);
    json.object_field("comment", |json| {
        json.field("administrator", &job.admin_comment);
        json.field("job", &job.comment);
        json.field("system", &job.system_comment);
    });
    json.field("allocation_nodes", job.held.n_nodes);
    json.object_field("array", |json| {
        json.field("job_id", job.array.map_or(0, |array| array.0));
        json.object_field("limits", |json| {
            json.object_field("max", |json| {
                json.object_field("running", |json| json.field("tasks", job.waiting_limit.unwrap_or(0)));
            });
        });
        let waiting = job.waiting.as_ref().map(|tasks| tasks.to_string());
        json.field("task", waiting.as_deref());
        json.field("task_id", job.task);
    });
    json.object_field("association", |json| {
        json.field("account", &job.account);
        json.field("cluster", &row.scene.config.cluster_name);
        json.field("partition", None::<u32>);
        json.field("user", &job.user);
    });
    json.field("cluster", &row.scene.config.cluster_name);
    json.field("constraints", &job.constraints);
    json.field("container", "");
    exit("derived_exit_code", job.derived_exit, json);
    json.object_field("time", |json| times(row, json));
    exit("exit_code", job.exit, json);
    json.list_field("flags", |json| {
        if job.started.is_some() {
            json.item(if job.was_backfilled { "STARTED_ON_BACKFILL" } else { "STARTED_ON_SCHEDULE" });
        }
    });
    json.field("group", &job.group);
    json.object_field("het", |json| {
        json.field("job_id", job.het_job.map_or(0, |leader| leader.0));
        json.field("job_offset", job.het_job.map(|_| job.het_offset));
    });
    json.field("job_id", job.job.0);
    json.field("name", &job.name);
    json.object_field("mcs", |json| json.field("label", ""));
    json.field("nodes", row.nodes());
    json.field("partition", &job.partition);
    match json.shape().is_newer() {
        true => json.number("priority", Some(i64::from(job.priority))),
        false => json.field("priority", job.priority),
    }
    json.field("qos", &job.qos);
    json.object_field("required", |json| {
        json.field("CPUs", job.asked.n_cpus);
        match json.shape().is_newer() {
            true => {
                json.field("memory_per_cpu", None::<u32>);
                json.field("memory_per_node", job.asked.memory_mb / u64::from(job.asked.n_nodes.max(1)));
            }
            false => json.field("memory", job.asked.memory_mb),
        }
    });
    json.field("kill_request_user", job.cancelled_by.map(row_user).as_deref());
    json.object_field("reservation", |json| {
        json.field("id", 0_u32);
        json.field("name", &job.reservation);
    });
    let is_newer = json.shape().is_newer();
    if is_newer {
        json.field("restart_cnt", job.restarts);
    }
    json.object_field("state", |json| {
        json.field("current", row.state().name());
        json.field("reason", &job.reason);
    });
    json.list_field("steps", |json| {
        row::rows(row.run, row.scene, |part| {
            if !part.is_job() {
                json.object(|json| step(part, json));
            }
        });
    });
    if is_newer {
        json.field("submit_line", &job.command_line);
    }
    json.object_field("tres", |json| {
        json.list_field("allocated", |json| tres(&job.held, true, json));
        json.list_field("requested", |json| tres(&job.asked, true, json));
    });
    json.field("user", &job.user);
    json.object_field("wckey", |json| {
        json.field("wckey", &job.wckey);
        json.list_field("flags", |_| {});
    });
    json.field("working_directory", &job.work_dir);
    if is_newer {
        json.field("stdin", &job.stdin);
        json.field("stdout", &job.stdout);
        json.field("stderr", &job.stderr);
    }
    if json.shape().is_at_least(41) {
        json.field("stdin_expanded", &job.stdin);
        json.field("stdout_expanded", &job.stdout);
        json.field("stderr_expanded", &job.stderr);
        ["block", "extra", "failed_node", "script", "used_gres"].into_iter().for_each(|name| json.field(name, ""));
    }
}

fn row_user(uid: u32) -> String {
    crate::users::user_name(uid).unwrap_or_else(|| uid.to_string())
}

fn exit(name: &str, exit: ExitStatus, json: &mut Json) {
    if json.shape().is_newer() {
        return json.exit(name, u32::from(exit.code), u32::from(exit.signal));
    }
    json.object_field(name, |json| {
        match exit.signal {
            0 if exit.code == 0 => json.field("status", "SUCCESS"),
            0 => json.field("status", "ERROR"),
            _ => json.field("status", "SIGNALED"),
        }
        json.field("return_code", u32::from(exit.code));
        if exit.signal != 0 {
            json.object_field("signal", |json| {
                json.field("signal_id", u32::from(exit.signal));
                let name = signal::Signal::new(exit.signal).map(|signal| signal.name());
                json.field("name", name.as_deref());
            });
        }
    });
}

fn times(row: &Row, json: &mut Json) {
    let job = row.job();
    json.field("elapsed", row.elapsed_secs());
    json.field("eligible", secs(job.eligible));
    json.field("end", secs(row.ended()));
    json.field("start", secs(row.started()));
    if json.shape().is_newer() {
        let waited = row.started().zip(job.eligible).map(|(start, since)| start.secs().saturating_sub(since.secs()));
        json.number("planned", waited.map(|secs| secs as i64));
    }
    json.field("submission", job.submitted.secs());
    json.field("suspended", row.suspended_secs());
    let used = || row.run.steps.iter().filter_map(|step| step.usage.as_deref());
    let sum = |of: fn(&Usage) -> Span| used().fold(Span(0), |sum, usage| sum + of(usage));
    cpu("system", sum(|usage| usage.system_cpu), json);
    let limit = match job.time_limit {
        Some(model::spec::TimeLimit::Secs(secs)) => Some(secs.div_ceil(60)),
        Some(model::spec::TimeLimit::Unlimited) | None => None,
    };
    json.field("limit", limit);
    cpu("total", sum(|usage| usage.total_cpu()), json);
    cpu("user", sum(|usage| usage.user_cpu), json);
}

fn cpu(name: &str, span: Span, json: &mut Json) {
    json.object_field(name, |json| {
        json.field("seconds", span.secs());
        json.field("microseconds", span.0 % 1_000_000);
    });
}

fn step(row: &Row, json: &mut Json) {
    let record: Option<&StepRecord> = row.step();
    json.object_field("time", |json| {
        json.field("elapsed", row.elapsed_secs());
        json.field("end", secs(row.ended()));
        json.field("start", secs(row.started()));
        json.field("suspended", row.suspended_secs());
        let of = |of: fn(&Usage) -> Span| record.and_then(|step| step.usage.as_deref()).map_or(Span(0), of);
        cpu("system", of(|usage| usage.system_cpu), json);
        cpu("total", of(|usage| usage.total_cpu()), json);
        cpu("user", of(|usage| usage.user_cpu), json);
    });
    exit("exit_code", record.map(|step| step.exit).unwrap_or_default(), json);
    json.object_field("nodes", |json| {
        json.field("count", row.held().n_nodes);
        json.field("range", row.nodes());
        json.list_field("list", |json| {
            for name in hostlist::expand(row.nodes()).unwrap_or_default() {
                json.item(&name);
            }
        });
    });
    json.object_field("tasks", |json| {
        json.field("count", record.map_or(row.held().n_nodes, |step| step.held.n_tasks));
    });
    json.field("pid", None::<u32>);
    json.object_field("CPU", |json| {
        json.object_field("requested_frequency", |json| {
            json.field("min", 0_u32);
            json.field("max", 0_u32);
        });
        match json.shape().is_newer() {
            true => json.field("governor", ""),
            false => json.list_field("governor", |_| {}),
        }
    });
    json.field("kill_request_user", record.and_then(|step| step.cancelled_by).map(row_user).as_deref());
    json.object_field("step", |json| {
        let job = row.job().job.0;
        if !json.shape().is_newer() {
            json.field("job_id", job);
        }
        let id = match record.map(|step| step.step) {
            Some(StepId::Batch) => "batch".to_string(),
            Some(StepId::Number(number)) => number.to_string(),
            None => "extern".to_string(),
        };
        // Newer parsers have the whole name of the step here.
        let is_newer = json.shape().is_newer();
        json.field("id", if is_newer { format!("{job}.{id}") } else { id }.as_str());
        json.field("name", row.name());
    });
    json.field("state", row.state().name());
    json.object_field("statistics", |json| {
        json.object_field("CPU", |json| json.field("actual_frequency", 0_u32));
        json.object_field("energy", |json| json.field("consumed", 0_u32));
    });
    json.object_field("task", |json| {
        json.field("distribution", record.map_or("Unknown", |step| step.layout.as_str()));
    });
    json.object_field("tres", |json| {
        let usage = record.and_then(|step| step.usage.as_deref());
        json.object_field("requested", |json| measured(usage, &TAKEN, json));
        json.object_field("consumed", |json| measured(usage, &GIVEN, json));
        json.list_field("allocated", |json| tres(row.held(), false, json));
    });
}

/// One measure: kind, name and number of the resource, where it is, and what Slurm divides it by.
type Measure = (&'static str, Option<&'static str>, u32, fn(&Usage) -> &Spread, u64);

const TAKEN: [Measure; 5] = [
    ("cpu", None, 1, |usage| &usage.cpu_micros, 1000),
    ("mem", None, 2, |usage| &usage.rss_bytes, 1),
    ("fs", Some("disk"), 6, |usage| &usage.read_bytes, 1),
    ("vmem", None, 7, |usage| &usage.vsize_bytes, 1),
    ("pages", None, 8, |usage| &usage.page_faults, 1),
];
const GIVEN: [Measure; 1] = [("fs", Some("disk"), 6, |usage| &usage.written_bytes, 1)];

/// A number of it, and the node and task that it is of.
type Pick = fn(&Spread) -> (u64, Option<(&str, u32)>);

/// What the tasks have used, as sacct's TRESUsage… fields have it.
fn measured(usage: Option<&Usage>, measures: &[Measure], json: &mut Json) {
    let of = |pick: Pick| {
        let one = move |usage: &Usage, measure: &Measure| {
            let (count, place) = pick((measure.3)(usage));
            (measure.0, measure.1, measure.2, count / measure.4, place.map(|(node, task)| (node.to_owned(), task)))
        };
        usage.into_iter().flat_map(move |usage| measures.iter().map(move |measure| one(usage, measure))).collect()
    };
    type Item = (&'static str, Option<&'static str>, u32, u64, Option<(String, u32)>);
    let lists: [(&str, Vec<Item>); 4] = [
        ("max", of(|spread| (spread.max, Some((spread.max_node.as_str(), spread.max_task))))),
        ("min", of(|spread| (spread.min, Some((spread.min_node.as_str(), spread.min_task))))),
        ("average", of(|spread| (spread.average(), None))),
        ("total", of(|spread| (spread.total, None))),
    ];
    for (name, items) in lists {
        json.list_field(name, |json| {
            for (kind, name, id, count, place) in items {
                json.object(|json| {
                    json.field("type", kind);
                    json.field("name", name);
                    json.field("id", id);
                    json.field("count", count);
                    if let Some((node, task)) = &place {
                        json.field("node", node.as_str());
                        json.field("task", *task);
                    }
                });
            }
        });
    }
}

fn tres(amount: &Amount, with_billing: bool, json: &mut Json) {
    if amount.is_nothing() {
        return;
    }
    let mut one = |kind: &str, name: Option<&str>, id: u32, count: u64| {
        json.object(|json| {
            json.field("type", kind);
            json.field("name", name);
            json.field("id", id);
            json.field("count", count);
        });
    };
    one("cpu", None, 1, u64::from(amount.n_cpus));
    if amount.memory_mb > 0 {
        one("mem", None, 2, amount.memory_mb);
    }
    one("node", None, 4, u64::from(amount.n_nodes));
    if with_billing {
        one("billing", None, 5, amount.billing());
    }
    for (name, megabytes) in &amount.buffers {
        one("bb", Some(name), 1002, *megabytes);
    }
    for (name, count) in &amount.gres {
        one("gres", Some(name), 1001, *count);
    }
}
