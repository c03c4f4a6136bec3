//! Three controllers on one machine: leaders are killed, stopped and restarted under the hands of users.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::cluster::{Cluster, Said, kill_9};

/// The number of the controller that leads, by its own word.
pub fn leader(cluster: &Cluster) -> u64 {
    let leading = |said: &Said| {
        let status: serde_json::Value = serde_json::from_str(&said.out).ok()?;
        let members = status["controllers"]["members"].as_array()?;
        members.iter().find(|member| member["is_leader"] == true)?["id"].as_u64()
    };
    let line = format!("spur status --json --dir {}", cluster.dir.display());
    let said = cluster.wait_until(&line, |said| said.code == 0 && leading(said).is_some());
    leading(&said).unwrap()
}

pub fn pid_of(cluster: &Cluster, member: u64) -> i32 {
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
    let said = cluster.wait_until("scontrol ping", |said| said.out.matches("is UP").count() == 3).out;
    assert!(said.starts_with("Slurmctld(primary) at ") && said.contains("Slurmctld(backup2) at "), "{said}");
}

#[test]
fn sessions_do_not_notice_that_another_controller_leads() {
    let cluster = Cluster::up("--nodes 2 --cpus 8 --controllers 3");
    sessions_go_on(&cluster, || {
        let first = leader(&cluster);
        kill_9(pid_of(&cluster, first));
        // While nobody leads yet: what is asked now is answered late, and not wrongly.
        assert!(cluster.ok("squeue -h -o %j").contains("session"));
        assert_ne!(leader(&cluster), first);
        cluster.start("");
    });
}

#[test]
fn sessions_do_not_notice_that_their_controller_is_started_anew() {
    let cluster = Cluster::up("--nodes 2 --cpus 8");
    sessions_go_on(&cluster, || {
        kill_9(cluster.controller_pid());
        cluster.start("");
    });
}

#[test]
fn shutdown_ends_all_controllers_and_what_runs_goes_on() {
    let cluster = Cluster::up("--nodes 1 --cpus 8 --controllers 3");
    let job = cluster.sbatch("-o /dev/null --wrap 'while [ ! -e go ]; do sleep 0.05; done; echo went > went'");
    cluster.wait_state(&job, "RUNNING");
    let daemons: Vec<i32> = (1..=3).map(|member| pid_of(&cluster, member)).chain([cluster.agent_pid("n1")]).collect();
    let began = Instant::now();
    cluster.ok("scontrol shutdown");
    assert!(began.elapsed().as_secs() < 20, "it takes no elections");
    for pid in daemons {
        cluster.wait_until(&format!("grep -qa spur /proc/{pid}/cmdline"), |said| said.code != 0);
    }
    cluster.start("");
    cluster.wait_state(&job, "RUNNING");
    cluster.ok("touch go");
    cluster.wait_state(&job, "COMPLETED");
}

/// `srun` on several nodes, `salloc` with a step to come, and `sbatch --wait`: all are there before, and end as they should after.
fn sessions_go_on(cluster: &Cluster, upset: impl Fn()) {
    let lines = [
        "srun -J session -N2 -l sh -c 'echo began; while [ ! -e go ]; do sleep 0.05; done; echo went; exit 4' | sort; exit ${PIPESTATUS[0]}",
        "salloc -J session -n1 bash -c 'echo in > allocated; while [ ! -e go ]; do sleep 0.05; done; srun echo inside'",
        "sbatch -J session --wait -o /dev/null --wrap 'while [ ! -e go ]; do sleep 0.05; done; exit 6'",
    ];
    let sessions: Vec<_> = lines
        .iter()
        .map(|line| {
            let mut session = cluster.shell(line);
            session.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    cluster.wait_until("squeue -h -n session -t R -o %i", |said| said.out.lines().count() == 3);
    cluster.wait_file("allocated", |text| !text.is_empty());
    for _ in 0..2 {
        upset();
    }
    cluster.ok("touch go");
    let said: Vec<Said> =
        sessions.into_iter().map(|one| crate::cluster::said(one.wait_with_output().unwrap())).collect();
    assert_eq!((said[0].code, said[0].out.as_str()), (4, "0: began\n0: went\n1: began\n1: went\n"), "{:?}", said[0]);
    assert_eq!((said[1].code, said[1].out.as_str()), (0, "inside\n"), "{:?}", said[1]);
    assert_eq!(said[2].code, 6, "{:?}", said[2]);
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
    // A leader may also go by itself, on a busy machine, and be asked to come back.
    let has_moved = |_| {
        let before = leader(&cluster);
        cluster.ok("scontrol takeover");
        leader(&cluster) != before
    };
    assert!((0..3).any(has_moved), "another controller leads");
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
