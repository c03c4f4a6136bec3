//! What is counted for one party: jobs, what they hold, and what was used in time.
use imbl::OrdMap;
use model::accounts::Amounts;
use model::{NodeName, Timestamp, record};

use super::charge::Charge;
use super::decay;

record! {
    pub struct Count {
        pub submitted: u64,
        /// Of those that wait: whose age counts.
        pub accruing: u64,
        pub jobs: u64,
        pub held: Amounts,
        /// How many jobs hold each node; only where there is a limit on nodes, which counts each of them once.
        pub nodes: OrdMap<NodeName, u32>,
        /// What is being used by those whose clock runs, in thousandths a second, weighed by the usage factors of QOS.
        pub rate: Amounts,
        /// The same, each multiplied with the second in which its limit ends.
        pub due_thousandths: Amounts,
        /// Of those that are suspended: what they hold, weighed and multiplied with the seconds left.
        pub owed_thousandths: Amounts,
        pub wall_rate: u64,
        /// What was used until `at`, in seconds of each resource.
        pub used: Amounts<f64>,
        pub wall: f64,
        pub at: Timestamp,
    }
}

impl Count {
    pub fn is_idle(&self) -> bool {
        let holds = self.held != Amounts::default();
        self.submitted == 0 && !holds && self.wall == 0.0 && self.used == Amounts::default()
    }

    /// Brings what was used up to now.
    pub fn settle(&mut self, now: Timestamp, half_life: Option<f64>) {
        if now <= self.at {
            return;
        }
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
        let running = self.due_thousandths.get(name).wrapping_sub(self.rate.get(name).wrapping_mul(now.secs()));
        u64::try_from(running as i64).unwrap_or(0).saturating_add(self.owed_thousandths.get(name)) / 1000
    }

    /// What jobs hold of a resource.
    pub fn held_of(&self, name: &str) -> u64 {
        match name {
            "node" if !self.nodes.is_empty() => self.nodes.len() as u64,
            _ => self.held.get(name),
        }
    }

    /// Counts a job that begins now; its nodes too, if the party has a limit on nodes.
    pub fn begin(&mut self, charge: &Charge, now: Timestamp, half_life: Option<f64>, counts_nodes: bool) {
        self.settle(now, half_life);
        self.add(charge, counts_nodes);
    }

    /// `settle` comes first: what is added counts from now.
    pub(super) fn add(&mut self, charge: &Charge, counts_nodes: bool) {
        self.change(charge, |sum, amount| *sum = sum.wrapping_add(amount));
        for node in charge.nodes.iter().filter(|_| counts_nodes) {
            *self.nodes.entry(node.clone()).or_default() += 1;
        }
    }

    pub(super) fn subtract(&mut self, charge: &Charge, counts_nodes: bool) {
        self.change(charge, |sum, amount| *sum = sum.wrapping_sub(amount));
        for node in charge.nodes.iter().filter(|_| counts_nodes) {
            let Some(held_by) = self.nodes.get_mut(node) else { continue };
            *held_by -= 1;
            if *held_by == 0 {
                self.nodes.remove(node);
            }
        }
    }

    fn change(&mut self, charge: &Charge, change: impl Fn(&mut u64, u64) + Copy) {
        change(&mut self.submitted, charge.submitted);
        change(&mut self.accruing, charge.accruing);
        if charge.stands {
            self.held.merge(&charge.held, change);
        }
        if !charge.runs {
            return;
        }
        change(&mut self.jobs, 1);
        self.held.merge(&charge.held, change);
        match charge.ends_secs {
            Some(ends) => {
                let weighed = charge.held.map(|amount| amount.wrapping_mul(charge.usage_factor));
                self.due_thousandths.merge(&weighed.map(|amount| amount.wrapping_mul(ends)), change);
                self.rate.merge(&weighed, change);
                change(&mut self.wall_rate, charge.usage_factor);
            }
            None => {
                let left = charge.left_secs.wrapping_mul(charge.usage_factor);
                self.owed_thousandths.merge(&charge.held.map(|amount| amount.wrapping_mul(left)), change);
            }
        }
    }

    /// Without anything that comes from jobs that are there.
    pub(super) fn without_jobs(self) -> Count {
        let Count { used, wall, at, .. } = self;
        Count { used, wall, at, ..Count::default() }
    }
}
