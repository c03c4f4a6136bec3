//! Files that `sbcast` brings, written with the rights of whoever brings them.
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};

use model::ask::Piece;
use wire::peer::Peer;

use crate::supervisor::Identity;
use crate::sys;

pub async fn write(caller: Peer, piece: Piece) -> Result<(), String> {
    as_caller(caller, move || put(&piece)).await
}

pub async fn make_directory(caller: Peer, path: String) -> Result<(), String> {
    as_caller(caller, move || match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && fs::symlink_metadata(&path)?.is_dir() => Ok(()),
        done => done,
    })
    .await
}

/// On a thread that takes on the caller's identity for good, and ends with it.
async fn as_caller(caller: Peer, work: impl FnOnce() -> io::Result<()> + Send + 'static) -> Result<(), String> {
    let own = sys::own_uid();
    if own != 0 && own != caller.uid {
        return Err(format!("this agent runs as uid {own} and cannot write files of uid {}", caller.uid));
    }
    let (tell, told) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().spawn(move || {
        let identity = Identity::look_up(caller.uid, caller.gid, "");
        let done = identity.assume_in_thread().and_then(|()| work());
        let _ = tell.send(done.map_err(|error| describe(&error)));
    });
    thread.map_err(|error| describe(&error))?;
    told.await.unwrap_or_else(|_| Err("the file could not be written".to_owned()))
}

fn put(piece: &Piece) -> io::Result<()> {
    let is_first = piece.offset == 0;
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
    match (is_first, piece.replaces) {
        (true, true) => options.create(true).truncate(true),
        (true, false) => options.create_new(true),
        (false, _) => &mut options,
    };
    let file = options.open(&piece.path)?;
    file.write_all_at(&piece.data, piece.offset)?;
    let Some(end) = &piece.last else { return Ok(()) };
    file.set_len(end.size)?;
    file.set_permissions(std::fs::Permissions::from_mode(end.mode & 0o7777))?;
    if let Some(times) = &end.times {
        let stamp = |secs| libc::timespec { tv_sec: secs, tv_nsec: 0 };
        let times = [stamp(times.accessed_secs), stamp(times.modified_secs)];
        // SAFETY: the descriptor and both stamps are valid.
        sys::check(unsafe { libc::futimens(file.as_raw_fd(), times.as_ptr()) })?;
    }
    Ok(())
}

fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
