//! Holding the processes of a run to their memory, CPUs and devices, with whichever control groups the machine has.
//!
//! The unified hierarchy (version 2) bounds the run's own cgroup. Controllers that the machine keeps in hierarchies of
//! version 1 get a group there, made for the run and joined by each task before its program starts. Devices, for which
//! version 2 has no controller, are guarded by a program of the kernel's own (`devices`).
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use model::agent::Bounds;

use crate::devices;

const CONTROLLERS: [&str; 3] = ["memory", "cpuset", "devices"];

/// What holds one run.
#[derive(Default)]
pub struct Held {
    /// Where the kernel counts the processes it has ended for want of memory, and how many there were before.
    kills: Option<(PathBuf, u64)>,
    /// Groups of version 1, to be joined and removed.
    groups: Vec<PathBuf>,
    joins: Vec<CString>,
    /// A cgroup of version 2 that is kept from devices.
    guarded: Option<PathBuf>,
}

/// Lets cgroups below `parent` have what this machine keeps in the unified hierarchy.
pub fn enable(base: &Path, parent: &Path) {
    if !can_pass_on(base) {
        return;
    }
    for controller in ["memory", "cpuset"] {
        for dir in [base, parent] {
            // Refused where the hierarchy is not ours, or does not have it.
            let _ = fs::write(dir.join("cgroup.subtree_control"), format!("+{controller}"));
        }
    }
}

/// A cgroup with processes of its own passes no memory on. It would pass CPUs on, but thereby become a group of threads, in
/// which no process can be born below it any more. Only the root, the one without a type, may have both.
fn can_pass_on(cgroup: &Path) -> bool {
    let has_processes = || fs::read_to_string(cgroup.join("cgroup.procs")).is_ok_and(|pids| !pids.is_empty());
    !cgroup.join("cgroup.type").exists() || !has_processes()
}

impl Held {
    /// Sets the bounds. What cannot be had is left out: `holds_memory` tells.
    pub fn new(bounds: &Bounds, cgroup: Option<&Path>, agent: &str, run: &str) -> Self {
        let mut held = Held::default();
        if let Some(cgroup) = cgroup {
            held.bound_unified(bounds, cgroup);
        }
        let is_wanted = |controller: &str| match controller {
            "memory" => bounds.memory_mb.is_some() && held.kills.is_none(),
            "cpuset" => bounds.cpus.is_some() && cgroup.is_none_or(|cgroup| !cgroup.join("cpuset.cpus").exists()),
            _ => !bounds.denied_files.is_empty(),
        };
        let wanted: Vec<&str> = CONTROLLERS.into_iter().filter(|controller| is_wanted(controller)).collect();
        for (controller, mount) in wanted.iter().filter_map(|name| Some((*name, version_1_mount(name)?))) {
            let group = mount.join(agent).join(run);
            if held.bound_old(bounds, controller, &mount, &group).is_err() {
                let _ = fs::remove_dir(&group);
            }
        }
        if let Some(cgroup) = cgroup.filter(|_| wanted.contains(&"devices") && version_1_mount("devices").is_none()) {
            held.guarded = devices::deny(cgroup, &bounds.denied_files).is_ok().then(|| cgroup.to_owned());
        }
        held
    }

    fn bound_unified(&mut self, bounds: &Bounds, cgroup: &Path) {
        let put = |file: &str, text: &str| fs::write(cgroup.join(file), text);
        if cgroup.join("memory.max").exists() {
            // Also without a bound: the cgroup may have been another run's.
            let text = bounds.memory_mb.map_or("max".to_owned(), |megabytes| (megabytes << 20).to_string());
            let is_set = put("memory.max", &text).is_ok();
            let _ = put("memory.swap.max", if bounds.memory_mb.is_some() { "0" } else { "max" });
            if is_set && bounds.memory_mb.is_some() {
                let events = cgroup.join("memory.events");
                self.kills = Some((events.clone(), count_kills(&events)));
            }
        }
        if cgroup.join("cpuset.cpus").exists() {
            // A line: nothing at all would not be written, and an earlier run's bound would stay. CPUs that the machine does
            // not have are refused; then there is no bound, but not another's.
            let wanted = bounds.cpus.as_ref().map(ToString::to_string).unwrap_or_default();
            if put("cpuset.cpus", &format!("{wanted}\n")).is_err() {
                let _ = put("cpuset.cpus", "\n");
            }
        }
    }

    fn bound_old(&mut self, bounds: &Bounds, controller: &str, mount: &Path, group: &Path) -> io::Result<()> {
        let parent = group.parent().expect("a group in the agent's own");
        fs::create_dir_all(group)?;
        let put = |file: &str, text: &str| fs::write(group.join(file), text);
        match controller {
            "memory" => {
                let bytes = (bounds.memory_mb.unwrap_or(u64::MAX >> 21) << 20).to_string();
                put("memory.limit_in_bytes", &bytes)?;
                // Only where the kernel counts swap.
                let _ = put("memory.memsw.limit_in_bytes", &bytes);
                let events = group.join("memory.oom_control");
                self.kills = Some((events.clone(), count_kills(&events)));
            }
            "cpuset" => {
                // A group must be given both before anybody can be in it; the agent's own has all.
                for dir in [parent, group] {
                    fs::write(dir.join("cpuset.mems"), fs::read(mount.join("cpuset.mems"))?)?;
                }
                fs::write(parent.join("cpuset.cpus"), fs::read(mount.join("cpuset.cpus"))?)?;
                put("cpuset.cpus", &bounds.cpus.as_ref().map(ToString::to_string).unwrap_or_default())?;
            }
            _ => {
                for file in &bounds.denied_files {
                    let Ok(metadata) = fs::metadata(file) else { continue };
                    let kind = if metadata.file_type().is_block_device() { 'b' } else { 'c' };
                    let (major, minor) = (libc::major(metadata.rdev()), libc::minor(metadata.rdev()));
                    put("devices.deny", &format!("{kind} {major}:{minor} rwm"))?;
                }
            }
        }
        self.joins.push(CString::new(group.join("cgroup.procs").as_os_str().as_bytes())?);
        self.groups.push(group.to_owned());
        Ok(())
    }

    /// The kernel itself ends what uses too much memory.
    pub fn holds_memory(&self) -> bool {
        self.kills.is_some()
    }

    /// For a process just born, which may not allocate.
    pub fn join(&self) {
        for path in &self.joins {
            // SAFETY: plain calls on a NUL-ended path and a valid buffer.
            unsafe {
                let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                if fd >= 0 {
                    libc::write(fd, c"0".as_ptr().cast(), 1);
                    libc::close(fd);
                }
            }
        }
    }

    /// Processes that the kernel has ended for want of memory.
    pub fn n_kills(&self) -> u64 {
        self.kills.as_ref().map_or(0, |(file, before)| count_kills(file).saturating_sub(*before))
    }

    /// When nothing of the run is left.
    pub fn release(&self) {
        if let Some(cgroup) = &self.guarded {
            devices::allow_all(cgroup);
        }
        for group in &self.groups {
            let _ = fs::remove_dir(group);
        }
    }
}

/// Removes the groups that an agent has left in hierarchies of version 1.
pub fn remove_all(agent: &str) {
    for mount in CONTROLLERS.iter().filter_map(|controller| version_1_mount(controller)) {
        let parent = mount.join(agent);
        let Ok(entries) = fs::read_dir(&parent) else { continue };
        for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let _ = fs::remove_dir(entry.path());
        }
        let _ = fs::remove_dir(&parent);
    }
}

/// The line `oom_kill N` of `memory.events` and of `memory.oom_control`.
fn count_kills(file: &Path) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
}

fn version_1_mount(controller: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, point, "cgroup", options, ..] = words[..] else { return None };
        options.split(',').any(|option| option == controller).then(|| PathBuf::from(point.replace("\\040", " ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with the files that the kernel gives a cgroup whose parent has these controllers enabled.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let dir = std::env::temp_dir().join(format!("spur-bounds-{name}-{}", std::process::id()));
            fs::create_dir_all(&dir).unwrap();
            files.iter().for_each(|(file, text)| fs::write(dir.join(file), text).unwrap());
            Tree(dir)
        }

        fn read(&self, file: &str) -> String {
            fs::read_to_string(self.0.join(file)).unwrap_or_else(|_| "absent".into())
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const EVENTS: &str = "low 0\nhigh 0\nmax 7\noom 2\noom_kill 2\noom_group_kill 0\n";

    #[test]
    fn a_run_has_the_bounds_of_the_unified_hierarchy_and_none_of_an_earlier_runs() {
        let files =
            [("memory.max", "max\n"), ("memory.swap.max", "max\n"), ("memory.events", EVENTS), ("cpuset.cpus", "\n")];
        let tree = Tree::new("whole", &files);
        let bounds = Bounds { memory_mb: Some(100), cpus: Some("2-3,8".parse().unwrap()), ..Bounds::default() };
        let held = Held::new(&bounds, Some(&tree.0), "no-agent", "no-run");
        assert!(held.holds_memory());
        assert_eq!((tree.read("memory.max").as_str(), tree.read("memory.swap.max").as_str()), ("104857600", "0"));
        assert_eq!(tree.read("cpuset.cpus"), "2-3,8\n");
        // Only what was killed since counts, not what an earlier run lost.
        assert_eq!(held.n_kills(), 0);
        fs::write(tree.0.join("memory.events"), EVENTS.replace("oom_kill 2", "oom_kill 5")).unwrap();
        assert_eq!(held.n_kills(), 3);
        let next = Held::new(&Bounds::default(), Some(&tree.0), "no-agent", "no-run");
        assert!(!next.holds_memory());
        assert_eq!((tree.read("memory.max").as_str(), tree.read("memory.swap.max").as_str()), ("max", "max"));
        assert_eq!(tree.read("cpuset.cpus"), "\n");
    }

    #[test]
    fn without_controllers_nothing_is_written() {
        let tree = Tree::new("bare", &[("cgroup.procs", "")]);
        let bounds = Bounds { memory_mb: Some(100), ..Bounds::default() };
        let mut held = Held::default();
        held.bound_unified(&bounds, &tree.0);
        assert!(!held.holds_memory());
        assert_eq!((tree.read("memory.max").as_str(), tree.read("cpuset.cpus").as_str()), ("absent", "absent"));
    }

    #[test]
    fn both_levels_are_told_to_pass_the_controllers_on() {
        let (mount, parent) = (Tree::new("mount", &[]), Tree::new("parent", &[]));
        enable(&mount.0, &parent.0);
        // A plain file keeps the last word; the kernel adds them up.
        assert_eq!(
            (mount.read("cgroup.subtree_control"), parent.read("cgroup.subtree_control")),
            ("+cpuset".into(), "+cpuset".into())
        );
    }

    #[test]
    fn a_cgroup_that_has_processes_is_left_as_it_is() {
        let kinds: [(&[(&str, &str)], &str); 3] = [
            (&[("cgroup.type", "domain\n"), ("cgroup.procs", "17\n")], "absent"),
            (&[("cgroup.type", "domain\n"), ("cgroup.procs", "")], "+cpuset"),
            // The root of all.
            (&[("cgroup.procs", "1\n2\n")], "+cpuset"),
        ];
        for (index, (files, told)) in kinds.into_iter().enumerate() {
            let base = Tree::new(&format!("base-{index}"), files);
            let parent = Tree::new(&format!("below-{index}"), &[("cgroup.type", "domain\n"), ("cgroup.procs", "")]);
            enable(&base.0, &parent.0);
            assert_eq!(
                (base.read("cgroup.subtree_control"), parent.read("cgroup.subtree_control")),
                (told.into(), told.into())
            );
        }
    }
}
