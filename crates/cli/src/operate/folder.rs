//! The directory of one cluster and what lies where in it.
//!
//! ```text
//! DIR/spur.conf   the configuration, complete
//! DIR/bin/        every command, a link to the executable
//! DIR/run/        sockets and pid files       DIR/log/    what the daemons say
//! DIR/state/      the journal                 DIR/spool/  scripts and results, a directory a node
//! ```
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use config::{Places, home};
use model::Config;
use rustix::fs::FlockOperation;

/// Room that the kernel gives the path of a Unix socket, less some for temporary names beside it.
const SOCKET_PATH_MAX: usize = 100;
/// Room for the sockets' names in a directory of theirs.
const SOCKET_NAME_MAX: usize = 50;
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

    /// Where this cluster's files go. `longest_node` is the longest name among its nodes: the sockets move to a
    /// directory of the user's session when their paths would not fit the kernel's idea of a path. Without one, they
    /// stay and are reached through their directory (`wire::long_path`). Everybody finds them by what the
    /// configuration says.
    pub fn places(&self, longest_node: &str) -> Places {
        let session = runtime_directory(std::env::var_os("XDG_RUNTIME_DIR"), rustix::process::geteuid().as_raw());
        self.places_beside(longest_node, session)
    }

    fn places_beside(&self, longest_node: &str, session: Option<PathBuf>) -> Places {
        let at = |path: &str| self.dir.join(path).to_string_lossy().into_owned();
        let run = self.dir.join("run");
        let longest = run.join(format!("agent-{longest_node}.sock")).as_os_str().len();
        let sockets = match session {
            Some(session) if longest > SOCKET_PATH_MAX => session.join(self.short_name()),
            _ => run,
        };
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

    /// Named after DIR, so that it is found again.
    fn short_name(&self) -> String {
        let hash = blake3::hash(self.dir.as_os_str().as_encoded_bytes()).to_hex();
        format!("spur-{}", &hash[..12])
    }

    /// Where the sockets of this configuration are, if that is a directory that was made for them elsewhere.
    pub fn socket_directory<'c>(&self, config: &'c Config) -> Option<&'c Path> {
        let found = Path::new(&config.controller.socket).parent()?;
        found.ends_with(self.short_name()).then_some(found)
    }

    /// Makes it, for this user alone; somebody else's of that name is refused.
    pub fn create_socket_directory(&self, config: &Config) -> Result<(), String> {
        let Some(sockets) = self.socket_directory(config) else { return Ok(()) };
        let made = create(sockets, 0o700);
        made.map_err(|why| {
            format!(
                "{why}; it belongs to a session of yours: log in, or put the sockets elsewhere in {}",
                self.conf().display()
            )
        })?;
        let found = fs::symlink_metadata(sockets).map_err(|error| cannot("find", sockets, error))?;
        let is_ours = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
        if is_ours { Ok(()) } else { Err(format!("{} belongs to somebody else", sockets.display())) }
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

/// `$XDG_RUNTIME_DIR`, if it is the user's own directory, nobody else may look into it, and its path is short. A
/// cluster of root's is everybody's, who could not reach its sockets there.
fn runtime_directory(given: Option<OsString>, uid: u32) -> Option<PathBuf> {
    let directory = PathBuf::from(given?);
    let found = fs::symlink_metadata(&directory).ok()?;
    let is_private = found.is_dir() && found.uid() == uid && found.mode() & 0o077 == 0;
    let is_short = directory.as_os_str().len() + SOCKET_NAME_MAX <= SOCKET_PATH_MAX;
    (uid != 0 && directory.is_absolute() && is_private && is_short).then_some(directory)
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
        let places = deep.places_beside("n1", Some("/run/user/1000".into()));
        assert!(places.controller_socket.starts_with("/run/user/1000/spur-") && places.controller_socket.len() < 60);
        assert!(places.agent_pid_file.starts_with("/tmp/xxx"));
        let alone = deep.places_beside("n1", None);
        assert!(
            alone.controller_socket.starts_with("/tmp/xxx"),
            "a directory that others could have made is never used"
        );
        let config = Config {
            controller: model::config::ControllerConfig { socket: places.controller_socket, ..Default::default() },
            ..Config::default()
        };
        assert!(deep.socket_directory(&config).is_some_and(|dir| dir.starts_with("/run/user/1000")));
        assert!(shallow.socket_directory(&config).is_none());
    }

    #[test]
    fn runtime_directory_counts_if_it_is_the_users_alone() {
        let path = std::env::temp_dir().join(format!("spur-rt-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        let uid = fs::metadata(&path).unwrap().uid();
        let given = || Some(path.clone().into_os_string());
        assert_eq!(runtime_directory(given(), uid), (uid != 0).then(|| path.clone()));
        assert_eq!(runtime_directory(given(), uid + 1), None, "somebody else's");
        assert_eq!(runtime_directory(None, uid), None);
        assert_eq!(runtime_directory(Some("run".into()), uid), None);
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o711)).unwrap();
        assert_eq!(runtime_directory(given(), uid), None, "not private");
        fs::remove_dir(&path).unwrap();
    }
}
