//! Tasks for a debugger (`srun --debugger-test`): they stand still at the first instruction of their program until somebody continues them.
use std::io;

/// In the child, just before it becomes its program: the kernel will stop it there for its parent. Where that is forbidden it stops at once.
pub fn ask() {
    // SAFETY: plain calls about the calling process; the other arguments have no meaning for them.
    unsafe {
        if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == -1 {
            libc::raise(libc::SIGSTOP);
        }
    }
}

/// In its parent: waits until the child has become its program, and lets go of it standing still. One that has ended instead is
/// left to whoever waits for its end.
pub fn leave_standing(pid: i32) {
    let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT;
    // SAFETY: all structs are valid; the child is this process's own and is not waited for by anybody else meanwhile.
    unsafe {
        let mut news: libc::siginfo_t = std::mem::zeroed();
        while libc::waitid(libc::P_PID, pid as libc::id_t, &mut news, flags) != 0 {
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return;
            }
        }
        if news.si_code == libc::CLD_TRAPPED {
            let mut status = 0;
            libc::waitpid(pid, &mut status, 0);
            let stop = libc::SIGSTOP as libc::c_long;
            libc::ptrace(libc::PTRACE_DETACH, pid, 0 as libc::c_long, stop);
        }
    }
}
