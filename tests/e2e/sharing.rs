//! Several steps in one allocation: who waits for whom, and who gets which devices.
use crate::cluster::Cluster;

const WAITS: &str = "srun: Job 1 step creation temporarily disabled, retrying (Requested nodes are busy)";

/// Two steps of one task each, the first of which ends when the second has begun, or has been made to wait.
fn two_steps(cluster: &Cluster, size: &str, first: &str, second: &str) -> crate::cluster::Said {
    cluster.run(&format!(
        "salloc -Q {size} bash -c '
            srun {first} bash -c \"touch first; while ! test -e go; do sleep 0.01; done\" & FIRST=$!
            while ! test -e first; do sleep 0.01; done
            srun {second} echo second 2>err & SECOND=$!
            while kill -0 $SECOND 2>/dev/null && ! grep -q retrying err; do sleep 0.01; done
            grep -q retrying err && echo waited
            touch go; wait $SECOND; CODE=$?; wait $FIRST; cat err >&2; rm -f first go err; exit $CODE'"
    ))
}

#[test]
fn steps_have_their_nodes_to_themselves_unless_they_say_otherwise() {
    let cluster = Cluster::up("--nodes 1 --cpus 4");
    let said = two_steps(&cluster, "-n2", "-n1", "-n1");
    assert_eq!(said.out, "waited\nsecond\n", "{said:?}");
    assert!(said.err.contains(WAITS) && said.err.contains("srun: Step created for job 1"), "{said:?}");
    for (first, second) in [
        ("-n1 --exact", "-n1 --exact"),
        ("-n1 --exclusive", "-n1 -c1"),
        ("-n1", "-n1 --overlap"),
        ("-n1 --overlap", "-n1"),
        ("-n1 --exact --mem=60", "-n1 --exact --mem=40"),
        // The job's memory is each step's, where the variable says so.
        ("-n1 --exact", "-n1 --exact --mem=0"),
    ] {
        let size = if first.contains("mem") || second.contains("mem") { "-n2 --mem=100" } else { "-n2" };
        let said = two_steps(&cluster, size, first, second);
        assert_eq!((said.out.as_str(), said.code), ("second\n", 0), "{first} | {second}: {said:?}");
    }
    let said = two_steps(&cluster, "-n2 --mem=100", "-n1 --exact --mem=60", "-n1 --exact --mem=50");
    assert!(said.out.starts_with("waited"), "{said:?}");
    let said = two_steps(&cluster, "-n1", "-n1", "--immediate=1 -n1");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("Unable to create step for job 9: Requested nodes are busy"), "{said:?}");
}

#[test]
fn a_crowd_that_waits_for_room_runs_a_few_at_a_time() {
    let cluster = Cluster::up("--nodes 1 --cpus 4");
    // The wide one waits until all is free; the narrow ones that came after it need not wait for it. One goes while it waits.
    let said = cluster.run(
        "salloc -Q -n4 bash -c '
            srun --exact -n1 -c1 bash -c \"touch first; while ! test -e go; do sleep 0.01; done\" & FIRST=$!
            while ! test -e first; do sleep 0.01; done
            srun -Q --exact -n4 sh -c \"echo wide >>ran\" & WIDE=$!
            srun -Q --exact -n4 sleep 100 & GONE=$!
            for i in $(seq 40); do
                srun -Q --exact -n1 -c1 sh -c \"touch in.$i; ls in.* | wc -l >>most; rm in.$i; echo narrow >>ran\" & NARROW=\"$NARROW $!\"
            done
            wait $NARROW; kill -9 $GONE; touch go; wait $FIRST $WIDE'
         sort ran | uniq -c | xargs; sort -n most | tail -1",
    );
    assert_eq!((said.out.lines().next(), said.code), (Some("40 narrow 4 wide"), 0), "{said:?}");
    let most: u32 = said.out.lines().last().and_then(|line| line.trim().parse().ok()).expect("a count");
    assert!(most <= 3, "one CPU is taken: {said:?}");
}

#[test]
fn what_a_step_cannot_have_is_told_as_slurm_tells_it() {
    let cluster = Cluster::up("--nodes 2 --cpus 4");
    for (line, expected) in [
        ("salloc -Q -n1 srun --mem=999999 true", "Memory required by task is not available"),
        ("salloc -Q -n2 srun -n3 true", "More processors requested than permitted"),
        ("salloc -Q -n2 srun -c2 -n2 true", "More processors requested than permitted"),
        ("salloc -Q -N2 -n4 srun -N1 true", "More processors requested than permitted"),
        ("salloc -Q -n1 srun --gres=gpu:1 true", "Invalid generic resource (gres) specification"),
    ] {
        // The default memory of a job may be none at all.
        let line = line.replace("-Q -n1 srun --mem", "-Q -n1 --mem=100 srun --mem");
        let said = cluster.run(&line);
        assert_eq!(said.code, 1, "{line}: {said:?}");
        assert!(said.err.contains(expected), "{line}: {said:?}");
    }
    let out = cluster.ok("salloc -Q -N2 -n4 srun -l -O -n20 sh -c 'echo $SLURMD_NODENAME' | sort | uniq -c | wc -l");
    assert_eq!(out, "20");
}

#[test]
fn tasks_go_where_the_host_file_says() {
    let cluster = Cluster::up("--nodes 2 --cpus 4");
    cluster.ok("printf 'n2\\nn1\\nn2\\n' >hosts");
    let line = "srun -l -n3 sh -c 'echo $SLURMD_NODENAME' | sort";
    let expected = "0: n2\n1: n1\n2: n2";
    assert_eq!(cluster.ok(&format!("export SLURM_HOSTFILE=hosts; salloc -Q -N2 -n6 {line}")), expected);
    assert_eq!(cluster.ok(&format!("SLURM_HOSTFILE=hosts {}", line.replace("srun", "srun -m arbitrary"))), expected);
    let plane = cluster.ok("srun -N2 -n6 -m plane=2 -l sh -c 'echo $SLURMD_NODENAME' | sort");
    assert_eq!(plane, "0: n1\n1: n1\n2: n2\n3: n2\n4: n1\n5: n1");
}

#[test]
fn jobs_share_a_gpu_by_parts() {
    let cluster = Cluster::configured(
        "[[nodes]]\nnames = \"n1\"\ncpus = 8\nmemory_mb = 1000\ngres = \"gpu:2,shard:8,mps:200\"\n[[partitions]]\nname = \"debug\"\nnodes = \"n1\"\ndefault = true\n",
    );
    let told = "sh -c 'echo $CUDA_VISIBLE_DEVICES/$SLURM_SHARDS_ON_NODE/$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE/$SLURM_GPUS_ON_NODE/$SLURM_JOB_GPUS'";
    assert_eq!(cluster.ok(&format!("srun --gres=shard:3 {told}")), "0/3//1/0");
    assert_eq!(cluster.ok(&format!("srun --gres=mps:50 {told}")), "0//50/1/0");
    assert_eq!(cluster.ok(&format!("srun --gres=gpu:2 {told}")), "0,1///2/0,1");
    // Steps have parts of their job's; one that asks for none has none of them.
    let inside = |options: &str| cluster.ok(&format!("salloc -Q --gres=shard:3 srun {options} {told}"));
    assert_eq!((inside("--gres=shard:2"), inside("--gres=none")), ("0/2//1/0".into(), "///1/0".into()));
    // While one job has some of the first GPU, a whole one is the other, and nobody has two.
    let within = |options: &str, what: &str| cluster.ok(&format!("salloc -Q --gres=shard:3 srun {options} {what}"));
    assert_eq!(within("--overlap", &format!("env -u SLURM_JOB_ID -u SLURM_JOBID srun --gres=gpu:1 {told}")), "1///1/1");
    assert_eq!(
        within("--overlap", &format!("env -u SLURM_JOB_ID -u SLURM_JOBID srun --gres=shard:2 {told}")),
        "1/2//1/1"
    );
    assert_eq!(
        within(
            "--overlap",
            "sh -c 'env -u SLURM_JOB_ID -u SLURM_JOBID srun -Q --immediate=1 --gres=gpu:2 true 2> /dev/null; echo $?'"
        ),
        "1"
    );
    let shown = cluster.ok("salloc -Q --gres=shard:3 sh -c 'scontrol -d show job $SLURM_JOB_ID; scontrol -d show node n1' | grep -oE '(GRES|GresUsed)=[^ ]+'");
    assert_eq!(shown, "GRES=shard:3\nGRES=shard:3(IDX:0)\nGresUsed=gpu:0,shard:3,mps:0");
    for (options, words) in [
        ("--gres=shard:5", "Requested node configuration is not available"),
        ("--gres=shard:1,gpu:1", "Invalid generic resource (gres) specification"),
    ] {
        let refused = cluster.run(&format!("sbatch {options} --wrap true"));
        assert!(refused.code == 1 && refused.err.contains(words), "{options}: {refused:?}");
    }
}

#[test]
fn a_job_may_leave_less_to_the_system_than_the_site_keeps() {
    let nodes = "[[nodes]]\nnames = \"n1\"\nsockets = 1\ncores_per_socket = 4\nmemory_mb = 1000\nkept_cores = 2\n[[partitions]]\nname = \"debug\"\nnodes = \"n1\"\ndefault = true\n";
    let count = "sh -c 'echo $SLURM_JOB_CPUS_PER_NODE; squeue -h -j $SLURM_JOB_ID -o %X; scontrol show job $SLURM_JOB_ID | grep -oE \"(Core|Thread)Spec=.*\"'";
    let cluster = Cluster::configured(&format!("may_spare_cores = 1\n{nodes}"));
    assert_eq!(cluster.ok(&format!("srun -n1 {count}")), "1\nN/A\nCoreSpec=*");
    assert_eq!(cluster.ok(&format!("srun -n1 --core-spec=0 {count}")), "4\n0\nCoreSpec=0");
    assert_eq!(cluster.ok(&format!("srun -n1 -S 1 {count}")), "3\n1\nCoreSpec=1");
    assert_eq!(cluster.ok(&format!("srun -n1 --thread-spec=3 {count}")), "1\n3 Threads\nThreadSpec=3");
    assert_eq!(
        cluster.ok("sbatch -W -o out -n4 --core-spec=0 --wrap 'srun -l hostname | wc -l' > /dev/null; cat out"),
        "4"
    );
    let refused = cluster.run("srun -N1 --core-spec=2 -n3 true");
    assert!(refused.code == 1 && refused.err.contains("configuration is not available"), "{refused:?}");
    let strict = Cluster::configured(nodes);
    let ignored = strict.run(&format!("srun -n1 --core-spec=0 {count}"));
    assert_eq!(ignored.out.trim(), "1\nN/A\nCoreSpec=*");
    assert!(ignored.err.contains("Ignoring -S since it's not allowed by configuration"), "{ignored:?}");
}

#[test]
fn steps_share_the_gpus_of_their_job() {
    let cluster = Cluster::configured(
        "[[nodes]]\nnames = \"n1\"\ncpus = 4\nmemory_mb = 1000\ngres = \"gpu:a100:4\"\n[[partitions]]\nname = \"debug\"\nnodes = \"n1\"\ndefault = true\n",
    );
    let gpus = "sh -c 'echo $CUDA_VISIBLE_DEVICES/$ROCR_VISIBLE_DEVICES/$SLURM_STEP_GPUS/$SLURM_JOB_GPUS'";
    let inside = |options: &str| cluster.ok(&format!("salloc -Q -n4 --gres=gpu:3 srun {options} {gpus} | sort"));
    assert_eq!(cluster.ok(&format!("srun --gres=gpu:a100:2 {gpus}")), "0,1/0,1/0,1/0,1");
    assert_eq!(inside("-n1"), "0,1,2/0,1,2/0,1,2/0,1,2");
    assert_eq!(inside("-n1 --gres=gpu:1"), "0/0/0/0,1,2");
    assert_eq!(inside("-n1 --gpus=2"), "0,1/0,1/0,1/0,1,2");
    assert_eq!(inside("-n1 --gres=none"), "///0,1,2");
    assert_eq!(inside("-n2 --gpus-per-task=1"), "0/0/0,1/0,1,2\n1/1/0,1/0,1,2");
    assert_eq!(inside("-n2 --gpu-bind=map_gpu:2,1"), "1/1/0,1,2/0,1,2\n2/2/0,1,2/0,1,2");
    let told = cluster.run("srun -l -n2 --gpus=2 --gpu-bind=verbose,single:1 true");
    let bound = |task: u32| {
        format!("{task}: gpu-bind: usable_gres=0x{0}; bit_alloc=0x3; local_inx=1; global_list={task}", task + 1)
    };
    assert!(told.err.contains(&bound(0)) && told.err.contains(&bound(1)), "{told:?}");
    let shown = cluster.ok("srun -n2 --gpus=2 --gpus-per-task=1 --cpus-per-gpu=2 --gpu-freq=high sh -c 'test $SLURM_PROCID = 1 || scontrol show step $SLURM_JOB_ID.0' | grep Tres");
    assert_eq!(
        shown.replace("   ", ""),
        "CpusPerTres=gres:gpu:2\nTresFreq=gpu:high\nTresPerStep=cpu:4,gres:gpu:2\nTresPerTask=gres:gpu:1"
    );
    let wrong = cluster.run("srun --gpu-bind=verbose,map_gpu:NaN true");
    assert!(wrong.err.starts_with("srun: error: Failed to validate NaN, offending character is N\n"), "{wrong:?}");
    let two = "--exact -n1 --gres=gpu:1 sh -c 'echo $CUDA_VISIBLE_DEVICES; touch s$SLURM_STEP_ID; while ! test -e s1 || ! test -e s0; do sleep 0.01; done'";
    let out = cluster.ok(&format!(
        "salloc -Q -n4 --gres=gpu:2 bash -c \"srun {two} & srun {two}; wait\" | sort",
        two = two.replace('$', "\\$")
    ));
    assert_eq!(out, "0\n1");
    let refused = cluster.run("salloc -Q -n1 --gres=gpu:1 srun --gres=gpu:2 true");
    assert!(refused.err.contains("Invalid generic resource (gres) specification"), "{refused:?}");
}

/// A job waits for its turn until the scheduler has looked; who wants to start at once waits for that look.
#[test]
fn who_wants_to_start_at_once_starts_where_there_is_room() {
    let cluster = Cluster::up("--nodes 2 --cpus 64");
    for round in 0..20 {
        let said = cluster.run("salloc -Q --immediate true");
        assert_eq!((said.code, said.err.as_str()), (0, ""), "round {round}: {said:?}");
    }
    let said = cluster.run("salloc -Q -N2 --exclusive salloc -Q --immediate true");
    assert!(said.err.contains("Requested nodes are busy"), "{said:?}");
    let said = cluster.run("scancel -M other 1");
    assert!(said.code == 1 && said.err.contains("'other' can't be reached now"), "{said:?}");
}
