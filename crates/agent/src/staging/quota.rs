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
    let Ok(project) = Project::of(home) else { return Ok(false) };
    if is_ours(project.id) {
        return match sys::project_use(home, project.id) {
            Ok(_) => sys::limit_project(home, project.id, bytes + own_bytes(home)?).map(|()| true),
            Err(error) if is_unavailable(&error) => Ok(false),
            Err(error) => Err(error),
        };
    }
    let Some(id) = free_number(home, path)? else { return Ok(false) };
    // The limit first: a number that has one is taken.
    match sys::limit_project(home, id, bytes + own_bytes(home)?) {
        Err(error) if is_unavailable(&error) => return Ok(false),
        limited => limited?,
    }
    match project.become_project(home, id) {
        Ok(()) => Ok(true),
        Err(error) => {
            sys::limit_project(home, id, 0)?;
            if is_unavailable(&error) { Ok(false) } else { Err(error) }
        }
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

/// The directory itself is not what was asked for.
fn own_bytes(home: impl AsFd) -> io::Result<u64> {
    Ok(rustix::fs::fstat(home)?.st_blocks as u64 * 512)
}

/// Nobody has a limit or a file of this number. Agents that share a file system begin at different ones.
fn free_number(home: impl AsFd, path: &str) -> io::Result<Option<u32>> {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let start = hasher.finish() as u32 % COUNT;
    for step in 0..TRIES {
        let id = FIRST + (start + step) % COUNT;
        match sys::project_use(home.as_fd(), id) {
            Ok(used) if used.limit_bytes == 0 && used.held_bytes == 0 => return Ok(Some(id)),
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

    use model::JobId;
    use model::staging::{Access, Home};

    use super::super::ground;
    use super::*;

    /// A small file system with quotas of projects, gone with the test; none where this machine has no such thing.
    struct Disk(PathBuf);

    impl Disk {
        fn new(kind: &str) -> Option<Disk> {
            let dir = std::env::temp_dir().join(format!("spur-quota-{kind}-{}", std::process::id()));
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

    fn a_home_holds_its_capacity_and_no_more(kind: &str) {
        let Some(disk) = Disk::new(kind) else { return };
        let root = disk.root().display().to_string();
        let home = |job| Home::Job { job: JobId(job), epoch: 1, access: Access::Private };
        for job in [7, 8] {
            assert!(ground::make_home(&root, &home(job), NOBODY, NOBODY, 4 << 20).unwrap(), "it is limited");
        }
        let at = |job, name: &str| Path::new(&home(job).directory(&root)).join(name);
        let below = at(7, "below");
        fs::create_dir(&below).unwrap();
        std::os::unix::fs::chown(&below, Some(NOBODY), None).unwrap();
        write(&at(7, "below/half"), 2 << 20).unwrap();
        let full = write(&at(7, "more"), 3 << 20).unwrap_err();
        assert!(full.contains("quota exceeded") || full.contains("No space left"), "{full}");
        // Exactly what was asked for can be had, and nobody takes of another's.
        write(&at(8, "all"), 4 << 20).unwrap();
        let (first, second) = (id_of(&at(7, "")), id_of(&at(8, "")));
        assert!(is_ours(first) && is_ours(second) && first != second);
        assert_eq!(id_of(&at(7, "below/half")), first, "what is made in it belongs to it");
        // The same home again, with more room.
        assert!(ground::make_home(&root, &home(7), NOBODY, NOBODY, 8 << 20).unwrap());
        assert_eq!(id_of(&at(7, "")), first);
        write(&at(7, "more"), 3 << 20).unwrap();
        for job in [7, 8] {
            ground::remove_home(&root, &home(job)).unwrap();
        }
        let root = File::open(&root).unwrap();
        for project in [first, second] {
            match sys::project_use(root.as_fd(), project) {
                Ok(used) => assert_eq!((used.limit_bytes, used.held_bytes), (0, 0)),
                Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOENT)),
            }
        }
    }

    #[test]
    fn a_home_on_ext4_holds_its_capacity_and_no_more() {
        a_home_holds_its_capacity_and_no_more("ext4");
    }

    #[test]
    fn a_home_on_xfs_holds_its_capacity_and_no_more() {
        a_home_holds_its_capacity_and_no_more("xfs");
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
