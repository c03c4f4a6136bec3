//! What an operator may do at three in the morning: spools deleted, filled and scribbled into, everything killed at once. Jobs end as
//! the rules say, none is lost, none runs twice unless it was requeued.
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use crate::cluster::{Cluster, is_alive, kill_9};

const CONF: &str = "cluster_name = \"hostile\"\n[controller]\nnode_timeout = 20\n[agent]\nkill_wait = 1\n\
    [[nodes]]\nnames = \"n[1-2]\"\ncpus = 8\nmemory_mb = 1000\n\
    [[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n";

/// Everything that belongs to the cluster: daemons by their words, jobs by their directory, and what is between them.
fn processes(cluster: &Cluster) -> Vec<i32> {
    let dir = cluster.dir.to_string_lossy().into_owned();
    let all = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let all: Vec<i32> = all.collect();
    let parent = |pid: i32| -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let is_its_own = |pid: &i32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let cwd = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(&dir) || cwd.starts_with(&cluster.dir)
    };
    let mut found: Vec<i32> =
        all.iter().copied().filter(is_its_own).filter(|pid| *pid != std::process::id() as i32).collect();
    let parents: Vec<i32> = found.iter().filter_map(|pid| parent(*pid)).filter(|pid| *pid > 1).collect();
    let is_supervisor =
        |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().starts_with("spur");
    found.extend(parents.into_iter().filter(is_supervisor));
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn everything_that_is_killed_at_once_comes_back_and_nothing_is_lost_or_doubled() {
    let cluster = Cluster::configured(CONF);
    let mut jobs = Vec::new();
    for round in 0..4 {
        for number in 0..6 {
            let words = if number % 3 == 0 { "--no-requeue" } else { "" };
            let lasts = [0.0, 0.3, 1.5][number % 3];
            let script = format!("echo $SLURM_JOB_ID >> ran; sleep {lasts}; echo $SLURM_JOB_ID >> ended");
            jobs.push(cluster.sbatch(&format!("{words} -o /dev/null --wrap '{script}'")));
        }
        if round % 2 == 0 {
            // It may have ended before anybody looks.
            let line = format!("squeue -h -t all -j {} -o %T", jobs[jobs.len() - 1]);
            cluster.wait_until(&line, |said| !["", "PENDING"].contains(&said.out.trim()));
        }
        let all = processes(&cluster);
        assert!(all.len() >= 3, "{all:?}");
        for pid in &all {
            // SAFETY: a plain system call.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
        }
        cluster.wait_until("true", |_| all.iter().all(|pid| !is_alive(*pid)));
        cluster.start("");
    }
    for job in &jobs {
        cluster.wait_until(&format!("squeue -h -t all -j {job} -o %T"), |said| {
            ["COMPLETED", "NODE_FAIL", "FAILED"].contains(&said.out.trim())
        });
    }
    let count = |name: &str| -> BTreeMap<String, u32> {
        let mut count = BTreeMap::new();
        cluster.file(name).lines().for_each(|line| *count.entry(line.to_string()).or_default() += 1);
        count
    };
    let (ran, ended) = (count("ran"), count("ended"));
    for job in &jobs {
        let record = cluster.ok(&format!("scontrol show job {job}"));
        let word = |name: &str| record.split_whitespace().find_map(|word| word.strip_prefix(name)).unwrap().to_string();
        let restarts: u32 = word("Restarts=").parse().unwrap();
        let (ran, ended) = (ran.get(job).copied().unwrap_or(0), ended.get(job).copied().unwrap_or(0));
        assert!(ran <= restarts + 1, "job {job} ran {ran} times: {record}");
        if word("JobState=") == "COMPLETED" {
            assert!(ended >= 1, "job {job} is said to have ended: {record}");
        }
    }
}

#[test]
fn a_spool_that_is_deleted_is_made_anew() {
    let cluster = Cluster::configured(CONF);
    let script = "touch ready; while [ ! -e go ]; do sleep 0.05; done; echo went";
    let before = cluster.sbatch(&format!("-w n1 --wrap '{script}'"));
    // Its script, which is in the spool, has been read.
    cluster.wait_file("ready", |_| true);
    // The agent may still put something down while this goes on.
    while fs::remove_dir_all(cluster.dir.join("spool/n1")).is_err_and(|why| why.kind() != ErrorKind::NotFound) {}
    let after = cluster.sbatch("-w n1 --wrap 'echo after'");
    cluster.wait_state(&after, "COMPLETED");
    assert_eq!(cluster.file(&format!("slurm-{after}.out")), "after\n");
    cluster.ok("touch go");
    cluster.wait_state(&before, "COMPLETED");
    assert_eq!(cluster.file(&format!("slurm-{before}.out")), "went\n");
}

#[test]
fn a_spool_that_is_scribbled_into_costs_no_more_than_what_it_held() {
    let cluster = Cluster::configured(CONF);
    let script = "echo $SLURM_JOB_ID >> ran; while [ ! -e go ]; do sleep 0.05; done";
    let lost = cluster.sbatch(&format!("-w n1 --no-requeue -o /dev/null --wrap '{script}'"));
    // The log knows that it was launched; before, somebody else's scribbles would make it start again.
    cluster.wait_for(&format!("squeue -h -s -j {lost} -o %j"), "batch");
    cluster.wait_file("ran", |text| text.ends_with('\n'));
    kill_9(cluster.agent_pid("n1"));
    for name in ["runs", "."] {
        for file in fs::read_dir(cluster.dir.join("spool/n1").join(name)).unwrap().flatten() {
            let is_plain = file.file_type().is_ok_and(|kind| kind.is_file()) && file.file_name() != "lock";
            if is_plain {
                fs::write(file.path(), "\u{1}scribbled\u{2}into").unwrap();
            }
        }
    }
    cluster.start("");
    let next = cluster.sbatch("-w n1 -o /dev/null --wrap 'echo next > next'");
    cluster.wait_state(&next, "COMPLETED");
    cluster.ok("touch go");
    cluster.wait_until(&format!("squeue -h -t all -j {lost} -o %T"), |said| {
        ["COMPLETED", "NODE_FAIL", "FAILED"].contains(&said.out.trim())
    });
    assert_eq!(cluster.file("ran"), format!("{lost}\n"), "once, whatever became of it");
}

/// A small file system of its own; as root only.
fn mount_small(dir: &Path) -> bool {
    fs::create_dir_all(dir).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "small"]).arg(dir).output();
    mounted.is_ok_and(|output| output.status.success())
}

#[test]
fn a_node_that_cannot_note_what_it_runs_takes_no_more_jobs() {
    let dir = crate::cluster::new_dir();
    if !mount_small(&dir.join("spool/n1")) {
        return eprintln!("skipped: nobody but root can make a disk to fill");
    }
    fs::write(dir.join("wanted.conf"), CONF).unwrap();
    let spool = dir.join("spool/n1");
    let cluster = Cluster { dir };
    cluster.start(&format!("--config {}", cluster.dir.join("wanted.conf").display()));
    let script = "touch ready; while [ ! -e go ]; do sleep 0.05; done";
    let runs = cluster.sbatch(&format!("-w n1 -o /dev/null --wrap '{script}'"));
    // It is told to run before its script has been written.
    cluster.wait_file("ready", |_| true);
    let _ = fs::write(spool.join("filler"), vec![0; 1 << 20]);
    let fails = cluster.sbatch("-w n1 -o /dev/null --wrap 'echo ran >> ran'");
    cluster
        .wait_until("sinfo -h -N -n n1 -o '%T %E'", |said| said.out.starts_with("draining batch job complete failure"));
    cluster.wait_until(&format!("squeue -h -j {fails} -o '%t %r'"), |said| said.out.trim().starts_with("PD"));
    // Others go elsewhere, and what runs there is not harmed.
    let other = cluster.sbatch("-o /dev/null --wrap true");
    cluster.wait_state(&other, "COMPLETED");
    cluster.ok("touch go");
    cluster.wait_state(&runs, "COMPLETED");
    fs::remove_file(spool.join("filler")).unwrap();
    cluster.ok("scontrol update nodename=n1 state=resume");
    cluster.ok(&format!("scontrol release {fails}"));
    cluster.wait_state(&fails, "COMPLETED");
    assert_eq!(cluster.file("ran"), "ran\n");
    cluster.ok(&format!("spur down --dir {}", cluster.dir.display()));
    let _ = Command::new("umount").arg("-l").arg(&spool).status();
}
