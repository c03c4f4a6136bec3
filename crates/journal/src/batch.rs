//! What openraft orders for us: its type parameters, and the batch of entries that is one Raft log entry.

use std::io::Cursor;
use std::sync::Arc;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

openraft::declare_raft_types!(
    /// The types openraft works with.
    pub Types:
        D = Batch,
        R = (),
        NodeId = u64,
        Node = openraft::BasicNode,
        SnapshotData = Cursor<Vec<u8>>,
);

pub(crate) type LogId = openraft::LogId<u64>;
pub(crate) type Vote = openraft::Vote<u64>;
pub(crate) type RaftEntry = openraft::Entry<Types>;
pub(crate) type StorageError = openraft::StorageError<u64>;
pub(crate) type StorageIoError = openraft::StorageIOError<u64>;
pub(crate) type Raft = openraft::Raft<Types>;

/// All entries that waited for the same sync. Openraft 0.9 syncs each of its log entries on its own, so the
/// group commit lies in making one Raft entry of many proposals.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Names the proposers that wait in this process; 0 when nobody here does. Never stored.
    pub(crate) ticket: u64,
    pub(crate) entries: Arc<Vec<Vec<u8>>>,
}

impl Batch {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        for entry in self.entries.iter() {
            out.extend_from_slice(&(entry.len() as u32).to_le_bytes());
            out.extend_from_slice(entry);
        }
    }

    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Batch> {
        let n_entries = take_u32(&mut bytes)? as usize;
        let mut entries = Vec::with_capacity(n_entries.min(bytes.len() / 4));
        for _ in 0..n_entries {
            let length = take_u32(&mut bytes)? as usize;
            let (entry, rest) = bytes.split_at_checked(length)?;
            entries.push(entry.to_vec());
            bytes = rest;
        }
        bytes.is_empty().then(|| Batch { ticket: 0, entries: Arc::new(entries) })
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.len() + 4).sum::<usize>() + 4
    }
}

/// No log grows so long. What claims to be later was never written by us, and counting on from there would overflow.
pub(crate) fn is_possible_index(index: u64) -> bool {
    index < 1 << 62
}

pub(crate) fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*head))
}

pub(crate) fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    let (head, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*head))
}

/// Between members a batch travels as one byte string.
impl Serialize for Batch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(self.size_bytes());
        self.encode(&mut bytes);
        serializer.serialize_bytes(&bytes)
    }
}

impl<'de> Deserialize<'de> for Batch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Batch;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a batch of entries")
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Batch, E> {
                Batch::decode(bytes).ok_or_else(|| E::custom("not a batch of entries"))
            }
            fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Batch, E> {
                self.visit_bytes(&bytes)
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}
