//! What an association says of each of its jobs, or one above it.
use model::Reason;
use model::accounts::{Limits, Tres};

use super::headroom::Verdict;
use super::want::Want;

#[derive(Clone, Copy, Default, PartialEq)]
pub struct Each {
    max_jobs: Option<u32>,
    max_wall: Option<u32>,
    min_priority: Option<u32>,
    job: PerName,
    node: PerName,
    minutes: PerName,
    /// What running jobs may still use together is limited too.
    has_run_minutes: bool,
}

/// The names that are spoken of here.
#[derive(Clone, Copy, Default, PartialEq)]
struct PerName {
    cpu: Option<u64>,
    node: Option<u64>,
    memory_mb: Option<u64>,
    others: Others,
}

/// Limits on anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Others {
    #[default]
    None,
    /// On what has a name of its own: whoever takes nothing of the kind is not concerned.
    Named,
    /// On what everybody has some of.
    Everybody,
}

impl Others {
    pub fn of(name: &str) -> Others {
        let is_named = ["gres/", "license/", "bb/"].iter().any(|kind| name.starts_with(kind));
        if is_named { Others::Named } else { Others::Everybody }
    }

    pub fn concern(self, want: &Want) -> bool {
        match self {
            Others::None => false,
            Others::Named => want.has_others(),
            Others::Everybody => true,
        }
    }
}

impl PerName {
    fn of(tres: &Tres) -> PerName {
        let mut found = PerName::default();
        for (name, most) in &tres.0 {
            match name.as_str() {
                "cpu" => found.cpu = Some(*most),
                "node" => found.node = Some(*most),
                "mem" => found.memory_mb = Some(*most),
                other => found.others = found.others.max(Others::of(other)),
            }
        }
        found
    }

    fn or(self, above: PerName) -> PerName {
        PerName {
            cpu: self.cpu.or(above.cpu),
            node: self.node.or(above.node),
            memory_mb: self.memory_mb.or(above.memory_mb),
            others: self.others.max(above.others),
        }
    }

    /// The only one of the limits that the job is beyond; which of several is told depends on who set them.
    fn beyond(&self, want: &Want) -> Beyond {
        let is_more = |wanted: u64, most: Option<u64>| most.is_some_and(|most| wanted > most);
        if self.others.concern(want) || (self.memory_mb.is_some() && want.memory_mb.is_none()) {
            return Beyond::Unsaid;
        }
        let (cpu, node) = (is_more(want.cpus, self.cpu), is_more(want.nodes, self.node));
        match (cpu, node, is_more(want.memory_mb.unwrap_or(0), self.memory_mb)) {
            (false, false, false) => Beyond::None,
            (true, false, false) => Beyond::Only(Reason::AssocMaxCpuPerJobLimit),
            (false, true, false) => Beyond::Only(Reason::AssocMaxNodePerJobLimit),
            (false, false, true) => Beyond::Only(Reason::AssocMaxMemPerJob),
            _ => Beyond::Unsaid,
        }
    }
}

enum Beyond {
    None,
    /// What a job as a whole is told.
    Only(Reason),
    Unsaid,
}

impl Each {
    pub(super) fn of(limits: &Limits, above: &Each) -> Each {
        Each {
            max_jobs: limits.max_jobs.or(above.max_jobs),
            max_wall: limits.max_wall.or(above.max_wall),
            min_priority: limits.min_priority.or(above.min_priority),
            job: PerName::of(&limits.max_tres).or(above.job),
            node: PerName::of(&limits.max_tres_per_node).or(above.node),
            minutes: PerName::of(&limits.max_tres_mins).or(above.minutes),
            has_run_minutes: !limits.max_tres_run_mins.is_empty() || above.has_run_minutes,
        }
    }

    /// How many may run at a time.
    pub fn max_jobs(&self) -> Option<u32> {
        self.max_jobs
    }

    /// No place is kept in the future for jobs of less priority.
    pub fn min_priority(&self) -> u32 {
        self.min_priority.unwrap_or(0)
    }

    /// Says nothing but how many jobs there may be.
    pub fn lets_any(&self) -> bool {
        Each { max_jobs: None, min_priority: None, ..*self } == Each::default()
    }

    /// In the order of the rules, after how many jobs there may be.
    pub fn verdict(&self, want: &Want) -> Verdict {
        if self.max_wall.is_some_and(|most| want.limit_secs() > u64::from(most) * 60) {
            return Verdict::Refused(Reason::AssocMaxWallDurationPerJobLimit);
        }
        let of_minutes = self.minutes;
        let speaks_of_more =
            of_minutes.others.concern(want) || of_minutes.node.is_some() || of_minutes.memory_mb.is_some();
        if speaks_of_more || self.has_run_minutes {
            return Verdict::Unsaid;
        }
        if of_minutes.cpu.is_some_and(|most| want.cpu_minutes() > most) {
            return Verdict::Refused(Reason::AssocMaxCpuMinutesPerJobLimit);
        }
        match self.job.beyond(want) {
            Beyond::None => (),
            Beyond::Only(reason) => return Verdict::Refused(reason),
            Beyond::Unsaid => return Verdict::Unsaid,
        }
        // What falls on one node is not looked up: whoever has no more in all has no more there.
        match self.node.beyond(want) {
            Beyond::None => Verdict::Passes,
            Beyond::Only(_) | Beyond::Unsaid => Verdict::Unsaid,
        }
    }
}
