//! Values on a byte stream: four bytes of length, then the value in the one encoding.
use model::codec;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longer frames are a sign of a broken stream.
const LENGTH_MAX: usize = 512 << 20;

pub fn append<T: Serialize>(to: &mut Vec<u8>, value: &T) {
    let body = codec::encode(value);
    to.extend_from_slice(&(body.len() as u32).to_le_bytes());
    to.extend_from_slice(&body);
}

pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    append(&mut bytes, value);
    bytes
}

/// Bytes that have come, of which whole frames can be taken.
#[derive(Default)]
pub struct Incoming {
    bytes: Vec<u8>,
    taken: usize,
}

#[derive(Debug)]
pub struct Broken;

impl Incoming {
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    pub fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Broken> {
        let rest = &self.bytes[self.taken..];
        let Some((head, body)) = rest.split_at_checked(4) else { return Ok(None) };
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if length > LENGTH_MAX {
            return Err(Broken);
        }
        let Some(body) = body.get(..length) else {
            // A half-read large frame must not keep what was read before it.
            if self.taken > 1 << 16 {
                self.bytes.drain(..self.taken);
                self.taken = 0;
            }
            return Ok(None);
        };
        let value = codec::decode(body).map_err(|_| Broken)?;
        self.taken += 4 + length;
        Ok(Some(value))
    }
}
