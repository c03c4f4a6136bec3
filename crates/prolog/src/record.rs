//! The record of one hook: that it was begun, by which process, how it ended. Locked while that process lives.
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::{Ending, Order};

#[derive(Serialize, Deserialize)]
enum Mark {
    Begun(Order),
    Process(u32),
    Ended(Ending),
}

pub struct Record {
    pub file: File,
}

/// What a record says.
pub struct Told {
    pub environment: Vec<String>,
    pub order: Order,
    process: Option<u32>,
    ending: Option<Ending>,
}

/// What was written before it got its name.
const UNFINISHED: &str = ".new";

pub fn is_unfinished(name: &str) -> bool {
    name.ends_with(UNFINISHED)
}

impl Record {
    /// Locked from the moment it has its name; none if somebody was faster.
    pub fn create(dir: &Path, name: &str, order: &Order) -> io::Result<Option<Self>> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        // Several threads may come for the same name at once.
        let own = format!("{name}.{}.{:?}{UNFINISHED}", std::process::id(), std::thread::current().id());
        let fresh = dir.join(own);
        let _ = fs::remove_file(&fresh);
        let mut file = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(&fresh)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.write_all(&encode(&Mark::Begun(order.clone())))?;
        let named = fs::hard_link(&fresh, dir.join(name));
        fs::remove_file(&fresh)?;
        match named {
            Ok(()) => Ok(Some(Record { file })),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn note_process(&mut self, id: u32) -> io::Result<()> {
        self.file.write_all(&encode(&Mark::Process(id)))
    }

    pub fn note_end(&mut self, ending: &Ending) -> io::Result<()> {
        self.file.write_all(&encode(&Mark::Ended(ending.clone())))
    }
}

/// Waits until nobody has the record in hand, and gives how it ended.
pub fn wait(path: &Path) -> io::Result<Ending> {
    let file = File::open(path)?;
    while let Err(error) = flock(&file, FlockOperation::LockShared) {
        if error != rustix::io::Errno::INTR {
            return Err(error.into());
        }
    }
    let told = read(path)?;
    Ok(told.and_then(|told| told.ending).unwrap_or_else(|| Err("it was interrupted; it is not run again".into())))
}

/// None if not even its first mark is whole.
pub fn read(path: &Path) -> io::Result<Option<Told>> {
    let bytes = fs::read(path)?;
    let mut rest = bytes.as_slice();
    let mut told = None;
    while !rest.is_empty() {
        match (msgpack::decode_next(&mut rest), &mut told) {
            (Ok(Mark::Begun(order)), None) => {
                told = Some(Told { environment: order.environment.clone(), order, process: None, ending: None });
            }
            (Ok(Mark::Process(id)), Some(told)) => told.process = Some(id),
            (Ok(Mark::Ended(ending)), Some(told)) => told.ending = Some(ending),
            (Ok(_), _) | (Err(_), _) => break,
        }
    }
    Ok(told)
}

/// Ends the process that has it in hand, and with it the program that runs.
pub fn end(path: &Path) {
    let Ok(file) = File::open(path) else { return };
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        return;
    }
    let process = read(path).ok().flatten().and_then(|told| told.process);
    if let Some(process) = process.and_then(|id| rustix::process::Pid::from_raw(id as i32)) {
        let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        let _ = flock(&file, FlockOperation::LockShared);
    }
}

fn encode(mark: &Mark) -> Vec<u8> {
    msgpack::encode(mark).expect("plain values can be encoded")
}
