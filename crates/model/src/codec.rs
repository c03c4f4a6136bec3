//! The one encoding of nouns, in the log, in snapshots and on the wire: MessagePack with named fields.
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why bytes could not be read as the value they should hold.
pub type DecodeError = rmp_serde::decode::Error;

/// What can be read back.
pub trait Decode: DeserializeOwned {}
impl<T: DeserializeOwned> Decode for T {}

pub fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    rmp_serde::to_vec_named(value).expect("our nouns have no unserialisable values")
}

pub fn decode<T: Decode>(bytes: &[u8]) -> Result<T, DecodeError> {
    rmp_serde::from_slice(bytes)
}
