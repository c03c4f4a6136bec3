//! The small file `state`: whose journal this is, the vote, and which segment is the newest.
//!
//! It changes with elections and new segments only, and is replaced as a whole.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::batch::Vote;
use crate::error::{Damage, OpenError};
use crate::files::{self, Files};

const MAGIC: [u8; 8] = *b"SpurSta1";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HardState {
    pub member: u64,
    pub vote: Option<Vote>,
    /// If this segment is missing, acknowledged entries are.
    pub newest_segment: u64,
}

pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join("state")
}

pub(crate) fn save(files: &dyn Files, dir: &Path, state: &HardState) -> io::Result<()> {
    let body = msgpack::encode(state).map_err(io::Error::other)?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
    bytes.extend_from_slice(&body);
    files::replace(files, &path(dir), [bytes])
}

/// `None` in a directory where no journal was made yet.
pub(crate) fn load(files: &dyn Files, dir: &Path) -> Result<Option<HardState>, OpenError> {
    let path = path(dir);
    let bytes = match files.read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(OpenError::io(&path)(error)),
    };
    if bytes.get(..8) != Some(&MAGIC[..]) {
        return Err(Damage::new(&path, 0, "it does not begin like a journal's state").into());
    }
    let Some((crc, body)) = bytes[8..].split_first_chunk::<4>() else {
        return Err(Damage::new(&path, 8, "it is cut short").into());
    };
    if crc32fast::hash(body) != u32::from_le_bytes(*crc) {
        return Err(Damage::new(&path, 8, "it does not match its checksum").into());
    }
    let state = msgpack::decode(body).map_err(|error| Damage::new(&path, 12, error.to_string()))?;
    Ok(Some(state))
}
