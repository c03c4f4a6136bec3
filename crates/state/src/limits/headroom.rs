//! What is left of an association's limits. Enough to say of most jobs, one after the other, whether a limit keeps them and which, without
//! putting their rules together. What is said is what the rules would say; where that would take a closer look, nothing is.
use model::accounts::{Limits, Qos, QosLimits, Tres};
use model::{Reason, Timestamp};

use super::each::{Each, Others};
use super::rules::NOTHING;
use super::want::Want;
use super::words::{Form, reason};
use super::{Count, Decay, Party};
use crate::Cluster;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No limit keeps the job.
    Passes,
    Refused(Reason),
    /// The rules know.
    Unsaid,
}

const NO_LIMIT: u64 = u64::MAX;

/// What is left for jobs of an association and of all below it; `NO_LIMIT` of what is not limited. There are thousands: each is no more
/// than a line of a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Headroom {
    cpus: u64,
    memory_mb: u64,
    /// Certainly left: nodes that jobs share count once.
    nodes: u64,
    /// Whoever takes less than this of what running jobs may still use certainly may.
    cpu_minutes: u64,
    jobs: u32,
    /// No job may be longer.
    wall_mins: u32,
    /// Minutes that are used up, whoever asks.
    closed: Option<Reason>,
    others: Others,
    /// Something has started of which not all is known.
    is_unsure: bool,
}

impl Headroom {
    /// Of whoever limits nothing.
    pub const ALL: Headroom = Headroom {
        cpus: NO_LIMIT,
        memory_mb: NO_LIMIT,
        nodes: NO_LIMIT,
        cpu_minutes: NO_LIMIT,
        jobs: u32::MAX,
        wall_mins: u32::MAX,
        closed: None,
        others: Others::None,
        is_unsure: false,
    };

    /// In the order of the rules.
    pub fn verdict(&self, want: &Want) -> Verdict {
        if self.jobs == 0 {
            return Verdict::Refused(Reason::AssocGrpJobsLimit);
        }
        if self.wall_mins != u32::MAX && want.limit_secs() / 60 > u64::from(self.wall_mins) {
            return Verdict::Refused(Reason::AssocGrpWallLimit);
        }
        if let Some(reason) = self.closed {
            return Verdict::Refused(reason);
        }
        if self.others.concern(want) || (self.cpu_minutes != NO_LIMIT && want.cpu_minutes() >= self.cpu_minutes) {
            return Verdict::Unsaid;
        }
        if want.cpus > self.cpus {
            return Verdict::Refused(Reason::AssocGrpCpuLimit);
        }
        let memory = want.memory_mb.filter(|_| !self.is_unsure);
        if self.memory_mb != NO_LIMIT && memory.is_none_or(|wanted| wanted > self.memory_mb) {
            return if memory.is_some() { Verdict::Refused(Reason::AssocGrpMemLimit) } else { Verdict::Unsaid };
        }
        if want.nodes > self.nodes { Verdict::Unsaid } else { Verdict::Passes }
    }

    /// A job of the association, or of one below it, starts.
    pub fn take(&mut self, want: &Want) {
        let take = |left: &mut u64, some: u64| {
            if *left != NO_LIMIT {
                *left = left.saturating_sub(some);
            }
        };
        if self.jobs != u32::MAX {
            self.jobs = self.jobs.saturating_sub(1);
        }
        take(&mut self.cpus, want.cpus);
        take(&mut self.nodes, want.nodes);
        match want.memory_mb {
            Some(memory_mb) => take(&mut self.memory_mb, memory_mb),
            None => self.is_unsure = true,
        }
        if self.cpu_minutes != NO_LIMIT {
            // Sums of seconds may come to one minute more than the minutes do.
            let minutes = if want.is_weighed { NO_LIMIT - 1 } else { want.cpu_minutes().saturating_add(1) };
            take(&mut self.cpu_minutes, minutes);
        }
    }

    /// Of an association below one that says this of each job; and what it says itself.
    pub fn of(cluster: &Cluster, id: u32, above: &Each) -> Option<(Headroom, Each)> {
        let one = cluster.accounts.associations.get(&id)?;
        let limits = &one.limits;
        // Whoever runs nothing has nothing, but for what was used before, and for buffers that stand by themselves.
        let is_metered = limits.grp_wall.is_some() || !limits.grp_tres_mins.is_empty();
        let may_have = is_metered || cluster.tally.n_running(id) > 0 || cluster.tally.has_standing();
        let count = if may_have { cluster.tally.count(&Party::Association(id)) } else { None };
        let counted = Counted {
            count: count.unwrap_or(&NOTHING),
            decay: cluster.decay(),
            now: cluster.now,
            is_safe: cluster.config.accounting.enforce.safe,
        };
        Some((counted.headroom(limits), Each::of(limits, above)))
    }
}

struct Counted<'c> {
    count: &'c Count,
    decay: Decay<'c>,
    now: Timestamp,
    is_safe: bool,
}

impl Counted<'_> {
    fn headroom(&self, limits: &Limits) -> Headroom {
        let count = self.count;
        let left =
            |name: &str| limits.grp_tres.get(name).map_or(NO_LIMIT, |most| most.saturating_sub(count.held_of(name)));
        let jobs = |most: u32| u64::from(most).saturating_sub(count.jobs) as u32;
        let mut headroom = Headroom {
            cpus: left("cpu"),
            memory_mb: left("mem"),
            nodes: left("node"),
            jobs: limits.grp_jobs.map_or(u32::MAX, jobs),
            others: others(&limits.grp_tres),
            ..Headroom::ALL
        };
        for (name, most) in &limits.grp_tres_run_mins.0 {
            match name.as_str() {
                "cpu" => headroom.cpu_minutes = most.saturating_sub(self.run_mins()),
                _ => headroom.others = Others::Everybody,
            }
        }
        if limits.grp_wall.is_some() || !limits.grp_tres_mins.is_empty() {
            self.lower_by_meters(limits, &mut headroom);
        }
        headroom
    }

    fn run_mins(&self) -> u64 {
        self.count.run_secs("cpu", self.now) / 60
    }

    fn lower_by_meters(&self, limits: &Limits, headroom: &mut Headroom) {
        let half_life = self.decay.of_associations();
        if let Some(most) = limits.grp_wall {
            let spent = (self.count.wall_at(self.now, half_life) / 60.0) as u64;
            match spent >= u64::from(most) {
                true => headroom.closed = Some(Reason::AssocGrpWallLimit),
                false => headroom.wall_mins = most,
            }
        }
        let used = self.count.used_at(self.now, half_life);
        for (name, most) in &limits.grp_tres_mins.0 {
            let spent = (used.get(name) / 60.0) as u64;
            match (self.is_safe, name.as_str()) {
                (false, _) if spent >= *most => {
                    headroom.closed = headroom.closed.or_else(|| Some(reason(Form::GroupMinutes, name)));
                }
                (false, _) => (),
                (true, "cpu") => {
                    let left = most.saturating_sub(spent).saturating_sub(self.run_mins());
                    headroom.cpu_minutes = headroom.cpu_minutes.min(left);
                }
                (true, _) => headroom.others = Others::Everybody,
            }
        }
    }
}

fn others(tres: &Tres) -> Others {
    let others = tres.0.keys().filter(|name| !matches!(name.as_str(), "cpu" | "mem" | "node"));
    others.map(|name| Others::of(name)).max().unwrap_or_default()
}

/// Jobs in this quality of service are bound by their associations alone, as those are written.
pub fn leaves_it_to_associations(qos: &Qos) -> bool {
    qos.limits == QosLimits::default()
        && qos.limit_factor_thousandths.is_none()
        && qos.usage_factor_thousandths.is_none_or(|thousandths| thousandths == 1000)
        && !["NoReserve", "EnforceUsageThreshold", "UsageFactorSafe"].iter().any(|flag| qos.has_flag(flag))
}
