//! What this machine is called.
use std::ffi::CStr;

/// Up to the first dot.
pub fn name() -> String {
    let mut buffer = [0; 256];
    // SAFETY: the buffer is as long as said, and one byte of it stays zero.
    if unsafe { libc::gethostname(buffer.as_mut_ptr(), buffer.len() - 1) } != 0 {
        return "localhost".into();
    }
    // SAFETY: the buffer ends with a zero.
    let name = unsafe { CStr::from_ptr(buffer.as_ptr()) }.to_string_lossy().into_owned();
    name.split('.').next().unwrap_or("localhost").to_owned()
}
