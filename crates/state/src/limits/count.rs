//! What is counted for one party: jobs, what they hold, and what was used in time.
use model::accounts::Amounts;
use model::{Timestamp, record};

use super::charge::Charge;
use super::decay;

record! {
    pub struct Count {
        pub submitted: u64,
        pub jobs: u64,
        pub held: Amounts,
        /// Of those whose clock runs: what they hold.
        pub ticking: Amounts,
        /// The same, each multiplied with the second in which its limit ends.
        pub due: Amounts,
        /// Of those that are suspended: what they hold, multiplied with the seconds left.
        pub owed: Amounts,
        /// What is being used, in thousandths a second, weighed by the usage factors of QOS.
        pub rate: Amounts,
        pub wall_rate: u64,
        /// What was used until `at`, in seconds of each resource.
        pub used: Amounts<f64>,
        pub wall: f64,
        pub at: Timestamp,
    }
}

impl Count {
    pub fn is_idle(&self) -> bool {
        self.submitted == 0 && self.wall == 0.0 && self.used == Amounts::default()
    }

    /// Brings what was used up to now.
    pub fn settle(&mut self, now: Timestamp, half_life: Option<f64>) {
        let (used, wall) = (self.used_at(now, half_life), self.wall_at(now, half_life));
        (self.used, self.wall) = (used, wall);
        self.at = self.at.max(now);
    }

    fn secs_until(&self, now: Timestamp) -> f64 {
        (now - self.at).0 as f64 / 1e6
    }

    /// Seconds of each resource, as far as they are remembered.
    pub fn used_at(&self, now: Timestamp, half_life: Option<f64>) -> Amounts<f64> {
        let secs = self.secs_until(now);
        if secs == 0.0 {
            return self.used.clone();
        }
        let left = half_life.map_or(1.0, |half_life| decay::left_after(secs / half_life));
        let added = decay::remembered_secs(secs, half_life) / 1000.0;
        let mut used = self.used.map(|used| used * left);
        used.merge(&self.rate, |used, rate| *used += rate as f64 * added);
        used
    }

    /// Seconds that jobs have run, as far as they are remembered.
    pub fn wall_at(&self, now: Timestamp, half_life: Option<f64>) -> f64 {
        let secs = self.secs_until(now);
        let left = half_life.map_or(1.0, |half_life| decay::left_after(secs / half_life));
        self.wall * left + self.wall_rate as f64 * decay::remembered_secs(secs, half_life) / 1000.0
    }

    /// What running jobs may still use of a resource before their limits end, in seconds of it.
    pub fn run_secs(&self, name: &str, now: Timestamp) -> u64 {
        // Sums may have gone round; what is left of them has not.
        let ticking = self.due.get(name).wrapping_sub(self.ticking.get(name).wrapping_mul(now.secs()));
        u64::try_from(ticking as i64).unwrap_or(0).saturating_add(self.owed.get(name))
    }

    /// `settle` comes first: what is added counts from now.
    pub(super) fn add(&mut self, charge: &Charge) {
        self.change(charge, |sum, amount| *sum = sum.wrapping_add(amount));
    }

    pub(super) fn subtract(&mut self, charge: &Charge) {
        self.change(charge, |sum, amount| *sum = sum.wrapping_sub(amount));
    }

    fn change(&mut self, charge: &Charge, change: impl Fn(&mut u64, u64) + Copy) {
        change(&mut self.submitted, charge.submitted);
        if !charge.runs {
            return;
        }
        change(&mut self.jobs, 1);
        self.held.merge(&charge.held, change);
        match charge.ends_secs {
            Some(ends) => {
                self.ticking.merge(&charge.held, change);
                self.due.merge(&charge.held.map(|amount| amount.wrapping_mul(ends)), change);
                self.rate.merge(&charge.held.map(|amount| amount.wrapping_mul(charge.usage_factor)), change);
                change(&mut self.wall_rate, charge.usage_factor);
            }
            None => self.owed.merge(&charge.held.map(|amount| amount.wrapping_mul(charge.left_secs)), change),
        }
    }

    /// Without anything that comes from jobs that are there.
    pub(super) fn without_jobs(self) -> Count {
        let Count { used, wall, at, .. } = self;
        Count { used, wall, at, ..Count::default() }
    }
}
