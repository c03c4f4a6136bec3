//! Who a job runs as. The only place where a process of the agent becomes somebody else (movers do so in their own crate).
use std::ffi::{CStr, CString};
use std::io;

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
    /// Asks the system's databases. A user they do not know has the one group and the home `/`.
    pub fn look_up(uid: u32, gid: u32, user: &str) -> Self {
        let mut identity =
            Identity { uid, gid, groups: vec![gid], user: user.to_owned(), home: "/".into(), shell: "/bin/sh".into() };
        let mut buffer = vec![0; 16 * 1024];
        // SAFETY: the buffer outlives the record that points into it.
        unsafe {
            let mut entry: libc::passwd = std::mem::zeroed();
            let mut found = std::ptr::null_mut();
            let status = libc::getpwuid_r(uid, &mut entry, buffer.as_mut_ptr(), buffer.len(), &mut found);
            if status == 0 && !found.is_null() {
                let text = |field: *const libc::c_char| CStr::from_ptr(field).to_string_lossy().into_owned();
                identity.user = text(entry.pw_name);
                identity.home = text(entry.pw_dir);
                identity.shell = text(entry.pw_shell);
            }
        }
        if sys::own_uid() == 0 {
            identity.groups = groups_of(&identity.user, gid);
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

fn groups_of(user: &str, gid: u32) -> Vec<libc::gid_t> {
    let Ok(name) = CString::new(user) else { return vec![gid] };
    let mut count: libc::c_int = 64;
    loop {
        let mut groups = vec![0; count as usize];
        let asked = count;
        // SAFETY: `groups` has room for `count` entries.
        let found = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &mut count) };
        if found >= 0 {
            groups.truncate(count as usize);
            return groups;
        }
        if count <= asked {
            return vec![gid];
        }
    }
}
