//! Thin safe covers of the few system calls that std does not have.
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

pub fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_size(result: isize) -> io::Result<usize> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

/// Takes the ownership of a descriptor that a system call has just given.
fn own(fd: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is new and nobody else knows of it.
    check(fd).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

#[derive(Clone, Copy)]
pub enum SocketKind {
    Stream,
    Packets,
}

pub fn socket_pair(kind: SocketKind) -> io::Result<(OwnedFd, OwnedFd)> {
    let kind = match kind {
        SocketKind::Stream => libc::SOCK_STREAM,
        SocketKind::Packets => libc::SOCK_SEQPACKET,
    };
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors.
    check(unsafe { libc::socketpair(libc::AF_UNIX, kind | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()) })?;
    Ok((own(ends[0])?, own(ends[1])?))
}

pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    Ok((own(ends[0])?, own(ends[1])?))
}

pub fn read(fd: BorrowedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is valid for its length.
    check_size(unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) })
}

pub fn write(fd: BorrowedFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the bytes are valid for their length.
    check_size(unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) })
}

pub fn set_nonblocking(fd: BorrowedFd) -> io::Result<()> {
    // SAFETY: plain flag calls on a valid descriptor.
    unsafe {
        let flags = check(libc::fcntl(fd.as_raw_fd(), libc::F_GETFL))?;
        check(libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK))?;
    }
    Ok(())
}

const CONTROL_BYTES: usize = 64;
const FDS_MAX: usize = 4;

#[repr(align(8))]
struct ControlSpace([u8; CONTROL_BYTES]);

/// Sends one packet, or as much of a stream as goes, with descriptors; never blocks.
pub fn send_with_fds(socket: BorrowedFd, bytes: &[u8], fds: &[RawFd]) -> io::Result<usize> {
    assert!(fds.len() <= FDS_MAX);
    let mut space = ControlSpace([0; CONTROL_BYTES]);
    let mut slice = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
    let fds_bytes = mem::size_of_val(fds) as u32;
    // SAFETY: all pointers are to live values; the control space is large enough for FDS_MAX descriptors.
    unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &mut slice;
        message.msg_iovlen = 1;
        message.msg_control = space.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(fds_bytes) as _;
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(fds_bytes) as _;
        std::ptr::copy_nonoverlapping(fds.as_ptr(), libc::CMSG_DATA(header).cast(), fds.len());
        check_size(libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT))
    }
}

/// Receives one packet, or what there is of a stream, with the descriptors that came along; zero bytes is the end.
pub fn receive_with_fds(socket: BorrowedFd, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = ControlSpace([0; CONTROL_BYTES]);
    let mut slice = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut fds = Vec::new();
    // SAFETY: all pointers are to live values; descriptors are taken over exactly once.
    unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &mut slice;
        message.msg_iovlen = 1;
        message.msg_control = space.0.as_mut_ptr().cast();
        message.msg_controllen = CONTROL_BYTES as _;
        let length = check_size(libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC))?;
        let mut header = libc::CMSG_FIRSTHDR(&message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let data: *const RawFd = libc::CMSG_DATA(header).cast();
                for index in 0..bytes / mem::size_of::<RawFd>() {
                    fds.push(OwnedFd::from_raw_fd(data.add(index).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(&message, header);
        }
        Ok((length, fds))
    }
}

/// Waits for one of the descriptors, at most so many milliseconds; -1 is for ever. Interruptions count as nothing ready.
pub fn poll(fds: &mut [libc::pollfd], timeout_millis: i32) {
    // SAFETY: the slice is valid for its length.
    if unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as _, timeout_millis) } < 0 {
        fds.iter_mut().for_each(|fd| fd.revents = 0);
    }
}

/// Takes the lock that dies with the last copy of this open file; false if somebody else has it.
pub fn try_lock(file: BorrowedFd) -> bool {
    // SAFETY: plain call on a valid descriptor.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

pub fn kill(pid: i32, signal: i32) {
    // SAFETY: plain call; a process that is gone is no error.
    unsafe { libc::kill(pid, signal) };
}

pub fn own_uid() -> u32 {
    // SAFETY: cannot fail.
    unsafe { libc::geteuid() }
}

pub fn monotonic_millis() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}

/// The project that a file or directory counts for, as the file system keeps it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Project {
    flags: u32,
    extent_size: u32,
    n_extents: u32,
    pub id: u32,
    cow_extent_size: u32,
    unused: [u8; 8],
}

impl Project {
    const GET: libc::c_ulong = 0x801c_581f;
    const SET: libc::c_ulong = 0x401c_5820;
    /// What is made in the directory counts for its project.
    const INHERITED: u32 = 0x200;

    pub fn of(file: BorrowedFd) -> io::Result<Project> {
        // SAFETY: plain numbers, for which zeroes are values.
        let mut project: Project = unsafe { mem::zeroed() };
        // SAFETY: the kernel writes one struct of this size.
        check(unsafe { libc::ioctl(file.as_raw_fd(), Project::GET as _, &mut project) })?;
        Ok(project)
    }

    pub fn become_project(self, directory: BorrowedFd, id: u32) -> io::Result<()> {
        Project { id, flags: self.flags | Project::INHERITED, ..self }.set(directory)
    }

    /// Whatever counts for another project may be moved into a directory that hands on none.
    pub fn hand_on_none(self, directory: BorrowedFd) -> io::Result<()> {
        match self.flags & Project::INHERITED {
            0 => Ok(()),
            _ => Project { flags: self.flags & !Project::INHERITED, ..self }.set(directory),
        }
    }

    /// As it was read.
    pub fn set(self, file: BorrowedFd) -> io::Result<()> {
        // SAFETY: the kernel reads one struct of this size.
        check(unsafe { libc::ioctl(file.as_raw_fd(), Project::SET as _, &self) }).map(drop)
    }
}

/// What a project has and may have.
pub struct ProjectUse {
    pub held_bytes: u64,
    /// Files and directories.
    pub n_held: u64,
    /// Zero: without end.
    pub limit_bytes: u64,
}

const QUOTA_BLOCK: u64 = 1024;

pub fn project_use(on: BorrowedFd, project: u32) -> io::Result<ProjectUse> {
    // SAFETY: plain numbers, for which zeroes are values.
    let mut quota: libc::dqblk = unsafe { mem::zeroed() };
    project_quota(libc::Q_GETQUOTA, on, project, &mut quota)?;
    Ok(ProjectUse {
        held_bytes: quota.dqb_curspace,
        n_held: quota.dqb_curinodes,
        limit_bytes: quota.dqb_bhardlimit * QUOTA_BLOCK,
    })
}

/// Zero: without end.
pub fn limit_project(on: BorrowedFd, project: u32, bytes: u64) -> io::Result<()> {
    const BLOCK_LIMITS: u32 = 1;
    let blocks = bytes.div_ceil(QUOTA_BLOCK);
    // SAFETY: plain numbers, for which zeroes are values.
    let quota: libc::dqblk = unsafe { mem::zeroed() };
    let mut quota = libc::dqblk { dqb_bhardlimit: blocks, dqb_bsoftlimit: blocks, dqb_valid: BLOCK_LIMITS, ..quota };
    project_quota(libc::Q_SETQUOTA, on, project, &mut quota)
}

fn project_quota(command: libc::c_int, on: BorrowedFd, project: u32, quota: &mut libc::dqblk) -> io::Result<()> {
    const OF_PROJECTS: libc::c_int = 2;
    let command = (command << 8) | OF_PROJECTS;
    // SAFETY: the kernel reads or writes one struct of this size; the descriptor is open.
    let result = unsafe { libc::syscall(libc::SYS_quotactl_fd, on.as_raw_fd(), command, project, quota as *mut _) };
    check(result as libc::c_int).map(drop)
}
