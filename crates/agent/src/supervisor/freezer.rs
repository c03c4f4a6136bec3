//! Suspension of one run: SIGTSTP so that programs may park themselves, a grace, then everything stands still.
use model::time::Span;

use super::clearing::Charge;

#[derive(Default)]
pub struct Freezer {
    phase: Phase,
    /// Orders to be answered when everything stands still.
    waiting: Vec<u64>,
}

#[derive(Clone, Copy, Default)]
enum Phase {
    #[default]
    Running,
    /// Told to stop; frozen at that moment.
    Asked {
        freeze_at: i64,
    },
    Frozen,
}

impl Freezer {
    /// The orders that are thereby done. One that comes again changes nothing, and sends no second signal.
    #[must_use]
    pub fn freeze(&mut self, charge: &Charge, number: u64, grace: Span, now: i64) -> Vec<u64> {
        match self.phase {
            Phase::Frozen => return vec![number],
            Phase::Asked { .. } => (),
            Phase::Running => {
                let grace_millis = grace.0.div_ceil(1000) as i64;
                let is_awaited = grace_millis > 0 && charge.ask_to_stop();
                self.phase = Phase::Asked { freeze_at: now + if is_awaited { grace_millis } else { 0 } };
            }
        }
        self.waiting.push(number);
        self.advance(charge, now)
    }

    /// Freezes if the time has come.
    #[must_use]
    pub fn advance(&mut self, charge: &Charge, now: i64) -> Vec<u64> {
        match self.phase {
            Phase::Asked { freeze_at } if now >= freeze_at => {
                self.freeze_at_once(charge);
                std::mem::take(&mut self.waiting)
            }
            _ => Vec::new(),
        }
    }

    pub fn freeze_at_once(&mut self, charge: &Charge) {
        charge.freeze();
        self.phase = Phase::Frozen;
    }

    /// Everything may run again; a freeze that was still to come does not come any more.
    #[must_use]
    pub fn thaw(&mut self, charge: &Charge) -> Vec<u64> {
        if !matches!(self.phase, Phase::Running) {
            charge.thaw();
            self.phase = Phase::Running;
        }
        std::mem::take(&mut self.waiting)
    }

    /// When `advance` has something to do.
    pub fn due(&self) -> Option<i64> {
        match self.phase {
            Phase::Asked { freeze_at } => Some(freeze_at),
            Phase::Running | Phase::Frozen => None,
        }
    }
}
