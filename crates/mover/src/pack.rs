//! Numbers and names as bytes, for the plan and the journal, which hold millions of them.

pub fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn signed(out: &mut Vec<u8>, value: i64) {
    number(out, ((value << 1) ^ (value >> 63)) as u64);
}

pub fn bytes(out: &mut Vec<u8>, value: &[u8]) {
    number(out, value.len() as u64);
    out.extend_from_slice(value);
}

pub struct Unpack<'a>(pub &'a [u8]);

impl<'a> Unpack<'a> {
    pub fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (value, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(value)
    }

    pub fn wide(&mut self) -> Option<u128> {
        let (value, rest) = self.0.split_first_chunk::<16>()?;
        self.0 = rest;
        Some(u128::from_le_bytes(*value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        let mut out = Vec::new();
        for value in [0, 1, 127, 128, u64::MAX] {
            number(&mut out, value);
        }
        for value in [0, -1, 5, i64::MIN, i64::MAX] {
            signed(&mut out, value);
        }
        bytes(&mut out, b"name");
        let mut unpack = Unpack(&out);
        for value in [0, 1, 127, 128, u64::MAX] {
            assert_eq!(unpack.number(), Some(value));
        }
        for value in [0, -1, 5, i64::MIN, i64::MAX] {
            assert_eq!(unpack.signed(), Some(value));
        }
        assert_eq!(unpack.bytes(), Some(&b"name"[..]));
        assert_eq!((unpack.number(), unpack.bytes()), (None, None));
    }
}
