//! What a job, a node or a partition was given is told wherever it is asked for: in columns, in `scontrol show`, in JSON.
use crate::cluster::Cluster;

const CONFIG: &str = "[[nodes]]\nnames = 'n[1-2]'\ncpus = 8\nsockets = 2\ncores_per_socket = 4\nmemory_mb = 4000\nfeatures = ['fast']\ngres = 'gpu:2'\n\
    [[partitions]]\nname = 'main'\nnodes = 'ALL'\ndefault = true\n";

/// As a real Slurm 22.05 answers to the same submissions.
#[test]
fn what_a_job_was_given_is_told_everywhere() {
    let cluster = Cluster::configured(CONFIG);
    let jobs = [
        ("--sockets-per-node=1 --cores-per-socket=2 --threads-per-core=1", "sct", "1:2:1"),
        ("--sockets-per-node=1", "sct", "1:*:*"),
        ("-B 1:2:1", "cores", "2"),
        ("-n4 --ntasks-per-core=1", "ntpercore", "1"),
        ("-n4 --ntasks-per-socket=2", "ntpersocket", "2"),
        ("-n1", "ntpersocket", "N/A"),
        ("--gpus=2 --cpus-per-gpu=2", "cpus-per-tres", "gres:gpu:2"),
        ("--gpus=2 --mem-per-gpu=100", "mem-per-tres", "gres:gpu:100"),
        ("--gpus=2", "tres-per-job", "gres:gpu:2"),
        ("--gpus=2", "mem-per-tres", "N/A"),
        ("-n2 --gpus-per-task=1 --gpu-bind=closest", "tres-bind", "gpu:closest"),
        ("-n2 --gpus-per-task=1", "tres-per-task", "gres:gpu:1"),
        ("--gpus-per-socket=1 --sockets-per-node=1", "tres-per-socket", "gres:gpu:1"),
        ("--prefer=fast", "prefer", "fast"),
        ("-n1", "prefer", "(null)"),
    ];
    for (options, column, expected) in jobs {
        let job = cluster.ok(&format!("sbatch --parsable -H {options} --wrap true"));
        assert_eq!(cluster.ok(&format!("squeue -h -j {job} -O {column}:30")).trim(), expected, "{options}");
    }
    let shown = |job: &str| cluster.ok(&format!("scontrol show job {job}"));
    let preferring = cluster.ok("sbatch --parsable -H --prefer=fast --wrap true");
    assert!(shown(&preferring).contains("\n   Prefer=fast\n"), "{}", shown(&preferring));
    cluster.ok(&format!("scontrol update job={preferring} AdminComment='looked at'"));
    assert!(shown(&preferring).contains("\n   AdminComment=looked at \n"), "{}", shown(&preferring));
    assert_eq!(cluster.ok(&format!("squeue -h -j {preferring} -O admin_comment:20")).trim(), "looked at");
    let sized = cluster.ok(
        "sbatch --parsable -H --sockets-per-node=1 --cores-per-socket=2 --mail-type=END,BEGIN --spread-job --wrap true",
    );
    let document = |job: &str| cluster.ok(&format!("squeue -j {job} --json=v0.0.38 | tr -d ' \\n'"));
    for part in ["\"cores_per_socket\":2", "\"sockets_per_node\":1", "\"threads_per_core\":null", "[\"SPREAD_JOB\"]"] {
        assert!(document(&sized).contains(part), "{part}: {}", document(&sized));
    }
    for part in ["\"prefer\":\"fast\"", "\"admin_comment\":\"lookedat\""] {
        assert!(document(&preferring).contains(part), "{part}: {}", document(&preferring));
    }
    cluster.wait_until(&format!("scancel {preferring}; sacct -n -X -P -j {preferring} -o admincomment"), |said| {
        said.out.trim() == "looked at"
    });
}

#[test]
fn what_nodes_and_partitions_were_given_is_told() {
    let cluster = Cluster::configured(CONFIG);
    cluster.ok("scontrol update node=n1 comment='new board' extra=x");
    assert_eq!(cluster.ok("sinfo -h -n n1 -O comment:12,extra:5").trim_end(), "new board   x");
    cluster.ok("scontrol create partition=small nodes=n1 allowaccounts=a,b denyqos=x maxcpuspernode=3");
    let document = cluster.ok("scontrol show partition small --json=v0.0.38 | tr -d ' \\n'");
    for part in ["\"allowed_accounts\":\"a,b\"", "\"denied_qos\":\"x\"", "\"maximum_cpus_per_node\":3"] {
        assert!(document.contains(part), "{part}: {document}");
    }
    assert!(cluster.ok("scontrol show node n1").contains("Partitions=main,small "), "both, in order");
    assert_eq!(cluster.ok("sinfo -h -N -n n1 -o %P").split_whitespace().collect::<Vec<_>>(), ["main*", "small"]);
}
