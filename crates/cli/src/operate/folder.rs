//! The directory of one cluster and what lies where in it.
//!
//! ```text
//! DIR/spur.conf   the configuration, complete
//! DIR/bin/        every command, a link to the executable
//! DIR/run/        sockets and pid files       DIR/log/    what the daemons say
//! DIR/state/      the journal                 DIR/spool/  scripts and results, a directory a node
//! ```
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use config::{Places, home};
use rustix::fs::FlockOperation;

/// Room that the kernel gives the path of a Unix socket, less some for temporary names beside it.
const SOCKET_PATH_MAX: usize = 100;
const LOCK_PATIENCE: Duration = Duration::from_secs(120);

pub struct Folder {
    pub dir: PathBuf,
}

impl Folder {
    /// Where `spur up` puts a cluster: `dir`, or the one place of this user's own.
    pub fn to_start(dir: Option<&Path>) -> Result<Folder, String> {
        let dir = match dir {
            Some(dir) => dir.to_path_buf(),
            None => own_directory()?,
        };
        create(&dir, 0o755)?;
        let folder = Folder { dir: dir.canonicalize().map_err(|error| cannot("find", &dir, error))? };
        // In a user's own place this may be the pointer to a cluster elsewhere; it gives way to one that is really here.
        if folder.conf().is_symlink() {
            fs::remove_file(folder.conf()).map_err(|error| cannot("remove", &folder.conf(), error))?;
        }
        Ok(folder)
    }

    /// A cluster that was started before: `dir`, or the one that commands would use, or this user's own.
    pub fn to_find(dir: Option<&Path>) -> Result<Folder, String> {
        let conf = match dir {
            Some(dir) => dir.join("spur.conf"),
            None => given_or_own()?,
        };
        let conf = conf.canonicalize().map_err(|_| match conf.parent() {
            Some(dir) => format!("there is no cluster in {}; start one with `spur up`", dir.display()),
            None => config::client::NO_CLUSTER.into(),
        })?;
        let dir = conf.parent().map(Path::to_path_buf).unwrap_or_default();
        if conf.file_name().is_none_or(|name| name != "spur.conf") {
            return Err(format!("{} was not written by `spur up`", conf.display()));
        }
        Ok(Folder { dir })
    }

    pub fn conf(&self) -> PathBuf {
        self.dir.join("spur.conf")
    }

    pub fn bin(&self) -> PathBuf {
        self.dir.join("bin")
    }

    /// Makes what is missing of the layout.
    pub fn create(&self) -> Result<(), String> {
        for name in ["bin", "run", "log", "spool"] {
            create(&self.dir.join(name), 0o755)?;
        }
        create(&self.dir.join("state"), 0o700)
    }

    /// Keeps a second `spur up` or `spur down` of this cluster waiting until the file is closed.
    pub fn lock(&self) -> Result<File, String> {
        let path = self.dir.join("lock");
        let file = File::create(&path).map_err(|error| cannot("write", &path, error))?;
        let give_up = Instant::now() + LOCK_PATIENCE;
        let mut has_said = false;
        while rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            if !has_said {
                eprintln!("spur: waiting for another `spur up` or `spur down` in {}", self.dir.display());
                has_said = true;
            }
            if Instant::now() > give_up {
                return Err(format!("another `spur` has been at work in {} for too long", self.dir.display()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(file)
    }

    /// Where this cluster's files go. `longest_node` is the longest name among its nodes: the sockets move to a short
    /// directory when their paths would not fit.
    pub fn places(&self, longest_node: &str) -> Places {
        let at = |path: &str| self.dir.join(path).to_string_lossy().into_owned();
        let run = self.dir.join("run");
        let longest = run.join(format!("agent-{longest_node}.sock")).as_os_str().len();
        let sockets = if longest > SOCKET_PATH_MAX { self.short_directory() } else { run };
        let socket = |name: &str| sockets.join(name).to_string_lossy().into_owned();
        Places {
            controller_socket: socket("controller.sock"),
            state_dir: at("state"),
            controller_pid_file: at("run/controller.pid"),
            controller_log_file: at("log/controller.log"),
            agent_socket: socket("agent-%n.sock"),
            spool_dir: at("spool/%n"),
            agent_pid_file: at("run/agent-%n.pid"),
            agent_log_file: at("log/agent-%n.log"),
            buffer_root: at("burst-buffer"),
        }
    }

    /// Where sockets go when DIR is too deep: named after DIR, so that it is found again.
    pub fn short_directory(&self) -> PathBuf {
        let uid = rustix::process::geteuid().as_raw();
        let hash = blake3::hash(self.dir.as_os_str().as_encoded_bytes()).to_hex();
        Path::new("/tmp").join(format!("spur-{uid}-{}", &hash[..12]))
    }

    /// Makes the short directory; somebody else's of that name is refused.
    pub fn create_short_directory(&self) -> Result<(), String> {
        let short = self.short_directory();
        create(&short, 0o755)?;
        let found = fs::symlink_metadata(&short).map_err(|error| cannot("find", &short, error))?;
        let is_ours = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
        if is_ours { Ok(()) } else { Err(format!("{} belongs to somebody else", short.display())) }
    }

    /// Links every command to the running executable.
    pub fn link_commands(&self, names: &[&str]) -> Result<(), String> {
        let executable = std::env::current_exe().map_err(|error| format!("cannot find this executable: {error}"))?;
        for name in names {
            replace_link(&executable, &self.bin().join(name))?;
        }
        Ok(())
    }
}

/// Points `link` at `target`, at once: a command started meanwhile finds the old or the new.
pub fn replace_link(target: &Path, link: &Path) -> Result<(), String> {
    if fs::read_link(link).is_ok_and(|present| present == target) {
        return Ok(());
    }
    let fresh = link.with_extension(format!("new-{}", std::process::id()));
    let _ = fs::remove_file(&fresh);
    std::os::unix::fs::symlink(target, &fresh)
        .and_then(|()| fs::rename(&fresh, link))
        .map_err(|error| cannot("link", link, error))
}

/// `~/.spur`; for root, whose cluster serves all users of the machine, a place that they can reach.
pub fn own_directory() -> Result<PathBuf, String> {
    if rustix::process::geteuid().is_root() {
        return Ok("/var/lib/spur".into());
    }
    let home = home::home().ok_or("you have no home directory: say where with --dir DIR")?;
    Ok(home.join(".spur"))
}

/// `SPUR_CONF`, then what `spur up` without a directory made, then whatever commands would use.
fn given_or_own() -> Result<PathBuf, String> {
    let is_given = std::env::var_os("SPUR_CONF").is_some_and(|conf| !conf.is_empty());
    let own = own_directory().map(|dir| dir.join("spur.conf"));
    match own {
        Ok(own) if !is_given && own.exists() => Ok(own),
        _ => config::client::locate(None),
    }
}

fn create(dir: &Path, mode: u32) -> Result<(), String> {
    DirBuilder::new().recursive(true).mode(mode).create(dir).map_err(|error| cannot("make", dir, error))
}

pub fn cannot(what: &str, path: &Path, error: io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_a_deep_directory_are_short() {
        let shallow = Folder { dir: "/home/ann/.spur".into() };
        assert_eq!(shallow.places("n1").controller_socket, "/home/ann/.spur/run/controller.sock");
        assert_eq!(shallow.places("n1").agent_pid_file, "/home/ann/.spur/run/agent-%n.pid");
        let deep = Folder { dir: format!("/tmp/{}", "x".repeat(120)).into() };
        let places = deep.places("n1");
        assert!(places.controller_socket.starts_with("/tmp/spur-") && places.controller_socket.len() < 60);
        assert!(places.agent_pid_file.starts_with("/tmp/xxx"));
    }
}
