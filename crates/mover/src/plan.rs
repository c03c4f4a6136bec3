//! All that is to be copied, as the walk found it: a stream of records in memory while it is short, in a scratch file when not.
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::attributes::Attribute;
use crate::pack::{self, Unpack};

/// Up to here a plan needs no file.
const IN_MEMORY_BYTES: usize = 4 << 20;
const READ_BYTES: usize = 256 << 10;

/// A directory as it is found again: an anchor, and a way below it that no symbolic link may bend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Where {
    pub fence: Option<u32>,
    pub anchor: Vec<u8>,
    pub below: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    File,
    Link,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub kind: ItemKind,
    pub source: Vec<u8>,
    /// Empty: the same name.
    pub destination: Vec<u8>,
    pub size_bytes: u64,
}

impl Item {
    pub fn destination(&self) -> &[u8] {
        if self.destination.is_empty() { &self.source } else { &self.destination }
    }
}

/// Files of one directory that one worker copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    pub transfer: u32,
    pub source: Where,
    pub target: Where,
    pub follow: Follow,
    pub items: Vec<Item>,
}

/// Whether a link in the source's place is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    #[default]
    Never,
    /// Within the tree of the anchor.
    Within,
    /// A path that the user wrote: wherever the user's rights lead.
    Freely,
}

/// A directory to make, if no file has made it, and to finish when all files are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    pub transfer: u32,
    pub target: Where,
    pub mode: u32,
    pub mtime_secs: i64,
    pub mtime_nanos: u32,
    /// The head of a tree that was there before keeps its own mode and time.
    pub keeps_own: bool,
    /// Only if they are asked for.
    pub attributes: Vec<Attribute>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Batch(Batch),
    Directory(Directory),
}

pub struct Writer {
    scratch: File,
    buffer: Vec<u8>,
    written_bytes: u64,
    directories: Vec<u64>,
}

impl Writer {
    pub fn new(scratch: File) -> Self {
        Writer { scratch, buffer: Vec::new(), written_bytes: 0, directories: Vec::new() }
    }

    pub fn add(&mut self, record: &Record) -> io::Result<()> {
        if matches!(record, Record::Directory(_)) {
            self.directories.push(self.written_bytes + self.buffer.len() as u64);
        }
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; 4]);
        encode(&mut self.buffer, record);
        let length = (self.buffer.len() - start - 4) as u32;
        self.buffer[start..start + 4].copy_from_slice(&length.to_le_bytes());
        if self.buffer.len() >= IN_MEMORY_BYTES {
            self.scratch.write_all_at(&self.buffer, self.written_bytes)?;
            self.written_bytes += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    pub fn finish(self) -> Plan {
        Plan {
            scratch: self.scratch,
            tail: self.buffer,
            tail_at: self.written_bytes,
            directories: self.directories,
            read_at: 0,
            ahead: Vec::new(),
            ahead_at: 0,
        }
    }
}

pub struct Plan {
    scratch: File,
    tail: Vec<u8>,
    tail_at: u64,
    directories: Vec<u64>,
    read_at: u64,
    ahead: Vec<u8>,
    ahead_at: u64,
}

impl Plan {
    pub fn next(&mut self) -> io::Result<Option<Record>> {
        if self.read_at >= self.tail_at + self.tail.len() as u64 {
            return Ok(None);
        }
        let (record, next) = self.record_at(self.read_at)?;
        self.read_at = next;
        Ok(Some(record))
    }

    /// The directories, children before their parents.
    pub fn pop_directory(&mut self) -> io::Result<Option<Directory>> {
        let Some(at) = self.directories.pop() else { return Ok(None) };
        match self.record_at(at)?.0 {
            Record::Directory(directory) => Ok(Some(directory)),
            Record::Batch(_) => Err(damaged()),
        }
    }

    fn record_at(&mut self, at: u64) -> io::Result<(Record, u64)> {
        let length = u64::from(u32::from_le_bytes(self.bytes(at, 4)?.try_into().expect("four bytes")));
        let record = decode(self.bytes(at + 4, length as usize)?).ok_or_else(damaged)?;
        Ok((record, at + 4 + length))
    }

    fn bytes(&mut self, at: u64, length: usize) -> io::Result<&[u8]> {
        if at >= self.tail_at {
            let start = (at - self.tail_at) as usize;
            return self.tail.get(start..start + length).ok_or_else(damaged);
        }
        let is_ahead = at >= self.ahead_at && at + length as u64 <= self.ahead_at + self.ahead.len() as u64;
        if !is_ahead {
            let wanted = READ_BYTES.max(length).min((self.tail_at - at) as usize);
            self.ahead.resize(wanted, 0);
            self.scratch.read_exact_at(&mut self.ahead, at)?;
            self.ahead_at = at;
        }
        let start = (at - self.ahead_at) as usize;
        self.ahead.get(start..start + length).ok_or_else(damaged)
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the plan's scratch file is damaged")
}

pub fn encode_where(out: &mut Vec<u8>, place: &Where) {
    pack::number(out, place.fence.map_or(0, |fence| u64::from(fence) + 1));
    pack::bytes(out, &place.anchor);
    pack::bytes(out, &place.below);
}

pub fn decode_where(unpack: &mut Unpack) -> Option<Where> {
    let fence = unpack.number()?.checked_sub(1).map(|fence| fence as u32);
    Some(Where { fence, anchor: unpack.bytes()?.to_vec(), below: unpack.bytes()?.to_vec() })
}

fn encode(out: &mut Vec<u8>, record: &Record) {
    match record {
        Record::Batch(batch) => {
            pack::number(out, batch.follow as u64);
            pack::number(out, u64::from(batch.transfer));
            encode_where(out, &batch.source);
            encode_where(out, &batch.target);
            for item in &batch.items {
                pack::number(out, u64::from(item.kind == ItemKind::Link));
                pack::bytes(out, &item.source);
                pack::bytes(out, &item.destination);
                pack::number(out, item.size_bytes);
            }
        }
        Record::Directory(directory) => {
            pack::number(out, 3 + u64::from(directory.keeps_own));
            pack::number(out, u64::from(directory.transfer));
            encode_where(out, &directory.target);
            pack::number(out, u64::from(directory.mode));
            pack::signed(out, directory.mtime_secs);
            pack::number(out, u64::from(directory.mtime_nanos));
            for (name, value) in &directory.attributes {
                pack::bytes(out, name);
                pack::bytes(out, value);
            }
        }
    }
}

fn decode(bytes: &[u8]) -> Option<Record> {
    let mut unpack = Unpack(bytes);
    let kind = unpack.number()?;
    let transfer = unpack.number()? as u32;
    if kind >= 3 {
        let mut directory = Directory {
            transfer,
            target: decode_where(&mut unpack)?,
            mode: unpack.number()? as u32,
            mtime_secs: unpack.signed()?,
            mtime_nanos: unpack.number()? as u32,
            keeps_own: kind == 4,
            attributes: Vec::new(),
        };
        while !unpack.0.is_empty() {
            directory.attributes.push((unpack.bytes()?.to_vec(), unpack.bytes()?.to_vec()));
        }
        return Some(Record::Directory(directory));
    }
    let follow = [Follow::Never, Follow::Within, Follow::Freely][kind as usize];
    let (source, target) = (decode_where(&mut unpack)?, decode_where(&mut unpack)?);
    let mut items = Vec::new();
    while !unpack.0.is_empty() {
        let kind = if unpack.number()? == 1 { ItemKind::Link } else { ItemKind::File };
        let (source, destination) = (unpack.bytes()?.to_vec(), unpack.bytes()?.to_vec());
        items.push(Item { kind, source, destination, size_bytes: unpack.number()? });
    }
    Some(Record::Batch(Batch { transfer, source, target, follow, items }))
}
