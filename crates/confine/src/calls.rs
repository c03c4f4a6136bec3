//! Calls by what they are for. A profile is a few of these lists; what is in none of them is refused.
use crate::call_filter::{CallFilter, Terms};

/// Memory, time, waiting, the process's own threads and signals, and its end.
const LIVING: &[libc::c_long] = &[
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_membarrier,
    libc::SYS_set_tid_address,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    libc::SYS_ppoll,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// What is open is read from, written to, looked at and closed.
const OPEN_FILES: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_close,
    libc::SYS_close_range,
];

/// Paths are looked at, and directories listed.
const LOOKING: &[libc::c_long] = &[
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
];

/// Files are opened in any way, made, filled, named, removed, and given modes, times and attributes.
const CHANGING: &[libc::c_long] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_symlinkat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_utimensat,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_sync_file_range,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_syncfs,
    libc::SYS_flock,
    libc::SYS_fcntl,
    libc::SYS_umask,
    libc::SYS_memfd_create,
    libc::SYS_fgetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_flistxattr,
    libc::SYS_fremovexattr,
];

/// On a socket that is there already; none is made or bound.
const TALKING: &[libc::c_long] = &[
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
];

/// What older machines have beside the calls above, for a C library that still uses it.
#[cfg(target_arch = "x86_64")]
mod older {
    pub const LIVING: &[libc::c_long] = &[libc::SYS_poll, libc::SYS_time, libc::SYS_arch_prctl];
    pub const OPEN_FILES: &[libc::c_long] = &[libc::SYS_dup2];
    pub const LOOKING: &[libc::c_long] =
        &[libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_readlink, libc::SYS_getdents];
    pub const CHANGING: &[libc::c_long] = &[
        libc::SYS_open,
        libc::SYS_mkdir,
        libc::SYS_rmdir,
        libc::SYS_unlink,
        libc::SYS_rename,
        libc::SYS_symlink,
        libc::SYS_chmod,
    ];
}
#[cfg(not(target_arch = "x86_64"))]
mod older {
    pub const LIVING: &[libc::c_long] = &[];
    pub const OPEN_FILES: &[libc::c_long] = &[];
    pub const LOOKING: &[libc::c_long] = &[];
    pub const CHANGING: &[libc::c_long] = &[];
}

/// What any process of ours needs that has begun: it makes threads, but no processes; it ends nobody but itself.
pub fn living() -> CallFilter {
    const NAMESPACES: libc::c_int = libc::CLONE_NEWNS
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    let threads = Terms::If {
        argument: 0,
        mask: (libc::CLONE_THREAD | NAMESPACES) as u32,
        values: vec![libc::CLONE_THREAD as u32],
    };
    let own = Terms::If { argument: 0, mask: u32::MAX, values: vec![std::process::id()] };
    let names = Terms::If {
        argument: 0,
        mask: u32::MAX,
        values: vec![libc::PR_SET_NAME as u32, libc::PR_GET_NAME as u32, libc::PR_GET_DUMPABLE as u32, PR_SET_VMA],
    };
    // The limits of others are not ours to see, or to set: 0 is this process, and no new limits come with it.
    let own_limits = Terms::If { argument: 2, mask: u32::MAX, values: vec![0] };
    CallFilter::default()
        .allow(LIVING)
        .allow(older::LIVING)
        .allow(OPEN_FILES)
        .allow(older::OPEN_FILES)
        .allow_if(libc::SYS_clone, threads)
        // Its flags are in memory, where no filter looks. Without it the C library takes clone.
        .allow_if(libc::SYS_clone3, Terms::Unknown)
        .allow_if(libc::SYS_tgkill, own)
        .allow_if(libc::SYS_prctl, names)
        .allow_if(libc::SYS_prlimit64, own_limits)
}

/// The allocator names its memory with it.
const PR_SET_VMA: u32 = 0x5356_4d41;

/// Copies trees, and speaks on sockets it was given.
pub fn mover() -> CallFilter {
    /// `FICLONE`, `FICLONERANGE`
    const CLONES_OF_FILES: [u32; 2] = [0x4004_9409, 0x4020_940d];
    let clones = Terms::If { argument: 1, mask: u32::MAX, values: CLONES_OF_FILES.to_vec() };
    living()
        .allow(LOOKING)
        .allow(older::LOOKING)
        .allow(CHANGING)
        .allow(older::CHANGING)
        .allow(TALKING)
        .allow_if(libc::SYS_ioctl, clones)
}

/// Reads files, computes, and ends its own group when it is no longer wanted.
pub fn reader() -> CallFilter {
    const WRITING: libc::c_int = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND;
    /// The part of O_TMPFILE that is no other flag.
    const NAMELESS: libc::c_int = libc::O_TMPFILE & !libc::O_DIRECTORY;
    let to_read = |argument| Terms::If { argument, mask: (WRITING | NAMELESS) as u32, values: vec![0] };
    let questions = Terms::If {
        argument: 1,
        mask: u32::MAX,
        values: [libc::F_GETFD, libc::F_SETFD, libc::F_GETFL, libc::F_DUPFD_CLOEXEC].map(|word| word as u32).to_vec(),
    };
    let own_group = Terms::If { argument: 0, mask: u32::MAX, values: vec![0] };
    let is_terminal = Terms::If { argument: 1, mask: u32::MAX, values: vec![libc::TCGETS as u32] };
    let filter = living()
        .allow(LOOKING)
        .allow(older::LOOKING)
        .allow(&[libc::SYS_fadvise64])
        .allow_if(libc::SYS_openat, to_read(2))
        .allow_if(libc::SYS_fcntl, questions)
        .allow_if(libc::SYS_ioctl, is_terminal)
        .allow_if(libc::SYS_kill, own_group);
    #[cfg(target_arch = "x86_64")]
    let filter = filter.allow_if(libc::SYS_open, to_read(1));
    filter.allow_if(libc::SYS_openat2, Terms::Unknown)
}
