//! Memory limits: what happens to those who use more than they asked for.
use crate::cluster::Cluster;

/// A shell that holds about this many megabytes until it is ended, or has leave to end after a while.
fn hog(megabytes: u32) -> String {
    let holds = format!("x=$(head -c {megabytes}000000 /dev/zero | tr '\\0' x); sleep 3");
    format!("{holds}; while [ ! -e leave ]; do sleep 0.1; done; echo alive")
}

#[test]
fn a_script_that_uses_more_memory_than_it_asked_for_runs_out_of_it() {
    let cluster = Cluster::up("--nodes 1 --cpus 2");
    std::fs::write(cluster.dir.join("work/hog.sh"), format!("#!/bin/bash\n{}\n", hog(120))).unwrap();
    let job = cluster.sbatch("--mem=40 -o hog.out hog.sh");
    cluster.wait_state(&job, "OUT_OF_MEMORY");
    let shown = cluster.ok(&format!("scontrol show job {job}"));
    assert!(shown.contains("JobState=OUT_OF_MEMORY Reason=OutOfMemory"), "{shown}");
    assert!(shown.contains("ExitCode=0:125"), "{shown}");
    let out = cluster.file("hog.out");
    assert!(out.contains(&format!("StepId={job}.batch")) && !out.contains("alive"), "{out}");
    cluster.ok("touch leave");
    let job = cluster.sbatch("-W --mem=400 -o fine.out hog.sh");
    assert_eq!(cluster.file("fine.out"), "alive\n", "{job}");
}

#[test]
fn a_step_that_runs_out_of_memory_says_so() {
    let cluster = Cluster::up("--nodes 1 --cpus 2");
    std::fs::write(cluster.dir.join("work/hog.sh"), format!("#!/bin/bash\n{}\n", hog(120))).unwrap();
    let said = cluster.run("srun --mem=40 bash hog.sh");
    assert!(said.err.contains("srun: error: n1: task 0: Out Of Memory"), "{said:?}");
    assert!(said.err.contains("StepId=1.0") && said.code != 0, "{said:?}");
    cluster.wait_state("1", "OUT_OF_MEMORY");
}
