//! The files that tasks read and write, opened by a process that is the user's for good: the task itself before its program
//! begins, or where several tasks share them one that does nothing else. The supervisor keeps root's identity.
//!
//! That process has the supervisor's table of descriptors while it opens, so what it opens is open in both.
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use model::StepId;
use model::pattern::{self, PatternValues};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::identity::Identity;
use super::notes;
use crate::birth::{self, DescriptorTable};
use crate::cgroup::Cgroup;
use crate::protocol::Start;

const WAIT_FOR_DIRECTORY: Duration = Duration::from_secs(2);
const LOOK_PAUSE: Duration = Duration::from_millis(5);
/// The kernel's number for its own file system of processes.
const PROCFS: i64 = 0x9fa0;
/// `/dev/null` and its kin, to which no write waits.
const MEMORY_DEVICES: u32 = 1;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    Append,
    Truncate,
    /// Others write to it too, and one of them has emptied it.
    Join,
}

/// Where a task's stream begins or ends.
#[derive(Clone)]
pub enum StreamEnd {
    Open(Rc<OwnedFd>),
    /// To be opened as the user.
    File(TaskFileId),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TaskFileId(usize);

/// Files of one run; one that is named twice is opened once.
#[derive(Default)]
pub struct TaskFiles {
    wanted: Vec<WantedFile>,
    outputs: HashMap<PathBuf, TaskFileId>,
    nothing: Option<Rc<OwnedFd>>,
}

struct WantedFile {
    path: CString,
    /// Its directory, which may be on its way.
    directory: Option<CString>,
    flags: OFlags,
    /// The supervisor writes to it too.
    is_noted_in: bool,
    opened: Opened,
}

/// Set by the process that opens, in memory that it shares with the supervisor.
#[derive(Default)]
enum Opened {
    #[default]
    NotYet,
    /// The second, if there is one, is for a writer that never waits.
    Raw(i32, Option<i32>),
    Failed(Errno),
    Held(Rc<OwnedFd>, Option<Rc<OwnedFd>>),
}

impl TaskFiles {
    /// Not the user's to choose, so the supervisor opens it.
    pub fn nothing(&mut self) -> Result<StreamEnd, String> {
        if self.nothing.is_none() {
            let opened = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
            self.nothing = Some(Rc::new(opened.map_err(|error| format!("cannot open /dev/null: {error}"))?.into()));
        }
        Ok(StreamEnd::Open(self.nothing.clone().expect("it was just opened")))
    }

    /// Opened anew each time: every task reads from the beginning.
    pub fn input(&mut self, start: &Start, pattern: &str, local_id: u32) -> Result<StreamEnd, String> {
        let path = path(start, pattern, local_id);
        self.want(&path, OFlags::RDONLY).map(StreamEnd::File)
    }

    pub fn output(
        &mut self,
        start: &Start,
        pattern: &str,
        local_id: u32,
        mode: WriteMode,
    ) -> Result<TaskFileId, String> {
        let path = path(start, pattern, local_id);
        if let Some(id) = self.outputs.get(&path) {
            return Ok(*id);
        }
        let how = match mode {
            WriteMode::Append | WriteMode::Join => OFlags::APPEND,
            WriteMode::Truncate => OFlags::TRUNC,
        };
        let id = self.want(&path, OFlags::WRONLY | OFlags::CREATE | how)?;
        self.outputs.insert(path, id);
        Ok(id)
    }

    /// The supervisor writes to this one as well, and must not be kept waiting.
    pub fn note_in(&mut self, id: TaskFileId) {
        self.wanted[id.0].is_noted_in = true;
    }

    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    fn want(&mut self, path: &Path, flags: OFlags) -> Result<TaskFileId, String> {
        let c_string = |path: &Path| {
            CString::new(path.as_os_str().as_bytes())
                .map_err(|_| format!("Could not open file {}: Invalid argument", path.display()))
        };
        let directory = path.parent().map(c_string).transpose()?;
        let wanted = WantedFile { path: c_string(path)?, directory, flags, is_noted_in: false, opened: Opened::NotYet };
        self.wanted.push(wanted);
        Ok(TaskFileId(self.wanted.len() - 1))
    }

    /// For a process that is the user, and has the supervisor's memory and descriptors. Allocates nothing: its user may end it
    /// at any moment. Says whether all are open.
    pub fn open_all(&mut self) -> bool {
        self.wanted.iter_mut().all(|wanted| {
            if let Opened::NotYet = wanted.opened {
                wanted.opened = match wanted.open_in_time() {
                    Ok((fd, apart)) => Opened::Raw(fd.into_raw_fd(), apart.map(IntoRawFd::into_raw_fd)),
                    Err(errno) => Opened::Failed(errno),
                };
            }
            !matches!(wanted.opened, Opened::Failed(_))
        })
    }

    /// By a process that does nothing else.
    pub fn open_beside(&mut self, identity: &Identity, umask: u32, cgroup: Option<&Cgroup>) -> Result<(), String> {
        if self.is_empty() {
            return Ok(());
        }
        let mut trouble = None;
        let opener = || {
            trouble = super::task::become_user(identity, umask).err().and_then(|error| error.raw_os_error());
            i32::from(trouble.is_some() || !self.open_all())
        };
        let directory = cgroup.map(Cgroup::directory);
        // SAFETY: a supervisor has one thread, and waits until the child has ended.
        let born = unsafe { birth::start(opener, directory, DescriptorTable::Shared) };
        let pid = born.map_err(|error| format!("cannot open the files of the tasks: {error}"))?;
        let mut status = 0;
        // SAFETY: `status` is valid, and the child is ours; it has left its program behind.
        unsafe { libc::waitpid(pid, &mut status, 0) };
        if let Some(code) = trouble {
            return Err(identity.refusal(&io::Error::from_raw_os_error(code)));
        }
        self.take_over()
    }

    /// In the supervisor, when the process that opened has left its memory.
    pub fn take_over(&mut self) -> Result<(), String> {
        let mut failure = None;
        for wanted in &mut self.wanted {
            match wanted.opened {
                Opened::Raw(fd, apart) => {
                    // SAFETY: the child has opened both in the table it shared with this process, and knows of them no more.
                    let own = |fd| Rc::new(unsafe { OwnedFd::from_raw_fd(fd) });
                    wanted.opened = Opened::Held(own(fd), apart.map(own));
                }
                Opened::Failed(errno) if failure.is_none() => failure = Some(wanted.refusal(errno)),
                Opened::NotYet if failure.is_none() => failure = Some(wanted.refusal(Errno::INTR)),
                Opened::Failed(_) | Opened::NotYet | Opened::Held(..) => {}
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// The descriptor of a stream that is open.
    pub fn descriptor(&self, end: &StreamEnd) -> i32 {
        match end {
            StreamEnd::Open(fd) => fd.as_raw_fd(),
            StreamEnd::File(id) => match &self.wanted[id.0].opened {
                Opened::Raw(fd, _) => *fd,
                Opened::Held(fd, _) => fd.as_raw_fd(),
                Opened::NotYet | Opened::Failed(_) => -1,
            },
        }
    }

    /// For the supervisor's own words: the same file, in such a way that writing to it does not wait.
    pub fn noted(&self, id: TaskFileId) -> Option<Rc<OwnedFd>> {
        match &self.wanted[id.0].opened {
            Opened::Held(fd, apart) => Some(apart.as_ref().unwrap_or(fd).clone()),
            Opened::NotYet | Opened::Raw(..) | Opened::Failed(_) => None,
        }
    }
}

impl WantedFile {
    /// Clients such as submitit make the directory of a job's output when they know the job's id. A job may start sooner than
    /// that, so a directory that is missing is given a moment to appear.
    fn open_in_time(&self) -> Result<(OwnedFd, Option<OwnedFd>), Errno> {
        let until = Instant::now() + WAIT_FOR_DIRECTORY;
        let has_no_directory = || self.directory.as_ref().is_some_and(|dir| rustix::fs::stat(dir.as_c_str()).is_err());
        loop {
            match self.open() {
                Err(Errno::NOENT) if Instant::now() < until && has_no_directory() => std::thread::sleep(LOOK_PAUSE),
                opened => return opened,
            }
        }
    }

    fn open(&self) -> Result<(OwnedFd, Option<OwnedFd>), Errno> {
        // Opening a pipe without a reader must not hang.
        let file = open_without_magic(self, self.flags)?;
        let about = rustix::fs::fstat(&file)?;
        if is_of_a_process(file.as_fd(), about.st_dev)? {
            return Err(Errno::ACCESS);
        }
        let kind = FileType::from_raw_mode(about.st_mode);
        let may_wait = match kind {
            FileType::RegularFile | FileType::Directory => false,
            FileType::CharacterDevice => rustix::fs::major(about.st_rdev) != MEMORY_DEVICES,
            _ => true,
        };
        let apart = match self.is_noted_in && may_wait {
            true => open_without_magic(self, OFlags::WRONLY | OFlags::APPEND).ok(),
            false => None,
        };
        // For the task it is as if it had opened it itself.
        rustix::fs::fcntl_setfl(&file, self.flags & OFlags::APPEND)?;
        Ok((file, apart))
    }

    fn refusal(&self, errno: Errno) -> String {
        let why = notes::describe(&errno.into());
        format!("Could not open file {}: {why}", self.path.to_string_lossy())
    }
}

/// Follows no link that stands for an open file or a place of a process (`/proc/self/fd/3`, `/proc/self/cwd`): this process
/// is not the one that its user means. Where the kernel knows no such order, these lead only to what the user may open.
fn open_without_magic(wanted: &WantedFile, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o666) } else { Mode::empty() };
    let path = wanted.path.as_c_str();
    match rustix::fs::openat2(CWD, path, flags, mode, ResolveFlags::NO_MAGICLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(CWD, path, flags, mode),
        opened => opened,
    }
}

/// Makes this the working directory of the process, by the same rule.
pub fn enter(directory: &CStr) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat2(CWD, directory, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => rustix::process::chdir(directory),
        opened => rustix::process::fchdir(opened?),
    }
}

/// What the kernel tells of a process (`/proc/PID/…`) would be told of the wrong one. Files of a disk are known by their device.
fn is_of_a_process(file: BorrowedFd, device: u64) -> Result<bool, Errno> {
    if rustix::fs::major(device) != 0 || rustix::fs::fstatfs(file)?.f_type as i64 != PROCFS {
        return Ok(false);
    }
    let mut link = *b"/proc/self/fd/0000000000\0";
    let mut rest = file.as_raw_fd().unsigned_abs();
    let first = link.len() - 11;
    let n_digits = rest.checked_ilog10().unwrap_or(0) as usize + 1;
    for place in link[first..first + n_digits].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    link[first + n_digits] = 0;
    let link = CStr::from_bytes_until_nul(&link).map_err(|_| Errno::INVAL)?;
    let mut path = [std::mem::MaybeUninit::uninit(); 64];
    let (path, _) = rustix::fs::readlinkat_raw(CWD, link, &mut path)?;
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    Ok(path.strip_prefix(b"/proc/").is_none_or(|rest| is_digit(rest.first())))
}

fn path(start: &Start, pattern: &str, local_id: u32) -> PathBuf {
    let launch = &start.launch;
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
            "" => start.node.to_string(),
            hostname => hostname.split('.').next().unwrap_or(hostname).to_string(),
        },
        user: spec.user.clone(),
        job_name: spec.name.clone(),
    };
    let dir = launch.step_spec.as_ref().map_or(&spec.work_dir, |step| &step.work_dir);
    Path::new(dir).join(pattern::expand(pattern, &values))
}
