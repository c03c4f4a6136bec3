//! What the tests share: a machine that remembers everything, and a directory of its own for each test.
#![allow(dead_code, reason = "each test binary uses its part")]

pub mod disk;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use journal::Machine;

/// Remembers every entry it was given. What it knows can be seen from outside through its clone of `seen`.
#[derive(Default)]
pub struct Memory {
    pub seen: Arc<Mutex<Seen>>,
}

#[derive(Default, Clone, Debug, PartialEq)]
pub struct Seen {
    pub entries: Vec<Vec<u8>>,
    pub restored: usize,
    pub batches: usize,
}

impl Memory {
    pub fn new() -> (Memory, Arc<Mutex<Seen>>) {
        let memory = Memory::default();
        let seen = memory.seen.clone();
        (memory, seen)
    }
}

impl Machine for Memory {
    type Reply = u64;

    fn apply(&mut self, index: u64, entry: &[u8]) -> Result<u64, String> {
        let mut seen = self.seen.lock().unwrap();
        seen.entries.push(entry.to_vec());
        assert_eq!(seen.entries.len() as u64, index, "entries are counted without gaps");
        Ok(index)
    }

    fn batch_applied(&mut self) {
        self.seen.lock().unwrap().batches += 1;
    }

    fn freeze(&self) -> Box<dyn FnOnce() -> Vec<u8> + Send> {
        let entries = self.seen.lock().unwrap().entries.clone();
        Box::new(move || msgpack::encode_compact(&entries).unwrap())
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), String> {
        let mut seen = self.seen.lock().unwrap();
        seen.entries = msgpack::decode(snapshot).map_err(|error| error.to_string())?;
        seen.restored = seen.entries.len();
        Ok(())
    }
}

/// Removed when dropped.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("journal-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        TempDir(dir)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn numbered(n: u64) -> Vec<u8> {
    format!("entry {n}").into_bytes()
}
