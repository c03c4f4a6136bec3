//! `fanout`: few nodes read the source, the others copy from nodes that have the data, whatever is killed meanwhile.
use std::fs;

use crate::burst::{Burst, dice, empty, movers};
use crate::cluster::{Cluster, Folder, kill_9, new_dir};
use crate::machines::{free_port, join, token};

/// Four nodes with a pool each.
fn burst(lines: &str) -> Burst {
    let burst = empty(4, &format!("fanout = 1\n{lines}"));
    burst.fill("input/sub", 60, 50_000);
    std::os::unix::fs::symlink("sub/f1", burst.cluster.dir.join("work/input/link")).unwrap();
    burst
}

/// Of which nodes' agents the log tells this.
fn logs(burst: &Burst, what: &str) -> Vec<String> {
    let said = |node: &String| {
        let log = burst.cluster.dir.join(format!("log/agent-{node}.log"));
        fs::read_to_string(&log).unwrap_or_else(|error| panic!("{}: {error}", log.display())).contains(what)
    };
    (1..=4).map(|number| format!("n{number}")).filter(said).collect()
}

const FROM_A_PEER: &str = "the data comes from another node";

#[test]
fn one_node_reads_the_source_and_the_others_copy_from_those_that_have_it() {
    let burst = burst("");
    let cluster = &burst.cluster;
    let job = burst.submit("wide", "-N4", "local", "sleep 300");
    burst.wait(&job, "running");
    for node in ["n1", "n2", "n3", "n4"] {
        burst.same(&format!("{}/{node}/jobs/{job}.1/private/in", burst.pools.display()));
    }
    assert_eq!(logs(&burst, FROM_A_PEER), ["n2", "n3", "n4"]);
    // What is told of it is told of every node.
    let files = cluster.ok(&format!("scontrol show bbstat job {job} files"));
    assert_eq!(files.lines().filter(|line| line.contains(" in ") && line.contains("/in/sub/f7")).count(), 4, "{files}");
    let shown = cluster.ok(&format!("scontrol show job {job}"));
    assert!(!shown.contains("failed"), "{shown}");
    cluster.ok(&format!("scancel {job}"));
    cluster.wait_state(&job, "CANCELLED");
    for node in ["n1", "n2", "n3", "n4"] {
        burst.same(&format!("back-{job}-{node}"));
    }
    burst.nothing_is_left();

    // What differs from node to node cannot come from another.
    for node in ["n1", "n2", "n3", "n4"] {
        fs::create_dir_all(cluster.dir.join(format!("work/own-{node}"))).unwrap();
        fs::write(cluster.dir.join(format!("work/own-{node}/who")), node).unwrap();
    }
    let own = "#!/bin/sh\n#SBATCH -N4 -o own.out\n#DW jobdw capacity=1MiB access_mode=private pool=local\n\
               #DW stage_in type=directory source=own-%n destination=$DW_JOB_PRIVATE/in\n\
               srun -N4 sh -c 'test $(cat $DW_JOB_PRIVATE/in/who) = $SLURMD_NODENAME && echo right'\n";
    fs::write(cluster.dir.join("work/own"), own).unwrap();
    let job = cluster.sbatch("own");
    cluster.wait_state(&job, "COMPLETED");
    assert_eq!(cluster.file("own.out"), "right\n".repeat(4));
    burst.nothing_is_left();
}

#[test]
fn a_node_whose_data_was_spoilt_or_locked_gives_nothing_and_the_source_is_read() {
    let burst = burst("bandwidth = \"1MiB\"");
    let cluster = &burst.cluster;
    let job = burst.submit("wide", "-N2", "local", "sleep 300");
    // The reader is done, the other has begun: what it cannot read there it reads at the source.
    let home = format!("{}/n1/jobs/{job}.1/private/in", burst.pools.display());
    cluster.wait_until("true", |_| !logs(&burst, FROM_A_PEER).is_empty());
    let copied = burst.pools.join(format!("n2/jobs/{job}.1/private/in"));
    cluster.wait_until("true", |_| fs::read_dir(&copied).is_ok_and(|mut entries| entries.next().is_some()));
    cluster.ok(&format!("echo changed > {home}/sub/f59; mkfifo {home}/sub/fifo; rm {home}/sub/f58"));
    burst.wait(&job, "running");
    let there = fs::read(burst.pools.join(format!("n2/jobs/{job}.1/private/in/sub/f58"))).unwrap();
    assert_eq!(there, fs::read(cluster.dir.join("work/input/sub/f58")).unwrap());
    cluster.ok(&format!("scancel --hurry {job}"));
    cluster.wait_state(&job, "CANCELLED");
    burst.nothing_is_left();
}

/// `STAGING_KILLS=60` for as many as the machine has time for, `STAGING_SEED=7` for others.
#[test]
fn random_kills_while_nodes_copy_from_each_other_lose_and_leave_nothing() {
    let n_kills: u64 = std::env::var("STAGING_KILLS").ok().map_or(6, |text| text.parse().expect("a number"));
    let burst = burst("bandwidth = \"2MiB\"");
    let cluster = &burst.cluster;
    let mut throw = dice(0x9e37_79b9_7f4a_7c15);
    let mut n_done = 0;
    while n_done < n_kills {
        let job = burst.submit("wide", "-N4", "local", "true");
        for _ in 0..3 {
            // Anywhere in the copying: the instant is the point of the test.
            std::thread::sleep(std::time::Duration::from_millis(300 + throw(1500)));
            match throw(4) {
                0 => kill_9(cluster.controller_pid()),
                1 => kill_9(cluster.agent_pid(&format!("n{}", 1 + throw(4)))),
                _ => {
                    let all = movers(&burst.pools);
                    all.get(throw(all.len().max(1) as u64) as usize).copied().into_iter().for_each(kill_9);
                }
            }
            n_done += 1;
            cluster.start("");
        }
        cluster.wait_state(&job, "COMPLETED");
        for node in ["n1", "n2", "n3", "n4"] {
            burst.same(&format!("back-{job}-{node}"));
        }
        burst.nothing_is_left();
    }
}

/// Machines of their own: the data goes from agent to agent over TLS, in the name of the job's user.
#[test]
fn nodes_on_other_machines_give_each_other_data_over_tls() {
    // SAFETY: geteuid cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return eprintln!("skipped: needs root, to be somebody whom other machines do not take for nobody");
    }
    let head = Cluster { dir: new_dir() };
    let pools = Folder::new();
    head.ok(&format!("spur init --dir {} --listen 127.0.0.1:{}", head.dir.display(), free_port()));
    let section = format!(
        "\n[burst_buffer]\nfanout = 1\n[[burst_buffer.pools]]\nname = \"local\"\nkind = \"node\"\nroot = \"{}/%n\"\ntotal = \"64MiB\"\n",
        pools.display()
    );
    let file = head.dir.join("spur.conf");
    fs::write(&file, fs::read_to_string(&file).unwrap() + &section).unwrap();
    kill_9(head.controller_pid());
    head.start("");
    let machines =
        ["a1", "a2", "a3"].map(|name| join(&token(&head, ""), &format!("--node {name} --cpus 2 --memory 1G")));
    head.wait_until("sinfo -h -t idle -o %D", |said| said.out.trim() == "3");
    let work = pools.join("work");
    fs::create_dir_all(work.join("input")).unwrap();
    for number in 0..20 {
        fs::write(work.join(format!("input/f{number}")), vec![number; 70_000]).unwrap();
    }
    let script = "#!/bin/sh\n#SBATCH -N3 -o out\n#DW jobdw capacity=4MiB access_mode=private pool=local\n\
                  #DW stage_in type=directory source=input destination=$DW_JOB_PRIVATE/in\n\
                  #DW stage_out type=directory source=$DW_JOB_PRIVATE/in destination=back-%n\ntrue\n";
    fs::write(work.join("job"), script).unwrap();
    head.ok(&format!("chown -R daemon {}", work.display()));
    let submit = format!("cd {} && setpriv --reuid=1 --regid=1 --clear-groups sbatch --parsable job", work.display());
    let job = head.ok(&submit);
    head.wait_state(&job, "COMPLETED");
    for name in ["a1", "a2", "a3"] {
        head.ok(&format!("diff -r {0}/input {0}/back-{name}", work.display()));
    }
    let logs = machines.each_ref().map(|machine| machine.0.logs());
    assert_eq!(logs.iter().filter(|log| log.contains(FROM_A_PEER)).count(), 2, "{logs:?}");
}
