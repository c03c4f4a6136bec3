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
    /// They come from a user's process: values are measured before they are made.
    are_users: bool,
}

impl Default for Incoming {
    fn default() -> Self {
        Incoming { bytes: Vec::new(), taken: 0, length_max: LENGTH_MAX, are_users: false }
    }
}

#[derive(Debug)]
pub struct Broken;

impl Incoming {
    /// Of a process that runs as a user, whatever its program is.
    pub fn of_users() -> Incoming {
        Incoming { length_max: USERS_LENGTH_MAX, are_users: true, ..Incoming::default() }
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

    pub fn take<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Broken> {
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
        let value = match self.are_users {
            true => codec::decode_sent(body),
            false => codec::decode(body),
        };
        let value = value.map_err(|_| Broken)?;
        self.taken += 4 + length;
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_users_processes_are_short_and_hold_few_parts() {
        let list = |n_items: usize| encode(&vec![0u8; n_items]);
        for (n_items, is_taken) in [(1_000, true), (1 << 22, false)] {
            let mut incoming = Incoming::of_users();
            incoming.push(&list(n_items));
            assert_eq!(incoming.take::<Vec<u8>>().is_ok(), is_taken, "{n_items}");
            let mut incoming = Incoming::default();
            incoming.push(&list(n_items));
            assert!(incoming.take::<Vec<u8>>().is_ok(), "our own are believed");
        }
        // Before its bytes have come.
        let mut incoming = Incoming::of_users();
        incoming.push(&(USERS_LENGTH_MAX as u32 + 1).to_le_bytes());
        assert!(incoming.take::<u8>().is_err());
    }
}
