//! Nodes that are taken back before a job ran, and runs that begin again: the data that is there is used, and everything goes where
//! it belongs.
use std::fs;

use crate::burst::{Burst, empty};

fn staged(burst: &Burst, node: &str, direction: &str) -> usize {
    let log = fs::read_to_string(burst.cluster.dir.join(format!("log/agent-{node}.log"))).unwrap();
    log.lines().filter(|line| line.contains(" staged") && line.contains(&format!("direction={direction}"))).count()
}

fn set_node(burst: &Burst, node: &str, state: &str) {
    burst.cluster.ok(&format!("scontrol update nodename={node} state={state} reason=test"));
}

#[test]
fn a_node_taken_away_in_pre_run_costs_the_others_nothing() {
    let burst = empty(3, "bandwidth = \"256KiB\"");
    burst.fill("input", 40, 50_000);
    let cluster = &burst.cluster;
    let body = "srun -N2 sh -c 'echo $SLURMD_NODENAME $(ls $DW_JOB_PRIVATE/in | wc -l)'";
    set_node(&burst, "n3", "drain");
    let job = burst.submit("wide", "-N2 --ntasks-per-node=1", "local", body);
    burst.wait(&job, "pre-run");
    set_node(&burst, "n2", "down");
    burst.wait(&job, "alloc-revoke");
    let shown = cluster.ok(&format!("scontrol show job {job}"));
    assert!(shown.contains("BurstBufferState=alloc-revoke"), "{shown}");
    burst.wait(&job, "staged-in");
    let line = format!("squeue -h -j {job} -o '%T %r'");
    cluster.wait_until(&line, |said| said.out.starts_with("PENDING ") && !said.out.contains("BurstBuffer"));
    assert!(burst.private("n1", &job).exists() && burst.private("n2", &job).exists());
    assert_eq!((staged(&burst, "n1", "In"), staged(&burst, "n2", "In")), (1, 1));
    // The next start has another node: it gets what it lacks, and what is of no use goes.
    set_node(&burst, "n3", "resume");
    cluster.wait_state(&job, "COMPLETED");
    let said = cluster.file("wide.out");
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["n1 40", "n3 40"]);
    assert_eq!((staged(&burst, "n1", "In"), staged(&burst, "n3", "In")), (1, 1), "n1 had it already");
    for node in ["n1", "n3"] {
        burst.same(&format!("back-{job}-{node}"));
    }
    assert!(!burst.has(&format!("back-{job}-n2")));
    burst.nothing_is_left();
}

#[test]
fn what_a_requeued_run_brings_back_keeps_the_numbers_of_its_nodes() {
    let burst = empty(2, "");
    burst.fill("input", 3, 1000);
    let cluster = &burst.cluster;
    let body =
        "srun -N2 sh -c 'echo $SLURMD_NODENAME > $DW_JOB_PRIVATE/in/who'; touch $SLURM_SUBMIT_DIR/ran; sleep 300";
    let options = "-N2 --ntasks-per-node=1";
    let job = burst.submit_to("rank", options, "local", "back-%t", body);
    cluster.wait_until("ls", |said| said.out.lines().any(|line| line == "ran"));
    cluster.ok(&format!("scontrol requeuehold {job}"));
    burst.wait(&job, "pending");
    assert_eq!((cluster.file("back-0/who"), cluster.file("back-1/who")), ("n1\n".into(), "n2\n".into()));
    cluster.ok(&format!("scancel {job}"));
    burst.nothing_is_left();
}
