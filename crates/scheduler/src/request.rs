//! What is looked for: a job's size and length, and who may be kept out of where.
use model::spec::{Memory, Sharing, Size};
use model::{Job, JobSpec};

use crate::counts::Wanted;
use crate::timeline::{Length, Slot};

#[derive(Clone)]
pub(crate) struct Request<'a> {
    pub job: &'a Job,
    pub size: &'a Size,
    pub length: Length,
    /// CPUs and memory without which a node is of no use.
    pub least_cpus: u32,
    pub least_memory_mb: u64,
    /// Cluster-wide things, such as licences.
    pub counts: Vec<Wanted>,
    /// Closures that hold for this job, by number.
    pub closed: Vec<u32>,
    /// Until then it waits for few switches.
    pub limit_until: Slot,
}

impl<'a> Request<'a> {
    pub fn new(job: &'a Job, size: &'a Size, length: Length, closed: Vec<u32>) -> Request<'a> {
        let least_cpus = size.cpus_for(size.n_tasks_each().unwrap_or(1));
        let least_memory_mb = size.least_memory_mb();
        Request {
            job,
            size,
            length,
            least_cpus,
            least_memory_mb,
            counts: crate::counts::wanted_by(&job.spec),
            closed,
            limit_until: Slot::NOW,
        }
    }

    pub fn spec(&self) -> &JobSpec {
        &self.job.spec
    }

    /// Only CPUs and memory matter, and a node's answer only gets better as its jobs end.
    pub fn is_plain(&self) -> bool {
        let size = self.size;
        size.gres.is_empty()
            && size.gres_per_task.is_empty()
            && !size.wants_whole_nodes()
            && size.sharing != Sharing::OneUser
            && size.threads_per_core.is_none()
            && size.tasks_per_node.is_none()
            && matches!(size.memory, Memory::Default | Memory::PerNodeMb(_) | Memory::PerCpuMb(_))
    }
}
