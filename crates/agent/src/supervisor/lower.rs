//! What a site gives its daemon and does not mean for users: jobs are born of the fork server and inherit what it has.
use std::fs;

/// Priority, scheduling and I/O class, protection from the kernel's want of memory: no better than any user may have, whatever
/// the agent was started with. Nobody may look into what is forked from here, which knows root's secrets.
pub fn give_up_daemons_favours() {
    const WHO_PROCESS: libc::c_int = 1;
    // SAFETY: plain calls about this process, on valid values.
    unsafe {
        libc::umask(0o022);
        libc::chdir(c"/".as_ptr());
        if libc::getpriority(libc::PRIO_PROCESS, 0) < 0 {
            libc::setpriority(libc::PRIO_PROCESS, 0, 0);
        }
        if matches!(libc::sched_getscheduler(0), libc::SCHED_FIFO | libc::SCHED_RR) {
            let ordinary: libc::sched_param = std::mem::zeroed();
            libc::sched_setscheduler(0, libc::SCHED_OTHER, &ordinary);
        }
        if libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) >> 13 == 1 {
            libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, 0);
        }
        if libc::geteuid() == 0 {
            libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        }
    }
    let score = fs::read_to_string("/proc/self/oom_score_adj").ok().and_then(|text| text.trim().parse::<i32>().ok());
    if score.is_some_and(|score| score < 0) {
        let _ = fs::write("/proc/self/oom_score_adj", "0");
    }
}
