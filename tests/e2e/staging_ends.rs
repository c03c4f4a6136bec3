//! Burst buffers that do not go the straight way: cancelled, held and requeued in every stage, attacked, out of reach, without room;
//! and afterwards nothing is left of any.
use std::fs;

use crate::burst::{Burst, burst_with, dice, movers};
use crate::cluster::kill_9;
use crate::network::Mount;

/// Slow enough that every stage can be caught.
fn burst(bandwidth: &str) -> Burst {
    burst_with(&format!("bandwidth = \"{bandwidth}\""))
}

#[test]
fn a_job_can_be_cancelled_in_every_stage_and_its_data_given_up() {
    let burst = burst("256KiB");
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
    assert!(said.err.contains("Job/step already completing or completed"), "{said:?}");
    assert!(said.err.contains("--hurry gives it up"), "{said:?}");
    let states = cluster.ok(&format!("squeue --json -j {job}")).split_whitespace().collect::<String>();
    assert!(states.contains(r#""job_state":["CANCELLED","STAGE_OUT"]"#), "{states}");
    let shown = cluster.ok(&format!("squeue -h -j {job} -o '%t %r'"));
    assert_eq!(shown, "SO burst_buffer/native: Stage-out in progress");
    cluster.wait_state(&job, "CANCELLED");
    burst.same(&format!("back-{job}"));
    burst.nothing_is_left();

    let job = burst.submit("out", "", "flash", "exit 1");
    burst.wait(&job, "staging-out");
    // By what it is as well as by its number.
    cluster.ok("scancel --hurry -n out");
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
    // Nor by a symbol that becomes the name of a node, be it this one's or another's.
    for node in ["n1", "n2"] {
        let directive = format!("#DW stage_in type=directory source={}/%x/jobs destination=x", burst.pools.display());
        let job = plant(node, &directive, "true");
        let said = cluster.wait_until(&format!("squeue -h -j {job} -o '%T %r'"), |said| said.out.contains("failed:"));
        assert!(said.out.starts_with("PENDING ") && said.out.contains("lies in the burst buffer pool"), "{said:?}");
        cluster.ok(&format!("scancel {job}"));
    }
    let refused = cluster.run(&format!(
        "sbatch --bb='#DW jobdw capacity=1MiB\n#DW stage_in type=file source={}/flash/x destination=x' --wrap true",
        burst.pools.display()
    ));
    assert!(refused.code != 0 && refused.err.contains("Burst Buffer request invalid"), "{refused:?}");
    burst.nothing_is_left();
}

#[test]
fn an_agent_out_of_reach_keeps_no_cancelled_job_waiting() {
    let burst = burst("128KiB");
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
    let umount = cluster.run(&format!("scancel {job}; for i in $(seq 600); do scontrol show burst | grep -q JobID || break; sleep 0.1; done; umount {}", root.display()));
    assert!(said.out.starts_with("PENDING ") && said.out.contains("No space left"), "{said:?}");
    assert!(said.out.contains("needs 1.9MiB") && said.out.contains("available"), "{said:?}");
    assert_eq!(umount.code, 0, "{umount:?}");
}

/// A full destination is looked at every five minutes; whoever has made room there need not wait so long.
#[test]
fn a_release_looks_at_once_whether_there_is_room_again() {
    let burst = burst("64MiB");
    let cluster = &burst.cluster;
    let small = "mkdir full && mount -t tmpfs -o size=1m,mode=0777 none full";
    if cluster.run(small).code != 0 {
        return eprintln!("SKIPPED: only root can make a small file system");
    }
    let _mount = Mount(cluster.dir.join("work/full").display().to_string());
    let job = burst.submit_to("job", "", "flash", "full/back", "true");
    let line = format!("squeue -h -j {job} -o '%t %r'");
    cluster.wait_until(&line, |said| said.out.starts_with("SO ") && said.out.contains("waiting for space"));
    cluster.ok(&format!("mount -o remount,size=64m full; scontrol release {job}"));
    cluster.wait_state(&job, "COMPLETED");
    burst.same("full/back");
    burst.nothing_is_left();
}

/// Whatever is in the way of a teardown is told, and the space is charged until it has gone.
#[test]
fn what_cannot_be_removed_is_told_and_charged_until_it_can() {
    let burst = burst("64MiB");
    let cluster = &burst.cluster;
    let root = burst.pools.join("flash");
    let open = |mode: u32| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(&root, mode).unwrap();
    };
    let is_stuck = |job: &str, why: &str| {
        burst.wait(job, "teardown-fail");
        let shown = cluster.ok(&format!("scontrol show job {job}"));
        assert!(shown.contains("JobState=COMPLETED") && shown.contains("teardown failed: n"), "{shown}");
        assert!(shown.contains(why), "{shown}");
        let shown = cluster.ok("scontrol show burst");
        assert!(shown.contains("State=teardown-fail") && shown.contains("UsedSpace=8MiB"), "{shown}");
    };
    let submit = |body: &str| {
        burst.write("stuck", &format!("#!/bin/sh\n#DW jobdw capacity=8MiB pool=flash\n{body}\ntrue\n"));
        cluster.sbatch("stuck")
    };
    let until_told = "while test ! -e go; do sleep 0.05; done";
    let job = submit(until_told);
    cluster.wait_state(&job, "RUNNING");
    open(0o777);
    cluster.ok("touch go");
    is_stuck(&job, "can be written by others");
    open(0o711);
    burst.wait(&job, "complete");
    burst.nothing_is_left();

    cluster.ok("rm go");
    let job = submit(until_told);
    cluster.wait_state(&job, "RUNNING");
    let home = root.join(format!("jobs/{job}.1/shared"));
    fs::rename(&home, root.join("own")).unwrap();
    fs::create_dir(&home).unwrap();
    cluster.ok("touch go");
    is_stuck(&job, "is not the directory that was made");
    assert!(home.exists(), "what somebody else has put there is left alone");
    fs::remove_dir(&home).unwrap();
    fs::rename(root.join("own"), &home).unwrap();
    burst.wait(&job, "complete");
    burst.nothing_is_left();

    let job = submit("mkdir $DW_JOB_STRIPED/m && mount -t tmpfs none $DW_JOB_STRIPED/m && touch mounted");
    cluster.wait_state(&job, "COMPLETED");
    if burst.has("mounted") {
        is_stuck(&job, "another file system is mounted in it");
        let said = cluster.run(&format!("umount {}/.trash/*/m", root.display()));
        assert_eq!(said.code, 0, "{said:?}");
    } else {
        eprintln!("SKIPPED: only root can mount something in a buffer");
    }
    burst.wait(&job, "complete");
    burst.nothing_is_left();
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
    // On a busy machine it may be further by the time that anybody looks.
    let shown = format!("squeue -h -t all -j {first} -O BurstBufferState:.20");
    cluster.wait_until(&shown, |said| !["", "pending", "allocating"].contains(&said.out.trim()));
    kill_9(cluster.controller_pid());
    cluster.start("");
    let others: Vec<String> = (0..7).map(|_| burst.submit("other", "", "flash", "true")).collect();
    for job in others.iter().chain([&first]) {
        cluster.wait_state(job, "COMPLETED");
        burst.same(&format!("back-{job}"));
    }
    burst.nothing_is_left();
}

/// `STAGING_KILLS=60` for as many as the machine has time for, `STAGING_SEED=7` for others.
#[test]
fn random_kills_of_everything_that_moves_data_lose_and_leave_nothing() {
    let n_kills: u64 = std::env::var("STAGING_KILLS").ok().map_or(8, |text| text.parse().expect("a number"));
    let burst = burst("1MiB");
    let cluster = &burst.cluster;
    let mut throw = dice(0x2545_f491_4f6c_dd1d);
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
