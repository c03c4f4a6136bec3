//! Users who change their trees while they are copied, forbid what they ask for, or try to have others' files copied for them.
mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use mover::{Ending, Identity, Kind, Order, Stop};
use support::{Folder, listing, noise, order, order_in, order_out, outcome, run_apart};

/// A name that is a directory one moment and a link to somebody else's the next.
#[test]
fn a_directory_that_turns_into_a_link_gives_nothing_away() {
    let folder = Folder::new();
    folder.write("secret/file", b"secret");
    folder.write("fence/own/file", b"own");
    let (own, kept) = (folder.path("fence/own"), folder.path("fence/kept"));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                fs::rename(&own, &kept).unwrap();
                symlink(folder.path("secret"), &own).unwrap();
                fs::remove_file(&own).unwrap();
                fs::rename(&kept, &own).unwrap();
            }
        });
        for round in 0..150 {
            let target = folder.text(&format!("out{round}"));
            let (kind, inside) = if round % 2 == 0 { (Kind::File, "own/file") } else { (Kind::Directory, "own") };
            let order = Order { tag: format!("t{round}"), ..order_out(kind, &folder.text("fence"), inside, &target) };
            outcome(folder.run(&order));
            let found = fs::read(&target).or_else(|_| fs::read(Path::new(&target).join("file"))).unwrap_or_default();
            assert_ne!(found, b"secret", "round {round}");
        }
        is_over.store(true, Relaxed);
    });
}

#[test]
fn what_vanishes_grows_or_shrinks_meanwhile_is_told_and_never_half_there() {
    let folder = Folder::new();
    for index in 0..40 {
        folder.write(&format!("source/f{index}"), &noise(200_000, index));
    }
    // So slow that there is time to change things.
    let order = Order {
        bytes_per_sec: Some(1_000_000),
        n_workers: Some(1),
        ..order(Kind::Directory, &folder.text("source"), &folder.text("target"))
    };
    let is_over = AtomicBool::new(false);
    let status = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Once something has been copied, everything has been planned.
            let until = Instant::now() + Duration::from_secs(60);
            while fs::read_dir(folder.path("target")).map_or(0, |all| all.count()) == 0 {
                assert!(Instant::now() < until, "nothing is copied");
                std::thread::sleep(Duration::from_millis(1));
            }
            let names: Vec<_> = fs::read_dir(folder.path("source")).unwrap().flatten().map(|it| it.path()).collect();
            // Those that are read last are changed first.
            let untouched: Vec<_> =
                names.iter().filter(|name| !folder.path("target").join(name.file_name().unwrap()).exists()).collect();
            fs::remove_file(untouched[untouched.len() - 1]).unwrap();
            fs::write(untouched[untouched.len() - 2], b"short").unwrap();
            let growing = untouched[untouched.len() - 3];
            while !is_over.load(Relaxed) {
                let mut file = fs::File::options().append(true).open(growing).unwrap();
                std::io::Write::write_all(&mut file, b"more").unwrap();
            }
        });
        let status = folder.run(&order);
        is_over.store(true, Relaxed);
        status
    });
    let outcome = outcome(status);
    assert_eq!(outcome.ending, Ending::Failed);
    let said = outcome.errors.join("\n");
    assert!(said.contains("No such file") && said.contains("source changed during copy"), "{said}");
    assert_eq!(outcome.errors.len(), 2, "what shrank before its turn is copied as it is: {said}");
    assert_eq!(fs::read_dir(folder.path("target")).unwrap().count(), 38);
    let parts = fs::read_dir(folder.path("target")).unwrap().flatten();
    assert_eq!(parts.filter(|entry| entry.file_name().to_string_lossy().ends_with(".part")).count(), 0);
}

#[test]
fn two_errands_to_one_place_leave_one_whole_file() {
    let folder = Folder::new();
    for owner in ["a", "b"] {
        for index in 0..30 {
            folder.write(&format!("{owner}/f{index}"), &[owner.as_bytes()[0]; 60_000]);
        }
    }
    let other = Folder::new();
    for round in 0..5 {
        let target = folder.text(&format!("both{round}"));
        let errand = |owner: &str| Order { tag: owner.into(), ..order(Kind::Directory, &folder.text(owner), &target) };
        let (first, second) = (errand("a"), errand("b"));
        std::thread::scope(|scope| {
            let one = scope.spawn(|| outcome(folder.run(&first)));
            let two = scope.spawn(|| outcome(other.run(&second)));
            for done in [one, two] {
                let done = done.join().unwrap();
                assert_eq!((done.ending, done.errors), (Ending::Done, vec![]));
            }
        });
        for index in 0..30 {
            let bytes = fs::read(Path::new(&target).join(format!("f{index}"))).unwrap();
            assert!(bytes.len() == 60_000 && bytes.iter().all(|byte| *byte == bytes[0]), "of one only");
        }
        assert_eq!(fs::read_dir(&target).unwrap().count(), 30);
    }
}

/// A tree that its owner has write-protected, of which one file cannot be read at first.
#[test]
fn what_failed_is_brought_later_into_directories_that_may_not_be_written() {
    // SAFETY: a plain call.
    let is_root = unsafe { libc::geteuid() } == 0;
    let user = 65_534;
    let identity = is_root.then(|| Identity { uid: user, gid: user, groups: Vec::new() });
    for is_inside in [true, false] {
        let folder = Folder::new();
        folder.write("source/shut/below/good", b"good");
        folder.write("source/other/good", b"good");
        fs::set_permissions(folder.path("source/other"), fs::Permissions::from_mode(0o555)).unwrap();
        folder.write("source/shut/below/bad", b"bad");
        fs::create_dir(folder.path("target")).unwrap();
        let set = |name: &str, mode| fs::set_permissions(folder.path(name), fs::Permissions::from_mode(mode)).unwrap();
        set("source/shut/below/bad", 0);
        set("source/shut/below", 0o555);
        set("source/shut", 0o500);
        for name in ["source", "source/shut", "source/shut/below", "source/shut/below/bad", "target"] {
            std::os::unix::fs::chown(folder.path(name), is_root.then_some(user), None).unwrap();
        }
        let (source, target) = (folder.text("source"), folder.text("target"));
        let order = match is_inside {
            true => order_in(Kind::Directory, &source, &target, "copy"),
            false => order(Kind::Directory, &source, &format!("{target}/copy")),
        };
        let order = Order { identity: identity.clone(), ..order };
        let failed = run_apart(&folder, &order);
        assert_eq!((failed.ending, failed.n_errors), (Ending::Failed, 1), "{failed:?}");
        assert!(failed.errors[0].contains("below/bad: Permission denied"), "{failed:?}");
        let mode = |name: &str| fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("target/copy/other"), 0o555, "where nothing is lacking all is as it should be");
        set("source/shut/below/bad", 0o400);
        let done = run_apart(&folder, &order);
        assert_eq!((done.ending, done.errors), (Ending::Done, vec![]));
        assert_eq!(listing(&folder.path("target/copy")), listing(&folder.path("source")));
    }
}

/// With the rights of the user, who may not read everything in a tree of somebody else's.
#[test]
fn what_the_user_may_not_read_is_told_and_the_rest_is_copied() {
    let folder = Folder::new();
    folder.write("source/open/file", b"open");
    folder.write("source/shut/file", b"shut");
    folder.write("source/private", b"private");
    fs::create_dir(folder.path("target")).unwrap();
    for (name, mode) in [("target", 0o777), ("source/shut", 0o700), ("source/private", 0o600)] {
        fs::set_permissions(folder.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    // SAFETY: a plain call.
    if unsafe { libc::geteuid() } != 0 {
        return eprintln!("SKIPPED: only root can be somebody else");
    }
    let identity = Some(Identity { uid: 65_534, gid: 65_534, groups: Vec::new() });
    let order = Order {
        identity,
        ..order(Kind::Directory, &folder.text("source"), &format!("{}/copy", folder.text("target")))
    };
    let outcome = run_apart(&folder, &order);
    assert_eq!((outcome.ending, outcome.n_errors), (Ending::Failed, 2), "{outcome:?}");
    assert!(outcome.errors.iter().all(|error| error.contains("Permission denied")), "{outcome:?}");
    assert_eq!(fs::read(folder.path("target/copy/open/file")).unwrap(), b"open");
    assert!(!folder.path("target/copy/private").exists());
}

#[test]
fn a_list_may_be_long_and_its_bad_lines_are_counted() {
    let folder = Folder::new();
    folder.write("source/one", b"1");
    let mut list = String::from("# everything twice and more\n\n");
    for number in 0..20_000 {
        list.push_str(&format!("source/one copy{number}\n"));
    }
    for number in 0..150 {
        list.push_str(&format!("source/missing{number}\n"));
    }
    folder.write("list", list.as_bytes());
    let mut order = order(Kind::List, &folder.text("list"), &folder.text("target"));
    order.transfers[0].list_base = Some(mover::Place::outside(folder.0.to_str().unwrap()));
    let outcome = outcome(folder.run(&order));
    assert_eq!((outcome.ending, outcome.n_errors, outcome.errors.len()), (Ending::Failed, 150, 100));
    assert!(outcome.errors[0].contains("list line 20003: "), "{}", outcome.errors[0]);
    assert_eq!(fs::read_dir(folder.path("target")).unwrap().count(), 20_000);
}

#[test]
fn a_mover_that_is_called_off_takes_nothing_of_another_ones_work_away() {
    let folder = Folder::new();
    for index in 0..30 {
        folder.write(&format!("source/f{index}"), &noise(60_000, index));
    }
    std::fs::create_dir_all(folder.path("fence")).unwrap();
    let order = support::order_in(Kind::Directory, &folder.text("source"), &folder.text("fence"), "in");
    let slow = Order { bytes_per_sec: Some(100_000), n_workers: Some(4), ..order.clone() };
    // One whose agent was given up still works; another does it all, and then the first is called off.
    let stop = Stop::default();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| mover::run(&slow, folder.files(), &stop));
        let until = Instant::now() + Duration::from_secs(60);
        while std::fs::read_dir(folder.path("fence/in")).map_or(0, |all| all.count()) < 2 {
            assert!(Instant::now() < until, "the first mover does not begin");
            std::thread::sleep(Duration::from_millis(1));
        }
        let other = support::Folder::new();
        let done = mover::run(&order, other.files(), &Stop::default());
        assert_eq!(outcome(done).ending, Ending::Done);
        stop.set();
        assert_eq!(outcome(first.join().unwrap()).ending, Ending::Cancelled);
    });
    assert_eq!(support::listing(&folder.path("fence/in")), support::listing(&folder.path("source")));
}
