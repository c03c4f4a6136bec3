//! User and group names and their numbers, as this machine knows them. Asked once each.
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;

/// Large enough for any entry of the user database that is sane.
const BUFFER_BYTES: usize = 1 << 16;

/// Names that were looked up already.
#[derive(Default)]
pub struct Names {
    users: RefCell<HashMap<u32, String>>,
}

impl Names {
    /// The user's name, or the number where there is none.
    pub fn user(&self, uid: u32) -> String {
        self.users.borrow_mut().entry(uid).or_insert_with(|| user_name(uid).unwrap_or_else(|| uid.to_string())).clone()
    }
}

/// The number of a user given by name or number.
pub fn uid_of(user: &str) -> Option<u32> {
    let name = CString::new(user).ok()?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the lengths given, and the entry is read only when the call set `found`.
    let uid = unsafe {
        libc::getpwnam_r(name.as_ptr(), entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found);
        (!found.is_null()).then(|| (*found).pw_uid)
    };
    uid.or_else(|| user.parse().ok())
}

pub fn user_name(uid: u32) -> Option<String> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: as above; the name points into `buffer`, which outlives the copy.
    unsafe {
        libc::getpwuid_r(uid, entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found);
        (!found.is_null()).then(|| CStr::from_ptr((*found).pw_name).to_string_lossy().into_owned())
    }
}

/// What a login would find of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub home: String,
    pub shell: String,
}

pub fn account(uid: u32) -> Option<Account> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: as above.
    unsafe {
        libc::getpwuid_r(uid, entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found);
        let entry = found.as_ref()?;
        let text = |pointer| CStr::from_ptr(pointer).to_string_lossy().into_owned();
        Some(Account { name: text(entry.pw_name), home: text(entry.pw_dir), shell: text(entry.pw_shell) })
    }
}

pub fn group_name(gid: u32) -> Option<String> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut entry = MaybeUninit::<libc::group>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: as above.
    unsafe {
        libc::getgrgid_r(gid, entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found);
        (!found.is_null()).then(|| CStr::from_ptr((*found).gr_name).to_string_lossy().into_owned())
    }
}

/// Who runs this command.
pub fn own_uid() -> u32 {
    rustix::process::getuid().as_raw()
}

pub fn own_gid() -> u32 {
    rustix::process::getgid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_by_name_and_number() {
        assert_eq!(uid_of("root"), Some(0));
        assert_eq!(uid_of("4242"), Some(4242));
        assert_eq!(uid_of("no such user"), None);
        assert_eq!(user_name(0).as_deref(), Some("root"));
        assert_eq!(group_name(0).as_deref(), Some("root"));
        assert_eq!(Names::default().user(3_999_999_999), "3999999999");
    }
}
