//! Scripts and environments go along by the hash of their content, so that the controller keeps each only once.
use model::BlobId;
use model::command::Blob;

/// Names the content by its hash.
pub fn blob(content: Vec<u8>) -> Blob {
    let hash = *blake3::hash(&content).as_bytes();
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(hash.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("chunks of eight"));
    }
    Blob { id: BlobId(words), content }
}
