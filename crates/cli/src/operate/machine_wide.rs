//! What makes commands work without any environment: the pointer to a user's own cluster, and, for root's cluster,
//! the configuration and the commands where every login shell finds them.
use std::fs;
use std::path::{Path, PathBuf};

use config::home;

use super::folder::{self, Folder};

const SYSTEM_CONF: &str = "/etc/spur/spur.conf";
const SYSTEM_BIN: &str = "/usr/local/bin";
/// Where login shells look.
const LOGIN_PATH: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Points the user's commands at this cluster unless they have another; says what was done beyond DIR.
pub fn announce(folder: &Folder, names: &[&str]) -> Vec<String> {
    let mut said = Vec::new();
    let is_own = folder::own_directory().is_ok_and(|own| own.canonicalize().is_ok_and(|own| own == folder.dir));
    let other = if is_own { Other::GivesWay } else { Other::Stays };
    point(home::own_conf(), &folder.conf(), other);
    if !(is_own && rustix::process::geteuid().is_root()) {
        return said;
    }
    point(Some(SYSTEM_CONF.into()), &folder.conf(), Other::Stays);
    let linked = names.iter().filter(|name| link_command(folder, name)).count();
    let executable = std::env::current_exe().and_then(|path| path.canonicalize()).ok();
    let is_foreign = |path: PathBuf| path.canonicalize().ok() != executable;
    let foreign: Vec<&str> =
        names.iter().copied().filter(|name| other_command(folder, name).is_some_and(is_foreign)).collect();
    if linked > 0 {
        said.push(format!("commands linked in {SYSTEM_BIN}"));
    }
    if !foreign.is_empty() {
        said.push(format!("left alone, because others of that name exist: {}", foreign.join(" ")));
    }
    said
}

/// Takes back what [`announce`] did.
pub fn withdraw(folder: &Folder) {
    for link in home::own_conf().into_iter().chain([PathBuf::from(SYSTEM_CONF)]) {
        if fs::read_link(&link).is_ok_and(|target| target == folder.conf()) {
            let _ = fs::remove_file(&link);
        }
    }
}

/// Takes the commands back out of the login path.
pub fn unlink_commands(folder: &Folder, names: &[&str]) {
    for name in names {
        let link = Path::new(SYSTEM_BIN).join(name);
        if fs::read_link(&link).is_ok_and(|target| target.starts_with(folder.bin())) {
            let _ = fs::remove_file(&link);
        }
    }
}

/// What happens to a link that leads to another cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Other {
    Stays,
    GivesWay,
}

/// Makes `link` lead to `conf`, unless it is a file, or leads to another cluster that stays.
fn point(link: Option<PathBuf>, conf: &Path, other: Other) {
    let Some(link) = link else { return };
    let is_file = fs::symlink_metadata(&link).is_ok_and(|found| !found.is_symlink());
    let leads_elsewhere = link.canonicalize().is_ok_and(|target| target != conf);
    if is_file || (leads_elsewhere && other == Other::Stays) {
        return;
    }
    let is_made = link.parent().is_some_and(|parent| fs::create_dir_all(parent).is_ok());
    if is_made && link.parent().and_then(|parent| parent.canonicalize().ok()) != conf.parent().map(Path::to_path_buf) {
        // Only a convenience: `spur env` works without it.
        let _ = folder::replace_link(conf, &link);
    }
}

fn link_command(folder: &Folder, name: &str) -> bool {
    let link = Path::new(SYSTEM_BIN).join(name);
    other_command(folder, name).is_none() && folder::replace_link(&folder.bin().join(name), &link).is_ok()
}

/// A program of that name that login shells would find and that is not a link of ours.
fn other_command(folder: &Folder, name: &str) -> Option<PathBuf> {
    let is_ours = |path: &PathBuf| fs::read_link(path).is_ok_and(|target| target.starts_with(folder.bin()));
    let found = LOGIN_PATH.iter().map(|dir| Path::new(dir).join(name));
    found.filter(|path| fs::symlink_metadata(path).is_ok()).find(|path| !is_ours(path))
}
