//! Other inputs from given ones, without knowing what they mean.

/// Changes inputs by numbers that are the same in every run.
pub struct InputChanger(u64);

/// What is hostile about a number in a head: its ends, and lengths that are only claimed.
const NUMBERS: [u64; 10] = [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 29, u64::MAX - 1, u64::MAX];
const LENGTH_MAX: usize = 1 << 16;

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

    /// Bytes overwritten, cut out, doubled, counted up, replaced by a hostile number, or taken from another seed.
    pub fn changed<S: AsRef<[u8]>>(&mut self, seeds: &[S]) -> Vec<u8> {
        let mut bytes = seeds[self.below(seeds.len())].as_ref().to_vec();
        for _ in 0..=self.below(6) {
            let at = self.below(bytes.len());
            let end = (at + 1 + self.below(16)).min(bytes.len());
            match self.below(7) {
                0 if at < bytes.len() => bytes[at] = self.below(256) as u8,
                1 => drop(bytes.drain(at.min(end)..end)),
                2 => {
                    let piece = bytes[at.min(end)..end].repeat(1 + self.below(40));
                    bytes.splice(at..at, piece);
                }
                3 => {
                    let other = seeds[self.below(seeds.len())].as_ref();
                    bytes.truncate(at);
                    bytes.extend_from_slice(&other[self.below(other.len())..]);
                }
                4 => {
                    let (number, n_bytes) = (NUMBERS[self.below(NUMBERS.len())], 1 << self.below(4));
                    let written = if self.below(2) == 0 { number.to_le_bytes() } else { number.to_be_bytes() };
                    let written = if self.below(2) == 0 { &written[..n_bytes] } else { &written[8 - n_bytes..] };
                    let end = (at + n_bytes).min(bytes.len());
                    bytes.splice(at..end, written.iter().copied());
                }
                5 if at < bytes.len() => bytes[at] = bytes[at].wrapping_add(self.below(9) as u8).wrapping_sub(4),
                _ => {
                    let sign = b"\x00\xff\x80\xc0\xdc\xdd\xdf[](),:-*%@&|\"'\\\n\x1b"[self.below(24)];
                    bytes.insert(at, sign);
                }
            }
        }
        bytes.truncate(LENGTH_MAX);
        bytes
    }
}
