//! The environment of jobs and steps: the submitter's, with Slurm's variables and a `SPUR_` twin of each.
use std::collections::HashSet;
use std::fmt::Display;

use model::agent::Launch;
use model::resources::repeated;
use model::spec::{Distribution, Memory, OpenMode};
use model::step::{CpuBind, StepSpec};
use model::{JobKind, JobSpec, NodeShare, StepId, hostlist};

use super::gpu_environment::{self, gpus};
use super::het_environment;
use super::identity::Identity;
use super::{pmi, pmix};
use crate::protocol::Start;

/// Marks the processes of a run.
pub const TAG: &str = "SPUR_SUPERVISED";
/// Describe one job; those of an outer job, from which this one was submitted, must not shine through.
const OF_ONE_JOB: [&str; 28] = [
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_COUNT",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_ARRAY_TASK_MAX",
    "SLURM_ARRAY_TASK_MIN",
    "SLURM_ARRAY_TASK_STEP",
    "SLURM_CPUS_PER_TASK",
    "SLURM_GPUS_ON_NODE",
    "SLURM_JOB_ACCOUNT",
    "SLURM_JOB_GPUS",
    "SLURM_JOB_QOS",
    "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_NODE",
    "SLURM_NPROCS",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_OPEN_MODE",
    "SLURM_OVERCOMMIT",
    "SLURM_RESTART_COUNT",
    "SLURM_SHARDS_ON_NODE",
    "SLURM_STEPID",
    "SLURM_STEP_GPUS",
    "SLURM_STEP_ID",
    "SLURM_STEP_NODELIST",
    "SLURM_STEP_NUM_NODES",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_RESV_PORTS",
    "SLURM_STEP_TASKS_PER_NODE",
];
const PID_DIGITS: usize = 10;

/// Our own variables, in no order.
pub(super) struct Variables(Vec<(String, String)>);

impl Variables {
    pub(super) fn plain(&mut self, name: &str, value: impl Display) {
        self.0.push((name.to_owned(), value.to_string()));
    }

    /// `JOB_ID` gives `SLURM_JOB_ID` and `SPUR_JOB_ID`.
    pub(super) fn set(&mut self, name: &str, value: impl Display) {
        let value = value.to_string();
        self.0.push((format!("SPUR_{name}"), value.clone()));
        self.0.push((format!("SLURM_{name}"), value));
    }

    /// As `set`, in the place of what was set before.
    pub(super) fn replace(&mut self, name: &str, value: impl Display) {
        let is_it = |known: &str| known.strip_prefix("SLURM_").or(known.strip_prefix("SPUR_")) == Some(name);
        self.0.retain(|(known, _)| !is_it(known));
        self.set(name, value);
    }
}

/// All NUL-ended entries of one task in one piece, ready for execve.
pub struct Block {
    bytes: Vec<u8>,
    starts: Vec<usize>,
    /// Where the digits of the two SLURM_TASK_PID stand; known only to the task itself.
    pids: [usize; 2],
}

impl Block {
    pub fn pointers(&self) -> Vec<*const libc::c_char> {
        let entry = |start: &usize| self.bytes[*start..].as_ptr().cast();
        self.starts.iter().map(entry).chain([std::ptr::null()]).collect()
    }

    /// Writes the process id in; called by the task itself, so it must not allocate.
    pub fn set_pid(&mut self, pid: u32) {
        for start in self.pids {
            let mut digits = [0u8; PID_DIGITS];
            let (mut rest, mut count) = (pid, 0);
            while rest > 0 || count == 0 {
                digits[count] = b'0' + (rest % 10) as u8;
                rest /= 10;
                count += 1;
            }
            for index in 0..count {
                self.bytes[start + index] = digits[count - 1 - index];
            }
            self.bytes[start + count] = 0;
        }
    }

    pub fn add(&mut self, name: &str, value: &str) {
        push(self, name.as_bytes(), format!("={value}").as_bytes());
    }

    /// As `add`, in the place of what was there.
    pub fn replace(&mut self, name: &str, value: &str) {
        let is_it = |entry: &[u8]| entry.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="));
        self.starts.retain(|start| !is_it(entry_at(&self.bytes, *start)));
        self.add(name, value);
    }

    pub fn value(&self, name: &str) -> Option<&[u8]> {
        let entries = self.starts.iter().map(|start| entry_at(&self.bytes, *start));
        entries.filter_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")).next()
    }
}

fn entry_at(bytes: &[u8], start: usize) -> &[u8] {
    let rest = &bytes[start..];
    &rest[..rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len())]
}

/// The environment of the task with this place on the node.
pub fn build(start: &Start, identity: &Identity, local_id: u32) -> Block {
    let launch = &start.launch;
    let mut own = Variables(Vec::with_capacity(128));
    add_job(&mut own, start);
    if let Some(het) = &launch.het {
        het_environment::add(&mut own, het);
    }
    match launch.step {
        StepId::Batch => add_batch(&mut own, start),
        StepId::Number(step) => add_step(&mut own, start, step),
    }
    let rank = launch.rank(local_id);
    gpu_environment::add(&mut own, start, local_id);
    if let Some(whole) = launch.het.as_ref().and_then(|het| het.step.as_ref()) {
        het_environment::add_step(&mut own, whole);
    }
    own.set("PROCID", rank);
    own.set("LOCALID", local_id);
    own.plain(TAG, &start.tag);
    if let Some(file) = &start.config_file {
        own.plain("SPUR_CONF", file);
    }
    launch.buffer_environment.iter().filter_map(|entry| entry.split_once('=')).for_each(|(name, value)| {
        own.plain(name, value);
    });

    let mut taken: HashSet<&[u8]> = own.0.iter().map(|(name, _)| name.as_bytes()).collect();
    taken.insert(b"SLURM_TASK_PID");
    taken.insert(b"SPUR_TASK_PID");
    taken.extend(pmi::VARIABLES.iter().chain(&pmix::VARIABLES).map(|name| name.as_bytes()));
    // A step without GPUs must not find those of its job, whose environment it has.
    if launch.job_shares.iter().any(|share| !gpus(share).is_empty()) {
        taken.extend(gpu_environment::OF_A_STEP.iter().map(|name| name.as_bytes()));
    }
    let is_batch = launch.step == StepId::Batch;
    if is_batch {
        taken.extend(OF_ONE_JOB.iter().map(|name| name.as_bytes()));
    }
    let mut block =
        Block { bytes: Vec::with_capacity(launch.environment.len() + 8192), starts: Vec::new(), pids: [0; 2] };
    let mut has = [false; DEFAULTS.len()];
    for entry in launch.environment.split(|byte| *byte == 0) {
        let Some(name) = entry.split(|byte| *byte == b'=').next().filter(|name| name.len() < entry.len()) else {
            continue;
        };
        let is_of_another = is_stale_twin(name, is_batch) || (is_batch && het_environment::is_its_own(name));
        if taken.contains(name) || is_of_another || is_of_a_buffer(name) {
            continue;
        }
        if let Some(index) = DEFAULTS.iter().position(|default| default.as_bytes() == name) {
            has[index] = true;
        }
        push(&mut block, entry, b"");
        push_twin(&mut block, entry);
    }
    for (name, has) in DEFAULTS.into_iter().zip(has) {
        if !has && let Some(value) = default(name, start, identity) {
            let entry = format!("{name}={value}");
            push(&mut block, entry.as_bytes(), b"");
            push_twin(&mut block, entry.as_bytes());
        }
    }
    for (name, value) in &own.0 {
        push(&mut block, name.as_bytes(), format!("={value}").as_bytes());
    }
    for (index, name) in ["SLURM_TASK_PID=", "SPUR_TASK_PID="].into_iter().enumerate() {
        push(&mut block, name.as_bytes(), &[0; PID_DIGITS]);
        block.pids[index] = block.bytes.len() - 1 - PID_DIGITS;
    }
    block
}

/// A buffer is the business of one job: those of the submitter's own job do not pass.
fn is_of_a_buffer(name: &[u8]) -> bool {
    [&b"DW_JOB_"[..], b"DW_PERSISTENT_", b"SPUR_BB_"].iter().any(|head| name.starts_with(head))
}

/// Said by the client, and passed on.
const FROM_CLIENT: [&str; 5] =
    ["SLURM_SUBMIT_DIR", "SLURM_SUBMIT_HOST", "SLURM_PRIO_PROCESS", "SLURM_UMASK", "SLURM_NTASKS_PER_NODE"];

/// Set only where the submitter's environment leaves them open.
const DEFAULTS: [&str; 9] = [
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "SLURM_SUBMIT_DIR",
    "SLURM_SUBMIT_HOST",
    "SLURM_PRIO_PROCESS",
    "PATH",
];

fn default(name: &str, start: &Start, identity: &Identity) -> Option<String> {
    let spec = &start.launch.job_spec;
    let is_batch = start.launch.step == StepId::Batch;
    match name {
        "HOME" => Some(identity.home.clone()),
        "USER" | "LOGNAME" => Some(identity.user.clone()),
        "SHELL" => Some(identity.shell.clone()),
        "TMPDIR" => Some("/tmp".into()),
        "SLURM_SUBMIT_DIR" => Some(spec.work_dir.clone()),
        "SLURM_SUBMIT_HOST" => Some(spec.submit_host.clone()),
        "SLURM_PRIO_PROCESS" => Some("0".into()),
        // A step without PATH fails as with Slurm; a script needs one to be of any use.
        "PATH" if is_batch => Some("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into()),
        _ => None,
    }
}

/// The client's own words get their twin here, whatever twin came along.
fn push_twin(block: &mut Block, entry: &[u8]) {
    let is_clients = |name: &str| entry.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="));
    if FROM_CLIENT.iter().any(|name| is_clients(name)) {
        push(block, b"SPUR_", &entry[6..]);
    }
}

fn is_stale_twin(name: &[u8], is_batch: bool) -> bool {
    let Some(rest) = name.strip_prefix(b"SPUR_") else { return false };
    let outer = if is_batch { &OF_ONE_JOB[..] } else { &[] };
    FROM_CLIENT.iter().chain(outer).any(|own| &own.as_bytes()[6..] == rest)
}

fn push(block: &mut Block, head: &[u8], tail: &[u8]) {
    block.starts.push(block.bytes.len());
    block.bytes.extend_from_slice(head);
    block.bytes.extend_from_slice(tail);
    block.bytes.push(0);
}

fn add_job(own: &mut Variables, start: &Start) {
    let launch = &start.launch;
    let spec = &launch.job_spec;
    let nodes = node_list(&launch.job_shares);
    // The parts of a heterogeneous job know themselves by the whole's number; a step over parts of one job has no other.
    let id = launch.het.as_ref().map(|het| het.leader).filter(|leader| leader.0 > 0).unwrap_or(launch.job);
    own.set("JOB_ID", id);
    own.set("JOBID", id);
    own.set("JOB_NAME", &spec.name);
    own.set("JOB_USER", &spec.user);
    own.set("JOB_UID", spec.uid);
    own.set("JOB_GID", spec.gid);
    own.set("JOB_PARTITION", &launch.partition);
    if !launch.reservation.is_empty() {
        own.set("JOB_RESERVATION", &launch.reservation);
    }
    if !launch.job_spec.licenses.is_empty() {
        own.set("JOB_LICENSES", launch.job_spec.licenses.to_string());
    }
    own.set("JOB_NODELIST", &nodes);
    // Whoever reads along for both looks for the number first.
    own.set("JOB_NUM_NODES", launch.job_shares.len());
    own.set("NODELIST", &nodes);
    own.set("JOB_CPUS_PER_NODE", repeated(launch.job_shares.iter().map(NodeShare::n_working_cpus)));
    if !matches!(spec.kind, JobKind::Run(_)) {
        own.set("NODE_ALIASES", "(null)");
    }
    own.set("CLUSTER_NAME", &launch.cluster_name);
    let (address, pattern) = match launch.topology_address.as_str() {
        "" => (start.node.as_str(), "node"),
        address => (address, launch.topology_pattern.as_str()),
    };
    own.set("TOPOLOGY_ADDR", address);
    own.set("TOPOLOGY_ADDR_PATTERN", pattern);
    if spec.size.network.segment > 0 {
        own.set("JOB_SEGMENT_SIZE", spec.size.network.segment);
    }
    own.plain("SLURMD_NODENAME", &start.node);
    own.plain("SPURD_NODENAME", &start.node);
    if !spec.account.is_empty() {
        own.set("JOB_ACCOUNT", &spec.account);
    }
    if !spec.qos.is_empty() {
        own.set("JOB_QOS", &spec.qos);
    }
    if launch.restarts > 0 {
        own.set("RESTART_COUNT", launch.restarts);
    }
    if let Some(started) = launch.started {
        own.set("JOB_START_TIME", started.secs());
    }
    if let Some(ends) = launch.ends {
        own.set("JOB_END_TIME", ends.secs());
    }
    match spec.size.memory {
        Memory::PerNodeMb(size) => own.set("MEM_PER_NODE", size),
        Memory::PerCpuMb(size) => own.set("MEM_PER_CPU", size),
        Memory::PerGpuMb(size) => own.set("MEM_PER_GPU", size),
        Memory::Default | Memory::WholeNode => {}
    }
    if let Some(array) = &launch.array {
        own.set("ARRAY_JOB_ID", array.array);
        own.set("ARRAY_TASK_ID", array.task);
        own.set("ARRAY_TASK_COUNT", array.count);
        own.set("ARRAY_TASK_MIN", array.min);
        own.set("ARRAY_TASK_MAX", array.max);
        own.set("ARRAY_TASK_STEP", array.stride);
    }
    if let Some(share) = launch.job_shares.iter().find(|share| share.node == start.node) {
        let gpus = gpus(share);
        if !gpus.is_empty() {
            own.set("JOB_GPUS", joined(gpus.iter().copied()));
            own.set("GPUS_ON_NODE", gpus.len());
        }
    }
}

fn follows_from_tasks(job: &JobSpec) -> bool {
    let is_own = matches!(job.kind, JobKind::Run(_));
    !is_own || (job.size.n_tasks.is_some() && job.size.max_nodes.is_none())
}

/// As srun itself would say how tasks are bound and spread.
fn add_layout(own: &mut Variables, launch: &Launch, spec: &StepSpec, n_tasks: u32) {
    let n_nodes = launch.step_shares.len();
    let distribution = match spec.distribution {
        _ if !spec.hosts.is_empty() => Some("arbitrary"),
        _ if !spec.layout_words.is_empty() => Some(spec.layout_words.as_str()),
        Distribution::Plane(_) => Some("plane"),
        Distribution::Cyclic => Some("cyclic"),
        Distribution::Even => Some("block,nopack"),
        // Of a job of srun's own Slurm tells only what follows from a count of tasks alone.
        Distribution::Block if !follows_from_tasks(&launch.job_spec) => None,
        Distribution::Block if n_tasks as usize <= n_nodes => Some("cyclic"),
        Distribution::Block => Some("block"),
    };
    if let Some(distribution) = distribution {
        own.set("DISTRIBUTION", distribution);
    }
    if let Distribution::Plane(size) = spec.distribution {
        own.set("DIST_PLANESIZE", size);
    }
    let (kind, list) = match &spec.cpu_bind {
        CpuBind::None => return,
        CpuBind::Threads => ("threads", String::new()),
        CpuBind::Cores => ("cores", String::new()),
        CpuBind::Sockets => ("sockets", String::new()),
        CpuBind::Rank => ("rank", String::new()),
        CpuBind::Map(sets) => (
            "mask_cpu:",
            sets.iter()
                .map(|set| format!("0x{}", set.show_mask().trim_start_matches("0x")))
                .collect::<Vec<_>>()
                .join(","),
        ),
    };
    let loudness = if spec.tells_binding { "verbose" } else { "quiet" };
    own.set("CPU_BIND_VERBOSE", loudness);
    own.set("CPU_BIND_TYPE", kind);
    own.set("CPU_BIND_LIST", &list);
    own.set("CPU_BIND", format!("{loudness},{kind}{list}"));
}

fn add_batch(own: &mut Variables, start: &Start) {
    let launch = &start.launch;
    let spec = &launch.job_spec;
    let size = &spec.size;
    own.plain("ENVIRONMENT", "BATCH");
    own.plain("HOSTNAME", &start.node);
    own.set("NNODES", launch.job_shares.len());
    own.set("NODEID", 0);
    own.set("GTIDS", 0);
    own.set("TASKS_PER_NODE", repeated(launch.job_shares.iter().map(|share| share.n_tasks_told(size))));
    own.set(
        "CPUS_ON_NODE",
        launch.job_shares.iter().find(|share| share.node == start.node).map_or(1, NodeShare::n_working_cpus),
    );
    if size.n_tasks.is_some() || size.tasks_per_node.is_some() {
        let n_tasks = size.n_tasks_on(launch.job_shares.len() as u32);
        own.set("NTASKS", n_tasks);
        own.set("NPROCS", n_tasks);
    }
    if let Some(per_node) = size.tasks_per_node {
        own.set("NTASKS_PER_NODE", per_node);
    }
    if let Some(cpus) = size.cpus_per_task {
        own.set("CPUS_PER_TASK", cpus);
    }
    if size.overcommit {
        own.set("OVERCOMMIT", 1);
    }
    match spec.open_mode {
        OpenMode::Default => {}
        OpenMode::Append => own.set("OPEN_MODE", "a"),
        OpenMode::Truncate => own.set("OPEN_MODE", "t"),
    }
}

fn add_step(own: &mut Variables, start: &Start, step: u32) {
    let launch = &start.launch;
    let nodes = node_list(&launch.step_shares);
    let n_tasks = total_tasks(launch);
    let per_node = repeated(launch.step_shares.iter().map(|share| share.n_tasks));
    own.set("STEP_ID", step);
    own.set("STEPID", step);
    own.set("STEP_NODELIST", nodes);
    own.set("STEP_NUM_NODES", launch.step_shares.len());
    own.set("STEP_NUM_TASKS", n_tasks);
    own.set("STEP_TASKS_PER_NODE", &per_node);
    if !launch.ports.is_empty() {
        own.set("STEP_RESV_PORTS", &launch.ports);
    }
    own.set("TASKS_PER_NODE", &per_node);
    if !launch.step_spec.as_ref().is_some_and(|spec| spec.keeps_counts) {
        own.set("NTASKS", n_tasks);
        own.set("NPROCS", n_tasks);
        own.set("NNODES", launch.step_shares.len());
    }
    own.set("NODEID", launch.node_index);
    own.set("CPUS_ON_NODE", cpus_here(launch, &start.node));
    own.set("LAUNCH_NODE_IPADDR", "127.0.0.1");
    own.set("SRUN_COMM_HOST", "127.0.0.1");
    own.set("GTIDS", joined((0..tasks_here(launch)).map(|local_id| launch.rank(local_id))));
    if launch.het.is_none() && !matches!(launch.job_spec.kind, JobKind::Run(_)) {
        // An old name that 22.05 still gives to steps.
        own.set("JOB_CPUS_PER_NODE_PACK_GROUP_0", repeated(launch.job_shares.iter().map(NodeShare::n_working_cpus)));
    }
    if let Some(spec) = &launch.step_spec {
        add_layout(own, launch, spec, n_tasks);
    }
    if let Some(cpus) = launch.step_spec.as_ref().and_then(|spec| spec.cpus_per_task) {
        own.set("CPUS_PER_TASK", cpus);
    }
    if let Some(share) = launch.step_shares.get(launch.node_index as usize) {
        let gpus = gpus(share);
        if !gpus.is_empty() {
            own.replace("GPUS_ON_NODE", gpus.len());
            own.set("STEP_GPUS", joined(gpus.into_iter()));
        }
    }
}

/// Tasks of the step on this node; the batch script is one.
pub fn tasks_here(launch: &Launch) -> u32 {
    match launch.step {
        StepId::Batch => 1,
        StepId::Number(_) => match launch.step_shares.get(launch.node_index as usize) {
            Some(share) if share.n_tasks > 0 => share.n_tasks,
            _ => launch.n_tasks.max(1),
        },
    }
}

fn total_tasks(launch: &Launch) -> u32 {
    match launch.step_shares.iter().map(|share| share.n_tasks).sum() {
        0 => launch.n_tasks.max(1),
        sum => sum,
    }
}

fn cpus_here(launch: &Launch, node: &model::NodeName) -> u32 {
    let here = |shares: &[NodeShare]| shares.iter().find(|share| share.node == *node).map(|share| share.cpus.len());
    let of_step = here(&launch.step_shares).filter(|count| *count > 0);
    of_step.or_else(|| here(&launch.job_shares)).unwrap_or(1)
}

pub(super) fn node_list(shares: &[NodeShare]) -> String {
    // In the order of ranks, which is that of the network.
    hostlist::compress_in_order(shares.iter().map(|share| share.node.as_str()))
}

pub(super) fn joined(numbers: impl Iterator<Item = u32>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_run_length_coded() {
        assert_eq!(repeated([4, 1, 1].into_iter()), "4,1(x2)");
        assert_eq!(repeated([2, 2].into_iter()), "2(x2)");
        assert_eq!(repeated([3].into_iter()), "3");
    }

    fn started(launch: Launch) -> Start {
        Start {
            launch,
            node: "n1".into(),
            spool_dir: "/".into(),
            cgroup: None,
            group: String::new(),
            slot: 0,
            config_file: None,
            tag: "x".into(),
            unkillable_timeout: Default::default(),
        }
    }

    #[test]
    fn a_step_counts_its_own_gpus() {
        let share = |units: &[u32]| NodeShare {
            node: "n1".into(),
            gres: vec![model::gres::GresUnits {
                name: "gpu".into(),
                units: units.iter().copied().collect(),
                ..Default::default()
            }],
            ..NodeShare::default()
        };
        let launch = Launch {
            step: StepId::Number(0),
            job_shares: vec![share(&[0, 1])],
            step_shares: vec![share(&[1])],
            ..Launch::default()
        };
        let block = build(&started(launch), &Identity::default(), 0);
        let value = |name: &str| String::from_utf8(block.value(name).unwrap_or_default().to_vec()).unwrap();
        assert_eq!(value("SLURM_GPUS_ON_NODE") + "/" + &value("SLURM_JOB_GPUS"), "1/0,1");
        assert_eq!(value("SLURM_STEP_GPUS"), "1");
    }

    #[test]
    fn the_process_id_is_written_in_place() {
        let environment = b"A=1\0SLURM_NTASKS=9\0FOO=b=c\0".to_vec();
        let start = started(Launch { environment, ..Launch::default() });
        let mut block = build(&start, &Identity::default(), 0);
        block.set_pid(4_123_456_789);
        assert_eq!(block.value("SLURM_TASK_PID"), Some(&b"4123456789"[..]));
        block.set_pid(305);
        assert_eq!(block.value("SPUR_TASK_PID"), Some(&b"305"[..]));
        assert_eq!(block.value("FOO"), Some(&b"b=c"[..]));
        assert_eq!(block.value("SLURM_NTASKS"), None);
        assert_eq!(block.value("SPUR_JOB_ID"), Some(&b"0"[..]));
    }
}
