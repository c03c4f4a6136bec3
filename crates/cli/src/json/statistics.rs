//! What `sdiag --json` prints.
use model::diagnosis::{Calls, Diagnosis};

use super::{Json, Shape, object};

/// One look at the queue does what Slurm's main and backfill cycles do, so both count it.
pub fn statistics(shape: Shape, cluster: &str, all: &Diagnosis) -> String {
    object(shape, "sdiag", cluster, "statistics", |json| {
        let Diagnosis { cycles, jobs, .. } = all;
        let mean = |total: u64| total.checked_div(cycles.n_cycles).unwrap_or(0);
        let minutes = ((all.now - all.since).secs() / 60).max(1);
        json.field("parts_packed", 1_u32);
        json.number("req_time", Some(all.now.secs() as i64));
        json.number("req_time_start", Some(all.since.secs() as i64));
        json.field("server_thread_count", 1_u32);
        json.field("agent_queue_size", 0_u32);
        json.field("agent_count", all.n_agents);
        json.field("agent_thread_count", 0_u32);
        json.field("dbd_agent_queue_size", 0_u32);
        json.field("schedule_cycle_max", cycles.max_micros);
        json.field("schedule_cycle_last", cycles.last_micros);
        json.field("schedule_cycle_sum", cycles.total_micros);
        json.field("schedule_cycle_total", cycles.n_cycles);
        json.field("schedule_cycle_mean", mean(cycles.total_micros));
        json.field("schedule_cycle_mean_depth", mean(cycles.total_queue_length));
        json.field("schedule_cycle_per_minute", cycles.n_cycles / minutes);
        json.field("schedule_cycle_depth", cycles.total_queue_length);
        json.field("schedule_queue_length", cycles.last_queue_length);
        json.field("jobs_submitted", jobs.submitted);
        json.field("jobs_started", jobs.started);
        json.field("jobs_completed", jobs.completed);
        json.field("jobs_canceled", jobs.canceled);
        json.field("jobs_failed", jobs.failed);
        json.field("jobs_pending", all.n_pending);
        json.field("jobs_running", all.n_running);
        json.number("job_states_ts", Some(all.now.secs() as i64));
        json.field("bf_backfilled_jobs", cycles.n_backfilled_ever);
        json.field("bf_last_backfilled_jobs", cycles.n_backfilled);
        json.field("bf_cycle_counter", cycles.n_cycles);
        json.field("bf_cycle_mean", mean(cycles.total_micros));
        json.field("bf_cycle_sum", cycles.total_micros);
        json.field("bf_cycle_last", cycles.last_micros);
        json.field("bf_cycle_max", cycles.max_micros);
        // Every job in the queue is looked at, so depth and length are one.
        for name in ["bf_last_depth", "bf_last_depth_try"] {
            json.field(name, cycles.last_queue_length);
        }
        for name in ["bf_depth_sum", "bf_depth_try_sum"] {
            json.field(name, cycles.total_queue_length);
        }
        for name in ["bf_depth_mean", "bf_depth_mean_try"] {
            json.field(name, mean(cycles.total_queue_length));
        }
        json.field("bf_queue_len", cycles.last_queue_length);
        json.field("bf_queue_len_mean", mean(cycles.total_queue_length));
        json.field("bf_queue_len_sum", cycles.total_queue_length);
        json.number("bf_when_last_cycle", cycles.last_at.map(|at| at.secs() as i64));
        json.field("bf_active", false);
        // Calls are answered as they come: none waits in a queue, and none is dropped from it.
        let queue = ["queued", "dropped", "cycle_last", "cycle_max"];
        calls("rpcs_by_message_type", ["message_type", "type_id"], &queue, &all.by_call, json);
        calls("rpcs_by_user", ["user", "user_id"], &[], &all.by_user, json);
    })
}

fn calls(name: &str, [named, numbered]: [&str; 2], zeros: &[&str], list: &[Calls], json: &mut Json) {
    json.list_field(name, |json| {
        for one in list {
            json.object(|json| {
                json.field(named, &one.name);
                json.field(numbered, one.id);
                json.field("count", one.count);
                zeros.iter().for_each(|zero| json.field(zero, 0_u32));
                json.field("total_time", one.total_micros);
                json.number("average_time", one.total_micros.checked_div(one.count).map(|micros| micros as i64));
            });
        }
    });
}
