//! Burst buffers that do not go the straight way: cancelled, held and requeued in every stage, attacked, out of reach, without room;
//! and afterwards nothing is left of any.
use std::fs;
use std::path::{Path, PathBuf};

use crate::cluster::{Cluster, kill_9, new_dir};

pub struct Burst {
    pub cluster: Cluster,
    pub pools: PathBuf,
}

/// Two nodes with a pool each and one shared pool; slow enough that every stage can be caught.
fn burst(bandwidth: &str) -> Burst {
    burst_with(&format!("bandwidth = \"{bandwidth}\""))
}

/// With these lines in `[burst_buffer]`.
pub fn burst_with(lines: &str) -> Burst {
    let pools = new_dir();
    let text = format!(
        r#"
[[nodes]]
names = "n[1-2]"
cpus = 2
memory_mb = 1000
[[partitions]]
name = "main"
nodes = "ALL"
default = true
[burst_buffer]
{lines}
[[burst_buffer.pools]]
name = "flash"
kind = "shared"
root = "{0}/flash"
granularity = "1MiB"
total = "64MiB"
[[burst_buffer.pools]]
name = "local"
kind = "node"
root = "{0}/%n"
granularity = "1MiB"
total = "64MiB"
"#,
        pools.display()
    );
    let cluster = Cluster::configured(&text);
    let input = cluster.dir.join("work/input");
    fs::create_dir_all(&input).unwrap();
    for number in 0..40usize {
        let bytes: Vec<u8> = (0..50_000).map(|index| ((index * 7 + number * 31) % 251) as u8).collect();
        fs::write(input.join(format!("f{number}")), bytes).unwrap();
    }
    Burst { cluster, pools }
}

impl Burst {
    /// A job with the input staged in and out again as `back-<job>`, which then does `body`.
    pub fn submit(&self, name: &str, options: &str, pool: &str, body: &str) -> String {
        let (access, variable, out) = match pool {
            "local" => ("private", "DW_JOB_PRIVATE", "back-%j-%n"),
            _ => ("striped", "DW_JOB_STRIPED", "back-%j"),
        };
        let script = format!(
            "#!/bin/sh\n#SBATCH -o {name}.out {options}\n#DW jobdw capacity=8MiB access_mode={access} pool={pool}\n\
             #DW stage_in type=directory source=input destination=${variable}/in\n\
             #DW stage_out type=directory source=${variable}/in destination={out}\n{body}\n"
        );
        fs::write(self.cluster.dir.join("work").join(name), script).unwrap();
        self.cluster.sbatch(name)
    }

    pub fn wait(&self, job: &str, state: &str) {
        let line = format!("squeue -h -t all -j {job} -O BurstBufferState:.20");
        self.cluster.wait_until(&line, |said| said.out.trim() == state);
    }

    pub fn same(&self, other: &str) {
        self.cluster.ok(&format!("diff -r input {other}"));
    }

    fn has(&self, name: &str) -> bool {
        self.cluster.dir.join("work").join(name).exists()
    }

    /// No buffer, no directory, no record, no part file, no mover.
    pub fn nothing_is_left(&self) {
        self.cluster.wait_until("scontrol show burst", |said| {
            said.out.contains("TotalSpace=") && !said.out.contains("Allocated Buffers")
        });
        for root in ["flash", "n1", "n2", "n3", "n4"] {
            for part in ["jobs", ".spur", ".trash"] {
                let left: Vec<_> = fs::read_dir(self.pools.join(root).join(part)).into_iter().flatten().collect();
                assert!(left.is_empty(), "{root}/{part}: {left:?}");
            }
        }
        let parts = self.cluster.ok("find . -name '.*.part'");
        assert_eq!(parts, "");
        assert_eq!(movers(&self.pools), [] as [i32; 0]);
    }
}

/// The movers that have something open below a directory.
pub fn movers(below: &Path) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_one = |pid: &i32| {
        let name = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        name.starts_with("spurmover")
            && open.into_iter().any(|fd| fs::read_link(fd.path()).is_ok_and(|path| path.starts_with(below)))
    };
    pids.filter(is_one).collect()
}

#[test]
fn a_job_can_be_cancelled_in_every_stage_and_its_data_given_up() {
    let burst = burst("1MiB");
    let cluster = &burst.cluster;
    let cancel = |job: &str| cluster.run(&format!("scancel {job}"));

    let job = burst.submit("in", "", "flash", "true");
    burst.wait(&job, "staging-in");
    cancel(&job);
    cluster.wait_state(&job, "CANCELLED");
    burst.nothing_is_left();

    let job = burst.submit("pre", "-N1", "local", "true");
    burst.wait(&job, "pre-run");
    assert_eq!(cluster.ok(&format!("squeue -h -j {job} -o %t")), "CF");
    cancel(&job);
    cluster.wait_state(&job, "CANCELLED");
    burst.nothing_is_left();
    assert!(!burst.has(&format!("back-{job}-n1")), "what never ran is not brought back");

    let job = burst.submit("running", "", "flash", "sleep 300");
    burst.wait(&job, "running");
    cancel(&job);
    burst.wait(&job, "staging-out");
    let said = cancel(&job);
    assert!(said.code == 0 || said.err.contains("already completing or completed"), "{said:?}");
    let shown = cluster.ok(&format!("squeue -h -j {job} -o '%t %r'"));
    assert_eq!(shown, "SO burst_buffer/native: Stage-out in progress");
    cluster.wait_state(&job, "CANCELLED");
    burst.same(&format!("back-{job}"));
    burst.nothing_is_left();

    let job = burst.submit("out", "", "flash", "exit 1");
    burst.wait(&job, "staging-out");
    cluster.ok(&format!("scancel --hurry {job}"));
    cluster.wait_state(&job, "FAILED");
    burst.nothing_is_left();
    assert_ne!(cluster.run(&format!("diff -r input back-{job}")).code, 0, "it was given up half way");

    let job = burst.submit("hurry", "", "flash", "sleep 300");
    burst.wait(&job, "running");
    cluster.ok(&format!("scancel -H {job}"));
    cluster.wait_state(&job, "CANCELLED");
    burst.nothing_is_left();
    assert!(!burst.has(&format!("back-{job}")));
}

#[test]
fn a_job_is_held_and_requeued_with_its_buffer() {
    let burst = burst("8MiB");
    let cluster = &burst.cluster;
    // Both nodes are busy: the data is there before they are.
    let busy = cluster.sbatch("-N2 --exclusive -t 5 --wrap 'sleep 300'");
    cluster.wait_state(&busy, "RUNNING");
    let job = burst.submit("later", "-t 1", "flash", "true");
    burst.wait(&job, "staged-in");
    cluster.ok(&format!("scontrol hold {job}"));
    cluster.ok(&format!("scancel {busy}"));
    cluster.wait_state(&busy, "CANCELLED");
    let shown = cluster.ok(&format!("squeue -h -j {job} -o %T%r"));
    assert!(shown.starts_with("PENDINGJobHeld"), "{shown}");
    burst.wait(&job, "staged-in");
    cluster.ok(&format!("scontrol release {job}"));
    cluster.wait_state(&job, "COMPLETED");
    burst.same(&format!("back-{job}"));

    let mark = "echo ran >> $SLURM_SUBMIT_DIR/runs; test $(wc -l < $SLURM_SUBMIT_DIR/runs) -gt 1 || sleep 300";
    let job = burst.submit("again", "", "flash", mark);
    burst.wait(&job, "running");
    cluster.wait_file("runs", |text| text == "ran\n");
    cluster.ok(&format!("scontrol requeue {job}"));
    // What the first run left is brought back, then the second begins with its own.
    cluster.wait_state(&job, "COMPLETED");
    assert_eq!(cluster.file("runs"), "ran\nran\n");
    burst.same(&format!("back-{job}"));
    let shown = cluster.ok(&format!("scontrol show job {job}"));
    assert!(shown.contains("Restarts=1") && shown.contains("stage-out 1.9MiB 40 files"), "{shown}");
    burst.nothing_is_left();
}

#[test]
fn nothing_gets_out_of_a_buffer_by_a_planted_link_or_list() {
    let burst = burst("64MiB");
    let cluster = &burst.cluster;
    let secret = cluster.dir.join("work/secret");
    fs::write(&secret, "secret").unwrap();
    let plant = |name: &str, directive: &str, body: &str| {
        let script = format!("#!/bin/sh\n#SBATCH -o /dev/null\n#DW jobdw capacity=1MiB\n{directive}\n{body}\n");
        fs::write(cluster.dir.join("work").join(name), script).unwrap();
        cluster.sbatch(name)
    };
    let work = cluster.dir.join("work").display().to_string();
    let link = plant(
        "link",
        "#DW stage_out type=file source=$DW_JOB_STRIPED/d/secret destination=stolen-link",
        &format!("ln -s {work} $DW_JOB_STRIPED/d"),
    );
    let list = plant(
        "list",
        "#DW stage_out type=list source=$DW_JOB_STRIPED/list destination=stolen-list",
        &format!("echo {work}/secret > $DW_JOB_STRIPED/list; echo ../../secret >> $DW_JOB_STRIPED/list"),
    );
    for (job, words) in [(&link, "symbolic link"), (&list, "is not inside the buffer")] {
        let said = cluster.wait_until(&format!("squeue -h -j {job} -o '%t %r'"), |said| said.out.contains("failed:"));
        assert!(said.out.starts_with("SO ") && said.out.contains(words), "{said:?}");
        cluster.ok(&format!("scancel --hurry {job}"));
        cluster.wait_state(job, "COMPLETED");
    }
    assert!(!burst.has("stolen-link") && !burst.has("stolen-list/secret"));
    let refused = cluster.run(&format!(
        "sbatch --bb='#DW jobdw capacity=1MiB\n#DW stage_in type=file source={}/flash/x destination=x' --wrap true",
        burst.pools.display()
    ));
    assert!(refused.code != 0 && refused.err.contains("Burst Buffer request invalid"), "{refused:?}");
    burst.nothing_is_left();
}

#[test]
fn an_agent_out_of_reach_keeps_no_cancelled_job_waiting() {
    let burst = burst("1MiB");
    let cluster = &burst.cluster;
    let job = burst.submit("stuck", "-N2", "local", "true");
    burst.wait(&job, "pre-run");
    let agent = cluster.agent_pid("n2");
    // SAFETY: plain system calls on a process of this test's.
    unsafe { libc::kill(agent, libc::SIGSTOP) };
    cluster.ok(&format!("scancel {job}"));
    let shown = cluster.wait_until("scontrol show burst", |said| said.out.contains("State=teardown"));
    // SAFETY: as above.
    unsafe { libc::kill(agent, libc::SIGCONT) };
    assert!(shown.out.contains(&format!("JobID={job} ")), "{shown:?}");
    cluster.wait_state(&job, "CANCELLED");
    burst.nothing_is_left();
}

#[test]
fn a_full_disk_fails_at_once_and_says_how_much_is_missing() {
    let burst = burst("64MiB");
    let cluster = &burst.cluster;
    let root = burst.pools.join("flash");
    // A job's directory is made below what is mounted here.
    let mounted = cluster.run(&format!("mkdir -p {0} && mount -t tmpfs -o size=1m,mode=0755 none {0}", root.display()));
    if mounted.code != 0 {
        return eprintln!("SKIPPED: only root can make a small file system");
    }
    let job = burst.submit("full", "", "flash", "true");
    let said = cluster.wait_until(&format!("squeue -h -j {job} -o '%T %r'"), |said| said.out.contains("failed:"));
    let umount = cluster.run(&format!("scancel {job}; for i in $(seq 300); do scontrol show burst | grep -q JobID || break; sleep 0.1; done; umount {}", root.display()));
    assert!(said.out.starts_with("PENDING ") && said.out.contains("No space left"), "{said:?}");
    assert!(said.out.contains("needs 1.9MiB") && said.out.contains("available"), "{said:?}");
    assert_eq!(umount.code, 0, "{umount:?}");
}

/// An agent tells a new controller of work that the old one had ordered: that is no word about whatever the new one has ordered.
#[test]
fn answers_to_an_earlier_controller_count_for_nothing_else() {
    let burst = burst("1MiB");
    let cluster = &burst.cluster;
    let empty = "#!/bin/sh\n#SBATCH -o empty.out\n#DW jobdw capacity=1MiB pool=flash\ntrue\n";
    fs::write(cluster.dir.join("work/empty"), empty).unwrap();
    // The old controller's orders have numbers that a new one's could have, too.
    for _ in 0..4 {
        cluster.ok("sbatch --wait-bb empty");
    }
    let first = burst.submit("first", "", "flash", "true");
    burst.wait(&first, "staging-in");
    kill_9(cluster.controller_pid());
    cluster.start("");
    let others: Vec<String> = (0..7).map(|_| burst.submit("other", "", "flash", "true")).collect();
    for job in others.iter().chain([&first]) {
        cluster.wait_state(job, "COMPLETED");
        burst.same(&format!("back-{job}"));
    }
    burst.nothing_is_left();
}

/// `STAGING_KILLS=60` for as many as the machine has time for.
#[test]
fn random_kills_of_everything_that_moves_data_lose_and_leave_nothing() {
    let n_kills: u64 = std::env::var("STAGING_KILLS").ok().map_or(8, |text| text.parse().expect("a number"));
    let burst = burst("1MiB");
    let cluster = &burst.cluster;
    let mut dice = 0x2545_f491_4f6c_dd1d_u64;
    let mut throw = |sides: u64| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice % sides
    };
    let mut n_done = 0;
    while n_done < n_kills {
        let jobs = [("flash", "a"), ("local", "b")].map(|(pool, name)| (pool, burst.submit(name, "", pool, "true")));
        for _ in 0..4 {
            std::thread::sleep(std::time::Duration::from_millis(100 + throw(900)));
            match throw(4) {
                0 => kill_9(cluster.controller_pid()),
                1 => kill_9(cluster.agent_pid("n1")),
                2 => kill_9(cluster.agent_pid("n2")),
                _ => movers(&burst.pools).into_iter().take(1).for_each(kill_9),
            }
            n_done += 1;
            cluster.start("");
        }
        for (pool, job) in jobs {
            cluster.wait_state(&job, "COMPLETED");
            let said = match pool {
                "local" => cluster.run(&format!("for d in back-{job}-n*; do diff -r input $d || exit 1; done")),
                _ => cluster.run(&format!("diff -r input back-{job}")),
            };
            let about = || cluster.run(&format!("scontrol show job {job}")).out;
            assert!(said.code == 0, "job {job}: {said:?}\n{}\n{}", about(), cluster.logs());
        }
        burst.nothing_is_left();
    }
}
