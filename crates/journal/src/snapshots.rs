//! Snapshot files: written beside the old one, put in place whole, checksummed in chunks so that damage has an offset.
//!
//! ```text
//! "SpurSnp1"  { length u32, crc u32, bytes } …  { 0, crc of the number of chunks }      first chunk: what it covers
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openraft::SnapshotMeta;
use serde::{Deserialize, Serialize};

use crate::batch::{is_possible_index, take_u32};
use crate::error::{Damage, OpenError};
use crate::files::{self, Files};

const MAGIC: [u8; 8] = *b"SpurSnp1";
const CHUNK: usize = 64 << 10;

/// What a snapshot covers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cover {
    pub meta: SnapshotMeta<u64, openraft::BasicNode>,
    pub n_entries: u64,
}

impl Cover {
    fn last_index(&self) -> u64 {
        self.meta.last_log_id.map_or(0, |id| id.index)
    }
}

/// The snapshots of one journal. Only the newest is kept.
#[derive(Clone)]
pub(crate) struct Snapshots {
    pub files: Arc<dyn Files>,
    pub dir: PathBuf,
}

impl Snapshots {
    /// Makes the snapshot durable, and only then forgets the ones before it.
    pub fn save(&self, cover: &Cover, data: &[u8]) -> io::Result<()> {
        let index = cover.last_index();
        files::replace(&*self.files, &path(&self.dir, index), encode(cover, data)?)?;
        self.remove_before(index)
    }

    /// The newest snapshot, its file, and its data; `None` when there never was one.
    pub fn load(&self) -> Result<Option<(PathBuf, Cover, Vec<u8>)>, OpenError> {
        let indexes = self.indexes().map_err(OpenError::io(&self.dir))?;
        let Some(newest) = indexes.into_iter().max() else { return Ok(None) };
        let path = path(&self.dir, newest);
        let bytes = self.files.read(&path).map_err(OpenError::io(&path))?;
        let (cover, data) = decode(&path, &bytes)?;
        if cover.last_index() != newest {
            return Err(Damage::new(&path, 0, "it covers other entries than its name says").into());
        }
        self.remove_before(newest).map_err(OpenError::io(&self.dir))?;
        Ok(Some((path, cover, data)))
    }

    fn remove_before(&self, newest: u64) -> io::Result<()> {
        for index in self.indexes()?.into_iter().filter(|index| *index < newest) {
            self.files.remove(&path(&self.dir, index))?;
        }
        Ok(())
    }

    fn indexes(&self) -> io::Result<Vec<u64>> {
        Ok(self.files.list(&self.dir)?.iter().filter_map(|name| index_of(name)).collect())
    }
}

fn path(dir: &Path, index: u64) -> PathBuf {
    dir.join(format!("snapshot-{index:020}"))
}

fn index_of(name: &str) -> Option<u64> {
    name.strip_prefix("snapshot-").filter(|digits| digits.len() == 20)?.parse().ok()
}

/// The file in parts of a chunk each, so that a large state is not held in memory twice.
fn encode(cover: &Cover, data: &[u8]) -> io::Result<impl Iterator<Item = Vec<u8>>> {
    let cover = msgpack::encode(cover).map_err(io::Error::other)?;
    let n_chunks = 1 + data.len().div_ceil(CHUNK) as u32;
    let mut end = 0u32.to_le_bytes().to_vec();
    end.extend_from_slice(&crc32fast::hash(&n_chunks.to_le_bytes()).to_le_bytes());
    let first = [&MAGIC[..], &chunk(&cover)].concat();
    Ok(std::iter::once(first).chain(data.chunks(CHUNK).map(chunk)).chain(std::iter::once(end)))
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u32).to_le_bytes();
    let crc = crc32fast::hash(bytes).to_le_bytes();
    [&length[..], &crc, bytes].concat()
}

fn decode(path: &Path, bytes: &[u8]) -> Result<(Cover, Vec<u8>), Damage> {
    if bytes.get(..8) != Some(&MAGIC[..]) {
        return Err(Damage::new(path, 0, "it does not begin like a snapshot"));
    }
    let mut rest = &bytes[8..];
    let mut cover: Option<Cover> = None;
    let mut data = Vec::with_capacity(bytes.len());
    let mut n_chunks = 0u32;
    loop {
        let at = (bytes.len() - rest.len()) as u64;
        let cut_short = || Damage::new(path, at, "the snapshot is cut short");
        let length = take_u32(&mut rest).ok_or_else(cut_short)? as usize;
        let crc = take_u32(&mut rest).ok_or_else(cut_short)?;
        if length == 0 {
            if crc32fast::hash(&n_chunks.to_le_bytes()) != crc || !rest.is_empty() {
                return Err(Damage::new(path, at, "the snapshot does not end as it was written"));
            }
            break;
        }
        let (chunk, after) = rest.split_at_checked(length).ok_or_else(cut_short)?;
        if crc32fast::hash(chunk) != crc {
            return Err(Damage::new(path, at, "the snapshot does not match its checksum"));
        }
        if cover.is_some() {
            data.extend_from_slice(chunk);
        } else {
            cover = Some(msgpack::decode(chunk).map_err(|error| Damage::new(path, at, error.to_string()))?);
        }
        n_chunks += 1;
        rest = after;
    }
    let cover = cover.ok_or_else(|| Damage::new(path, 8, "the snapshot does not say what it covers"))?;
    if !is_possible_index(cover.last_index()) || !is_possible_index(cover.n_entries) {
        return Err(Damage::new(path, 8, "the snapshot covers more than a log can hold"));
    }
    Ok((cover, data))
}
