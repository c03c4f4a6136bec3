//! Programs run around a task, as its user (TaskProlog, TaskEpilog, `--task-prolog`, `--task-epilog`): what the first prints changes the task's environment.
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};

use model::StepSpec;
use model::agent::Launch;

use super::task::{restore_signals, say};
use super::{debugged, notes};
use crate::sys;

/// In the order in which they run.
#[derive(Clone, Debug, Default)]
pub struct Scripts {
    before: Vec<CString>,
    /// With the time that each may take.
    after: Vec<(CString, Option<i32>)>,
    /// The task itself stands still when it begins.
    pub is_debugged: bool,
}

/// As Slurm: a user's epilog has five seconds, the site's as long as it wants.
const USER_EPILOG_MILLIS: i32 = 5_000;

impl Scripts {
    /// The site's own are the first and the last. Empty names are none.
    pub fn new(launch: &Launch, spec: &StepSpec) -> Self {
        let some = |names: [&String; 2]| {
            let names = names.into_iter().filter_map(|name| CString::new(name.as_str()).ok());
            names.filter(|name| !name.is_empty()).collect()
        };
        let after = [(&spec.task_epilog, Some(USER_EPILOG_MILLIS)), (&launch.task_epilog, None)];
        let after = after.into_iter().filter_map(|(name, most)| Some((CString::new(name.as_str()).ok()?, most)));
        Scripts {
            before: some([&launch.task_prolog, &spec.task_prolog]),
            after: after.filter(|(name, _)| !name.is_empty()).collect(),
            is_debugged: spec.is_debugged,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    /// Runs those that come first; the error is what the task ends with instead of running.
    pub fn before(&self, environment: &[*const libc::c_char]) -> Result<Vec<*const libc::c_char>, i32> {
        let mut changed = environment.to_vec();
        for program in &self.before {
            if let Err(error) = is_executable(program) {
                let (name, why) = (program.to_string_lossy(), notes::describe(&error));
                say(&format!("slurmstepd: error: run_command: user task_prolog can not be executed ({name}) {why}\n"));
                say(
                    "slurmstepd: error: user task_prolog did not exit normally. reason: Run command failed - configuration error\n",
                );
                say("slurmstepd: error: --task-prolog failed status=1\n");
                return Err(1);
            }
            let (output, status) = match run_for_output(program, &changed) {
                Ok(done) => done,
                Err(error) => {
                    say(&format!(
                        "slurmstepd: error: task_prolog: {}: {}\n",
                        program.to_string_lossy(),
                        notes::describe(&error)
                    ));
                    return Err(1);
                }
            };
            if status != 0 {
                let code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 1 };
                let name = program.to_string_lossy();
                say(&format!("slurmstepd: error: TaskProlog failed status={code} ({name})\n"));
                return Err(code);
            }
            heed(&output, &mut changed);
        }
        Ok(changed)
    }

    /// Something is to run afterwards.
    pub fn stands_by(&self) -> bool {
        !self.after.is_empty()
    }

    /// Where something is to run afterwards, this process stays and the task is its child: in the parent, the end of it all.
    pub fn stand_by(&self, environment: &[*const libc::c_char]) -> Option<i32> {
        if !self.stands_by() {
            return None;
        }
        // SAFETY: plain calls in a process with one thread.
        unsafe {
            let task = libc::fork();
            if task <= 0 {
                return (task < 0).then_some(1);
            }
            // Signals are for the task; this one must live to tell how it ended. Nobody could tell that of a child whose end was
            // ignored, be it for an instant.
            for signal in (1..=libc::SIGRTMAX()).filter(|signal| *signal != libc::SIGCHLD) {
                libc::signal(signal, libc::SIG_IGN);
            }
            if self.is_debugged {
                debugged::leave_standing(task);
            }
            let mut status = 0;
            while libc::waitpid(task, &mut status, 0) < 0
                && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
            {}
            for (program, most) in &self.after {
                if let Ok(pid) = start(program, environment, 1) {
                    if let Some(millis) = most {
                        end_in_time(pid, *millis);
                    }
                    let mut status = 0;
                    libc::waitpid(pid, &mut status, 0);
                    if status != 0 {
                        say(&format!("slurmstepd: error: TaskEpilog failed status={status}\n"));
                    }
                }
            }
            Some(end_alike(status))
        }
    }
}

/// Kills the child if it has not ended by then.
fn end_in_time(pid: i32, millis: i32) {
    // SAFETY: the child is ours and not yet waited for, so its id is its own; the list has one valid entry.
    unsafe {
        let handle = libc::syscall(libc::SYS_pidfd_open, pid, 0) as i32;
        let mut ended = libc::pollfd { fd: handle, events: libc::POLLIN, revents: 0 };
        if handle < 0 || libc::poll(&mut ended, 1, millis) == 0 {
            libc::kill(pid, libc::SIGKILL);
        }
        libc::close(handle);
    }
}

/// Ends this process with the signal that ended the task, or gives its code.
fn end_alike(status: i32) -> i32 {
    if libc::WIFEXITED(status) {
        return libc::WEXITSTATUS(status);
    }
    let signal = libc::WTERMSIG(status);
    // SAFETY: plain calls; the core was the task's.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 });
        libc::signal(signal, libc::SIG_DFL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        libc::raise(signal);
    }
    128 + signal
}

/// `export NAME=value`, `unset NAME` and `print text`, one a line; anything else is nobody's business.
fn heed(output: &str, environment: &mut Vec<*const libc::c_char>) {
    let end = environment.len().saturating_sub(1);
    environment.truncate(end);
    for line in output.lines() {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim_start();
        match word {
            "export" => {
                if let Some((name, value)) = rest.split_once('=')
                    && let Ok(entry) = CString::new(format!("{name}={}", value.trim_matches('"')))
                {
                    remove(environment, name);
                    // Lives as long as this process, which becomes the task.
                    environment.push(entry.into_raw());
                }
            }
            "unset" => remove(environment, rest.trim()),
            "print" => {
                let line = format!("{rest}\n");
                // SAFETY: descriptor 1 is the task's own output.
                let stdout = unsafe { std::os::fd::BorrowedFd::borrow_raw(1) };
                let _ = sys::write(stdout, line.as_bytes());
            }
            _ => {}
        }
    }
    environment.push(std::ptr::null());
}

fn remove(environment: &mut Vec<*const libc::c_char>, name: &str) {
    let is_it = |entry: &*const libc::c_char| {
        // SAFETY: every entry is a NUL-ended string.
        let entry = unsafe { CStr::from_ptr(*entry) }.to_bytes();
        entry.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
    };
    environment.retain(|entry| !is_it(entry));
}

fn run_for_output(program: &CStr, environment: &[*const libc::c_char]) -> io::Result<(String, i32)> {
    let (read, write): (OwnedFd, OwnedFd) = sys::pipe()?;
    let pid = start(program, environment, write.as_raw_fd())?;
    drop(write);
    let mut output = Vec::new();
    File::from(read).read_to_end(&mut output)?;
    let mut status = 0;
    // SAFETY: `status` is valid, and the child is ours.
    sys::check(unsafe { libc::waitpid(pid, &mut status, 0) })?;
    Ok((String::from_utf8_lossy(&output).into_owned(), status))
}

fn is_executable(program: &CStr) -> io::Result<()> {
    // SAFETY: a NUL-ended path.
    sys::check(unsafe { libc::access(program.as_ptr(), libc::R_OK | libc::X_OK) }).map(|_| ())
}

/// The child's standard output goes to this descriptor.
fn start(program: &CStr, environment: &[*const libc::c_char], stdout: i32) -> io::Result<i32> {
    let arguments = [program.as_ptr(), std::ptr::null()];
    // SAFETY: this process has one thread; both lists end with a null pointer.
    unsafe {
        let pid = sys::check(libc::fork())?;
        if pid == 0 {
            libc::dup2(stdout, 1);
            restore_signals();
            libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr());
            let error = io::Error::last_os_error();
            say(&format!("slurmstepd: error: {}: {}\n", program.to_string_lossy(), notes::describe(&error)));
            libc::_exit(127);
        }
        Ok(pid)
    }
}
