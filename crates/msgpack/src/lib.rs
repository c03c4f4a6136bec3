//! MessagePack as everything here is kept and sent. The only crate that calls `rmp_serde`; knows nothing of ours.
//!
//! The writer of the bytes may be hostile, and `rmp_serde` follows nested values with its stack. So [`measure`] walks over the
//! bytes first, without recursion and without memory: nothing is nested deeper than [`DEPTH_MAX`], and no length claims more
//! than has come.
mod measure;
mod metered;

use rmp_serde::config::BytesMode;
use serde::Serialize;
use serde::de::DeserializeOwned;

use metered::{Allowance, Metered};

pub use measure::{DEPTH_MAX, Malformed, SENT_DEPTH_MAX, SENT_PARTS_MAX, SENT_VALUES_MAX, ShapeLimits, measure};
/// Why bytes could not be read as the value they should hold.
pub use rmp_serde::decode::Error as DecodeError;
pub use rmp_serde::encode::Error as EncodeError;

/// Fields by their names: what is read by later releases.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, EncodeError> {
    rmp_serde::to_vec_named(value)
}

/// As [`encode`], behind what is there already.
pub fn encode_into<T: Serialize + ?Sized>(value: &T, into: &mut Vec<u8>) -> Result<(), EncodeError> {
    rmp_serde::encode::write_named(into, value)
}

/// Fields by their order: for values that only this release reads.
pub fn encode_compact<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, EncodeError> {
    rmp_serde::to_vec(value)
}

/// As [`encode`]; lists of bytes are byte strings.
pub fn encode_bytes_whole<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    let mut serializer = rmp_serde::Serializer::new(&mut bytes).with_struct_map().with_bytes(BytesMode::ForceAll);
    value.serialize(&mut serializer)?;
    Ok(bytes)
}

pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    measure(bytes, ShapeLimits::KEPT)?;
    rmp_serde::from_slice(bytes)
}

/// What any message may take when it is decoded, and how much for each of its bytes: a long list of short names takes ten.
const SENT_MEMORY_BYTES: usize = 1 << 18;
const SENT_MEMORY_PER_BYTE: usize = 10;

/// As [`decode`], for what a user or another machine has sent: it is shallower, its values are counted, and the memory
/// that they take is in proportion to their bytes.
pub fn decode_sent<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    measure(bytes, ShapeLimits::SENT)?;
    let allowance = Allowance::of(SENT_MEMORY_BYTES + SENT_MEMORY_PER_BYTE * bytes.len());
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes);
    T::deserialize(Metered::new(&mut deserializer, &allowance))
}

/// The first of several values; the others stay.
pub fn decode_next<T: DeserializeOwned>(bytes: &mut &[u8]) -> Result<T, DecodeError> {
    let (first, rest) = bytes.split_at(measure(bytes, ShapeLimits::KEPT)?);
    *bytes = rest;
    rmp_serde::from_slice(first)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Any other caller would read without looking first; any other decoder of JSON would go as deep as it is told.
    #[test]
    fn no_other_crate_calls_rmp_serde() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut callers = Vec::new();
        for entry in std::fs::read_dir(crates).unwrap() {
            let manifest = std::fs::read_to_string(entry.unwrap().path().join("Cargo.toml")).unwrap_or_default();
            assert!(!manifest.contains("unbounded_depth"), "{manifest}");
            if manifest.contains("rmp") {
                callers.extend(manifest.lines().nth(1).map(str::to_owned));
            }
        }
        assert_eq!(callers, ["name = \"msgpack\""]);
    }
}
