//! What is looked for: a job's size and length, and who may be kept out of where.
use model::spec::{Memory, Sharing, Size};
use model::{Job, JobSpec};
use state::Cluster;

use crate::closures::Closures;
use crate::counts::Wanted;
use crate::room::PoolId;
use crate::timeline::{Length, Slot};

#[derive(Clone)]
pub(crate) struct Request<'a> {
    pub job: &'a Job,
    pub size: &'a Size,
    pub length: Length,
    /// CPUs and memory without which a node is of no use.
    pub least_cpus: u32,
    pub least_memory_mb: u64,
    /// Every node that is usable may serve it, as far as its kind matters.
    pub suits_all: bool,
    /// Cluster-wide things, such as licences.
    pub counts: Vec<Wanted>,
    /// Closures that hold for this job, by number.
    pub closed: Vec<u32>,
    /// The reservation it would run in; empty: none.
    pub reservation: &'a str,
    /// Until then it waits for few switches.
    pub limit_until: Slot,
    /// In these partitions it waits for a low one.
    pub levels: Vec<LevelLimit>,
}

/// The common switch is of no higher level until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LevelLimit {
    pub pool: PoolId,
    pub level: u32,
    pub until: Slot,
}

impl<'a> Request<'a> {
    /// Every way in which the job may run now, the best first: in reservations, and with other licences where it has the choice.
    pub fn all(cluster: &'a Cluster, closures: &Closures, job: &'a Job) -> Vec<Request<'a>> {
        let mut requests = Vec::with_capacity(1);
        let inside = cluster.reservations_for(job).into_iter().map(|reservation| reservation.name.as_str());
        let outside = job.spec.reservations.is_empty().then_some("");
        for reservation in inside.chain(outside) {
            let end = cluster.end_if_started(job.spec.time_limit, reservation);
            let length = Length(end.map(|end| end - cluster.now()));
            for counts in crate::counts::wanted_by(&job.spec) {
                let closed = closures.of(&job.spec, reservation);
                let request = Request::new(job, &job.spec.size, length, closed);
                requests.push(Request { counts, reservation, ..request });
            }
        }
        requests
    }

    /// The way in which it waits: for its reservation if it asked for one, else outside of all.
    pub fn waiting(requests: &[Request<'a>]) -> Option<Request<'a>> {
        let asks = requests.first().is_some_and(|request| !request.job.spec.reservations.is_empty());
        if asks { requests.first().cloned() } else { requests.last().cloned() }
    }

    fn new(job: &'a Job, size: &'a Size, length: Length, closed: Vec<u32>) -> Request<'a> {
        let least_cpus = size.least_cpus_for(size.n_tasks_each().unwrap_or(1));
        let least_memory_mb = size.least_memory_mb();
        let suits_all = size.suits_every_node();
        Request {
            job,
            size,
            length,
            least_cpus,
            least_memory_mb,
            suits_all,
            counts: Vec::new(),
            closed,
            reservation: "",
            limit_until: Slot::NOW,
            levels: Vec::new(),
        }
    }

    /// The same for another size, which may only be narrower.
    pub fn with_size<'s>(&self, size: &'s Size) -> Request<'s>
    where
        'a: 's,
    {
        Request { size, suits_all: size.suits_every_node(), ..self.clone() }
    }

    /// The level up to which it waits in that partition, and until when.
    pub fn level_limit(&self, pool: PoolId) -> Option<(u32, Slot)> {
        self.levels.iter().find(|limit| limit.pool == pool).map(|limit| (limit.level, limit.until))
    }

    pub fn spec(&self) -> &JobSpec {
        &self.job.spec
    }

    /// It wants private burst buffer space.
    pub fn needs_disk(&self) -> bool {
        self.job.spec.buffer.as_ref().is_some_and(|buffer| buffer.has_private_space())
    }

    /// Only CPUs and memory matter, and a node's answer only gets better as its jobs end.
    pub fn is_plain(&self) -> bool {
        let size = self.size;
        size.gres.is_empty()
            && size.gres_per_task.is_empty()
            && size.gres_total.is_empty()
            && !size.wants_whole_nodes()
            && size.sharing != Sharing::OneUser
            && size.threads_per_core.is_none()
            && size.tasks_per_node.is_none()
            && !self.needs_disk()
            && matches!(size.memory, Memory::Default | Memory::PerNodeMb(_) | Memory::PerCpuMb(_))
    }
}
