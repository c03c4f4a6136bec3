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

/// What the kernel passes on to a program, and a little less, of one variable and of all of them.
const VARIABLE_MOST_BYTES: usize = (128 << 10) - 1;
const ENVIRONMENT_MOST_BYTES: usize = 1 << 20;

/// No program could be told this, on any machine: the kernel would refuse to start it.
pub fn can_be_told(environment: &[String]) -> Result<(), String> {
    let name = |entry: &str| entry.split('=').next().unwrap_or_default().to_owned();
    if let Some(entry) = environment.iter().find(|entry| !is_tellable(entry)) {
        return Err(format!("{} is too long for a program's environment, or holds a NUL byte", name(entry)));
    }
    match environment.iter().map(|entry| entry.len() + 1).sum::<usize>() > ENVIRONMENT_MOST_BYTES {
        true => Err("the job's names and comments are too long for a program's environment".into()),
        false => Ok(()),
    }
}

/// As much of it as can be told, the first first.
pub fn tellable(environment: Vec<String>) -> Vec<String> {
    let mut n_bytes = 0;
    let fits = |entry: &String| {
        n_bytes += entry.len() + 1;
        is_tellable(entry) && n_bytes <= ENVIRONMENT_MOST_BYTES
    };
    environment.into_iter().filter(fits).collect()
}

fn is_tellable(entry: &str) -> bool {
    entry.len() <= VARIABLE_MOST_BYTES && !entry.as_bytes().contains(&0)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_that_no_program_can_have_is_known_before() {
        let long = format!("SLURM_JOB_COMMENT={}", "x".repeat(VARIABLE_MOST_BYTES));
        let told = |entry: &str| can_be_told(&["A=1".into(), entry.into()]);
        assert_eq!(told("B=2"), Ok(()));
        assert!(told(&long).unwrap_err().starts_with("SLURM_JOB_COMMENT is too long"));
        assert!(told("SLURM_JOB_NAME=a\0b").is_err());
        let many = vec![format!("A={}", "x".repeat(100_000)); 12];
        assert!(can_be_told(&many).is_err());
        assert_eq!(tellable(many).len(), 10);
        assert_eq!(tellable(vec!["A=1".into(), long, "B=2".into()]), ["A=1", "B=2"]);
    }
}
