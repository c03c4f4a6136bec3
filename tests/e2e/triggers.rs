//! `strigger`: programs that run when something happens, over kills too.
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::cluster::{Cluster, kill_9};

/// A program that notes what it is told.
fn note(cluster: &Cluster, name: &str) -> String {
    let path = cluster.dir.join(name);
    let body = format!("#!/bin/bash\necho \"$@\" >> {}/work/{name}.told\n", cluster.dir.display());
    fs::create_dir_all(cluster.dir.join("work")).unwrap();
    fs::write(&path, body).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn programs_run_when_nodes_and_jobs_change_and_when_the_controller_is_back() {
    let cluster = Cluster::up("--nodes 2 --cpus 2");
    let program = |name: &str| note(&cluster, name);
    let told = |name: &str, text: &str| cluster.wait_file(&format!("{name}.told"), |file| file == text);
    let user = cluster.ok("id -un");
    assert!(cluster.ok(&format!("strigger --set -v --down -p {} 2>&1", program("down"))).contains("trigger set"));
    let job = cluster.sbatch("--wrap 'sleep 100'");
    cluster.wait_state(&job, "RUNNING");
    cluster.ok(&format!("strigger --set -j {job} --fini -p '{} ended'", program("fini")));
    cluster.ok(&format!("strigger --set --reconfig --flags=perm -p {}", program("again")));
    cluster.ok(&format!("strigger --set -A -p {}", program("back")));
    let shown = cluster.ok("strigger --get | tr -s ' '");
    let lines: Vec<&str> = shown.lines().map(str::trim).collect();
    assert_eq!(lines[0], "TRIG_ID RES_TYPE RES_ID TYPE OFFSET USER FLAGS PROGRAM");
    assert_eq!(lines[1], format!("1 node * down 0 {user} {}", program("down")));
    assert_eq!(lines[2], format!("2 job {job} fini 0 {user} {} ended", program("fini")));
    assert_eq!(lines[3], format!("3 node * reconfig 0 {user} PERM {}", program("again")));
    assert_eq!(cluster.ok(&format!("strigger --get -N -j {job} | wc -l")), "1");
    // What was set outlives the controller.
    kill_9(cluster.controller_pid());
    cluster.start("");
    told("back", "*\n");
    cluster.ok("scontrol update nodename=n2 state=down reason=x");
    told("down", "n2\n");
    cluster.ok(&format!("scancel {job}"));
    told("fini", &format!("ended {job}\n"));
    for n_times in 1..=2 {
        // A file that is as it was is no other configuration.
        cluster
            .ok(&format!("sed -i 's/^min_job_age = .*/min_job_age = {n_times}0/' {}/spur.conf", cluster.dir.display()));
        cluster.ok("scontrol reconfigure");
        cluster.wait_file("again.told", |file| file.lines().count() == n_times);
    }
    cluster.wait_for("strigger --get -N | tr -s ' ' | cut -d' ' -f 5", "reconfig");
    cluster.ok("strigger --clear -i 3");
    let said = cluster.run("strigger --clear -i 3");
    assert_eq!((said.err.as_str(), said.code), ("slurm_clear_trigger: No such process\n", 1));
    assert_eq!(cluster.run("strigger --clear -Q -i 3").code, 0);
    let said = cluster.run("strigger --set -j 999 --fini -p /bin/true");
    assert_eq!((said.err.as_str(), said.code), ("slurm_set_trigger: Invalid job id specified\n", 1));
}

#[test]
fn programs_of_one_user_run_a_few_at_a_time() {
    const N_TRIGGERS: usize = 24;
    let cluster = Cluster::up("--nodes 1");
    fs::create_dir_all(cluster.dir.join("work")).unwrap();
    let (path, notes) = (cluster.dir.join("slow"), cluster.dir.join("work/notes"));
    // A line is written whole.
    let body = format!("#!/bin/bash\necho begin >> {0}\nsleep 0.3\necho end >> {0}\n", notes.display());
    fs::write(&path, body).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    for number in 0..N_TRIGGERS {
        cluster.ok(&format!("strigger --set --down -p '{} {number}'", path.display()));
    }
    cluster.ok("scontrol update nodename=n1 state=down reason=x");
    let notes = cluster.wait_file("notes", |text| text.matches("end").count() == N_TRIGGERS);
    let (mut n_running, mut n_most) = (0, 0);
    for line in notes.lines() {
        n_running += if line == "begin" { 1 } else { -1 };
        n_most = n_most.max(n_running);
    }
    assert!(n_most <= 4, "{n_most} at once");
    assert_eq!(cluster.ok("strigger --get -N"), "");
}
