//! Runs that were ended by order: a launch of them that comes late is refused, also by the next agent.
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use model::StepId;
use model::node::Run;
use serde::{Deserialize, Serialize};

use crate::frame::{self, Incoming};
use crate::protocol::RunId;

/// No message is as late as this.
const KEPT_SECS: u64 = 24 * 3600;
const COMPACT_AT: usize = 100_000;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Key {
    job: u32,
    attempt: u32,
    step: Option<StepId>,
}

pub struct Killed {
    file: File,
    at: HashMap<Key, u64>,
}

impl Killed {
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut incoming = Incoming::default();
        match fs::read(path) {
            Ok(bytes) => incoming.push(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut at = HashMap::new();
        while let Ok(Some((key, secs))) = incoming.take::<(Key, u64)>() {
            at.insert(key, secs);
        }
        let file = rewrite(path, &mut at)?;
        Ok(Killed { file, at })
    }

    /// A step, or all of a run.
    pub fn add(&mut self, run: &Run, step: Option<StepId>, path: &Path) -> io::Result<()> {
        let key = Key { job: run.job.0, attempt: run.attempt, step };
        if self.at.contains_key(&key) {
            return Ok(());
        }
        let now = now_secs();
        self.at.insert(key, now);
        if self.at.len() >= COMPACT_AT {
            self.file = rewrite(path, &mut self.at)?;
        }
        self.file.write_all(&frame::encode(&(key, now)))
    }

    pub fn contains(&self, run: RunId) -> bool {
        let key = Key { job: run.job.0, attempt: run.attempt, step: None };
        self.at.contains_key(&key) || self.at.contains_key(&Key { step: Some(run.step), ..key })
    }
}

fn rewrite(path: &Path, at: &mut HashMap<Key, u64>) -> io::Result<File> {
    let oldest = now_secs().saturating_sub(KEPT_SECS);
    at.retain(|_, secs| *secs >= oldest);
    if at.len() >= COMPACT_AT {
        // Even so too many: the newer half must do.
        let mut times: Vec<u64> = at.values().copied().collect();
        times.sort_unstable();
        let middle = times[times.len() / 2];
        at.retain(|_, secs| *secs > middle);
    }
    let mut bytes = Vec::new();
    at.iter().for_each(|entry| frame::append(&mut bytes, &entry));
    let fresh = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    file.write_all(&bytes)?;
    drop(file);
    fs::rename(&fresh, path)?;
    OpenOptions::new().append(true).open(path)
}

fn now_secs() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
