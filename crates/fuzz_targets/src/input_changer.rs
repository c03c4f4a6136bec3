//! Other inputs from given ones, without knowing what they mean.

/// Changes inputs by numbers that are the same in every run.
pub struct InputChanger(u64);

impl InputChanger {
    pub fn of(number: usize) -> InputChanger {
        InputChanger(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number as u64 + 1))
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    /// Bytes overwritten, cut out, doubled, or taken from another seed.
    pub fn changed(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(6) {
            let at = self.below(bytes.len());
            let end = (at + 1 + self.below(16)).min(bytes.len());
            match self.below(5) {
                0 if at < bytes.len() => bytes[at] = self.below(256) as u8,
                1 => drop(bytes.drain(at.min(end)..end)),
                2 => {
                    let piece = bytes[at.min(end)..end].repeat(1 + self.below(40));
                    bytes.splice(at..at, piece);
                }
                3 => {
                    let other = &seeds[self.below(seeds.len())];
                    bytes.truncate(at);
                    bytes.extend_from_slice(&other[self.below(other.len())..]);
                }
                _ => {
                    let sign = b"\x00\xff\x80\xc0\xdc\xdd\xdf[](),:-*%@&|\"'\\\n\x1b"[self.below(24)];
                    bytes.insert(at, sign);
                }
            }
        }
        bytes.truncate(1 << 16);
        bytes
    }
}
