//! Steps on other machines: everything that `srun` and its like do with agents, through daemons of their own machine and over TLS.
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::cluster::{Cluster, kill_9, new_dir};
use crate::machines::{Machine, free_port, join, token};

/// A user that is nobody special: as root, one whom nodes may vouch for.
fn as_user(line: &str) -> String {
    // SAFETY: geteuid cannot fail.
    match unsafe { libc::geteuid() } {
        0 => format!("setpriv --reuid=1 --regid=1 --clear-groups bash -c '{}'", line.replace('\'', "'\\''")),
        _ => line.to_owned(),
    }
}

/// A controller's machine and two nodes of their own.
fn three_machines() -> (Cluster, Machine, Machine) {
    let head = Cluster { dir: new_dir() };
    let listen = || format!("--listen 127.0.0.1:{}", free_port());
    let said = head.ok(&format!("spur init --dir {} {}", head.dir.display(), listen()));
    let first = join(said.rsplit_once(' ').unwrap().1, &format!("--node a1 --cpus 4 --memory 1G {}", listen()));
    let second = join(&token(&head, ""), &format!("--node a2 --cpus 4 --memory 1G {}", listen()));
    if unsafe { libc::geteuid() } != 0 {
        // Then all machines belong to the one user who is an administrator of all.
        let trust = "root_squash = false\\nlogin_nodes = \"a[1-2]\"";
        head.ok(&format!("sed -i 's/^root_squash = true/{trust}/' {}/spur.conf", head.dir.display()));
        head.ok("scontrol reconfigure");
    }
    let work = head.dir.join("work");
    std::fs::create_dir_all(&work).unwrap();
    std::fs::set_permissions(&work, std::fs::Permissions::from_mode(0o777)).unwrap();
    (head, first, second)
}

#[test]
fn steps_of_other_machines_are_as_those_of_ones_own() {
    let (head, first, second) = three_machines();
    let user = |line: &str| head.ok(&as_user(line));

    // Several nodes in one step, from the controller's machine.
    let said = user("srun -N2 -n4 --ntasks-per-node=2 -l sh -c 'echo $SLURMD_NODENAME $SLURM_PROCID' | sort");
    assert_eq!(said, "0: a1 0\n1: a1 1\n2: a2 2\n3: a2 3");
    assert_eq!(user("printf 'in\\nput\\n' | srun -w a2 cat"), "in\nput");
    let said = head.run(&as_user("srun -w a2 sh -c 'echo oops >&2; exit 7'"));
    assert_eq!((said.code, said.err.lines().next()), (7, Some("oops")), "{said:?}");
    let size = user("head -c 3000000 /dev/zero | srun -w a2 sh -c 'cat; head -c 3000000 /dev/zero' | wc -c");
    assert_eq!(size, "6000000", "all of it, both ways");

    // A terminal.
    if head.run("command -v script").code == 0 {
        let said = user("script -qec \"srun -w a2 --pty sh -c 'tty; stty size'\" /dev/null </dev/null");
        assert!(said.contains("/dev/pts/"), "{said}");
    }

    // From a node, in a batch script: the other node is reached directly, and the script finds its own machine's configuration.
    let job = user(
        "sbatch --parsable -N2 -n2 -w a[1-2] -o steps.out --wrap 'echo $SPUR_CONF; srun -l sh -c \"echo \\$SLURMD_NODENAME\" | sort'",
    );
    head.wait_state(&job, "COMPLETED");
    let conf = first.0.dir.join("spur.conf");
    assert_eq!(head.file("steps.out"), format!("{}\n0: a1\n1: a2\n", conf.display()));

    // Signals; and what others see of a step while it runs.
    let mut step = head.shell(&as_user(
        "exec srun -w a2 -J seen sh -c 'trap \"echo got; exit 3\" USR1; echo ready; while :; do sleep 0.05; done'",
    ));
    let mut step = step.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(step.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let job = user("squeue -h -n seen -o %i");
    assert!(user(&format!("scontrol listpids {job} | wc -l")).parse::<u32>().unwrap() >= 2);
    assert!(user(&format!("sstat -n -a -j {job} -o JobID,NTasks")).contains(&format!("{job}.0")), "sstat");
    std::fs::write(head.dir.join("work/source"), "carried over").unwrap();
    let target = head.dir.join("work/target");
    user(&format!("sbcast -j {job} source {}", target.display()));
    assert_eq!(head.file("target"), "carried over");
    let mut onlooker = head.shell(&as_user(&format!("exec sattach {job}.0")));
    let mut onlooker = onlooker.stdout(Stdio::piped()).spawn().unwrap();
    let mut seen = BufReader::new(onlooker.stdout.take().unwrap()).lines();

    // An agent that is killed and comes back: the step goes on, and so does srun.
    kill_9(second.0.agent_pid("a2"));
    second.0.start("");
    head.wait_until("sinfo -h -n a2 -o %T", |said| ["mixed", "allocated"].contains(&said.out.trim()));
    user(&format!("scancel -s USR1 {job}"));
    assert_eq!(lines.next().unwrap().unwrap(), "got");
    assert_eq!(step.wait().unwrap().code(), Some(3));
    let _ = seen.next();
    let _ = onlooker.wait();

    // A user's steps are the user's own, wherever the call comes from.
    if unsafe { libc::geteuid() } == 0 {
        let mut step = head.shell("exec srun -w a2 -J own sh -c 'echo ready; cat'");
        let mut step = step.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(step.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        let job = head.ok("squeue -h -n own -o %i");
        for machine in [&head, &first.0] {
            let refused = machine.run(&as_user(&format!("timeout 60 sattach {job}.0")));
            assert_ne!(refused.code, 0, "{refused:?}");
            assert!(refused.err.contains("permission denied"), "{refused:?}");
        }
        let refused = first.0.run(&format!("timeout 60 sattach {job}.0"));
        assert_ne!(refused.code, 0, "root of another node is nobody: {refused:?}");
        step.stdin.take().unwrap().write_all(b"end\n").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "end");
        assert_eq!(step.wait().unwrap().code(), Some(0));
    }

    // A node that is taken out is not heard by the others any more.
    head.ok(&format!("spur node remove a1 --dir {}", head.dir.display()));
    head.wait_until(&format!("grep -c 'n_revoked=[1-9]' {}/log/agent-a2.log", second.0.dir.display()), |said| {
        said.code == 0
    });
}
