//! What has been done, so that a mover that was killed goes on where it was. Only appended to; a torn end is dropped.
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Write};

use xxhash_rust::xxh3::xxh3_64;

use crate::order::Order;
use crate::pack::{self, Unpack};
use crate::plan::{Where, decode_where, encode_where};

const START: u64 = 0;
const DONE: u64 = 1;
const CHUNK: u64 = 2;
const BEGUN: u64 = 3;
const MADE: u64 = 4;
const FRAME_MAX_BYTES: u32 = 16 << 20;

/// A file as its source was when it was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    pub size_bytes: u64,
    pub mtime_secs: i64,
    pub mtime_nanos: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoneFile {
    pub name: Vec<u8>,
    pub version: Version,
    pub hash: Option<u128>,
}

pub struct Journal {
    file: File,
    begun: Option<Where>,
    end_bytes: u64,
    /// It has found no room: nothing more is noted, so that all that is can be read.
    is_full: bool,
}

/// What earlier movers of the same order have done.
#[derive(Default)]
pub struct Past {
    /// File and version to half of its hash.
    done: HashMap<u64, u64>,
    chunks: HashMap<u64, Vec<(u64, u128)>>,
    made: HashSet<u64>,
    /// The machine has been started since: what was not flushed may be lost, so that only hashes count.
    pub is_doubtful: bool,
}

impl Past {
    pub fn hash_of(&self, key: u64) -> Option<u64> {
        self.done.get(&key).copied()
    }

    pub fn chunks_of(&self, key: u64) -> &[(u64, u128)] {
        self.chunks.get(&key).map_or(&[], |chunks| chunks)
    }

    pub fn is_empty(&self) -> bool {
        self.done.is_empty()
    }

    /// Whether a directory that is there now was made by one of them.
    pub fn made(&self, directory: &Where) -> bool {
        self.made.contains(&directory_key(directory))
    }
}

pub fn half(hash: Option<u128>) -> u64 {
    hash.map_or(0, |hash| (hash as u64).max(1))
}

/// Names a file by where it goes, and the version of it: whichever way it came, by a directory, a list or another node.
pub fn key(target: &Where, name: &[u8], version: &Version) -> u64 {
    let mut bytes = Vec::with_capacity(64 + target.below.len() + name.len());
    pack::number(&mut bytes, target.fence.map_or(0, |fence| u64::from(fence) + 1));
    let parts = [&target.anchor[..], &target.below, name].into_iter().flat_map(|part| part.split(|byte| *byte == b'/'));
    for part in parts.filter(|part| !part.is_empty() && *part != b".") {
        pack::bytes(&mut bytes, part);
    }
    encode_version(&mut bytes, version);
    xxh3_64(&bytes)
}

pub fn directory_key(directory: &Where) -> u64 {
    let mut bytes = Vec::new();
    encode_where(&mut bytes, directory);
    xxh3_64(&bytes)
}

impl Journal {
    /// Reads what is there and begins another life of the order. What belongs to another order counts for nothing.
    pub fn open(file: File, order: &Order) -> io::Result<(Self, Past)> {
        let boot = boot_id();
        let digest = digest(order);
        let mut past = Past::default();
        let mut is_ours = true;
        let mut end = 0;
        read(&file, |frame_end, kind, unpack| {
            end = frame_end;
            note(&mut past, &mut is_ours, &boot, digest, kind, unpack)
        })?;
        // Room that was set aside behind the end would go with it.
        if file.metadata()?.len() != end {
            file.set_len(end)?;
        }
        let mut journal = Journal { file, begun: None, end_bytes: end, is_full: false };
        let mut body = Vec::new();
        pack::number(&mut body, START);
        pack::bytes(&mut body, boot.as_bytes());
        pack::number(&mut body, digest);
        match journal.append(&body) {
            // What others have noted still counts.
            Err(error) if is_full(&error) => {}
            other => other?,
        }
        Ok((journal, past))
    }

    pub fn done(&mut self, transfer: u32, target: &Where, files: &[DoneFile]) -> io::Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let mut body = Vec::with_capacity(64 * files.len());
        pack::number(&mut body, DONE);
        pack::number(&mut body, u64::from(transfer));
        encode_where(&mut body, target);
        for file in files {
            pack::bytes(&mut body, &file.name);
            encode_version(&mut body, &file.version);
            pack::number(&mut body, u64::from(file.hash.is_some()));
            body.extend_from_slice(&file.hash.unwrap_or_default().to_le_bytes());
        }
        self.append(&body)
    }

    /// One piece of a large file is in its part.
    pub fn chunk(&mut self, key: u64, index: u64, hash: Option<u128>) -> io::Result<()> {
        let mut body = Vec::new();
        pack::number(&mut body, CHUNK);
        pack::number(&mut body, key);
        pack::number(&mut body, index);
        body.extend_from_slice(&hash.unwrap_or_default().to_le_bytes());
        self.append(&body)
    }

    /// Unfinished files may be there from now on.
    pub fn begun(&mut self, target: &Where) -> io::Result<()> {
        if self.begun.as_ref() == Some(target) {
            return Ok(());
        }
        let mut body = Vec::new();
        pack::number(&mut body, BEGUN);
        encode_where(&mut body, target);
        self.append(&body)?;
        self.begun = Some(target.clone());
        Ok(())
    }

    /// The head of a tree was not there before.
    pub fn made(&mut self, directory: &Where) -> io::Result<()> {
        let mut body = Vec::new();
        pack::number(&mut body, MADE);
        pack::number(&mut body, directory_key(directory));
        self.append(&body)
    }

    fn append(&mut self, body: &[u8]) -> io::Result<()> {
        if self.is_full {
            return Ok(());
        }
        let mut frame = Vec::with_capacity(body.len() + 8);
        frame.extend_from_slice(&(body.len() as u32).to_le_bytes());
        frame.extend_from_slice(&crc32fast::hash(body).to_le_bytes());
        frame.extend_from_slice(body);
        let written = self.file.write_all(&frame);
        match &written {
            Ok(()) => self.end_bytes += frame.len() as u64,
            Err(_) => {
                self.is_full = true;
                let _ = self.file.set_len(self.end_bytes);
            }
        }
        written
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

fn note(past: &mut Past, is_ours: &mut bool, boot: &str, digest: u64, kind: u64, unpack: &mut Unpack) -> Option<()> {
    match kind {
        START => {
            let other_boot = unpack.bytes()? != boot.as_bytes();
            *is_ours = unpack.number()? == digest;
            if !*is_ours {
                *past = Past::default();
            }
            past.is_doubtful |= other_boot;
        }
        DONE if *is_ours => {
            let _transfer = unpack.number()?;
            let target = decode_where(unpack)?;
            while !unpack.0.is_empty() {
                let file = decode_done(unpack)?;
                past.done.insert(key(&target, &file.name, &file.version), half(file.hash));
            }
        }
        CHUNK if *is_ours => {
            let (key, index) = (unpack.number()?, unpack.number()?);
            past.chunks.entry(key).or_default().push((index, unpack.wide()?));
        }
        MADE if *is_ours => {
            past.made.insert(unpack.number()?);
        }
        _ => {}
    }
    Some(())
}

/// Directories in which an order may have left unfinished files.
pub fn begun_directories(file: &File) -> io::Result<Vec<Where>> {
    let mut found: Vec<Where> = Vec::new();
    let mut known = HashSet::new();
    read(file, |_, kind, unpack| {
        if kind == BEGUN {
            let place = decode_where(unpack)?;
            if known.insert(directory_key(&place)) {
                found.push(place);
            }
        }
        Some(())
    })?;
    Ok(found)
}

/// Every file that was copied: transfer, directory, name, version, hash.
pub fn manifest(file: &File, mut each: impl FnMut(u32, &Where, DoneFile)) -> io::Result<()> {
    read(file, |_, kind, unpack| {
        if kind == DONE {
            let transfer = unpack.number()? as u32;
            let target = decode_where(unpack)?;
            while !unpack.0.is_empty() {
                each(transfer, &target, decode_done(unpack)?);
            }
        }
        Some(())
    })
}

/// All whole frames from the beginning; the callback learns where each ends, and may end the reading.
fn read(file: &File, mut each: impl FnMut(u64, u64, &mut Unpack) -> Option<()>) -> io::Result<()> {
    use std::io::Seek;
    let mut file = file;
    file.seek(io::SeekFrom::Start(0))?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut at = 0;
    let mut body = Vec::new();
    loop {
        let mut head = [0; 8];
        match reader.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        let length = u32::from_le_bytes(head[..4].try_into().expect("four bytes"));
        let check = u32::from_le_bytes(head[4..].try_into().expect("four bytes"));
        if length > FRAME_MAX_BYTES {
            return Ok(());
        }
        body.resize(length as usize, 0);
        match reader.read_exact(&mut body) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        if crc32fast::hash(&body) != check {
            return Ok(());
        }
        at += 8 + u64::from(length);
        let mut unpack = Unpack(&body);
        let Some(kind) = unpack.number() else { return Ok(()) };
        if each(at, kind, &mut unpack).is_none() {
            return Ok(());
        }
    }
}

fn encode_version(out: &mut Vec<u8>, version: &Version) {
    pack::number(out, version.size_bytes);
    pack::signed(out, version.mtime_secs);
    pack::number(out, u64::from(version.mtime_nanos));
}

fn decode_done(unpack: &mut Unpack) -> Option<DoneFile> {
    let name = unpack.bytes()?.to_vec();
    let version =
        Version { size_bytes: unpack.number()?, mtime_secs: unpack.signed()?, mtime_nanos: unpack.number()? as u32 };
    let has_hash = unpack.number()? == 1;
    let hash = unpack.wide()?;
    Some(DoneFile { name, version, hash: has_hash.then_some(hash) })
}

/// Two orders are the same errand when what moves, and in which pieces, is the same.
fn digest(order: &Order) -> u64 {
    let bytes =
        msgpack::encode_compact(&(&order.tag, &order.transfers, order.chunk_bytes, order.split_bytes, order.verify));
    xxh3_64(&bytes.unwrap_or_default())
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
