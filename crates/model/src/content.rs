//! Scripts and environments: content, and the hash of it that names it.
use std::cell::Cell;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::BlobId;

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Blob {
    pub id: BlobId,
    #[serde(with = "crate::command::bytes")]
    pub content: Vec<u8>,
}

/// Scripts and environments are nobody's to read but their owner's.
impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob {:?} of {} bytes", self.id, self.content.len())
    }
}

impl Blob {
    /// Names the content by its hash.
    pub fn of(content: Vec<u8>) -> Blob {
        Blob { id: BlobId::of(&content), content }
    }

    /// The content is the one that the id names.
    pub fn is_genuine(&self) -> bool {
        self.id == BlobId::of(&self.content)
    }
}

impl BlobId {
    pub fn of(content: &[u8]) -> BlobId {
        let hash = *blake3::hash(content).as_bytes();
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(hash.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("chunks of eight"));
        }
        BlobId(words)
    }
}

thread_local! {
    static HIDES_IDS: Cell<bool> = const { Cell::new(false) };
}

/// Encodes with every id as zero. An id tells what a script is to those who can guess it, and no reader needs one.
pub fn encode_without_ids<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    encode_without_ids_into(value, &mut bytes);
    bytes
}

/// As [`encode_without_ids`]; appends.
pub fn encode_without_ids_into<T: Serialize>(value: &T, into: &mut Vec<u8>) {
    /// Ends the hiding, also if the encoding panics.
    struct HidingIds;
    impl Drop for HidingIds {
        fn drop(&mut self) {
            HIDES_IDS.set(false);
        }
    }
    HIDES_IDS.set(true);
    let _hiding = HidingIds;
    crate::codec::encode_into(value, into);
}

impl Serialize for BlobId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let words = if HIDES_IDS.get() { &[0; 4] } else { &self.0 };
        to.serialize_newtype_struct("BlobId", words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_hidden_only_where_asked() {
        let blob = Blob::of(b"secret".to_vec());
        let hidden: Blob = crate::codec::decode(&encode_without_ids(&blob)).unwrap();
        assert_eq!(hidden, Blob { id: BlobId::default(), ..blob.clone() });
        assert_eq!(crate::codec::decode::<Blob>(&crate::codec::encode(&blob)).unwrap(), blob);
    }

    #[test]
    fn blob_with_other_content_is_no_longer_genuine() {
        let mut blob = Blob::of(b"#!/bin/sh\ntrue\n".to_vec());
        assert!(blob.is_genuine());
        blob.content.push(b'\n');
        assert!(!blob.is_genuine());
        // Journals hold ids: the hash stays what it was.
        assert_eq!(BlobId::of(b"").0[0], u64::from_le_bytes(*b"\xaf\x13\x49\xb9\xf5\xf9\xa1\xa6"));
    }
}
