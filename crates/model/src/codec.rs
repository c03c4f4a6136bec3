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

/// Appends.
pub fn encode_into<T: Serialize + ?Sized>(value: &T, into: &mut Vec<u8>) {
    msgpack::encode_into(value, into).expect("our nouns have no unserialisable values");
}

/// Items of a list that are encoded one by one, so that they are counted in bytes and need not be kept.
#[derive(Clone, Debug, Default)]
pub struct EncodedList {
    pub n_items: u32,
    pub bytes: Vec<u8>,
}

/// As [`encode`] of a struct of fewer than ten fields whose lists of these names were `lists`; in `rest` they are empty.
pub fn encode_with_lists<T: Serialize>(rest: &T, lists: &[(&str, &EncodedList)]) -> Vec<u8> {
    const SHORT_MAP: u8 = 0x80;
    const SHORT_TEXT: u8 = 0xa0;
    const LIST: u8 = 0xdd;
    let rest = encode(rest);
    let n_fields = usize::from(rest[0] & 0x0f) + lists.iter().filter(|(_, list)| list.n_items > 0).count();
    assert!(rest[0] & 0xf0 == SHORT_MAP && n_fields < 16, "a struct of few fields");
    let n_bytes: usize = lists.iter().map(|(name, list)| name.len() + list.bytes.len() + 8).sum();
    let mut whole = Vec::with_capacity(rest.len() + n_bytes);
    whole.push(SHORT_MAP | n_fields as u8);
    for (name, list) in lists.iter().filter(|(_, list)| list.n_items > 0) {
        assert!(name.len() < 32, "a short name");
        whole.push(SHORT_TEXT | name.len() as u8);
        whole.extend_from_slice(name.as_bytes());
        whole.push(LIST);
        whole.extend_from_slice(&list.n_items.to_be_bytes());
        whole.extend_from_slice(&list.bytes);
    }
    whole.extend_from_slice(&rest[1..]);
    whole
}

/// Values nested too deep are refused before anything follows them.
pub fn decode<T: Decode>(bytes: &[u8]) -> Result<T, DecodeError> {
    msgpack::decode(bytes)
}

/// As [`decode`], for what a user or another machine has sent: its parts are counted besides, and what they expand to.
pub fn decode_sent<T: Decode>(bytes: &[u8]) -> Result<T, DecodeError> {
    decode_work::within(decode_work::MESSAGE_MOST, || msgpack::decode_sent(bytes))
}
