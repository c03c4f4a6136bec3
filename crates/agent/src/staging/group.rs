//! A mover's own cgroup, where there are any: nothing that it starts can leave it, and it gives way where the machine weighs
//! groups.
use std::fs;
use std::path::Path;

use model::staging::{Direction, Home};

use super::ground;
use crate::cgroup::Cgroup;

/// Below the directory of the agent's runs.
const ALL: &str = "movers";
/// Of 100 that everybody has.
const WEIGHT: &str = "20";

/// None: the machine, or its owner, gives us no cgroups.
pub fn make(parent: Option<&Path>, home: &Home, direction: Direction) -> Option<Cgroup> {
    let all = parent?.join(ALL);
    fs::create_dir_all(&all).ok()?;
    let group = Cgroup::create(&all, &name(home, direction)).ok()?;
    // Where these controllers are in use.
    for (file, text) in [("cpu.weight", WEIGHT), ("io.weight", WEIGHT)] {
        let _ = fs::write(group.path().join(file), text);
    }
    Some(group)
}

pub fn find(parent: Option<&Path>, home: &Home, direction: Direction) -> Option<Cgroup> {
    Cgroup::open(&parent?.join(ALL), &name(home, direction)).ok()
}

/// Ends what is left in it. Says whether nothing is; then it is gone, too.
pub fn clear(group: &Cgroup) -> bool {
    if !group.processes().is_empty() {
        group.kill();
        return false;
    }
    group.is_empty() && (fs::remove_dir(group.path()).is_ok() || !group.path().exists())
}

fn name(home: &Home, direction: Direction) -> String {
    let way = match direction {
        Direction::In => "in",
        Direction::Out => "out",
    };
    format!("{}-{way}", ground::key(home))
}
