//! The frame: what one write and one sync put into a segment. Checksums, and the line between torn and damaged.
//!
//! ```text
//! 0      4        8             16              24        28           32      32+length
//! magic  length   first index   committed index body crc  header crc   body    end mark, zeros to a multiple of 32
//! ```
//! The next frame is written only after this one is synced, so only the last frame of the last segment can be torn,
//! and a torn frame is one of which some sectors were never written: they still read as zeros.

use openraft::{EntryPayload, LogId as RaftLogId, Membership};

use crate::batch::{Batch, LogId, RaftEntry, is_possible_index, take_u32, take_u64};

pub(crate) const ALIGNMENT: usize = 32;
const HEADER: usize = 32;
const MAGIC: [u8; 4] = *b"SpJ1";
const END_MARK: u8 = 0xE5;
const SECTOR: usize = 512;
/// Committed index field of a frame written when nothing was committed yet.
const NOTHING_COMMITTED: u64 = u64::MAX;

/// A frame as found in a segment.
#[derive(Debug)]
pub(crate) struct Frame {
    pub committed: Option<u64>,
    pub entries: Vec<RaftEntry>,
    /// Bytes it takes in the segment.
    pub size: usize,
}

/// Why the bytes at an offset are not a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    Header,
    Body,
}

impl Flaw {
    pub fn describe(&self) -> &'static str {
        match self {
            Flaw::Header => "the frame header does not match its checksum",
            Flaw::Body => "the frame does not match its checksum",
        }
    }
}

pub(crate) fn encode(entries: &[RaftEntry], committed: Option<u64>) -> Vec<u8> {
    let first_index = entries.first().map_or(0, |entry| entry.log_id.index);
    let mut frame = vec![0; HEADER];
    for entry in entries {
        encode_entry(entry, &mut frame);
    }
    let length = frame.len() - HEADER;
    let body_crc = crc32fast::hash(&frame[HEADER..]);
    frame.push(END_MARK);
    frame.resize(frame.len().next_multiple_of(ALIGNMENT), 0);

    frame[0..4].copy_from_slice(&MAGIC);
    frame[4..8].copy_from_slice(&(length as u32).to_le_bytes());
    frame[8..16].copy_from_slice(&first_index.to_le_bytes());
    frame[16..24].copy_from_slice(&committed.unwrap_or(NOTHING_COMMITTED).to_le_bytes());
    frame[24..28].copy_from_slice(&body_crc.to_le_bytes());
    let header_crc = crc32fast::hash(&frame[..28]);
    frame[28..32].copy_from_slice(&header_crc.to_le_bytes());
    frame
}

/// The frame at the start of `bytes`.
pub(crate) fn decode(bytes: &[u8]) -> Result<Frame, Flaw> {
    let header = Header::decode(bytes).ok_or(Flaw::Header)?;
    let frame = bytes.get(..header.size()).ok_or(Flaw::Body)?;
    let body = &frame[HEADER..HEADER + header.length];
    let (mark, padding) = frame[HEADER + header.length..].split_first().expect("a frame has room for its end mark");
    if *mark != END_MARK || padding.iter().any(|byte| *byte != 0) || crc32fast::hash(body) != header.body_crc {
        return Err(Flaw::Body);
    }
    let entries = decode_entries(body).ok_or(Flaw::Body)?;
    if entries.first().is_none_or(|entry| entry.log_id.index != header.first_index) {
        return Err(Flaw::Body);
    }
    Ok(Frame { committed: header.committed, entries, size: header.size() })
}

/// Whether the flawed frame at `at` is what a crash in the middle of its write leaves, and not damage to a frame
/// that was whole. `segment` is the whole file.
pub(crate) fn is_torn(segment: &[u8], at: usize) -> bool {
    let rest = &segment[at..];
    let Some(header) = Header::decode(rest) else {
        let header = &rest[..HEADER.min(rest.len())];
        let never_written = header.iter().all(|byte| *byte == 0);
        let cut_within = rest[header.len()..].iter().all(|byte| *byte == 0);
        return (never_written || cut_within) && !a_frame_follows(rest, ALIGNMENT);
    };
    if a_frame_follows(rest, header.size()) {
        return false;
    }
    let Some(frame) = rest.get(..header.size()) else { return true };
    if frame[HEADER + header.length] == 0 {
        return true;
    }
    let first_boundary = SECTOR - at % SECTOR;
    frame
        .get(first_boundary..)
        .is_some_and(|rest| rest.chunks_exact(SECTOR).any(|sector| sector.iter().all(|byte| *byte == 0)))
}

fn a_frame_follows(bytes: &[u8], from: usize) -> bool {
    (from..bytes.len()).step_by(ALIGNMENT).any(|at| decode(&bytes[at..]).is_ok())
}

struct Header {
    length: usize,
    first_index: u64,
    committed: Option<u64>,
    body_crc: u32,
}

impl Header {
    fn decode(bytes: &[u8]) -> Option<Header> {
        let mut header = bytes.get(..HEADER)?;
        let crc = u32::from_le_bytes(header[28..32].try_into().expect("four bytes"));
        if header[..4] != MAGIC || crc32fast::hash(&header[..28]) != crc {
            return None;
        }
        header = &header[4..];
        let length = take_u32(&mut header)? as usize;
        let first_index = take_u64(&mut header)?;
        let committed = Some(take_u64(&mut header)?).filter(|index| *index != NOTHING_COMMITTED);
        let body_crc = take_u32(&mut header)?;
        Some(Header { length, first_index, committed, body_crc })
    }

    fn size(&self) -> usize {
        (HEADER + self.length + 1).next_multiple_of(ALIGNMENT)
    }
}

const BLANK: u8 = 0;
const BATCH: u8 = 1;
const MEMBERSHIP: u8 = 2;

fn encode_entry(entry: &RaftEntry, out: &mut Vec<u8>) {
    out.extend_from_slice(&entry.log_id.leader_id.term.to_le_bytes());
    out.extend_from_slice(&entry.log_id.leader_id.node_id.to_le_bytes());
    out.extend_from_slice(&entry.log_id.index.to_le_bytes());
    let length_at = out.len();
    out.extend_from_slice(&[0; 5]);
    let kind = match &entry.payload {
        EntryPayload::Blank => BLANK,
        EntryPayload::Normal(batch) => {
            batch.encode(out);
            BATCH
        }
        EntryPayload::Membership(membership) => {
            out.extend(msgpack::encode(membership).expect("a membership is plain data"));
            MEMBERSHIP
        }
    };
    let length = (out.len() - length_at - 5) as u32;
    out[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    out[length_at + 4] = kind;
}

fn decode_entries(mut bytes: &[u8]) -> Option<Vec<RaftEntry>> {
    let mut entries: Vec<RaftEntry> = Vec::new();
    while !bytes.is_empty() {
        let entry = decode_entry(&mut bytes)?;
        if entries.last().is_some_and(|last| last.log_id.index + 1 != entry.log_id.index) {
            return None;
        }
        entries.push(entry);
    }
    Some(entries)
}

fn decode_entry(bytes: &mut &[u8]) -> Option<RaftEntry> {
    let term = take_u64(bytes)?;
    let node_id = take_u64(bytes)?;
    let index = Some(take_u64(bytes)?).filter(|index| is_possible_index(*index))?;
    let length = take_u32(bytes)? as usize;
    let (kind, rest) = bytes.split_first()?;
    let (payload, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    let payload = match *kind {
        BLANK if payload.is_empty() => EntryPayload::Blank,
        BATCH => EntryPayload::Normal(Batch::decode(payload)?),
        MEMBERSHIP => EntryPayload::Membership(msgpack::decode::<Membership<u64, _>>(payload).ok()?),
        _ => return None,
    };
    Some(RaftEntry { log_id: log_id(term, node_id, index), payload })
}

pub(crate) fn log_id(term: u64, node_id: u64, index: u64) -> LogId {
    RaftLogId::new(openraft::CommittedLeaderId::new(term, node_id), index)
}
