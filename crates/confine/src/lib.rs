//! What a process of ours gives up before it touches hostile values: system calls (`call_filter`) and paths (`reach`).
//! Both are for good, for all that the process starts later. Knows nothing of ours.
//!
//! A kernel that lacks either is no error: [`shortcomings`] names what is missing. Any other refusal of the kernel is
//! an error, and the caller does not go on.
pub mod call_filter;
pub mod calls;
pub mod reach;

use std::io;

pub use call_filter::{CallFilter, Terms};
pub use reach::{Access, Reach};

/// No program that this process runs gives it rights. Both confinements want this first.
pub fn give_up_new_rights() -> io::Result<()> {
    // SAFETY: a plain call with plain numbers.
    match unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What this kernel does not offer, for the log and for administrators.
pub fn shortcomings() -> Vec<&'static str> {
    let filter = "this kernel filters no system calls: movers and Lua workers are held by their user's rights alone";
    let reach = "this kernel has no landlock: movers and Lua workers open whatever their user may open";
    let missing = [(!call_filter::is_available(), filter), (reach::version() == 0, reach)];
    missing.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, words)| words).collect()
}
