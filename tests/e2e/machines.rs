//! Many machines, played by one: every machine has its own directory and reaches the others over TLS on the loopback only.
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use crate::cluster::{Cluster, kill_9, new_dir};

/// A port that nobody has; the kernel gives out others first before it gives this one again.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A machine that is to be stopped when the test is over.
pub struct Machine(pub Cluster);

impl Machine {
    fn new(dir: PathBuf) -> Machine {
        Machine(Cluster { dir })
    }
}

pub fn token(head: &Cluster, options: &str) -> String {
    let line = head.ok(&format!("spur token {options} --dir {}", head.dir.display()));
    line.rsplit_once(' ').unwrap().1.to_owned()
}

pub fn join(word: &str, options: &str) -> Machine {
    let machine = Machine::new(new_dir());
    machine.0.ok(&format!("spur join {word} {options} --dir {}", machine.0.dir.display()));
    machine
}

#[test]
fn machines_join_over_tls_run_jobs_and_leave() {
    let head = Cluster { dir: new_dir() };
    let said = head.ok(&format!("spur init --dir {} --listen 127.0.0.1:{}", head.dir.display(), free_port()));
    let word = said.rsplit_once(' ').unwrap().1.to_owned();
    let node = join(&word, "--node a1 --cpus 4 --memory 1G");
    assert!(!head.dir.join("state/tls/ca.key").exists(), "the authority's key is in the state, and nowhere else");
    assert_eq!(head.ok("sinfo -h -o '%N %c %T'"), "a1 4 idle");
    // From the node's machine, through its agent; root of another machine is nobody, and may not submit as root.
    assert_eq!(node.0.ok("sinfo -h -o %T"), "idle");
    let job = head.sbatch("-D / -o /dev/null --wrap 'echo ran > \"$SLURM_SUBMIT_DIR\"/../..; true'");
    head.wait_state(&job, "COMPLETED");
    if unsafe { libc::geteuid() } == 0 {
        let refused = node.0.run("scontrol update partitionname=main state=down");
        assert_ne!(refused.code, 0, "root of a node is no administrator: {refused:?}");
        // But a health check there may say that the machine is sick.
        node.0.ok("scontrol update nodename=a1 state=drain reason=sick");
        assert_eq!(head.ok("sinfo -h -o '%T %E'"), "drained sick");
        node.0.ok("scontrol update nodename=a1 state=resume");
    }

    let again = Machine::new(new_dir());
    let refused = again.0.run(&format!("spur join {word} --node a2 --dir {}", again.0.dir.display()));
    assert!(refused.code != 0 && refused.err.contains("token"), "a token is good once: {refused:?}");
    let (secret, host) = word.split_once('@').unwrap();
    let other_pin: String = secret[..30].to_owned() + &"A".repeat(secret.len() - 30);
    let refused = again.0.run(&format!("spur join {other_pin}@{host} --node a2 --dir {}", again.0.dir.display()));
    assert!(refused.code != 0 && refused.err.contains("not the cluster of the token"), "{refused:?}");

    // Nobody takes the place of a node that is there.
    let other = token(&head, "");
    let refused = again.0.run(&format!("spur join {other} --node a1 --dir {}", again.0.dir.display()));
    assert!(refused.code != 0 && refused.err.contains("spur node remove a1"), "{refused:?}");

    // Plain text gets nowhere.
    assert_ne!(
        head.run(&format!(
            "timeout 5 bash -c 'exec 3<>/dev/tcp/{}; echo hello >&3; read -t 3 -u 3 line && [ \"$line\" = hello ]'",
            host.replace(':', "/")
        ))
        .code,
        0
    );

    head.ok(&format!("spur node remove a1 --dir {}", head.dir.display()));
    assert_eq!(head.ok("sinfo -h -N -o %N"), "");
    let refused = node.0.run("timeout 3 sinfo -h");
    assert_ne!(refused.code, 0, "a certificate that was taken back opens nothing: {refused:?}");
    // The token was not used up when it was refused; the name is free now.
    let anew = join(&other, "--node a1 --cpus 2 --memory 1G");
    head.wait_for("sinfo -h -o '%N %c %T'", "a1 2 idle");
    drop(anew);
}

#[test]
fn three_controllers_of_three_machines_survive_the_first() {
    let head = Cluster { dir: new_dir() };
    let listen = || format!("--listen 127.0.0.1:{}", free_port());
    head.ok(&format!("spur init --dir {} {}", head.dir.display(), listen()));
    // The node knows of the first only; the others it hears of while it runs.
    let node = join(&token(&head, ""), "--node a1 --cpus 4 --memory 1G");
    let second = join(&token(&head, "--controller"), &format!("--controller {}", listen()));
    let third = join(&token(&head, "--controller"), &format!("--controller {}", listen()));
    third.0.wait_until("scontrol ping", |said| said.out.matches("is UP").count() == 3);
    let late = join(&token(&second.0, ""), "--node a2 --cpus 4 --memory 1G");
    let long = head.sbatch("-D / -o /dev/null --wrap 'sleep 600'");
    second.0.wait_state(&long, "RUNNING");
    kill_9(head.controller_pid());
    let job = third.0.sbatch("-D / -o /dev/null --wrap true");
    third.0.wait_state(&job, "COMPLETED");
    second.0.wait_state(&long, "RUNNING");
    for node in [&node, &late] {
        assert_eq!(node.0.ok(&format!("squeue -h -j {long} -o %T")), "RUNNING", "the node's commands find their way");
    }
    second.0.wait_for("echo $(($(sinfo -h -t idle,mixed,allocated -o %D | paste -sd+)))", "2");
    // A node that restarts now still knows whom it was told of.
    kill_9(node.0.agent_pid("a1"));
    node.0.start("");
    node.0.wait_for("sinfo -h -n a1 -t idle,mixed,allocated -o %N", "a1");
    second.0.ok(&format!("scancel {long}"));
    second.0.ok(&format!("spur controller remove 1 --dir {}", second.0.dir.display()));
    second.0.wait_until("scontrol ping", |said| said.out.matches("is UP").count() == 2);
    assert!(Path::new(&head.dir).exists());
}

#[test]
fn a_backup_brings_a_lost_cluster_back_and_one_member_is_enough_after_a_disaster() {
    let cluster = Cluster::up("--nodes 1 --controllers 3");
    let done = cluster.sbatch("-o /dev/null --wrap true");
    cluster.wait_state(&done, "COMPLETED");
    let held = cluster.sbatch("-H -J kept --wrap true");
    let (dir, copy) = (cluster.dir.display().to_string(), cluster.dir.join("copy"));
    cluster.ok(&format!("spur backup {} --dir {dir}", copy.display()));
    let late = cluster.sbatch("-H -J late --wrap true");
    cluster.ok(&format!("spur down --dir {dir}"));
    cluster.ok(&format!("spur restore {} --dir {dir}", copy.display()));
    assert_eq!(cluster.ok("squeue -h -o '%i %j'").trim(), format!("{held} kept"));
    let next = cluster.sbatch("-H -J next --wrap true");
    assert_ne!(next, held, "ids go on");
    assert!(next >= late, "history remembers ids that the backup does not: {next} after {late}");

    // Two of three are lost: what the third has on its disk is made a cluster again.
    cluster.wait_until(&format!("spur status --dir {dir}"), |said| said.out.matches("up to date").count() == 3);
    cluster.ok(&format!("spur down --dir {dir}"));
    let rescued = cluster.dir.join("rescued");
    cluster.ok(&format!("spurctld --config {dir}/spur.conf --member 2 --backup {}", rescued.display()));
    let said = cluster.run(&format!("spur restore {}/spur.conf --dir {dir}", cluster.dir.display()));
    assert_ne!(said.code, 0, "what is no backup is refused");
    cluster.run(&format!("spur down --dir {dir}"));
    cluster.ok(&format!("spur restore {} --dir {dir}", rescued.display()));
    assert_eq!(cluster.ok("squeue -h -o %j | sort").split_whitespace().collect::<Vec<_>>(), ["kept", "next"]);
}
