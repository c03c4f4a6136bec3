//! The site's own programs (prologs, epilogs), each run once. Whoever starts them may die and come back: a process of its own
//! runs them and writes how they ended into a record, which stays locked for as long as that process lives.
//!
//! ```text
//!  no record ──▶ locked: they run ──▶ result: they have ended, thus
//!                      └─(the process was killed, the machine restarted)──▶ no result: begun, never run again, counts as failed
//! ```
pub mod inheritance;
mod process;
mod record;
pub mod user_program;

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use process::{NAME, serve};
pub use record::Record;

/// What is to be run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Order {
    /// Paths, or patterns that name several; in this order, until one fails.
    pub programs: Vec<String>,
    /// `NAME=value`; nothing else is in their environment.
    pub environment: Vec<String>,
    /// All of them together.
    pub timeout: Option<Duration>,
}

/// The error says which program, and how it failed.
pub type Ending = Result<(), String>;

/// Runs the programs if they were never begun under this name; in any case gives how they ended. Blocks until then.
pub fn run_once(executable: &Path, dir: &Path, name: &str, order: &Order) -> io::Result<Ending> {
    let path = dir.join(name);
    if !path.exists()
        && let Some(record) = Record::create(dir, name, order)?
    {
        process::start(executable, &record)?;
    }
    record::wait(&path)
}

/// Leaves a record as if there had been something to run.
pub fn note(dir: &Path, name: &str, order: &Order) -> io::Result<()> {
    if !dir.join(name).exists()
        && let Some(mut record) = Record::create(dir, name, order)?
    {
        record.note_end(&Ok(()))?;
    }
    Ok(())
}

/// Waits for what was begun under this name, if anything was.
pub fn wait(dir: &Path, name: &str) -> io::Result<Option<Ending>> {
    let path = dir.join(name);
    if path.exists() { record::wait(&path).map(Some) } else { Ok(None) }
}

/// The environment of what was begun under this name.
pub fn environment(dir: &Path, name: &str) -> Option<Vec<String>> {
    Some(record::read(&dir.join(name)).ok()??.environment)
}

/// Everything that was begun and is not forgotten.
pub fn names(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string().ok().filter(|name| !record::is_unfinished(name)));
    }
    names.sort_unstable();
    Ok(names)
}

pub fn forget(dir: &Path, name: &str) {
    // One that is not there is forgotten already.
    let _ = std::fs::remove_file(dir.join(name));
}

/// Ends everything that runs, for a cluster that is taken down.
pub fn end_all(dir: &Path) -> io::Result<()> {
    for name in names(dir)? {
        record::end(&dir.join(name));
    }
    Ok(())
}

/// What a pattern names, in order. A path without wildcards names itself, also when there is no such file.
fn expand(pattern: &str) -> Vec<PathBuf> {
    if !pattern.contains(['*', '?', '[']) {
        return vec![pattern.into()];
    }
    let Ok(text) = std::ffi::CString::new(pattern) else { return Vec::new() };
    let mut paths = Vec::new();
    // SAFETY: the list is filled by the call, read while it lives, and freed.
    unsafe {
        let mut found: libc::glob_t = std::mem::zeroed();
        if libc::glob(text.as_ptr(), 0, None, &mut found) == 0 {
            for index in 0..found.gl_pathc {
                let path = std::ffi::CStr::from_ptr(*found.gl_pathv.add(index));
                paths.push(std::ffi::OsStr::from_bytes(path.to_bytes()).into());
            }
        }
        libc::globfree(&mut found);
    }
    paths
}
