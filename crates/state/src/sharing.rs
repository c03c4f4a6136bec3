//! Which CPUs several jobs may hold at once.
use std::collections::{BTreeMap, BTreeSet};

use model::partition::OverSubscribe;
use model::spec::{Sharing, Size};
use model::{CpuSet, JobId, Node, Partition};

use crate::Cluster;

/// How many jobs of the partition may hold a CPU together with a job of this size. Whole nodes are never shared.
pub fn degree(partition: &Partition, size: &Size) -> u32 {
    match partition.oversubscribe {
        _ if size.wants_whole_nodes() => 1,
        OverSubscribe::No | OverSubscribe::Exclusive => 1,
        OverSubscribe::Yes(most) if size.sharing == Sharing::Oversubscribe => most.max(1),
        OverSubscribe::Yes(_) => 1,
        OverSubscribe::Force(most) => most.max(1),
    }
}

/// CPUs of the node that others hold, and that a job of the partition may have all the same: where fewer than `most` share it already,
/// and where all who hold it are to stand still (`parks`). The least shared first.
pub fn shareable(
    cluster: &Cluster,
    node: &Node,
    partition: &Partition,
    most: u32,
    parks: &BTreeSet<JobId>,
) -> Vec<u32> {
    let is_closed = node.blocked_by.is_some() || node.exclusive_job.is_some_and(|job| !parks.contains(&job));
    if is_closed || (most < 2 && node.jobs.is_disjoint(parks)) {
        return Vec::new();
    }
    let (mut n_holders, mut barred) = (BTreeMap::<u32, u32>::new(), CpuSet::default());
    for job in node.jobs.iter().filter_map(|id| cluster.jobs.get(id)).filter(|job| !job.lends_cpus) {
        let Some(share) = job.allocation.share(node.name.as_str()) else { continue };
        let stands_still = parks.contains(&job.id);
        let shares = job.partition == partition.name && degree(partition, &job.spec.size) > 1;
        for cpu in share.cpus.iter() {
            match stands_still || shares {
                true => *n_holders.entry(cpu).or_default() += u32::from(!stands_still),
                false => barred.insert(cpu),
            }
        }
    }
    let mut free: Vec<(u32, u32)> = n_holders.into_iter().map(|(cpu, n_holders)| (n_holders, cpu)).collect();
    let is_for_jobs = |cpu: u32| cpu < node.config.all_cpus() && !node.config.kept_cpus.contains(cpu);
    free.retain(|(n_holders, cpu)| *n_holders < most && !barred.contains(*cpu) && is_for_jobs(*cpu));
    let unit = node.config.unit();
    if unit > 1 {
        keep_whole_units(unit, &mut free);
    }
    free.sort_unstable();
    free.into_iter().map(|(_, cpu)| cpu).collect()
}

/// Only whole units, each of them as shared as the most shared of its CPUs; so they stay together in any order.
fn keep_whole_units(unit: u32, free: &mut Vec<(u32, u32)>) {
    let mut units = BTreeMap::<u32, (u32, u32)>::new();
    for (n_holders, cpu) in free.iter() {
        let (n_cpus, most) = units.entry(cpu / unit).or_default();
        (*n_cpus, *most) = (*n_cpus + 1, (*most).max(*n_holders));
    }
    free.retain_mut(|(n_holders, cpu)| {
        let (n_cpus, most) = units[&(*cpu / unit)];
        *n_holders = most;
        n_cpus == unit
    });
}
