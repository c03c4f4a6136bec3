//! What helps the tasks of a step: their program brought to the nodes (`--bcast`), PMIx (`--mpi=pmix`).
use crate::cluster::{Cluster, Said};

#[test]
fn a_program_is_brought_to_the_nodes_before_its_tasks_start() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    let program = "#!/bin/bash\necho $SLURM_PROCID ${0##*/} \"$@\"\n";
    std::fs::write(cluster.dir.join("work/prog"), program).unwrap();
    cluster.ok("chmod 750 prog");
    let out = cluster.ok("srun -N2 -n3 --bcast ./prog a 'b c' | sort");
    assert_eq!(out, "0 slurm_bcast_1.0_n1 a b c\n1 slurm_bcast_1.0_n1 a b c\n2 slurm_bcast_1.0_n2 a b c");
    assert_eq!(cluster.ok("stat -c %a slurm_bcast_1.0_n2"), "750");
    let inside = "salloc -Q -N2 bash -c 'srun --bcast=$PWD/mine -n1 ./prog x; srun -N1 --bcast=$PWD/sub/ ./prog'";
    assert_eq!(cluster.ok(&format!("mkdir sub; {inside}")), "0 mine x\n0 slurm_bcast_2.1_n1");
    assert_eq!(cluster.ok("ls mine sub"), "mine\n\nsub:\nslurm_bcast_2.1_n1");
    // A file that is there is replaced; one that cannot be written ends the step, and nothing is left of it.
    assert_eq!(cluster.ok("echo old >mine; srun --bcast=$PWD/mine ./prog"), "0 mine");
    let said = cluster.run("srun --bcast=/nosuch/place ./prog");
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{said:?}");
    assert!(said.err.contains("REQUEST_FILE_BCAST(n1): No such file or directory"), "{said:?}");
    assert!(said.err.ends_with("./prog'. Step launch aborted.\n"), "{said:?}");
    cluster.wait_for("squeue -h; squeue -hs", "");
    let said = cluster.run("srun --multi-prog --bcast ./prog");
    assert!(said.code == 1 && said.err.contains("cannot be used with --multi-prog"), "{said:?}");
}

#[test]
fn libraries_travel_with_their_program() {
    let cluster = Cluster::up("--nodes 1 --cpus 2");
    let line = "srun --bcast=$PWD/x/sh --send-libs --bcast-exclude=NONE sh -c 'echo ${LD_LIBRARY_PATH#$PWD/}; ls ${LD_LIBRARY_PATH%%:*}'";
    let out = cluster.ok(&format!("mkdir x; export LD_LIBRARY_PATH=/opt/mine; {line}"));
    let (searched, listed) = out.split_once('\n').unwrap();
    assert_eq!(searched, "x/sh_libs:/opt/mine");
    assert!(listed.contains("libc.so"), "{out}");
    // Those of the system stay where they are, unless asked for.
    assert_eq!(cluster.ok("srun --bcast=$PWD/x/sh2 --send-libs sh -c 'ls x/sh2_libs'"), "");
    let said = cluster.run("srun --bcast --send-libs --bcast-exclude=lib true");
    assert_eq!((said.code, said.err.as_str()), (0, "srun: error: Ignoring non-absolute excluded path: 'lib'\n"));
    let job = cluster.sbatch("-N1 --wrap 'sleep 60'");
    cluster.wait_state(&job, "RUNNING");
    cluster
        .ok(&format!("sbcast -j {job} --send-libs --exclude=NONE /bin/sh $PWD/x/copied; ls x/copied_libs/libc.so.*"));
}

/// None where there is no libpmix, which is said aloud.
fn with_pmix(arguments: &str) -> Option<Cluster> {
    let cluster = Cluster::up(arguments);
    let has_python = cluster.run("python3 -c 'import ctypes; ctypes.CDLL(\"libpmix.so.2\")'").code == 0;
    if !has_python || !cluster.ok("srun --mpi=list").contains("pmix") {
        eprintln!("SKIPPED: python3 and libpmix.so.2 are not both found here");
        return None;
    }
    std::fs::write(cluster.dir.join("work/client.py"), include_str!("pmix_client.py")).unwrap();
    Some(cluster)
}

#[test]
fn tasks_find_each_other_through_pmix() {
    let Some(cluster) = with_pmix("--nodes 2 --cpus 4") else { return };
    let alone = cluster.ok("timeout 120 srun --mpi=pmix -n2 python3 client.py all | sort");
    assert_eq!(
        alone,
        "0 of 2 in slurm.pmix.1.0 at n1 with 2: on n1, on n1\n1 of 2 in slurm.pmix.1.0 at n1 with 2: on n1, on n1"
    );
    // Collected at the fence, and fetched from the other node one by one.
    for how in ["all", "direct"] {
        let out = cluster
            .ok(&format!("timeout 120 srun --mpi=pmix -N2 -n3 python3 client.py {how} | sort | cut -d' ' -f 1,2,3,6-"));
        let lines: Vec<&str> = out.lines().collect();
        let places = "on n1, on n1, on n2";
        assert_eq!(lines[0], format!("0 of 3 at n1 with 2: {places}"), "{how}");
        assert_eq!(lines[2], format!("2 of 3 at n2 with 1: {places}"), "{how}");
    }
    // A step that does not care about it, and an inner step that must not find the outer one's variables.
    assert_eq!(cluster.ok("srun --mpi=pmix -n2 echo plain"), "plain\nplain");
    let inner = "salloc -Q -n2 srun --mpi=pmix -n1 bash -c 'srun --overlap -n1 env | grep ^PMIX_RANK= || echo none'";
    assert_eq!(cluster.ok(inner), "none");
    assert_eq!(cluster.ok("ls -d /tmp/spur-pmix-*-$$ 2>/dev/null | wc -l"), "0");
}

#[test]
fn a_pmix_task_that_gives_up_ends_its_step() {
    let Some(cluster) = with_pmix("--nodes 2 --cpus 4") else { return };
    let ended = |said: &Said, words: &str| {
        assert!(said.code != 0 && said.err.contains(words), "{said:?}");
        cluster.wait_for("squeue -h; squeue -hs", "");
    };
    ended(
        &cluster.run("timeout 120 srun --mpi=pmix -N2 -n2 python3 client.py abort"),
        "task 1 called abort: enough of this",
    );
    ended(&cluster.run("timeout 120 srun --mpi=pmix -N2 -n2 python3 client.py die"), "ended without PMIx_Finalize");
}

#[test]
fn the_site_says_what_helps_tasks_where_srun_does_not() {
    let cluster = Cluster::configured(
        "mpi_default = \"pmi2\"\n[[nodes]]\nnames = \"n1\"\ncpus = 2\nmemory_mb = 1000\n[[partitions]]\nname = \"debug\"\nnodes = \"n1\"\ndefault = true\n",
    );
    let rank = "sh -c 'echo ${PMI_RANK-none}' | sort";
    assert_eq!(cluster.ok(&format!("srun -n2 {rank}")), "0\n1");
    assert_eq!(cluster.ok(&format!("srun --mpi=none {rank}")), "none");
    assert_eq!(cluster.ok(&format!("SLURM_MPI_TYPE=none srun {rank}")), "none");
    assert_eq!(cluster.ok("scontrol show config | grep -c '^MpiDefault *= pmi2$'"), "1");
}
