//! Things that the whole cluster has so many of, such as licences: who has how many, and from when to when.
use std::collections::BTreeMap;

use model::JobSpec;

use crate::timeline::{Interval, Slot};

/// So many of one thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wanted {
    pub name: String,
    pub count: u64,
}

/// What a job needs besides nodes, for as long as it runs.
pub(crate) fn wanted_by(_: &JobSpec) -> Vec<Wanted> {
    Vec::new()
}

#[derive(Default)]
pub(crate) struct Counts {
    by_name: BTreeMap<String, Count>,
}

#[derive(Default)]
struct Count {
    total: u64,
    uses: Vec<(Interval, u64)>,
}

impl Counts {
    /// Whether all of it is there during the whole interval.
    pub fn has(&self, wanted: &[Wanted], interval: Interval) -> bool {
        wanted.iter().all(|one| self.free_over(&one.name, interval) >= one.count)
    }

    pub fn take(&mut self, wanted: &[Wanted], interval: Interval) {
        for one in wanted {
            self.by_name.entry(one.name.clone()).or_default().uses.push((interval, one.count));
        }
    }

    fn free_over(&self, name: &str, interval: Interval) -> u64 {
        let Some(count) = self.by_name.get(name) else { return 0 };
        let used_at = |at: Slot| -> u64 {
            let covering = count.uses.iter().filter(|(used, _)| used.from <= at && at < used.until);
            covering.map(|(_, n)| *n).sum()
        };
        let begins = count.uses.iter().map(|(used, _)| used.from);
        let later = begins.filter(|from| interval.from < *from && *from < interval.until);
        let most_used = std::iter::once(interval.from).chain(later).map(used_at).max().unwrap_or(0);
        count.total.saturating_sub(most_used)
    }
}
