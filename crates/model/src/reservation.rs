//! A reservation: nodes, licences or buffer space kept for some, for a time that may come again.
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::calendar::{FixedOffset, Zone};
use crate::license::LicenseCount;
use crate::time::{Span, Timestamp};
use crate::{JobSpec, NodeName};

record! {
    pub struct Reservation {
        pub name: String,
        /// The present time, or the next.
        pub start: Timestamp,
        pub end: Timestamp,
        pub nodes: BTreeSet<NodeName>,
        /// CPUs of each of its nodes; empty: the nodes are reserved as a whole.
        pub cpus: BTreeMap<NodeName, u32>,
        /// With `REPLACE` and `REPLACE_DOWN`, when its nodes were last looked at.
        pub looked_at: Timestamp,
        pub partition: String,
        /// What its nodes had to have, as written.
        pub features: String,
        pub users: Members,
        pub accounts: Members,
        pub groups: Members,
        pub licenses: Vec<LicenseCount>,
        pub burst_buffer: String,
        pub flags: BTreeSet<Flag>,
        /// How long it may be without jobs before it goes (`PURGE_COMP`).
        pub purge_after: Option<Span>,
        pub max_start_delay: Option<Span>,
        pub comment: String,
        /// What the wall clock of whoever made it was ahead of UTC: tells its weekdays.
        pub utc_offset_secs: i32,
        /// With `TIME_FLOAT`, how far it always stays ahead.
        pub floats_by: Span,
        /// Since when no job uses it, or waits for it, though it is its time.
        pub idle_since: Option<Timestamp>,
        /// Who may delete it with `USER_DELETE`, besides administrators.
        pub made_by: u32,
        /// It has begun at least once.
        pub has_begun: bool,
        /// Some of its nodes went out of service, and others are looked for.
        pub lacks_nodes: bool,
    }

    /// Who may use it: those listed, or everybody but them. An empty list says nothing.
    pub struct Members {
        pub names: Vec<String>,
        pub are_excluded: bool,
    }
}

macro_rules! flags {
    ($($name:ident $word:literal $least:literal),* $(,)?) => {
        /// What makes a reservation special. In the order in which they are shown.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Flag { $($name),* }

        impl Flag {
            pub fn word(self) -> &'static str {
                match self { $(Flag::$name => $word),* }
            }

            /// The flag that a word names, whole or cut short.
            pub fn parse(word: &str) -> Option<Flag> {
                // Written in one way and shown in another.
                let word = if word.eq_ignore_ascii_case("STATIC_ALLOC") { "STATIC" } else { word };
                let is_short = |whole: &str, least: usize| {
                    word.len() >= least && whole.len() >= word.len()
                        && whole.as_bytes()[..word.len()].eq_ignore_ascii_case(word.as_bytes())
                };
                let exact = [$(($word, Flag::$name)),*].into_iter().find(|(whole, _)| whole.eq_ignore_ascii_case(word));
                let short = || [$(($word, $least, Flag::$name)),*].into_iter().find(|(whole, least, _)| is_short(whole, *least));
                exact.map(|(_, flag)| flag).or_else(|| short().map(|(.., flag)| flag))
            }
        }
    };
}

flags! {
    Maint "MAINT" 2,
    Flex "FLEX" 3,
    Overlap "OVERLAP" 1,
    IgnoreJobs "IGNORE_JOBS" 1,
    Hourly "HOURLY" 1,
    Daily "DAILY" 1,
    Weekday "WEEKDAY" 5,
    Weekend "WEEKEND" 5,
    Weekly "WEEKLY" 5,
    SpecNodes "SPEC_NODES" 2,
    AllNodes "ALL_NODES" 2,
    AnyNodes "ANY_NODES" 2,
    StaticAlloc "STATIC" 2,
    PartNodes "PART_NODES" 2,
    FirstCores "FIRST_CORES" 2,
    TimeFloat "TIME_FLOAT" 1,
    Replace "REPLACE" 3,
    ReplaceDown "REPLACE_DOWN" 8,
    PurgeComp "PURGE_COMP" 2,
    NoHoldJobsAfterEnd "NO_HOLD_JOBS_AFTER_END" 2,
    Magnetic "MAGNETIC" 3,
    UserDelete "USER_DELETE" 1,
}

const HOUR: u64 = 3_600_000_000;
const DAY: u64 = 24 * HOUR;

impl Members {
    fn excludes(&self, is_listed: impl Fn(&String) -> bool) -> bool {
        self.are_excluded && self.names.iter().any(is_listed)
    }

    fn includes(&self, is_listed: impl Fn(&String) -> bool) -> bool {
        !self.are_excluded && self.names.iter().any(is_listed)
    }

    fn asks(&self) -> bool {
        !self.are_excluded && !self.names.is_empty()
    }

    /// `a,b`, or `-a,-b` for all but them.
    pub fn show(&self) -> String {
        let sign = if self.are_excluded { "-" } else { "" };
        self.names.iter().map(|name| format!("{sign}{name}")).collect::<Vec<_>>().join(",")
    }
}

impl Reservation {
    pub fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }

    /// Nobody else may have anything of that node.
    pub fn has_whole(&self, node: &NodeName) -> bool {
        self.cpus.is_empty() && self.nodes.contains(node)
    }

    /// Its nodes were counted, not named: those that go out of service are replaced, before its time and in it.
    pub fn keeps_count(&self) -> bool {
        let of_itself =
            [Flag::SpecNodes, Flag::AllNodes, Flag::PartNodes, Flag::AnyNodes, Flag::StaticAlloc, Flag::Maint];
        self.cpus.is_empty() && !of_itself.iter().any(|flag| self.has(*flag))
    }

    /// Its nodes are exchanged for others when they cannot be used, or are.
    pub fn replaces(&self) -> bool {
        self.has(Flag::Replace) || self.has(Flag::ReplaceDown)
    }

    pub fn is_active(&self, now: Timestamp) -> bool {
        self.start <= now && now < self.end && !self.has(Flag::TimeFloat)
    }

    /// It comes again after its end.
    pub fn repeats(&self) -> bool {
        [Flag::Hourly, Flag::Daily, Flag::Weekday, Flag::Weekend, Flag::Weekly].iter().any(|flag| self.has(*flag))
    }

    /// Jobs of this kind may use it: its user or group and its account are let in, and none is shut out.
    pub fn admits(&self, spec: &JobSpec) -> bool {
        let is_user = |name: &String| *name == spec.user || name.parse() == Ok(spec.uid);
        let is_account = |name: &String| *name == spec.account;
        let is_group = |name: &String| *name == spec.group || spec.groups.contains(name);
        if self.users.excludes(is_user) || self.accounts.excludes(is_account) || self.groups.excludes(is_group) {
            return false;
        }
        let by_person = self.users.includes(is_user) || self.groups.includes(is_group);
        let person_is_right = by_person || !(self.users.asks() || self.groups.asks());
        person_is_right && (self.accounts.includes(is_account) || !self.accounts.asks())
    }

    /// Jobs of this kind may run into it: they are warned, and gone within `MaxStartDelay`, when one of its own needs the place.
    pub fn waits_for(&self, spec: &JobSpec) -> bool {
        let (Some(delay), Some(warning)) = (self.max_start_delay, &spec.warning) else { return false };
        warning.overlaps_reservations && warning.before <= delay
    }

    /// The first of its times, present and to come, that ends after `at`.
    pub fn window_after(&self, at: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let mut window = (self.start, self.end);
        if self.has(Flag::TimeFloat) {
            let start = at + self.floats_by;
            return Some((start, start + (self.end - self.start)));
        }
        if window.1 <= at && (self.has(Flag::Hourly) || self.has(Flag::Daily) || self.has(Flag::Weekly)) {
            // Many at once, so that no time is too far.
            let period = self.period();
            let n_periods = (at.0 - window.1.0) / period;
            window = (Timestamp(window.0.0 + n_periods * period), Timestamp(window.1.0 + n_periods * period));
        }
        while window.1 <= at {
            window = self.next(window)?;
        }
        Some(window)
    }

    /// Whether one of its times meets the time from `from` until `until`; no end is for ever.
    pub fn meets(&self, from: Timestamp, until: Option<Timestamp>) -> bool {
        self.window_after(from).is_some_and(|(start, _)| until.is_none_or(|until| start < until))
    }

    /// Its times that end after `from`, as far as wanted.
    pub fn windows(&self, from: Timestamp) -> impl Iterator<Item = (Timestamp, Timestamp)> + '_ {
        std::iter::successors(self.window_after(from), |window| self.next(*window))
    }

    fn period(&self) -> u64 {
        match () {
            () if self.has(Flag::Hourly) => HOUR,
            () if self.has(Flag::Weekly) => 7 * DAY,
            () => DAY,
        }
    }

    fn next(&self, (start, end): (Timestamp, Timestamp)) -> Option<(Timestamp, Timestamp)> {
        if !self.repeats() || end <= start {
            return None;
        }
        let later = |by: u64| (Timestamp(start.0.saturating_add(by)), Timestamp(end.0.saturating_add(by)));
        if !self.has(Flag::Weekday) && !self.has(Flag::Weekend) {
            return Some(later(self.period()));
        }
        let is_right = |by: &u64| self.is_weekend(later(*by).0) == self.has(Flag::Weekend);
        (1..=7).map(|n_days| n_days * DAY).find(is_right).map(later)
    }

    fn is_weekend(&self, at: Timestamp) -> bool {
        let days = FixedOffset(self.utc_offset_secs).to_local(at.secs() as i64).days_since_1970();
        // 1970-01-01 was a Thursday.
        matches!((days + 4).rem_euclid(7), 0 | 6)
    }

    /// `MAINT,DAILY,PURGE_COMP=00:05:00`
    pub fn flags_text(&self) -> String {
        let word = |flag: &Flag| match (flag, self.purge_after) {
            (Flag::PurgeComp, Some(after)) => format!("PURGE_COMP={}", crate::duration::show(after.secs())),
            _ => flag.word().to_string(),
        };
        self.flags.iter().map(word).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from_secs(
            crate::when::parse(text, 0, &crate::calendar::UTC, crate::when::Lean::Future).expect(text) as u64
        )
    }

    fn reservation(start: &str, minutes: u64, flags: &[Flag]) -> Reservation {
        let end = at(start) + Span::from_secs(minutes * 60);
        Reservation { start: at(start), end, flags: flags.iter().copied().collect(), ..Default::default() }
    }

    #[test]
    fn what_does_not_change_is_written_in_two_ways() {
        assert_eq!(["static", "STATIC_ALLOC", "st"].map(Flag::parse), [Some(Flag::StaticAlloc); 3]);
    }

    #[test]
    fn what_repeats_comes_again() {
        let starts = |flag: Flag| -> Vec<String> {
            // A Thursday.
            let windows = reservation("2026-11-12T10:00:00", 60, &[flag]);
            let shown =
                |(start, _): (Timestamp, Timestamp)| crate::calendar::UTC.to_local(start.secs() as i64).to_string();
            windows.windows(Timestamp(0)).take(3).map(shown).collect()
        };
        assert_eq!(starts(Flag::Maint), ["2026-11-12T10:00:00"]);
        assert_eq!(starts(Flag::Hourly), ["2026-11-12T10:00:00", "2026-11-12T11:00:00", "2026-11-12T12:00:00"]);
        assert_eq!(starts(Flag::Daily), ["2026-11-12T10:00:00", "2026-11-13T10:00:00", "2026-11-14T10:00:00"]);
        assert_eq!(starts(Flag::Weekday), ["2026-11-12T10:00:00", "2026-11-13T10:00:00", "2026-11-16T10:00:00"]);
        assert_eq!(starts(Flag::Weekend), ["2026-11-12T10:00:00", "2026-11-14T10:00:00", "2026-11-15T10:00:00"]);
        assert_eq!(starts(Flag::Weekly), ["2026-11-12T10:00:00", "2026-11-19T10:00:00", "2026-11-26T10:00:00"]);
    }

    #[test]
    fn a_job_meets_the_times_it_runs_into() {
        let once = reservation("2026-11-12T10:00:00", 60, &[]);
        assert!(!once.meets(at("2026-11-12T09:00:00"), Some(at("2026-11-12T10:00:00"))));
        assert!(once.meets(at("2026-11-12T09:00:00"), Some(at("2026-11-12T10:00:01"))));
        assert!(once.meets(at("2026-11-12T09:00:00"), None));
        assert!(!once.meets(at("2026-11-12T11:00:00"), None));
        let daily = reservation("2026-11-12T10:00:00", 60, &[Flag::Daily]);
        assert!(!daily.meets(at("2030-01-01T11:00:00"), Some(at("2030-01-02T10:00:00"))));
        assert!(daily.meets(at("2030-01-01T11:00:00"), Some(at("2030-01-02T10:00:01"))));
        assert!(daily.meets(at("2030-01-01T11:00:00"), None));
    }

    #[test]
    fn who_is_let_in() {
        let members = |text: &str| Members {
            names: text
                .split(',')
                .filter(|name| !name.is_empty())
                .map(|name| name.trim_start_matches('-').into())
                .collect(),
            are_excluded: text.starts_with('-'),
        };
        let admits = |users: &str, accounts: &str, groups: &str| {
            let spec = JobSpec {
                uid: 1000,
                user: "ada".into(),
                group: "staff".into(),
                groups: vec!["gpu".into()],
                account: "physics".into(),
                ..Default::default()
            };
            let reservation = Reservation {
                users: members(users),
                accounts: members(accounts),
                groups: members(groups),
                ..Default::default()
            };
            reservation.admits(&spec)
        };
        assert!(admits("ada", "", "") && admits("1000", "", "") && !admits("bob", "", ""));
        assert!(admits("", "physics", "") && !admits("", "maths", ""));
        assert!(admits("ada,bob", "physics", "") && !admits("ada", "maths", "") && !admits("bob", "physics", ""));
        assert!(admits("", "", "staff") && admits("", "", "gpu") && !admits("", "", "wheel"));
        assert!(admits("bob", "", "gpu"));
        assert!(!admits("-ada", "", "") && admits("-bob", "", ""));
        assert!(!admits("ada", "-physics", "") && admits("ada", "-maths", ""));
    }

    #[test]
    fn flags_are_known_by_their_words() {
        for (word, flag) in [
            ("maint", Some(Flag::Maint)),
            ("ign", Some(Flag::IgnoreJobs)),
            ("weekly", Some(Flag::Weekly)),
            ("weekd", Some(Flag::Weekday)),
            ("replace", Some(Flag::Replace)),
            ("replace_down", Some(Flag::ReplaceDown)),
            ("bogus", None),
        ] {
            assert_eq!(Flag::parse(word), flag, "{word}");
        }
    }
}
