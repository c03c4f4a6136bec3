//! Finding libpmix, and its functions by their names.
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;

use crate::layout::{Info, Process, Value};

/// Tried in turn; the first is what a package of the system installs.
const NAMES: [&CStr; 2] = [c"libpmix.so.2", c"libpmix.so"];
/// Whose interface is as `layout` has it.
const MAJORS: std::ops::RangeInclusive<u32> = 3..=5;

pub type Status = c_int;
pub type Done = Option<unsafe extern "C" fn(status: Status, context: *mut c_void)>;
pub type Release = Option<unsafe extern "C" fn(context: *mut c_void)>;
/// `pmix_modex_cbfunc_t`
pub type Modex = Option<
    unsafe extern "C" fn(
        status: Status,
        data: *const c_char,
        size: usize,
        context: *mut c_void,
        release: Release,
        release_context: *mut c_void,
    ),
>;
/// `pmix_dmodex_response_fn_t`
pub type Response = unsafe extern "C" fn(status: Status, data: *mut c_char, size: usize, context: *mut c_void);
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub major: u32,
    /// The library's own words, cut after the number.
    pub text: String,
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// The functions that a server needs.
pub struct Library {
    pub version: Version,
    pub server_init: unsafe extern "C" fn(module: *mut c_void, info: *mut Info, n_info: usize) -> Status,
    pub generate_regex: unsafe extern "C" fn(input: *const c_char, output: *mut *mut c_char) -> Status,
    pub generate_ppn: unsafe extern "C" fn(input: *const c_char, output: *mut *mut c_char) -> Status,
    pub register_nspace: unsafe extern "C" fn(
        namespace: *const c_char,
        n_local: c_int,
        info: *mut Info,
        n_info: usize,
        done: Done,
        context: *mut c_void,
    ) -> Status,
    pub register_client: unsafe extern "C" fn(
        process: *const Process,
        uid: libc::uid_t,
        gid: libc::gid_t,
        object: *mut c_void,
        done: Done,
        context: *mut c_void,
    ) -> Status,
    pub setup_fork: unsafe extern "C" fn(process: *const Process, environment: *mut *mut *mut c_char) -> Status,
    pub dmodex_request:
        unsafe extern "C" fn(process: *const Process, response: Response, context: *mut c_void) -> Status,
    pub value_load: unsafe extern "C" fn(value: *mut Value, data: *const c_void, kind: u16) -> Status,
    pub error_string: unsafe extern "C" fn(status: Status) -> *const c_char,
}

/// Which version there is on this machine. The error says why none can be used.
pub fn find() -> Result<Version, String> {
    version(open()?)
}

impl Library {
    pub fn load() -> Result<Self, String> {
        let handle = open()?;
        let version = version(handle)?;
        // SAFETY: each is declared as the library's header declares it, in all versions that `version` lets pass.
        unsafe {
            Ok(Library {
                version,
                server_init: function(handle, c"PMIx_server_init")?,
                generate_regex: function(handle, c"PMIx_generate_regex")?,
                generate_ppn: function(handle, c"PMIx_generate_ppn")?,
                register_nspace: function(handle, c"PMIx_server_register_nspace")?,
                register_client: function(handle, c"PMIx_server_register_client")?,
                setup_fork: function(handle, c"PMIx_server_setup_fork")?,
                dmodex_request: function(handle, c"PMIx_server_dmodex_request")?,
                value_load: function(handle, c"PMIx_Value_load")?,
                error_string: function(handle, c"PMIx_Error_string")?,
            })
        }
    }

    /// What went wrong, if anything did.
    pub fn check(&self, what: &str, status: Status) -> Result<(), String> {
        // PMIX_OPERATION_SUCCEEDED: done at once, without a call back.
        if matches!(status, 0 | -157) {
            return Ok(());
        }
        // SAFETY: the library gives a string of its own for every status.
        let words = unsafe {
            let words = (self.error_string)(status);
            if words.is_null() { String::new() } else { CStr::from_ptr(words).to_string_lossy().into_owned() }
        };
        Err(format!("{what}: {words} ({status})"))
    }
}

/// Never closed: the library has threads.
fn open() -> Result<*mut c_void, String> {
    for name in NAMES {
        // SAFETY: a plain name; what the library does when it is loaded is its own matter.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if !handle.is_null() {
            return Ok(handle);
        }
    }
    // SAFETY: dlerror gives a string, or nothing if there was no error.
    let why = unsafe {
        let words = libc::dlerror();
        if words.is_null() { String::new() } else { CStr::from_ptr(words).to_string_lossy().into_owned() }
    };
    Err(format!("no PMIx library is found ({why})"))
}

fn version(handle: *mut c_void) -> Result<Version, String> {
    // SAFETY: the function takes nothing and gives a string of the library's own.
    let words = unsafe {
        let get: unsafe extern "C" fn() -> *const c_char = function(handle, c"PMIx_Get_version")?;
        CStr::from_ptr(get()).to_string_lossy().into_owned()
    };
    let text = parse(&words).ok_or_else(|| format!("a PMIx library of an unknown version: {words}"))?;
    let major = text.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    match MAJORS.contains(&major) {
        true => Ok(Version { major, text }),
        false => Err(format!("the PMIx library {text} is not one of versions 3 to 5")),
    }
}

/// `OpenPMIx 4.2.2 (PMIx Standard: 4.1, …)`
fn parse(words: &str) -> Option<String> {
    let is_number = |word: &&str| word.contains('.') && word.starts_with(|first: char| first.is_ascii_digit());
    let number = words.split_whitespace().find(is_number)?;
    Some(number.trim_end_matches(|last: char| !last.is_ascii_alphanumeric()).to_owned())
}

/// # Safety
/// `F` must be a pointer to a function as the library declares it under this name.
unsafe fn function<F: Copy>(handle: *mut c_void, name: &CStr) -> Result<F, String> {
    assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
    // SAFETY: the handle is open; a symbol that is found is the function that the caller names.
    unsafe {
        let found = libc::dlsym(handle, name.as_ptr());
        match found.is_null() {
            true => Err(format!("the PMIx library has no {}", name.to_string_lossy())),
            false => Ok(std::mem::transmute_copy(&found)),
        }
    }
}

/// What the library gave, as Rust has it.
///
/// # Safety
/// `text` must be null or a NUL-ended string.
pub unsafe fn text(text: *const c_char) -> String {
    match text.is_null() {
        true => String::new(),
        // SAFETY: as the caller promised.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    }
}

pub fn c_string(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| format!("a name with a NUL byte: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_the_librarys_words() {
        let check = |words: &str, expected: Option<&str>| assert_eq!(parse(words).as_deref(), expected, "{words}");
        check("OpenPMIx 4.2.2 (PMIx Standard: 4.1, Stable ABI: 0.0, Provisional ABI: 0.0)", Some("4.2.2"));
        check("OpenPMIx 3.2.3, repo rev: v3.2.3 (PMIx Standard: 3.2)", Some("3.2.3"));
        check("PMIx", None);
    }
}
