//! Who asks, and from where: the facts about the calling process that go into a submission.
use std::ffi::{CStr, OsString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use model::Timestamp;
use model::calendar::{LocalTime, Zone};
use model::spec::ResourceLimit;
use model::when::{self, Lean};

/// The calling process. Tests make their own.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    pub user: String,
    pub group: String,
    pub home: String,
    pub shell: String,
    pub work_dir: String,
    pub host: String,
    pub umask: u32,
    pub limits: Vec<ResourceLimit>,
    pub environment: Vec<(OsString, OsString)>,
    pub now: Timestamp,
    pub cluster_name: String,
}

impl Caller {
    /// This process.
    pub fn current(cluster_name: &str) -> Result<Caller, String> {
        let uid = rustix::process::getuid().as_raw();
        let gid = rustix::process::getgid().as_raw();
        let account = account(uid).unwrap_or_else(|| Account {
            name: uid.to_string(),
            home: "/".to_string(),
            shell: "/bin/sh".to_string(),
        });
        let work_dir = std::env::current_dir().map_err(|error| format!("getcwd failed: {error}"))?;
        let micros = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        Ok(Caller {
            uid,
            gid,
            user: account.name,
            home: account.home,
            shell: account.shell,
            group: group_name(gid).unwrap_or_else(|| gid.to_string()),
            work_dir: work_dir.to_string_lossy().into_owned(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            umask: current_umask(),
            limits: super::limits::current(),
            environment: std::env::vars_os().collect(),
            now: Timestamp(micros as u64),
            cluster_name: cluster_name.to_string(),
        })
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
        match when::parse(text, now, &Place(TimeZone::system()), Lean::Future) {
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

    /// An environment that holds nothing but these; for tests.
    pub fn with_environment(self, variables: &[(&str, &str)]) -> Caller {
        let own = |text: &str| OsString::from_vec(text.as_bytes().to_vec());
        let environment = variables.iter().map(|(name, value)| (own(name), own(value))).collect();
        Caller { environment, ..self }
    }
}

/// This machine's place on Earth.
struct Place(TimeZone);

impl Zone for Place {
    fn to_local(&self, unix_secs: i64) -> LocalTime {
        let moment = jiff::Timestamp::from_second(unix_secs).unwrap_or(jiff::Timestamp::MAX);
        let at = self.0.to_datetime(moment);
        LocalTime {
            year: at.year().into(),
            month: at.month() as u8,
            day: at.day() as u8,
            hour: at.hour() as u8,
            minute: at.minute() as u8,
            second: at.second() as u8,
        }
    }

    fn to_unix(&self, local: LocalTime) -> i64 {
        let LocalTime { year, month, day, hour, minute, second } = local;
        let year = i16::try_from(year).unwrap_or(9999);
        let at = DateTime::new(year, month as i8, day as i8, hour as i8, minute as i8, second as i8, 0);
        at.ok().and_then(|at| self.0.to_timestamp(at).ok()).map_or(0, |moment| moment.as_second())
    }
}

fn current_umask() -> u32 {
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    mask.as_raw_mode()
}

struct Account {
    name: String,
    home: String,
    shell: String,
}

/// Large enough for any sane entry of the user database.
const BUFFER_BYTES: usize = 1 << 14;

fn account(uid: u32) -> Option<Account> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the lengths given; the entry is read only when the call has set `found`, and its
    // strings point into `buffer`, which outlives the copies.
    unsafe {
        libc::getpwuid_r(uid, entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found);
        let entry = found.as_ref()?;
        let text = |pointer| CStr::from_ptr(pointer).to_string_lossy().into_owned();
        Some(Account { name: text(entry.pw_name), home: text(entry.pw_dir), shell: text(entry.pw_shell) })
    }
}

fn group_name(gid: u32) -> Option<String> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut entry = MaybeUninit::<libc::group>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: as above.
    unsafe {
        libc::getgrgid_r(gid, entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found);
        found.as_ref().map(|entry| CStr::from_ptr(entry.gr_name).to_string_lossy().into_owned())
    }
}
