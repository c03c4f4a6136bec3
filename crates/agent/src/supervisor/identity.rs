//! Who a job runs as. The only place where a process of the agent becomes somebody else (movers do so in their own crate).
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

    /// For good, and never in a daemon or a supervisor, whom their user could then signal, stop and slow down: only in a
    /// process that is the user's own from here on. Such a process may still have its parent's memory, so nobody may look
    /// into it. Allocates nothing.
    #[expect(clippy::disallowed_methods, reason = "the one place")]
    pub fn assume(&self) -> io::Result<()> {
        if !self.is_change() {
            return Ok(());
        }
        // SAFETY: plain calls on valid values.
        unsafe {
            check(libc::setgroups(self.groups.len(), self.groups.as_ptr()))?;
            check(libc::setresgid(self.gid, self.gid, self.gid))?;
            check(libc::setresuid(self.uid, self.uid, self.uid))?;
            check(libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0))?;
        }
        Ok(())
    }

    pub fn refusal(&self, error: &io::Error) -> String {
        format!("cannot become user {}: {}", self.user, super::notes::describe(error))
    }
}
