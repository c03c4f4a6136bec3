//! Strangers who listen where a daemon did, while it is down, and directories that they have made for it.
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cluster::{Cluster, is_root};

const STRANGER: u32 = 65_534;

/// Listens as this user, on a thread whose identity alone is changed.
fn listening_as(uid: u32, socket: PathBuf) -> UnixListener {
    let listen = move || {
        // SAFETY: a plain system call, of this thread only.
        assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, -1, uid, -1) }, 0);
        UnixListener::bind(socket).unwrap()
    };
    std::thread::spawn(listen).join().unwrap()
}

#[test]
fn stranger_at_a_daemons_socket_is_told_nothing() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = Cluster::up("--nodes 1");
    head.ok(&format!("spur down --dir {}", head.dir.display()));
    let run = head.dir.join("run");
    chown(&run, Some(STRANGER), Some(STRANGER)).unwrap();
    let listener = listening_as(STRANGER, run.join("controller.sock"));
    fs::set_permissions(run.join("controller.sock"), fs::Permissions::from_mode(0o666)).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut heard = Vec::new();
            // Ends when the caller closes.
            stream.unwrap().read_to_end(&mut heard).unwrap();
            tell.send(heard).unwrap();
        }
    });
    for line in ["squeue", "sbatch --wrap true", "scontrol show config", "scancel 1"] {
        let said = head.run(line);
        assert_ne!(said.code, 0, "{line}: {said:?}");
        assert!(said.err.contains("the user 65534 listens there"), "{line}: {said:?}");
    }
    // All four have come, and gone without a word.
    for _ in 0..4 {
        let heard = told.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(heard.is_empty(), "a stranger heard {:?}", String::from_utf8_lossy(&heard));
    }
    fs::remove_file(run.join("controller.sock")).unwrap();
    chown(&run, Some(0), Some(0)).unwrap();
    head.start("");
    head.ok("squeue");
}

#[test]
fn socket_directory_of_a_stranger_is_refused() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = Cluster::up("--nodes 1");
    head.ok(&format!("spur down --dir {}", head.dir.display()));
    let taken = PathBuf::from(format!("/tmp/spur-taken-{}", std::process::id()));
    let file = head.dir.join("spur.conf");
    let text = fs::read_to_string(&file).unwrap();
    let run = head.dir.join("run");
    let moved = text.replace(&format!("\"{}/", run.display()), &format!("\"{}/", taken.display()));
    assert_ne!(moved, text, "the sockets are elsewhere");
    fs::write(&file, &moved).unwrap();
    let refused = |why: &str| {
        for daemon in ["spurctld", "spurd -N n1"] {
            let said = head.run(&format!("timeout 20 {daemon} -f {}", file.display()));
            assert!(said.code == 1 && said.err.contains(why), "{daemon}: {said:?}");
        }
    };
    fs::create_dir(&taken).unwrap();
    chown(&taken, Some(STRANGER), Some(STRANGER)).unwrap();
    refused("belongs to somebody else");
    fs::remove_dir(&taken).unwrap();
    std::os::unix::fs::symlink(Path::new("/var/tmp"), &taken).unwrap();
    refused("belongs to somebody else");
    fs::remove_file(&taken).unwrap();
    fs::create_dir(&taken).unwrap();
    fs::set_permissions(&taken, fs::Permissions::from_mode(0o777)).unwrap();
    refused("everybody may put sockets into");
    fs::set_permissions(&taken, fs::Permissions::from_mode(0o755)).unwrap();
    head.start("");
    head.ok("squeue");
    head.ok(&format!("spur down --dir {}", head.dir.display()));
    fs::remove_dir_all(&taken).unwrap();
}
