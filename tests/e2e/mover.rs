//! `spur mover`: the agents' mover as people try it.
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::cluster::new_dir;

fn mover(dir: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spur"));
    command.arg("mover").args(arguments.split_whitespace()).current_dir(dir);
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn fill(dir: &Path) {
    fs::create_dir_all(dir.join("source/below")).unwrap();
    for (number, name) in ["a", "b", "below/c"].iter().enumerate() {
        let bytes: Vec<u8> = (0..3 << 20).map(|index: usize| ((index * 7 + number) % 251) as u8).collect();
        fs::write(dir.join("source").join(name), bytes).unwrap();
    }
}

fn is_same(dir: &Path, copy: &str) -> bool {
    Command::new("diff").args(["-r", "source", copy]).current_dir(dir).status().unwrap().success()
}

#[test]
fn what_was_called_off_goes_on_where_it_was() {
    let dir = new_dir();
    fill(&dir);
    let mut slow = mover(&dir, "--bandwidth 512KiB --workers 1 --journal notes source copy");
    let child = slow.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !["a", "b", "below/c"].iter().any(|name| dir.join("copy").join(name).exists()) {
        assert!(Instant::now() < until, "nothing is copied");
        std::thread::sleep(Duration::from_millis(10));
    }
    // SAFETY: a plain call about a child that has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(128 + libc::SIGINT), "{}", said(&ended));
    assert!(
        said(&ended).contains("called off after") && said(&ended).contains("goes on from here"),
        "{}",
        said(&ended)
    );
    let parts = Command::new("find").args(["copy", "-name", "*.part"]).current_dir(&dir).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&parts.stdout), "", "nothing unfinished is left");
    let done = mover(&dir, "--journal notes source copy").output().unwrap();
    assert!(done.status.success() && said(&done).starts_with("3 files, 9MiB in "), "{}", said(&done));
    assert!(said(&done).contains("of them by an earlier mover"), "{}", said(&done));
    assert!(is_same(&dir, "copy"));
    let quiet = mover(&dir, "-q --verify full source quiet").output().unwrap();
    assert_eq!((quiet.status.code(), quiet.stdout.len(), said(&quiet).as_str()), (Some(0), 0, ""));
    assert!(is_same(&dir, "quiet"));
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn what_cannot_be_meant_is_told_and_nothing_is_made() {
    let dir = new_dir();
    fill(&dir);
    for (arguments, words) in [
        ("source", "a source and a destination are needed"),
        ("source copy more", "a source and a destination are needed"),
        ("--verify much source copy", "'much' is none of none, size, stream, full"),
        ("--symlinks eat source copy", "'eat' is none of preserve, follow, skip, fail"),
        ("--workers 0 source copy", "is not a whole number above zero"),
        ("--bandwidth 1.5G source copy", "is not a whole number above zero"),
        ("--speed 9 source copy", "unrecognized option '--speed'"),
        ("nowhere copy", "nowhere: No such file or directory"),
        ("--list source copy", "Is a directory"),
    ] {
        let refused = mover(&dir, arguments).output().unwrap();
        assert_eq!(refused.status.code(), Some(1), "{arguments}");
        assert!(said(&refused).contains(words), "{arguments}: {}", said(&refused));
        assert!(!dir.join("copy").exists(), "{arguments}");
    }
    let help = mover(&dir, "--help").output().unwrap();
    let text = String::from_utf8_lossy(&help.stdout);
    for option in
        ["verify", "workers", "bandwidth", "symlinks", "journal", "list", "fence", "sync", "manifest", "quiet"]
    {
        assert!(text.contains(&format!("--{option}")), "{option} is not explained");
    }
    fs::remove_dir_all(&dir).unwrap();
}
