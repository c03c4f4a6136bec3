//! Three controllers on one machine: leaders are killed, stopped and restarted under the hands of users.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::cluster::{Cluster, Said, kill_9};

/// The number of the controller that leads, by its own word.
fn leader(cluster: &Cluster) -> u64 {
    let said =
        cluster.wait_until(&format!("spur status --json --dir {}", cluster.dir.display()), |said| said.code == 0);
    let status: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let members = status["controllers"]["members"].as_array().unwrap_or_else(|| panic!("{status}")).clone();
    let leads = |member: &&serde_json::Value| member["is_leader"] == true;
    members.iter().find(leads).unwrap_or_else(|| panic!("nobody leads: {status}"))["id"].as_u64().unwrap()
}

fn pid_of(cluster: &Cluster, member: u64) -> i32 {
    match member {
        1 => cluster.controller_pid(),
        _ => cluster.pid(&format!("controller-{member}")),
    }
}

#[test]
fn a_killed_leader_is_followed_by_another_and_nothing_is_lost_or_doubled() {
    let cluster = Cluster::up("--nodes 2 --cpus 8 --controllers 3");
    let long = cluster.sbatch("-N1 --wrap 'echo began; while [ ! -e go ]; do sleep 0.05; done; echo went'");
    cluster.wait_state(&long, "RUNNING");
    let mut given = vec![long.clone()];
    for round in 0..3 {
        let first = leader(&cluster);
        kill_9(pid_of(&cluster, first));
        let began = Instant::now();
        let job = cluster.sbatch(&format!("-o round-{round}.out --wrap 'echo ran >> ran-{round}'"));
        eprintln!("round {round}: a submission {} ms after the leader's death", began.elapsed().as_millis());
        given.push(job.clone());
        assert_ne!(leader(&cluster), first);
        cluster.wait_state(&job, "COMPLETED");
        cluster.start("");
    }
    assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), given.len(), "an id was given twice: {given:?}");
    for round in 0..3 {
        assert_eq!(cluster.file(&format!("ran-{round}")), "ran\n", "every job runs once");
    }
    cluster.wait_state(&long, "RUNNING");
    cluster.ok("touch go");
    cluster.wait_state(&long, "COMPLETED");
    assert_eq!(cluster.file(&format!("slurm-{long}.out")), "began\nwent\n", "the running job has noticed nothing");
    let said = cluster.ok("scontrol ping");
    assert_eq!(said.matches("is UP").count(), 3, "{said}");
    assert!(said.starts_with("Slurmctld(primary) at ") && said.contains("Slurmctld(backup2) at "), "{said}");
}

#[test]
fn all_controllers_are_restarted_one_by_one_without_a_failed_command() {
    let cluster = Arc::new(Cluster::up("--nodes 1 --cpus 64 --controllers 3"));
    let enough = Arc::new(AtomicBool::new(false));
    let user = std::thread::spawn({
        let (cluster, enough) = (cluster.clone(), enough.clone());
        move || {
            let mut said: Vec<(String, Said)> = Vec::new();
            for number in 0.. {
                if enough.load(Ordering::Relaxed) {
                    break;
                }
                for line in [
                    format!("sbatch --parsable -o /dev/null --wrap 'echo {number} >> numbers'"),
                    "squeue -h -o %i".into(),
                    "sinfo -h".into(),
                ] {
                    said.push((line.clone(), cluster.run(&line)));
                }
            }
            said
        }
    });
    let before = leader(&cluster);
    cluster.ok("scontrol takeover");
    assert_ne!(leader(&cluster), before, "another controller leads");
    for member in 1..=3 {
        let pid = pid_of(&cluster, member);
        // SAFETY: a plain system call.
        unsafe { libc::kill(pid, libc::SIGTERM) };
        cluster.wait_until(&format!("kill -0 {pid} 2>/dev/null && grep -q spurctld /proc/{pid}/cmdline"), |said| {
            said.code != 0
        });
        cluster.start("");
        cluster.wait_until("scontrol ping", |said| said.out.matches("is UP").count() == 3);
    }
    enough.store(true, Ordering::Relaxed);
    let said = user.join().unwrap();
    let failed: Vec<_> = said.iter().filter(|(_, said)| said.code != 0).collect();
    assert!(failed.is_empty(), "{} of {} commands failed: {failed:?}", failed.len(), said.len());
    let jobs: Vec<&str> =
        said.iter().filter(|(line, _)| line.starts_with("sbatch")).map(|(_, said)| said.out.trim()).collect();
    assert_eq!(jobs.iter().collect::<BTreeSet<_>>().len(), jobs.len(), "ids are not used again");
    let ran = cluster.wait_file("numbers", |text| text.lines().count() >= jobs.len());
    let mut numbers: Vec<usize> = ran.lines().map(|line| line.parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..jobs.len()).collect::<Vec<_>>(), "every job ran once");
}
