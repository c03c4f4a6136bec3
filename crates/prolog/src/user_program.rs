//! Programs that the controller starts for users (triggers) or for the site (mail): this binary, executed once more as root, gives
//! up what it has inherited, becomes the user for good, and then that program. The daemon waits for the first exec only, in
//! which nobody but root has a say: a child that is the user's before its exec could be stopped by the user, and the daemon
//! with it. Nor is a large daemon's memory mapped twice for it.
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::inheritance::{clean_environment, reset_own};

/// What it is called.
pub const NAME: &str = "spuruser";
/// In the place of a number: as the daemon is.
const SAME: &str = "-";

/// Who to be.
pub struct ProgramUser<'a> {
    pub uid: u32,
    pub gid: u32,
    pub groups: &'a [u32],
}

/// The program with these arguments, in a session of its own, with a clean environment.
pub fn user_program(executable: &Path, user: &ProgramUser, program: &str) -> Command {
    let groups = user.groups.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    prepared(executable, [user.uid.to_string(), user.gid.to_string(), groups], program)
}

/// The same as whoever the daemon is.
pub fn own_program(executable: &Path, program: &str) -> Command {
    prepared(executable, [SAME, SAME, SAME].map(str::to_string), program)
}

fn prepared(executable: &Path, identity: [String; 3], program: &str) -> Command {
    let mut command = Command::new(executable);
    command.arg0(NAME).args(identity).arg(program);
    clean_environment(&mut command);
    command
}

/// Gives the status to exit with, where the program could not be run.
pub fn serve(mut arguments: impl Iterator<Item = OsString>) -> i32 {
    const NOT_FOUND: i32 = 127;
    const NOT_RUN: i32 = 126;
    let mut text = || arguments.next()?.into_string().ok();
    let told = (|| {
        let (uid, gid, groups) = (text()?, text()?, text()?);
        if [&uid, &gid, &groups].iter().all(|word| *word == SAME) {
            return Some(None);
        }
        let groups = groups.split(',').filter(|group| !group.is_empty()).map(str::parse);
        Some(Some((uid.parse().ok()?, gid.parse().ok()?, groups.collect::<Result<Vec<u32>, _>>().ok()?)))
    })();
    let (Some(told), Some(program)) = (told, arguments.next()) else {
        eprintln!("{NAME}: started by a daemon only");
        return NOT_RUN;
    };
    reset_own();
    // SAFETY: a plain call; a leader of a group that exists already stays in its session.
    unsafe { libc::setsid() };
    let done = told.map_or(Ok(()), |(uid, gid, groups)| become_user(&ProgramUser { uid, gid, groups: &groups }));
    let error = done.err().unwrap_or_else(|| Command::new(&program).args(arguments).exec());
    eprintln!("{NAME}: {}: {error}", OsStr::new(&program).display());
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN }
}

/// For good. Only root can become somebody else; what others start stays theirs.
fn become_user(user: &ProgramUser) -> io::Result<()> {
    let check = |result: libc::c_int| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: plain calls on valid values.
    unsafe {
        if libc::geteuid() != 0 {
            return Ok(());
        }
        check(libc::setgroups(user.groups.len(), user.groups.as_ptr()))?;
        check(libc::setresgid(user.gid, user.gid, user.gid))?;
        check(libc::setresuid(user.uid, user.uid, user.uid))?;
        check(libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0))
    }
}
