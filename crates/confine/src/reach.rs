//! Paths that a process may still open: below a few directories, and nothing else (landlock). What is open stays
//! open. Where the kernel can, it keeps the process from TCP, from sockets without a path and from signals to others,
//! too.
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const SYS_CREATE: libc::c_long = 444;
const SYS_ADD_RULE: libc::c_long = 445;
const SYS_RESTRICT: libc::c_long = 446;
const ASK_VERSION: libc::c_uint = 1;
const RULE_BENEATH: libc::c_int = 1;

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_BLOCK: u64 = 1 << 11;
const MAKE_SYM: u64 = 1 << 12;
/// Since version 2, 3 and 5.
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

const FIRST_VERSION: u64 = EXECUTE
    | WRITE_FILE
    | READ_FILE
    | READ_DIR
    | REMOVE_DIR
    | REMOVE_FILE
    | MAKE_CHAR
    | MAKE_DIR
    | MAKE_REG
    | MAKE_SOCK
    | MAKE_FIFO
    | MAKE_BLOCK
    | MAKE_SYM;
/// What a file, other than a directory, can be named with.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
/// Binding and connecting.
const TCP: u64 = 3;
/// Sockets without a path, and signals.
const SCOPES: u64 = 3;

/// What may be done with a directory and all below it, or with one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Names only.
    List,
    Read,
    /// Reading and writing, making, renaming and removing; no devices, sockets or pipes are made.
    Change,
}

impl Access {
    fn rights(self) -> u64 {
        match self {
            Access::List => READ_DIR,
            Access::Read => READ_DIR | READ_FILE,
            Access::Change => {
                let names = REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SYM | REFER;
                READ_DIR | READ_FILE | WRITE_FILE | TRUNCATE | names
            }
        }
    }
}

/// As the kernel reads it; older kernels know less of the end, which must then be zero or not be there.
#[repr(C)]
struct Handled {
    files: u64,
    network: u64,
    scopes: u64,
}

#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    parent: i32,
}

/// The paths that are left.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reach {
    rules: Vec<(PathBuf, Access)>,
}

impl Reach {
    pub fn allow(&mut self, path: impl Into<PathBuf>, access: Access) {
        let rule = (path.into(), access);
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
    }

    /// For this thread and those that it starts, and for good: call it before there are others. A path that cannot be
    /// found now is not reached later. Without landlock in the kernel nothing happens.
    pub fn restrict(&self) -> io::Result<()> {
        let version = version();
        if version == 0 {
            return Ok(());
        }
        let newer = [(2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)];
        let files = newer.iter().filter(|(since, _)| version >= *since).fold(FIRST_VERSION, |all, (_, one)| all | one);
        let network = if version >= 4 { TCP } else { 0 };
        let handled = Handled { files, network, scopes: if version >= 6 { SCOPES } else { 0 } };
        let size = match version {
            ..4 => 8,
            4..6 => 16,
            _ => size_of::<Handled>(),
        };
        // SAFETY: the kernel reads `size` bytes of a value that lives; the new descriptor is ours alone.
        let ruleset = unsafe {
            let fd = checked(libc::syscall(SYS_CREATE, &raw const handled, size, 0))?;
            OwnedFd::from_raw_fd(fd as i32)
        };
        for (path, access) in &self.rules {
            let Some((parent, is_directory)) = find(path) else { continue };
            let allowed = access.rights() & files & if is_directory { u64::MAX } else { OF_FILES };
            if allowed == 0 {
                continue;
            }
            let rule = Beneath { allowed, parent: parent.as_raw_fd() };
            // SAFETY: both descriptors are open, and the rule lives.
            let added = unsafe { libc::syscall(SYS_ADD_RULE, ruleset.as_raw_fd(), RULE_BENEATH, &raw const rule, 0) };
            checked(added)?;
        }
        // SAFETY: a plain call on an open descriptor.
        checked(unsafe { libc::syscall(SYS_RESTRICT, ruleset.as_raw_fd(), 0) }).map(|_| ())
    }
}

/// The version of landlock that this kernel has; 0: none, or none for us.
pub fn version() -> u32 {
    // SAFETY: the kernel reads nothing.
    let found = unsafe { libc::syscall(SYS_CREATE, std::ptr::null::<u8>(), 0usize, ASK_VERSION) };
    u32::try_from(found).unwrap_or(0)
}

/// Links are followed as whoever opens the path later follows them. A dot behind a directory has it mounted, if it is
/// one of those that are mounted when they are used.
fn find(path: &Path) -> Option<(OwnedFd, bool)> {
    let at = |path: &Path, flags: libc::c_int| {
        let path = CString::new(path.as_os_str().as_bytes()).ok()?;
        // SAFETY: the path ends with a zero; a new descriptor is ours alone.
        unsafe {
            let fd = libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC | flags);
            (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
        }
    };
    at(&path.join("."), libc::O_DIRECTORY).map(|fd| (fd, true)).or_else(|| at(path, 0).map(|fd| (fd, false)))
}

fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
