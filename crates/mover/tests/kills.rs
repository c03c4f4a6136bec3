//! Movers that are killed, called off, lied to: nothing is lost, nothing is left, nothing wrong is taken for right.
mod support;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use mover::{Ending, Kind, Order, Verify, process};
use support::{Folder, listing, noise, order, outcome};

fn start(folder: &Folder, order: &Order) -> std::process::Child {
    process::start(Path::new(env!("CARGO_BIN_EXE_mover-test")), order, folder.files(), false, None).unwrap()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn status(folder: &Folder) -> Option<mover::Status> {
    mover::read_status(&fs::File::open(folder.path("status")).ok()?)
}

/// The names of all parts below. A mover may be at work there: what vanishes meanwhile is passed over.
fn parts(folder: &Folder) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.0.clone()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => found.extend(entry.file_name().into_string().ok().filter(|name| name.ends_with(".part"))),
            }
        }
    }
    found
}

fn source(folder: &Folder) {
    for index in 0..1500 {
        folder.write(&format!("source/d{}/f{index}", index % 5), &noise(index % 3000, index as u64));
    }
    folder.write("source/large", &noise(9_000_000, 77));
}

fn slow(folder: &Folder) -> Order {
    let mut order = order(Kind::Directory, &folder.text("source"), &folder.text("target"));
    (order.split_bytes, order.chunk_bytes) = (1 << 20, 512 << 10);
    order.bytes_per_sec = Some(30 << 20);
    order
}

/// `MOVER_SEED=7` for other instants.
#[test]
fn fifty_kills_later_every_byte_is_there() {
    let folder = Folder::new();
    source(&folder);
    let mut order = slow(&folder);
    order.bytes_per_sec = Some(8 << 20);
    let mut n_kills = 0;
    let mut seed: u64 = std::env::var("MOVER_SEED").ok().map_or(1, |text| text.parse().expect("a number"));
    loop {
        let mut child = start(&folder, &order);
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        // Anywhere in its life: the instant is the point of the test.
        std::thread::sleep(Duration::from_micros(2_000 + (seed >> 33) % 40_000));
        if n_kills < 60 && child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            n_kills += 1;
            child.wait().unwrap();
            continue;
        }
        child.wait().unwrap();
        if n_kills >= 50 {
            break;
        }
        // Instants take long on a busy machine: it had time to finish, and begins anew.
        assert_eq!(outcome(status(&folder).unwrap()).ending, Ending::Done);
        assert_eq!(listing(&folder.path("target")), listing(&folder.path("source")), "after {n_kills} kills");
        fs::remove_dir_all(folder.path("target")).unwrap();
        fs::remove_file(folder.path("journal")).unwrap();
    }
    assert_eq!(listing(&folder.path("target")), listing(&folder.path("source")), "after {n_kills} kills");
    let ended = status(&folder).unwrap();
    assert_eq!(ended.outcome.unwrap().ending, Ending::Done);
    // One more time: nothing is copied twice.
    let again = folder.run(&Order { bytes_per_sec: None, ..order });
    assert_eq!(again.snapshot.files_resumed, again.snapshot.files_total);
}

#[test]
fn a_killed_mover_goes_on_in_the_middle_of_a_large_file() {
    let folder = Folder::new();
    folder.write("source/large", &noise(20 << 20, 3));
    let mut order = slow(&folder);
    order.bytes_per_sec = Some(2 << 20);
    let mut child = start(&folder, &order);
    wait_for("half of it", || status(&folder).is_some_and(|status| status.snapshot.bytes_done > 6 << 20));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(parts(&folder).len(), 1);
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let part = folder.path("target/.large.spurbb-copy.part");
    let before = inode(&part);
    // What the first one wrote is not written again: a mark in it survives.
    let written = fs::File::options().write(true).open(&part).unwrap();
    let mark = noise(16, 99);
    written.write_all_at(&mark, 100).unwrap();
    let ended = outcome(folder.run(&Order { bytes_per_sec: None, ..order }));
    assert_eq!(ended.ending, Ending::Done);
    assert_eq!(inode(&folder.path("target/large")), before);
    let copied = fs::read(folder.path("target/large")).unwrap();
    assert_eq!(&copied[100..116], &mark);
    let original = fs::read(folder.path("source/large")).unwrap();
    assert!(copied[..100] == original[..100] && copied[116..] == original[116..]);
}

#[test]
fn a_mover_that_is_called_off_leaves_no_part() {
    let folder = Folder::new();
    source(&folder);
    let mut order = slow(&folder);
    order.bytes_per_sec = Some(1 << 20);
    let mut child = start(&folder, &order);
    wait_for("a part", || folder.path("target").exists() && !parts(&folder).is_empty());
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    let asked = Instant::now();
    child.wait().unwrap();
    assert!(asked.elapsed() < Duration::from_secs(60));
    assert_eq!(parts(&folder), Vec::<String>::new());
    assert_eq!(status(&folder).unwrap().outcome.unwrap().ending, Ending::Cancelled);
    // What was complete stays, and is whole.
    for line in listing(&folder.path("target")).iter().filter(|line| !line.contains("directory")) {
        assert!(listing(&folder.path("source")).contains(line), "{line}");
    }
}

#[test]
fn the_parts_of_a_killed_mover_are_cleaned_away() {
    let folder = Folder::new();
    source(&folder);
    let order = Order { bytes_per_sec: Some(1 << 20), ..slow(&folder) };
    let mut child = start(&folder, &order);
    wait_for("a part", || folder.path("target").exists() && !parts(&folder).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(folder.path("target/.mine.part"), b"not ours").unwrap();
    let executable = Path::new(env!("CARGO_BIN_EXE_mover-test"));
    let mut cleaner = process::start(executable, &order, folder.files(), true, None).unwrap();
    assert!(cleaner.wait().unwrap().success());
    let left = parts(&folder);
    assert!(left.len() == 1 && left[0].contains(".mine.part"), "{left:?}");
}

#[test]
fn a_journal_of_another_errand_counts_for_nothing() {
    let folder = Folder::new();
    folder.write("source/f", b"one");
    let mut order = order(Kind::Directory, &folder.text("source"), &folder.text("target"));
    assert_eq!(outcome(folder.run(&order)).ending, Ending::Done);
    order.tag = "another".into();
    let status = folder.run(&order);
    assert_eq!((status.snapshot.files_resumed, status.snapshot.files_done), (0, 1));
    // A torn end is dropped.
    let journal = fs::File::options().append(true).open(folder.path("journal")).unwrap();
    std::io::Write::write_all(&mut &journal, &[200, 0, 0, 0, 1, 2]).unwrap();
    assert_eq!(folder.run(&order).snapshot.files_resumed, 1);
    assert_eq!(folder.run(&order).snapshot.files_resumed, 1);
    // A source that has changed is copied again.
    folder.write("source/f", b"two");
    assert_eq!(folder.run(&order).snapshot.files_resumed, 0);
    assert_eq!(fs::read(folder.path("target/f")).unwrap(), b"two");
    // So is a destination that was tampered with.
    folder.write("target/f", b"three");
    assert_eq!(outcome(folder.run(&order)).ending, Ending::Done);
    assert_eq!(fs::read(folder.path("target/f")).unwrap(), b"two");
}

/// Somebody writes into the part while it is being written: seen when it is read back, and put right or refused.
#[test]
fn a_byte_that_is_corrupted_before_verification_is_noticed() {
    let folder = Folder::new();
    let bytes = noise(48 << 20, 21);
    folder.write("source", &bytes);
    let mut order = order(Kind::File, &folder.text("source"), &folder.text("target"));
    (order.verify, order.split_bytes, order.chunk_bytes) = (Verify::Full, 1 << 20, 16 << 20);
    order.n_workers = Some(2);
    // Slow enough that a byte of the last chunk is reached long before the chunk is read back.
    order.bytes_per_sec = Some(32 << 20);
    let place = (32 << 20) + 5;
    let part = folder.path(".target.spurbb-copy.part");
    let corrupt_once = |n_times: usize| {
        let over = mover::Stop::default();
        std::thread::scope(|scope| {
            let corrupter = scope.spawn(|| {
                let mut n_done = 0;
                while n_done < n_times && !over.is_set() {
                    let Ok(file) = fs::File::options().read(true).write(true).open(&part) else { continue };
                    let mut byte = [0];
                    // Only a byte that has been written.
                    if file.read_exact_at(&mut byte, place).is_ok() && byte[0] == bytes[place as usize] {
                        file.write_all_at(&[!bytes[place as usize]], place).unwrap();
                        n_done += 1;
                    }
                }
                n_done
            });
            let status = folder.run(&order);
            over.set();
            (status, corrupter.join().expect("it only reads and writes"))
        })
    };
    // On a busy machine the copy may be done before anybody could touch it.
    let is_done = |status: &mover::Status| status.outcome.as_ref().is_some_and(|it| it.ending == Ending::Done);
    let corrupt = |n_times: usize| {
        for _ in 0..50 {
            let (status, n_done) = corrupt_once(n_times);
            // Whoever is to corrupt all that is written, and came too late once, has seen it put right.
            let is_late = n_times > 1 && n_done as u64 <= status.snapshot.retries && is_done(&status);
            if n_done > 0 && !is_late {
                return status;
            }
            let _ = fs::remove_file(folder.path("target"));
            let _ = fs::remove_file(folder.path("journal"));
        }
        panic!("never quick enough to corrupt a byte");
    };
    let healed = corrupt(1);
    assert!(healed.snapshot.retries >= 1, "{healed:?}");
    assert_eq!(outcome(healed).ending, Ending::Done);
    assert!(fs::read(folder.path("target")).unwrap() == bytes);
    fs::remove_file(folder.path("target")).unwrap();
    fs::remove_file(folder.path("journal")).unwrap();
    let refused = outcome(corrupt(usize::MAX));
    assert_eq!(refused.ending, Ending::Failed);
    assert!(refused.text().starts_with("checksum mismatch: "), "{}", refused.text());
    assert!(!folder.path("target").exists() && !part.exists(), "what is wrong gets no name");
}

#[test]
fn a_source_that_changes_under_the_copy_is_not_taken() {
    let folder = Folder::new();
    folder.write("source", &noise(8 << 20, 1));
    let mut order = order(Kind::File, &folder.text("source"), &folder.text("target"));
    order.bytes_per_sec = Some(4 << 20);
    let over = mover::Stop::default();
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = fs::File::options().write(true).open(folder.path("source")).unwrap();
            while !over.wait(Duration::from_millis(30)) {
                file.write_all_at(b"changed", 1000).unwrap();
            }
        });
        let ended = outcome(folder.run(&order));
        over.set();
        ended
    });
    assert!(ended.text().starts_with("source changed during copy: "), "{ended:?}");
    assert!(!folder.path("target").exists());
}

#[test]
fn commands_run_after_the_copies_and_their_words_are_told() {
    let folder = Folder::new();
    folder.write("source", b"copied");
    let mut order = order(Kind::File, &folder.text("source"), &folder.text("target"));
    order.work_dir = folder.0.to_str().unwrap().to_owned();
    order.environment = vec!["WORD=from outside".into()];
    order.commands = vec!["echo \"$WORD\" > by-command; cat target >> by-command".into()];
    assert!(start(&folder, &order).wait().unwrap().success());
    assert_eq!(fs::read(folder.path("by-command")).unwrap(), b"from outside\ncopied");
    // However much it has said before.
    order.commands.push("yes nonsense | head -c 3000000 >&2; echo oh dear >&2; exit 3".into());
    assert!(!start(&folder, &order).wait().unwrap().success());
    let text = status(&folder).unwrap().outcome.unwrap().text();
    assert!(text.contains("exit status: 3") && text.ends_with("oh dear"), "{text}");
}

#[test]
fn a_mover_holds_its_journal_while_commands_run_and_they_end_with_it() {
    let folder = Folder::new();
    folder.write("source", b"copied");
    let mut order = order(Kind::File, &folder.text("source"), &folder.text("target"));
    order.work_dir = folder.0.to_str().unwrap().to_owned();
    order.commands = vec!["sleep 300 & touch begun; wait".into()];
    let mut child = start(&folder, &order);
    wait_for("the command", || folder.path("begun").exists());
    let journal = fs::File::open(folder.path("journal")).unwrap();
    let taken = rustix::fs::flock(&journal, rustix::fs::FlockOperation::NonBlockingLockShared);
    assert_eq!(taken, Err(rustix::io::Errno::WOULDBLOCK), "whoever looks must see that a mover is there");
    // SAFETY: a plain call; the mover leads its own group.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGTERM) };
    assert!(!child.wait().unwrap().success());
    process::wait_gone(&journal).unwrap();
    assert_eq!(outcome(status(&folder).unwrap()).ending, Ending::Cancelled);
}
