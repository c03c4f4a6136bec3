//! A site's slurm.conf and what is said about it.
use std::path::PathBuf;

use config::{load_with_warnings, parse_slurm};
use model::Config;
use model::node::NodeStart;
use model::partition::PartitionState;
use model::spec::TimeLimit;

const CLUSTER: &str =
    "ClusterName=Ant\nSelectType=select/cons_tres\nNodeName=n[1-3] CPUs=4\nPartitionName=p Nodes=ALL Default=YES\n";

fn good(text: &str) -> Config {
    parse_slurm(text, "c").unwrap_or_else(|problems| panic!("{problems}\n{text}")).0
}

/// What is wrong with good lines and `lines`, which begin in line 5.
fn check(lines: &str, expected: &[&str]) {
    let shown = match parse_slurm(&format!("{CLUSTER}{lines}"), "c") {
        Ok(_) => String::new(),
        Err(problems) => problems.to_string(),
    };
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected, "\n{lines}");
}

fn warnings(lines: &str, expected: &[&str]) {
    let (_, warnings) = parse_slurm(&format!("{CLUSTER}{lines}"), "c").unwrap();
    assert_eq!(warnings.to_string().lines().collect::<Vec<_>>(), expected, "\n{lines}");
}

#[test]
fn keys_are_known_in_any_case_and_values_may_be_quoted() {
    let config = good(
        "CLUSTERNAME=Ant slurmctldhost=head(10.0.0.1) # two on a line\nselecttype=select/cons_tres\n\
         nodename=n[1-2] cpus=4 \\\n  REALMEMORY=1000 feature=\"fast,ib\"\nPARTITIONNAME=p nodes=n[1-2] default=yes\n",
    );
    assert_eq!((config.cluster_name.as_str(), config.controller.host.as_str()), ("ant", "head"));
    assert_eq!(config.nodes[1].config.features, ["fast", "ib"]);
    assert_eq!((config.nodes[1].config.cpus, config.nodes[1].config.memory_mb), (4, 1000));
    assert_eq!(config.default_partition().unwrap().nodes.len(), 2);
}

/// A line, where its value is found, and that value.
type Row = (&'static str, fn(&Config) -> String, &'static str);

#[test]
fn each_setting_lands_where_it_belongs() {
    let rows: &[Row] = &[
        ("", |c| c.controller.max_array_size.to_string(), "1001"),
        ("MaxArraySize=50", |c| c.controller.max_array_size.to_string(), "50"),
        ("", |c| c.controller.max_job_count.to_string(), "10000"),
        ("MaxJobCount=7", |c| c.controller.max_job_count.to_string(), "7"),
        ("FirstJobId=100", |c| c.controller.first_job_id.to_string(), "100"),
        ("MaxJobId=1000", |c| c.controller.max_job_id.to_string(), "1000"),
        ("KillWait=5", |c| c.agent.kill_wait.secs().to_string(), "5"),
        ("MinJobAge=10", |c| c.controller.min_job_age.secs().to_string(), "10"),
        ("MinJobAge=0", |c| c.controller.min_job_age.secs().to_string(), "999999999"),
        ("", |c| c.controller.node_timeout.secs().to_string(), "300"),
        ("SlurmdTimeout=20", |c| c.controller.node_timeout.secs().to_string(), "20"),
        ("", |c| c.controller.return_to_service.to_string(), "false"),
        ("ReturnToService=1", |c| c.controller.return_to_service.to_string(), "true"),
        ("DefMemPerCPU=100", |c| format!("{:?}", c.scheduler.default_memory_per_cpu_mb), "Some(100)"),
        ("DefMemPerNode=0", |c| format!("{:?}", c.scheduler.default_memory_per_node_mb), "None"),
        ("NodeName=m2 CPUs=5 Sockets=2 CoresPerSocket=2", |c| c.nodes.last().unwrap().config.cpus.to_string(), "4"),
        ("DefCpuPerGPU=2", |c| format!("{:?}", c.scheduler.default_cpus_per_gpu), "Some(2)"),
        ("DefMemPerGPU=100", |c| format!("{:?}", c.scheduler.default_memory_per_gpu_mb), "Some(100)"),
        ("JobRequeue=0", |c| c.scheduler.requeues.to_string(), "false"),
        ("DependencyParameters=kill_invalid_depend", |c| c.scheduler.kill_on_invalid_dependency.to_string(), "true"),
        ("", |c| c.scheduler.tracks_memory.to_string(), "true"),
        ("SelectTypeParameters=CR_CPU", |c| c.scheduler.tracks_memory.to_string(), "false"),
        ("SelectTypeParameters=CR_CPU_Memory", |c| c.scheduler.tracks_memory.to_string(), "true"),
        ("SelectType=select/linear", |c| c.partitions[0].exclusive_nodes.to_string(), "true"),
        ("SelectType=select/linear", |c| c.scheduler.tracks_memory.to_string(), "false"),
        ("SlurmUser=slurm", |c| c.controller.admins.join(","), "slurm"),
        ("SlurmUser=root", |c| c.controller.admins.join(","), ""),
        ("StateSaveLocation=/s", |c| c.controller.state_dir.clone(), "/s"),
        ("StateSaveLocation=/s", |c| c.controller.socket.clone(), "/s/controller.sock"),
        ("SlurmdSpoolDir=/d/%h", |c| c.agent.spool_dir.clone(), "/d/%n"),
        ("SlurmdSpoolDir=/d", |c| c.agent.socket.clone(), "/d/%n/agent.sock"),
        ("SlurmdPidFile=/run/slurmd.pid", |c| c.agent.pid_file.clone(), "/run/slurmd-%n.pid"),
        ("SlurmctldPidFile=/run/s.pid", |c| c.controller.pid_file.clone(), "/run/s.pid"),
        ("SlurmctldLogFile=/log/c", |c| c.controller.log_file.clone(), "/log/c"),
        ("SlurmdLogFile=/log/%h", |c| c.agent.log_file.clone(), "/log/%n"),
    ];
    for (line, read, expected) in rows {
        assert_eq!(read(&good(&format!("{CLUSTER}{line}\n"))), *expected, "{line}");
    }
}

#[test]
fn defaults_hold_for_the_lines_below_them() {
    let config = good(
        "SelectType=select/cons_tres\nNodeName=a1\nNodeName=DEFAULT CPUs=8 RealMemory=2000 Weight=3\nNodeName=b1\n\
         NodeName=DEFAULT CPUs=16\nNodeName=c1 Weight=9\n\
         PartitionName=DEFAULT MaxTime=60 State=DOWN\nPartitionName=p Nodes=a1\nPartitionName=q Nodes=ALL State=UP\n",
    );
    let sizes: Vec<(u32, u64, u32)> =
        config.nodes.iter().map(|node| (node.config.cpus, node.config.memory_mb, node.config.weight)).collect();
    assert_eq!(sizes, [(1, 1, 1), (8, 2000, 3), (16, 2000, 9)]);
    let states: Vec<PartitionState> = config.partitions.iter().map(|partition| partition.state).collect();
    assert_eq!(states, [PartitionState::Down, PartitionState::Up]);
    assert_eq!(config.partitions[1].max_time, Some(TimeLimit::Secs(3600)));
    assert!(config.default_partition().is_none());
}

#[test]
fn what_is_missing_of_a_nodes_shape_is_derived() {
    let rows = [
        ("CPUs=8", (8, 0, 0, 0)),
        ("Sockets=2 CoresPerSocket=4", (8, 2, 4, 0)),
        ("Sockets=2 CoresPerSocket=4 ThreadsPerCore=2", (16, 2, 4, 2)),
        ("CPUs=16 CoresPerSocket=4 ThreadsPerCore=2", (16, 2, 4, 2)),
        ("CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2", (8, 2, 4, 2)),
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=3", (12, 4, 3, 0)),
        ("Procs=3", (3, 0, 0, 0)),
    ];
    for (shape, expected) in rows {
        let config = good(&format!("NodeName=n1 {shape}\nPartitionName=p Nodes=n1\n"));
        let node = &config.nodes[0].config;
        assert_eq!((node.cpus, node.sockets, node.cores_per_socket, node.threads_per_core), expected, "{shape}");
    }
}

#[test]
fn how_tasks_and_cores_are_handed_out_is_the_sites_word() {
    let shown = |words: &str| {
        let scheduler = good(&format!("{CLUSTER}SelectTypeParameters={words}\n")).scheduler;
        (scheduler.tracks_memory, scheduler.fills_sockets, scheduler.fills_nodes)
    };
    assert_eq!(shown("CR_Core"), (false, false, false));
    assert_eq!(shown("CR_CPU,CR_Pack_Nodes"), (false, false, true));
    assert_eq!(shown("CR_Core_Memory,CR_CORE_DEFAULT_DIST_BLOCK"), (true, true, false));
}

#[test]
fn nodes_begin_as_they_are_configured() {
    let config = good(
        "NodeName=n[1-2]\nNodeName=n3 State=DRAIN Reason=\"bad disk\"\nNodeName=n4 State=FUTURE\nNodeName=n5 State=UNKNOWN\n\
         DownNodes=n2 Reason=burnt\nPartitionName=p Nodes=n[1-5]\n",
    );
    let shown: Vec<(&str, NodeStart, &str)> = config
        .nodes
        .iter()
        .map(|node| (node.name.as_str(), node.config.starts_as, node.config.start_reason.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            ("n1", NodeStart::Usable, ""),
            ("n2", NodeStart::Down, "burnt"),
            ("n3", NodeStart::Drained, "bad disk"),
            ("n5", NodeStart::Usable, "")
        ]
    );
    assert_eq!(config.partitions[0].nodes_text, "n[1-3,5]");
}

#[test]
fn partitions_may_name_sets_of_nodes() {
    let config = good(
        "NodeSet=fast Feature=ib\nNodeSet=rack Nodes=n[1-2]\nNodeName=n[1-2]\nNodeName=n[3-4] Feature=ib\n\
         PartitionName=p Nodes=fast\nPartitionName=q Nodes=rack,n4 OverSubscribe=EXCLUSIVE\nPartitionName=r Shared=NO\n",
    );
    let nodes: Vec<&str> = config.partitions.iter().map(|partition| partition.nodes_text.as_str()).collect();
    assert_eq!(nodes, ["n[3-4]", "n[1-2,4]", ""]);
}

#[test]
fn mistakes_are_told_with_their_lines() {
    check("Banana=1", &["c:5:1: unknown key `Banana` in slurm.conf"]);
    check("MaxJobCont=1", &["c:5:1: unknown key `MaxJobCont` in slurm.conf; did you mean `MaxJobCount`?"]);
    check(
        "NodeName=m1 RealMemroy=1\nPartitionName=q Nods=m1",
        &[
            "c:5:13: unknown key `RealMemroy` of a node; did you mean `RealMemory`?",
            "c:6:17: unknown key `Nods` of a partition; did you mean `Nodes`?",
        ],
    );
    check(
        "KillWait=soon\nReturnToService=5\nSelectType=select/best\nSelectTypeParameters=CR_ALL\nTrackWCKey=perhaps",
        &[
            "c:5:1: `KillWait` must be a number of seconds, not \"soon\"",
            "c:6:1: `ReturnToService` must be a whole number from 0 to 2, not \"5\"",
            "c:7:1: `SelectType` must be select/cons_tres, select/cons_res or select/linear, not \"select/best\"",
            "c:8:1: `SelectTypeParameters` does not know \"CR_ALL\"",
            "c:9:1: `TrackWCKey` must be YES or NO, not \"perhaps\"",
        ],
    );
    check(
        "NodeName=n3 CPUs=many\nNodeName=m1 State=GONE\nNodeName=m2 CPUs=5 Sockets=2 CoresPerSocket=2\nNodeName=m[1-",
        &[
            "c:5:1: node named twice: n3",
            "c:5:13: `CPUs` must be a whole number from 1 to 65536, not \"many\"",
            "c:6:13: `State` must be UNKNOWN, IDLE, DOWN, DRAIN, FAIL, CLOUD or FUTURE, not \"GONE\"",
            "c:8:1: hostlist \"m[1-\": bracket without its partner",
        ],
    );
    check(
        "PartitionName=q Nodes=n7\nPartitionName=r MaxTime=2:x Nodes=ALL\nPartitionName=p\nPartitionName=s MaxNodes=0 State=ON",
        &[
            "c:5:17: no NodeName line names n7; did you mean `n1`?",
            "c:6:17: `MaxTime` must be minutes, a time like 1-12:00:00, or UNLIMITED, not \"2:x\"",
            "c:7:1: partition p is given twice",
            "c:8:17: `MaxNodes` must be a whole number from 1, or UNLIMITED, not \"0\"",
            "c:8:28: `State` must be UP, DOWN, DRAIN or INACTIVE, not \"ON\"",
        ],
    );
    check("StateSaveLocation=here", &["c:5:1: `StateSaveLocation` must be a path from the root, not \"here\""]);
    check("Include /nowhere/x.conf", &["c:5:1: cannot read /nowhere/x.conf: No such file or directory (os error 2)"]);
    let empty = parse_slurm("ClusterName=a\n", "c").unwrap_err().to_string();
    assert_eq!(empty, "c: no NodeName line describes a node\nc: no PartitionName line describes a partition");
}

#[test]
fn what_has_no_effect_is_named_once() {
    warnings("AccountingStorageType=accounting_storage/none\nMpiDefault=none\nSlurmctldDebug=info", &[]);
    warnings("MpiDefault=pmix", &[]);
    warnings(
        "AuthType=auth/munge\nNodeName=m1 Port=7001\nNodeName=m2 Port=7002\nMpiDefault=cray_shasta",
        &["c: without effect here: AuthType (line 5), Port (line 6), MpiDefault (line 8)"],
    );
    warnings(
        "SlurmctldHost=a\nSlurmctldHost=b\nKillWait=1\nKillWait=2\nPartitionName=q Nodes=n1 OverSubscribe=FORCE:2",
        &["c:6:1: b has no effect here: there is one controller", "c:8:1: `KillWait` was 1 in line 7: this one holds"],
    );
}

#[test]
fn preemption_is_read_and_checked() {
    let config = good(
        "SelectType=select/cons_tres\nPreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG\nSchedulerTimeSlice=10\n\
         PreemptExemptTime=00:05:00\nPreemptParameters=youngest_first,min_exempt_priority=7,suspend_grace_time=1\n\
         NodeName=n1\nPartitionName=p Nodes=ALL PreemptMode=REQUEUE GraceTime=20\n",
    );
    let rules = &config.scheduler.preemption;
    assert_eq!((rules.kind.word(), rules.mode_text().as_str()), ("partition_prio", "GANG,SUSPEND"));
    assert_eq!((rules.time_slice.secs(), rules.exempt_time.secs()), (10, 300));
    assert!(rules.youngest_first && rules.min_exempt_priority == Some(7));
    assert_eq!(config.agent.suspend_grace.secs(), 1);
    assert_eq!(config.partitions[0].grace_time.secs(), 20);
    check("PreemptType=preempt/partition_prio\nPreemptMode=SUSPEND", &["c:6:1: PreemptMode=SUSPEND requires GANG too"]);
    check("PreemptMode=CANCEL", &["c:5:1: PreemptType and PreemptMode values incompatible"]);
    check("PreemptType=preempt/qos", &["c:5:1: PreemptType and PreemptMode values incompatible"]);
    warnings(
        "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\nPreemptParameters=reorder_count=3",
        &["c:7:1: reorder_count=3 has no effect here: the fewest are looked for anyway"],
    );
}

#[test]
fn weights_and_flags_of_priorities_are_read_or_named() {
    warnings(
        "PriorityFlags=CALCULATE_RUNNING,NO_NORMAL_ALL,FAIR_TREE\nPriorityWeightTRES=CPU=1000,energy=5,GRES/gpu=3",
        &["c:6:1: energy=5 has no effect here"],
    );
    check("PriorityWeightTRES=apples=1", &["c:5:1: PriorityWeightTRES: \"apples=1\" is no weight of a resource"]);
}

#[test]
fn a_converted_file_reads_the_same() {
    let config = good(
        "ClusterName=ant\nSlurmctldHost=head\nSlurmUser=slurm\nStateSaveLocation=/s\nSlurmdSpoolDir=/d/%n\nSlurmdPidFile=/run/d.pid\n\
         SelectType=select/cons_tres\nDefMemPerCPU=10\n\
         NodeName=n[1-2] NodeAddr=10.0.0.[1-2] CPUs=4 Gres=gpu:a100:2 Feature=x State=DOWN Reason=\"to come\"\n\
         PartitionName=p Nodes=ALL Default=YES MaxTime=1-0 DefaultTime=30 MaxNodes=2\n",
    );
    assert_eq!(config::parse(&config::render(&config), "spur.conf").unwrap(), config);
    let single = good("SlurmdPidFile=/run/d.pid\nNodeName=n1\nPartitionName=p Nodes=n1\n");
    assert_eq!(single.agent.pid_file, "/run/d.pid");
    assert_eq!(config::parse(&config::render(&single), "spur.conf").unwrap(), single);
}

/// A directory of files for one test.
struct Folder(PathBuf);

impl Folder {
    fn with(name: &str, files: &[(&str, &str)]) -> Folder {
        let folder = std::env::temp_dir().join(format!("spur-slurmconf-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
        }
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn other_files_beside_it_are_read() {
    let folder = Folder::with(
        "beside",
        &[
            ("slurm.conf", "ClusterName=ant\nGresTypes=gpu\nInclude nodes-%c.conf\ninclude parts.conf\n"),
            ("nodes-ant.conf", "NodeName=n[1-2] Gres=gpu:2,tape:1\nNodeName=n3 Gres=gpu:2\n"),
            ("parts.conf", "PartitionName=p Nodes=ALL\n"),
            (
                "gres.conf",
                "NodeName=n[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-1] Cores=0-3\n\
                 NodeName=n3 Name=gpu Type=a100 File=/dev/nvidia0\nNodeName=n3 Name=gpu Type=h100 File=/dev/nvidia1\n",
            ),
            ("mpi.conf", "PMIxDebug=1\n"),
        ],
    );
    let (config, warnings) = load_with_warnings(&folder.0.join("slurm.conf")).unwrap();
    let gres = |index: usize| -> Vec<String> {
        config.nodes[index].config.gres.iter().map(|gres| format!("{gres} {}", gres.files.join(","))).collect()
    };
    assert_eq!(gres(0), ["gpu:a100:2 /dev/nvidia0,/dev/nvidia1"]);
    assert_eq!(gres(2), ["gpu:a100:1 /dev/nvidia0", "gpu:h100:1 /dev/nvidia1"]);
    let text = warnings.to_string();
    assert!(text.contains("does not name tape"), "{text}");
    assert!(text.contains("without effect here: Cores (line 1)"), "{text}");
    assert!(text.contains("without effect here: mpi.conf"), "{text}");

    std::fs::write(folder.0.join("gres.conf"), "Name=gpu Count=1\n").unwrap();
    let problems = load_with_warnings(&folder.0.join("slurm.conf")).unwrap_err().to_string();
    assert!(problems.contains("gres.conf:1:1: n1 has 1 of gpu here, but slurm.conf hands out 2"), "{problems}");
}

#[test]
fn a_node_may_be_on_a_machine_of_another_name() {
    let text = "NodeName=n[1-2] NodeHostname=box\nNodeName=n[3-4] NodeHostname=n[3-4]\nPartitionName=p Nodes=ALL\n";
    let config = good(text);
    let names: Vec<&str> = config.nodes.iter().map(|node| node.config.hostname.as_str()).collect();
    assert_eq!(names, ["box", "box", "", ""]);
    assert_eq!(config::parse(&config::render(&config), "spur.conf").unwrap().nodes, config.nodes);
    let wrong = "NodeName=n[1-3] NodeHostname=a,b\nPartitionName=p Nodes=ALL\n";
    assert!(config::parse_slurm(wrong, "slurm.conf").is_err());
}

#[test]
fn parts_of_gpus_are_counted_for_each_gpu() {
    let files = |gres: &'static str| {
        let slurm = "GresTypes=gpu,shard,mps\nNodeName=n1 Gres=gpu:2,shard:6,mps:200\nPartitionName=p Nodes=ALL\n";
        [("slurm.conf", slurm), ("gres.conf", gres)]
    };
    let folder = Folder::with(
        "parts",
        &files(
            "Name=gpu File=/dev/nvidia[0-1]\nName=shard Count=2 File=/dev/nvidia0\nName=shard Count=4 File=/dev/nvidia1\n\
             Name=mps Count=200\n",
        ),
    );
    let file = folder.0.join("slurm.conf");
    let config = config::load(&file).unwrap();
    let gres = &config.nodes[0].config.gres;
    assert_eq!(gres.iter().map(|gres| gres.to_string()).collect::<Vec<_>>(), ["gpu:2", "shard:6", "mps:200"]);
    assert_eq!((&gres[1].parts, &gres[2].parts), (&vec![2, 4], &Vec::new()));
    assert_eq!((gres[0].files.len(), gres[1].files.len()), (2, 0));
    let rendered = config::render(&config);
    assert_eq!(config::parse(&rendered, "spur.conf").unwrap().nodes, config.nodes, "{rendered}");

    let foreign = files("Name=gpu File=/dev/nvidia[0-1]\nName=shard Count=6 File=/dev/nvidia7\nName=mps Count=200\n");
    std::fs::write(folder.0.join("gres.conf"), foreign[1].1).unwrap();
    let problems = config::load(&file).unwrap_err().to_string();
    assert!(problems.contains("/dev/nvidia7 is no GPU of n1"), "{problems}");
    for wrong in ["[\"shard=2\"]", "[\"shard=2,5\"]", "[\"gpu=1,1\"]", "\"shard=2,4\""] {
        let text = rendered.replace("gpu_parts = [\"shard=2,4\"]", &format!("gpu_parts = {wrong}"));
        assert!(config::parse(&text, "spur.conf").unwrap_err().to_string().contains("must"), "{wrong}");
    }
}

#[test]
fn a_line_of_gres_conf_without_number_and_files_means_what_slurm_conf_hands_out() {
    let slurm = "GresTypes=r1,r2\nNodeName=n1 Gres=r1:1,r2:2\nPartitionName=p Nodes=ALL\n";
    let folder = Folder::with("explicit", &[("slurm.conf", slurm), ("gres.conf", "Name=r2 Flags=Explicit\n")]);
    let (config, warnings) = load_with_warnings(&folder.0.join("slurm.conf")).unwrap();
    assert!(!warnings.to_string().contains("Flags"), "{warnings}");
    let gres = &config.nodes[0].config.gres;
    assert_eq!(gres.iter().map(|gres| gres.to_string()).collect::<Vec<_>>(), ["r1:1", "r2:2"]);
    assert_eq!(gres.iter().map(|gres| gres.is_explicit).collect::<Vec<_>>(), [false, true]);
    let rendered = config::render(&config);
    assert_eq!(config::parse(&rendered, "spur.conf").unwrap().nodes, config.nodes, "{rendered}");
    for wrong in ["\"r2\"", "[\"r3\"]"] {
        let text = rendered.replace("explicit_gres = [\"r2\"]", &format!("explicit_gres = {wrong}"));
        assert!(config::parse(&text, "spur.conf").unwrap_err().to_string().contains("explicit_gres"), "{wrong}");
    }
    std::fs::write(folder.0.join("gres.conf"), "Name=r2 Count=1\n").unwrap();
    assert!(config::load(&folder.0.join("slurm.conf")).is_err(), "a number that is too small is still a mistake");
}

#[test]
fn commands_find_the_cluster_of_a_slurm_conf_of_any_name() {
    let text = "# comment\n\nClusterName=Ant\nInclude more\nNodeName=n1\nPartitionName=p Nodes=n1\n";
    let folder = Folder::with("client", &[("site.conf", text), ("more", "StateSaveLocation=/s\nSlurmdSpoolDir=/d\n")]);
    let file = folder.0.join("site.conf");
    let client = config::client::find(Some(&file)).unwrap();
    assert_eq!(client.cluster_name, "ant");
    assert_eq!(client.controller_socket.first, PathBuf::from("/s/controller.sock"));
    assert_eq!(client.agent_socket_of("n1"), PathBuf::from("/d/n1/agent.sock"));
    let config = config::load(&file).unwrap();
    assert_eq!(config.controller.socket, "/s/controller.sock");
    assert_eq!(config.agent.socket, client.agent_socket);
}

#[test]
fn the_qos_of_a_partition_holds_and_is_kept_in_a_spur_conf() {
    let text = "ClusterName=c\nSlurmctldHost=h\nNodeName=n1 CPUs=1\nPartitionName=p Nodes=n1 QOS=small\n";
    let (config, warnings) = config::parse_slurm(text, "slurm.conf").unwrap();
    assert_eq!((config.partitions[0].qos.as_str(), warnings.list.len()), ("small", 0));
    let rendered = config::render(&config);
    assert_eq!(config::parse(&rendered, "spur.conf").unwrap().partitions[0].qos, "small");
}

#[test]
fn what_a_site_decides_for_all_jobs_is_read_and_carried_over() {
    let text = "KillOnBadExit=1\nAllowSpecResourcesUsage=1\nWaitTime=60\nRequeueExit=1-3,9\nRequeueExitHold=10\nMaxBatchRequeue=7\nAuthInfo=cred_expire=30\nJobFileAppend=1\n\
                MailDomain=example.org\nSlurmctldParameters=user_resv_delete,allow_user_triggers\nJobAcctGatherFrequency=task=20,energy=0\n\
                SchedulerParameters=nohold_on_prolog_fail,max_script_size=1000\nNodeName=n1\nPartitionName=p Nodes=ALL\n";
    let config = good(text);
    let rules = &config.jobs;
    assert_eq!((rules.requeue_exit.to_string(), rules.requeue_exit_hold.to_string()), ("1-3,9".into(), "10".into()));
    assert_eq!((rules.max_requeues, rules.requeue_delay_secs, rules.wait_secs, rules.accounting_secs), (7, 31, 60, 20));
    assert_eq!(rules.max_script_bytes, 1000);
    assert!(rules.may_spare && rules.kill_on_bad_exit && rules.appends_output);
    assert!(rules.users_delete_reservations && rules.users_set_triggers);
    assert!(config.hooks.flags.no_hold_on_failure, "also where there are no PrologFlags");
    assert_eq!(rules.address("ann"), "ann@example.org");
    let sooner = good(&text.replace("max_script_size=1000", "max_script_size=1000,requeue_delay=2"));
    assert_eq!(sooner.jobs.requeue_delay_secs, 2, "said in so many words, it goes before what credentials need");
    let rendered = config::render(&config);
    assert_eq!(config::parse(&rendered, "rendered").unwrap().jobs, *rules, "{rendered}");
    warnings(
        "SlurmctldParameters=idle_on_node_suspend",
        &["c:5:1: SlurmctldParameters=idle_on_node_suspend has no effect here"],
    );
}

#[test]
fn what_is_kept_for_the_system_is_no_longer_for_jobs() {
    let cluster = "PartitionName=p Nodes=ALL\n";
    let text = format!(
        "{cluster}NodeName=n1 CPUs=8 RealMemory=1000 CoreSpecCount=2 MemSpecLimit=200\nNodeName=n2 CPUs=4 CpuSpecList=0,3\n"
    );
    let config = good(&text);
    let (first, second) = (&config.nodes[0].config, &config.nodes[1].config);
    assert_eq!((first.cpus, first.kept_cpus.to_string(), first.memory_mb), (6, "6-7".into(), 800));
    assert_eq!((second.cpus, second.kept_cpus.to_string(), second.all_cpus()), (2, "0,3".into(), 4));
    let rendered = config::render(&config);
    assert_eq!(config::parse(&rendered, "spur.conf").unwrap().nodes, config.nodes);
    for wrong in [
        "CPUs=2 CoreSpecCount=2",
        "CPUs=2 CpuSpecList=2",
        "CPUs=4 CoreSpecCount=1 CpuSpecList=1",
        "RealMemory=10 MemSpecLimit=10",
    ] {
        assert!(config::parse_slurm(&format!("{cluster}NodeName=n1 {wrong}\n"), "slurm.conf").is_err(), "{wrong}");
    }
}
