//! What a script sees of a job: a table of Slurm's names, taken just before the call.
use model::job_state::JobState;
use model::spec::{Memory, Sharing, TimeLimit};
use model::{Job, Timestamp, hostlist};
use serde_json::{Map, Value, json};
use state::Cluster;

use super::{job_wishes, mail};

const NO_VALUE: u64 = 4_294_967_294;
const NO_SHORT_VALUE: u64 = 65_534;
const INFINITE: u64 = 4_294_967_295;

/// Names that are not there are nil for the script.
pub fn of(cluster: &Cluster, job: &Job) -> Value {
    let mut info = Map::new();
    who(&mut info, cluster, job);
    when(&mut info, cluster, job);
    how_much(&mut info, job);
    where_to(&mut info, cluster, job);
    job_wishes::tell(&mut info, cluster, job);
    Value::Object(info)
}

fn who(info: &mut Map<String, Value>, cluster: &Cluster, job: &Job) {
    let spec = &job.spec;
    let mut set = |name: &str, value: Value| drop(info.insert(name.into(), value));
    set("job_id", json!(job.id.0));
    set("user_id", json!(spec.uid));
    set("group_id", json!(spec.gid));
    set("assoc_id", json!(job.association));
    set("cluster", json!(cluster.config().cluster_name));
    set("batch_flag", json!(u8::from(spec.is_batch())));
    set("array_job_id", json!(job.array_id().map_or(0, |array| array.0)));
    set("array_task_id", json!(job.array_task().map_or(NO_VALUE, u64::from)));
    set("array_max_tasks", json!(spec.array.as_ref().and_then(|array| array.limit).unwrap_or(0)));
    set("het_job_id", json!(job.het.as_ref().map_or(0, |het| het.leader.0)));
    set("het_job_offset", json!(job.het.as_ref().map_or(0, |het| het.offset)));
    set("restart_cnt", json!(job.restarts));
    set("requeue", json!(u8::from(spec.requeue.unwrap_or(true))));
    set("priority", json!(if job.held.is_some() { 0 } else { job.priority }));
    set("nice", json!(i64::from(spec.nice) + 2_147_483_648));
    set("site_factor", json!(i64::from(job.site_factor) + 2_147_483_648));
    set("job_state", json!(state_code(job)));
    set("state_reason", json!(job.reason.map_or(0, super::reason_codes::of)));
    set("exit_code", json!(wait_status(job.exit)));
    set("derived_ec", json!(wait_status(job.derived_exit)));
    set("mail_type", json!(spec.mail.as_ref().map_or(0, mail::bits)));
    set("burst_buffer_state", json!(job.buffer_state().map(|state| state.word())));
    let command = std::iter::once(&spec.command).chain(&spec.arguments).map(String::as_str).collect::<Vec<_>>();
    let remarks: Vec<&str> = job.remarks.iter().map(|remark| remark.text.as_str()).collect();
    for (name, text) in [
        ("name", spec.name.as_str()),
        ("user_name", &spec.user),
        ("account", &spec.account),
        ("qos", &spec.qos),
        ("wckey", &spec.wckey),
        ("comment", &spec.comment),
        ("command", command.join(" ").trim()),
        ("state_desc", &job.reason_text),
        ("system_comment", &remarks.join("\n")),
        ("mail_user", spec.mail.as_ref().map_or("", |mail| mail.to.as_str())),
        ("burst_buffer", spec.buffer.as_ref().map_or("", |request| request.text.as_str())),
        ("resv_name", &job.reservation),
        ("alloc_node", &spec.submit_host),
    ] {
        if !text.is_empty() {
            set(name, json!(text));
        }
    }
}

fn when(info: &mut Map<String, Value>, cluster: &Cluster, job: &Job) {
    let at = |time: Option<Timestamp>| json!(time.map_or(0, |time| time.secs()));
    let mut set = |name: &str, value: Value| drop(info.insert(name.into(), value));
    set("submit_time", at(Some(job.submitted)));
    set("eligible_time", at(job.eligible));
    set("accrue_time", at(job.accrue_time()));
    set("start_time", at(job.started.or(job.expected_start)));
    set("end_time", at(job.end_time()));
    set("deadline", at(job.spec.deadline));
    set("last_sched_eval", at(job.last_evaluated));
    set("suspend_time", at(job.suspend_changed));
    set("pre_sus_time", json!(job.run_before_suspend.secs()));
    set("runtime", json!(job.run_time(cluster.now()).secs()));
    set("preempt_time", json!(0));
    set("resize_time", json!(0));
    set("time_limit", json!(minutes(job.spec.time_limit)));
    set("time_min", json!(job.spec.time_min.map_or(0, |limit| minutes(Some(limit)))));
}

fn how_much(info: &mut Map<String, Value>, job: &Job) {
    let size = &job.spec.size;
    let n_nodes = match job.allocation.nodes.len() as u32 {
        0 => size.min_nodes.max(1),
        held => held,
    };
    let n_tasks = size.n_tasks_on(n_nodes);
    let n_cpus: u32 = job.allocation.nodes.iter().map(|share| share.cpus.len()).sum();
    let n_cpus = if n_cpus > 0 { n_cpus } else { n_tasks * size.cpus_per_task.unwrap_or(1) };
    let short = |count: Option<u32>| json!(count.map_or(NO_SHORT_VALUE, u64::from));
    let mut set = |name: &str, value: Value| drop(info.insert(name.into(), value));
    set("num_nodes", json!(n_nodes));
    set("max_nodes", json!(size.max_nodes.unwrap_or(0)));
    set("num_tasks", json!(n_tasks));
    set("num_cpus", json!(n_cpus));
    set("max_cpus", json!(0));
    set("cpus_per_task", json!(size.cpus_per_task.unwrap_or(1)));
    set("ntasks_per_node", json!(size.tasks_per_node.unwrap_or(0)));
    set("ntasks_per_socket", short(size.tasks_per_socket));
    set("ntasks_per_core", short(size.tasks_per_core));
    set("ntasks_per_board", json!(0));
    set("sockets_per_node", short(size.sockets_per_node));
    set("cores_per_socket", short(size.cores_per_socket));
    set("threads_per_core", short(size.threads_per_core));
    set("pn_min_cpus", json!(size.min_cpus_per_node.unwrap_or(1)));
    set("pn_min_tmp_disk", json!(size.tmp_disk_mb));
    set("contiguous", json!(u8::from(size.contiguous)));
    set("exclusive", json!(u8::from(size.sharing == Sharing::WholeNodes)));
    set("req_switch", json!(size.network.n_switches));
    set("wait4switch", json!(size.network.switch_wait.map_or(0, |wait| wait.secs())));
    match size.memory {
        Memory::PerNodeMb(megabytes) => set("min_mem_per_node", json!(megabytes)),
        Memory::PerCpuMb(megabytes) => set("min_mem_per_cpu", json!(megabytes)),
        Memory::Default | Memory::WholeNode | Memory::PerGpuMb(_) => set("min_mem_per_node", json!(0)),
    }
    if !size.gres.is_empty() {
        let wanted: Vec<String> = size.gres.iter().map(|gres| format!("gres/{gres}")).collect();
        set("tres_per_node", json!(wanted.join(",")));
    }
    if !size.features.is_empty() {
        set("features", json!(size.features));
    }
    // Only a job that holds some has details, one text a node.
    let details: Vec<String> =
        job.allocation.nodes.iter().filter(|share| !share.gres.is_empty()).map(gres_text).collect();
    set("gres_detail_cnt", json!(details.len()));
    if !details.is_empty() {
        set("gres_detail_str", json!(details));
    }
}

fn gres_text(share: &model::resources::NodeShare) -> String {
    let one = |held: &model::gres::GresUnits| {
        let devices = held.device.map_or_else(|| held.units.to_string(), |device| device.to_string());
        format!("{}:{}(IDX:{devices})", held.name, held.units.len())
    };
    share.gres.iter().map(one).collect::<Vec<_>>().join(",")
}

fn where_to(info: &mut Map<String, Value>, cluster: &Cluster, job: &Job) {
    let spec = &job.spec;
    let nodes = hostlist::compress(job.allocation.names().map(|name| name.as_str()));
    let partition = match job.partition.as_str() {
        "" => spec.partitions.join(","),
        one => one.to_owned(),
    };
    let wanted = hostlist::compress(spec.size.listed_nodes().iter().map(|name| name.as_str()));
    let excluded = hostlist::compress(spec.size.excluded.iter().map(|name| name.as_str()));
    let batch_host = job.script_node().filter(|_| spec.is_batch()).map(|name| name.to_string());
    let batch_host = batch_host.unwrap_or_default();
    let default = if spec.is_batch() { format!("{}/slurm-{}.out", spec.work_dir, job.id) } else { String::new() };
    let file = |pattern: &Option<String>, usual: &str| pattern.clone().unwrap_or_else(|| usual.to_owned());
    let std_out = file(&spec.stdout, &default);
    let licenses: Vec<String> =
        job.licenses.iter().map(|license| format!("{}:{}", license.name, license.count)).collect();
    let default_partition = cluster.config().default_partition().map(|partition| partition.name.clone());
    for (name, text) in [
        ("nodes", nodes),
        ("partition", if partition.is_empty() { default_partition.unwrap_or_default() } else { partition }),
        ("req_nodes", wanted),
        ("exc_nodes", excluded),
        ("sched_nodes", job.expected_nodes.clone()),
        ("batch_host", batch_host),
        ("work_dir", spec.work_dir.clone()),
        ("std_in", file(&spec.stdin, "/dev/null")),
        ("std_err", spec.stderr.clone().unwrap_or_else(|| std_out.clone())),
        ("std_out", std_out),
        ("licenses", licenses.join(",")),
    ] {
        if !text.is_empty() {
            info.insert(name.into(), json!(text));
        }
    }
}

fn minutes(limit: Option<TimeLimit>) -> u64 {
    match limit {
        None => NO_VALUE,
        Some(limit) => limit.span().map_or(INFINITE, |span| span.secs().div_ceil(60)),
    }
}

fn wait_status(exit: model::ExitStatus) -> u32 {
    (u32::from(exit.code) << 8) | u32::from(exit.signal)
}

/// The base state, and the flags above it.
fn state_code(job: &Job) -> u32 {
    let base = match job.base_state() {
        JobState::Pending => 0,
        JobState::Running => 1,
        JobState::Suspended => 2,
        JobState::Completed => 3,
        JobState::Cancelled => 4,
        JobState::Failed => 5,
        JobState::Timeout => 6,
        JobState::NodeFail => 7,
        JobState::Preempted => 8,
        JobState::BootFail => 9,
        JobState::Deadline => 10,
        JobState::OutOfMemory => 11,
        _ => 0,
    };
    let flag = match job.state() {
        JobState::Configuring => 0x4000,
        JobState::Completing => 0x8000,
        JobState::StageOut => 0x80_0000,
        _ => 0,
    };
    base | flag
}
