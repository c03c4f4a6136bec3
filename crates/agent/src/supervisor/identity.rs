//! Who a job runs as.
use std::io;

use wire::accounts;

use crate::sys::{self, check};

#[derive(Clone, Debug, Default)]
pub struct Identity {
    pub uid: u32,
    pub gid: u32,
    groups: Vec<libc::gid_t>,
    pub user: String,
    pub home: String,
    pub shell: String,
}

impl Identity {
    /// Asks this machine's databases. A user they do not know has the one group and the home `/`; whoever else bears that name
    /// here is somebody else.
    pub fn look_up(uid: u32, gid: u32, user: &str) -> Self {
        let mut identity =
            Identity { uid, gid, groups: vec![gid], user: user.to_owned(), home: "/".into(), shell: "/bin/sh".into() };
        if let Some(account) = accounts::account(uid) {
            if sys::own_uid() == 0 {
                identity.groups = accounts::groups_of(&account.name, gid);
            }
            (identity.user, identity.home, identity.shell) = (account.name, account.home, account.shell);
        }
        identity
    }

    pub fn groups(&self) -> &[libc::gid_t] {
        &self.groups
    }

    fn is_change(&self) -> bool {
        sys::own_uid() == 0
    }

    /// For good; only in a child that is about to run the job's program.
    pub fn assume(&self) -> io::Result<()> {
        if !self.is_change() {
            return Ok(());
        }
        // SAFETY: plain calls on valid values.
        unsafe {
            check(libc::setgroups(self.groups.len(), self.groups.as_ptr()))?;
            check(libc::setresgid(self.gid, self.gid, self.gid))?;
            check(libc::setresuid(self.uid, self.uid, self.uid))?;
        }
        Ok(())
    }

    /// For good, and for the calling thread only: the C library would change all threads of this process.
    pub fn assume_in_thread(&self) -> io::Result<()> {
        if !self.is_change() {
            return Ok(());
        }
        let call = |result: libc::c_long| check(result as libc::c_int);
        // SAFETY: plain system calls on valid values.
        unsafe {
            call(libc::syscall(libc::SYS_setgroups, self.groups.len(), self.groups.as_ptr()))?;
            call(libc::syscall(libc::SYS_setresgid, self.gid, self.gid, self.gid))?;
            call(libc::syscall(libc::SYS_setresuid, self.uid, self.uid, self.uid))?;
        }
        Ok(())
    }

    /// Does something with this user's rights to files, then goes back.
    pub fn act<T>(&self, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        const KEEP: u32 = u32::MAX;
        if !self.is_change() || self.uid == 0 {
            return action();
        }
        // SAFETY: plain calls on valid values; this process has one thread.
        unsafe {
            check(libc::setgroups(self.groups.len(), self.groups.as_ptr()))?;
            check(libc::setresgid(KEEP, self.gid, KEEP))?;
            check(libc::setresuid(KEEP, self.uid, KEEP))?;
        }
        let result = action();
        // SAFETY: as above. Going back cannot fail for a process whose real user is root; if it did, going on would be wrong.
        unsafe {
            check(libc::setresuid(KEEP, 0, KEEP)).expect("root may become root again");
            check(libc::setresgid(KEEP, 0, KEEP)).expect("root may take its group again");
            check(libc::setgroups(0, std::ptr::null())).expect("root may drop groups");
        }
        result
    }
}
