//! User and group names, as this machine knows them.
use std::ffi::{CStr, CString};

/// The user's login name; the number itself where there is none.
pub fn user(uid: u32) -> String {
    let mut buffer = vec![0; 16 * 1024];
    let mut record = std::mem::MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are to live buffers of the sizes given; `record` is read only when `found` says it was filled.
    let name = unsafe {
        libc::getpwuid_r(uid, record.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found);
        (!found.is_null()).then(|| CStr::from_ptr((*found).pw_name).to_string_lossy().into_owned())
    };
    name.unwrap_or_else(|| uid.to_string())
}

pub fn group(gid: u32) -> String {
    let mut buffer = vec![0; 16 * 1024];
    let mut record = std::mem::MaybeUninit::<libc::group>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: as in `user`.
    let name = unsafe {
        libc::getgrgid_r(gid, record.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found);
        (!found.is_null()).then(|| CStr::from_ptr((*found).gr_name).to_string_lossy().into_owned())
    };
    name.unwrap_or_else(|| gid.to_string())
}

pub fn uid_of(name: &str) -> Option<u32> {
    if let Ok(uid) = name.parse() {
        return Some(uid);
    }
    let name = CString::new(name).ok()?;
    let mut buffer = vec![0; 16 * 1024];
    let mut record = std::mem::MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: as in `user`.
    unsafe {
        libc::getpwnam_r(name.as_ptr(), record.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found);
        (!found.is_null()).then(|| (*found).pw_uid)
    }
}
