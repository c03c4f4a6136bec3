//! What a mover is not to do, whoever has taken it over through a hostile tree: it opens, reads, writes and names files, and
//! needs nothing else of the kernel. A filter of system calls refuses the rest for good.
use std::io;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Running programs, other processes, other views of the machine, the network, keys, and what the kernel may be attacked through.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const REFUSED: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_pidfd_send_signal,
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept4,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_by_handle_at,
    libc::SYS_mknodat,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_personality,
    libc::SYS_seccomp,
];

/// For all threads of this process, and for good. The error says that this kernel, or this machine, has no such filters.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub fn confine() -> io::Result<()> {
    const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    const OTHER_INTERFACE: u32 = 0x4000_0000;
    /// Where the kernel shows the number of a call, and what machine it is of.
    const NUMBER: u32 = 0;
    const MACHINE: u32 = 4;
    let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let step = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let mut program = vec![
        step(LOAD_WORD, MACHINE),
        // Calls as of another machine have other numbers.
        libc::sock_filter { code: IF_EQUAL, jt: 1, jf: 0, k: ARCHITECTURE },
        step(RETURN, refusal),
        step(LOAD_WORD, NUMBER),
        // So have those of another interface of the same machine.
        libc::sock_filter { code: IF_AT_LEAST, jt: 0, jf: 1, k: OTHER_INTERFACE },
        step(RETURN, refusal),
    ];
    for number in REFUSED {
        program.push(libc::sock_filter { code: IF_EQUAL, jt: 0, jf: 1, k: *number as u32 });
        program.push(step(RETURN, refusal));
    }
    program.push(step(RETURN, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program outlives the call, which copies it; it ends with a return.
    let done = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const filter,
        )
    };
    match done {
        0 => Ok(()),
        // The number of a thread that could not follow.
        1.. => Err(io::Error::other("a thread has a filter of its own")),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether this kernel has such filters.
pub fn is_available() -> bool {
    const GET_ACTION_AVAILABLE: libc::c_long = 2;
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads one number.
    let known = unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAILABLE, 0, &raw const action) } == 0;
    known && cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn confine() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a confined process may do, asked in a child: the filter is for good.
    fn in_confined_child(ask: impl Fn() -> bool) -> bool {
        let mut status = 0;
        // SAFETY: the child makes system calls only, and ends.
        unsafe {
            let pid = libc::fork();
            if pid == 0 {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                libc::_exit(match confine().is_ok() && ask() {
                    true => 0,
                    false => 1,
                });
            }
            libc::waitpid(pid, &mut status, 0);
        }
        status == 0
    }

    fn is_refused(result: libc::c_long) -> bool {
        result == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
    }

    #[test]
    fn confined_process_opens_files_and_runs_nothing() {
        if !is_available() {
            eprintln!("skipped: this kernel filters no system calls");
            return;
        }
        // SAFETY: plain system calls on valid values.
        unsafe {
            assert!(in_confined_child(|| libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) >= 0));
            let no_words = [std::ptr::null()];
            let run = || libc::execve(c"/bin/true".as_ptr(), no_words.as_ptr(), no_words.as_ptr());
            assert!(in_confined_child(|| is_refused(run().into())));
            assert!(in_confined_child(|| is_refused(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0).into())));
            assert!(in_confined_child(|| is_refused(libc::kill(libc::getppid(), 0).into())));
            assert!(in_confined_child(|| is_refused(libc::unshare(libc::CLONE_NEWUSER).into())));
        }
    }
}
