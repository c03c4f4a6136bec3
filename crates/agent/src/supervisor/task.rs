//! Starting one process of a run: in its cgroup from birth, as its user, in a session of its own.
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use model::spec::ResourceLimit;

use super::binding::{Binding, CANNOT_BIND};
use super::environment::Block;
use super::identity::Identity;
use super::task_scripts::Scripts;
use super::{debugged, notes};
use crate::birth;
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
    pub stdin: Rc<OwnedFd>,
    pub stdout: Rc<OwnedFd>,
    pub stderr: Rc<OwnedFd>,
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

/// Starts the process and gives its id.
pub fn start(
    plan: &mut Plan,
    identity: &Identity,
    limits: &[ResourceLimit],
    cgroup: Option<&Cgroup>,
    held: &Held,
) -> io::Result<i32> {
    let arguments: Vec<_> = plan.arguments.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect();
    let environment = plan.environment.pointers();
    let scripts = plan.scripts.clone();
    let mut child = || {
        held.join();
        run(plan, identity, limits, &arguments, &environment)
    };
    // SAFETY: a supervisor has one thread; all that the child needs has been made before.
    let pid = unsafe {
        if !scripts.is_empty() {
            birth::start_apart(child, cgroup.map(Cgroup::directory))?
        } else {
            match cgroup.and_then(|cgroup| birth::start_inside(&mut child, cgroup.directory())) {
                Some(pid) => pid,
                None => birth::start(child)?,
            }
        }
    };
    // One that stands by for its task sees to that itself.
    if scripts.is_debugged && !scripts.stands_by() {
        debugged::leave_standing(pid);
    }
    Ok(pid)
}

/// In the child, whose memory is the supervisor's: nothing here may be left half-done. Returns only if the program cannot run.
fn run(
    plan: &mut Plan,
    identity: &Identity,
    limits: &[ResourceLimit],
    arguments: &[*const libc::c_char],
    environment: &[*const libc::c_char],
) -> i32 {
    // SAFETY: plain calls on valid descriptors.
    unsafe {
        libc::setsid();
        libc::dup2(plan.stdin.as_raw_fd(), 0);
        libc::dup2(plan.stdout.as_raw_fd(), 1);
        libc::dup2(plan.stderr.as_raw_fd(), 2);
        if let Some(line) = &plan.line {
            libc::fcntl(line.as_raw_fd(), libc::F_SETFD, 0);
        }
        if plan.has_terminal {
            libc::ioctl(0, libc::TIOCSCTTY, 0);
        }
    }
    limits.iter().for_each(apply_limit);
    if let Err(error) = identity.assume() {
        let why = notes::describe(&error);
        say(&format!("slurmstepd: error: cannot become user {}: {why}\n", identity.user));
        return 1;
    }
    if let Err(error) = std::env::set_current_dir(&plan.work_dir) {
        // Twice, as Slurm has it: once for its daemon, once for the task.
        let note = notes::no_work_dir(&plan.work_dir, &error);
        say(&note);
        say(&note);
        let _ = std::env::set_current_dir("/tmp");
    }
    if let Some(why) = plan.binding.as_ref().and_then(Binding::refusal) {
        say(why);
        return CANNOT_BIND;
    }
    if let Some(note) = plan.binding.as_ref().and_then(|binding| binding.bind(std::process::id())) {
        say(&note);
    }
    if !plan.gpu_note.is_empty() {
        say(&plan.gpu_note);
    }
    plan.environment.set_pid(std::process::id());
    let environment = &match plan.scripts.before(environment) {
        Ok(changed) => changed,
        Err(code) => return code,
    }[..];
    if let Some(code) = plan.scripts.stand_by(environment) {
        return code;
    }
    restore_signals();
    if plan.scripts.is_debugged {
        debugged::ask();
    }
    let mut failure = io::Error::from_raw_os_error(libc::ENOENT);
    for program in &plan.programs {
        // SAFETY: both lists are ended by a null pointer and point to NUL-ended strings.
        unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
        let error = io::Error::last_os_error();
        let is_missing = match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => true,
            // A folder of PATH that is closed has no say about names that are nowhere else.
            Some(libc::EACCES) => !plan.name.contains('/') && !is_there(program),
            _ => false,
        };
        let is_script_without_interpreter = is_missing && interpreter(program).is_some();
        if !is_missing || is_script_without_interpreter {
            failure = error;
        }
        // A file that is not allowed does not end the search, but is remembered.
        if !is_missing && failure.raw_os_error() != Some(libc::EACCES) || is_script_without_interpreter {
            break;
        }
    }
    let code = failure.raw_os_error().unwrap_or(1);
    let missing = plan.programs.iter().find_map(interpreter).filter(|_| code == libc::ENOENT);
    let what = missing.map_or_else(|| plan.name.clone(), |interpreter| format!("bad interpreter({interpreter})"));
    say(&notes::no_exec(&what, &failure));
    code
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
