//! The one encoding of nouns, in the log, in snapshots and on the wire: MessagePack with named fields.
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::decode_work;

/// Why bytes could not be read as the value they should hold.
pub use msgpack::DecodeError;

/// What can be read back.
pub trait Decode: DeserializeOwned {}
impl<T: DeserializeOwned> Decode for T {}

pub fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    msgpack::encode(value).expect("our nouns have no unserialisable values")
}

/// Values nested too deep are refused before anything follows them.
pub fn decode<T: Decode>(bytes: &[u8]) -> Result<T, DecodeError> {
    msgpack::decode(bytes)
}

/// As [`decode`], for what a user or another machine has sent: its parts are counted besides, and what they expand to.
pub fn decode_sent<T: Decode>(bytes: &[u8]) -> Result<T, DecodeError> {
    decode_work::within(decode_work::MESSAGE_MOST, || msgpack::decode_sent(bytes))
}
