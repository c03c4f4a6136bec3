//! Daemons end and come back; jobs do not care.
use crate::cluster::{Cluster, is_alive, kill_9};

#[test]
fn a_killed_controller_comes_back_with_everything() {
    let cluster = Cluster::up("--nodes 1 --cpus 4");
    let running = cluster.sbatch("--wrap='while [ ! -e go ]; do sleep 0.02; done; echo done > done'");
    let held = cluster.sbatch("-H --wrap=true");
    cluster.wait_state(&running, "RUNNING");
    kill_9(cluster.controller_pid());
    cluster.start("");
    assert_eq!(cluster.ok(&format!("squeue -h -j {held} -o %r")), "JobHeldUser");
    assert_eq!(cluster.ok(&format!("squeue -h -j {running} -o %T")), "RUNNING");
    cluster.ok("touch go");
    cluster.wait_state(&running, "COMPLETED");
    assert_eq!(cluster.file("done"), "done\n");
}

#[test]
fn a_job_that_ends_while_the_controller_is_away_is_reported_later() {
    let cluster = Cluster::up("--nodes 1");
    let job = cluster.sbatch("--wrap='echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done; exit 4'");
    let pid = cluster.wait_file("pid", |text| text.ends_with('\n')).trim().parse().unwrap();
    kill_9(cluster.controller_pid());
    std::fs::write(cluster.dir.join("work/go"), "").unwrap();
    while is_alive(pid) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    cluster.start("");
    cluster.wait_state(&job, "FAILED");
    assert!(cluster.ok(&format!("scontrol show job {job}")).contains("ExitCode=4:0"));
}

#[test]
fn a_killed_agent_does_not_harm_its_jobs() {
    let cluster = Cluster::up("--nodes 1 --cpus 4");
    let long = cluster.sbatch("--wrap='while [ ! -e go ]; do sleep 0.02; done; exit 5'");
    let short = cluster.sbatch("--wrap='echo $$ > pid; while [ ! -e stop ]; do sleep 0.02; done; exit 6'");
    cluster.wait_state(&long, "RUNNING");
    let pid = cluster.wait_file("pid", |text| text.ends_with('\n')).trim().parse().unwrap();
    kill_9(cluster.agent_pid("n1"));
    std::fs::write(cluster.dir.join("work/stop"), "").unwrap();
    while is_alive(pid) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    cluster.start("");
    cluster.wait_state(&short, "FAILED");
    assert!(cluster.ok(&format!("scontrol show job {short}")).contains("ExitCode=6:0"));
    assert_eq!(cluster.ok(&format!("squeue -h -j {long} -o %T")), "RUNNING");
    cluster.ok("touch go");
    cluster.wait_state(&long, "FAILED");
    assert!(cluster.ok(&format!("scontrol show job {long}")).contains("ExitCode=5:0"));
}

#[test]
fn down_ends_everything_and_up_brings_the_state_back() {
    let cluster = Cluster::up("--nodes 1");
    let job = cluster.sbatch("--wrap='echo $$ > pid; sleep 1000'");
    let pid = cluster.wait_file("pid", |text| text.ends_with('\n')).trim().parse().unwrap();
    let held = cluster.sbatch("-H --wrap=true");
    cluster.ok(&format!("spur down --dir {}", cluster.dir.display()));
    assert!(!is_alive(pid));
    let said = cluster.run("squeue");
    assert_eq!(said.code, 1, "{said:?}");
    let kept = cluster.ok(&format!("find {} -name 'snapshot-*'", cluster.dir.display()));
    assert_eq!(kept.lines().count(), 1, "a later release need not judge anew what was decided: {kept:?}");
    cluster.start("");
    assert_eq!(cluster.ok(&format!("squeue -h -j {held} -o %t")), "PD");
    assert_ne!(cluster.sbatch("-H --wrap=true"), job);
}

#[test]
fn a_node_that_was_only_slow_ends_its_old_runs_and_serves_again() {
    let cluster = Cluster::configured(
        "cluster_name = \"slow\"\n[controller]\nnode_timeout = 10\n[agent]\nheartbeat = 1\n\
         [[nodes]]\nnames = \"n1\"\ncpus = 2\nmemory_mb = 1000\n",
    );
    let job = cluster.sbatch("--requeue -o /dev/null --wrap='echo $$ >> runs; while [ ! -e go ]; do sleep 0.02; done'");
    let first: i32 = cluster.wait_file("runs", |text| text.ends_with('\n')).trim().parse().unwrap();
    let agent = cluster.agent_pid("n1");
    // SAFETY: plain system calls.
    unsafe { libc::kill(agent, libc::SIGSTOP) };
    cluster.wait_for("sinfo -h -o %t", "down*");
    cluster.wait_for(&format!("squeue -h -j {job} -o %T"), "PENDING");
    unsafe { libc::kill(agent, libc::SIGCONT) };
    cluster.wait_file("runs", |text| text.lines().count() == 2);
    assert!(!is_alive(first), "the first run must have ended before the second began");
    cluster.ok("touch go");
    cluster.wait_state(&job, "COMPLETED");
    cluster.wait_for("sinfo -h -o %t", "idle");
    assert_eq!(cluster.file("runs").lines().count(), 2);
}
