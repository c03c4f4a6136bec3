//! Disks without room, for the notes as for the data, and directories that nobody may write in.
mod support;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;

use mover::{Ending, Files, Identity, Kind, Order, Status, Stop};
use support::{Folder, Tmpfs, listing, order, outcome, run_apart};

/// Notes on a disk that is full but for what each has got already.
struct Notes {
    disk: std::path::PathBuf,
    _mount: Tmpfs,
}

impl Notes {
    fn new(folder: &Folder) -> Option<Self> {
        let disk = folder.path("disk");
        fs::create_dir(&disk).unwrap();
        let Some(_mount) = Tmpfs::mount(&disk, "1m") else {
            eprintln!("SKIPPED: only root can mount a small file system");
            return None;
        };
        for name in ["journal", "status"] {
            let file = File::create(disk.join(name)).unwrap();
            rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, 4096).unwrap();
        }
        fs::write(disk.join("ballast"), vec![7; 2 << 20]).unwrap_err();
        Some(Notes { disk, _mount })
    }

    fn run(&self, order: &Order) -> Status {
        let open = |name: &str| File::options().read(true).write(true).open(self.disk.join(name)).unwrap();
        let journal = File::options().read(true).append(true).open(self.disk.join("journal")).unwrap();
        let scratch = mover::scratch_in(&self.disk).unwrap();
        mover::run(order, Files { journal, status: Some(open("status")), scratch, peer: None }, &Stop::default());
        mover::read_status(&open("status")).expect("how it ended is written down")
    }
}

/// What could not be noted is copied again; more does not come of it.
#[test]
fn notes_that_find_no_room_are_in_nobodys_way() {
    let folder = Folder::new();
    let Some(notes) = Notes::new(&folder) else { return };
    for number in 0..400 {
        folder.write(&format!("source/file-{number}"), number.to_string().as_bytes());
    }
    let in_the_way = folder.path("target/copy/file-7/occupied");
    let order = order(Kind::Directory, &folder.text("source"), &folder.text("target/copy"));
    for _ in 0..3 {
        fs::create_dir_all(&in_the_way).unwrap();
        let failed = outcome(notes.run(&order));
        assert_eq!((failed.ending, failed.n_errors), (Ending::Failed, 1), "{failed:?}");
        assert!(failed.warnings.len() <= 1, "said once is enough: {:?}", failed.warnings);
    }
    fs::remove_dir_all(in_the_way.parent().unwrap()).unwrap();
    let done = outcome(notes.run(&order));
    assert_eq!((done.ending, done.errors), (Ending::Done, vec![]));
    assert_eq!(listing(&folder.path("target/copy")).len(), 400);
}

#[test]
fn however_much_went_wrong_how_it_ended_is_told() {
    let folder = Folder::new();
    let Some(notes) = Notes::new(&folder) else { return };
    for number in 0..90 {
        let name = format!("{number}-{}", "long".repeat(50));
        folder.write(&format!("source/{name}"), b"x");
        fs::create_dir_all(folder.path(&format!("target/{name}/occupied"))).unwrap();
    }
    let failed = outcome(notes.run(&order(Kind::Directory, &folder.text("source"), &folder.text("target"))));
    assert_eq!((failed.ending, failed.n_errors), (Ending::Failed, 90));
    assert!(!failed.errors.is_empty(), "at least the first is told");
}

/// A directory that was write-protected before anything was copied there is its owner's to open, however often it is tried.
#[test]
fn a_directory_that_was_closed_stays_closed() {
    // SAFETY: a plain call.
    let is_root = unsafe { libc::geteuid() } == 0;
    let user = 65_534;
    let identity = is_root.then(|| Identity { uid: user, gid: user, groups: Vec::new() });
    let folder = Folder::new();
    folder.write("source/file", b"new");
    fs::create_dir(folder.path("target")).unwrap();
    std::os::unix::fs::chown(folder.path("target"), is_root.then_some(user), None).unwrap();
    fs::set_permissions(folder.path("target"), fs::Permissions::from_mode(0o555)).unwrap();
    let order = Order { identity, ..order(Kind::Directory, &folder.text("source"), &folder.text("target")) };
    for _ in 0..2 {
        let failed = run_apart(&folder, &order);
        assert_eq!((failed.ending, failed.n_errors), (Ending::Failed, 1), "{failed:?}");
        let mode = fs::metadata(folder.path("target")).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o555, "{mode:o}");
    }
}
