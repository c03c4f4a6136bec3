//! Making a process the cheap way: it borrows the parent's memory, on a stack of its own, until it runs its program.
//!
//! Copying even a small parent's page tables, and the faults that follow in both, cost more than all else that a supervisor
//! does. A system call of its own, because no library function knows `CLONE_INTO_CGROUP`: the child is in its cgroup from its
//! first instruction.
//!
//! Both run at once, and the parent sleeps until the kernel says that the child has left (`CLONE_CHILD_CLEARTID`). A `vfork` would
//! do the same in a sleep that only the child can end, and the child's user can stop the child.
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use rustix::thread::futex::{self, Timespec};

use crate::sys::check;

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
const STACK_BYTES: usize = 64 * 1024;

/// What a child has in common with its parent until it runs its program, besides memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DescriptorTable {
    /// A copy of the parent's.
    Own,
    /// The parent's own, so that what the child opens is open in both. The child lets go of it before its program runs.
    Shared,
}

/// How long a child may take to its program. Its user decides how fast files open; a hung file system is not waited for.
const PATIENCE: Duration = Duration::from_secs(300);
/// A child that takes longer than this is looked at, and again as often.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A child that its user stops again and again is killed.
const STOPS_MAX: u32 = 20;
/// How long a killed child may take to end.
const DEATH_PATIENCE: Duration = Duration::from_secs(2);

/// Starts a process that runs `child`, which ends in an exec or an exit, and gives its id. The caller waits for that exec or
/// exit in a sleep that the child cannot make endless: a child that its user stops, or that hangs, is killed in the end.
///
/// # Safety
/// This process must have one thread, or `child` touch nothing that others use: it shares the memory.
pub unsafe fn start<F: FnMut() -> i32>(
    mut child: F,
    cgroup: Option<BorrowedFd>,
    table: DescriptorTable,
) -> io::Result<i32> {
    // SAFETY: as the caller promised.
    unsafe {
        match cgroup.and_then(|cgroup| start_inside(&mut child, cgroup, table)) {
            Some(born) => born,
            None => start_here(&mut child, table),
        }
    }
}

/// As `start`, in this cgroup from the first instruction; none where that cannot be.
///
/// # Safety
/// As for `start`.
pub unsafe fn start_inside<F: FnMut() -> i32>(
    child: &mut F,
    cgroup: BorrowedFd,
    table: DescriptorTable,
) -> Option<io::Result<i32>> {
    let mut nest = Nest::new();
    // SAFETY: stack and word outlive the child's use of them: `see_off` waits until the child has left the memory, or keeps them.
    unsafe {
        let mut arguments: libc::clone_args = std::mem::zeroed();
        arguments.flags = table.flags() as u64 | CLONE_INTO_CGROUP;
        arguments.exit_signal = libc::SIGCHLD as u64;
        arguments.child_tid = nest.word() as u64;
        arguments.stack = nest.stack.as_mut_ptr() as u64;
        arguments.stack_size = STACK_BYTES as u64;
        arguments.cgroup = cgroup.as_raw_fd() as u64;
        let pid = clone(&mut arguments, run::<F>, (&raw mut *child).cast())?;
        Some(nest.see_off(pid))
    }
}

/// In this process's own cgroup, by a call that old kernels and containers know too.
unsafe fn start_here<F: FnMut() -> i32>(child: &mut F, table: DescriptorTable) -> io::Result<i32> {
    let mut nest = Nest::new();
    let (none, no_tls): (*mut libc::pid_t, *mut libc::c_void) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: as above; the stack grows down from its end.
    unsafe {
        let top = nest.stack.as_mut_ptr().cast::<u8>().add(STACK_BYTES).cast();
        let flags = table.flags() | libc::SIGCHLD;
        let pid = libc::clone(enter::<F>, top, flags, (&raw mut *child).cast(), none, no_tls, nest.word());
        nest.see_off(check(pid)?)
    }
}

impl DescriptorTable {
    fn flags(self) -> libc::c_int {
        let common = libc::CLONE_VM | libc::CLONE_CHILD_CLEARTID;
        match self {
            DescriptorTable::Own => common,
            DescriptorTable::Shared => common | libc::CLONE_FILES,
        }
    }
}

/// A child's stack, and the word that the kernel clears when the child has left this memory.
struct Nest {
    departure: Box<AtomicU32>,
    stack: Vec<u128>,
}

impl Nest {
    fn new() -> Self {
        Nest { departure: Box::new(AtomicU32::new(1)), stack: Vec::with_capacity(STACK_BYTES / size_of::<u128>()) }
    }

    fn word(&self) -> *mut libc::pid_t {
        self.departure.as_ptr().cast()
    }

    fn see_off(self, pid: i32) -> io::Result<i32> {
        if self.await_departure(pid) {
            return Ok(pid);
        }
        // It hangs in the kernel with its death before it: it runs none of our code any more, but has our memory.
        std::mem::forget(self);
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("process {pid} hangs before its program")))
    }

    /// Says whether the child has left. Until then this calls the kernel only, and not through the C library: the child has
    /// this thread's error number and heap.
    fn await_departure(&self, pid: i32) -> bool {
        let until = Instant::now() + PATIENCE;
        let mut n_stops = 0;
        while !self.has_left_within(LOOK_EVERY) {
            if is_stopped(pid) {
                n_stops += 1;
                send(pid, Signal::CONT);
            }
            if n_stops > STOPS_MAX || Instant::now() > until {
                send(pid, Signal::KILL);
                return self.has_left_within(DEATH_PATIENCE);
            }
        }
        true
    }

    fn has_left_within(&self, span: Duration) -> bool {
        let until = Instant::now() + span;
        while self.departure.load(Ordering::Acquire) != 0 {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(left) = Timespec::try_from(left) else { return false };
            if left.tv_sec == 0 && left.tv_nsec == 0 {
                return false;
            }
            // A wake, a signal and the end of the time are told apart by the word and the clock.
            let _ = futex::wait(&self.departure, futex::Flags::empty(), 1, Some(&left));
        }
        true
    }
}

fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Whether somebody has stopped it, or a debugger has. Allocates nothing.
fn is_stopped(pid: i32) -> bool {
    let mut path = *b"/proc/0000000000/stat\0";
    let mut rest = pid.unsigned_abs();
    // The digits stand at the end; slashes before them mean nothing.
    for place in path[6..16].iter_mut().rev() {
        *place = if rest > 0 { b'0' + (rest % 10) as u8 } else { b'/' };
        rest /= 10;
    }
    let Ok(path) = CStr::from_bytes_with_nul(&path) else { return false };
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(path, flags, rustix::fs::Mode::empty()) else { return false };
    let mut text = [0; 128];
    let length = rustix::io::read(&file, &mut text).unwrap_or(0);
    let state = text[..length].iter().rposition(|byte| *byte == b')').and_then(|at| text[..length].get(at + 2));
    matches!(state, Some(b'T' | b't'))
}

/// Starts a process with a memory of its own, which may take its time before it runs its program; in this cgroup, if any.
///
/// # Safety
/// This process must have one thread.
pub unsafe fn start_apart<F: FnMut() -> i32>(mut child: F, cgroup: Option<BorrowedFd>) -> io::Result<i32> {
    let context = (&raw mut child).cast();
    // SAFETY: as the caller promised; the child has its own copy of everything.
    unsafe {
        let inside = cgroup.and_then(|cgroup| {
            let mut stack: Vec<u128> = Vec::with_capacity(STACK_BYTES / size_of::<u128>());
            let mut arguments: libc::clone_args = std::mem::zeroed();
            arguments.flags = CLONE_INTO_CGROUP;
            arguments.exit_signal = libc::SIGCHLD as u64;
            arguments.stack = stack.as_mut_ptr() as u64;
            arguments.stack_size = STACK_BYTES as u64;
            arguments.cgroup = cgroup.as_raw_fd() as u64;
            clone(&mut arguments, run::<F>, context)
        });
        match inside {
            Some(pid) => Ok(pid),
            None => match check(libc::fork())? {
                0 => run::<F>(context),
                pid => Ok(pid),
            },
        }
    }
}

extern "C" fn enter<F: FnMut() -> i32>(context: *mut libc::c_void) -> libc::c_int {
    run::<F>(context)
}

extern "C" fn run<F: FnMut() -> i32>(context: *mut libc::c_void) -> ! {
    // SAFETY: `start` gives its own closure.
    unsafe {
        let child = &mut *context.cast::<F>();
        libc::_exit(child())
    }
}

type Entry = extern "C" fn(*mut libc::c_void) -> !;

#[cfg(target_arch = "x86_64")]
unsafe fn clone(arguments: &mut libc::clone_args, entry: Entry, context: *mut libc::c_void) -> Option<i32> {
    let result: isize;
    // SAFETY: the parent's registers are kept; the child begins with an aligned stack of its own and never returns.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r13",
            "call r12",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 as isize => result,
            in("rdi") arguments,
            in("rsi") size_of::<libc::clone_args>(),
            in("r12") entry,
            in("r13") context,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    (result > 0).then_some(result as i32)
}

#[cfg(target_arch = "aarch64")]
unsafe fn clone(arguments: &mut libc::clone_args, entry: Entry, context: *mut libc::c_void) -> Option<i32> {
    let result: isize;
    // SAFETY: the parent's registers are kept; the child begins with an aligned stack of its own and never returns.
    unsafe {
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x22",
            "blr x21",
            "brk #1",
            "2:",
            inlateout("x0") arguments => result,
            in("x1") size_of::<libc::clone_args>(),
            in("x8") libc::SYS_clone3,
            in("x21") entry,
            in("x22") context,
        );
    }
    (result > 0).then_some(result as i32)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn clone(_: &mut libc::clone_args, _: Entry, _: *mut libc::c_void) -> Option<i32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status_of(pid: i32) -> i32 {
        let mut status = -1;
        // SAFETY: `status` is valid, and the child is ours.
        unsafe { libc::waitpid(pid, &mut status, 0) };
        status
    }

    #[test]
    fn child_opens_files_in_the_parents_table() {
        let mut opened = -1;
        let open = || {
            // SAFETY: a plain system call on a NUL-ended path.
            opened = unsafe { libc::open(c"/proc/self/stat".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
            7
        };
        // SAFETY: the child makes one system call.
        let pid = unsafe { start(open, None, DescriptorTable::Shared) }.unwrap();
        assert_eq!(libc::WEXITSTATUS(status_of(pid)), 7);
        // SAFETY: plain calls on a descriptor that is open, and nobody else's.
        unsafe {
            assert_ne!(libc::fcntl(opened, libc::F_GETFD), -1);
            libc::close(opened);
        }
    }

    #[test]
    fn child_that_stops_for_ever_does_not_keep_its_parent() {
        let begun = Instant::now();
        let stop = || {
            loop {
                // SAFETY: plain system calls about the child itself.
                unsafe { libc::syscall(libc::SYS_kill, libc::syscall(libc::SYS_getpid), libc::SIGSTOP) };
            }
        };
        // SAFETY: the child makes system calls only.
        let pid = unsafe { start(stop, None, DescriptorTable::Own) }.unwrap();
        assert_eq!(libc::WTERMSIG(status_of(pid)), libc::SIGKILL);
        assert!(begun.elapsed() < PATIENCE / 10);
    }
}
