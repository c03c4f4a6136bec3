//! The future in steps of equal length, on the same marks whenever a plan is made, so that expected starts stand still.
use model::Timestamp;
use model::config::BackfillConfig;
use model::spec::TimeLimit;
use model::time::Span;
use state::Cluster;

/// A mark on the timeline. `NOW` is the moment of the plan; the next ones are whole steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(pub u32);

impl Slot {
    pub const NOW: Slot = Slot(0);
    pub const NEVER: Slot = Slot(u32::MAX);

    fn plus(self, n: u32) -> Slot {
        Slot(self.0.saturating_add(n))
    }
}

/// From one mark up to, not including, another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub from: Slot,
    pub until: Slot,
}

impl Interval {
    pub fn overlaps(self, other: Interval) -> bool {
        self.from < other.until && other.from < self.until
    }
}

/// More marks than this make the steps longer.
const MOST_SLOTS: u64 = 8192;
/// Nobody plans further by himself.
const FARTHEST: Span = Span::from_secs(60 * 86_400);

#[derive(Clone, Copy)]
pub(crate) struct Clock {
    now: Timestamp,
    step: u64,
    /// Marks within the window.
    pub n_slots: u32,
}

impl Clock {
    /// Reaches at least as far as jobs now run by their limits: whoever waits for them has a place in time.
    pub fn of(cluster: &Cluster) -> Clock {
        let backfill = &cluster.config().scheduler.backfill;
        let is_within = cluster.last_deadline().is_none_or(|last| last <= cluster.now() + backfill.window);
        let running = cluster.nodes().filter(|_| !is_within).flat_map(|node| &node.jobs);
        let ends = running.filter_map(|id| cluster.job(*id)).filter_map(|job| cluster.expected_end(job));
        Clock::new(cluster.now(), backfill, ends.max().unwrap_or_default())
    }

    fn new(now: Timestamp, config: &BackfillConfig, last_end: Timestamp) -> Clock {
        let window = config.window.max(last_end - now).min(FARTHEST.max(config.window)).0;
        // Marks of a longer step are marks of the shorter ones too.
        let mut step = config.resolution.0.max(1);
        while window / step > MOST_SLOTS {
            step *= 2;
        }
        Clock { now, step, n_slots: window.div_ceil(step).max(1) as u32 }
    }

    /// The first mark that is not before `at`.
    pub fn slot(&self, at: Timestamp) -> Slot {
        if at <= self.now {
            return Slot::NOW;
        }
        let slot = at.0.div_ceil(self.step) - self.now.0 / self.step;
        Slot(u32::try_from(slot).unwrap_or(u32::MAX))
    }

    /// The last mark that is not after `at`.
    pub fn slot_before(&self, at: Timestamp) -> Slot {
        if at <= self.now {
            return Slot::NOW;
        }
        let slot = at.0 / self.step - self.now.0 / self.step;
        Slot(u32::try_from(slot).unwrap_or(u32::MAX))
    }

    /// Where the window ends.
    pub fn end(&self) -> Slot {
        Slot(self.n_slots)
    }

    pub fn time(&self, slot: Slot) -> Timestamp {
        match slot {
            Slot::NOW => self.now,
            Slot(n) => Timestamp((self.now.0 / self.step + u64::from(n)).saturating_mul(self.step)),
        }
    }

    /// What a job of this length needs when it starts at `from`.
    pub fn interval(&self, from: Slot, length: Length) -> Interval {
        let until = match (from, length.0) {
            (_, None) => Slot::NEVER,
            // It ends before the mark that follows its end.
            (Slot::NOW, Some(span)) => self.slot(self.now + span).max(Slot(1)),
            (from, Some(span)) => {
                from.plus(u32::try_from(span.0.div_ceil(self.step)).unwrap_or(u32::MAX)).max(from.plus(1))
            }
        };
        Interval { from, until }
    }
}

/// How long a job takes at most; none is for ever. Longer is harder to place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length(pub Option<Span>);

impl Length {
    pub fn of(limit: Option<TimeLimit>) -> Length {
        Length(limit.and_then(TimeLimit::span))
    }

    pub fn is_at_least(self, other: Length) -> bool {
        match (self.0, other.0) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(mine), Some(others)) => mine >= others,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_still_while_time_passes() {
        let config = BackfillConfig::default();
        let clocks = [1000, 1010].map(|secs| Clock::new(Timestamp::from_secs(secs), &config, Timestamp::default()));
        let at = Timestamp::from_secs(2000);
        let [first, second] = clocks.map(|clock| clock.time(clock.slot(at)));
        assert_eq!((first, second), (Timestamp::from_secs(2040), Timestamp::from_secs(2040)));
        assert_eq!(clocks[0].slot(Timestamp::from_secs(900)), Slot::NOW);
        assert_eq!(clocks[0].slot(Timestamp::from_secs(1001)), Slot(1));
    }

    #[test]
    fn a_job_that_starts_now_is_over_at_the_mark_after_its_end() {
        let clock = Clock::new(Timestamp::from_secs(1000), &BackfillConfig::default(), Timestamp::default());
        let minute = Length(Some(Span::from_secs(60)));
        assert_eq!(clock.interval(Slot::NOW, minute).until, clock.slot(Timestamp::from_secs(1060)));
        assert_eq!(clock.interval(Slot(3), minute), Interval { from: Slot(3), until: Slot(4) });
        assert_eq!(clock.interval(Slot(3), Length(None)).until, Slot::NEVER);
    }

    #[test]
    fn the_window_reaches_to_the_last_end_in_longer_steps() {
        let config = BackfillConfig::default();
        let window = |days: u64| {
            let clock = Clock::new(Timestamp::from_secs(1000), &config, Timestamp::from_secs(1000 + days * 86_400));
            (clock.n_slots, clock.step / config.resolution.0)
        };
        assert_eq!([window(0), window(3), window(30), window(900)], [(1440, 1), (4320, 1), (5400, 8), (5400, 16)]);
    }
}
