//! Who holds which resources. The only writer of `Node::used`, `Node::jobs`, and of a job's allocation.
use std::collections::BTreeSet;

use model::config::SuspendCpus;
use model::license::LicenseCount;
use model::node::Used;
use model::plan::{Grant, Start};
use model::spec::{Sharing, Size};
use model::{Allocation, CpuSet, Job, JobId, JobSpec, Node, NodeName, NodeShare, Owner};

use crate::{Cluster, licenses, network, reboots, reservations, sharing};

/// The grants are there to be taken, and are what the job asks for now.
pub(crate) fn fits(cluster: &Cluster, job: &Job, start: &Start) -> bool {
    let (spec, size) = (&job.spec, &job.spec.size);
    let (min, max) = size.node_bounds();
    let n_nodes = start.nodes.len() as u32;
    let names: BTreeSet<&NodeName> = start.nodes.iter().map(|grant| &grant.node).collect();
    let n_tasks: u64 = start.nodes.iter().map(|grant| u64::from(grant.n_tasks)).sum();
    let tasks_are_right = match size.n_tasks {
        Some(wanted) => n_tasks == u64::from(wanted),
        None => start.nodes.iter().all(|grant| grant.n_tasks >= size.tasks_per_node.unwrap_or(1)),
    };
    names.len() == start.nodes.len()
        && (min..=max).contains(&n_nodes)
        && tasks_are_right
        && start.is_exclusive == size.wants_whole_nodes()
        && size.nodes.iter().all(|name| names.contains(name))
        && start.nodes.iter().all(|grant| match cluster.nodes.get(&grant.node) {
            Some(node) => node_has(cluster, node, size, grant, start) && node.admits(spec.uid, size.sharing),
            None => false,
        })
        && has_features(cluster, size, start)
        && size.is_shared_out_by(start.nodes.iter().map(|grant| &grant.gres[..]))
        && (!size.contiguous || are_neighbours(cluster, start))
        && stays_in_share(cluster, start)
        && licenses_for(cluster, spec, start).is_some()
}

/// The nodes have together what is asked of them together.
fn has_features(cluster: &Cluster, size: &Size, start: &Start) -> bool {
    if size.feature_sets.is_empty() {
        return true;
    }
    let nodes = start.nodes.iter().filter_map(|grant| cluster.nodes.get(&grant.node));
    size.feature_sets.are_met_by(&nodes.map(|node| node.features()).collect::<Vec<_>>())
}

/// Of each node, jobs of one partition may be given only so many CPUs.
fn stays_in_share(cluster: &Cluster, start: &Start) -> bool {
    let most = cluster.config.partition(&start.partition).and_then(|partition| partition.max_cpus_per_node);
    let Some(most) = most else { return true };
    start.nodes.iter().all(|grant| cluster.cpus_of_partition(&grant.node, &start.partition) + grant.n_cpus <= most)
}

/// What the job would get of licences if it started now.
fn licenses_for(cluster: &Cluster, spec: &JobSpec, start: &Start) -> Option<Vec<LicenseCount>> {
    if spec.licenses.is_empty() {
        return Some(Vec::new());
    }
    let until = cluster.end_if_started(start.time_limit.or(spec.time_limit), &start.reservation);
    let free = cluster.free_licenses(&start.reservation, until);
    if start.license.is_empty() || !spec.licenses.any_is_enough {
        return spec.licenses.pick(&free);
    }
    let is_free = |one: &&LicenseCount| free.get(&one.name).is_some_and(|count| one.count <= *count);
    let chosen = spec.licenses.list.iter().find(|one| one.name == start.license);
    chosen.filter(is_free).map(|one| vec![one.clone()])
}

/// CPUs of the node that the job may have though others hold them.
fn shareable(cluster: &Cluster, node: &Node, size: &Size, start: &Start) -> Vec<u32> {
    let Some(partition) = cluster.config.partition(&start.partition) else { return Vec::new() };
    if !start.shares_cpus && start.parks.is_empty() {
        return Vec::new();
    }
    let most = if start.shares_cpus { sharing::degree(partition, size) } else { 1 };
    sharing::shareable(cluster, node, partition, most, &start.parks.iter().copied().collect())
}

fn node_has(cluster: &Cluster, node: &Node, size: &Size, grant: &Grant, start: &Start) -> bool {
    let size = &*size.on_node(&grant.gres);
    let part = size.part_of(&node.config, grant.n_tasks);
    let stands_still = |job: JobId| start.parks.contains(&job);
    let lends = |job: JobId| cluster.jobs.get(&job).is_some_and(|job| job.lends_cpus);
    // Who says what is left to the system may have what the site keeps.
    let free_cpus = match size.spared.is_some() && node.used.cpus.is_empty() {
        true => part.n_cpus,
        false => node.free_cpus() + shareable(cluster, node, size, start).len() as u32,
    };
    let memory_fits = !cluster.config.scheduler.tracks_memory || grant.memory_mb <= node.free_memory_mb();
    node.is_usable()
        && node.exclusive_job.is_none_or(stands_still)
        && node.blocked_by.is_none()
        && (!size.wants_whole_nodes() || node.jobs.iter().copied().all(|job| stands_still(job) || lends(job)))
        && (grant.n_cpus, grant.memory_mb) == (part.n_cpus, part.memory_mb)
        && size.tasks_per_node.is_none_or(|most| grant.n_tasks <= most)
        && 0 < grant.n_cpus
        && grant.n_cpus <= free_cpus
        && memory_fits
        && node.suits(size)
        && node.has_free_gres(&size.gres_for(grant.n_tasks))
}

fn are_neighbours(cluster: &Cluster, start: &Start) -> bool {
    let mut ranks: Vec<u32> = start.nodes.iter().map(|grant| cluster.nodes[&grant.node].rank).collect();
    ranks.sort_unstable();
    ranks.windows(2).all(|pair| pair[1] == pair[0] + 1)
}

/// Gives the job what the plan granted; picks the CPUs and units, lowest first.
pub(crate) fn hold(cluster: &mut Cluster, id: JobId, start: &Start) {
    let spec = cluster.jobs[&id].spec.clone();
    let licenses = licenses_for(cluster, &spec, start).expect("fits was asked first");
    licenses::take(cluster, id, licenses);
    let mut shares = Vec::with_capacity(start.nodes.len());
    for grant in &start.nodes {
        let shared = shareable(cluster, &cluster.nodes[&grant.node], &spec.size, start);
        let first_kept = cluster.first_cpus_kept(&start.reservation, &grant.node);
        let node = cluster.node_mut(grant.node.as_str());
        let mut cpus = free_cpus(node, &spec.size, grant, first_kept);
        let missing = grant.n_cpus.saturating_sub(cpus.len()) as usize;
        shared.into_iter().take(missing).for_each(|cpu| cpus.insert(cpu));
        node.shares_cpus |= missing > 0;
        let is_shared = node.shares_cpus;
        // Who has the node alone has its devices too, asked for or not.
        let asked = spec.size.on_node(&grant.gres).gres_for(grant.n_tasks);
        let all = (spec.size.sharing == Sharing::WholeNodes).then(|| node.config.all_gres(&asked));
        let whole = all.and_then(|all| node.config.pick_gres(&node.used.gres, &all));
        let asked = || node.config.pick_gres(&node.used.gres, &asked);
        let gres = whole.or_else(asked).expect("fits was asked first");
        cpus.iter().for_each(|cpu| node.used.cpus.insert(cpu));
        node.used.memory_mb += grant.memory_mb;
        node.used.gres.extend(gres.iter().cloned());
        node.jobs.insert(id);
        let tenancy = node.users.entry(spec.uid).or_default();
        tenancy.n_jobs += 1;
        tenancy.n_alone += u32::from(spec.size.sharing == Sharing::OneUser);
        if start.is_exclusive {
            node.exclusive_job = Some(id);
        }
        let (n_tasks, n_working) = (grant.n_tasks, spec.size.n_working_of(cpus.len(), &node.config));
        note_shared(cluster, &grant.node, is_shared);
        let (node, memory_mb) = (grant.node.clone(), grant.memory_mb);
        shares.push(NodeShare { node, cpus, memory_mb, gres, n_tasks, n_working });
    }
    cluster.job_mut(id).allocation = Allocation { nodes: shares, is_exclusive: start.is_exclusive };
    network::close_units(cluster, id, &start.partition);
}

/// Takes back what the job holds; its allocation stays readable.
pub(crate) fn free(cluster: &mut Cluster, id: JobId) {
    let allocation = cluster.jobs[&id].allocation.clone();
    let spec = cluster.jobs[&id].spec.clone();
    network::open_units(cluster, id, &spec);
    licenses::give_back(cluster, id);
    let reservation = cluster.jobs[&id].reservation.clone();
    reservations::note_use(cluster, &reservation, false);
    for share in &allocation.nodes {
        give_back(cluster, id, &spec, share);
    }
}

/// What the job held on one node.
fn give_back(cluster: &mut Cluster, id: JobId, spec: &JobSpec, share: &NodeShare) {
    let (now, lends) = (cluster.now, cluster.jobs[&id].lends_cpus);
    let node = cluster.node_mut(share.node.as_str());
    node.used.memory_mb -= share.memory_mb;
    for held in &share.gres {
        let at = node.used.gres.iter().position(|used| used == held).expect("what a job holds is in use");
        node.used.gres.remove(at);
    }
    node.jobs.remove(&id);
    node.n_lenders = node.n_lenders.saturating_sub(u32::from(lends));
    leave(node, spec);
    give_back_cpus(cluster, id, share);
    let node = cluster.node_mut(share.node.as_str());
    node.last_busy = Some(now);
    if node.exclusive_job == Some(id) {
        // Whoever had it alone before, and stood still or lent it meanwhile, has it again.
        let still =
            |other: &&JobId| cluster.jobs.get(*other).is_some_and(|job| job.allocation.is_exclusive && !job.lends_cpus);
        let next = cluster.nodes[&share.node].jobs.iter().find(still).copied();
        cluster.node_mut(share.node.as_str()).exclusive_job = next;
    }
    let node = &cluster.nodes[&share.node];
    if node.is_removed && node.jobs.is_empty() {
        cluster.duties.remove(&Owner::Node(share.node.clone()));
        reboots::forget(cluster, &share.node);
        cluster.nodes.remove(&share.node);
    }
}

/// Takes back what the job holds on nodes that are not among these.
pub(crate) fn shrink(cluster: &mut Cluster, id: JobId, kept: &BTreeSet<NodeName>) {
    let spec = cluster.jobs[&id].spec.clone();
    network::open_units(cluster, id, &spec);
    let shares = cluster.jobs[&id].allocation.nodes.clone();
    let (stays, goes): (Vec<_>, Vec<_>) = shares.into_iter().partition(|share| kept.contains(&share.node));
    for share in &goes {
        give_back(cluster, id, &spec, share);
    }
    let partition = cluster.jobs[&id].partition.clone();
    cluster.job_mut(id).allocation.nodes = stays;
    network::close_units(cluster, id, &partition);
}

/// A job suspended by hand lends its CPUs, and with them the whole nodes it had; one that owns its blocks keeps all it has.
pub(crate) fn lend_cpus(cluster: &mut Cluster, id: JobId) {
    let job = &cluster.jobs[&id];
    let keeps = cluster.config.scheduler.suspend_cpus == SuspendCpus::Retain || job.spec.size.network.owns_units;
    if keeps || job.is_parked || job.lends_cpus {
        return;
    }
    cluster.job_mut(id).lends_cpus = true;
    let allocation = cluster.jobs[&id].allocation.clone();
    for share in &allocation.nodes {
        give_back_cpus(cluster, id, share);
        let node = cluster.node_mut(share.node.as_str());
        node.n_lenders += 1;
        if node.exclusive_job == Some(id) {
            node.exclusive_job = None;
        }
    }
}

/// It has them again, perhaps together with those who borrowed them.
pub(crate) fn reclaim_cpus(cluster: &mut Cluster, id: JobId) {
    if !cluster.jobs[&id].lends_cpus {
        return;
    }
    cluster.job_mut(id).lends_cpus = false;
    let allocation = cluster.jobs[&id].allocation.clone();
    for share in &allocation.nodes {
        let node = cluster.node_mut(share.node.as_str());
        node.n_lenders = node.n_lenders.saturating_sub(1);
        node.shares_cpus |= share.cpus.iter().any(|cpu| node.used.cpus.contains(cpu));
        share.cpus.iter().for_each(|cpu| node.used.cpus.insert(cpu));
        if allocation.is_exclusive && node.jobs.len() == 1 {
            node.exclusive_job = Some(id);
        }
        let is_shared = node.shares_cpus;
        note_shared(cluster, &share.node, is_shared);
    }
}

/// The node's CPUs without this job's, unless others hold them too.
fn give_back_cpus(cluster: &mut Cluster, id: JobId, share: &NodeShare) {
    let node = &cluster.nodes[&share.node];
    let mut cpus = node.used.cpus.clone();
    share.cpus.iter().for_each(|cpu| cpus.remove(cpu));
    let mut is_shared = false;
    // Only where CPUs were lent can they be held twice.
    if node.shares_cpus || cluster.jobs[&id].lends_cpus {
        let others = node.jobs.iter().filter(|other| **other != id).filter_map(|other| cluster.jobs.get(other));
        let mut seen = CpuSet::default();
        for held in others.filter(|job| !job.lends_cpus).filter_map(|job| job.allocation.share(node.name.as_str())) {
            is_shared |= held.cpus.iter().any(|cpu| seen.contains(cpu));
            held.cpus.iter().for_each(|cpu| seen.insert(cpu));
        }
        cpus = seen;
    }
    let node = cluster.node_mut(share.node.as_str());
    node.used.cpus = cpus;
    node.shares_cpus = is_shared;
    note_shared(cluster, &share.node, is_shared);
}

/// Who shares what has changed.
fn note_shared(cluster: &mut Cluster, node: &NodeName, is_shared: bool) {
    let was_shared = match is_shared {
        true => cluster.shared_nodes.insert(node.clone()).is_some(),
        false => cluster.shared_nodes.remove(node).is_some(),
    };
    cluster.sharing_changed |= is_shared || was_shared;
}

fn leave(node: &mut Node, spec: &JobSpec) {
    let Some(tenancy) = node.users.get_mut(&spec.uid) else { return };
    tenancy.n_jobs = tenancy.n_jobs.saturating_sub(1);
    tenancy.n_alone = tenancy.n_alone.saturating_sub(u32::from(spec.size.sharing == Sharing::OneUser));
    if tenancy.n_jobs == 0 {
        node.users.remove(&spec.uid);
    }
}

/// What the jobs together hold of a node; `check` compares it with the node's own record.
pub(crate) fn recount(cluster: &Cluster, node: &Node) -> Used {
    let mut used = Used::default();
    for job in cluster.jobs().filter(|job| job.holds_nodes()) {
        for share in job.allocation.nodes.iter().filter(|share| share.node == node.name) {
            if !job.lends_cpus {
                share.cpus.iter().for_each(|cpu| used.cpus.insert(cpu));
            }
            used.memory_mb += share.memory_mb;
            used.gres.extend(share.gres.iter().cloned());
        }
    }
    used
}

/// The first ones may be kept for others, and are taken when nothing else is left.
fn free_cpus(node: &Node, size: &Size, grant: &Grant, first_kept: u32) -> CpuSet {
    let all: CpuSet = match size.spared {
        None => node.config.job_cpus().collect(),
        spared => node.config.job_cpus_beside(spared),
    };
    let free = all.difference(&node.used.cpus);
    let pick = |free: &CpuSet, n_cpus| node.config.pick_cpus(free, size, grant.n_tasks, n_cpus);
    if size.wants_whole_nodes() {
        return free;
    }
    let open = free.difference(&CpuSet::first(first_kept));
    let cpus = pick(&open, grant.n_cpus);
    match grant.n_cpus.saturating_sub(cpus.len()) {
        0 => cpus,
        missing => cpus.union(&pick(&free.difference(&cpus), missing)),
    }
}
