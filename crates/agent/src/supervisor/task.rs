//! Starting one process of a run: in its cgroup from birth, as its user, in a session of its own.
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use model::spec::ResourceLimit;

use super::binding::{Binding, CANNOT_BIND};
use super::environment::Block;
use super::files::{self, StreamEnd, TaskFiles};
use super::identity::Identity;
use super::task_scripts::Scripts;
use super::{debugged, notes};
use crate::birth::{self, DescriptorTable};
use crate::bounds::Held;
use crate::cgroup::Cgroup;
use crate::sys;

/// Everything decided before the fork, so that the child has little to do.
pub struct Plan {
    /// Tried in turn; the first that exists is run.
    pub programs: Vec<CString>,
    /// As the user wrote it, for messages.
    pub name: String,
    pub arguments: Vec<CString>,
    pub environment: Block,
    pub work_dir: String,
    pub stdin: StreamEnd,
    pub stdout: StreamEnd,
    pub stderr: StreamEnd,
    /// Standard input is a terminal that becomes the session's own.
    pub has_terminal: bool,
    pub is_batch: bool,
    pub binding: Option<Binding>,
    /// What it says of its GPUs before it begins; empty for nothing.
    pub gpu_note: String,
    pub scripts: Scripts,
    /// Kept open for the program, under the same number.
    pub line: Option<OwnedFd>,
}

/// What a run's tasks are started with.
pub struct TaskBirth<'a> {
    pub identity: &'a Identity,
    pub limits: &'a [ResourceLimit],
    pub umask: u32,
    pub no_new_privileges: bool,
    pub cgroup: Option<&'a Cgroup>,
    pub held: &'a Held,
}

/// Starts the process and gives its id. It opens the run's files, unless they are open.
pub fn start(plan: &mut Plan, files: &mut TaskFiles, birth: &TaskBirth) -> Result<i32, String> {
    let mut arguments: Vec<_> = plan.arguments.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect();
    let environment = plan.environment.pointers();
    let scripts = plan.scripts.clone();
    let work_dir = CString::new(plan.work_dir.as_str()).map_err(|_| "the working directory holds a NUL byte")?;
    let opens = !files.is_empty() && scripts.is_empty();
    let table = if opens { DescriptorTable::Shared } else { DescriptorTable::Own };
    let mut stillbirth = None;
    let mut child = || {
        birth.held.join();
        let words =
            plan.binding.as_ref().map(|binding| (binding.refusal().map(str::to_owned), binding.bind(own_pid())));
        if let Err(error) = become_user(birth.identity, birth.umask) {
            stillbirth = Some(error);
            return 1;
        }
        if birth.no_new_privileges {
            // SAFETY: a plain call; every kernel of today knows it.
            unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        }
        // Which of them could not be opened, they know themselves.
        if opens && !files.open_all() {
            return 1;
        }
        run(plan, files, birth.limits, &work_dir, words, &mut arguments, &environment)
    };
    let directory = birth.cgroup.map(Cgroup::directory);
    // SAFETY: a supervisor has one thread; all that the child needs has been made before.
    let born = unsafe {
        match scripts.is_empty() {
            true => birth::start(&mut child, directory, table),
            false => birth::start_apart(&mut child, directory),
        }
    };
    let pid = born.map_err(|error| format!("cannot start a process: {error}"))?;
    if let Some(error) = stillbirth {
        return Err(birth.identity.refusal(&error));
    }
    if opens {
        files.take_over()?;
    }
    // One that stands by for its task sees to that itself.
    if scripts.is_debugged && !scripts.stands_by() {
        debugged::leave_standing(pid);
    }
    Ok(pid)
}

fn own_pid() -> u32 {
    std::process::id()
}

/// In a child, for good. Until its program runs no signal but SIGKILL and SIGSTOP reaches it, so that none of its user's ends
/// it in the middle of memory that it shares, or has that memory dumped.
pub fn become_user(identity: &Identity, umask: u32) -> io::Result<()> {
    // SAFETY: plain calls on valid values.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        libc::umask(umask as libc::mode_t & 0o777);
    }
    identity.assume()
}

/// In the child, whose memory may be the supervisor's: nothing here may be left half-done, and only complaints allocate. Returns
/// only if the program cannot run.
fn run(
    plan: &mut Plan,
    opened: &TaskFiles,
    limits: &[ResourceLimit],
    work_dir: &CStr,
    words: Option<(Option<String>, Option<String>)>,
    arguments: &mut [*const libc::c_char],
    environment: &[*const libc::c_char],
) -> i32 {
    // SAFETY: plain calls on valid descriptors.
    unsafe {
        libc::setsid();
        // From here on the table is this process's own, and nothing in it passes to a program.
        let flags = libc::CLOSE_RANGE_UNSHARE | libc::CLOSE_RANGE_CLOEXEC;
        if libc::syscall(libc::SYS_close_range, 3, u32::MAX, flags) != 0 && libc::unshare(libc::CLONE_FILES) != 0 {
            return 1;
        }
        libc::dup2(opened.descriptor(&plan.stdin), 0);
        libc::dup2(opened.descriptor(&plan.stdout), 1);
        libc::dup2(opened.descriptor(&plan.stderr), 2);
        if let Some(line) = &plan.line {
            libc::fcntl(line.as_raw_fd(), libc::F_SETFD, 0);
        }
        if plan.has_terminal {
            libc::ioctl(0, libc::TIOCSCTTY, 0);
        }
    }
    // As the user, who thereby raises none above the hard limits that this node gives.
    limits.iter().for_each(apply_limit);
    if let Err(errno) = files::enter(work_dir) {
        // Twice, as Slurm has it: once for its daemon, once for the task.
        let note = notes::no_work_dir(&plan.work_dir, &errno.into());
        say(&note);
        say(&note);
        let _ = files::enter(c"/tmp");
    }
    if let Some((refusal, note)) = words {
        if let Some(why) = refusal {
            say(&why);
            return CANNOT_BIND;
        }
        note.inspect(|note| say(note));
    }
    if !plan.gpu_note.is_empty() {
        say(&plan.gpu_note);
    }
    plan.environment.set_pid(own_pid());
    let changed;
    let environment = match plan.scripts.is_empty() {
        true => environment,
        false => {
            changed = match plan.scripts.before(environment) {
                Ok(changed) => changed,
                Err(code) => return code,
            };
            &changed[..]
        }
    };
    if let Some(code) = plan.scripts.stand_by(environment) {
        return code;
    }
    restore_signals();
    if plan.scripts.is_debugged {
        debugged::ask();
    }
    let mut failure = libc::ENOENT;
    for program in &plan.programs {
        // Found in PATH, it is called by the whole path; found in the working directory, as it was named.
        if program.as_bytes().starts_with(b"/")
            && let Some(first) = arguments.first_mut()
        {
            *first = program.as_ptr();
        }
        // SAFETY: both lists are ended by a null pointer and point to NUL-ended strings.
        unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
        let error = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        let is_missing = match error {
            libc::ENOENT | libc::ENOTDIR => true,
            // A folder of PATH that is closed has no say about names that are nowhere else.
            libc::EACCES => !plan.name.contains('/') && !is_there(program),
            _ => false,
        };
        let is_script_without_interpreter = is_missing && interpreter(program).is_some();
        if !is_missing || is_script_without_interpreter {
            failure = error;
        }
        // A file that is not allowed does not end the search, but is remembered.
        if !is_missing && failure != libc::EACCES || is_script_without_interpreter {
            break;
        }
    }
    let missing = plan.programs.iter().find_map(interpreter).filter(|_| failure == libc::ENOENT);
    let what = missing.map_or_else(|| plan.name.clone(), |interpreter| format!("bad interpreter({interpreter})"));
    say(&notes::no_exec(&what, &io::Error::from_raw_os_error(failure)));
    failure
}

fn is_there(program: &CString) -> bool {
    std::fs::symlink_metadata(OsStr::from_bytes(program.as_bytes())).is_ok()
}

/// What the `#!` line of a file asks for.
fn interpreter(program: &CString) -> Option<String> {
    let file = std::fs::File::open(OsStr::from_bytes(program.as_bytes())).ok()?;
    let mut head = [0; 256];
    let length = sys::read(file.as_fd(), &mut head).ok()?;
    let line = head[..length].strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let word = line.split(|byte| byte.is_ascii_whitespace()).find(|word| !word.is_empty())?;
    Some(String::from_utf8_lossy(word).into_owned())
}

/// As far as this process may: a hard limit that cannot be raised bounds the soft one.
fn apply_limit(limit: &ResourceLimit) {
    let wanted = libc::rlimit { rlim_cur: limit.soft, rlim_max: limit.hard };
    // SAFETY: the structs are valid; unknown resources are refused by the kernel.
    unsafe {
        if libc::setrlimit(limit.resource as _, &wanted) == 0 {
            return;
        }
        let mut present = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(limit.resource as _, &mut present) == 0 {
            present.rlim_cur = limit.soft.min(present.rlim_max);
            libc::setrlimit(limit.resource as _, &present);
        }
    }
}

/// What the supervisor ignores and blocks is the task's own matter again; the fork server has reset all others.
pub fn restore_signals() {
    // SAFETY: plain calls on valid values.
    unsafe {
        for signal in super::watch::IGNORED {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

pub fn say(text: &str) {
    // SAFETY: descriptor 2 is the job's own output, made by `run`.
    let stderr = unsafe { std::os::fd::BorrowedFd::borrow_raw(2) };
    let _ = sys::write(stderr, text.as_bytes());
}
