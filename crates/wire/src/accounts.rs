//! Users and groups by name and number, as this machine's user database has them.
use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;

/// Large enough for any sane entry.
const BUFFER_BYTES: usize = 1 << 16;

/// What a login would find of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub uid: u32,
    pub gid: u32,
    pub name: String,
    /// Up to the first comma, as `finger` shows it.
    pub full_name: String,
    pub home: String,
    pub shell: String,
}

pub fn account(uid: u32) -> Option<Account> {
    find_user(|entry, buffer, length, found| unsafe { libc::getpwuid_r(uid, entry, buffer, length, found) })
}

/// What the user database says of somebody besides the name.
pub fn full_name(user: &str) -> Option<String> {
    Some(named(user)?.full_name)
}

pub fn user_name(uid: u32) -> Option<String> {
    account(uid).map(|account| account.name)
}

/// The number of a user given by name or number.
pub fn uid_of(user: &str) -> Option<u32> {
    named(user).map(|account| account.uid).or_else(|| user.parse().ok())
}

/// A user given by name or number, if there is one.
pub fn account_of(user: &str) -> Option<Account> {
    named(user).or_else(|| account(user.parse().ok()?))
}

fn named(user: &str) -> Option<Account> {
    let name = CString::new(user).ok()?;
    find_user(|entry, buffer, length, found| unsafe { libc::getpwnam_r(name.as_ptr(), entry, buffer, length, found) })
}

/// The number of a group given by name or number.
pub fn gid_of(group: &str) -> Option<u32> {
    let name = CString::new(group).ok()?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut entry = MaybeUninit::<libc::group>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the lengths given; the entry is read only when found.
    let gid = unsafe {
        libc::getgrnam_r(name.as_ptr(), entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found);
        found.as_ref().map(|entry| entry.gr_gid)
    };
    gid.or_else(|| group.parse().ok())
}

pub fn group_name(gid: u32) -> Option<String> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut entry = MaybeUninit::<libc::group>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the lengths given; the entry, whose name points into `buffer`, is read only when found.
    unsafe {
        libc::getgrgid_r(gid, entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found);
        found.as_ref().map(|entry| text(entry.gr_name))
    }
}

/// The numbers of all groups of a user, `gid` among them.
pub fn groups_of(user: &str, gid: u32) -> Vec<u32> {
    let Ok(name) = CString::new(user) else { return vec![gid] };
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let mut count = groups.len() as libc::c_int;
        // SAFETY: the buffer has room for `count` numbers, and the name is NUL-ended.
        let found = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &mut count) };
        if found >= 0 {
            groups.truncate(found as usize);
            return groups;
        }
        if groups.len() >= 1 << 16 {
            return vec![gid];
        }
        groups.resize(groups.len() * 4, 0);
    }
}

/// The group of a user whom another machine, or somebody else, names: the one they say if the user is in it by this machine's
/// user database, else the user's first. None: the database does not know the user.
pub fn vouched_gid(uid: u32, said: u32) -> Option<u32> {
    let Some(account) = account(uid) else {
        // SAFETY: neither call can fail.
        let (own_uid, own_gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        // The kernel knows whom this process runs as, also where no database does.
        return (uid == own_uid).then_some(own_gid);
    };
    let is_member = said == account.gid || groups_of(&account.name, account.gid).contains(&said);
    Some(if is_member { said } else { account.gid })
}

fn find_user(ask: impl Fn(*mut libc::passwd, *mut c_char, usize, *mut *mut libc::passwd) -> i32) -> Option<Account> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    ask(entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found);
    // SAFETY: the call sets `found` only to an entry it has filled, whose texts point into `buffer`.
    let entry = unsafe { found.as_ref() }?;
    let text = |pointer| unsafe { text(pointer) };
    Some(Account {
        uid: entry.pw_uid,
        gid: entry.pw_gid,
        name: text(entry.pw_name),
        full_name: text(entry.pw_gecos).split(',').next().unwrap_or_default().to_string(),
        home: text(entry.pw_dir),
        shell: text(entry.pw_shell),
    })
}

/// # Safety
/// `pointer` is a NUL-ended text.
unsafe fn text(pointer: *const c_char) -> String {
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
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
        assert_eq!(gid_of("root"), Some(0));
        assert_eq!(gid_of("no such group"), None);
        assert_eq!(account_of("0").map(|account| account.name).as_deref(), Some("root"));
        assert_eq!(group_name(0).as_deref(), Some("root"));
        assert!(groups_of("root", 0).contains(&0));
        assert_eq!((vouched_gid(0, 0), vouched_gid(0, 54_321)), (Some(0), Some(0)), "a group is nobody's claim");
        assert_eq!(vouched_gid(54_321, 0), None);
    }
}
