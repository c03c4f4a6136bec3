//! A disk in memory that does what disks do on a bad day: forgets what was not synced, sector by sector, fails a sync,
//! writes less than asked, flips a bit, or loses power at a chosen moment.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use journal::files::{Files, OpenFile};

const SECTOR: usize = 512;

#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Default, Clone)]
struct State {
    files: BTreeMap<u64, Content>,
    names: BTreeMap<PathBuf, u64>,
    /// Changes of names since the last sync of the directory, with the names before them.
    unsynced_names: Vec<BTreeMap<PathBuf, u64>>,
    locks: HashSet<PathBuf>,
    next_file: u64,
    n_syncs: u64,
    n_operations: u64,
    faults: Faults,
    random: Random,
    /// What the disk held when the power went out; nothing works afterwards.
    after_power_loss: Option<Box<State>>,
}

#[derive(Default, Clone)]
struct Content {
    /// What reads see.
    now: Vec<u8>,
    /// What survives a loss of power for certain.
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
}

/// Counted from when they are set.
#[derive(Default, Clone)]
pub struct Faults {
    pub power_loss_at_operation: Option<u64>,
    pub fail_sync: Option<u64>,
    /// The write puts half of its bytes down and says so.
    pub short_write: Option<u64>,
    /// The write puts half of its bytes down and fails.
    pub broken_write: Option<u64>,
    /// So many bytes fit on it; what does not is written in part.
    pub room_bytes: Option<usize>,
    /// Every sync takes so long.
    pub slow_sync: Option<std::time::Duration>,
}

/// Splitmix64: the same seed, the same faults.
#[derive(Default, Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

impl Disk {
    pub fn new(seed: u64) -> Disk {
        let disk = Disk::default();
        disk.state().random = Random(seed);
        disk
    }

    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    pub fn n_syncs(&self) -> u64 {
        self.state().n_syncs
    }

    /// The disk as the next process finds it when only the process died.
    pub fn after_kill(&self) -> Disk {
        let mut state = self.state().clone();
        state.locks.clear();
        state.faults = Faults::default();
        Disk(Arc::new(Mutex::new(state)))
    }

    /// The disk as it is after the power went out: at the chosen operation, or else now.
    pub fn after_power_loss(&self) -> Disk {
        let mut state = self.state();
        let left = match state.after_power_loss.take() {
            Some(left) => *left,
            None => state.lose_power(),
        };
        Disk(Arc::new(Mutex::new(left)))
    }

    pub fn names(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }

    pub fn content(&self, path: &Path) -> Vec<u8> {
        let state = self.state();
        state.files[&state.names[path]].now.clone()
    }

    pub fn flip_bit(&self, path: &Path, offset: usize, bit: u8) {
        let mut state = self.state();
        let file = state.names[path];
        let content = state.files.get_mut(&file).unwrap();
        content.now[offset] ^= 1 << bit;
        content.durable = content.now.clone();
    }

    pub fn delete(&self, path: &Path) {
        self.state().names.remove(path);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn operation(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        state.n_operations += 1;
        if hit(&mut state.faults.power_loss_at_operation) {
            let left = state.lose_power();
            state.after_power_loss = Some(Box::new(left));
        }
        if state.after_power_loss.is_some() { Err(io::Error::other("the power is out")) } else { Ok(state) }
    }
}

fn hit(countdown: &mut Option<u64>) -> bool {
    match countdown {
        Some(0) => {
            *countdown = None;
            true
        }
        Some(left) => {
            *left -= 1;
            false
        }
        None => false,
    }
}

impl State {
    fn lose_power(&mut self) -> State {
        let mut left = State { next_file: self.next_file, random: Random(self.random.next()), ..State::default() };
        let kept = self.random.below(self.unsynced_names.len() as u64 + 1) as usize;
        left.names = self.unsynced_names.get(kept).unwrap_or(&self.names).clone();
        for (file, content) in &self.files {
            let mut bytes = content.durable.clone();
            for change in &content.unsynced {
                match change {
                    Change::Write(offset, written) => {
                        for (at, piece) in sectors(*offset as usize, written) {
                            if self.random.below(2) == 0 {
                                put(&mut bytes, at, piece);
                            }
                        }
                    }
                    Change::Length(length) => {
                        if self.random.below(2) == 0 {
                            bytes.resize(*length as usize, 0);
                        }
                    }
                }
            }
            left.files.insert(*file, Content { now: bytes.clone(), durable: bytes, unsynced: Vec::new() });
        }
        left
    }

    /// What named files take, and of these bytes at this place how many there is room for.
    fn fitting(&self, file: u64, offset: usize, n_bytes: usize) -> usize {
        let Some(room) = self.faults.room_bytes else { return n_bytes };
        let is_named = |id: &u64| self.names.values().any(|named| named == id);
        let used: usize = self.files.iter().filter(|(id, _)| is_named(id)).map(|(_, content)| content.now.len()).sum();
        let here = self.files[&file].now.len();
        let free = room.saturating_sub(used);
        n_bytes.min((here + free).saturating_sub(offset))
    }

    fn change_names(&mut self, change: impl FnOnce(&mut BTreeMap<PathBuf, u64>)) {
        self.unsynced_names.push(self.names.clone());
        change(&mut self.names);
    }

    fn find(&self, path: &Path) -> io::Result<u64> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// The parts of a write that lie in one sector each.
fn sectors(offset: usize, bytes: &[u8]) -> Vec<(usize, &[u8])> {
    let mut pieces = Vec::new();
    let (mut at, mut rest) = (offset, bytes);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at((SECTOR - at % SECTOR).min(rest.len()));
        pieces.push((at, piece));
        at += piece.len();
        rest = after;
    }
    pieces
}

fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if content.len() < offset + bytes.len() {
        content.resize(offset + bytes.len(), 0);
    }
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
}

impl Files for Disk {
    fn create_directory(&self, _: &Path) -> io::Result<()> {
        self.operation().map(drop)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.operation()?;
        let here = state.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(here.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.operation()?;
        Ok(state.files[&state.find(path)?].now.clone())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let mut state = self.operation()?;
        let file = state.next_file;
        state.next_file += 1;
        state.files.insert(file, Content::default());
        state.change_names(|names| _ = names.insert(path.to_path_buf(), file));
        Ok(Box::new(Handle { disk: self.clone(), file }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let file = self.operation()?.find(path)?;
        Ok(Box::new(Handle { disk: self.clone(), file }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.operation()?;
        let file = state.find(from)?;
        state.change_names(|names| {
            names.remove(from);
            names.insert(to.to_path_buf(), file);
        });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.operation()?;
        state.find(path)?;
        state.change_names(|names| _ = names.remove(path));
        Ok(())
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        self.operation()?.unsynced_names.clear();
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        if !self.state().locks.insert(path.to_path_buf()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(Unlock { disk: self.clone(), path: path.to_path_buf() }))
    }
}

struct Unlock {
    disk: Disk,
    path: PathBuf,
}

impl Drop for Unlock {
    fn drop(&mut self) {
        self.disk.state().locks.remove(&self.path);
    }
}

struct Handle {
    disk: Disk,
    file: u64,
}

impl OpenFile for Handle {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.operation()?;
        let is_short = hit(&mut state.faults.short_write);
        let is_broken = hit(&mut state.faults.broken_write);
        let written = if is_short || is_broken { &bytes[..bytes.len().div_ceil(2)] } else { bytes };
        let n_fitting = state.fitting(self.file, offset as usize, written.len());
        if n_fitting == 0 && !written.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let written = &written[..n_fitting];
        let content = state.files.get_mut(&self.file).unwrap();
        put(&mut content.now, offset as usize, written);
        content.unsynced.push(Change::Write(offset, written.to_vec()));
        if is_broken { Err(io::Error::other("the disk is full")) } else { Ok(written.len()) }
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.disk.operation()?;
        let content = &state.files[&self.file].now;
        let from = content.get(offset as usize..).unwrap_or_default();
        let n = from.len().min(bytes.len());
        bytes[..n].copy_from_slice(&from[..n]);
        Ok(n)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk.operation()?;
        let content = state.files.get_mut(&self.file).unwrap();
        content.now.resize(length as usize, 0);
        content.unsynced.push(Change::Length(length));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let slow = self.disk.state().faults.slow_sync;
        if let Some(slow) = slow {
            std::thread::sleep(slow);
        }
        let mut state = self.disk.operation()?;
        state.n_syncs += 1;
        let fails = hit(&mut state.faults.fail_sync);
        let content = state.files.get_mut(&self.file).unwrap();
        let changes = std::mem::take(&mut content.unsynced);
        if fails {
            // As kernels do: the pages are thought clean now, yet never reached the disk, not by a later sync either.
            return Err(io::Error::other("the disk lost a write"));
        }
        for change in changes {
            match change {
                Change::Write(offset, bytes) => put(&mut content.durable, offset as usize, &bytes),
                Change::Length(length) => content.durable.resize(length as usize, 0),
            }
        }
        Ok(())
    }
}
