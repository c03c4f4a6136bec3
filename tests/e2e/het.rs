//! Heterogeneous jobs: several jobs that are one to their user.
use crate::cluster::Cluster;

const HET: &str = "#!/bin/bash\n#SBATCH -n1 -J h0\n#SBATCH hetjob\n#SBATCH -n2 -J h1\n";

fn script(cluster: &Cluster, name: &str, body: &str) {
    let work = cluster.dir.join("work");
    std::fs::create_dir_all(&work).unwrap();
    std::fs::write(work.join(name), format!("{HET}{body}\n")).expect("the script is written");
}

#[test]
fn filters_end_a_whole_by_its_leader() {
    let cluster = Cluster::up("--nodes 2");
    cluster.ok("sbatch -H -n1 : -n1 --wrap true");
    let ended = cluster.run("scancel -t pending; squeue -h");
    assert_eq!((ended.out.as_str(), ended.err.as_str(), ended.code), ("", "", 0));
}

#[test]
fn a_script_with_two_components_runs_on_the_first_and_knows_both() {
    let cluster = Cluster::up("--nodes 3 --cpus 2");
    script(
        &cluster,
        "het.sh",
        "env | grep -E '^SLURM_(HET_SIZE|JOB_ID|NTASKS|JOB_NODELIST|JOB_NAME)' | sort\n\
         srun --het-group=0,1 -l bash -c 'echo $SLURM_PROCID/$SLURM_NTASKS $SLURM_NNODES $SLURM_JOB_ID $SLURM_STEP_ID' | sort\n\
         srun -l hostname | wc -l\n\
         srun --het-group=1 bash -c 'echo $SLURM_PROCID/$SLURM_NTASKS $SLURM_STEP_ID' | sort\n\
         srun -n1 echo a : -n2 echo b | sort\n\
         srun --het-group=2 true\n\
         true",
    );
    cluster.ok("sbatch -W -o het.out het.sh");
    let expected = "SLURM_HET_SIZE=2\nSLURM_JOB_ID=1\nSLURM_JOB_ID_HET_GROUP_0=1\nSLURM_JOB_ID_HET_GROUP_1=2\n\
        SLURM_JOB_ID_PACK_GROUP_0=1\nSLURM_JOB_ID_PACK_GROUP_1=2\n\
        SLURM_JOB_NAME=h0\nSLURM_JOB_NAME_HET_GROUP_0=h0\nSLURM_JOB_NAME_HET_GROUP_1=h1\n\
        SLURM_JOB_NAME_PACK_GROUP_0=h0\nSLURM_JOB_NAME_PACK_GROUP_1=h1\n\
        SLURM_JOB_NODELIST=n1\nSLURM_JOB_NODELIST_HET_GROUP_0=n1\nSLURM_JOB_NODELIST_HET_GROUP_1=n2\n\
        SLURM_JOB_NODELIST_PACK_GROUP_0=n1\nSLURM_JOB_NODELIST_PACK_GROUP_1=n2\n\
        SLURM_NTASKS=1\nSLURM_NTASKS_HET_GROUP_0=1\nSLURM_NTASKS_HET_GROUP_1=2\n\
        SLURM_NTASKS_PACK_GROUP_0=1\nSLURM_NTASKS_PACK_GROUP_1=2\n\
        0: 0/3 2 1 0\n1: 1/3 2 1 0\n2: 2/3 2 1 0\n1\n0/2 2\n1/2 2\na\nb\nb\n\
        srun: error: Requested het-group offset exceeds highest hetjob index (2 > 1)\n";
    assert_eq!(cluster.file("het.out"), expected);
}

#[test]
fn components_are_named_held_and_cancelled_as_slurm_does() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    script(&cluster, "het.sh", "sleep 600");
    assert_eq!(cluster.ok("sbatch -H het.sh"), "Submitted batch job 1");
    assert_eq!(cluster.ok("squeue -h -S i -o '%i|%A|%F|%K|%j|%t'"), "1+0|1|1|N/A|h0|PD\n1+1|2|2|N/A|h1|PD");
    assert_eq!(cluster.ok("squeue -h -j 1+1 -o %i | wc -l"), "2");
    assert_eq!(cluster.ok("squeue -h -j 2 -o %i"), "1+1");
    let columns = "squeue -h -S i -O JobID:4,HetJobID:4,HetJobOffset:4,HetJobIDSet:4,JobArrayID:4";
    assert_eq!(cluster.ok(columns), "1   1   0   1-2 1+0 \n2   1   1   1-2 1+1");
    let shown = cluster.ok("scontrol -o show job 1+1");
    assert!(shown.starts_with("JobId=2 HetJobId=1 HetJobOffset=1 JobName=h1 HetJobIdSet=1-2 UserId="), "{shown}");
    assert_eq!(cluster.ok("scontrol -o show job 1 | wc -l"), "2");
    let unknown = cluster.run("scontrol show job 1+9");
    assert_eq!((unknown.out.as_str(), unknown.code), ("Job 1+9 not found\n", 1));
    let whole_only = "Operation not permitted on individual component of heterogeneous job";
    for name in ["1+1", "2"] {
        let refused = cluster.run(&format!("scancel {name}"));
        assert_eq!(refused.err, format!("scancel: error: Kill job error on job id {name}: {whole_only}\n"));
    }
    assert_eq!(cluster.run("scontrol suspend 1+1").err, format!("{whole_only} for job 1+1\n"));
    assert_eq!(cluster.run("scontrol requeue 1+1").err, "Invalid job id specified for job 1+1\n");
    assert_eq!(cluster.run("scontrol requeue 2").err, "Job not heterogeneous job leader for job 2\n");
    assert_eq!(cluster.run("scontrol requeue 1").err, "Job is pending execution for job 1\n");
    cluster.ok("scontrol update job=1+1 timelimit=6");
    cluster.ok("scontrol update job=1 name=yy");
    assert_eq!(cluster.ok("squeue -h -S i -o '%i %j %l'"), "1+0 yy UNLIMITED\n1+1 yy 6:00");
    cluster.ok("scontrol release 1+1");
    assert_eq!(cluster.ok("squeue -h -t R"), "", "one that is held keeps the other");
    cluster.ok("scontrol release 1");
    cluster.wait_for("squeue -h -S i -o '%i %T %N'", "1+0 RUNNING n1\n1+1 RUNNING n2");
    cluster.ok("scontrol suspend 1");
    assert_eq!(cluster.ok("squeue -h -o %T"), "SUSPENDED\nSUSPENDED");
    cluster.ok("scontrol resume 1");
    cluster.ok("scancel 2");
    cluster.wait_for("squeue -h -t all -S i -o '%i %T'", "1+0 RUNNING\n1+1 CANCELLED");
    cluster.ok("scancel 1");
    cluster.wait_for("squeue -h -t all -S i -o '%i %T'", "1+0 CANCELLED\n1+1 CANCELLED");
}

#[test]
fn the_whole_waits_until_all_components_fit_and_is_requeued_as_one() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    script(&cluster, "het.sh", "sleep 600");
    let other = cluster.sbatch("-n2 -w n2 --wrap 'sleep 600'");
    cluster.wait_for(&format!("squeue -h -j {other} -o %T"), "RUNNING");
    cluster.ok("sbatch het.sh");
    cluster.wait_for("squeue -h -n h0 -o '%i %T %r'", "2+0 PENDING Resources");
    assert_eq!(cluster.ok("squeue -h -n h1 -o '%i %T'"), "2+1 PENDING");
    cluster.ok(&format!("scancel {other}"));
    cluster.wait_for("squeue -h -S i -n h0,h1 -o '%i %T'", "2+0 RUNNING\n2+1 RUNNING");
    cluster.ok("scontrol requeue 2");
    cluster
        .wait_for("squeue -h -S i -n h0,h1 -O JobArrayID:5,RestartCnt:3,State:9", "2+0  1  RUNNING  \n2+1  1  RUNNING");
    let refused = cluster.run("sbatch -n1 : -p nosuch --wrap true");
    assert_eq!(
        refused.err,
        "sbatch: error: invalid partition specified: nosuch\n\
         sbatch: error: Batch job submission failed: Invalid partition name specified\n"
    );
    let array = cluster.run("sbatch -n1 : -n2 --array=1-2 --wrap true");
    assert_eq!(array.err, "sbatch: error: Batch job submission failed: Invalid job array specification\n");
}

#[test]
fn srun_and_salloc_take_several_components() {
    let cluster = Cluster::up("--nodes 3 --cpus 2");
    assert_eq!(cluster.ok("srun -l -n1 echo a : -n2 echo b | sort"), "0: a\n1: b\n2: b");
    // Which nodes they get depends on who still holds some.
    let alone = |line: &str| {
        cluster.wait_for("squeue -h", "");
        cluster.run(line)
    };
    let failed = alone("srun -n1 true : -n1 sh -c 'exit 3'");
    assert_eq!(failed.code, 3, "{failed:?}");
    assert!(failed.err.contains("srun: error: n2: task 0: Exited with exit code 3"), "{failed:?}");
    assert_eq!(cluster.run("srun -n1 true :").err, "srun: fatal: No command given to execute.\n");
    assert_eq!(cluster.ok("srun -N1 : -N2 sh -c 'echo $SLURM_NTASKS' | sort -u"), "3");
    let inside = "salloc -n1 : -n2 sh -c 'echo $SLURM_HET_SIZE $SLURM_NTASKS $SLURM_JOB_NODELIST_HET_GROUP_1; \
        squeue -h -S i -o \"%i %t\"; srun --het-group=0,1 -l echo hi | sort; srun -l echo single'";
    let said = alone(inside);
    let id: u32 = said
        .err
        .split("Granted job allocation ")
        .nth(1)
        .and_then(|rest| rest.trim().lines().next()?.parse().ok())
        .unwrap();
    assert_eq!(said.out, format!("2 3 n2\n{id}+0 R\n{id}+1 R\n0: hi\n1: hi\n2: hi\n0: single\n"), "{said:?}");
    let parts = cluster.ok("salloc -Q -N2 -n2 srun -l -n1 -N1 echo one : -n1 -N1 echo two | sort");
    assert_eq!(parts, "0: one\n1: two", "a step in parts needs no heterogeneous job");
    let twice = alone("salloc -Q -N2 srun -w n1 true : -w n1 true");
    assert_eq!(
        twice.err,
        "srun: error: Requested nodelist n1 overlaps with excluded n1.\nsrun: error: Job not submitted.\n"
    );
    let few = cluster.run("salloc -Q -N1 srun true : true");
    assert_eq!(
        few.err,
        "srun: error: Allocation failure of 1 nodes: job size of 1, already allocated 1 nodes to previous components.\n"
    );
    cluster.wait_for("squeue -h", "");
}

#[test]
fn the_end_of_the_script_ends_all_with_its_code() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    script(&cluster, "het.sh", "exit 3");
    assert_eq!(cluster.run("sbatch -W het.sh").code, 3);
    cluster.wait_for("squeue -h -t all -S i -o '%i %T %r'", "1+0 FAILED NonZeroExitCode\n1+1 FAILED NonZeroExitCode");
    assert_eq!(cluster.ok("scontrol -o show job 1 | grep -o ExitCode=3:0 | wc -l"), "2");
}
