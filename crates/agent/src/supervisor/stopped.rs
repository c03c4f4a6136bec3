//! Tasks that stand still at the first instruction of their program, so that a debugger finds it loaded and nothing done.

/// In the task, before it runs its program: the supervisor traces it as far as that. Where that is forbidden it stops at once.
pub fn ask() {
    // SAFETY: plain calls about the calling process.
    unsafe {
        if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == -1 {
            stop();
        }
    }
}

/// In the task: it stands still before its program is loaded.
pub fn stop() {
    // SAFETY: a plain call about the calling process.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// In the supervisor: waits until the program is loaded, or the task is over, and leaves it stopped for others to trace.
pub fn leave(pid: i32) {
    // SAFETY: the structure outlives the calls; who has ended is left to be waited for by whoever looks after tasks.
    unsafe {
        let mut news: libc::siginfo_t = std::mem::zeroed();
        let events = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT;
        while libc::waitid(libc::P_PID, pid as libc::id_t, &mut news, events) == -1 {
            if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
                return;
            }
        }
        // One that has stopped itself stays as it is.
        if news.si_code == libc::CLD_TRAPPED {
            libc::ptrace(libc::PTRACE_DETACH, pid, 1, libc::SIGSTOP);
        }
    }
}
