//! Refusals alike: the first of a minute are told one by one, the others by number.
use std::collections::HashMap;

use model::Timestamp;
use model::audit::AuditRecord;

/// So many refusals of one caller and call are told one by one, in each minute.
const TOLD_A_MINUTE: u32 = 20;
const MINUTE_MICROS: u64 = 60_000_000;
/// So many callers are remembered; when there are more, all begin anew.
const CALLERS_MAX: usize = 4096;

pub enum Flood {
    /// Told, with the number of those that were held back since the last.
    Pass {
        n_held_back: u32,
    },
    Hold,
}

#[derive(Default)]
pub struct FloodGate {
    seen: HashMap<(String, String), Refusals>,
}

struct Refusals {
    since: Timestamp,
    n_told: u32,
    n_held_back: u32,
}

impl FloodGate {
    pub fn pass(&mut self, record: &AuditRecord) -> Flood {
        // A port is another for each connection.
        let caller = match record.uid {
            Some(uid) => format!("{} {uid}", record.from),
            None => record.from.rsplit_once(':').map_or(record.from.as_str(), |(address, _)| address).to_owned(),
        };
        if self.seen.len() >= CALLERS_MAX {
            self.seen.clear();
        }
        let first = || Refusals { since: record.at, n_told: 0, n_held_back: 0 };
        let refusals = self.seen.entry((caller, record.call.clone())).or_insert_with(first);
        if record.at.0.saturating_sub(refusals.since.0) >= MINUTE_MICROS {
            *refusals = Refusals { n_held_back: refusals.n_held_back, ..first() };
        }
        if refusals.n_told == TOLD_A_MINUTE {
            refusals.n_held_back += 1;
            return Flood::Hold;
        }
        refusals.n_told += 1;
        Flood::Pass { n_held_back: std::mem::take(&mut refusals.n_held_back) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousand_refusals_of_a_minute_are_counted_in_the_next() {
        let mut gate = FloodGate::default();
        let record = |secs| AuditRecord {
            at: Timestamp::from_secs(secs),
            uid: Some(1000),
            from: "local".into(),
            call: "Shutdown".into(),
            ..AuditRecord::default()
        };
        let n_told = (0..1000).filter(|_| matches!(gate.pass(&record(100)), Flood::Pass { .. })).count();
        assert_eq!(n_told as u32, TOLD_A_MINUTE);
        assert!(matches!(gate.pass(&AuditRecord { uid: Some(1001), ..record(100) }), Flood::Pass { n_held_back: 0 }));
        assert!(matches!(gate.pass(&record(160)), Flood::Pass { n_held_back: 980 }));
    }
}
