//! How much is written at once to a local file. The kernel keeps what one call writes in memory that hangs together, as far as it
//! can: with more at once there is less to do for each byte. On a machine whose memory is in shreds it moves other pages about to
//! find such memory, which costs several times what it saves; then it is asked for less for a while.
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Found without moving anything about, as long as there is memory at all.
const SMALL_BYTES: usize = 32 << 10;
/// After a dear block so many are written in small pieces.
const N_CAREFUL: u32 = 64;
/// A block is dear that costs so many times what the cheapest did.
const DEAR: u64 = 3;

/// What the workers of a mover have seen; guesses of each other's may get lost, no harm comes of that.
#[derive(Default)]
pub struct Pieces {
    cheapest_nanos_per_mib: AtomicU64,
    n_careful: AtomicU32,
}

impl Pieces {
    /// The size of the pieces in which a block is to be written.
    pub fn size_bytes(&self, block_bytes: usize) -> usize {
        match self.n_careful.load(Relaxed) {
            0 => block_bytes,
            left => {
                self.n_careful.store(left - 1, Relaxed);
                SMALL_BYTES
            }
        }
    }

    /// A block was written in one piece, and took so much of the processor.
    pub fn took(&self, block_bytes: usize, cpu_nanos: u64) {
        let nanos_per_mib = (cpu_nanos << 20) / (block_bytes as u64).max(1);
        match self.cheapest_nanos_per_mib.load(Relaxed) {
            cheapest if cheapest == 0 || nanos_per_mib < cheapest => {
                self.cheapest_nanos_per_mib.store(nanos_per_mib, Relaxed);
            }
            cheapest if nanos_per_mib > DEAR * cheapest => self.n_careful.store(N_CAREFUL, Relaxed),
            _ => {}
        }
    }
}

/// What this thread has used of the processor: waiting for the disk, or for others, does not count.
pub fn cpu_nanos() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one struct of this size.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 256 << 10;

    #[test]
    fn after_a_dear_block_less_is_written_at_once_for_a_while() {
        let pieces = Pieces::default();
        for nanos in [40_000, 30_000, 80_000] {
            assert_eq!(pieces.size_bytes(BLOCK), BLOCK);
            pieces.took(BLOCK, nanos);
        }
        pieces.took(BLOCK, 95_000);
        for _ in 0..N_CAREFUL {
            assert_eq!(pieces.size_bytes(BLOCK), SMALL_BYTES);
        }
        assert_eq!(pieces.size_bytes(BLOCK), BLOCK, "and then it is tried again");
    }
}
