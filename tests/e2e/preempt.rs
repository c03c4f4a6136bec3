//! Preemption with real processes: who is told to go, how, what they hear, and what history says.
use crate::cluster::{Cluster, kill_9};

fn conf(mode: &str, grace: u32) -> String {
    format!(
        "cluster_name = \"urgent\"\n\
         [scheduler]\npreempt_type = \"partition_prio\"\npreempt_mode = \"{mode}\"\n\
         [agent]\nkill_wait = 2\nsuspend_grace = 0\n\
         [[nodes]]\nnames = \"n[1-2]\"\ncpus = 2\nmemory_mb = 1000\n\
         [[partitions]]\nname = \"low\"\nnodes = \"ALL\"\ndefault = true\ngrace_time = {grace}\n\
         [[partitions]]\nname = \"high\"\nnodes = \"ALL\"\npriority_tier = 5\n"
    )
}

#[test]
fn a_preempted_job_is_told_and_ends_as_preempted() {
    let cluster = Cluster::configured(&conf("CANCEL", 1));
    // The step hears the call, the script does not; what ignores it is ended when the grace is over.
    let script = "trap 'echo shell >> heard' TERM; srun --overlap sh -c \"trap 'echo step >> heard' TERM; \
                  touch ready; while :; do sleep 0.05; done\" & while :; do sleep 0.05; done";
    let low = cluster.sbatch(&format!("-N2 -c2 -t 10 --wrap '{}'", script.replace('\'', "'\\''")));
    cluster.wait_file("ready", |_| true);
    let high = cluster.sbatch("-p high -c2 -t 10 --wrap 'echo in >> order; sleep 100'");
    let heard = cluster.wait_file("heard", |text| text.contains("step"));
    assert!(heard.starts_with("step"), "{heard}");
    cluster.wait_state(&low, "PREEMPTED");
    cluster.wait_state(&high, "RUNNING");
    let record = cluster.ok(&format!("scontrol show job {low}"));
    assert!(record.contains(&format!("preempted by job {high}, which runs in partition high")), "{record}");
    assert!(record.contains("PreemptTime=20"), "{record}");
    assert_eq!(cluster.ok(&format!("sacct -X -n -P -j {low} -o State")), "PREEMPTED");
    assert!(cluster.ok(&format!("sacct -X -n -P -j {low} -o SystemComment")).contains(&format!("job {high}")));
    let output = cluster.file(&format!("slurm-{low}.out"));
    assert!(output.contains("DUE TO PREEMPTION ***"), "{output}");
}

#[test]
fn a_requeued_job_runs_again_when_the_other_is_gone_also_after_a_crash() {
    let cluster = Cluster::configured(&conf("REQUEUE", 2));
    let low = cluster.sbatch("-N2 -c2 -t 10 --wrap 'echo run$SLURM_RESTART_COUNT >> runs; sleep 100'");
    cluster.wait_file("runs", |text| text == "run\n" || text == "run0\n");
    let high = cluster.sbatch("-p high -c2 -t 10 --wrap 'while [ ! -e go ]; do sleep 0.05; done'");
    cluster.wait_until(&format!("scontrol show job {low}"), |said| said.out.contains("preempted by job"));
    // In the middle of its grace.
    kill_9(cluster.controller_pid());
    cluster.start("");
    cluster.wait_state(&high, "RUNNING");
    assert_eq!(cluster.ok(&format!("squeue -h -j {low} -o '%t %r'")), "PD Resources");
    std::fs::write(cluster.dir.join("work/go"), "").unwrap();
    cluster.wait_file("runs", |text| text.lines().count() == 2);
    let rows = cluster.ok(&format!("sacct -X -D -n -P -j {low} -o State"));
    assert_eq!(rows, "PREEMPTED\nRUNNING");
}
