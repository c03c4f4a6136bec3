//! `scontrol show job` and `show step`.
use model::amount::Amount;
use model::cpu_freq::CpuFrequency;
use model::kept::Spared;
use model::resources::NodeShare;
use model::spec::{Memory, TimeLimit};
use model::step::AskedWords;
use model::{Phase, duration, hostlist, size};

use crate::job_view::JobView;
use crate::json::Shape;
use crate::squeue::steps::StepView;
use crate::staging_view::Total;

use super::record::{Style, close, or_null};

/// Appends one job.
pub fn write_job(view: &JobView, style: Style, out: &mut String) {
    let mut lines = Vec::with_capacity(32);
    identity(view, &mut lines);
    course(view, style, &mut lines);
    times(view, &mut lines);
    place(view, style, &mut lines);
    program(view, &mut lines);
    close(style, &lines, out);
}

fn identity(view: &JobView, lines: &mut Vec<String>) {
    let (job, spec) = (view.job, view.spec());
    let mut first = format!("JobId={} ", job.id);
    if let Some(array) = job.array_id() {
        let mut task = String::new();
        view.write_task(&mut task);
        first.push_str(&format!("ArrayJobId={array} ArrayTaskId={task} "));
        if let Some(limit) = spec.array.as_ref().and_then(|array| array.limit) {
            first.push_str(&format!("ArrayTaskThrottle={limit} "));
        }
    }
    if let Some(het) = &job.het {
        first.push_str(&format!("HetJobId={} HetJobOffset={} ", het.leader, het.offset));
    }
    lines.push(first + "JobName=" + &spec.name);
    if let Some(het) = &job.het {
        lines.push(format!("HetJobIdSet={}", het.id_set()));
    }
    let (user, group) = (named(&spec.user, spec.uid), named(&spec.group, spec.gid));
    let mcs_label = if spec.mcs_label.is_empty() { "N/A" } else { &spec.mcs_label };
    lines.push(format!("UserId={user} GroupId={group} MCS_label={mcs_label}"));
    lines.push(format!(
        "Priority={} Nice={} Account={} QOS={}{}",
        view.priority(),
        spec.nice,
        or_null(&spec.account),
        or_null(&spec.qos),
        if spec.wckey.is_empty() { String::new() } else { format!(" WCKey={}", spec.wckey) },
    ));
}

fn named(name: &str, number: u32) -> String {
    match name {
        "" => format!("{number}({number})"),
        name => format!("{name}({number})"),
    }
}

fn course(view: &JobView, style: Style, lines: &mut Vec<String>) {
    let (job, spec) = (view.job, view.spec());
    lines.push(format!(
        "JobState={} Reason={} Dependency={}",
        job.state().name(),
        view.reason().replace(char::is_whitespace, "_"),
        or_null(&view.dependency()),
    ));
    lines.push(format!(
        "Requeue={} Restarts={} BatchFlag={} Reboot={} ExitCode={}",
        u8::from(view.requeues()),
        job.restarts,
        u8::from(spec.is_batch()),
        u8::from(spec.wants_reboot),
        job.exit,
    ));
    if style.details {
        lines.push(format!("DerivedExitCode={}", job.derived_exit));
    }
}

fn times(view: &JobView, lines: &mut Vec<String>) {
    let (job, spec, clock) = (view.job, view.spec(), view.scene.clock);
    lines.push(format!(
        "RunTime={} TimeLimit={} TimeMin={}",
        duration::show(view.run_secs()),
        limit(view.time_limit()),
        spec.time_min.map_or("N/A".into(), limit),
    ));
    let eligible = clock.show_or(view.eligible(), "Unknown");
    lines.push(format!("SubmitTime={} EligibleTime={eligible}", clock.show(job.submitted)));
    lines.push(format!("AccrueTime={}", clock.show_or(job.accrue_time(), "Unknown")));
    lines.push(format!(
        "StartTime={} EndTime={} Deadline={}",
        clock.show_or(view.start_time(), "Unknown"),
        clock.show_or(view.end_time(), "Unknown"),
        clock.show_or(spec.deadline, "N/A"),
    ));
    let preemption = &view.scene.config.scheduler.preemption;
    if preemption.is_on() {
        let eligible = job.started.map(|started| started + preemption.exempt_time);
        lines.push(format!(
            "PreemptEligibleTime={} PreemptTime={}",
            clock.show_or(eligible, "Unknown"),
            clock.show_or(job.preempted_at, "None"),
        ));
    }
    lines.push(format!(
        "SuspendTime={} SecsPreSuspend={} LastSchedEval={} Scheduler=Main",
        clock.show_or(job.suspend_changed, "None"),
        job.run_before_suspend.secs(),
        clock.show(view.last_evaluated()),
    ));
    if !job.awaited_nodes.is_empty() {
        lines.push(format!("SuspendPending={}", hostlist::compress(&job.awaited_nodes)));
    }
}

fn limit(limit: TimeLimit) -> String {
    match limit {
        TimeLimit::Secs(secs) => duration::show(secs),
        TimeLimit::Unlimited => "UNLIMITED".into(),
    }
}

fn place(view: &JobView, style: Style, lines: &mut Vec<String>) {
    let (job, spec) = (view.job, view.spec());
    let size = &spec.size;
    let partition = match &spec.partitions[..] {
        many @ [_, _, ..] if job.phase == Phase::Pending => many.join(","),
        _ => job.partition.clone(),
    };
    lines.push(format!("Partition={partition} AllocNode:Sid={}:0", or_null(&spec.submit_host)));
    lines.push(format!(
        "ReqNodeList={} ExcNodeList={}",
        or_null(&hostlist::compress(size.listed_nodes())),
        or_null(&hostlist::compress(&size.excluded)),
    ));
    lines.push(match job.expected_nodes.as_str() {
        "" => format!("NodeList={}", view.node_list()),
        expected => format!("NodeList={} SchedNodeList={expected}", view.node_list()),
    });
    let host = view.batch_host().filter(|_| spec.is_batch()).map(|host| format!("BatchHost={host}"));
    let features = Some(&spec.batch_features).filter(|words| !words.is_empty());
    let batch = features.map(|words| format!("BatchFeatures={words}")).into_iter().chain(host);
    lines.extend(Some(batch.collect::<Vec<_>>().join(" ")).filter(|line| !line.is_empty()));
    let n_nodes = match size.max_nodes {
        Some(most) if !view.has_nodes() => format!("{}-{most}", view.n_nodes()),
        _ => view.n_nodes().to_string(),
    };
    lines.push(format!(
        "NumNodes={n_nodes} NumCPUs={} NumTasks={} CPUs/Task={} ReqB:S:C:T=0:0:{}:{}",
        view.n_cpus(),
        view.n_tasks(),
        size.n_cpus_per_task(),
        size.cores_per_socket.map_or("*".to_string(), |count| count.to_string()),
        size.threads_per_core.map_or("*".to_string(), |count| count.to_string()),
    ));
    lines.push(format!("TRES={}", view.tres()));
    let or_any = |count: Option<u32>| count.map_or("*".to_string(), |count| count.to_string());
    lines.push(format!(
        "Socks/Node={} NtasksPerN:B:S:C={}:0:{}:{} {}",
        or_any(size.sockets_per_node),
        size.tasks_per_node.unwrap_or(0),
        or_any(size.tasks_per_socket),
        or_any(size.tasks_per_core),
        match size.spared {
            None => "CoreSpec=*".to_string(),
            Some(Spared::Cores(count)) => format!("CoreSpec={count}"),
            Some(Spared::Threads(count)) => format!("ThreadSpec={count}"),
        },
    ));
    if style.details && view.has_nodes() {
        details(view, lines);
    }
    let memory = match view.memory() {
        Memory::PerCpuMb(megabytes) => format!("MinMemoryCPU={}", size::show_megabytes(megabytes)),
        Memory::PerNodeMb(megabytes) => format!("MinMemoryNode={}", size::show_megabytes(megabytes)),
        Memory::PerGpuMb(_) | Memory::Default | Memory::WholeNode => "MinMemoryNode=0".into(),
    };
    lines.push(format!(
        "MinCPUsNode={} {memory} MinTmpDiskNode={}",
        view.min_cpus_per_node(),
        size::show_megabytes(size.tmp_disk_mb),
    ));
    lines.push(format!(
        "Features={} DelayBoot={}",
        or_null(&size.features),
        duration::show(view.spec().delay_boot.secs())
    ));
    let asked = [("Prefer", size.preferred.clone()), ("Reservation", view.reservation())];
    for (what, words) in asked.into_iter().filter(|(_, words)| !words.is_empty()) {
        lines.push(format!("{what}={words}"));
    }
    lines.push(format!(
        "OverSubscribe={} Contiguous={} Licenses={} Network=(null)",
        view.oversubscribe(),
        u8::from(size.contiguous),
        or_null(&view.spec().licenses.to_string()),
    ));
    network(view, lines);
}

/// What it asks of the network.
fn network(view: &JobView, lines: &mut Vec<String>) {
    let wish = &view.spec().size.network;
    if wish.segment > 0 {
        let spread = if wish.spreads_segments { " SpreadSegments=Yes" } else { "" };
        let together = if wish.consolidates_segments { " ConsolidateSegments=Yes" } else { "" };
        lines.push(format!("SegmentSize={}{spread}{together}", wish.segment));
    }
}

/// What it holds on each node; nodes that are alike share a line.
fn details(view: &JobView, lines: &mut Vec<String>) {
    let shares = &view.job.allocation.nodes;
    let held = |share: &NodeShare| {
        let node = view.scene.config.nodes.iter().find(|node| node.name == share.node);
        let has_files = |name: &str| {
            node.is_some_and(|node| node.config.gres.iter().any(|own| own.name == name && !own.files.is_empty()))
        };
        let units = |gres: &model::gres::GresUnits| match gres.name == "gpu" || has_files(&gres.name) {
            _ if gres.device.is_some() => format!("{gres}(IDX:{})", gres.device.unwrap_or_default()),
            true => format!("{gres}(IDX:{})", gres.units),
            false if gres.kind.is_empty() => format!("{}(CNT:{})", gres.name, gres.units.len()),
            false => format!("{}:{}(CNT:{})", gres.name, gres.kind, gres.units.len()),
        };
        share.gres.iter().map(units).collect::<Vec<_>>().join(",")
    };
    let total: Vec<String> = devices(shares).iter().map(|(name, count)| format!("{name}:{count}")).collect();
    lines.push(format!("JOB_GRES={}", or_null(&total.join(","))));
    let mut alike: Vec<(String, Vec<&str>)> = Vec::new();
    for share in shares {
        let text = format!("CPU_IDs={} Mem={} GRES={}", share.cpus, share.memory_mb, held(share));
        match alike.last_mut() {
            Some((known, names)) if *known == text => names.push(share.node.as_str()),
            _ => alike.push((text, vec![share.node.as_str()])),
        }
    }
    lines.extend(alike.iter().map(|(text, names)| format!("  Nodes={} {text}", hostlist::compress(names))));
}

/// Devices of all nodes, by name and type.
fn devices(shares: &[NodeShare]) -> Vec<(String, u32)> {
    let mut totals: Vec<(String, u32)> = Vec::new();
    for gres in shares.iter().flat_map(|share| &share.gres) {
        let name = if gres.kind.is_empty() { gres.name.clone() } else { format!("{}:{}", gres.name, gres.kind) };
        match totals.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += gres.units.len(),
            None => totals.push((name, gres.units.len())),
        }
    }
    totals
}

fn program(view: &JobView, lines: &mut Vec<String>) {
    let spec = view.spec();
    lines.push(format!("Command={}", or_null(&view.command())));
    lines.push(format!("WorkDir={}", spec.work_dir));
    if !spec.comment.is_empty() {
        lines.push(format!("Comment={} ", spec.comment));
    }
    if !view.job.admin_comment.is_empty() {
        lines.push(format!("AdminComment={} ", view.job.admin_comment));
    }
    if !view.job.remarks.is_empty() {
        lines.push(format!("SystemComment={} ", view.system_comment()));
    }
    if spec.is_batch() {
        lines.push(format!("StdErr={}", view.plainly_filled(&view.stderr())));
        lines.push(format!("StdIn={}", view.plainly_filled(&view.stdin())));
        lines.push(format!("StdOut={}", view.plainly_filled(&view.stdout())));
    }
    if let Some(wait) = view.switch_wait() {
        lines.push(format!("Switches={}@{}", spec.size.network.n_switches, duration::show(wait.secs())));
    }
    if let Some(request) = &spec.buffer {
        lines.push(format!("BurstBuffer={}", request.text));
    }
    if let Some(state) = view.job.buffer_state() {
        lines.push(format!("BurstBufferState={}", state.word()));
    }
    if let Some(progress) = Total::of(view.job, view.scene.progress) {
        lines.push(format!("BurstBufferProgress={}", progress.show()));
    }
    lines.push(format!("Power={}", spec.power_words));
    let asked = [
        ("CpusPerTres", view.cpus_per_tres()),
        ("MemPerTres", view.memory_per_tres()),
        ("TresBind", view.tres_bind()),
        ("TresFreq", view.tres_freq()),
        ("TresPerJob", view.tres_per_job()),
        ("TresPerNode", view.tres_per_node()),
        ("TresPerSocket", spec.tres_words.per_socket.clone()),
        ("TresPerTask", view.tres_per_task()),
    ];
    for (what, words) in asked.into_iter().filter(|(_, words)| !words.is_empty()) {
        lines.push(format!("{what}={words}"));
    }
    if let Some(mail) = spec.mail.as_ref().filter(|mail| !mail.kinds.is_empty()) {
        let own = || view.scene.config.jobs.address(&spec.user);
        let to = if mail.to.is_empty() { own() } else { mail.to.clone() };
        lines.push(format!("MailUser={to} MailType={}", mail.words()));
    }
    lines.push(String::new());
}

fn distribution(step: &model::Step) -> &'static str {
    use model::spec::Distribution;
    match step.spec.distribution {
        _ if !step.spec.hosts.is_empty() => " Dist=Arbitrary",
        Distribution::Block | Distribution::Even => " Dist=Block",
        Distribution::Cyclic => " Dist=Cyclic",
        Distribution::Plane(_) => " Dist=Plane",
    }
}

fn frequency(asked: &CpuFrequency) -> String {
    let named = [("CPU_min_freq", &asked.min), ("CPU_max_freq", &asked.max), ("CPU_governor", &asked.governor)];
    let words: String =
        named.iter().filter(|(_, word)| !word.is_empty()).map(|(name, word)| format!("{name}={word} ")).collect();
    if words.is_empty() { "CPUFreqReq=Default".to_string() } else { words }
}

/// What a step said of its GPUs, if anything.
fn asked(words: &AskedWords) -> impl Iterator<Item = String> {
    let named = [
        ("CpusPerTres", &words.cpus_per_tres),
        ("MemPerTres", &words.mem_per_tres),
        ("TresBind", &words.bind),
        ("TresFreq", &words.freq),
        ("TresPerStep", &words.per_step),
        ("TresPerNode", &words.per_node),
        ("TresPerSocket", &words.per_socket),
        ("TresPerTask", &words.per_task),
    ];
    named.into_iter().filter(|(_, words)| !words.is_empty()).map(|(name, words)| format!("{name}={words}"))
}

/// Appends one step.
/// What a step holds; nothing of a script's own.
fn step_tres(view: &StepView) -> String {
    let Some(step) = view.step else { return String::new() };
    let memory: u64 = step.shares.iter().map(|share| share.memory_mb).sum();
    let memory = if memory > 0 { format!(",mem={}", size::show_megabytes(memory)) } else { String::new() };
    let gres = Amount::of_shares(&step.shares).gres;
    let gres: String = gres.iter().map(|(name, count)| format!(",gres/{name}={count}")).collect();
    format!("cpu={}{memory},node={}{gres}", view.n_cpus(), view.n_nodes())
}

/// The same steps as a document.
pub fn step_document(shape: Shape, cluster: &str, views: &[StepView]) -> String {
    crate::json::document(shape, "scontrol", cluster, "steps", |json| {
        for view in views {
            let distribution = view.step.map_or("", |step| distribution(step)).rsplit('=').next().unwrap_or_default();
            json.object(|json| crate::json::step::write(view, &step_tres(view), distribution, json));
        }
    })
}

pub fn write_step(view: &StepView, style: Style, out: &mut String) {
    let clock = view.job.scene.clock;
    let started = view.step.map_or(view.job.job.started, |step| step.started);
    let (n_cpus, n_tasks) = view.step.map_or((0, 1), |step| (view.n_cpus(), step.n_tasks));
    let tres = step_tres(view);
    let (distribution, host) = match view.step {
        Some(step) => (distribution(step), format!("{}:0", or_null(&step.spec.submit_host))),
        None => ("", "(null):0".to_string()),
    };
    let mut lines = vec![
        format!(
            "StepId={} UserId={} StartTime={} TimeLimit={}",
            view.full_id(),
            view.job.spec().uid,
            clock.show_or(started, "Unknown"),
            limit(view.step.and_then(|step| step.spec.time_limit).unwrap_or(TimeLimit::Unlimited)),
        ),
        format!("State={} Partition={} NodeList={}", view.state(), view.job.job.partition, view.nodes()),
        format!("Nodes={} CPUs={n_cpus} Tasks={n_tasks} Name={} Network=(null)", view.n_nodes(), view.name()),
        format!("TRES={}", or_null(&tres)),
        format!("ResvPorts={}", or_null(&view.step.map(|step| step.port_list()).unwrap_or_default())),
        format!(
            "{}{distribution}",
            view.step.map_or("CPUFreqReq=Default".into(), |step| frequency(&step.spec.cpu_freq))
        ),
        format!("SrunHost:Pid={host}"),
    ];
    lines.extend(view.step.into_iter().flat_map(|step| asked(&step.spec.asked)));
    close(style, &lines, out);
}
