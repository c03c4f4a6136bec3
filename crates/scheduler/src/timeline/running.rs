//! The jobs that run: what each holds of a node, and until when.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use model::resources::NodeShare;
use model::spec::Sharing;
use model::{CpuSet, Job, JobId, Node, Timestamp};
use state::Cluster;

use super::{Clock, Held, Interval, Slot, Use};

/// The nodes of a narrower job are looked through; those of a wide one are looked up by name.
const N_NODES_OF_A_NARROW_JOB: usize = 8;

type Places<'a> = BTreeMap<&'a str, usize>;

pub(crate) struct Running<'a> {
    cluster: &'a Cluster,
    clock: Clock,
    /// Where in a wide job's list each of its nodes stands.
    wide: RefCell<BTreeMap<JobId, Rc<Places<'a>>>>,
}

impl<'a> Running<'a> {
    pub fn new(cluster: &'a Cluster, clock: &Clock) -> Self {
        Running { cluster, clock: *clock, wide: RefCell::default() }
    }

    /// From now until the job ends. What lies beyond the window is taken to end with it, so that nobody waits behind it without a place.
    pub fn interval(&self, ends_at: Option<Timestamp>) -> Interval {
        let end = self.clock.end();
        let until = ends_at.map_or(end, |at| self.clock.slot(at).clamp(Slot(1), end));
        Interval { from: Slot::NOW, until }
    }

    /// Who holds the node.
    pub fn on(&self, node: &'a Node) -> Held {
        let here = node.jobs.iter().filter_map(|id| self.cluster.job(*id)).map(|job| &**job);
        let mut parts: Vec<(Option<Timestamp>, &Job, &NodeShare)> =
            here.filter_map(|job| Some((self.cluster.expected_end(job), job, self.share(job, node)?))).collect();
        // The last to end first: a CPU that several hold is given back by the last of them.
        parts.sort_by_key(|(ends_at, job, _)| std::cmp::Reverse((ends_at.unwrap_or(Timestamp(u64::MAX)), job.id)));
        let mut seen = CpuSet::default();
        let mut uses = Vec::with_capacity(parts.len());
        for (ends_at, job, share) in parts {
            let cpus = match node.shares_cpus {
                _ if job.lends_cpus => 0,
                false if job.allocation.is_exclusive => u32::MAX,
                false => node.config.cpus_taken(&share.cpus),
                true => first_seen(&mut seen, &share.cpus),
            };
            uses.push(Use {
                job: job.id,
                interval: self.interval(ends_at),
                ends_at,
                cpus,
                memory_mb: share.memory_mb,
                gres: share.gres.clone(),
                uid: job.spec.uid,
                is_alone: job.spec.size.sharing == Sharing::OneUser,
            });
        }
        uses.reverse();
        let mut held = Held::of(uses);
        if let Some(job) = node.blocked_by.and_then(|id| self.cluster.job(id)) {
            let ends_at = self.cluster.expected_end(job);
            held.add(Use::whole(job, self.interval(ends_at), ends_at));
        }
        held
    }

    fn share(&self, job: &'a Job, node: &Node) -> Option<&'a NodeShare> {
        let nodes = &job.allocation.nodes;
        if nodes.len() <= N_NODES_OF_A_NARROW_JOB {
            return job.allocation.share(node.name.as_str());
        }
        let by_name = || Rc::new(nodes.iter().map(|share| share.node.as_str()).zip(0..).collect());
        let places = self.wide.borrow_mut().entry(job.id).or_insert_with(by_name).clone();
        places.get(node.name.as_str()).map(|at| &nodes[*at])
    }
}

/// How many of the CPUs were not seen before; they are now.
fn first_seen(seen: &mut CpuSet, cpus: &CpuSet) -> u32 {
    let n_before = seen.len();
    cpus.iter().for_each(|cpu| seen.insert(cpu));
    seen.len() - n_before
}
