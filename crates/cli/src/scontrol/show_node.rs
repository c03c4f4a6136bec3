//! `scontrol show node` and `show partition`.
use model::config::Config;
use model::duration;
use model::hostlist;
use model::node::NodeConfig;
use model::request::NodeView;
use model::spec::TimeLimit;
use model::{Node, Partition};
use topology::Network;

use crate::node_view::{self, Memberships};
use crate::users::Names;
use crate::version;
use crate::zone::Clock;

use super::record::{Style, close, or_null, yes};

/// Appends one node.
pub fn write_node(
    view: &NodeView,
    memberships: &Memberships,
    network: &Network,
    clock: &Clock,
    style: Style,
    out: &mut String,
) {
    let node = &view.node;
    let (sockets, cores, threads) = node_view::sockets(view);
    let (features, active) = (node.config.features.join(","), node.features().join(","));
    let used = node.used.cpus.len();
    let partitions = memberships.partitions(&node.name);
    let mut lines = vec![
        match node.machine.architecture.as_str() {
            "" => format!("NodeName={} CoresPerSocket={cores} ", node.name),
            architecture => format!("NodeName={} Arch={architecture} CoresPerSocket={cores} ", node.name),
        },
        format!(
            "CPUAlloc={used} CPUEfctv={} CPUTot={} CPULoad={}",
            node.config.cpus,
            node.config.all_cpus(),
            node_view::cpu_load(view)
        ),
        format!("AvailableFeatures={}", or_null(&features)),
        format!("ActiveFeatures={}", or_null(&active)),
        format!("Gres={}", or_null(&node_view::gres(view))),
    ];
    if style.details {
        lines.push("GresDrain=N/A".into());
        lines.push(format!("GresUsed={}", or_null(&node_view::gres_used(view))));
    }
    let registered = !node.machine.version.is_empty();
    let version = if registered { format!(" Version={}", version::SLURM) } else { String::new() };
    lines.push(format!(
        "NodeAddr={} NodeHostName={} Port={}{version}",
        node_view::address(view),
        node_view::host(view),
        node_view::port(view)
    ));
    if !node.machine.system.is_empty() {
        lines.push(format!("OS={} ", node.machine.system));
    }
    lines.push(format!(
        "RealMemory={} AllocMem={} FreeMem={} Sockets={sockets} Boards=1",
        node.config.all_memory_mb(),
        node.used.memory_mb,
        node_view::free_memory(view),
    ));
    lines.extend(kept_from_jobs(&node.config));
    lines.push(format!(
        "State={} ThreadsPerCore={threads} TmpDisk={} Weight={} Owner=N/A MCS_label=N/A",
        view.state().long(),
        node.config.tmp_disk_mb,
        node.config.weight,
    ));
    if let Some(next) = node.reboot.as_ref().and_then(|reboot| reboot.next) {
        lines.push(format!("NextState={}", next.word()));
    }
    if !partitions.is_empty() {
        lines.push(format!("Partitions={} ", partitions.join(",")));
    }
    lines.push(format!(
        "BootTime={} SlurmdStartTime={}",
        clock.show_or(node.machine.booted, "None"),
        clock.show_or(node.machine.agent_started, "None"),
    ));
    lines.push(format!("LastBusyTime={}", clock.show_or(node.last_busy, "Unknown")));
    lines.push(format!("CfgTRES={}", node_view::configured_tres(view, memberships)));
    lines.push(format!("AllocTRES={}", node_view::used_tres(view)));
    lines.push("CapWatts=n/a".into());
    lines.push("CurrentWatts=0 AveWatts=0".into());
    lines.push("ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s".into());
    if !node.comment.is_empty() {
        lines.push(format!("Comment={}", node.comment));
    }
    if !node.extra.is_empty() {
        lines.push(format!("Extra={}", node.extra));
    }
    if !node.instance_id.is_empty() || !node.instance_type.is_empty() {
        let shown = |text: &str| if text.is_empty() { "(null)".to_string() } else { text.to_string() };
        let (id, kind) = (shown(&node.instance_id), shown(&node.instance_type));
        lines.push(format!("InstanceId={id} InstanceType={kind}"));
    }
    if !view.reservation.is_empty() {
        lines.push(format!("ReservationName={}", view.reservation));
    }
    if let Some(reason) = &node.reason {
        let user = Names::default().user(reason.by_uid);
        lines.push(format!("Reason={} [{user}@{}]", reason.text, clock.show(reason.at)));
    }
    let place = network.place(node.name.as_str());
    if !place.is_empty() {
        lines.push(format!("Topology={place}"));
    }
    close(style, &lines, out);
}

/// What is kept for the system itself, where something is.
fn kept_from_jobs(config: &NodeConfig) -> Option<String> {
    let cores = (config.kept_cores > 0).then(|| format!("CoreSpecCount={} ", config.kept_cores));
    let cpus = (!config.kept_cpus.is_empty()).then(|| format!("CPUSpecList={} ", config.kept_cpus));
    let memory = (config.kept_memory_mb > 0).then(|| format!("MemSpecLimit={}", config.kept_memory_mb));
    let parts: Vec<String> = [cores, cpus, memory].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.concat())
}

/// Nodes as they were configured, for whoever may see no more of them.
pub fn as_configured(config: &Config) -> Vec<NodeView> {
    let of = |node: &model::config::NamedNode| {
        let node = Node { name: node.name.clone(), config: node.config.clone(), ..Default::default() };
        NodeView { node, ..Default::default() }
    };
    config.nodes.iter().map(of).collect()
}

/// Appends one partition; `nodes` are all the cluster's.
pub fn write_partition(partition: &Partition, nodes: &[NodeView], config: &Config, style: Style, out: &mut String) {
    let own = node_view::named(nodes, &partition.nodes);
    let n_cpus: u32 = own.iter().map(|node| node.node.config.cpus).sum();
    let n_nodes = partition.nodes.len();
    let all_or = |names: &[String]| if names.is_empty() { "ALL".to_string() } else { names.join(",") };
    // The denied are shown where nobody in particular is allowed.
    let access = |allowed: &[String], denied: &[String], what: &str| match (allowed.is_empty(), denied.is_empty()) {
        (true, false) => format!("Deny{what}={}", denied.join(",")),
        _ => format!("Allow{what}={}", all_or(allowed)),
    };
    let number = |number: Option<u64>| number.map_or("UNLIMITED".into(), |number| number.to_string());
    let default_memory = match (partition.default_memory_per_cpu_mb, partition.default_memory_per_node_mb) {
        (Some(megabytes), _) => format!("DefMemPerCPU={megabytes}"),
        (None, per_node) => format!("DefMemPerNode={}", number(per_node)),
    };
    let max_memory = match (partition.max_memory_per_cpu_mb, partition.max_memory_per_node_mb) {
        (Some(megabytes), _) => format!("MaxMemPerCPU={megabytes}"),
        (None, per_node) => format!("MaxMemPerNode={}", number(per_node)),
    };
    let hosts = hostlist::compress(&partition.alloc_nodes);
    let mut lines = vec![
        format!("PartitionName={}", partition.name),
        format!(
            "AllowGroups={} {} {}",
            all_or(&partition.allow_groups),
            access(&partition.allow_accounts, &partition.deny_accounts, "Accounts"),
            access(&partition.allow_qos, &partition.deny_qos, "Qos"),
        ),
        format!(
            "AllocNodes={}{} Default={} QoS={}",
            if hosts.is_empty() { "ALL" } else { &hosts },
            if partition.alternate.is_empty() { String::new() } else { format!(" Alternate={}", partition.alternate) },
            yes(partition.is_default),
            if partition.qos.is_empty() { "N/A" } else { &partition.qos },
        ),
        format!(
            "DefaultTime={} DisableRootJobs={} ExclusiveUser={} GraceTime={} Hidden={}",
            partition.default_time.map_or("NONE".into(), limit),
            yes(partition.disable_root_jobs),
            yes(partition.exclusive_user),
            partition.grace_time.secs(),
            yes(partition.is_hidden),
        ),
        format!(
            "MaxNodes={} MaxTime={} MinNodes={} LLN={} MaxCPUsPerNode={}",
            number(partition.max_nodes.map(u64::from)),
            partition.max_time.map_or("UNLIMITED".into(), limit),
            partition.min_nodes,
            yes(partition.least_loaded),
            number(partition.max_cpus_per_node.map(u64::from)),
        ),
        format!("Nodes={}", or_null(&hostlist::compress(&partition.nodes))),
        format!(
            "PriorityJobFactor={} PriorityTier={} RootOnly={} ReqResv={} OverSubscribe={}",
            partition.priority_job_factor,
            partition.priority_tier,
            yes(partition.root_only),
            yes(partition.requires_reservation),
            node_view::oversubscribe(partition),
        ),
        format!(
            "OverTimeLimit={} PreemptMode={}",
            match partition.over_time_limit {
                None => "NONE".to_string(),
                Some(TimeLimit::Secs(secs)) => (secs / 60).to_string(),
                Some(TimeLimit::Unlimited) => "UNLIMITED".to_string(),
            },
            partition.preempt_mode.map_or_else(|| config.scheduler.preemption.mode_text(), |mode| mode.word().into())
        ),
        format!("State={} TotalCPUs={n_cpus} TotalNodes={n_nodes} SelectTypeParameters=NONE", partition.state.word(),),
        format!(
            "JobDefaults={}",
            or_null(&job_defaults(partition.default_cpus_per_gpu, partition.default_memory_per_gpu_mb))
        ),
        format!("{default_memory} {max_memory}"),
        format!("TRES={}", node_view::partition_tres(partition, config)),
    ];
    if !partition.billing_weights.is_empty() {
        lines.push(format!("TRESBillingWeights={}", partition.billing_weights));
    }
    if !partition.topology.is_empty() {
        lines.push(format!("Topology={}", partition.topology));
    }
    close(style, &lines, out);
}

/// `DefCpuPerGPU=2,DefMemPerGPU=100`
pub fn job_defaults(cpus_per_gpu: Option<u32>, memory_per_gpu_mb: Option<u64>) -> String {
    let cpus = cpus_per_gpu.map(|count| format!("DefCpuPerGPU={count}"));
    let memory = memory_per_gpu_mb.map(|size| format!("DefMemPerGPU={size}"));
    cpus.into_iter().chain(memory).collect::<Vec<_>>().join(",")
}

fn limit(limit: TimeLimit) -> String {
    match limit {
        TimeLimit::Secs(secs) => duration::show(secs),
        TimeLimit::Unlimited => "UNLIMITED".into(),
    }
}
