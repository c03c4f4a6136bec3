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
    let cluster = Cluster::configured(&conf("CANCEL", 10));
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
    cluster.wait_for(&format!("squeue -h -j {low} -o '%t %r'"), "PD Resources");
    std::fs::write(cluster.dir.join("work/go"), "").unwrap();
    cluster.wait_file("runs", |text| text.lines().count() == 2);
    let rows = cluster.ok(&format!("sacct -X -D -n -P -j {low} -o State"));
    assert_eq!(rows, "PREEMPTED\nRUNNING");
}

fn beats(cluster: &Cluster, name: &str) -> usize {
    std::fs::read_to_string(cluster.dir.join("work").join(name)).unwrap_or_default().len()
}

/// One writes on, the other does not.
fn only_one_beats(cluster: &Cluster, runs: &str, still: &str) {
    cluster.wait_until("true", |_| {
        let (before, mark) = (beats(cluster, still), beats(cluster, runs));
        std::thread::sleep(std::time::Duration::from_millis(200));
        beats(cluster, still) == before && beats(cluster, runs) > mark
    });
}

#[test]
fn a_job_stands_still_for_a_more_important_one_and_goes_on_by_itself_also_after_a_crash() {
    let cluster = Cluster::configured(&conf("SUSPEND,GANG", 0));
    let beat = |name: &str| format!("--wrap 'while :; do echo x >> {name}; sleep 0.02; done'");
    let low = cluster.sbatch(&format!("-N2 -c2 -t 10 {}", beat("low")));
    cluster.wait_file("low", |text| !text.is_empty());
    let high = cluster.sbatch(&format!("-p high -c1 -t 10 {}", beat("high")));
    cluster.wait_state(&high, "RUNNING");
    cluster.wait_for(&format!("squeue -h -j {low} -o %t"), "S");
    only_one_beats(&cluster, "high", "low");
    kill_9(cluster.controller_pid());
    cluster.start("");
    only_one_beats(&cluster, "high", "low");
    let shown = cluster.ok(&format!("scontrol show job {low}"));
    assert!(shown.contains("JobState=SUSPENDED") && !shown.contains("Priority=0 "), "{shown}");
    assert_eq!(cluster.ok("sinfo -h -p low -N -n n1 -o %t"), "alloc");
    cluster.ok(&format!("scancel {high}"));
    cluster.wait_state(&low, "RUNNING");
    let before = beats(&cluster, "low");
    cluster.wait_file("low", |text| text.len() > before);
}

#[test]
fn jobs_on_the_same_cpus_take_turns() {
    let text = "cluster_name = \"turns\"\n\
         [scheduler]\npreempt_mode = \"GANG\"\ntime_slice = 1\n\
         [agent]\nkill_wait = 2\nsuspend_grace = 0\n\
         [[nodes]]\nnames = \"n1\"\ncpus = 2\nmemory_mb = 1000\n\
         [[partitions]]\nname = \"low\"\nnodes = \"ALL\"\ndefault = true\noversubscribe = \"FORCE:2\"\n";
    let cluster = Cluster::configured(text);
    let beat = |name: &str| format!("-c2 -t 10 --wrap 'while :; do echo x >> {name}; sleep 0.02; done'");
    let first = cluster.sbatch(&beat("first"));
    cluster.wait_state(&first, "RUNNING");
    let second = cluster.sbatch(&beat("second"));
    let third = cluster.sbatch(&beat("third"));
    cluster.wait_until("squeue -h -o %t", |said| said.out.contains('S'));
    assert_eq!(cluster.ok(&format!("squeue -h -j {third} -o %t")), "PD", "two at most");
    for (runs, still) in [("second", "first"), ("first", "second"), ("second", "first")] {
        only_one_beats(&cluster, runs, still);
    }
    let times = cluster.ok(&format!("scontrol show job {first}"));
    assert!(times.contains("SuspendTime=20"), "{times}");
    cluster.ok(&format!("scancel {second}"));
    cluster.wait_until(&format!("squeue -h -j {third} -o %t"), |said| said.out.trim() != "PD");
}

#[test]
fn a_job_may_hear_its_own_signal_instead_of_the_usual() {
    let text = conf("CANCEL", 20).replace("preempt_mode", "preempt_sends_user_signal = true\npreempt_mode");
    let cluster = Cluster::configured(&text);
    // Its step says what it hears, and makes room long before its grace is over.
    let step = "trap 'echo own >> heard; exit 0' USR1; trap 'echo usual >> heard; exit 0' TERM; touch ready; \
                while :; do sleep 0.05; done";
    std::fs::create_dir_all(cluster.dir.join("work")).unwrap();
    std::fs::write(cluster.dir.join("work/step.sh"), step).unwrap();
    let low = cluster.sbatch("-N2 -c2 -t 10 --signal=USR1@30 --wrap 'srun --overlap -N1 -n1 sh step.sh'");
    cluster.wait_file("ready", |_| true);
    let high = cluster.sbatch("-p high -c2 -t 5 --wrap 'sleep 100'");
    cluster.wait_state(&low, "COMPLETED");
    cluster.wait_state(&high, "RUNNING");
    assert_eq!(cluster.file("heard"), "own\n");
    let record = cluster.ok(&format!("scontrol show job {low}"));
    assert!(record.contains(&format!("preempted by job {high}")), "{record}");
}

#[test]
fn a_whole_takes_the_place_of_others() {
    let cluster = Cluster::configured(&conf("CANCEL", 0));
    let low = cluster.sbatch("-N2 -c2 -t 10 --wrap 'sleep 100'");
    cluster.wait_state(&low, "RUNNING");
    cluster.ok("sbatch -p high -n2 -t 5 --wrap 'sleep 100' : -p high -n2 -t 5");
    cluster.wait_until("squeue -h -p high -t R -o %i", |said| said.out.lines().count() == 2);
    cluster.wait_state(&low, "PREEMPTED");
}
