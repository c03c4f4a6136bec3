//! What is told of burst buffers afterwards and elsewhere: history, limits, mail, metrics; and what becomes of them when leaders die.
use std::fs;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use crate::burst::{Burst, dice, fill, movers, settings};
use crate::cluster::{Cluster, Folder, kill_9, new_dir};
use crate::failover::{leader, pid_of};

fn text(of_controller: &str, lines: &str, pools: &Path) -> String {
    settings(2, of_controller, &format!("tres = true\n{lines}"), pools)
}

fn burst(of_controller: &str, lines: &str) -> Burst {
    let pools = Folder::new();
    Burst { cluster: Cluster::configured(&text(of_controller, lines, &pools)), pools }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn metrics(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

/// The value in the only line that begins so.
fn counted(port: u16, name: &str) -> u64 {
    let said = metrics(port);
    let line = said.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {said}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn script(cluster: &Cluster, name: &str, capacity: &str, body: &str) {
    fill(cluster, "input", 20, 100_000);
    let text = format!(
        "#!/bin/sh\n#SBATCH -o {name}.out\n#DW jobdw capacity={capacity}\n\
         #DW stage_in type=directory source=input destination=$DW_JOB_STRIPED/in\n\
         #DW stage_out type=directory source=$DW_JOB_STRIPED/in destination=back-%j\n{body}\n"
    );
    fs::write(cluster.dir.join("work").join(name), text).unwrap();
}

#[test]
fn history_limits_mail_and_metrics_know_of_buffers() {
    let dir = Folder::new();
    let mailer = dir.join("mailer");
    let said = dir.join("mails");
    let program = format!("#!/bin/sh\necho \"$2|$SLURM_JOB_ID|$SLURM_JOB_STAGE_OUT_TIME\" >> {}\n", said.display());
    fs::write(&mailer, program).unwrap();
    fs::set_permissions(&mailer, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let port = free_port();
    let settings = format!("mail_program = \"{}\"\nmetrics_address = \"127.0.0.1:{port}\"\n", mailer.display());
    let burst = burst(&settings, "");
    let cluster = &burst.cluster;
    let user = cluster.ok("id -un");
    cluster.ok("sacctmgr -i add account physics");
    cluster.ok(&format!("sacctmgr -i add user {user} account=physics"));
    cluster.ok("sacctmgr -i modify account physics set GrpTRES=bb/native=20");

    script(cluster, "job", "8MiB", "while [ ! -e go ]; do sleep 0.05; done");
    let first = cluster.sbatch("-A physics --mail-type=STAGE_OUT --mail-user=me job");
    cluster.wait_state(&first, "RUNNING");
    script(cluster, "large", "16MiB", "true");
    let second = cluster.sbatch("-A physics large");
    cluster.wait_until(&format!("squeue -h -j {second} -o %r"), |said| said.out.trim() == "AssocGrpBB");
    cluster.ok("touch go");
    for job in [&first, &second] {
        cluster.wait_state(job, "COMPLETED");
        cluster.ok(&format!("diff -r input back-{job}"));
    }
    let row = cluster.ok(&format!("sacct -X -n -P -j {first} -o ReqTRES,AllocTRES,SystemComment"));
    let fields: Vec<&str> = row.split('|').collect();
    assert!(fields[0].contains("bb/native=8M") && fields[1].contains("bb/native=8M"), "{row}");
    let is_told =
        |text: &str| text.contains("bb stage-in 1.9MiB 20 files") && text.contains("stage-out 1.9MiB 20 files");
    cluster.wait_until(&format!("sacct -X -n -P -j {first} -o SystemComment"), |said| is_told(&said.out));
    let mails = cluster.wait_until(&format!("cat {}", said.display()), |said| said.out.contains(&first));
    let line = mails
        .out
        .lines()
        .find(|line| line.contains(&format!("Job_id={first} ")))
        .unwrap_or_else(|| panic!("{mails:?}"));
    assert!(line.contains("StageOut/Teardown time 00:00:"), "{line}");
    assert!(line.rsplit('|').next().is_some_and(|time| !time.is_empty()), "{line}");
    let lines = [
        "spur_burst_buffer_files_total{direction=\"out\"} 40",
        "spur_burst_buffer_bytes{pool=\"flash\",use=\"total\"} 67108864",
        "spur_burst_buffer_bytes{pool=\"flash\",use=\"used\"} 0",
        "spur_burst_buffer_moved_bytes_total{direction=\"in\"} 4000000",
    ];
    cluster.wait_until("true", |_| {
        let told = metrics(port);
        lines.iter().all(|line| told.contains(line))
    });
}

/// However long data is on its way: the log hears when it sets out and when it has come.
#[test]
fn data_on_its_way_costs_the_log_nothing() {
    let port = free_port();
    let burst = burst(&format!("metrics_address = \"127.0.0.1:{port}\""), "bandwidth = \"64KiB\"");
    let cluster = &burst.cluster;
    script(cluster, "job", "8MiB", "true");
    let job = cluster.sbatch("job");
    let shown = format!("squeue -h -j {job} -O BurstBufferProgress:.100");
    // By the second time that it is told of, everything about its submission is settled.
    let first = cluster.wait_until(&shown, |said| said.out.contains("stage-in") && said.out.contains("eta=0:"));
    // It waits until history knows.
    cluster.ok(&format!("sacct -X -n -j {job}"));
    let before = counted(port, "spur_journal_entries_total");
    let second = cluster.wait_until(&shown, |said| said.out != first.out);
    assert_eq!(counted(port, "spur_journal_entries_total"), before, "{second:?}");
    assert!(second.out.contains("stage-in"), "it is still on its way: {second:?}");
    cluster.ok(&format!("scancel {job}"));
    cluster.wait_state(&job, "CANCELLED");
    burst.nothing_is_left();
}

/// Three controllers.
fn with_followers(lines: &str) -> Burst {
    let (dir, pools) = (new_dir(), Folder::new());
    let file = dir.join("wanted.conf");
    fs::write(&file, text("", lines, &pools)).unwrap();
    let cluster = Cluster { dir };
    cluster.start(&format!("--config {} --controllers 3", file.display()));
    Burst { cluster, pools }
}

/// `STAGING_KILLS=60` for as many as the machine has time for, `STAGING_SEED=7` for others.
#[test]
fn random_kills_beside_three_controllers_lose_and_leave_nothing() {
    let n_kills: u64 = std::env::var("STAGING_KILLS").ok().map_or(4, |text| text.parse().expect("a number"));
    let burst = with_followers("bandwidth = \"1MiB\"");
    let cluster = &burst.cluster;
    fill(cluster, "input", 40, 50_000);
    let mut throw = dice(0x5851_f42d_4c95_7f2d);
    let mut n_done = 0;
    while n_done < n_kills {
        let jobs = ["flash", "local"].map(|pool| (pool, burst.submit("job", "", pool, "true")));
        for _ in 0..4 {
            // Anywhere in the copying: the instant is the point of the test.
            std::thread::sleep(std::time::Duration::from_millis(100 + throw(900)));
            match throw(6) {
                0 => kill_9(cluster.agent_pid("n1")),
                1 => kill_9(cluster.agent_pid("n2")),
                2 => movers(&burst.pools).into_iter().for_each(kill_9),
                leading if leading % 2 == 1 => kill_9(pid_of(cluster, leader(cluster))),
                _ => kill_9(pid_of(cluster, 1 + throw(3))),
            }
            n_done += 1;
            cluster.start("");
        }
        for (pool, job) in jobs {
            cluster.wait_state(&job, "COMPLETED");
            match pool {
                "local" => cluster.ok(&format!("set -e; for d in back-{job}-n*; do diff -r input $d; done")),
                _ => cluster.ok(&format!("diff -r input back-{job}")),
            };
        }
        burst.nothing_is_left();
    }
}

#[test]
fn another_leader_goes_on_with_what_agents_move() {
    let burst = with_followers("bandwidth = \"192KiB\"");
    let cluster = &burst.cluster;
    script(cluster, "job", "8MiB", "true");
    let job = cluster.sbatch("job");
    for state in ["staging-in", "staging-out"] {
        let shown = format!("squeue -h -t all -j {job} -O BurstBufferState:.20");
        cluster.wait_until(&shown, |said| said.out.trim() == state);
        let first = leader(cluster);
        kill_9(pid_of(cluster, first));
        cluster.wait_until("squeue -h", |said| said.code == 0);
        assert_ne!(leader(cluster), first);
        cluster.start("");
    }
    cluster.wait_state(&job, "COMPLETED");
    cluster.ok(&format!("diff -r input back-{job}"));
    cluster.wait_until("scontrol show burst", |said| {
        said.out.contains("TotalSpace=") && !said.out.contains("Allocated Buffers")
    });
}

/// A persistent buffer belongs to no job: it counts by itself, and accounting remembers it.
#[test]
fn persistent_buffers_count_for_their_owners_and_are_remembered() {
    let burst = burst("", "flags = [\"EnablePersistent\"]");
    let cluster = &burst.cluster;
    let user = cluster.ok("id -un");
    cluster.ok("sacctmgr -i add account physics");
    cluster.ok(&format!("sacctmgr -i add user {user} account=physics"));
    cluster.ok("sacctmgr -i modify account physics set grptres=bb/native=8");
    let work = cluster.dir.join("work");
    fs::write(work.join("make"), "#!/bin/sh\n#BB create_persistent name=library capacity=6MiB\n").unwrap();
    fs::write(work.join("destroy"), "#!/bin/sh\n#BB destroy_persistent name=library\n").unwrap();
    let job = cluster.sbatch("-A physics -N0 make");
    cluster.wait_state(&job, "COMPLETED");
    let line = "sacctmgr -nP show reservation format=name,tres,timeend";
    assert_eq!(cluster.ok(line), "library|bb/native=6M|Unknown");
    script(cluster, "more", "4MiB", "true");
    let waits = cluster.sbatch("-A physics more");
    let shown = cluster.wait_until(&format!("squeue -h -j {waits} -o %r"), |said| said.out.contains("AssocGrpBB"));
    assert_eq!(shown.out.trim(), "AssocGrpBB");
    let job = cluster.sbatch("-A physics -N0 destroy");
    cluster.wait_state(&job, "COMPLETED");
    cluster.wait_state(&waits, "COMPLETED");
    let said = cluster.ok(line);
    assert!(said.starts_with("library|bb/native=6M|20"), "{said}");
}
