//! Values on a byte stream: four bytes of length, then the value in the one encoding.
use model::codec;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longer frames are a sign of a broken stream.
const LENGTH_MAX: usize = 512 << 20;
/// What a process of a user's says at once, at most: no more goes from node to node.
pub const USERS_LENGTH_MAX: usize = 64 << 20;

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
pub struct Incoming {
    bytes: Vec<u8>,
    taken: usize,
    length_max: usize,
}

impl Default for Incoming {
    fn default() -> Self {
        Incoming { bytes: Vec::new(), taken: 0, length_max: LENGTH_MAX }
    }
}

#[derive(Debug)]
pub struct Broken;

impl Incoming {
    /// From a process that a user can make say anything.
    pub fn of_user() -> Self {
        Incoming { length_max: USERS_LENGTH_MAX, ..Incoming::default() }
    }

    /// More than a whole frame waits to be taken: no more is read meanwhile.
    pub fn is_full(&self) -> bool {
        self.bytes.len() - self.taken > self.length_max + 4
    }

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
        if length > self.length_max {
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
