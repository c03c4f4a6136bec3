//! What code an input reaches, where the build counts that (sancov's inline counters); else nothing.
use std::sync::Mutex;

/// Each crate's counters, as the compiler's own calls tell at the start of the program.
static COUNTERS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Called before `main` for each object that counts.
#[unsafe(no_mangle)]
unsafe extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, end: *mut u8) {
    if let Ok(mut counters) = COUNTERS.lock()
        && start < end
        && !counters.contains(&(start as usize, end as usize))
    {
        counters.push((start as usize, end as usize));
    }
}

/// What all inputs so far have reached, and how often at most.
pub struct Reached {
    ranges: Vec<(usize, usize)>,
    seen: Vec<Vec<u8>>,
    pub n_places: u64,
}

/// Once, twice, three times, a few, many: more than that is no news.
fn bucket(count: u8) -> u8 {
    match count {
        0 => 0,
        1 => 1,
        2 => 2,
        3 => 4,
        4..=7 => 8,
        8..=31 => 16,
        32..=127 => 32,
        _ => 64,
    }
}

impl Reached {
    pub fn new() -> Reached {
        let ranges = COUNTERS.lock().map(|ranges| ranges.clone()).unwrap_or_default();
        let seen = ranges.iter().map(|(start, end)| vec![0; end - start]).collect();
        Reached { ranges, seen, n_places: 0 }
    }

    /// Takes the counts of the run that has just ended; true if it has reached what none had before.
    pub fn is_news(&mut self) -> bool {
        let mut is_news = false;
        for ((start, end), seen) in self.ranges.iter().zip(&mut self.seen) {
            // SAFETY: the counters of this program, which only its own threads change, and this one does now.
            let counters = unsafe { std::slice::from_raw_parts_mut(*start as *mut u8, end - start) };
            for (counters, seen) in counters.chunks_mut(64).zip(seen.chunks_mut(64)) {
                if counters.iter().all(|count| *count == 0) {
                    continue;
                }
                for (count, seen) in counters.iter_mut().zip(seen) {
                    let bit = bucket(std::mem::take(count));
                    if bit & !*seen != 0 {
                        self.n_places += u64::from(*seen == 0);
                        *seen |= bit;
                        is_news = true;
                    }
                }
            }
        }
        is_news
    }
}
