//! The time that stamps tell. It follows the machine's clock and never goes back: when that is set back, or another leader's was
//! ahead, time goes on a little slower until the clock has caught up. So no deadline waits for hours that were only a mistake.
use std::sync::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use model::Timestamp;

/// Of ten moments so many pass while the clock is behind.
const PACE: u64 = 9;

pub struct Clock {
    begun: Instant,
    told: Mutex<Told>,
}

/// The last stamp, and when it was told by a clock that nobody sets.
struct Told {
    stamp_micros: u64,
    steady_micros: u64,
}

impl Clock {
    /// Nothing earlier is told.
    pub fn from(stamp: Timestamp) -> Clock {
        let told = Told { stamp_micros: stamp.0, steady_micros: 0 };
        Clock { begun: Instant::now(), told: Mutex::new(told) }
    }

    pub fn now(&self) -> Timestamp {
        let set_micros = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
        let mut told = self.told.lock().expect("nobody panics with it");
        told.tell(set_micros, self.begun.elapsed().as_micros() as u64)
    }
}

impl Told {
    /// `set` is what the machine's clock says, `steady` what has really passed.
    fn tell(&mut self, set_micros: u64, steady_micros: u64) -> Timestamp {
        if set_micros >= self.stamp_micros {
            (self.stamp_micros, self.steady_micros) = (set_micros, steady_micros);
        } else {
            // What is too little to count now is counted later.
            let tenths = steady_micros.saturating_sub(self.steady_micros) / 10;
            self.stamp_micros += tenths * PACE;
            self.steady_micros += tenths * 10;
        }
        Timestamp(self.stamp_micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000;

    #[test]
    fn time_follows_the_clock_and_goes_on_when_that_is_set_back() {
        let mut told = Told { stamp_micros: 0, steady_micros: 0 };
        assert_eq!(told.tell(100 * HOUR, 5).0, 100 * HOUR);
        assert_eq!(told.tell(100 * HOUR + 7, 12).0, 100 * HOUR + 7);
        // A leap ahead counts at once.
        assert_eq!(told.tell(124 * HOUR, 20).0, 124 * HOUR);
        // Taken back: nothing is told twice over, and yet time goes on.
        assert_eq!(told.tell(100 * HOUR + 20, 25).0, 124 * HOUR, "too little to count yet");
        assert_eq!(told.tell(100 * HOUR + 40, 40).0, 124 * HOUR + 18);
        let mut before = told.stamp_micros;
        for hour in 1..=240 {
            let stamp = told.tell((100 + hour) * HOUR, hour * HOUR).0;
            assert!(stamp > before, "it never stands still");
            before = stamp;
        }
        assert_eq!(before, 340 * HOUR, "the clock has caught up, and is followed again");
    }
}
