//! Making a process the cheap way: it borrows the parent's memory, on a stack of its own, until it runs its program.
//!
//! Copying even a small parent's page tables, and the faults that follow in both, cost more than all else that a supervisor
//! does. A system call of its own, because no library function knows `CLONE_INTO_CGROUP`: the child is in its cgroup from its
//! first instruction.
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::sys::check;

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
const STACK_BYTES: usize = 64 * 1024;

/// Starts a process that runs `child`, which ends in an exec or an exit, and gives its id. The caller waits for that exec or exit.
///
/// # Safety
/// This process must have one thread, or `child` touch nothing that others use: it shares the memory.
pub unsafe fn start<F: FnMut() -> i32>(mut child: F) -> io::Result<i32> {
    // SAFETY: as the caller promised.
    unsafe {
        if let Some(pid) = clone_with(&mut child, |_| ()) {
            return Ok(pid);
        }
        // An old kernel, or a container that forbids the call.
        match check(libc::fork())? {
            0 => run::<F>((&raw mut child).cast()),
            pid => Ok(pid),
        }
    }
}

/// Starts a process with a memory of its own, which may take its time before it runs its program; in this cgroup, if any.
///
/// # Safety
/// This process must have one thread.
pub unsafe fn start_apart<F: FnMut() -> i32>(mut child: F, cgroup: Option<BorrowedFd>) -> io::Result<i32> {
    // SAFETY: as the caller promised.
    unsafe {
        let born = clone_with(&mut child, |arguments| {
            arguments.flags = 0;
            if let Some(cgroup) = cgroup {
                arguments.flags |= CLONE_INTO_CGROUP;
                arguments.cgroup = cgroup.as_raw_fd() as u64;
            }
        });
        match born {
            Some(pid) => Ok(pid),
            None => match check(libc::fork())? {
                0 => run::<F>((&raw mut child).cast()),
                pid => Ok(pid),
            },
        }
    }
}

/// As `start`, in this cgroup from the first instruction; none where that cannot be.
///
/// # Safety
/// As for `start`.
pub unsafe fn start_inside<F: FnMut() -> i32>(mut child: F, cgroup: BorrowedFd) -> Option<i32> {
    // SAFETY: as the caller promised.
    unsafe {
        clone_with(&mut child, |arguments| {
            arguments.flags |= CLONE_INTO_CGROUP;
            arguments.cgroup = cgroup.as_raw_fd() as u64;
        })
    }
}

unsafe fn clone_with<F: FnMut() -> i32>(child: &mut F, extend: impl FnOnce(&mut libc::clone_args)) -> Option<i32> {
    let mut stack: Vec<u128> = Vec::with_capacity(STACK_BYTES / size_of::<u128>());
    // SAFETY: the stack outlives the child's use of it, because this waits until the child has left the memory.
    unsafe {
        let mut arguments: libc::clone_args = std::mem::zeroed();
        arguments.flags = (libc::CLONE_VM | libc::CLONE_VFORK) as u64;
        arguments.exit_signal = libc::SIGCHLD as u64;
        arguments.stack = stack.as_mut_ptr() as u64;
        arguments.stack_size = STACK_BYTES as u64;
        extend(&mut arguments);
        clone(&mut arguments, run::<F>, (&raw mut *child).cast())
    }
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
