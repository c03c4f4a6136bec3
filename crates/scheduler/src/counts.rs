//! Things that the whole cluster has so many of, such as licences: who has how many, and from when to when.
use std::collections::{BTreeMap, BTreeSet};

use model::license::LicenseCount;
use model::reservation::Flag;
use model::time::Span;
use model::{JobId, JobSpec};
use state::Cluster;

use crate::timeline::{Clock, Interval, Slot};

/// So many of one thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wanted {
    pub name: String,
    pub count: u64,
}

impl Wanted {
    fn of(license: &LicenseCount) -> Wanted {
        Wanted { name: license.name.clone(), count: license.count.into() }
    }
}

/// What a job needs besides nodes, for as long as it runs: one of these lists.
pub(crate) fn wanted_by(spec: &JobSpec) -> Vec<Vec<Wanted>> {
    let wanted = &spec.licenses;
    match wanted.any_is_enough && !wanted.list.is_empty() {
        true => wanted.list.iter().map(|one| vec![Wanted::of(one)]).collect(),
        false => vec![wanted.list.iter().map(Wanted::of).collect()],
    }
}

#[derive(Default)]
pub(crate) struct Counts {
    by_name: BTreeMap<String, Count>,
}

#[derive(Default)]
struct Count {
    total: u64,
    uses: Vec<Taken>,
    /// What each reservation keeps.
    kept: BTreeMap<String, u64>,
}

struct Taken {
    /// None: a reservation.
    by: Option<JobId>,
    interval: Interval,
    count: u64,
    counts_for: Whom,
}

/// For whom something is taken. What a reservation keeps, its own jobs may take; what they take of it is the others' no longer.
enum Whom {
    All,
    AllBut(String),
    Only(String),
}

impl Whom {
    fn holds_for(&self, reservation: &str) -> bool {
        match self {
            Whom::All => true,
            Whom::AllBut(name) => name != reservation,
            Whom::Only(name) => name == reservation,
        }
    }
}

impl Counts {
    pub fn new(cluster: &Cluster, clock: &Clock) -> Counts {
        let mut counts = Counts::default();
        for (name, total) in cluster.license_totals() {
            counts.by_name.entry(name).or_default().total += u64::from(total);
        }
        if counts.by_name.is_empty() {
            return counts;
        }
        let over_run = cluster.config().scheduler.reservation_over_run;
        for reservation in cluster.reservations() {
            for license in &reservation.licenses {
                let count = counts.by_name.entry(license.name.clone()).or_default();
                // Where its jobs may run outside its time, what they hold is nobody else's then.
                let stays_inside = !reservation.has(Flag::Flex) && over_run == Span(0);
                if stays_inside {
                    *count.kept.entry(reservation.name.clone()).or_default() += u64::from(license.count);
                }
                let windows = reservation.windows(cluster.now());
                let near = windows.take_while(|(start, _)| clock.slot_before(*start) <= clock.end());
                count.uses.extend(near.map(|(start, end)| Taken {
                    by: None,
                    interval: Interval { from: clock.slot_before(start), until: clock.slot(end) },
                    count: license.count.into(),
                    counts_for: Whom::AllBut(reservation.name.clone()),
                }));
            }
        }
        for job in cluster.license_holders() {
            let until = cluster.expected_end(job).map_or(Slot::NEVER, |at| clock.slot(at).max(Slot(1)));
            let held: Vec<Wanted> = job.licenses.iter().map(Wanted::of).collect();
            // One that is still there after its reservation's time (it is being ended, or suspended) holds what others may have by now.
            let is_its_time = cluster.reservation(&job.reservation).is_some_and(|one| one.is_active(cluster.now()));
            let reservation = if is_its_time { job.reservation.as_str() } else { "" };
            counts.take(job.id, &held, Interval { from: Slot::NOW, until }, reservation);
        }
        counts
    }

    /// Whether all of it is there for a job of that reservation, or of none (empty), during the whole interval.
    pub fn has(&self, wanted: &[Wanted], interval: Interval, reservation: &str) -> bool {
        self.has_without(wanted, interval, reservation, &BTreeSet::new())
    }

    /// As `has`, if these jobs had gone.
    pub fn has_without(
        &self,
        wanted: &[Wanted],
        interval: Interval,
        reservation: &str,
        gone: &BTreeSet<JobId>,
    ) -> bool {
        wanted.iter().all(|one| self.free_over(&one.name, interval, reservation, gone) >= one.count)
    }

    /// Something of it is given back at that mark.
    pub fn frees_at(&self, wanted: &[Wanted], slot: Slot) -> bool {
        let counts = wanted.iter().filter_map(|one| self.by_name.get(&one.name));
        counts.flat_map(|count| &count.uses).any(|taken| taken.interval.until == slot)
    }

    pub fn take(&mut self, by: JobId, wanted: &[Wanted], interval: Interval, reservation: &str) {
        let by = Some(by);
        for one in wanted {
            let count = self.by_name.entry(one.name.clone()).or_default();
            if reservation.is_empty() {
                count.uses.push(Taken { by, interval, count: one.count, counts_for: Whom::All });
                continue;
            }
            let kept = count.kept.get(reservation).copied().unwrap_or(0);
            let before: u64 = count
                .uses
                .iter()
                .filter(|taken| matches!(&taken.counts_for, Whom::Only(name) if name == reservation))
                .filter(|taken| taken.interval.overlaps(interval))
                .map(|taken| taken.count)
                .sum();
            let beyond = (before + one.count).saturating_sub(kept).min(one.count);
            count.uses.push(Taken { by, interval, count: one.count, counts_for: Whom::Only(reservation.into()) });
            if beyond > 0 {
                count.uses.push(Taken { by, interval, count: beyond, counts_for: Whom::AllBut(reservation.into()) });
            }
        }
    }

    fn free_over(&self, name: &str, interval: Interval, reservation: &str, gone: &BTreeSet<JobId>) -> u64 {
        let Some(count) = self.by_name.get(name) else { return 0 };
        let stays = |taken: &&Taken| taken.by.is_none_or(|by| !gone.contains(&by));
        let uses = || count.uses.iter().filter(|taken| taken.counts_for.holds_for(reservation)).filter(stays);
        let used_at = |at: Slot| -> u64 {
            let covering = uses().filter(|taken| taken.interval.from <= at && at < taken.interval.until);
            covering.map(|taken| taken.count).sum()
        };
        let begins = uses().map(|taken| taken.interval.from);
        let later = begins.filter(|from| interval.from < *from && *from < interval.until);
        let most_used = std::iter::once(interval.from).chain(later).map(used_at).max().unwrap_or(0);
        count.total.saturating_sub(most_used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(count: u64) -> Vec<Wanted> {
        vec![Wanted { name: "a".into(), count }]
    }

    fn counts() -> Counts {
        let mut counts = Counts::default();
        counts.by_name.insert("a".into(), Count { total: 4, ..Default::default() });
        counts
    }

    const DAY: Interval = Interval { from: Slot(10), until: Slot(20) };

    #[test]
    fn what_is_taken_is_missing_while_it_is_taken() {
        let mut counts = counts();
        counts.take(JobId(1), &wanted(3), DAY, "");
        assert!(counts.has(&wanted(4), Interval { from: Slot(0), until: Slot(10) }, ""));
        assert!(!counts.has(&wanted(2), Interval { from: Slot(0), until: Slot(11) }, ""));
        assert!(counts.has(&wanted(1), DAY, ""));
        assert!(counts.has(&wanted(4), Interval { from: Slot(20), until: Slot::NEVER }, ""));
        assert!(counts.frees_at(&wanted(1), Slot(20)));
    }

    #[test]
    fn what_a_reservation_keeps_is_for_its_own_jobs() {
        let mut counts = counts();
        let count = counts.by_name.get_mut("a").expect("just made");
        count.kept.insert("r".into(), 3);
        count.uses.push(Taken { by: None, interval: DAY, count: 3, counts_for: Whom::AllBut("r".into()) });
        assert!(!counts.has(&wanted(2), DAY, "") && counts.has(&wanted(4), DAY, "r"));
        counts.take(JobId(1), &wanted(2), DAY, "r");
        assert!(counts.has(&wanted(1), DAY, "") && counts.has(&wanted(2), DAY, "r"));
        counts.take(JobId(1), &wanted(2), DAY, "r");
        assert!(!counts.has(&wanted(1), DAY, "") && !counts.has(&wanted(1), DAY, "r"));
    }
}
