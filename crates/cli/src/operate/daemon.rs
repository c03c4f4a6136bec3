//! The processes of a cluster: found by how they were started, started detached, stopped for certain.
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::config::for_member;
use model::{Config, NodeName};
use prolog::inheritance::COMMANDS_FOLDER;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Variables that daemons keep; the rest of the caller's environment is not theirs.
const KEPT: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "RUST_LOG", "RUST_BACKTRACE", "SPUR_LOG"];

/// More controllers than this share no machine.
const MEMBERS_MAX: u32 = 9;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Controller,
    /// One more controller on the same machine: the second, the third …
    Member(u32),
    Agent(NodeName),
}

/// A daemon that runs.
#[derive(Clone, Debug)]
pub struct Daemon {
    pub role: Role,
    pub pid: Pid,
}

impl Role {
    pub fn all(config: &Config) -> Vec<Role> {
        let agents = config.nodes.iter().map(|node| Role::Agent(node.name.clone()));
        // On a machine that has joined there is only its agent; where controllers hear other machines, agents join like any other.
        if !config.agent.controllers.is_empty() {
            return agents.collect();
        }
        if !config.controller.listen.is_empty() {
            return vec![Role::Controller];
        }
        let members = (2..=config.controller.local_members).map(Role::Member);
        [Role::Controller].into_iter().chain(members).chain(agents).collect()
    }

    pub fn is_controller(&self) -> bool {
        matches!(self, Role::Controller | Role::Member(_))
    }

    /// As messages call it.
    pub fn name(&self) -> String {
        match self {
            Role::Controller => "the controller".into(),
            Role::Member(member) => format!("controller {member}"),
            Role::Agent(node) => format!("the agent of {node}"),
        }
    }

    pub fn log_file(&self, config: &Config) -> PathBuf {
        match self {
            Role::Controller => config.controller.log_file.clone().into(),
            Role::Member(member) => for_member(&config.controller.log_file, *member).into(),
            Role::Agent(node) => Config::for_node(&config.agent.log_file, node.as_str()).into(),
        }
    }

    pub fn pid_file(&self, config: &Config) -> PathBuf {
        match self {
            Role::Controller => config.controller.pid_file.clone().into(),
            Role::Member(member) => for_member(&config.controller.pid_file, *member).into(),
            Role::Agent(node) => Config::for_node(&config.agent.pid_file, node.as_str()).into(),
        }
    }

    pub fn socket(&self, config: &Config) -> PathBuf {
        match self {
            Role::Controller => config.controller.socket.clone().into(),
            Role::Member(member) => for_member(&config.controller.socket, *member).into(),
            Role::Agent(node) => Config::for_node(&config.agent.socket, node.as_str()).into(),
        }
    }

    fn arguments(&self, conf: &Path) -> Vec<String> {
        let conf = conf.to_string_lossy().into_owned();
        match self {
            Role::Controller => ["spurctld", "--config", &conf].map(String::from).to_vec(),
            Role::Member(member) => {
                ["spurctld", "--config", &conf, "--member", &member.to_string()].map(String::from).to_vec()
            }
            Role::Agent(node) => ["spurd", "--config", &conf, "--node", node.as_str()].map(String::from).to_vec(),
        }
    }

    /// Whether a process that was started with these words, by `spur up` or by hand, may be it and serve `conf`.
    fn fits(&self, words: &[&str], conf: &Path) -> bool {
        let is_named = |word: &&str| {
            let name = word.rsplit('/').next().unwrap_or_default();
            match self {
                Role::Agent(_) => ["spurd", "slurmd"].contains(&name),
                Role::Controller | Role::Member(_) => ["spurctld", "slurmctld"].contains(&name),
            }
        };
        // `spurd`, or `spur spurd`; one that only ends what is left on a node is no agent, and one of a node that comes by itself goes by itself.
        let is_daemon =
            words.iter().take(2).any(is_named) && !["--clear", "-Z"].iter().any(|word| words.contains(word));
        // Whoever says nothing has found the file by itself.
        let serves = value(words, "--config", "-f").is_none_or(|file| match Path::new(file) {
            file if file.is_relative() => conf.ends_with(file.strip_prefix(".").unwrap_or(file)),
            file => file == conf,
        });
        let is_this = match self {
            Role::Controller => value(words, "--member", "--member").is_none_or(|member| member == "1"),
            Role::Member(own) => {
                value(words, "--member", "--member").and_then(|member| member.parse().ok()) == Some(*own)
            }
            Role::Agent(own) => value(words, "--node", "-N").is_none_or(|node| node == own.as_str()),
        };
        is_daemon && serves && is_this
    }
}

/// What stands behind an option, as `--name value`, `--name=value`, or `-n value`.
fn value<'a>(words: &[&'a str], long: &str, short: &str) -> Option<&'a str> {
    let apart = words.iter().position(|word| [long, short].contains(word)).and_then(|at| words.get(at + 1));
    let glued = || words.iter().find_map(|word| word.strip_prefix(long)?.strip_prefix('='));
    apart.copied().or_else(glued)
}

/// The daemons of this cluster that run now, also those of nodes that are no longer configured. A pid file alone proves
/// nothing: the process must have been started as that daemon, so a pid in use again for something else is not mistaken.
pub fn running(conf: &Path, config: &Config) -> Vec<Daemon> {
    let mut roles = Role::all(config);
    roles.extend((2..=MEMBERS_MAX).map(Role::Member));
    roles.extend(remembered(&config.agent.pid_file));
    roles.sort();
    roles.dedup();
    let is_running = |role: Role| {
        let pid: i32 = fs::read_to_string(role.pid_file(config)).ok()?.trim().parse().ok()?;
        plays(pid, &role, conf).then_some(Daemon { role, pid: Pid::from_raw(pid)? })
    };
    roles.into_iter().filter_map(is_running).collect()
}

/// Agents that have left a pid file; `pattern` is its path, with `%n` for the node.
fn remembered(pattern: &str) -> Vec<Role> {
    let path = Path::new(pattern);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (Some((before, after)), Some(dir)) = (name.split_once("%n"), path.parent()) else { return Vec::new() };
    let Ok(files) = fs::read_dir(dir) else { return Vec::new() };
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    names.filter_map(|name| Some(Role::Agent(name.strip_prefix(before)?.strip_suffix(after)?.into()))).collect()
}

fn plays(pid: i32, role: &Role, conf: &Path) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Result<Vec<&str>, _> = line.split(|byte| *byte == 0).map(str::from_utf8).collect();
    words.is_ok_and(|words| role.fits(&words, conf))
}

/// Waits for a daemon that was killed a moment ago: until the last of its threads has left the kernel it holds its locks,
/// and its successor would find them taken.
pub fn wait_for_last_breath(pid_file: &Path) {
    let pid = fs::read_to_string(pid_file).ok().and_then(|text| text.trim().parse::<i32>().ok());
    let Some(pid) = pid.filter(|pid| is_dying(*pid)).and_then(Pid::from_raw) else { return };
    if let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) {
        ends_before(&handle, Instant::now() + Duration::from_secs(10));
    }
}

fn is_dying(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

/// Starts a daemon that lives on without us: own session, nothing of ours but its log.
pub fn start(role: &Role, conf: &Path, config: &Config) -> Result<Child, String> {
    let log = role.log_file(config);
    let mut arguments = role.arguments(conf);
    // All its agents run as this user, too.
    if role.is_controller() && !rustix::process::geteuid().is_root() {
        arguments.push("--private".into());
    }
    spawn(&arguments, conf, &log).map_err(|error| format!("cannot start {}: {error}", role.name()))
}

/// Starts the process that ends everything which still runs on a node.
pub fn start_clearing(node: &NodeName, conf: &Path, config: &Config) -> Result<Child, String> {
    let role = Role::Agent(node.clone());
    let mut arguments = role.arguments(conf);
    arguments.insert(1, "--clear".into());
    spawn(&arguments, conf, &role.log_file(config)).map_err(|error| format!("cannot end the jobs of {node}: {error}"))
}

fn spawn(arguments: &[String], conf: &Path, log: &Path) -> io::Result<Child> {
    let log = fs::File::options().create(true).append(true).open(log)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg0(&arguments[0]).args(&arguments[1..]).current_dir("/");
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| KEPT.iter().any(|kept| name == kept)));
    // For the site's programs that the daemon runs: triggers, health checks, mails.
    command.env("SPUR_CONF", conf).env(COMMANDS_FOLDER, conf.with_file_name("bin"));
    // SAFETY: only async-signal-safe calls between fork and exec.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
            // Descriptors that we inherited ourselves, such as a pipe of the caller, would be held open for ever.
            libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int);
            Ok(())
        });
    }
    command.spawn()
}

/// Asks all to end, insists after `patience`, and returns when none is left.
pub fn stop(daemons: &[Daemon], conf: &Path, patience: Duration) -> Result<(), String> {
    let mut handles = Vec::new();
    for daemon in daemons {
        let Ok(handle) = pidfd_open(daemon.pid, PidfdFlags::empty()) else { continue };
        // The handle is of the right process only if that still is what it was.
        if plays(daemon.pid.as_raw_nonzero().get(), &daemon.role, conf) {
            pidfd_send_signal(&handle, Signal::TERM)
                .map_err(|error| format!("cannot stop {}: {error}", daemon.role.name()))?;
            handles.push((handle, &daemon.role));
        }
    }
    let deadline = Instant::now() + patience;
    for (handle, role) in handles {
        if !ends_before(&handle, deadline) {
            let _ = pidfd_send_signal(&handle, Signal::KILL);
            if !ends_before(&handle, Instant::now() + Duration::from_secs(10)) {
                return Err(format!("{} does not end", role.name()));
            }
        }
    }
    Ok(())
}

/// Waits for a process; false when it is still there at the deadline.
fn ends_before(process: &OwnedFd, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return false,
        }
    }
}

/// Waits for our own child; none when the deadline passed first, and then it is killed.
pub fn outcome_before(child: &mut Child, deadline: Instant) -> Option<std::process::ExitStatus> {
    let pid = Pid::from_raw(child.id() as i32)?;
    if let Ok(handle) = pidfd_open(pid, PidfdFlags::empty())
        && !ends_before(&handle, deadline)
    {
        let _ = child.kill();
        let _ = child.wait();
        return None;
    }
    child.wait().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_known_by_how_it_was_started() {
        let conf = Path::new("/c/spur.conf");
        let roles = [Role::Controller, Role::Member(2), Role::Agent("n1".into()), Role::Agent("n2".into())];
        let fits = |words: &[&str], conf: &Path| {
            roles.iter().filter(|role| role.fits(words, conf)).cloned().collect::<Vec<Role>>()
        };
        for role in &roles {
            let arguments = role.arguments(conf);
            let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
            assert_eq!(fits(&words, conf), std::slice::from_ref(role));
            assert_eq!(fits(&words, Path::new("/other/spur.conf")), []);
        }
        assert_eq!(fits(&["vim", "--config", "/c/spur.conf"], conf), []);
        assert_eq!(fits(&["spurd", "--clear", "--config", "/c/spur.conf", "--node", "n1"], conf), []);
        assert_eq!(fits(&["spur", "spurd", "-Z", "--config", "/c/spur.conf", "--node", "n1"], conf), []);
        let by_hand: [(&[&str], &Role); 5] = [
            (&["/opt/spur", "spurctld", "-f", "/c/spur.conf", "-D"], &roles[0]),
            (&["/usr/sbin/slurmctld", "-i"], &roles[0]),
            (&["bin/spurctld", "--config=./spur.conf", "--member=2"], &roles[1]),
            (&["slurmd", "-N", "n1", "-f", "/c/spur.conf"], &roles[2]),
            (&["/c/bin/spurd", "--config", "/c/spur.conf", "--node", "n2", "-v"], &roles[3]),
        ];
        for (words, role) in by_hand {
            assert_eq!(fits(words, conf), std::slice::from_ref(role), "{words:?}");
        }
    }
}
