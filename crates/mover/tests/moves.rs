//! What is copied is the same afterwards, and what must not be copied is refused.
mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use mover::{Ending, Kind, Links, Order, Place, Verify};
use support::{Folder, Tmpfs, listing, noise, order, order_in, order_out, outcome};

fn tree(folder: &Folder) {
    for index in 0..600 {
        folder.write(&format!("source/d{}/f{index}", index % 7), &noise(index * 13, index as u64));
    }
    folder.write("source/empty", b"");
    folder.write("source/deep/er/still/file", b"deep");
    fs::create_dir(folder.path("source/nothing")).unwrap();
    symlink("d1/f1", folder.path("source/link")).unwrap();
    symlink("/etc/passwd", folder.path("source/outward")).unwrap();
    fs::set_permissions(folder.path("source/d1/f1"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::set_permissions(folder.path("source/d2"), fs::Permissions::from_mode(0o555)).unwrap();
    let old = fs::File::open(folder.path("source/d3/f3")).unwrap();
    old.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_nanos(1_234_567_891_234_567_891)).unwrap();
}

fn done(order: &Order, folder: &Folder) {
    let status = folder.run(order);
    assert_eq!(status.snapshot.files_done, status.snapshot.files_total, "{status:?}");
    assert_eq!(status.snapshot.bytes_done, status.snapshot.bytes_total, "{status:?}");
    let outcome = outcome(status);
    assert_eq!((outcome.ending, outcome.errors), (Ending::Done, vec![]));
}

fn refused(order: &Order, folder: &Folder, words: &str) {
    let outcome = outcome(folder.run(order));
    assert_eq!(outcome.ending, Ending::Failed);
    assert!(outcome.text().contains(words), "{} lacks {words}", outcome.text());
}

#[test]
fn a_tree_is_the_same_afterwards_whatever_is_verified() {
    for verify in [Verify::None, Verify::Size, Verify::Stream, Verify::Full] {
        let folder = Folder::new();
        tree(&folder);
        let order =
            Order { verify, ..order(Kind::Directory, &folder.text("source"), &folder.text("some/where/target")) };
        done(&order, &folder);
        let mut expected = listing(&folder.path("source"));
        // Rights that come with running a file are not copied.
        expected.iter_mut().for_each(|line| *line = line.replace(" 4751 ", " 751 "));
        assert_eq!(listing(&folder.path("some/where/target")), expected, "{verify:?}");
    }
}

#[test]
fn a_tree_goes_into_a_fence_and_out_again() {
    let folder = Folder::new();
    tree(&folder);
    fs::create_dir(folder.path("buffer")).unwrap();
    let before = fs::metadata(folder.path("buffer")).unwrap().mode();
    done(&order_in(Kind::Directory, &folder.text("source"), &folder.text("buffer"), ""), &folder);
    assert_eq!(listing(&folder.path("buffer")), listing(&folder.path("source")));
    assert_eq!(fs::metadata(folder.path("buffer")).unwrap().mode(), before, "the buffer keeps its own mode");
    let mut out = order_out(Kind::Directory, &folder.text("buffer"), "", &folder.text("back"));
    out.tag = "out".into();
    out.verify = Verify::Full;
    out.syncs = true;
    done(&out, &folder);
    assert_eq!(listing(&folder.path("back")), listing(&folder.path("source")));
}

#[test]
fn large_files_are_split_and_holes_stay_holes() {
    for verify in [Verify::None, Verify::Stream, Verify::Full] {
        let folder = Folder::new();
        let bytes = noise(3_000_001, 5);
        folder.write("source/large", &bytes);
        let sparse = fs::File::create(folder.path("source/sparse")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&sparse, &bytes[..70_000], 5 << 20).unwrap();
        sparse.set_len(20 << 20).unwrap();
        let mut order = order(Kind::Directory, &folder.text("source"), &folder.text("target"));
        (order.split_bytes, order.chunk_bytes, order.verify) = (1 << 20, 256 << 10, verify);
        done(&order, &folder);
        assert_eq!(listing(&folder.path("target")), listing(&folder.path("source")), "{verify:?}");
        let blocks = fs::metadata(folder.path("target/sparse")).unwrap().blocks();
        assert!(blocks * 512 < 1 << 20, "{blocks} blocks");
    }
}

#[test]
fn a_file_goes_under_its_new_name_or_into_a_directory() {
    let folder = Folder::new();
    folder.write("source", b"new");
    fs::create_dir(folder.path("there")).unwrap();
    for (destination, path) in [("a/b/named", "a/b/named"), ("c/", "c/source"), ("there", "there/source")] {
        let mut order = order(Kind::File, &folder.text("source"), &folder.text(destination));
        order.tag = destination.replace('/', "-");
        done(&order, &folder);
        assert_eq!(fs::read(folder.path(path)).unwrap(), b"new", "{destination}");
    }
    folder.write("old", b"something longer than new");
    let kept_open = fs::File::open(folder.path("old")).unwrap();
    done(&order(Kind::File, &folder.text("source"), &folder.text("old")), &folder);
    assert_eq!(fs::read(folder.path("old")).unwrap(), b"new");
    assert_eq!(kept_open.metadata().unwrap().len(), 25, "who has the old one open keeps it whole");
}

#[test]
fn a_list_names_files_and_trees() {
    let folder = Folder::new();
    tree(&folder);
    fs::create_dir(folder.path("buffer")).unwrap();
    let list =
        format!("# my files\n{0}/d1/f1\n\n{0}/d2/f2 sub/two\n\"{0}/d3\"\tthree\nsource/empty\n", folder.text("source"));
    folder.write("list", list.as_bytes());
    let mut order = order_in(Kind::List, &folder.text("list"), &folder.text("buffer"), "in");
    order.transfers[0].list_base = Some(Place::outside(folder.0.to_str().unwrap()));
    done(&order, &folder);
    assert_eq!(fs::read(folder.path("buffer/in/f1")).unwrap(), fs::read(folder.path("source/d1/f1")).unwrap());
    assert_eq!(fs::read(folder.path("buffer/in/sub/two")).unwrap(), fs::read(folder.path("source/d2/f2")).unwrap());
    assert_eq!(listing(&folder.path("buffer/in/three")), listing(&folder.path("source/d3")));
    assert!(folder.path("buffer/in/empty").exists());
}

#[test]
fn a_list_that_points_out_of_the_buffer_is_refused_with_its_line() {
    let folder = Folder::new();
    folder.write("buffer/good", b"good");
    folder.write("secret", b"secret");
    for line in ["../secret", "/etc/passwd", "$OTHER/x", "good ../../out", "good /etc/cron.d/x"] {
        folder.write("buffer/list", format!("good\n{line}\n").as_bytes());
        let mut order = order_out(Kind::List, &folder.text("buffer"), "list", &folder.text("out"));
        order.tag = format!("{}", line.len());
        order.transfers[0].list_base = Some(Place::inside(0, ""));
        refused(&order, &folder, "line 2");
        assert!(!folder.path("out/passwd").exists() && !folder.path("out/secret").exists(), "{line}");
        assert_eq!(fs::read(folder.path("out/good")).unwrap(), b"good", "the rest is copied");
    }
    let own = format!("{}/good\n$BUFFER/good again\n", folder.text("buffer"));
    folder.write("buffer/list", own.as_bytes());
    let mut order = order_out(Kind::List, &folder.text("buffer"), "list", &folder.text("own"));
    order.fences[0].aliases = vec!["$BUFFER".into()];
    order.transfers[0].list_base = Some(Place::inside(0, ""));
    done(&order, &folder);
    assert!(folder.path("own/good").exists() && folder.path("own/again").exists());
}

#[test]
fn a_link_planted_in_the_buffer_leads_nowhere() {
    let folder = Folder::new();
    folder.write("victim/precious", b"precious");
    folder.write("source/d/precious", b"evil");
    fs::create_dir(folder.path("buffer")).unwrap();
    symlink(folder.path("victim"), folder.path("buffer/d")).unwrap();
    // Written through: the way in.
    refused(&order_in(Kind::Directory, &folder.text("source"), &folder.text("buffer"), ""), &folder, "symbolic link");
    refused(
        &order_in(Kind::File, &folder.text("source/d/precious"), &folder.text("buffer"), "d/x"),
        &folder,
        "symbolic link",
    );
    assert_eq!(fs::read(folder.path("victim/precious")).unwrap(), b"precious");
    assert_eq!(fs::read_dir(folder.path("victim")).unwrap().count(), 1);
    // Read through: the way out.
    refused(
        &order_out(Kind::File, &folder.text("buffer"), "d/precious", &folder.text("stolen")),
        &folder,
        "symbolic link",
    );
    symlink(folder.path("victim/precious"), folder.path("buffer/f")).unwrap();
    refused(&order_out(Kind::File, &folder.text("buffer"), "f", &folder.text("stolen")), &folder, "symbolic link");
    refused(
        &order_out(Kind::Directory, &folder.text("buffer"), "d", &folder.text("stolen")),
        &folder,
        "not a directory",
    );
    assert!(!folder.path("stolen").exists());
    // The buffer itself is no link.
    symlink(folder.path("victim"), folder.path("false")).unwrap();
    refused(&order_in(Kind::Directory, &folder.text("source"), &folder.text("false"), ""), &folder, "cannot open");
    // A link where a file goes is replaced, not written through.
    symlink(folder.path("victim/precious"), folder.path("buffer/x")).unwrap();
    done(&order_in(Kind::File, &folder.text("source/d/precious"), &folder.text("buffer"), "x"), &folder);
    assert_eq!(fs::read(folder.path("victim/precious")).unwrap(), b"precious");
    assert!(!fs::symlink_metadata(folder.path("buffer/x")).unwrap().is_symlink());
}

#[test]
fn links_are_kept_followed_skipped_or_refused() {
    let folder = Folder::new();
    folder.write("source/file", b"file");
    folder.write("source/sub/other", b"other");
    symlink("../file", folder.path("source/sub/inward")).unwrap();
    symlink("sub", folder.path("source/way")).unwrap();
    let run = |links: Links, name: &str| {
        let mut order = order(Kind::Directory, &folder.text("source"), &folder.text(name));
        order.tag = name.to_owned();
        order.transfers[0].links = links;
        outcome(folder.run(&order))
    };
    assert_eq!(run(Links::Follow, "followed").errors, Vec::<String>::new());
    assert_eq!(fs::read(folder.path("followed/way/inward")).unwrap(), b"file");
    assert!(fs::symlink_metadata(folder.path("followed/way")).unwrap().is_dir());
    assert_eq!(run(Links::Skip, "skipped").n_errors, 0);
    assert!(!folder.path("skipped/way").exists() && folder.path("skipped/sub/other").exists());
    assert_eq!(run(Links::Fail, "failed").n_errors, 2);
    symlink("/etc/passwd", folder.path("source/outward")).unwrap();
    symlink("..", folder.path("source/sub/round")).unwrap();
    let escaped = run(Links::Follow, "escaped");
    assert_eq!(escaped.ending, Ending::Failed);
    assert!(escaped.errors.iter().any(|error| error.contains("outward")), "{escaped:?}");
    assert!(escaped.errors.iter().any(|error| error.contains("back to above")), "{escaped:?}");
    assert!(!folder.path("escaped/outward").exists());
}

#[test]
fn one_bad_file_does_not_stop_the_others() {
    let folder = Folder::new();
    tree(&folder);
    fs::set_permissions(folder.path("source/d4/f4"), fs::Permissions::from_mode(0o000)).unwrap();
    let is_root = fs::File::open(folder.path("source/d4/f4")).is_ok();
    let order = order(Kind::Directory, &folder.text("source"), &folder.text("target"));
    if is_root {
        eprintln!("SKIPPED: root reads every file");
    } else {
        refused(&order, &folder, "Permission denied");
        assert!(folder.path("target/d5/f5").exists());
    }
    let missing = support::order(Kind::File, &folder.text("nowhere"), &folder.text("x"));
    refused(&missing, &folder, "No such file or directory");
    let mut optional = missing;
    optional.transfers[0].is_optional = true;
    done(&optional, &folder);
    refused(&support::order(Kind::File, &folder.text("source"), &folder.text("x")), &folder, "not a regular file");
    refused(
        &support::order(Kind::Directory, &folder.text("source/empty"), &folder.text("x")),
        &folder,
        "not a directory",
    );
    rustix::fs::mknodat(
        rustix::fs::CWD,
        folder.path("source/pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    fs::set_permissions(folder.path("source/d4/f4"), fs::Permissions::from_mode(0o600)).unwrap();
    let warned = outcome(folder.run(&support::order(Kind::Directory, &folder.text("source"), &folder.text("again"))));
    assert_eq!((warned.ending, warned.warnings.len()), (Ending::Done, 1), "{warned:?}");
    refused(&support::order(Kind::File, &folder.text("source/pipe"), &folder.text("x")), &folder, "not a regular file");
}

#[test]
fn what_does_not_fit_is_refused_before_a_byte_moves() {
    let folder = Folder::new();
    folder.write("source/a", &noise(60_000, 1));
    folder.write("source/b", &noise(60_000, 2));
    fs::create_dir(folder.path("buffer")).unwrap();
    let mut order = order_in(Kind::Directory, &folder.text("source"), &folder.text("buffer"), "");
    order.fences[0].capacity_bytes = Some(100_000);
    refused(&order, &folder, "stage_in needs 117.2KiB in 2 files, buffer has 97.7KiB");
    assert_eq!(fs::read_dir(folder.path("buffer")).unwrap().count(), 0);
    order.fences[0].capacity_bytes = Some(120_000);
    done(&order, &folder);
}

/// Nothing would arrive, and nobody would be told.
#[test]
fn what_has_content_but_no_size_is_refused() {
    let folder = Folder::new();
    refused(&order(Kind::File, "/proc/cpuinfo", &folder.text("x")), &folder, "does not say how large it is");
    assert!(!folder.path("x").exists());
    folder.write("empty", b"");
    done(&order(Kind::File, &folder.text("empty"), &folder.text("x")), &folder);
    assert!(folder.path("x").exists());
}

#[test]
fn a_name_as_long_as_can_be_has_room_for_its_part() {
    let folder = Folder::new();
    let name = "n".repeat(255);
    folder.write(&format!("source/{name}"), b"long");
    done(&order(Kind::Directory, &folder.text("source"), &folder.text("target")), &folder);
    assert_eq!(listing(&folder.path("target")), listing(&folder.path("source")));
}

const STEP: &str = "deeper";

/// A directory with so many others in each other, and a file in the last; without paths, which would be too long.
fn make_deep(root: &Path, n_levels: usize) {
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
    fs::create_dir(root).unwrap();
    let mut at = openat(CWD, root, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..n_levels {
        mkdirat(&at, STEP, Mode::RWXU).unwrap();
        at = openat(&at, STEP, OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    let file = openat(&at, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR | Mode::WUSR).unwrap();
    std::io::Write::write_all(&mut fs::File::from(file), b"at the bottom").unwrap();
}

/// How many directories are in each other, and what the file in the last says.
fn look_deep(root: &Path) -> (usize, String) {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let mut at = openat(CWD, root, OFlags::DIRECTORY, Mode::empty()).unwrap();
    let mut n_levels = 0;
    while let Ok(below) = openat(&at, STEP, OFlags::DIRECTORY, Mode::empty()) {
        (at, n_levels) = (below, n_levels + 1);
    }
    let file = openat(&at, "file", OFlags::RDONLY, Mode::empty()).map(fs::File::from);
    (n_levels, file.map_or_else(|errno| errno.to_string(), |file| std::io::read_to_string(file).unwrap()))
}

/// Deeper than descriptors should be spent on, and longer than the kernel takes a path.
#[test]
fn a_tree_may_be_deep_and_one_that_has_no_end_is_refused() {
    let folder = Folder::new();
    make_deep(&folder.path("source"), 1500);
    fs::create_dir(folder.path("buffer")).unwrap();
    done(&order_in(Kind::Directory, &folder.text("source"), &folder.text("buffer"), "in"), &folder);
    done(&order_out(Kind::Directory, &folder.text("buffer"), "in", &folder.text("back")), &folder);
    assert_eq!(look_deep(&folder.path("back")), (1500, "at the bottom".to_owned()));
    make_deep(&folder.path("endless"), 2500);
    refused(&order(Kind::Directory, &folder.text("endless"), &folder.text("copy")), &folder, "2000 levels deep");
    assert!(std::process::Command::new("rm").arg("-rf").arg(&folder.0).status().unwrap().success());
}

#[test]
fn a_full_buffer_fails_at_once_and_a_full_outside_is_waited_for() {
    let folder = Folder::new();
    let disk = folder.path("disk");
    fs::create_dir(&disk).unwrap();
    let Some(_mount) = Tmpfs::mount(&disk, "1m") else {
        eprintln!("SKIPPED: only root can mount a small file system");
        return;
    };
    folder.write("source/large", &noise(3 << 20, 9));
    folder.write("small", b"small");
    refused(&order_in(Kind::Directory, &folder.text("source"), disk.to_str().unwrap(), ""), &folder, "No space left");
    let text =
        outcome(folder.run(&order_in(Kind::Directory, &folder.text("source"), disk.to_str().unwrap(), ""))).text();
    assert!(text.contains("needs 3MiB") && text.contains("available"), "{text}");
    assert_eq!(fs::read_dir(&disk).unwrap().count(), 0, "nothing unfinished is left");
    fs::write(disk.join("ballast"), noise(2 << 20, 3)).unwrap_err();
    let mut order = order(Kind::File, &folder.text("small"), disk.join("out").to_str().unwrap());
    (order.full_retry_secs, order.full_patience_secs) = (1, 60);
    let freed = std::thread::scope(|scope| {
        let moving = scope.spawn(|| folder.run(&order));
        let mut waited = false;
        for _ in 0..3000 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let status = fs::File::open(folder.path("status")).ok().and_then(|file| mover::read_status(&file));
            if status.is_some_and(|status| status.snapshot.note.contains("waiting for space")) {
                waited = true;
                break;
            }
        }
        fs::remove_file(disk.join("ballast")).unwrap();
        (waited, moving.join().unwrap())
    });
    assert!(freed.0, "the status says what is waited for");
    assert_eq!(outcome(freed.1).ending, Ending::Done);
    assert_eq!(fs::read(disk.join("out")).unwrap(), b"small");
}

#[test]
fn attributes_are_copied_when_asked_for() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    for (is_split, wants) in [(false, true), (true, true), (false, false)] {
        let folder = Folder::new();
        folder.write("source/d/f", &noise(100_000, 3));
        for (path, value) in [("source/d/f", &b"of a file"[..]), ("source/d", b"of a directory")] {
            if setxattr(folder.path(path), "user.note", value, XattrFlags::empty()).is_err() {
                return eprintln!("SKIPPED: this file system has no extended attributes");
            }
        }
        let mut order = order(Kind::Directory, &folder.text("source"), &folder.text("target"));
        order.transfers[0].with_attributes = wants;
        if is_split {
            (order.split_bytes, order.chunk_bytes) = (10_000, 10_000);
        }
        done(&order, &folder);
        let read = |path: &str| {
            let mut value = [0; 64];
            getxattr(folder.path(path), "user.note", &mut value).map(|length| value[..length].to_vec()).ok()
        };
        assert_eq!(read("target/d/f"), wants.then(|| b"of a file".to_vec()));
        assert_eq!(read("target/d"), wants.then(|| b"of a directory".to_vec()));
    }
}

/// As sha256sum writes them.
const SUMS: [(&str, &str, &str); 2] = [
    ("a", "alpha", "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8"),
    ("d/b", "beta", "f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753"),
];

#[test]
fn what_a_manifest_names_must_have_arrived_as_it_says() {
    let folder = Folder::new();
    fs::create_dir(folder.path("buffer")).unwrap();
    let text: String = SUMS.iter().map(|(name, _, sum)| format!("{sum}  ./{name}\n")).collect();
    SUMS.iter().for_each(|(name, content, _)| folder.write(&format!("source/{name}"), content.as_bytes()));
    folder.write("sums", text.as_bytes());
    let mut tree = order_in(Kind::Directory, &folder.text("source"), &folder.text("buffer"), "data");
    tree.transfers[0].manifest = folder.text("sums");
    done(&tree, &folder);

    let mut single = order_in(Kind::File, &folder.text("source/a"), &folder.text("buffer"), "other-name");
    single.tag = "single".into();
    single.transfers[0].manifest = folder.text("sums");
    done(&single, &folder);

    folder.write("source/a", b"alphb");
    tree.tag = "second".into();
    refused(&tree, &folder, "sums line 1: checksum mismatch: a");
    folder.write("sums", format!("{text}{}  d/c\n", SUMS[0].2).as_bytes());
    folder.write("source/a", b"alpha");
    tree.tag = "third".into();
    refused(&tree, &folder, "sums line 3: d/c has not been staged");
    for (content, words) in [
        (format!("{}  ../a\n", SUMS[0].2), "line 1: ../a is not below what is staged"),
        ("nonsense\n".into(), "line 1: is not as sha256sum writes it"),
        (String::new(), "sums names nothing of "),
    ] {
        folder.write("sums", content.as_bytes());
        refused(&tree, &folder, words);
    }
    fs::remove_file(folder.path("sums")).unwrap();
    refused(&tree, &folder, "No such file");
}
