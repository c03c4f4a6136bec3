//! The limits that bind a job, in the order in which they are asked, and what they refuse.
use model::plan::Grant;
use model::spec::{Memory, TimeLimit};
use model::time::Span;
use model::{JobSpec, Reason, Timestamp};

use super::words::{Form, reason};
use super::{Count, Decay, Demand, Tally, Whom};

/// What is compared with a limit; resources by their names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound<'a> {
    Jobs,
    Submitted,
    /// Minutes that jobs of the party have run, or that this one asks for.
    Wall,
    Held(&'a str),
    UsedMinutes(&'a str),
    RunMinutes(&'a str),
    // Of the job alone.
    EachWall,
    Each(&'a str),
    EachNode(&'a str),
    EachMinutes(&'a str),
    EachLeast(&'a str),
}

/// Reasons are many and seldom needed: those of resources are put together when they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Why {
    Is(Reason),
    Of(Form),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rule<'a> {
    /// Whose counts matter; None: only the job does.
    pub party: Option<Whom<'a>>,
    pub bound: Bound<'a>,
    pub most: u64,
    pub why: Why,
}

impl Rule<'_> {
    fn reason(&self) -> Reason {
        match (self.why, self.bound) {
            (Why::Is(told), _) => told,
            (
                Why::Of(form),
                Bound::Held(name)
                | Bound::UsedMinutes(name)
                | Bound::RunMinutes(name)
                | Bound::Each(name)
                | Bound::EachNode(name)
                | Bound::EachMinutes(name)
                | Bound::EachLeast(name),
            ) => reason(form, name),
            (Why::Of(form), Bound::Jobs | Bound::Submitted | Bound::Wall | Bound::EachWall) => reason(form, ""),
        }
    }
}

/// Everything that binds jobs of one association in one QOS and partition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules<'a> {
    pub(super) submission: Vec<Rule<'a>>,
    pub(super) start: Vec<Rule<'a>>,
    /// How many that wait may grow older.
    pub(super) accrual: Vec<(Whom<'a>, u32)>,
    pub(super) max_wall_mins: Option<u32>,
    pub(super) min_priority: Option<u32>,
    /// What could never start is refused at once.
    pub(super) denies: bool,
    pub(super) is_safe: bool,
    /// Where a QOS has its usage factor count beforehand too.
    pub(super) safe_factor: Option<u32>,
    /// No place is kept for such jobs in the future.
    pub(super) no_reserve: bool,
}

/// What can be said of jobs under the same rules before any of them is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outlook {
    /// None may start, for this reason.
    Closed(Reason),
    Open(Ceiling),
}

/// Whoever asks for no more than this is refused by no rule; of others nothing is said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    cpus: u64,
    nodes: u64,
    /// That nobody of the party has yet.
    new_nodes: u64,
    memory_mb: u64,
    limit_secs: u64,
    cpu_minutes: u64,
}

impl Ceiling {
    const SKY: Ceiling = Ceiling::at(u64::MAX);
    const FLOOR: Ceiling = Ceiling::at(0);

    const fn at(most: u64) -> Ceiling {
        Ceiling { cpus: most, nodes: most, new_nodes: most, memory_mb: most, limit_secs: most, cpu_minutes: most }
    }

    pub fn lets(&self, spec: &JobSpec) -> bool {
        if *self == Ceiling::SKY {
            return true;
        }
        let (nodes, cpus, memory_mb) = spec.asked_of_nodes();
        let limit_secs = super::demand::limit_secs(spec, None);
        u64::from(cpus) <= self.cpus
            && u64::from(nodes) <= self.nodes
            && memory_mb.is_some_and(|memory_mb| memory_mb <= self.memory_mb)
            && limit_secs <= self.limit_secs
            && u64::from(cpus).saturating_mul(limit_secs) / 60 <= self.cpu_minutes
    }

    /// The same for what was found for the job, which may be more.
    pub fn lets_granted(&self, spec: &JobSpec, grants: &[Grant], limit: Option<TimeLimit>) -> bool {
        if *self == Ceiling::SKY {
            return true;
        }
        let cpus: u64 = grants.iter().map(|grant| u64::from(grant.n_cpus)).sum();
        let memory_mb: u64 = grants.iter().map(|grant| grant.memory_mb).sum();
        // What all memory of a node comes to is not looked up here.
        let is_known = !matches!(spec.size.memory, Memory::WholeNode) || self.memory_mb == u64::MAX;
        let limit_secs = super::demand::limit_secs(spec, limit);
        // Which nodes others have is not looked up either: these count as new.
        is_known
            && cpus <= self.cpus
            && grants.len() as u64 <= self.new_nodes
            && memory_mb <= self.memory_mb
            && limit_secs <= self.limit_secs
            && cpus.saturating_mul(limit_secs) / 60 <= self.cpu_minutes
    }

    /// Not above what the rule allows; a rule that speaks of something else says nothing of anybody.
    fn lower(&mut self, name: &str, most: u64) {
        match name {
            "cpu" => self.cpus = self.cpus.min(most),
            "node" => (self.nodes, self.new_nodes) = (self.nodes.min(most), self.new_nodes.min(most)),
            "mem" => self.memory_mb = self.memory_mb.min(most),
            _ => *self = Ceiling::FLOOR,
        }
    }

    fn lower_minutes(&mut self, name: &str, most: u64) {
        match name {
            "cpu" => self.cpu_minutes = self.cpu_minutes.min(most),
            _ => *self = Ceiling::FLOOR,
        }
    }
}

/// Nobody looks further ahead than these many times twice a minute: four years.
const MOST_DOUBLINGS: u32 = 22;

/// When and with what rules are asked: what has been counted so far.
#[derive(Clone, Copy)]
struct Asked<'c> {
    count: &'c Count,
    half_life: Option<f64>,
    now: Timestamp,
}

impl Asked<'_> {
    fn wall_mins(&self) -> u64 {
        (self.count.wall_at(self.now, self.half_life) / 60.0) as u64
    }

    fn used_mins(&self, name: &str) -> u64 {
        (self.count.used_at(self.now, self.half_life).get(name) / 60.0) as u64
    }

    fn run_mins(&self, name: &str) -> u64 {
        self.count.run_secs(name, self.now) / 60
    }
}

/// Of whom nothing is counted.
pub(super) static NOTHING: std::sync::LazyLock<Count> = std::sync::LazyLock::new(Count::default);

impl Rules<'_> {
    pub fn are_none(&self) -> bool {
        self.start.is_empty()
    }

    /// Those whose counts are asked for at a start.
    pub fn parties(&self) -> impl Iterator<Item = Whom<'_>> {
        self.start.iter().filter_map(|rule| rule.party)
    }

    /// The time that a job of this size gets which names none: minutes of resources are used up sooner by more of them.
    pub fn max_wall_mins(&self, demand: &Demand) -> Option<u32> {
        let of_minutes = self.start.iter().filter_map(|rule| match rule.bound {
            Bound::EachMinutes(name) => rule.most.checked_div(demand.amounts.get(name)),
            _ => None,
        });
        let of_minutes =
            of_minutes.filter(|minutes| *minutes > 0).map(|minutes| u32::try_from(minutes).unwrap_or(u32::MAX));
        self.max_wall_mins.into_iter().chain(of_minutes).min()
    }

    /// Whether a place may be kept for such jobs in the future.
    pub fn may_be_promised(&self) -> bool {
        !self.no_reserve
    }

    /// Jobs of less priority have no place kept for them in the future.
    pub fn min_priority(&self) -> u32 {
        self.min_priority.unwrap_or(0)
    }

    /// What keeps more jobs from being submitted.
    pub fn submission(&self, tally: &Tally, demand: &Demand) -> Option<Reason> {
        let refuses = |rule: &&Rule| {
            let count = rule.party.and_then(|party| tally.count(party));
            count.map_or(0, |count| count.submitted) + demand.n_jobs > rule.most
        };
        self.submission.iter().find(refuses).map(|rule| rule.reason())
    }

    /// How many more may grow older while they wait; None: all.
    pub fn places_to_accrue(&self, tally: &Tally) -> Option<u64> {
        let left = |(party, most): &(Whom, u32)| {
            u64::from(*most).saturating_sub(tally.count(*party).map_or(0, |count| count.accruing))
        };
        self.accrual.iter().map(left).min()
    }

    /// What would keep the job from starting even if it were alone, where a QOS denies such jobs.
    pub fn alone(&self, demand: &Demand) -> Option<Reason> {
        if !self.denies {
            return None;
        }
        let safe = Rules { is_safe: true, ..Rules::default() };
        let alone = Asked { count: &NOTHING, half_life: None, now: Timestamp(0) };
        self.start.iter().find(|rule| safe.refuses(rule, alone, demand)).map(|rule| rule.reason())
    }

    /// What keeps the job from starting now.
    pub fn start(&self, tally: &Tally, decay: Decay, now: Timestamp, demand: &Demand) -> Option<Reason> {
        self.start_with(|party| tally.count(party), decay, now, demand)
    }

    /// As `start`, with the counts that the caller finds for a party.
    pub fn start_with<'c>(
        &self,
        count: impl Fn(Whom) -> Option<&'c Count>,
        decay: Decay,
        now: Timestamp,
        demand: &Demand,
    ) -> Option<Reason> {
        let refuses = |rule: &&Rule| self.refuses(rule, asked(rule, &count, decay, now), demand);
        self.start.iter().find(refuses).map(|rule| rule.reason())
    }

    /// When the job may start though nothing has happened: use is forgotten, and running jobs have less time left.
    /// None: something must happen first.
    pub fn passes_at<'c>(
        &self,
        count: impl Fn(Whom) -> Option<&'c Count>,
        decay: Decay,
        now: Timestamp,
        demand: &Demand,
    ) -> Option<Timestamp> {
        let passes =
            |at: Timestamp| self.start.iter().all(|rule| !self.refuses(rule, asked(rule, &count, decay, at), demand));
        let is_lasting =
            |rule: &&Rule| !matches!(rule.bound, Bound::Wall | Bound::UsedMinutes(_) | Bound::RunMinutes(_));
        let refuses = |rule: &Rule| self.refuses(rule, asked(rule, &count, decay, now), demand);
        if self.start.iter().filter(is_lasting).any(refuses) {
            return None;
        }
        let after = |n_minutes: u64| now + Span::from_secs(60 * n_minutes);
        let minutes = (0..MOST_DOUBLINGS).map(|n| 1u64 << n);
        let mut passing = minutes.into_iter().find(|n_minutes| passes(after(*n_minutes)))?;
        let mut refused = passing / 2;
        while passing - refused > 1 {
            let middle = refused + (passing - refused) / 2;
            if passes(after(middle)) { passing = middle } else { refused = middle }
        }
        Some(after(passing))
    }

    /// What holds for all who ask now, with the counts that the caller finds.
    pub fn outlook<'c>(&self, count: impl Fn(Whom) -> Option<&'c Count>, decay: Decay, now: Timestamp) -> Outlook {
        let mut ceiling = Ceiling::SKY;
        let mut is_alike_for_all = true;
        for rule in &self.start {
            let asked = asked(rule, &count, decay, now);
            if self.is_used_up(rule, asked) {
                match is_alike_for_all {
                    true => return Outlook::Closed(rule.reason()),
                    false => return Outlook::Open(Ceiling::FLOOR),
                }
            }
            is_alike_for_all &= matches!(rule.bound, Bound::Jobs | Bound::Submitted);
            self.lower(&mut ceiling, rule, asked);
        }
        Outlook::Open(ceiling)
    }

    /// Nobody passes the rule, whatever he asks for.
    fn is_used_up(&self, rule: &Rule, asked: Asked) -> bool {
        match rule.bound {
            Bound::Jobs => asked.count.jobs >= rule.most,
            Bound::Submitted => asked.count.submitted >= rule.most,
            Bound::Wall => asked.wall_mins() >= rule.most,
            Bound::UsedMinutes(name) => !self.is_safe && asked.used_mins(name) >= rule.most,
            Bound::Held(_)
            | Bound::RunMinutes(_)
            | Bound::EachWall
            | Bound::Each(_)
            | Bound::EachNode(_)
            | Bound::EachMinutes(_)
            | Bound::EachLeast(_) => false,
        }
    }

    fn lower(&self, ceiling: &mut Ceiling, rule: &Rule, asked: Asked) {
        let most = rule.most;
        let up_to_mins = |most: u64| most.saturating_mul(60);
        match rule.bound {
            Bound::Jobs | Bound::Submitted => (),
            Bound::Wall | Bound::EachWall => ceiling.limit_secs = ceiling.limit_secs.min(up_to_mins(most)),
            // At best it gets the same nodes.
            Bound::Held("node") if asked.count.nodes.len() as u64 <= most => {
                ceiling.lower("node", most);
                ceiling.new_nodes = ceiling.new_nodes.min(most - asked.count.nodes.len() as u64);
            }
            Bound::Held(name) => ceiling.lower(name, most.saturating_sub(asked.count.held_of(name))),
            Bound::Each(name) | Bound::EachNode(name) => ceiling.lower(name, most),
            Bound::EachMinutes(name) => ceiling.lower_minutes(name, most),
            // How much it weighs is not the same for all.
            Bound::EachLeast(_) => *ceiling = Ceiling::FLOOR,
            Bound::UsedMinutes(_) if !self.is_safe => (),
            Bound::UsedMinutes(_) if self.safe_factor.is_some() => *ceiling = Ceiling::FLOOR,
            Bound::UsedMinutes(name) => {
                let spent = asked.used_mins(name).saturating_add(asked.run_mins(name));
                ceiling.lower_minutes(name, most.saturating_sub(spent));
            }
            Bound::RunMinutes(name) => ceiling.lower_minutes(name, most.saturating_sub(asked.run_mins(name))),
        }
    }

    /// Whether minutes of somebody that the job counts for are used up: it may not go on.
    pub fn are_used_up(&self, tally: &Tally, decay: Decay, now: Timestamp) -> bool {
        let nothing = Demand::default();
        let is_meter = |rule: &&Rule| matches!(rule.bound, Bound::Wall | Bound::UsedMinutes(_));
        let refuses = |rule: &Rule| self.refuses(rule, asked(rule, |party| tally.count(party), decay, now), &nothing);
        self.start.iter().filter(is_meter).any(refuses)
    }

    fn refuses(&self, rule: &Rule, asked: Asked, demand: &Demand) -> bool {
        let (count, most) = (asked.count, rule.most);
        let minutes = |name: &str| demand.amounts.get(name).saturating_mul(demand.limit_secs) / 60;
        let weighed = |minutes: u64| match self.safe_factor {
            Some(thousandths) => (u128::from(minutes) * u128::from(thousandths) / 1000) as u64,
            None => minutes,
        };
        match rule.bound {
            Bound::Jobs | Bound::Submitted => self.is_used_up(rule, asked),
            Bound::Wall => demand.limit_secs / 60 > most || self.is_used_up(rule, asked),
            Bound::Held("node") => demand.n_nodes_with(count) > most,
            Bound::Held(name) => {
                let wanted = demand.amounts.get(name);
                wanted > 0 && count.held.get(name).saturating_add(wanted) > most
            }
            Bound::UsedMinutes(name) if self.is_safe => {
                let spent = asked.used_mins(name).saturating_add(asked.run_mins(name));
                spent.saturating_add(weighed(minutes(name))) > most
            }
            Bound::UsedMinutes(_) => self.is_used_up(rule, asked),
            Bound::RunMinutes(name) => asked.run_mins(name).saturating_add(minutes(name)) > most,
            Bound::EachWall => demand.limit_secs > most.saturating_mul(60),
            Bound::Each(name) => demand.amounts.get(name) > most,
            Bound::EachNode(name) => demand.on_a_node.get(name) > most,
            Bound::EachMinutes(name) => minutes(name) > most,
            Bound::EachLeast(name) => demand.amounts.get(name) < most,
        }
    }
}

fn asked<'c>(rule: &Rule, count: impl FnOnce(Whom) -> Option<&'c Count>, decay: Decay, now: Timestamp) -> Asked<'c> {
    let is_meter = matches!(rule.bound, Bound::Wall | Bound::UsedMinutes(_));
    let half_life = rule.party.filter(|_| is_meter).and_then(|party| decay.of(party));
    Asked { count: rule.party.and_then(count).unwrap_or(&NOTHING), half_life, now }
}
