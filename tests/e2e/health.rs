//! The health of nodes: the site's check, machines that are started anew, and silence.
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::cluster::{Cluster, kill_9, new_dir};

/// A machine that is busy for a moment is not lost: what these tests see is not about silence.
const PATIENT: u32 = 120;

fn program(cluster: &Cluster, name: &str, text: &str) -> String {
    let path = cluster.dir.join(name);
    fs::write(&path, format!("#!/bin/bash\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// A cluster of its own, with these lines about health; nodes are lost when they are silent for so many seconds.
fn up(lines: impl Fn(&Cluster) -> String, nodes: &str, node_timeout: u32) -> Cluster {
    let cluster = Cluster { dir: new_dir() };
    let text = format!(
        "[controller]\nnode_timeout = {node_timeout}\nreturn_to_service = 1\n[agent]\nheartbeat = 1\n[health]\n{}\n[[nodes]]\nnames = \"{nodes}\"\ncpus = 4\nmemory_mb = 1000\n[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n",
        lines(&cluster)
    );
    let file = cluster.dir.join("wanted.conf");
    fs::write(&file, text).unwrap();
    cluster.start(&format!("--config {}", file.display()));
    cluster
}

#[test]
fn the_site_checks_its_nodes_and_takes_sick_ones_out() {
    let cluster = up(
        |cluster| {
            let work = cluster.dir.join("work");
            let check = program(
                cluster,
                "check",
                &format!(
                    "echo $SLURMD_NODENAME >> {0}/checked\n[ -e {0}/sick-$SLURMD_NODENAME ] && scontrol update nodename=$SLURMD_NODENAME state=drain reason=sick\nexit 0",
                    work.display(),
                ),
            );
            fs::create_dir_all(work).unwrap();
            format!("check = \"{check}\"\ncheck_interval = 1\ncheck_states = \"IDLE\"")
        },
        "n[1-2]",
        PATIENT,
    );
    // When an agent starts, and then again and again.
    cluster.wait_file("checked", |text| ["n1", "n2"].iter().all(|node| text.matches(node).count() >= 3));
    cluster.ok("touch sick-n2");
    cluster.wait_for("sinfo -h -n n2 -o '%T %E'", "drained sick");
    // Nodes that are busy are left alone.
    cluster.sbatch("-w n1 -o /dev/null --wrap 'touch busy; sleep 600'");
    cluster.wait_file("busy", |_| true);
    cluster.ok(": > checked");
    let checked = cluster.wait_file("checked", |text| text.matches("n2").count() >= 4);
    // One check may have been under way when the job came.
    assert!(checked.matches("n1").count() <= 1, "a busy node was checked: {checked}");
    let said = cluster.ok("scontrol show config | grep HealthCheck");
    assert!(
        said.contains("HealthCheckInterval     = 1 sec") && said.contains("HealthCheckNodeState    = IDLE"),
        "{said}"
    );
}

#[test]
fn nodes_are_started_anew_when_they_have_nothing_left_to_do() {
    let cluster = up(
        |cluster| {
            let reboot =
                program(cluster, "reboot", &format!("echo reboot >> {}/rebooted", cluster.dir.join("work").display()));
            format!("reboot_program = \"{reboot}\"\nresume_timeout = 600")
        },
        "n[1-2]",
        PATIENT,
    );
    let state = |wanted: &str| cluster.wait_for("sinfo -h -n n1 -o '%T %t %E'", wanted);
    let job = cluster.sbatch("-w n1 -o /dev/null --wrap 'sleep 600'");
    cluster.wait_state(&job, "RUNNING");
    cluster.ok("scontrol reboot ASAP reason='new kernel' n1");
    state("draining@ drng@ new kernel");
    assert!(cluster.ok("scontrol show node n1").contains("State=MIXED+DRAIN+REBOOT_REQUESTED"), "and so in full");
    assert!(cluster.ok("scontrol show node n1").contains("NextState=RESUME"));
    cluster.ok("scontrol cancel_reboot n1");
    state("mixed mix none");
    cluster.ok("scontrol reboot ASAP nextstate=RESUME n1");
    cluster.ok(&format!("scancel {job}"));
    state("reboot^ boot^ Reboot ASAP : reboot issued");
    cluster.wait_file("rebooted", |text| text == "reboot\n");
    // The controller dies meanwhile: the node is told once.
    kill_9(cluster.controller_pid());
    cluster.start("");
    state("reboot^ boot^ Reboot ASAP : reboot issued");
    // The machine goes down with its agent; it comes back with another boot.
    kill_9(cluster.agent_pid("n1"));
    let mut agent = std::process::Command::new(env!("CARGO_BIN_EXE_spur"))
        .args(["spurd", "-b", "--config"])
        .arg(cluster.dir.join("spur.conf"))
        .args(["--node", "n1"])
        .spawn()
        .unwrap();
    state("idle idle none");
    assert_eq!(cluster.file("rebooted"), "reboot\n");
    let ran = cluster.sbatch("-w n1 -o /dev/null --wrap true");
    cluster.wait_state(&ran, "COMPLETED");
    kill_9(agent.id() as i32);
    let _ = agent.wait();
    // Without being asked for it: somebody should look why.
    cluster.start("");
    state("down down Node unexpectedly rebooted");
    cluster.ok("scontrol update nodename=n1 state=resume");
    state("idle idle none");

    for (line, said) in [
        ("scontrol reboot", "Missing node list. Specify ALL|<NodeList>"),
        ("scontrol reboot bogus", "scontrol_reboot_nodes error: Invalid node name specified"),
        ("scontrol cancel_reboot n1", "slurm_update error: Invalid node state specified"),
        ("scontrol cancel_reboot", "missing argument for keyword:cancel_reboot"),
    ] {
        let refused = cluster.run(line);
        assert_eq!((refused.code, refused.err.trim()), (1, said), "{line}: {refused:?}");
    }
}

#[test]
fn without_a_program_no_node_is_started_anew() {
    let cluster = up(|_| String::new(), "n1", 10);
    let refused = cluster.run("scontrol reboot n1");
    let lines: Vec<&str> = refused.err.lines().collect();
    assert_eq!(
        (refused.code, &lines[..]),
        (1, &["scontrol: error: RebootProgram isn't defined", "scontrol_reboot_nodes error: Unspecified error"][..])
    );
    // Silence is noticed within the time that the site gives, and what ran there runs elsewhere or is told to have failed.
    let job = cluster.sbatch("--no-requeue -o /dev/null --wrap 'echo $$ > own; exec sleep 600'");
    let pid: i32 = cluster.wait_file("own", |text| text.ends_with('\n')).trim().parse().unwrap();
    cluster.wait_state(&job, "RUNNING");
    // SAFETY: a plain system call.
    unsafe { libc::kill(cluster.agent_pid("n1"), libc::SIGSTOP) };
    let began = std::time::Instant::now();
    cluster.wait_state(&job, "NODE_FAIL");
    assert!(began.elapsed().as_secs() < 50, "node_timeout is 10 s, and not the usual 60");
    cluster.wait_for(&format!("sacct -nP -j {job}.batch -o state"), "CANCELLED");
    assert_eq!(cluster.ok("sinfo -h -o '%T %E'"), "down* Not responding");
    unsafe { libc::kill(cluster.agent_pid("n1"), libc::SIGCONT) };
    cluster.wait_for("sinfo -h -o '%T %E'", "idle none");
    assert!(!crate::cluster::is_alive(pid), "what it ran and should not any more is gone before the node is used");
}
