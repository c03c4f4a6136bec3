//! A journal's files as one input, and their checksums made right again after the fuzzer has been at them.
//!
//! Whoever can write the files can also compute the sums, so what stands behind them must bear any content.
use std::path::Path;

use crate::memory_disk::MemoryDisk;

const SEGMENT_HEAD: usize = 64;
const FRAME_HEAD: usize = 32;
const FRAME_ALIGNMENT: usize = 32;

/// Files one after the other: length of the name, name, length, content.
pub fn pack(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut packed = Vec::new();
    for (name, content) in files {
        packed.push(name.len() as u8);
        packed.extend_from_slice(name.as_bytes());
        packed.extend_from_slice(&(content.len() as u32).to_le_bytes());
        packed.extend_from_slice(content);
    }
    packed
}

/// As many as there are; the last may be cut off.
pub fn unpack(mut bytes: &[u8], dir: &Path, repairs: bool) -> MemoryDisk {
    let disk = MemoryDisk::default();
    while let Some((&n_name, rest)) = bytes.split_first()
        && let Some((name, rest)) = rest.split_at_checked(n_name.into())
        && let Some((length, rest)) = rest.split_first_chunk::<4>()
    {
        let n_here = rest.len().min(u32::from_le_bytes(*length) as usize);
        let (content, rest) = rest.split_at(n_here);
        let name = String::from_utf8_lossy(name).replace(['/', '\0'], "_");
        let mut content = content.to_vec();
        if repairs {
            repair(&name, &mut content);
        }
        disk.put(dir.join(name), content);
        bytes = rest;
    }
    disk
}

fn put(bytes: &mut [u8], at: usize, sum: u32) {
    bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?) as usize)
}

fn repair(name: &str, content: &mut [u8]) {
    match name {
        _ if name.starts_with("log-") => repair_segment(content),
        _ if name.starts_with("snapshot-") => drop(repair_snapshot(content)),
        "state" if content.len() > 12 => {
            let sum = crc32fast::hash(&content[12..]);
            put(content, 8, sum);
        }
        _ => (),
    }
}

fn repair_segment(content: &mut [u8]) {
    if content.len() < SEGMENT_HEAD {
        return;
    }
    let sum = crc32fast::hash(&content[..60]);
    put(content, 60, sum);
    let mut at = SEGMENT_HEAD;
    while let Some(length) = number(content, at + 4).filter(|_| content[at..].starts_with(b"SpJ1")) {
        let size = (FRAME_HEAD + length + 1).next_multiple_of(FRAME_ALIGNMENT);
        let Some(frame) = content.get_mut(at..at + size) else { return };
        let sum = crc32fast::hash(&frame[FRAME_HEAD..FRAME_HEAD + length]);
        put(frame, 24, sum);
        let sum = crc32fast::hash(&frame[..28]);
        put(frame, 28, sum);
        frame[FRAME_HEAD + length] = 0xe5;
        frame[FRAME_HEAD + length + 1..].fill(0);
        at += size;
    }
}

fn repair_snapshot(content: &mut [u8]) -> Option<()> {
    let (mut at, mut n_chunks) = (8, 0u32);
    loop {
        let length = number(content, at)?;
        if length == 0 {
            content.get(at + 4..at + 8)?;
            put(content, at + 4, crc32fast::hash(&n_chunks.to_le_bytes()));
            return Some(());
        }
        let sum = crc32fast::hash(content.get(at + 8..at + 8 + length)?);
        put(content, at + 4, sum);
        at += 8 + length;
        n_chunks += 1;
    }
}
