//! What a confined process tries and does not get, asked in children: both confinements are for good.
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use confine::{Access, CallFilter, Reach, call_filter, calls, give_up_new_rights, reach};

/// Fails with this error, or does not.
fn has_failed(result: libc::c_long, errno: i32) -> bool {
    result == -1 && io::Error::last_os_error().raw_os_error() == Some(errno)
}

/// The filter is made in the child: it knows its process by number.
fn in_child(filter: impl Fn() -> Option<CallFilter>, reach: Option<&Reach>, ask: impl Fn() -> bool) -> bool {
    let mut status = 0;
    // SAFETY: the child of a process that waits for it; it answers with its status.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            let is_confined = give_up_new_rights().is_ok()
                && reach.is_none_or(|reach| reach.restrict().is_ok())
                && filter().is_none_or(|filter| filter.install().is_ok());
            libc::_exit(if is_confined && ask() { 0 } else { 1 });
        }
        libc::waitpid(pid, &mut status, 0);
    }
    status == 0
}

struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("confine-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("own")).unwrap();
        fs::create_dir_all(path.join("other")).unwrap();
        fs::write(path.join("own/file"), "own").unwrap();
        fs::write(path.join("other/file"), "other").unwrap();
        TemporaryFolder(path)
    }

    fn path(&self, name: &str) -> CString {
        CString::new(self.0.join(name).as_os_str().as_bytes()).unwrap()
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

type Attempt = (&'static str, fn() -> libc::c_long);

/// Whoever has taken a process over tries these first.
const ATTEMPTS: &[Attempt] = &[
    ("socket", || unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0).into() }),
    ("local socket", || unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0).into() }),
    ("exec", || unsafe {
        let none = [std::ptr::null()];
        libc::execve(c"/bin/true".as_ptr(), none.as_ptr(), none.as_ptr()).into()
    }),
    ("fork", || unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) }),
    ("thread in new namespaces", || unsafe {
        libc::syscall(libc::SYS_clone, libc::CLONE_THREAD | libc::CLONE_NEWUSER, 0, 0, 0, 0)
    }),
    ("ptrace", || unsafe { libc::syscall(libc::SYS_ptrace, libc::PTRACE_SEIZE, libc::getppid(), 0, 0) }),
    ("kill", || unsafe { libc::kill(libc::getppid(), 0).into() }),
    ("kill of a group", || unsafe { libc::kill(-libc::getpgrp(), 0).into() }),
    ("tkill", || unsafe { libc::syscall(libc::SYS_tkill, libc::getppid(), 0) }),
    ("tgkill", || unsafe { libc::syscall(libc::SYS_tgkill, libc::getppid(), libc::getppid(), 0) }),
    ("rt_sigqueueinfo", || unsafe { libc::syscall(libc::SYS_rt_sigqueueinfo, libc::getppid(), 0, 0) }),
    ("rt_tgsigqueueinfo", || unsafe {
        libc::syscall(libc::SYS_rt_tgsigqueueinfo, libc::getppid(), libc::getppid(), 0, 0)
    }),
    ("pidfd_open", || unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getppid(), 0) }),
    ("process_vm_readv", || unsafe { libc::syscall(libc::SYS_process_vm_readv, libc::getppid(), 0, 0, 0, 0, 0) }),
    ("limits of another", || unsafe { libc::syscall(libc::SYS_prlimit64, libc::getppid(), 7, 1, 0) }),
    ("unshare", || unsafe { libc::unshare(libc::CLONE_NEWUSER).into() }),
    ("setns", || unsafe { libc::setns(0, 0).into() }),
    ("mount", || unsafe { libc::syscall(libc::SYS_mount, 0, 0, 0, 0, 0) }),
    ("fsopen", || unsafe { libc::syscall(libc::SYS_fsopen, 0, 0) }),
    ("fsconfig", || unsafe { libc::syscall(libc::SYS_fsconfig, 0, 0, 0, 0, 0) }),
    ("open_tree", || unsafe { libc::syscall(libc::SYS_open_tree, 0, 0, 0) }),
    ("chroot", || unsafe { libc::chroot(c"/".as_ptr()).into() }),
    ("chdir", || unsafe { libc::chdir(c"/".as_ptr()).into() }),
    ("device", || unsafe { libc::mknod(c"/tmp/confine-device".as_ptr(), libc::S_IFCHR, 0).into() }),
    ("handle of a file", || unsafe { libc::syscall(libc::SYS_open_by_handle_at, 0, 0, 0) }),
    ("setuid", || unsafe { libc::syscall(libc::SYS_setresuid, 0, 0, 0) }),
    ("io_uring", || unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, 0) }),
    ("bpf", || unsafe { libc::syscall(libc::SYS_bpf, 0, 0, 0) }),
    ("perf", || unsafe { libc::syscall(libc::SYS_perf_event_open, 0, 0, 0, 0, 0) }),
    ("userfaultfd", || unsafe { libc::syscall(libc::SYS_userfaultfd, 0) }),
    ("keys", || unsafe { libc::syscall(libc::SYS_keyctl, 0, 0, 0, 0, 0) }),
    ("terminal input", || unsafe { libc::ioctl(0, libc::TIOCSTI, c"x".as_ptr()).into() }),
    ("tracing of system calls", || unsafe { libc::syscall(libc::SYS_seccomp, 0, 0, 0) }),
    ("rights back", || unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0).into() }),
];

#[test]
fn forbidden_calls_fail_for_movers_and_readers() {
    if !call_filter::is_available() {
        return eprintln!("skipped: this kernel filters no system calls");
    }
    for (name, attempt) in ATTEMPTS {
        for (who, filter) in [("mover", calls::mover as fn() -> CallFilter), ("reader", calls::reader)] {
            assert!(in_child(|| Some(filter()), None, || has_failed(attempt(), libc::EPERM)), "{who}: {name}");
        }
    }
    for filter in [calls::mover, calls::reader] {
        let by_memory = || unsafe { libc::syscall(libc::SYS_clone3, 0, 0) };
        assert!(in_child(|| Some(filter()), None, || has_failed(by_memory(), libc::ENOSYS)), "clone3");
        // SAFETY: the child waits for a thread of its own, and asks about itself.
        assert!(in_child(|| Some(filter()), None, || std::thread::spawn(|| 7).join().is_ok()), "threads");
        let to_itself = || unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), 0) } == 0;
        assert!(in_child(|| Some(filter()), None, to_itself), "signals to itself");
    }
}

#[test]
fn reader_writes_nothing_even_without_landlock() {
    if !call_filter::is_available() {
        return eprintln!("skipped: this kernel filters no system calls");
    }
    let folder = TemporaryFolder::new("reader");
    let (file, fresh) = (folder.path("own/file"), folder.path("own/fresh"));
    let open = |path: &CString, flags| unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    let is_refused = |result: libc::c_int| has_failed(result.into(), libc::EPERM);
    let asked = |ask: &dyn Fn() -> bool| in_child(|| Some(calls::reader()), None, ask);
    assert!(asked(&|| open(&file, libc::O_RDONLY | libc::O_CLOEXEC) >= 0));
    for flags in [libc::O_WRONLY, libc::O_RDWR, libc::O_RDONLY | libc::O_TRUNC, libc::O_RDONLY | libc::O_CREAT] {
        assert!(asked(&|| is_refused(open(&file, flags))), "{flags:o}");
    }
    assert!(asked(&|| is_refused(open(&fresh, libc::O_WRONLY | libc::O_CREAT))));
    assert!(asked(&|| is_refused(unsafe { libc::unlink(file.as_ptr()) })));
    assert!(asked(&|| is_refused(unsafe { libc::rename(file.as_ptr(), fresh.as_ptr()) })));
    assert!(asked(&|| is_refused(unsafe { libc::mkdir(fresh.as_ptr(), 0o700) })));
    assert!(asked(&|| is_refused(unsafe { libc::chmod(file.as_ptr(), 0o777) })));
    assert_eq!(fs::read_to_string(Path::new(&folder.0).join("own/file")).unwrap(), "own");
}

#[test]
fn paths_outside_the_reach_cannot_be_opened() {
    let version = reach::version();
    if version == 0 {
        return eprintln!("skipped: this kernel has no landlock");
    }
    let folder = TemporaryFolder::new("reach");
    let own = folder.0.join("own");
    let open = |path: &CString, flags| unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    let may = |access: Access, name: &str, flags: libc::c_int| {
        let mut reach = Reach::default();
        reach.allow(&own, access);
        reach.allow("/there/is/no/such/path", access);
        let path = folder.path(name);
        in_child(|| None, Some(&reach), || open(&path, flags) >= 0)
    };
    let refused = |access, name: &str, flags| {
        let mut reach = Reach::default();
        reach.allow(&own, access);
        let path = folder.path(name);
        in_child(|| None, Some(&reach), || has_failed(open(&path, flags).into(), libc::EACCES))
    };
    let (read, write, list) = (libc::O_RDONLY, libc::O_WRONLY, libc::O_RDONLY | libc::O_DIRECTORY);
    for access in [Access::List, Access::Read, Access::Change] {
        assert!(may(access, "own", list), "{access:?}");
        assert!(refused(access, "other", list) && refused(access, "other/file", read), "{access:?}");
        assert!(refused(access, "other/file", write) && refused(access, "other/new", write | libc::O_CREAT));
        assert!(refused(access, "own/../other/file", read), "{access:?}");
        assert!(refused(access, "../../etc/hostname", read) || !Path::new("/etc/hostname").exists());
    }
    assert!(refused(Access::List, "own/file", read) && refused(Access::Read, "own/file", write));
    assert!(may(Access::Read, "own/file", read) && may(Access::Change, "own/file", libc::O_RDWR));
    assert!(may(Access::Change, "own/new", write | libc::O_CREAT));
    std::os::unix::fs::symlink(folder.0.join("other/file"), folder.0.join("own/link")).unwrap();
    assert!(refused(Access::Change, "own/link", read), "a link leads nowhere");

    let mut one_file = Reach::default();
    one_file.allow(folder.0.join("other/file"), Access::Read);
    let (file, beside) = (folder.path("other/file"), folder.path("own/file"));
    assert!(in_child(|| None, Some(&one_file), || open(&file, read) >= 0 && open(&beside, read) < 0));
    if version >= 6 {
        // SAFETY: plain calls on plain numbers.
        let to_parent = || has_failed(unsafe { libc::kill(libc::getppid(), 0) }.into(), libc::EPERM);
        assert!(in_child(|| None, Some(&one_file), to_parent), "signals to others");
    }
}
