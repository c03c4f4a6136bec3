//! What is certainly left of an association's limits. Enough to say of most jobs, one after the other, that no limit keeps them, without
//! putting their rules together; of whoever is not let pass here nothing is said.
use model::accounts::{Association, Limits, Qos, QosLimits, Terse, Tres};
use model::plan::Grant;
use model::spec::{Memory, TimeLimit};
use model::{JobSpec, Timestamp};

use super::demand::limit_secs;
use super::{Count, Party};
use crate::Cluster;

/// What a job would take, as far as headrooms speak of it.
#[derive(Clone, Copy)]
pub struct Want {
    nodes: u64,
    cpus: u64,
    /// None: not known here.
    memory_mb: Option<u64>,
    limit_secs: u64,
    cpu_minutes: u64,
}

impl Want {
    /// The least that would do.
    pub fn asked(spec: &JobSpec) -> Want {
        let (nodes, cpus, memory_mb) = spec.asked_of_nodes();
        Want::new(u64::from(nodes), u64::from(cpus), memory_mb, limit_secs(spec, None))
    }

    /// What was found for it.
    pub fn granted(spec: &JobSpec, grants: &[Grant], limit: Option<TimeLimit>) -> Want {
        let cpus = grants.iter().map(|grant| u64::from(grant.n_cpus)).sum();
        let memory_mb = grants.iter().map(|grant| grant.memory_mb).sum();
        // What all memory of a node comes to is not looked up here.
        let memory_mb = (!matches!(spec.size.memory, Memory::WholeNode)).then_some(memory_mb);
        Want::new(grants.len() as u64, cpus, memory_mb, limit_secs(spec, limit))
    }

    /// Where minutes count more, or less, than they are.
    pub fn weighed_otherwise(self) -> Want {
        Want { cpu_minutes: NO_LIMIT - 1, ..self }
    }

    fn new(nodes: u64, cpus: u64, memory_mb: Option<u64>, limit_secs: u64) -> Want {
        Want { nodes, cpus, memory_mb, limit_secs, cpu_minutes: cpus.saturating_mul(limit_secs) / 60 }
    }
}

/// So much of each may still be had; `NO_LIMIT` of what is not limited.
#[derive(Clone, Copy)]
struct Left {
    jobs: u64,
    nodes: u64,
    cpus: u64,
    memory_mb: u64,
    cpu_minutes: u64,
}

const NO_LIMIT: u64 = u64::MAX;

impl Left {
    const ALL: Left = Left::at(NO_LIMIT);
    const NOTHING: Left = Left::at(0);

    const fn at(most: u64) -> Left {
        Left { jobs: most, nodes: most, cpus: most, memory_mb: most, cpu_minutes: most }
    }

    fn lets(&self, want: &Want) -> bool {
        self.jobs > 0
            && want.nodes <= self.nodes
            && want.cpus <= self.cpus
            && want.memory_mb.map_or(self.memory_mb == NO_LIMIT, |memory_mb| memory_mb <= self.memory_mb)
            && want.cpu_minutes <= self.cpu_minutes
    }

    fn take(&mut self, want: &Want) {
        let take = |left: &mut u64, some: u64| {
            if *left != NO_LIMIT {
                *left = left.saturating_sub(some);
            }
        };
        take(&mut self.jobs, 1);
        take(&mut self.nodes, want.nodes);
        take(&mut self.cpus, want.cpus);
        take(&mut self.memory_mb, want.memory_mb.unwrap_or(NO_LIMIT));
        // Sums of seconds may come to one minute more than the minutes do.
        take(&mut self.cpu_minutes, want.cpu_minutes.saturating_add(1));
    }
}

/// What an association says of each of its jobs, or one above it.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Each {
    max_jobs: Option<u32>,
    max_wall: Option<u32>,
    min_priority: Option<u32>,
    job: PerName,
    node: PerName,
    minutes: PerName,
}

/// The names that are spoken of here.
#[derive(Clone, Copy, Default, PartialEq)]
struct PerName {
    cpu: Option<u64>,
    node: Option<u64>,
    memory_mb: Option<u64>,
    /// Others are limited as well.
    has_others: bool,
}

impl PerName {
    fn of(tres: &Tres) -> PerName {
        let mut found = PerName::default();
        for (name, most) in &tres.0 {
            match name.as_str() {
                "cpu" => found.cpu = Some(*most),
                "node" => found.node = Some(*most),
                "mem" => found.memory_mb = Some(*most),
                _ => found.has_others = true,
            }
        }
        found
    }

    fn or(self, above: PerName) -> PerName {
        PerName {
            cpu: self.cpu.or(above.cpu),
            node: self.node.or(above.node),
            memory_mb: self.memory_mb.or(above.memory_mb),
            has_others: self.has_others || above.has_others,
        }
    }

    fn lets(&self, want: &Want) -> bool {
        let within = |wanted: u64, most: Option<u64>| most.is_none_or(|most| wanted <= most);
        let has_memory = self.memory_mb.is_none_or(|most| want.memory_mb.is_some_and(|wanted| wanted <= most));
        !self.has_others && within(want.cpus, self.cpu) && within(want.nodes, self.node) && has_memory
    }
}

impl Each {
    fn of(limits: &Limits, above: &Each) -> Each {
        Each {
            max_jobs: limits.max_jobs.or(above.max_jobs),
            max_wall: limits.max_wall.or(above.max_wall),
            min_priority: limits.min_priority.or(above.min_priority),
            job: PerName::of(&limits.max_tres).or(above.job),
            node: PerName::of(&limits.max_tres_per_node).or(above.node),
            minutes: PerName::of(&limits.max_tres_mins).or(above.minutes),
        }
    }

    /// No place is kept in the future for jobs of less priority.
    pub fn min_priority(&self) -> u32 {
        self.min_priority.unwrap_or(0)
    }

    /// Says nothing but how many jobs there may be.
    pub fn lets_any(&self) -> bool {
        Each { max_jobs: None, min_priority: None, ..*self } == Each::default()
    }

    pub fn lets(&self, want: &Want) -> bool {
        let of_minutes = self.minutes;
        let speaks_of_more = of_minutes.has_others || of_minutes.node.is_some() || of_minutes.memory_mb.is_some();
        self.max_wall.is_none_or(|most| want.limit_secs <= u64::from(most) * 60)
            && self.job.lets(want)
            && self.node.lets(want)
            && !speaks_of_more
            && of_minutes.cpu.is_none_or(|most| want.cpu_minutes <= most)
    }
}

/// What is left for jobs of an association, and for all below it. There are thousands: each is no more than a line of a cache.
#[derive(Clone, Copy)]
pub struct Headroom {
    parent: u32,
    /// For all below it as well.
    group: Left,
    /// Jobs of its own.
    own_jobs: u64,
    /// Counted as if all jobs of those above were its own.
    is_rough: bool,
    is_touched: bool,
}

impl Headroom {
    /// Of a user who has no limits but on how many jobs there are, below an account that has so many.
    pub fn roughly(terse: &Terse, above: &Each, n_jobs_above: u64) -> Headroom {
        let most = terse.max_jobs.or(above.max_jobs);
        let own_jobs = most.map_or(NO_LIMIT, |most| u64::from(most).saturating_sub(n_jobs_above));
        let is_rough = most.is_some();
        Headroom { parent: terse.parent, group: Left::ALL, own_jobs, is_rough, is_touched: false }
    }

    /// A closer look may find more.
    pub fn may_be_more(&self) -> bool {
        self.is_rough && !self.is_touched
    }

    /// Of an association below one that says this of each job; what it says itself, and how many jobs it has.
    pub fn of(cluster: &Cluster, id: u32, above: &Each) -> Option<(Headroom, Each, u64)> {
        let one = cluster.accounts.associations.get(&id)?;
        let each = Each::of(&one.limits, above);
        let count = cluster.tally.count(&Party::Association(id));
        let n_jobs = count.map_or(0, |count| count.jobs);
        let own_jobs = each.max_jobs.map_or(NO_LIMIT, |most| u64::from(most).saturating_sub(n_jobs));
        let group = left(one, count, cluster.now);
        let headroom = Headroom { parent: one.parent, group, own_jobs, is_rough: false, is_touched: false };
        Some((headroom, each, n_jobs))
    }

    pub fn parent(&self) -> u32 {
        self.parent
    }

    /// The association itself may have one job more.
    pub fn lets_own(&self) -> bool {
        self.own_jobs > 0
    }

    /// So may it, and all above it must, with all that are below them.
    pub fn lets(&self, want: &Want) -> bool {
        self.group.lets(want)
    }

    /// A job of the association, or of one below it, starts.
    pub fn take(&mut self, want: &Want) {
        self.is_touched = true;
        self.group.take(want);
        if self.own_jobs != NO_LIMIT {
            self.own_jobs = self.own_jobs.saturating_sub(1);
        }
    }
}

fn left(one: &Association, count: Option<&Count>, now: Timestamp) -> Left {
    let limits = &one.limits;
    let is_plain = |tres: &Tres, names: &[&str]| tres.0.keys().all(|name| names.contains(&name.as_str()));
    let is_metered = limits.grp_wall.is_some() || !limits.grp_tres_mins.0.is_empty();
    if is_metered
        || !is_plain(&limits.grp_tres, &["cpu", "node", "mem"])
        || !is_plain(&limits.grp_tres_run_mins, &["cpu"])
    {
        return Left::NOTHING;
    }
    let held = |name: &str| count.map_or(0, |count| count.held_of(name));
    let of = |tres: &Tres, name: &str, spent: u64| tres.get(name).map_or(NO_LIMIT, |most| most.saturating_sub(spent));
    let run_mins = || count.map_or(0, |count| count.run_secs("cpu", now) / 60);
    Left {
        jobs: limits.grp_jobs.map_or(NO_LIMIT, |most| u64::from(most).saturating_sub(count.map_or(0, |one| one.jobs))),
        nodes: of(&limits.grp_tres, "node", held("node")),
        cpus: of(&limits.grp_tres, "cpu", held("cpu")),
        memory_mb: of(&limits.grp_tres, "mem", held("mem")),
        cpu_minutes: match limits.grp_tres_run_mins.get("cpu") {
            Some(most) => most.saturating_sub(run_mins()).saturating_sub(1),
            None => NO_LIMIT,
        },
    }
}

/// Jobs in this quality of service are bound by their associations alone, as those are written.
pub fn leaves_it_to_associations(qos: &Qos) -> bool {
    qos.limits == QosLimits::default()
        && qos.limit_factor_thousandths.is_none()
        && qos.usage_factor_thousandths.is_none_or(|thousandths| thousandths == 1000)
        && !["NoReserve", "EnforceUsageThreshold", "UsageFactorSafe"].iter().any(|flag| qos.has_flag(flag))
}
