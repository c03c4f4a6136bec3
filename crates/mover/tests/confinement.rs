//! What a mover gives up before it looks at a tree, and what becomes of one that cannot.
mod support;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use confine::{CallFilter, Terms, give_up_new_rights};
use mover::{Ending, Kind, Order};
use support::{Folder, noise, order, order_in, outcome};

const PATIENCE: Duration = Duration::from_secs(60);

/// So slow that there is time to look at the mover, or to change things.
fn slow_order(folder: &Folder) -> Order {
    folder.write("a/large", &noise(2_000_000, 1));
    folder.write("b/small", b"small");
    folder.write("secret/small", b"other");
    let target = folder.text("target/");
    let mut all = order(Kind::File, &folder.text("a/large"), &target);
    all.transfers.extend(order(Kind::File, &folder.text("b/small"), &target).transfers);
    Order { bytes_per_sec: Some(1_000_000), n_workers: Some(1), ..all }
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "it takes too long");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn directory_that_becomes_a_link_after_the_plan_is_not_reached() {
    if confine::reach::version() == 0 {
        return eprintln!("skipped: this kernel has no landlock");
    }
    let folder = Folder::new();
    let order = slow_order(&folder);
    fs::create_dir_all(folder.path("target")).unwrap();
    let status = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Once something is being copied, everything has been planned.
            wait_until(|| fs::read_dir(folder.path("target")).unwrap().count() > 0);
            fs::rename(folder.path("b"), folder.path("kept")).unwrap();
            symlink(folder.path("secret"), folder.path("b")).unwrap();
        });
        folder.run(&order)
    });
    let outcome = outcome(status);
    assert_eq!(outcome.ending, Ending::Failed);
    assert!(outcome.text().contains("ermission denied"), "{outcome:?}");
    assert!(!folder.path("target/small").exists() && folder.path("target/large").exists());
}

#[test]
fn every_thread_of_a_mover_is_confined() {
    let folder = Folder::new();
    let order = slow_order(&folder);
    let executable = Path::new(env!("CARGO_BIN_EXE_mover-test"));
    fs::create_dir_all(folder.path("target")).unwrap();
    let mut child = mover::process::start(executable, &order, folder.files(), false, None).unwrap();
    wait_until(|| fs::read_dir(folder.path("target")).unwrap().count() > 0);
    let threads = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    let told: Vec<String> =
        threads.flatten().map(|thread| fs::read_to_string(thread.path().join("status")).unwrap()).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(told.len() > 2, "{told:?}");
    for status in told {
        assert!(status.contains("NoNewPrivs:\t1\n") && status.contains("Seccomp:\t2\n"), "{status}");
    }
}

/// In a child, which keeps the filter for itself.
#[test]
fn mover_that_cannot_be_confined_says_so_and_copies_nothing() {
    if confine::reach::version() == 0 {
        return eprintln!("skipped: this kernel has no landlock");
    }
    const RESTRICT: libc::c_long = 446;
    let folder = Folder::new();
    folder.write("source/file", b"text");
    fs::create_dir_all(folder.path("fence")).unwrap();
    let order = order_in(Kind::Directory, &folder.text("source"), &folder.text("fence"), "in");
    let others: Vec<libc::c_long> = (0..463).filter(|number| *number != RESTRICT).collect();
    let never = Terms::If { argument: 0, mask: 0, values: Vec::new() };
    let filter = CallFilter::default().allow(&others).allow_if(RESTRICT, never);
    let mut status = 0;
    // SAFETY: the child does nothing but start a mover and wait for it.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            let is_filtered = give_up_new_rights().is_ok() && filter.install().is_ok();
            let outcome = outcome(folder.run(&order));
            let is_told = outcome.ending == Ending::Failed && outcome.text().contains("cannot be confined");
            libc::_exit(if is_filtered && is_told { 0 } else { 1 });
        }
        libc::waitpid(pid, &mut status, 0);
    }
    assert_eq!(status, 0);
    assert!(!folder.path("fence/in").exists());
    assert!(mover::read_status(&File::open(folder.path("status")).unwrap()).is_some());
}
