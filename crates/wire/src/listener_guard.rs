//! Who is at the other end of a daemon's socket. A path proves nothing: while a daemon is down, others may listen there.
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use libc::{SO_PEERCRED, SOL_SOCKET, socklen_t, ucred};

use crate::refusal::CallError;

const STRANGER: &str =
    "listens there, who is neither root, nor you, nor the owner of the configuration: nothing is said to that process";
/// Others may write here, or its group.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Fails if the listener is a stranger: not root, not the caller, not `owner` (of the configuration), and not the one to whom
/// root gave the directory in which the socket lies.
pub fn check(stream: BorrowedFd<'_>, socket: &Path, owner: Option<u32>) -> io::Result<()> {
    let uid = listener_of(stream)?;
    // SAFETY: geteuid cannot fail.
    let own = unsafe { libc::geteuid() };
    if uid == 0 || uid == own || Some(uid) == owner || was_given(socket, uid) {
        return Ok(());
    }
    let text = format!("the user {uid} {STRANGER}");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// What is wrong with a socket: a stranger's is said as it is, whatever else keeps a call from being made as Slurm says it.
pub(crate) fn error_of(socket: &Path, why: String) -> CallError {
    match why.contains(STRANGER) {
        true => CallError::Other(format!("{}: {why}", socket.display())),
        false => CallError::Unreachable { socket: socket.into(), why },
    }
}

/// The kernel noted it when the listener began to listen.
fn listener_of(stream: BorrowedFd<'_>) -> io::Result<u32> {
    let mut credentials = ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut size = size_of::<ucred>() as socklen_t;
    // SAFETY: the structure is ours, and as large as we say.
    let told = unsafe {
        libc::getsockopt(stream.as_raw_fd(), SOL_SOCKET, SO_PEERCRED, (&raw mut credentials).cast(), &raw mut size)
    };
    if told == 0 { Ok(credentials.uid) } else { Err(io::Error::last_os_error()) }
}

/// A directory on the way is this user's, and nobody but root could have put it there.
fn was_given(socket: &Path, uid: u32) -> bool {
    let Some(dir) = socket.parent().and_then(|dir| dir.canonicalize().ok()) else { return false };
    let mut from_root = dir.ancestors().collect::<Vec<_>>().into_iter().rev();
    from_root
        .find_map(|dir| {
            let Ok(found) = dir.symlink_metadata() else { return Some(false) };
            match found.uid() {
                owner if owner == uid => Some(true),
                0 if found.mode() & WRITABLE_BY_OTHERS == 0 => None,
                _ => Some(false),
            }
        })
        .unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    /// Listens as this user, on a thread whose identity alone is changed.
    fn listening_as(uid: u32, socket: &Path) -> UnixListener {
        let socket = socket.to_owned();
        let listen = move || {
            // SAFETY: a plain system call, of this thread only.
            assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, -1, uid, -1) }, 0);
            UnixListener::bind(socket).unwrap()
        };
        std::thread::spawn(listen).join().unwrap()
    }

    #[test]
    fn listener_must_be_known_or_have_the_directory_from_root() {
        // SAFETY: geteuid cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            eprintln!("skipped: only root has several users");
            return;
        }
        let public = std::env::temp_dir().join(format!("spur-guard-{}", std::process::id()));
        std::fs::create_dir(&public).unwrap();
        std::fs::set_permissions(&public, std::fs::Permissions::from_mode(0o1777)).unwrap();
        for (uid, owner, is_known) in
            [(0, None, true), (12_345, None, false), (12_345, Some(12_345), true), (12_345, Some(7), false)]
        {
            let socket = public.join(format!("{uid}-{owner:?}"));
            let _listener = listening_as(uid, &socket);
            let stream = UnixStream::connect(&socket).unwrap();
            assert_eq!(check(stream.as_fd(), &socket, owner).is_ok(), is_known, "{uid} {owner:?}");
        }
        std::fs::remove_dir_all(&public).unwrap();
        // Root gave this one away, in a directory of its own.
        let given = Path::new("/run").join(format!("spur-guard-{}", std::process::id()));
        if std::fs::create_dir(&given).is_ok() {
            std::os::unix::fs::chown(&given, Some(12_345), None).unwrap();
            assert!(was_given(&given.join("a.sock"), 12_345));
            assert!(!was_given(&given.join("a.sock"), 12_346));
            std::fs::remove_dir(&given).unwrap();
        }
    }
}
