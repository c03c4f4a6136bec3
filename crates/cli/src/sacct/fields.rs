//! Every field of `--format`: its name, its usual width, and what it shows.
use model::duration;
use model::spec::{Memory, TimeLimit};

use super::row::{self, Part, Row, job_id, number};
use super::units;
use super::usage::{self, Of};

pub struct Field {
    pub name: &'static str,
    /// Negative: to the left.
    pub width: i32,
    pub show: fn(&Row) -> String,
    /// Part of `--helpformat` and of `ALL`; the others are of later Slurms.
    pub is_listed: bool,
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl std::fmt::Debug for Field {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str(self.name)
    }
}

const fn field(name: &'static str, width: i32, show: fn(&Row) -> String) -> Field {
    Field { name, width, show, is_listed: true }
}

const fn later(name: &'static str, width: i32, show: fn(&Row) -> String) -> Field {
    Field { name, width, show, is_listed: false }
}

/// Names that later Slurms gave to the same thing.
pub const OTHER_NAMES: &[(&str, &str)] =
    &[("Planned", "Reserved"), ("PlannedCPU", "ResvCPU"), ("PlannedCPURAW", "ResvCPURAW")];

/// In the order in which a name that was cut short is looked for.
pub static FIELDS: &[Field] = &[
    field("Account", 10, |row| row.job().account.clone()),
    field("AdminComment", 15, |row| row.of_job(&row.job().admin_comment)),
    field("AllocCPUS", 10, |row| number(row.n_cpus())),
    field("AllocNodes", 10, |row| number(row.held().n_nodes)),
    field("AllocTRES", 10, |row| tres(row, row.held())),
    field("AssocID", 7, |row| number(row::association(row.scene.accounts, row.job()))),
    field("AveCPU", 10, |row| usage::show_secs(row, |spread| spread.average())),
    field("AveCPUFreq", 10, |row| usage::show(row, |usage| &usage.rss_bytes, |_| 0)),
    field("AveDiskRead", 14, |row| usage::show_disk(row, |usage| &usage.read_bytes, |spread| spread.average())),
    field("AveDiskWrite", 14, |row| usage::show_disk(row, |usage| &usage.written_bytes, |spread| spread.average())),
    field("AvePages", 10, |row| usage::show(row, |usage| &usage.page_faults, |spread| spread.average())),
    field("AveRSS", 10, |row| usage::show(row, |usage| &usage.rss_bytes, |spread| spread.average())),
    field("AveVMSize", 10, |row| usage::show(row, |usage| &usage.vsize_bytes, |spread| spread.average())),
    field("BlockID", 16, |_| String::new()),
    field("Cluster", 10, |row| row.scene.config.cluster_name.clone()),
    field("Comment", 14, |row| row.of_job(&row.job().comment)),
    field("Constraints", 19, |row| row.of_job(&row.job().constraints)),
    field("ConsumedEnergy", 14, no_energy),
    field("ConsumedEnergyRaw", 17, no_energy),
    field("Container", 19, |_| String::new()),
    field("CPUTime", 10, |row| duration::show(cpu_secs(row))),
    field("CPUTimeRAW", 10, |row| number(cpu_secs(row))),
    field("DBIndex", -10, |row| number(row.job().job)),
    field("DerivedExitCode", 15, |row| row.of_job(&row.job().derived_exit.to_string())),
    field("Elapsed", 10, |row| duration::show(row.elapsed_secs())),
    field("ElapsedRaw", 10, |row| number(row.elapsed_secs())),
    field("Eligible", 19, |row| match row.part {
        Part::Job => row.time(row.job().eligible),
        Part::Step(_) | Part::Extern => row.time(row.started()),
    }),
    field("End", 19, |row| row.time(row.ended())),
    field("ExitCode", 8, |row| match row.part {
        Part::Job => row.job().exit.to_string(),
        Part::Step(step) => step.exit.to_string(),
        Part::Extern => "0:0".into(),
    }),
    field("Flags", 19, flags),
    field("GID", 6, |row| row.of_job(&number(row.job().gid))),
    field("Group", 9, |row| row.of_job(&row.job().group)),
    field("JobID", -12, |row| row.id(&job_id(row.job()))),
    field("JobIDRaw", -12, |row| row.id(&number(row.job().job))),
    field("JobName", 10, |row| row.name().to_string()),
    field("Layout", 9, |row| row.step().map(|step| step.layout.clone()).unwrap_or_default()),
    field("MaxDiskRead", 12, |row| usage::show_disk(row, |usage| &usage.read_bytes, |spread| spread.max)),
    field("MaxDiskReadNode", 15, |row| usage::node(row, |usage| &usage.read_bytes)),
    field("MaxDiskReadTask", 15, |row| usage::task(row, |usage| &usage.read_bytes)),
    field("MaxDiskWrite", 12, |row| usage::show_disk(row, |usage| &usage.written_bytes, |spread| spread.max)),
    field("MaxDiskWriteNode", 16, |row| usage::node(row, |usage| &usage.written_bytes)),
    field("MaxDiskWriteTask", 16, |row| usage::task(row, |usage| &usage.written_bytes)),
    field("MaxPages", 8, |row| usage::show(row, |usage| &usage.page_faults, |spread| spread.max)),
    field("MaxPagesNode", 12, |row| usage::node(row, |usage| &usage.page_faults)),
    field("MaxPagesTask", 14, |row| usage::task(row, |usage| &usage.page_faults)),
    field("MaxRSS", 10, |row| usage::show(row, |usage| &usage.rss_bytes, |spread| spread.max)),
    field("MaxRSSNode", 10, |row| usage::node(row, |usage| &usage.rss_bytes)),
    field("MaxRSSTask", 10, |row| usage::task(row, |usage| &usage.rss_bytes)),
    field("MaxVMSize", 10, |row| usage::show(row, |usage| &usage.vsize_bytes, |spread| spread.max)),
    field("MaxVMSizeNode", 14, |row| usage::node(row, |usage| &usage.vsize_bytes)),
    field("MaxVMSizeTask", 14, |row| usage::task(row, |usage| &usage.vsize_bytes)),
    field("McsLabel", 12, |_| String::new()),
    field("MinCPU", 10, |row| usage::show_secs(row, |spread| spread.min)),
    field("MinCPUNode", 10, |row| {
        usage::of_step(row, |usage| &usage.cpu_micros).map(|spread| spread.min_node.to_string()).unwrap_or_default()
    }),
    field("MinCPUTask", 10, |row| {
        usage::of_step(row, |usage| &usage.cpu_micros).map(|spread| number(spread.min_task)).unwrap_or_default()
    }),
    field("NCPUS", 10, |row| number(row.n_cpus())),
    field("NNodes", 8, |row| match row.held().n_nodes {
        0 => number(row.job().asked.n_nodes),
        n_nodes => number(n_nodes),
    }),
    field("NodeList", 15, |row| row.nodes().to_string()),
    field("NTasks", 8, |row| match row.part {
        Part::Job => String::new(),
        Part::Step(step) => number(step.held.n_tasks),
        Part::Extern => number(row.job().held.n_nodes),
    }),
    field("Partition", 10, |row| row.of_job(&row.job().partition)),
    field("Priority", 10, |row| row.of_job(&number(row.job().priority))),
    field("QOS", 10, |row| row.of_job(&row.job().qos)),
    field("QOSRAW", 6, |row| {
        let qos = row.scene.accounts.qos.get(&row.job().qos);
        row.of_job(&number(qos.map_or(0, |qos| qos.id)))
    }),
    field("Reason", 22, |row| row.of_job(&row.job().reason)),
    field("ReqCPUFreq", 10, frequency),
    field("ReqCPUFreqGov", 13, frequency),
    field("ReqCPUFreqMax", 13, frequency),
    field("ReqCPUFreqMin", 13, frequency),
    field("ReqCPUS", 8, |row| match row.part {
        Part::Job => number(row.job().asked.n_cpus),
        Part::Step(_) | Part::Extern => number(row.n_cpus()),
    }),
    field("ReqMem", 10, |row| row.of_job(&requested_memory(row))),
    field("ReqNodes", 8, |row| match row.part {
        Part::Job => number(row.job().asked.n_nodes),
        Part::Step(_) | Part::Extern => number(row.held().n_nodes),
    }),
    field("ReqTRES", 10, |row| row.of_job(&tres(row, &row.job().asked))),
    field("Reservation", 20, |row| row.of_job(&row.job().reservation)),
    field("ReservationId", 8, |_| String::new()),
    field("Reserved", 10, |row| row.of_job(&duration::show(waited_secs(row)))),
    field("ResvCPU", 10, |row| row.of_job(&duration::show(waited_secs(row) * u64::from(row.job().asked.n_cpus)))),
    field("ResvCPURAW", 10, |row| row.of_job(&number(waited_secs(row) * u64::from(row.job().asked.n_cpus)))),
    field("Start", 19, |row| match (row.started(), row.ended()) {
        // It ended while it waited.
        (None, Some(_)) => "None".into(),
        (started, _) => row.time(started),
    }),
    field("State", 10, |row| row.state_text()),
    field("Submit", 19, |row| match row.part {
        Part::Job => row.time(Some(row.job().submitted)),
        Part::Step(_) | Part::Extern => row.time(row.started()),
    }),
    field("SubmitLine", 20, |row| match row.part {
        Part::Job => row.job().command_line.clone(),
        Part::Step(step) => step.command_line.clone(),
        Part::Extern => String::new(),
    }),
    field("Suspended", 10, |row| duration::show(row.suspended_secs())),
    field("SystemComment", 15, |row| row.of_job(&row.job().system_comment)),
    field("SystemCPU", 10, |row| usage::cpu(row, |usage| usage.system_cpu)),
    field("Timelimit", 10, |row| row.of_job(&time_limit(row))),
    field("TimelimitRaw", 10, |row| match row.job().time_limit {
        Some(TimeLimit::Secs(secs)) => row.of_job(&number(secs.div_ceil(60))),
        Some(TimeLimit::Unlimited) => row.of_job("UNLIMITED"),
        None => row.of_job("Partition_Limit"),
    }),
    field("TotalCPU", 10, |row| usage::cpu(row, |usage| usage.total_cpu())),
    field("TRESUsageInAve", 14, |row| usage::tres_in(row, Of::Average)),
    field("TRESUsageInMax", 14, |row| usage::tres_in(row, Of::Max)),
    field("TRESUsageInMaxNode", 18, |row| usage::tres_in(row, Of::MaxNode)),
    field("TRESUsageInMaxTask", 18, |row| usage::tres_in(row, Of::MaxTask)),
    field("TRESUsageInMin", 14, |row| usage::tres_in(row, Of::Min)),
    field("TRESUsageInMinNode", 18, |row| usage::tres_in(row, Of::MinNode)),
    field("TRESUsageInMinTask", 18, |row| usage::tres_in(row, Of::MinTask)),
    field("TRESUsageInTot", 14, |row| usage::tres_in(row, Of::Total)),
    field("TRESUsageOutAve", 15, |row| usage::tres_out(row, Of::Average)),
    field("TRESUsageOutMax", 15, |row| usage::tres_out(row, Of::Max)),
    field("TRESUsageOutMaxNode", 19, |row| usage::tres_out(row, Of::MaxNode)),
    field("TRESUsageOutMaxTask", 19, |row| usage::tres_out(row, Of::MaxTask)),
    field("TRESUsageOutMin", 15, |row| usage::tres_out(row, Of::Min)),
    field("TRESUsageOutMinNode", 19, |row| usage::tres_out(row, Of::MinNode)),
    field("TRESUsageOutMinTask", 19, |row| usage::tres_out(row, Of::MinTask)),
    field("TRESUsageOutTot", 15, |row| usage::tres_out(row, Of::Total)),
    field("UID", 6, |row| row.of_job(&number(row.job().uid))),
    field("User", 9, |row| row.of_job(&row.job().user)),
    field("UserCPU", 10, |row| usage::cpu(row, |usage| usage.user_cpu)),
    field("WCKey", 10, |row| row.of_job(&row.job().wckey)),
    field("WCKeyID", 10, |row| row.of_job("0")),
    field("WorkDir", 20, |row| row.of_job(&row.job().work_dir)),
    later("Extra", 19, |_| String::new()),
    later("FailedNode", 20, |row| row.of_job(&model::hostlist::compress(&row.job().failed_nodes))),
    later("Licenses", 10, |row| row.of_job(&row.job().licenses)),
    later("QOSReq", 10, |row| row.of_job(&row.job().qos)),
    later("Restarts", 8, |row| row.of_job(&number(row.job().restarts))),
    later("SegmentSize", 11, |row| match row.job().segment {
        0 => String::new(),
        segment => row.of_job(&number(segment)),
    }),
    later("SLUID", 15, |row| number(row.job().job)),
    later("StdErr", 20, |row| row.of_job(&row.job().stderr)),
    later("StdIn", 20, |row| row.of_job(&row.job().stdin)),
    later("StdOut", 20, |row| row.of_job(&row.job().stdout)),
];

fn cpu_secs(row: &Row) -> u64 {
    row.elapsed_secs() * u64::from(row.n_cpus())
}

/// From being eligible until it started, ended, or now.
fn waited_secs(row: &Row) -> u64 {
    let job = row.job();
    let Some(eligible) = job.eligible else { return 0 };
    let until = job.started.or(job.ended).unwrap_or(row.scene.clock.now());
    until.secs().saturating_sub(eligible.secs())
}

fn time_limit(row: &Row) -> String {
    match row.job().time_limit {
        Some(TimeLimit::Secs(secs)) => duration::show(secs.div_ceil(60) * 60),
        Some(TimeLimit::Unlimited) => "UNLIMITED".into(),
        None => "Partition_Limit".into(),
    }
}

/// Nothing measures it.
fn no_energy(row: &Row) -> String {
    match row.part {
        Part::Job => "0".into(),
        Part::Step(_) | Part::Extern => usage::show(row, |usage| &usage.rss_bytes, |_| 0),
    }
}

/// Clock frequencies are never asked for.
fn frequency(row: &Row) -> String {
    match row.part {
        Part::Job | Part::Extern => "Unknown".into(),
        Part::Step(step) if step.step == model::StepId::Batch => "0".into(),
        Part::Step(_) => "Unknown".into(),
    }
}

fn flags(row: &Row) -> String {
    let job = row.job();
    match (row.is_job() && job.started.is_some(), job.was_backfilled) {
        (false, _) => String::new(),
        (true, true) => "SchedBackfill".into(),
        (true, false) => "SchedMain".into(),
    }
}

/// In all, as Slurm shows it since 21.08.
fn requested_memory(row: &Row) -> String {
    let job = row.job();
    let memory_mb = match (job.memory, job.asked.memory_mb) {
        // All memory of each node: known once it has some.
        (Memory::WholeNode | Memory::Default, 0) => job.held.memory_mb,
        (_, memory_mb) => memory_mb,
    };
    units::show(memory_mb, 2, row.scene.options.units)
}

/// `billing=1,cpu=1,gres/gpu=1,mem=100M,node=1`, by name.
pub fn tres(row: &Row, amount: &model::amount::Amount) -> String {
    if amount.is_nothing() {
        return String::new();
    }
    let mut parts = vec![format!("cpu={}", amount.n_cpus)];
    parts.extend(amount.gres.iter().map(|(name, count)| format!("gres/{name}={count}")));
    for (name, megabytes) in &amount.buffers {
        parts.push(format!("bb/{name}={}", units::show(*megabytes, 2, row.scene.options.units)));
    }
    if amount.memory_mb > 0 {
        parts.push(format!("mem={}", units::show(amount.memory_mb, 2, row.scene.options.units)));
    }
    parts.push(format!("node={}", amount.n_nodes));
    if row.is_job() {
        parts.push(format!("billing={}", amount.billing()));
    }
    parts.sort();
    parts.join(",")
}
