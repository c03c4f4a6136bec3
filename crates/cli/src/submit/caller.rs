//! Who asks, and from where: the facts about the calling process that go into a submission.
use std::cell::OnceCell;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::Timestamp;
use model::spec::ResourceLimit;
use model::when::{self, Lean};

use crate::users::{self, Account};
use crate::zone::Clock;

/// The calling process. Tests make their own.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    /// Looked up only by those who need it.
    pub account: OnceCell<Account>,
    pub work_dir: String,
    pub host: String,
    /// The command as it was typed.
    pub command_line: String,
    pub umask: u32,
    /// Of the calling process (`nice`).
    pub niceness: i32,
    pub limits: Vec<ResourceLimit>,
    pub environment: Vec<(OsString, OsString)>,
    pub now: Timestamp,
    pub cluster_name: String,
    /// The site's `--mpi`; empty is none.
    pub mpi_default: String,
    /// The site's `--kill-on-bad-exit` and `--wait`.
    pub kill_on_bad_exit: bool,
    pub wait: Option<Duration>,
    /// Jobs may say what they leave to the system.
    pub may_spare: bool,
}

/// The words with blanks between them, as Slurm has it; `spur` itself before a command's name is left out.
fn command_line(words: impl Iterator<Item = OsString>) -> String {
    let is_ours = |word: &OsString| Path::new(word).file_name().is_some_and(|name| name == "spur");
    let words: Vec<OsString> = words.collect();
    let own = usize::from(words.len() > 1 && is_ours(&words[0]));
    words[own..].iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// As the C library words it.
fn without_number(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}

impl Caller {
    /// This process.
    pub fn current(cluster_name: &str) -> Result<Caller, String> {
        let uid = users::own_uid();
        let gid = users::own_gid();
        let work_dir = std::env::current_dir().map_err(|error| format!("getcwd failed: {}", without_number(&error)))?;
        let micros = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        Ok(Caller {
            uid,
            gid,
            account: OnceCell::new(),
            work_dir: work_dir.to_string_lossy().into_owned(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            command_line: command_line(std::env::args_os()),
            umask: current_umask(),
            niceness: rustix::process::getpriority_process(None).unwrap_or(0),
            limits: super::limits::current(),
            environment: std::env::vars_os().collect(),
            now: Timestamp(micros as u64),
            cluster_name: cluster_name.to_string(),
            mpi_default: String::new(),
            kill_on_bad_exit: false,
            wait: None,
            may_spare: false,
        })
    }

    /// With what the site says about steps.
    pub fn at(self, cluster: &config::Client) -> Caller {
        Caller {
            mpi_default: cluster.mpi_default.clone(),
            kill_on_bad_exit: cluster.kill_on_bad_exit,
            may_spare: cluster.may_spare,
            wait: (cluster.wait_secs > 0).then(|| Duration::from_secs(cluster.wait_secs.into())),
            ..self
        }
    }

    pub fn account(&self) -> &Account {
        let unknown = || Account {
            full_name: String::new(),
            uid: self.uid,
            gid: self.gid,
            name: self.uid.to_string(),
            home: "/".to_string(),
            shell: "/bin/sh".to_string(),
        };
        self.account.get_or_init(|| users::account(self.uid).unwrap_or_else(unknown))
    }

    /// A variable, if it is text.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().find(|(known, _)| known == name).and_then(|(_, value)| value.to_str())
    }

    pub fn absolute(&self, path: &str) -> String {
        let mut whole = PathBuf::from(&self.work_dir);
        for part in Path::new(path).components() {
            match part {
                Component::CurDir => {}
                part => whole.push(part),
            }
        }
        whole.to_string_lossy().into_owned()
    }

    /// The moment that a user means; the error is what Slurm says of it.
    pub fn moment(&self, text: &str) -> Result<Timestamp, String> {
        let now = self.now.secs() as i64;
        match when::parse(text, now, &Clock::local(None, self.now), Lean::Future) {
            Some(secs) => Ok(Timestamp::from_secs(secs.max(0) as u64)),
            None => Err(format!("Invalid time specification (pos=0): {text}")),
        }
    }

    /// `NAME=value` entries of some variables, each ended by a NUL.
    pub fn entries<'a>(variables: impl IntoIterator<Item = (&'a OsString, &'a OsString)>) -> Vec<u8> {
        let mut entries = Vec::new();
        for (name, value) in variables {
            entries.extend_from_slice(name.as_bytes());
            entries.push(b'=');
            entries.extend_from_slice(value.as_bytes());
            entries.push(0);
        }
        entries
    }

    /// With these in the place of what its environment says.
    pub fn telling(mut self, words: Vec<(&str, String)>) -> Caller {
        self.environment.retain(|(name, _)| !words.iter().any(|(told, _)| name == told));
        self.environment.extend(words.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// An environment that holds nothing but these; for tests.
    pub fn with_environment(self, variables: &[(&str, &str)]) -> Caller {
        let own = |text: &str| OsString::from_vec(text.as_bytes().to_vec());
        let environment = variables.iter().map(|(name, value)| (own(name), own(value))).collect();
        Caller { environment, ..self }
    }
}

fn current_umask() -> u32 {
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    mask.as_raw_mode()
}
