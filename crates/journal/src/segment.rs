//! One segment file: its name, its header, and reading it back.
//!
//! The header says which log id comes before the segment's first entry. That makes a segment the record of a cut too:
//! what older segments hold after that log id is void.

use std::path::{Path, PathBuf};

use crate::batch::{LogId, is_possible_index, take_u32, take_u64};
use crate::error::Damage;
use crate::frame::{self, log_id};

pub(crate) const HEADER: usize = 64;
const MAGIC: [u8; 8] = *b"SpurLog1";
const AFTER_NOTHING: u32 = 0;
const AFTER_ENTRY: u32 = 1;
const AFTER_SNAPSHOT: u32 = 2;

/// What a segment follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follows {
    /// The empty log.
    Nothing,
    /// This entry of the log; entries behind it in older segments are void.
    Entry(LogId),
    /// A snapshot that ends with this entry, which the log need not hold; all older segments are void.
    Snapshot(LogId),
}

impl Follows {
    pub fn log_id(self) -> Option<LogId> {
        match self {
            Follows::Nothing => None,
            Follows::Entry(id) | Follows::Snapshot(id) => Some(id),
        }
    }
}

/// Where an entry lies on disk: the frame that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub segment: u64,
    pub offset: u64,
    pub size: u32,
}

pub(crate) fn path(dir: &Path, sequence: u64) -> PathBuf {
    dir.join(format!("log-{sequence:020}"))
}

pub(crate) fn sequence_of(name: &str) -> Option<u64> {
    name.strip_prefix("log-").filter(|digits| digits.len() == 20)?.parse().ok()
}

pub(crate) fn encode_header(sequence: u64, follows: Follows) -> [u8; HEADER] {
    let kind = match follows {
        Follows::Nothing => AFTER_NOTHING,
        Follows::Entry(_) => AFTER_ENTRY,
        Follows::Snapshot(_) => AFTER_SNAPSHOT,
    };
    let id = follows.log_id().unwrap_or_default();
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&kind.to_le_bytes());
    header[16..24].copy_from_slice(&sequence.to_le_bytes());
    header[24..32].copy_from_slice(&id.leader_id.term.to_le_bytes());
    header[32..40].copy_from_slice(&id.leader_id.node_id.to_le_bytes());
    header[40..48].copy_from_slice(&id.index.to_le_bytes());
    let crc = crc32fast::hash(&header[..60]);
    header[60..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// A segment read back.
pub(crate) struct Segment {
    pub follows: Follows,
    pub entries: Vec<(LogId, Place)>,
    /// The greatest committed index that a frame here tells of.
    pub committed: Option<u64>,
    /// Where the last whole frame begins.
    pub last_frame: Option<u64>,
    /// Where the next frame goes.
    pub end: u64,
    /// A torn frame lies at `end` and has to be wiped.
    pub is_torn: bool,
}

/// Whether a segment may end in a torn frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    Last,
    Earlier,
}

pub(crate) fn decode(path: &Path, bytes: &[u8], sequence: u64, position: Position) -> Result<Segment, Damage> {
    let follows = decode_header(bytes, sequence)
        .ok_or_else(|| Damage::new(path, 0, "the segment header does not match its checksum or its name"))?;
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut segment =
        Segment { follows, entries: Vec::new(), committed: None, last_frame: None, end: HEADER as u64, is_torn: false };
    let mut next_index = follows.log_id().map_or(0, |id| id.index + 1);
    let mut at = HEADER;
    while at < used {
        let frame = match frame::decode(&bytes[at..]) {
            Ok(frame) => frame,
            Err(_) if position == Position::Last && frame::is_torn(bytes, at) => {
                segment.is_torn = true;
                break;
            }
            Err(flaw) => return Err(Damage::new(path, at as u64, flaw.describe())),
        };
        let place = Place { segment: sequence, offset: at as u64, size: frame.size as u32 };
        for entry in &frame.entries {
            if entry.log_id.index != next_index {
                let what = format!("entry {} stands where entry {next_index} belongs", entry.log_id.index);
                return Err(Damage::new(path, at as u64, what));
            }
            next_index += 1;
            segment.entries.push((entry.log_id, place));
        }
        segment.committed = segment.committed.max(frame.committed);
        segment.last_frame = Some(at as u64);
        at += frame.size;
    }
    segment.end = at as u64;
    Ok(segment)
}

fn decode_header(bytes: &[u8], sequence: u64) -> Option<Follows> {
    let header: &[u8; HEADER] = bytes.first_chunk()?;
    let crc = u32::from_le_bytes(header[60..].try_into().expect("four bytes"));
    if header[..8] != MAGIC || crc32fast::hash(&header[..60]) != crc {
        return None;
    }
    let mut fields = &header[8..];
    let kind = take_u32(&mut fields)?;
    take_u32(&mut fields)?;
    if take_u64(&mut fields)? != sequence {
        return None;
    }
    let id = log_id(take_u64(&mut fields)?, take_u64(&mut fields)?, take_u64(&mut fields)?);
    match kind {
        _ if !is_possible_index(id.index) => None,
        AFTER_NOTHING => Some(Follows::Nothing),
        AFTER_ENTRY => Some(Follows::Entry(id)),
        AFTER_SNAPSHOT => Some(Follows::Snapshot(id)),
        _ => None,
    }
}
