//! Configurations and what is said about them.
use config::parse;
use model::spec::TimeLimit;

const NODES: &str = "[[nodes]]\nnames = \"n[1-3]\"\ncpus = 4\nmemory_mb = 1000\n";

fn check(text: &str, expected: &[&str]) {
    let shown = match parse(text, "c") {
        Ok(_) => String::new(),
        Err(problems) => problems.to_string(),
    };
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected, "\n{text}");
}

/// `lines` follow a good set of nodes; their first line is line 5.
fn after_nodes(lines: &str, expected: &[&str]) {
    check(&format!("{NODES}{lines}"), expected);
}

#[test]
fn the_smallest_cluster_gets_one_default_partition_of_all_nodes() {
    let config = parse(NODES, "c").unwrap();
    let names: Vec<&str> = config.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["n1", "n2", "n3"]);
    assert_eq!(config.nodes[2].config.memory_mb, 1000);
    assert_eq!(config.nodes[2].config.weight, 1);
    let partition = config.default_partition().unwrap();
    assert_eq!((partition.name.as_str(), partition.nodes_text.as_str(), partition.nodes.len()), ("main", "ALL", 3));
}

#[test]
fn an_unknown_key_names_its_line_and_the_nearest_known_one() {
    check(
        "cluster_nam = \"x\"\n[[nodes]]\nnames = \"n1\"\nmemroy_mb = 5\nbanana = 1\n[schedular]\n",
        &[
            "c:1:1: unknown key `cluster_nam` in the top of the file; did you mean `cluster_name`?",
            "c:4:1: unknown key `memroy_mb` in [[nodes]]; did you mean `memory_mb`?",
            "c:5:1: unknown key `banana` in [[nodes]]",
            "c:6:2: unknown key `schedular` in the top of the file; did you mean `scheduler`?",
        ],
    );
    after_nodes(
        "[controller]\nsoket = \"s\"\n[[partitions]]\nname = \"a\"\nnodes = \"ALL\"\nDefault = true\n",
        &[
            "c:6:1: unknown key `soket` in [controller]; did you mean `socket`?",
            "c:10:1: unknown key `Default` in [[partitions]]; did you mean `default`?",
        ],
    );
}

#[test]
fn wrong_values_say_what_would_be_right() {
    check(
        "[[nodes]]\nnames = \"n1\"\ncpus = \"four\"\nmemory_mb = \"2X\"\nweight = -1\nfeatures = [1]\ngres = \"gpu:1x\"\n",
        &[
            "c:3:8: `cpus` must be a whole number from 1 to 65536, not \"four\"",
            "c:4:13: `memory_mb` must be megabytes as a whole number, or a size like \"64G\", not \"2X\"",
            "c:5:10: `weight` must be a whole number from 0, not -1",
            "c:6:12: `features` must be a list of names, not a list",
            "c:7:8: Invalid generic resource (gres) specification: gpu:1x",
        ],
    );
    after_nodes(
        "[agent]\nkill_wait = \"soon\"\nsocket = \"/run/a.sock\"\n[scheduler]\ndepth = 0\nrequeues = 1\n",
        &[
            "c:6:13: `kill_wait` must be a number of seconds, not \"soon\"",
            "c:7:10: `socket` must contain %n, the node's name: every agent needs its own",
            "c:9:9: `depth` must be a whole number from 1, not 0",
            "c:10:12: `requeues` must be true or false, not 1",
        ],
    );
    after_nodes("controller = 5\n", &["c:5:1: unknown key `controller` in [[nodes]]"]);
    check(
        "controller = 5\nnodes = 3\n",
        &[
            "c:1:1: no nodes: add a [[nodes]] table with `names`, `cpus` and `memory_mb`",
            "c:1:14: `controller` must be a table, [controller], not a number",
            "c:2:9: `nodes` must be a list of tables, [[nodes]], not a number",
        ],
    );
}

#[test]
fn nodes_are_named_once_and_well() {
    check("nodes = []\n", &["c:1:1: no nodes: add a [[nodes]] table with `names`, `cpus` and `memory_mb`"]);
    check("", &["c:1:1: no nodes: add a [[nodes]] table with `names`, `cpus` and `memory_mb`"]);
    check(
        "[[nodes]]\ncpus = 1\n[[nodes]]\nnames = \"n[1-\"\n[[nodes]]\nnames = \"a/b\"\n[[nodes]]\nnames = 3\n",
        &[
            "c:1:1: [[nodes]] needs `names`, a hostlist such as \"n[1-4]\"",
            "c:4:9: hostlist \"n[1-\": bracket without its partner",
            "c:6:9: \"a/b\" cannot be a node's name: letters, digits, `-`, `_` and `.` only",
            "c:8:9: `names` must be a hostlist in quotes, such as \"n[1-4]\"",
        ],
    );
}

#[test]
fn a_node_in_two_tables_is_reported() {
    after_nodes("[[nodes]]\nnames = \"n[2-4]\"\n", &["c:6:9: node named twice: n[2-3]"]);
    after_nodes(
        "[[nodes]]\nnames = \"m1\"\nsockets = 2\ncores_per_socket = 4\ncpus = 5\n",
        &["c:9:8: `cpus` is 5, but sockets × cores × threads is 8"],
    );
}

#[test]
fn partitions_name_known_nodes_and_agree_on_the_default() {
    after_nodes(
        "[[partitions]]\nname = \"a\"\nnodes = \"n[1-5]\"\ndefault = true\n\
         [[partitions]]\nname = \"b\"\nnodes = \"m1\"\ndefault = true\nmax_time = \"1:00:00\"\ndefault_time = 90\n\
         [[partitions]]\nname = \"b\"\nnodes = \"ALL\"\nstate = \"GONE\"\nmin_nodes = 3\nmax_nodes = 2\n\
         [[partitions]]\n",
        &[
            "c:7:9: no [[nodes]] table names n[4-5]",
            "c:11:9: no [[nodes]] table names m1; did you mean `n1`?",
            "c:12:1: partition a is already the default",
            "c:14:16: `default_time` is longer than `max_time`",
            "c:15:1: partition b is given twice",
            "c:18:9: `state` must be \"UP\", \"DOWN\", \"DRAIN\" or \"INACTIVE\", not \"GONE\"",
            "c:20:13: `max_nodes` is smaller than `min_nodes`",
            "c:21:1: [[partitions]] needs `name`",
            "c:21:1: [[partitions]] needs `nodes`: a hostlist, or \"ALL\"",
        ],
    );
}

#[test]
fn a_mistake_in_the_toml_has_its_place() {
    let problems = parse("cluster_name = \"a\n", "c").unwrap_err();
    assert_eq!((problems.list[0].line, problems.list.len()), (1, 1));
}

#[test]
fn the_only_partition_is_the_default_unless_it_says_otherwise() {
    let with =
        |line: &str| parse(&format!("{NODES}[[partitions]]\nname = \"p\"\nnodes = \"n2\"\n{line}"), "c").unwrap();
    assert!(with("").default_partition().is_some());
    assert!(with("default = false").default_partition().is_none());
    assert_eq!(with("max_time = 90").partitions[0].max_time, Some(TimeLimit::Secs(5400)));
    assert_eq!(with("max_time = \"infinite\"").partitions[0].max_time, Some(TimeLimit::Unlimited));
}

#[test]
fn what_slurm_conf_says_is_kept_to_be_shown_but_for_passwords() {
    let text = "ClusterName=c\nMessageTimeout=30\nAccountingStoragePass=secret\nschedulerparameters=bf_interval=5\n\
                NodeName=n1 CPUs=2 RealMemory=100\nPartitionName=p Nodes=n1 Default=YES\n";
    let (config, _) = config::parse_slurm(text, "slurm.conf").expect("it is right");
    let given: Vec<(&str, &str)> =
        config.as_given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(given, [("ClusterName", "c"), ("MessageTimeout", "30"), ("SchedulerParameters", "bf_interval=5")]);
    let again = config::parse(&config::render(&config), "spur.conf").expect("what is rendered is right");
    assert_eq!(again.as_given, config.as_given);
}

#[test]
fn what_is_rendered_reads_the_same() {
    let text = format!(
        "cluster_name = \"ant\"\nsrun_prolog = \"/p\"\nmpi_default = \"pmi2\"\n[controller]\nlog_level = \"debug\"\ndebug_flags = [\"TraceJobs\"]\nsocket = \"/a \\\"b\\\"/c.sock\"\nmin_job_age = 2.5\nadmins = \"ann,bob\"\n\
         [hooks]\nprolog = \"/etc/p.d/*\"\nepilog = [\"/e\", \"/f\"]\ntask_prolog = \"/t\"\nflags = [\"contain\"]\nprolog_timeout = 5\njob_submit = [\"require_timelimit\", \"/etc/job_submit.lua\"]\njob_submit_timeout = 3\n\
         [accounting]\npurge_jobs_after = \"12months\"\npurge_steps_after = \"2 days\"\n\
         [agent]\nspool_dir = \"/s/%n\"\nkill_wait = 1\n[scheduler]\ndepth = 7\nrequeues = false\n\
         weight_tres = \"cpu=1000,gres/gpu=3000\"\npriority_flags = \"MAX_TRES,NO_NORMAL_TRES,INCR_ONLY\"\n\
         default_memory_per_cpu_mb = \"1G\"\n{NODES}gres = \"gpu:a100:1,gpu:h100:1,fpga:1\"\n\
         gres_files = [\"gpu=/dev/nvidia[0-1]\"]\nfeatures = [\"fast\", \"ib\"]\n\
         [[nodes]]\nnames = \"m[01-02]\"\nsockets = 2\ncores_per_socket = 4\nthreads_per_core = 2\nweight = 5\n\
         [[partitions]]\nname = \"p\"\nnodes = \"n[1-2],m01\"\nmax_time = \"1-00:00:00\"\nmax_nodes = 2\n\
         [[partitions]]\nname = \"q\"\nnodes = \"ALL\"\ndefault = true\nstate = \"drain\"\nhidden = true\n"
    );
    let config = parse(&text, "c").unwrap();
    assert_eq!(config.nodes[3].config.cpus, 16);
    assert_eq!(config.nodes[0].config.gres[1].files, ["/dev/nvidia1"]);
    let rendered = config::render(&config);
    assert_eq!(parse(&rendered, "rendered").unwrap(), config, "{rendered}");
}
