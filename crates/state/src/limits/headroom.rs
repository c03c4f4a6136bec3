//! What is left of the limits of an association, or of somebody in a quality of service. Enough to say of most jobs, one after the other,
//! whether a limit keeps them and which, without putting their rules together. What is said is what the rules would say; where that would
//! take a closer look, nothing is.
use model::accounts::{Limits, Others, PerName, Together, Tres};
use model::{Reason, Timestamp};

use super::each::concern;
use super::rules::NOTHING;
use super::want::Want;
use super::words::{Form, reason};
use super::{Count, Gist, Party, Whom};
use crate::Cluster;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No limit keeps the job.
    Passes,
    Refused(Reason),
    /// The rules know.
    Unsaid,
}

const NO_LIMIT: u64 = PerName::NO_LIMIT;

/// What is left for jobs of an association and of all below it; `NO_LIMIT` of what is not limited.
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

    /// Of an association, in the order of the rules.
    pub fn verdict(&self, want: &Want) -> Verdict {
        if self.jobs == 0 {
            return Verdict::Refused(Reason::AssocGrpJobsLimit);
        }
        if self.is_too_long(want) {
            return Verdict::Refused(Reason::AssocGrpWallLimit);
        }
        if let Some(reason) = self.closed {
            return Verdict::Refused(reason);
        }
        self.of_resources(want, [Reason::AssocGrpCpuLimit, Reason::AssocGrpMemLimit])
    }

    pub(super) fn has_jobs_left(&self) -> bool {
        self.jobs > 0
    }

    pub(super) fn is_too_long(&self, want: &Want) -> bool {
        self.wall_mins != u32::MAX && want.limit_secs() / 60 > u64::from(self.wall_mins)
    }

    pub(super) fn closed(&self) -> Option<Reason> {
        self.closed
    }

    pub(super) fn needs_a_closer_look(&self, want: &Want) -> bool {
        concern(self.others, want) || (self.cpu_minutes != NO_LIMIT && want.cpu_minutes() >= self.cpu_minutes)
    }

    pub(super) fn of_resources(&self, want: &Want, [of_cpus, of_memory]: [Reason; 2]) -> Verdict {
        if self.needs_a_closer_look(want) {
            return Verdict::Unsaid;
        }
        if want.cpus > self.cpus {
            return Verdict::Refused(of_cpus);
        }
        let memory = want.memory_mb.filter(|_| !self.is_unsure);
        if self.memory_mb != NO_LIMIT && memory.is_none_or(|wanted| wanted > self.memory_mb) {
            return if memory.is_some() { Verdict::Refused(of_memory) } else { Verdict::Unsaid };
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

    /// Of an association.
    pub fn of(cluster: &Cluster, id: u32, together: &Together) -> Option<Headroom> {
        let whom = Party::Association(id);
        let mut headroom = Headroom::left_to(cluster, whom, together);
        if together.is_metered {
            let Limits { grp_wall, grp_tres_mins, .. } = &cluster.accounts.associations.get(&id)?.limits;
            headroom.lower_by_meters(cluster, whom, (*grp_wall, grp_tres_mins));
        }
        Some(headroom)
    }

    /// Of whoever has that, where nothing is limited but what is known of it.
    pub fn beside(together: &Together, gist: &Gist) -> Headroom {
        let mut headroom = Headroom::untouched(together);
        headroom.take_all(gist);
        headroom
    }

    fn take_all(&mut self, gist: &Gist) {
        let left = |most: u64, has: u64| if most == NO_LIMIT { NO_LIMIT } else { most.saturating_sub(has) };
        self.jobs = if self.jobs == u32::MAX { u32::MAX } else { self.jobs.saturating_sub(gist.jobs) };
        self.cpus = left(self.cpus, gist.cpus);
        self.memory_mb = left(self.memory_mb, gist.memory_mb);
        self.is_unsure |= gist.is_unsure;
    }

    pub(super) fn left_to(cluster: &Cluster, whom: Whom, together: &Together) -> Headroom {
        match cluster.tally.count(whom) {
            Some(count) => Headroom::untouched(together).without(count, cluster.now),
            None => Headroom::untouched(together),
        }
    }

    /// Of a party that has nothing.
    pub(super) fn untouched(together: &Together) -> Headroom {
        Headroom {
            cpus: together.held.cpu,
            memory_mb: together.held.memory_mb,
            nodes: together.held.node,
            cpu_minutes: together.run_minutes,
            jobs: together.jobs.unwrap_or(u32::MAX),
            others: together.held.others,
            ..Headroom::ALL
        }
    }

    /// Without what is counted.
    pub(super) fn without(self, count: &Count, now: Timestamp) -> Headroom {
        let mut headroom = self;
        headroom.take_all(&Gist::of(count));
        if self.nodes != NO_LIMIT {
            headroom.nodes = self.nodes.saturating_sub(count.held_of("node"));
        }
        if self.cpu_minutes != NO_LIMIT {
            headroom.cpu_minutes = self.cpu_minutes.saturating_sub(run_mins(count, now));
        }
        headroom
    }

    pub(super) fn lower_by_meters(&mut self, cluster: &Cluster, whom: Whom, (wall, minutes): (Option<u32>, &Tres)) {
        let (now, is_safe) = (cluster.now, cluster.config.accounting.enforce.safe);
        let half_life = cluster.decay().of(whom);
        let count = cluster.tally.count(whom).unwrap_or(&NOTHING);
        let (form, of_wall) = match whom {
            Party::Association(_) => (Form::GroupMinutes, Reason::AssocGrpWallLimit),
            Party::Qos(_) | Party::QosUser(..) | Party::QosAccount(..) => {
                (Form::QosGroupMinutes, Reason::QOSGrpWallLimit)
            }
        };
        if let Some(most) = wall {
            let spent = (count.wall_at(now, half_life) / 60.0) as u64;
            match spent >= u64::from(most) {
                true => self.closed = Some(of_wall),
                false => self.wall_mins = most,
            }
        }
        let used = count.used_at(now, half_life);
        for (name, most) in &minutes.0 {
            let spent = (used.get(name) / 60.0) as u64;
            match (is_safe, name.as_str()) {
                (false, _) if spent >= *most => {
                    self.closed = self.closed.or_else(|| Some(reason(form, name)));
                }
                (false, _) => (),
                (true, "cpu") => {
                    let left = most.saturating_sub(spent).saturating_sub(run_mins(count, now));
                    self.cpu_minutes = self.cpu_minutes.min(left);
                }
                (true, _) => self.others = Others::Everybody,
            }
        }
    }
}

fn run_mins(count: &Count, now: Timestamp) -> u64 {
    count.run_secs("cpu", now) / 60
}
