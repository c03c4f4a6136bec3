//! Who is more important: the factors of a job's priority, and what they add up to.
use serde::{Deserialize, Serialize};

use crate::accounts::Amounts;
use crate::billing::{self, Weights};
use crate::calendar::{UTC, Zone};
use crate::capacity::Measures;
use crate::config::Config;
use crate::spec::TimeLimit;
use crate::time::{Span, Timestamp};
use crate::{Job, JobSpec, Partition};

mod flags;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PriorityKind {
    /// First come, first served.
    #[default]
    Basic,
    /// The weighted sum of factors.
    Multifactor,
}

/// How much each factor counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PriorityConfig {
    pub kind: PriorityKind,
    pub weight_age: u32,
    pub weight_association: u32,
    pub weight_fair_share: u32,
    pub weight_job_size: u32,
    pub weight_partition: u32,
    pub weight_qos: u32,
    /// Of single resources, as they are written: `CPU=1000,GRES/gpu=3000`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub weight_tres: String,
    /// A job that has waited so long has the whole weight of age.
    pub max_age: Span,
    /// Small jobs have the larger size factor.
    pub favors_small: bool,
    /// Age counts from the submission, not from when the job could have started.
    pub always_accrues: bool,
    /// In this time half of what was used is forgotten; 0: nothing is.
    pub half_life: Span,
    /// How often priorities follow what was used.
    pub calc_period: Span,
    pub usage_reset: UsageReset,
    /// Jobs that have their nodes are weighed again too (`CALCULATE_RUNNING`).
    #[serde(skip_serializing_if = "is_false")]
    pub calculates_running: bool,
    /// Shares are weighed by the older formula, not by the fair tree (`NO_FAIR_TREE`).
    #[serde(skip_serializing_if = "is_false")]
    pub no_fair_tree: bool,
    /// In that formula, those deep in the tree are not levelled with those above (`DEPTH_OBLIVIOUS`).
    #[serde(skip_serializing_if = "is_false")]
    pub depth_oblivious: bool,
    /// Divides use over share in that formula (`FairShareDampeningFactor`).
    pub dampening: u32,
    /// Of what nodes have, only the dearest is billed (`MAX_TRES`).
    pub bills_dearest: bool,
    /// A job's size is divided by its time limit (`SMALL_RELATIVE_TO_TIME`).
    pub size_by_time: bool,
    /// What use and shares do to a waiting job's priority never lowers it (`INCR_ONLY`).
    pub only_rises: bool,
    /// Priorities and amounts count as they are, not as parts of the largest or of all (`NO_NORMAL_…`).
    pub raw_association: bool,
    pub raw_partition: bool,
    pub raw_qos: bool,
    pub raw_tres: bool,
}

/// When everything that was used is forgotten at once: at the beginning of each of these, in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UsageReset {
    #[default]
    Never,
    Daily,
    Weekly,
    Monthly,
    Quarterly,
    Yearly,
}

impl UsageReset {
    pub fn parse(text: &str) -> Option<UsageReset> {
        Some(match text.to_uppercase().as_str() {
            "NONE" => UsageReset::Never,
            "DAILY" => UsageReset::Daily,
            "WEEKLY" => UsageReset::Weekly,
            "MONTHLY" => UsageReset::Monthly,
            "QUARTERLY" => UsageReset::Quarterly,
            "YEARLY" => UsageReset::Yearly,
            _ => return None,
        })
    }

    pub fn word(self) -> &'static str {
        match self {
            UsageReset::Never => "NONE",
            UsageReset::Daily => "DAILY",
            UsageReset::Weekly => "WEEKLY",
            UsageReset::Monthly => "MONTHLY",
            UsageReset::Quarterly => "QUARTERLY",
            UsageReset::Yearly => "YEARLY",
        }
    }

    /// The first beginning after that moment.
    pub fn next(self, after: Timestamp) -> Option<Timestamp> {
        const DAY_SECS: u64 = 86_400;
        let begins = |day: u64| {
            let date = UTC.to_local((day * DAY_SECS) as i64);
            match self {
                UsageReset::Never => false,
                UsageReset::Daily => true,
                // The first of January 1970 was a Thursday; weeks begin on Sundays.
                UsageReset::Weekly => (day + 4).is_multiple_of(7),
                UsageReset::Monthly => date.day == 1,
                UsageReset::Quarterly => date.day == 1 && date.month % 3 == 1,
                UsageReset::Yearly => date.day == 1 && date.month == 1,
            }
        };
        let tomorrow = after.secs() / DAY_SECS + 1;
        (tomorrow..tomorrow + 367).find(|day| begins(*day)).map(|day| Timestamp::from_secs(day * DAY_SECS))
    }
}

/// What a job's association and QOS add to its priority, each from 0 to 1 unless it counts as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountFactors {
    pub association: f64,
    pub fair_share: f64,
    pub qos: f64,
}

fn is_false(value: &bool) -> bool {
    !*value
}

impl Default for PriorityConfig {
    fn default() -> Self {
        PriorityConfig {
            kind: PriorityKind::Basic,
            weight_age: 0,
            weight_association: 0,
            weight_fair_share: 0,
            weight_job_size: 0,
            weight_partition: 0,
            weight_qos: 0,
            weight_tres: String::new(),
            max_age: Span::from_secs(7 * 24 * 3600),
            favors_small: false,
            always_accrues: false,
            bills_dearest: false,
            size_by_time: false,
            only_rises: false,
            raw_association: false,
            raw_partition: false,
            raw_qos: false,
            raw_tres: false,
            half_life: Span::from_secs(7 * 24 * 3600),
            calc_period: Span::from_secs(300),
            usage_reset: UsageReset::Never,
            calculates_running: false,
            no_fair_tree: false,
            depth_oblivious: false,
            dampening: 1,
        }
    }
}

/// Each from 0 to 1 unless it counts as it is, before it is weighed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Factors {
    pub age: f64,
    pub association: f64,
    pub fair_share: f64,
    pub job_size: f64,
    pub partition: f64,
    pub qos: f64,
    /// What single resources add; each has a weight of its own, so this is the weighed sum.
    pub tres: f64,
}

impl Factors {
    /// Of the job at this moment, were it considered in this partition.
    pub fn of(config: &Config, measures: &Measures, job: &Job, partition: &str, now: Timestamp) -> Factors {
        Factors { age: age(config, job, now), ..Factors::lasting(config, measures, job, partition) }
    }

    /// Those that do not change while the job waits.
    fn lasting(config: &Config, measures: &Measures, job: &Job, name: &str) -> Factors {
        let weights = &config.scheduler.priority;
        let partition = config.partition(name);
        let job_size = match weights.weight_job_size {
            0 => 0.0,
            _ if weights.size_by_time => size_by_time(config, measures, &job.spec, partition),
            _ => job_size(config, measures, &job.spec),
        };
        let AccountFactors { association, fair_share, qos } = job.account_factors;
        let tres = tres_parts(config, measures, job, name).iter().map(TresPart::weighed).sum();
        let partition = partition_factor(config, partition);
        Factors { job_size, partition, association, fair_share, qos, tres, age: 0.0 }
    }

    fn weighed(&self, weights: &PriorityConfig) -> f64 {
        self.age * f64::from(weights.weight_age)
            + self.association * f64::from(weights.weight_association)
            + self.fair_share * f64::from(weights.weight_fair_share)
            + self.job_size * f64::from(weights.weight_job_size)
            + self.partition * f64::from(weights.weight_partition)
            + self.qos * f64::from(weights.weight_qos)
            + self.tres
    }
}

/// One resource of a job, as part of what the partition has of it.
#[derive(Clone, Debug, PartialEq)]
pub struct TresPart {
    pub name: String,
    pub factor: f64,
    pub weight: f64,
}

impl TresPart {
    pub fn weighed(&self) -> f64 {
        self.factor * self.weight
    }
}

/// What single resources add to the job's priority in this partition (`PriorityWeightTRES`), those that add something.
pub fn tres_parts(config: &Config, measures: &Measures, job: &Job, partition: &str) -> Vec<TresPart> {
    let weights = &config.scheduler.priority;
    if weights.weight_tres.is_empty() {
        return Vec::new();
    }
    let Ok(by_tres) = Weights::parse(&weights.weight_tres) else { return Vec::new() };
    let amount = if job.has_nodes() { job.held() } else { job.asked() };
    let amounts = Amounts::new(&amount, job.spec.licenses.certain());
    let asked = billing::billed(config, config.partition(partition), amounts);
    let part = |(name, weight): (&str, f64)| {
        let factor = match (asked.get(name), measures.amount(partition, name)) {
            (asked, _) if weights.raw_tres => asked as f64,
            (_, 0) => 0.0,
            (asked, all) => asked as f64 / all as f64,
        };
        TresPart { name: name.to_string(), factor, weight }
    };
    let mut parts: Vec<TresPart> = by_tres.iter().map(part).filter(|part| part.weighed() != 0.0).collect();
    parts.sort_by_key(|part| crate::accounts::tres::rank(&part.name));
    parts
}

/// What the factors add up to, in whole numbers from 1.
pub fn total(config: &Config, job: &Job, factors: &Factors) -> u32 {
    within_range(sum(config, job, factors))
}

fn sum(config: &Config, job: &Job, factors: &Factors) -> i64 {
    let weighed = factors.weighed(&config.scheduler.priority);
    weighed as i64 + i64::from(job.site_factor) - i64::from(job.spec.nice)
}

/// Highest and lowest are kept for those whom administrators put first, and for held jobs.
pub fn within_range(sum: i64) -> u32 {
    sum.clamp(1, i64::from(u32::MAX - 2)) as u32
}

/// An administrator has said how important the job is, or nothing but its place in the line counts.
pub fn is_given(config: &Config, job: &Job) -> bool {
    job.spec.priority.is_some() || config.scheduler.priority.kind == PriorityKind::Basic
}

/// What of the priority does not come from age, in the best of the job's partitions.
pub fn without_age(config: &Config, measures: &Measures, job: &Job) -> i64 {
    let partitions = job.spec.partitions.iter();
    let priorities = partitions.map(|name| sum(config, job, &Factors::lasting(config, measures, job, name)));
    priorities.max().unwrap_or(1)
}

/// When the job's age stops to count more; none if it does not count.
pub fn grown_at(config: &Config, job: &Job) -> Option<Timestamp> {
    let weights = &config.scheduler.priority;
    (!is_given(config, job) && weights.weight_age > 0).then_some(())?;
    Some(born(config, job)? + weights.max_age)
}

/// The number users see.
pub fn shown(config: &Config, job: &Job, now: Timestamp) -> u32 {
    if !job.priority_grows {
        return job.priority;
    }
    within_range(job.priority_base + for_age(config, job, now))
}

/// What its age adds to the priority.
pub fn for_age(config: &Config, job: &Job, now: Timestamp) -> i64 {
    (age(config, job, now) * f64::from(config.scheduler.priority.weight_age)) as i64
}

/// Since when its age counts.
pub fn born(config: &Config, job: &Job) -> Option<Timestamp> {
    if config.scheduler.priority.always_accrues { Some(job.submitted) } else { job.accrue_time() }
}

fn age(config: &Config, job: &Job, now: Timestamp) -> f64 {
    let weights = &config.scheduler.priority;
    let Some(born) = born(config, job).filter(|_| weights.weight_age > 0) else { return 0.0 };
    match weights.max_age.secs() {
        0 => 1.0,
        most => ((now - born).secs() as f64 / most as f64).min(1.0),
    }
}

/// The part of the cluster's nodes and CPUs that the job asks for.
fn job_size(config: &Config, measures: &Measures, spec: &JobSpec) -> f64 {
    let (n_nodes, n_cpus) = least(spec);
    let share = (n_nodes / measures.n_nodes).min(1.0) + (n_cpus / measures.n_cpus).min(1.0);
    if config.scheduler.priority.favors_small { (2.0 - share) / 2.0 } else { share / 2.0 }
}

/// CPUs, those of average nodes at least, for each minute that the job may run, as part of the cluster's.
fn size_by_time(config: &Config, measures: &Measures, spec: &JobSpec, partition: Option<&Partition>) -> f64 {
    /// As many minutes as Slurm takes for ever.
    const ENDLESS: f64 = u32::MAX as f64;
    let (n_nodes, n_cpus) = least(spec);
    let n_cpus = n_cpus.max(n_nodes * measures.n_cpus / measures.n_nodes);
    let limit = spec.time_limit.or(partition.and_then(|partition| partition.max_time));
    let minutes = match limit {
        Some(TimeLimit::Secs(secs)) => secs.div_ceil(60).max(1) as f64,
        Some(TimeLimit::Unlimited) | None => ENDLESS,
    };
    let size = n_cpus / minutes / measures.n_cpus;
    (if config.scheduler.priority.favors_small { 1.0 - size } else { size }).clamp(0.0, 1.0)
}

/// Nodes and CPUs.
fn least(spec: &JobSpec) -> (f64, f64) {
    let (min_nodes, _) = spec.size.node_bounds();
    let cpus = u64::from(spec.size.n_tasks_on(min_nodes)) * u64::from(spec.size.n_cpus_per_task());
    (f64::from(min_nodes), cpus as f64)
}

fn partition_factor(config: &Config, partition: Option<&Partition>) -> f64 {
    let own = partition.map_or(0, |partition| partition.priority_job_factor);
    if config.scheduler.priority.raw_partition {
        return f64::from(own);
    }
    let most = config.partitions.iter().map(|partition| partition.priority_job_factor).max().unwrap_or(0);
    if most == 0 { 0.0 } else { f64::from(own) / f64::from(most) }
}

#[cfg(test)]
mod tests;
