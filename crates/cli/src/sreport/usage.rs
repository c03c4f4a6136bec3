//! What was used in a period, summed up from history.
use std::collections::BTreeMap;

use model::Timestamp;
use model::amount::Amount;
use model::capacity::billing_by_node;
use model::config::Config;
use model::history::{JobRecord, RunHistory};

/// From the first moment up to, but not including, the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    pub start: Timestamp,
    pub end: Timestamp,
}

impl Period {
    pub fn secs(self) -> u64 {
        (self.end - self.start).secs()
    }

    /// Seconds of the interval that lie in the period.
    pub fn overlap(self, from: Timestamp, until: Timestamp) -> u64 {
        (until.min(self.end) - from.max(self.start)).secs()
    }
}

/// Seconds of each resource, by Slurm's names.
pub type Amounts = BTreeMap<String, u64>;

/// One run's part in a period.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub account: String,
    pub user: String,
    pub wckey: String,
    pub reservation: String,
    pub n_cpus: u32,
    pub used: Amounts,
    pub ran_secs: u64,
    /// While it waited: what it asked for, in seconds of CPUs.
    pub planned_cpu_secs: u64,
}

pub fn parts(runs: &[RunHistory], period: Period, now: Timestamp) -> Vec<Part> {
    runs.iter().filter_map(|run| part(&run.job, period, now)).collect()
}

fn part(job: &JobRecord, period: Period, now: Timestamp) -> Option<Part> {
    let end = job.ended.unwrap_or(now);
    let ran = job.started.map_or(0, |started| {
        let suspended = job.suspended.secs() + job.suspended_since.map_or(0, |since| (end - since).secs());
        period.overlap(started, end).saturating_sub(suspended)
    });
    let waited = match job.eligible {
        Some(eligible) => period.overlap(eligible, job.started.unwrap_or(end)),
        None => 0,
    };
    if ran == 0 && waited == 0 {
        return None;
    }
    Some(Part {
        account: job.account.clone(),
        user: job.user.clone(),
        wckey: job.wckey.clone(),
        reservation: job.reservation.clone(),
        n_cpus: job.held.n_cpus,
        ran_secs: ran,
        used: if ran == 0 { Amounts::new() } else { times(&job.held, ran) },
        planned_cpu_secs: u64::from(job.asked.n_cpus) * waited,
    })
}

fn times(held: &Amount, secs: u64) -> Amounts {
    let cpus = u64::from(held.n_cpus);
    let fixed =
        [("cpu", cpus), ("mem", held.memory_mb), ("node", u64::from(held.n_nodes)), ("billing", held.billing())];
    let fixed = fixed.into_iter().map(|(name, amount)| (name.to_string(), amount * secs));
    let gres = held.gres.iter().map(|(name, amount)| (format!("gres/{name}"), amount * secs));
    fixed.chain(gres).collect()
}

pub fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        *sum.entry(name.clone()).or_default() += amount;
    }
}

/// What the cluster has of each resource.
pub fn capacity(config: &Config) -> Amounts {
    let mut all = Amounts::new();
    let billing = billing_by_node(config);
    for node in &config.nodes {
        let cpus = u64::from(node.config.cpus);
        let fixed = [("cpu", cpus), ("mem", node.config.memory_mb), ("node", 1), ("billing", billing[&node.name])];
        fixed.into_iter().for_each(|(name, amount)| *all.entry(name.to_string()).or_default() += amount);
        for gres in &node.config.gres {
            *all.entry(format!("gres/{}", gres.name)).or_default() += u64::from(gres.count);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn only_what_lies_in_the_period_counts() {
        let held = Amount { n_cpus: 4, n_nodes: 1, memory_mb: 100, ..Default::default() };
        let asked = held.clone();
        let job = JobRecord {
            eligible: Some(at(100)),
            started: Some(at(150)),
            ended: Some(at(300)),
            held,
            asked,
            ..Default::default()
        };
        let period = Period { start: at(120), end: at(200) };
        let part = part(&job, period, at(1000)).unwrap();
        assert_eq!((part.used["cpu"], part.used["mem"], part.planned_cpu_secs), (200, 5000, 120));
        assert_eq!(super::part(&job, Period { start: at(300), end: at(400) }, at(1000)), None);
    }
}
