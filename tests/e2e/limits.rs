//! Time limits, warnings, holds in time.
use crate::cluster::Cluster;

#[test]
fn begin_times_are_waited_for() {
    let cluster = Cluster::up("--nodes 1");
    let job = cluster.sbatch("--begin=now+1hour --wrap=true");
    assert_eq!(cluster.ok(&format!("squeue -h -j {job} -o '%t %r'")), "PD BeginTime");
    let soon = cluster.sbatch("--begin=now+1 --wrap=true");
    cluster.wait_state(&soon, "COMPLETED");
}

#[test]
fn suspended_processes_stand_still_and_go_on() {
    let cluster = Cluster::up("--nodes 1");
    let job = cluster.sbatch("--wrap='echo $$ > pid; while :; do date +%s%N > beat; sleep 0.02; done'");
    cluster.wait_file("beat", |text| !text.is_empty());
    cluster.ok(&format!("scontrol suspend {job}"));
    cluster.wait_state(&job, "SUSPENDED");
    let pid = cluster.file("pid").trim().to_string();
    cluster.wait_until(&format!("cut -d' ' -f3 /proc/{pid}/stat"), |said| matches!(said.out.trim(), "T" | "D"));
    cluster.ok(&format!("scontrol resume {job}"));
    let before = cluster.file("beat");
    cluster.wait_file("beat", |text| !text.is_empty() && text != before);
    cluster.ok(&format!("scancel {job}"));
    cluster.wait_state(&job, "CANCELLED");
}
