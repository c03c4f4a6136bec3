//! A home's capacity as a limit of the kernel, where its file system keeps quotas of projects (ext4 and XFS, mounted with
//! `prjquota`): each home is a project of its own, and whatever is made in it belongs to it. Elsewhere homes are only measured.
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::os::fd::AsFd;

use crate::sys::{self, Project};

/// Our projects are numbered from here, so that nobody takes them for his own.
const FIRST: u32 = 0x5350_0000;
const COUNT: u32 = 0x0010_0000;
/// Numbers that others have are passed over, so many at most.
const TRIES: u32 = 64;

/// The home may hold so much from now on. False: this file system keeps no quotas of projects, or this agent may not set them.
/// Said again about the same home, it is the same project with a new limit.
pub fn limit(home: impl AsFd, path: &str, bytes: u64) -> io::Result<bool> {
    let home = home.as_fd();
    let Ok(before) = Project::of(home) else { return Ok(false) };
    let id = match is_ours(before.id) {
        true => before.id,
        false => {
            let Some(id) = free_number(home, path)? else { return Ok(false) };
            // The number first: whoever dies here leaves a home that is given its limit the next time, and no limit without a home.
            match before.become_project(home, id) {
                Err(error) if is_unavailable(&error) => return Ok(false),
                begun => begun?,
            }
            id
        }
    };
    match sys::limit_project(home, id, bytes + beside(home, bytes)?) {
        Ok(()) => Ok(true),
        Err(error) => {
            before.set(home)?;
            if is_unavailable(&error) { Ok(false) } else { Err(error) }
        }
    }
}

/// Where homes lie until they are gone: below a directory that hands on a project of the site's, nothing else could be moved there.
pub fn open_to_all(trash: impl AsFd) {
    if let Ok(project) = Project::of(trash.as_fd()) {
        // If it is in the way, the move says so.
        let _ = project.hand_on_none(trash.as_fd());
    }
}

/// Before the home is removed: nothing is kept for its project any more.
pub fn forget(home: impl AsFd) {
    let home = home.as_fd();
    if let Some(project) = Project::of(home).ok().filter(|project| is_ours(project.id))
        && let Err(error) = sys::limit_project(home, project.id, 0)
        && !is_unavailable(&error)
    {
        tracing::warn!(%error, project = project.id, "the quota of a removed buffer could not be taken away");
    }
}

fn is_ours(project: u32) -> bool {
    (FIRST..FIRST + COUNT).contains(&project)
}

/// What counts besides the data, so that all that was asked for can be had, as one file at least: the directory itself; what the
/// file system notes about where the data lies, a block for each so many bytes unless it is in shreds; and what XFS wants to see
/// free before it makes a file, though it hardly uses it.
fn beside(home: impl AsFd, bytes: u64) -> io::Result<u64> {
    const BLOCK_BYTES: u64 = 4096;
    const DATA_BYTES: u64 = 32 << 20;
    const XFS: u64 = 0x5846_5342;
    const WANTED_FREE_BYTES: u64 = 1 << 20;
    let own_bytes = rustix::fs::fstat(&home)?.st_blocks as u64 * 512;
    let is_xfs = rustix::fs::fstatfs(&home)?.f_type as u64 == XFS;
    Ok(own_bytes + bytes / DATA_BYTES * BLOCK_BYTES + if is_xfs { WANTED_FREE_BYTES } else { 0 })
}

/// Nobody has a limit, a file or a directory of this number. Agents that share a file system begin at different ones.
fn free_number(home: impl AsFd, path: &str) -> io::Result<Option<u32>> {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let start = hasher.finish() as u32 % COUNT;
    for step in 0..TRIES {
        let id = FIRST + (start + step) % COUNT;
        match sys::project_use(home.as_fd(), id) {
            Ok(used) if used.limit_bytes == 0 && used.held_bytes == 0 && used.n_held == 0 => return Ok(Some(id)),
            Ok(_) => {}
            // Nothing is known of it: nobody has it, or nobody counts.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(Some(id)),
            Err(error) if is_unavailable(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// No such quotas: not in this kernel, not on this file system, not switched on there, or not for us.
fn is_unavailable(error: &io::Error) -> bool {
    const NONE: [i32; 8] = [
        libc::ENOSYS,
        libc::EOPNOTSUPP,
        libc::ENOTTY,
        libc::EINVAL,
        libc::ESRCH,
        libc::EPERM,
        libc::EACCES,
        libc::ENODEV,
    ];
    error.raw_os_error().is_some_and(|number| NONE.contains(&number))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::process::CommandExt;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    use model::JobId;
    use model::staging::{Access, Home};

    use super::super::ground;
    use super::*;

    /// A small file system with quotas of projects, gone with the test; none where this machine has no such thing.
    struct Disk(PathBuf);

    impl Disk {
        fn new(kind: &str) -> Option<Disk> {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let number = COUNT.fetch_add(1, Relaxed);
            let dir = std::env::temp_dir().join(format!("spur-quota-{kind}-{}-{number}", std::process::id()));
            fs::create_dir_all(dir.join("root")).unwrap();
            let (image, root) = (dir.join("image"), dir.join("root"));
            File::create(&image).unwrap().set_len(400 << 20).unwrap();
            let disk = Disk(dir);
            let make = match kind {
                "ext4" => "mkfs.ext4 -q -O quota,project -E quotatype=prjquota",
                _ => "mkfs.xfs -q",
            };
            let line = format!("{make} {0} && mount -o loop,prjquota {0} {1}", image.display(), root.display());
            let made = Command::new("sh").args(["-c", &line]).output().unwrap();
            if !made.status.success() {
                let why = String::from_utf8_lossy(&made.stderr).replace('\n', " ");
                eprintln!("SKIPPED: {kind} with quotas of projects cannot be had here: {why}");
                return None;
            }
            fs::set_permissions(&root, std::os::unix::fs::PermissionsExt::from_mode(0o711)).unwrap();
            Some(disk)
        }

        fn root(&self) -> PathBuf {
            self.0.join("root")
        }
    }

    impl Drop for Disk {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(self.root()).output();
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// The kernel limits everybody but root.
    const NOBODY: u32 = 65_534;

    fn write(path: &Path, bytes: usize) -> Result<(), String> {
        let line = format!("dd if=/dev/zero of={} bs={bytes} count=1", path.display());
        let said = Command::new("sh").args(["-c", &line]).env("LC_ALL", "C").uid(NOBODY).gid(NOBODY).output().unwrap();
        if said.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&said.stderr).into_owned()) }
    }

    fn id_of(path: &Path) -> u32 {
        Project::of(File::open(path).unwrap().as_fd()).unwrap().id
    }

    fn is_full(written: Result<(), String>) -> bool {
        let said = written.expect_err("there is no room for it");
        assert!(said.contains("quota exceeded") || said.contains("No space left"), "{said}");
        true
    }

    /// No limit, no byte and no file is left of a project. XFS finishes what was deleted a little later.
    fn assert_forgotten(root: &str, project: u32) {
        let begun = Instant::now();
        loop {
            let left = match sys::project_use(File::open(root).unwrap().as_fd(), project) {
                Ok(used) => (used.limit_bytes, used.held_bytes, used.n_held),
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return,
                Err(error) => panic!("{error}"),
            };
            if left == (0, 0, 0) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "limit, bytes, files left in {root}: {left:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn job(number: u32) -> Home {
        Home::Job { job: JobId(number), epoch: 1, access: Access::Private }
    }

    fn make(root: &str, home: &Home, bytes: u64) -> PathBuf {
        assert!(ground::make_home(root, home, NOBODY, NOBODY, bytes).unwrap(), "it is limited");
        home.directory(root).into()
    }

    /// Whatever is below is tried on each file system that has such quotas; with how many bytes too much are too much there.
    const KINDS: [(&str, usize); 2] = [("ext4", 1), ("xfs", MIB + 1)];
    const MIB: usize = 1 << 20;

    fn on_each(claim: impl Fn(&str, usize)) {
        for (kind, too_much) in KINDS {
            if let Some(disk) = Disk::new(kind) {
                claim(disk.root().to_str().unwrap(), too_much);
            }
        }
    }

    #[test]
    fn a_home_holds_its_capacity_and_no_more() {
        on_each(|root, too_much| {
            let [first, second] = [7, 8].map(|number| make(root, &job(number), 4 << 20));
            let below = first.join("below");
            fs::create_dir(&below).unwrap();
            std::os::unix::fs::chown(&below, Some(NOBODY), None).unwrap();
            write(&below.join("half"), 2 * MIB).unwrap();
            assert!(is_full(write(&first.join("more"), 4 * MIB)));
            // Exactly what was asked for can be had, no byte more, and nobody takes of what another home of his has.
            write(&second.join("all"), 4 * MIB).unwrap();
            assert!(is_full(write(&second.join("more"), too_much)));
            let [one, other] = [&first, &second].map(|home| id_of(home));
            assert!(is_ours(one) && is_ours(other) && one != other);
            assert_eq!(id_of(&below.join("half")), one, "what is made in it belongs to it");
            // The same home again, with more room.
            assert_eq!(make(root, &job(7), 8 << 20), first);
            assert_eq!(id_of(&first), one);
            write(&first.join("more"), 5 * MIB).unwrap();
            for number in [7, 8] {
                ground::remove_home(root, &job(number)).unwrap();
            }
            [one, other].into_iter().for_each(|project| assert_forgotten(root, project));
        });
    }

    #[test]
    fn large_files_fit_exactly_with_what_is_noted_about_them() {
        on_each(|root, too_much| {
            let home = Home::Persistent { name: "library".into() };
            let path = make(root, &home, 200 << 20);
            write(&path.join("all"), 200 * MIB).unwrap();
            assert!(is_full(write(&path.join("more"), MIB + too_much)));
            let project = id_of(&path);
            ground::remove_home(root, &home).unwrap();
            assert_forgotten(root, project);
        });
    }

    #[test]
    fn whoever_dies_half_way_leaves_nothing_that_is_not_set_right() {
        on_each(|root, _| {
            // After the number, before the limit.
            let path = make(root, &job(7), 4 << 20);
            let project = id_of(&path);
            sys::limit_project(File::open(&path).unwrap().as_fd(), project, 0).unwrap();
            make(root, &job(7), 4 << 20);
            assert_eq!(id_of(&path), project);
            assert!(is_full(write(&path.join("more"), 6 * MIB)));
            // After the move to the trash; the same home is made again before the removal goes on.
            let home = Home::Persistent { name: "library".into() };
            for home in [job(7), home] {
                let path = make(root, &home, 4 << 20);
                let before = id_of(&path);
                fs::rename(&path, Path::new(root).join(".trash").join(ground::key(&home))).unwrap();
                make(root, &home, 4 << 20);
                let after = id_of(&path);
                assert_ne!(before, after, "what is in the trash has its number");
                ground::remove_home(root, &home).unwrap();
                [before, after].into_iter().for_each(|project| assert_forgotten(root, project));
            }
        });
    }

    #[test]
    fn homes_below_a_project_of_the_site_come_and_go() {
        on_each(|root, _| {
            let site = File::open(root).unwrap();
            Project::of(site.as_fd()).unwrap().become_project(site.as_fd(), 4711).unwrap();
            let path = make(root, &job(7), 4 << 20);
            let project = id_of(&path);
            assert!(is_ours(project));
            // Deeper than a removal reaches at once: parts of it are moved to the trash, too.
            let deep = (0..150).fold(path.clone(), |path, _| path.join("d"));
            fs::create_dir_all(&deep).unwrap();
            ground::remove_home(root, &job(7)).unwrap();
            assert_forgotten(root, project);
        });
    }

    #[test]
    fn where_there_are_no_quotas_homes_are_made_without() {
        let dir = std::env::temp_dir().join(format!("spur-no-quota-{}", std::process::id()));
        let home = Home::Persistent { name: "library".into() };
        let root = dir.display().to_string();
        // Whether the disk of this machine has them is not known; the home is there either way.
        ground::make_home(&root, &home, sys::own_uid(), 0, 1 << 20).unwrap();
        assert!(ground::has_home(&root, &home));
        ground::remove_home(&root, &home).unwrap();
        fs::remove_dir_all(&dir).unwrap();
    }
}
