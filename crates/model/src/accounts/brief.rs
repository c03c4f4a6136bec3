//! Limits as numbers instead of names, made once when accounts have changed: a plan looks at those of thousands, and texts cost it most.
use super::{Limits, Tres};

/// Limits on what every job has some of; `u64::MAX`: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PerName {
    pub cpu: u64,
    pub node: u64,
    pub memory_mb: u64,
    pub others: Others,
}

/// Limits on anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Others {
    #[default]
    None,
    /// On what has a name of its own: whoever takes nothing of the kind is not concerned.
    Named,
    /// On what everybody has some of.
    Everybody,
}

impl Others {
    fn of(name: &str) -> Others {
        let is_named = ["gres/", "license/", "bb/"].iter().any(|kind| name.starts_with(kind));
        if is_named { Others::Named } else { Others::Everybody }
    }
}

impl Default for PerName {
    fn default() -> PerName {
        PerName::NONE
    }
}

impl PerName {
    pub const NO_LIMIT: u64 = u64::MAX;
    pub const NONE: PerName = PerName { cpu: u64::MAX, node: u64::MAX, memory_mb: u64::MAX, others: Others::None };

    pub fn of(tres: &Tres) -> PerName {
        let mut found = PerName::NONE;
        for (name, most) in &tres.0 {
            match name.as_str() {
                "cpu" => found.cpu = *most,
                "node" => found.node = *most,
                "mem" => found.memory_mb = *most,
                other => found.others = found.others.max(Others::of(other)),
            }
        }
        found
    }

    /// What is not said here is as above.
    pub fn or(self, above: PerName) -> PerName {
        let or = |own: u64, above: u64| if own == PerName::NO_LIMIT { above } else { own };
        PerName {
            cpu: or(self.cpu, above.cpu),
            node: or(self.node, above.node),
            memory_mb: or(self.memory_mb, above.memory_mb),
            others: self.others.max(above.others),
        }
    }
}

/// What is said of each job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EachJob {
    pub max_jobs: Option<u32>,
    pub max_wall: Option<u32>,
    pub min_priority: Option<u32>,
    pub job: PerName,
    pub node: PerName,
    pub minutes: PerName,
    /// What running jobs may still use together is limited too.
    pub has_run_minutes: bool,
}

impl EachJob {
    pub fn of(limits: &Limits) -> EachJob {
        EachJob {
            max_jobs: limits.max_jobs,
            max_wall: limits.max_wall,
            min_priority: limits.min_priority,
            job: PerName::of(&limits.max_tres),
            node: PerName::of(&limits.max_tres_per_node),
            minutes: PerName::of(&limits.max_tres_mins),
            has_run_minutes: !limits.max_tres_run_mins.is_empty(),
        }
    }

    /// What is not said here is as above.
    pub fn or(&self, above: &EachJob) -> EachJob {
        EachJob {
            max_jobs: self.max_jobs.or(above.max_jobs),
            max_wall: self.max_wall.or(above.max_wall),
            min_priority: self.min_priority.or(above.min_priority),
            job: self.job.or(above.job),
            node: self.node.or(above.node),
            minutes: self.minutes.or(above.minutes),
            has_run_minutes: self.has_run_minutes || above.has_run_minutes,
        }
    }

    /// Whatever a job is like, it passes.
    pub fn lets_any(&self) -> bool {
        EachJob { max_jobs: None, min_priority: None, ..*self } == EachJob::default()
    }
}

/// What limits jobs of a party together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Together {
    pub held: PerName,
    /// Of CPUs, that running jobs may still use.
    pub run_minutes: u64,
    pub jobs: Option<u32>,
    /// Minutes of time or of resources are limited: these are looked up.
    pub is_metered: bool,
}

impl Default for Together {
    fn default() -> Together {
        Together { held: PerName::NONE, run_minutes: PerName::NO_LIMIT, jobs: None, is_metered: false }
    }
}

impl Together {
    pub fn of(limits: &Limits) -> Together {
        let is_metered = limits.grp_wall.is_some() || !limits.grp_tres_mins.is_empty();
        Together { is_metered, ..Together::new(limits.grp_jobs, &limits.grp_tres, &limits.grp_tres_run_mins) }
    }

    pub fn new(jobs: Option<u32>, held: &Tres, run_minutes: &Tres) -> Together {
        let (mut held, minutes) = (PerName::of(held), PerName::of(run_minutes));
        if (PerName { cpu: PerName::NO_LIMIT, ..minutes }) != PerName::NONE {
            // Those of anything else are looked at closer.
            held.others = Others::Everybody;
        }
        Together { held, run_minutes: minutes.cpu, jobs, is_metered: false }
    }

    pub fn is_none(&self) -> bool {
        *self == Together::default()
    }

    /// It speaks of nothing but jobs, CPUs and memory.
    pub fn is_plain(&self) -> bool {
        let held = &self.held;
        held.node == PerName::NO_LIMIT
            && held.others == Others::None
            && self.run_minutes == PerName::NO_LIMIT
            && !self.is_metered
    }
}
