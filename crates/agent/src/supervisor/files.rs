//! The files that tasks read and write, opened with the user's rights.
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use model::StepId;
use model::pattern::{self, PatternValues};

use super::identity::Identity;
use super::notes;
use crate::protocol::Start;

const WAIT_FOR_DIRECTORY: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Append,
    Truncate,
    /// Others write to it too, and one of them has emptied it.
    Join,
}

/// Files of one run; one that is named twice is opened once.
pub struct Files<'a> {
    start: &'a Start,
    identity: &'a Identity,
    open: HashMap<PathBuf, Rc<OwnedFd>>,
}

impl<'a> Files<'a> {
    pub fn new(start: &'a Start, identity: &'a Identity) -> Self {
        Files { start, identity, open: HashMap::new() }
    }

    pub fn nothing(&mut self) -> Result<Rc<OwnedFd>, String> {
        self.open_once(PathBuf::from("/dev/null"), OpenOptions::new().read(true).write(true))
    }

    /// Opened anew each time: every task reads from the beginning.
    pub fn input(&mut self, pattern: &str, local_id: u32) -> Result<Rc<OwnedFd>, String> {
        let path = self.path(pattern, local_id);
        self.open_as_user(&path, OpenOptions::new().read(true))
    }

    pub fn output(&mut self, pattern: &str, local_id: u32, mode: Mode) -> Result<Rc<OwnedFd>, String> {
        let path = self.path(pattern, local_id);
        let mut options = OpenOptions::new();
        options.write(true).create(true).mode(0o666);
        match mode {
            Mode::Append | Mode::Join => options.append(true),
            Mode::Truncate => options.truncate(true),
        };
        self.open_once(path, &options)
    }

    fn open_once(&mut self, path: PathBuf, options: &OpenOptions) -> Result<Rc<OwnedFd>, String> {
        if let Some(file) = self.open.get(&path) {
            return Ok(file.clone());
        }
        let file = self.open_as_user(&path, options)?;
        self.open.insert(path, file.clone());
        Ok(file)
    }

    fn open_as_user(&self, path: &Path, options: &OpenOptions) -> Result<Rc<OwnedFd>, String> {
        // Opening a pipe without a reader must not hang the supervisor.
        let mut options = options.clone();
        options.custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK);
        let file = self.identity.act(|| {
            let file = open_in_time(path, &options)?;
            set_blocking(&file)?;
            Ok(file)
        });
        match file {
            Ok(file) => Ok(Rc::new(OwnedFd::from(file))),
            Err(error) => Err(format!("Could not open file {}: {}", path.display(), notes::describe(&error))),
        }
    }

    fn path(&self, pattern: &str, local_id: u32) -> PathBuf {
        let launch = &self.start.launch;
        let spec = &launch.job_spec;
        let values = PatternValues {
            job: launch.job.0,
            array_job: launch.array.as_ref().map(|array| array.array.0),
            array_task: launch.array.as_ref().map(|array| array.task),
            step: match launch.step {
                StepId::Batch => None,
                StepId::Number(step) => Some(step.to_string()),
            },
            task: launch.rank(local_id),
            node_index: launch.node_index,
            node_name: match launch.hostname.as_str() {
                "" => self.start.node.to_string(),
                hostname => hostname.split('.').next().unwrap_or(hostname).to_string(),
            },
            user: spec.user.clone(),
            job_name: spec.name.clone(),
        };
        let dir = launch.step_spec.as_ref().map_or(&spec.work_dir, |step| &step.work_dir);
        Path::new(dir).join(pattern::expand(pattern, &values))
    }
}

/// Clients such as submitit make the directory of a job's output when they know the job's id. A job may start sooner than
/// that, so a directory that is missing is given a moment to appear.
fn open_in_time(path: &Path, options: &OpenOptions) -> io::Result<std::fs::File> {
    let until = Instant::now() + WAIT_FOR_DIRECTORY;
    let has_no_directory = || path.parent().is_some_and(|parent| !parent.exists());
    loop {
        match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && Instant::now() < until && has_no_directory() => {
                std::thread::sleep(Duration::from_millis(5));
            }
            opened => return opened,
        }
    }
}

fn set_blocking(file: &std::fs::File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: plain flag calls on a valid descriptor.
    unsafe {
        let flags = crate::sys::check(libc::fcntl(file.as_raw_fd(), libc::F_GETFL))?;
        crate::sys::check(libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK))?;
    }
    Ok(())
}
