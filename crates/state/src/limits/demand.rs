//! What a start would take, for limits to judge: from what is asked, or from what a plan grants.
use model::accounts::Amounts;
use model::amount::Amount;
use model::billing;
use model::plan::{Grant, Start};
use model::spec::Memory;
use model::{Job, JobSpec, NodeName, Partition};

use super::Count;
use super::charge::ENDLESS;
use crate::Cluster;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    pub amounts: Amounts,
    /// The most on one node.
    pub on_a_node: Amounts,
    pub limit_secs: u64,
    /// Jobs: of an array all tasks.
    pub n_jobs: u64,
    /// None while it is not known which.
    pub nodes: Option<Vec<NodeName>>,
}

impl Demand {
    /// The least that would do.
    pub fn asked(cluster: &Cluster, spec: &JobSpec) -> Demand {
        let partition = spec.partitions.first().and_then(|name| cluster.config.partition(name));
        let asked = spec.asked();
        let each = spread(&asked);
        Demand {
            amounts: billed(cluster, partition, Amounts::new(&asked, spec.licenses.certain())),
            on_a_node: billed(cluster, partition, Amounts::new(&each, &[])),
            limit_secs: limit_secs(spec, None),
            n_jobs: spec.array.as_ref().map_or(1, |array| array.tasks.len().into()),
            nodes: None,
        }
    }

    /// What the plan gives.
    pub fn granted(cluster: &Cluster, job: &Job, start: &Start) -> Demand {
        Demand::of_grants(cluster, job, &start.partition, &start.nodes, start.time_limit)
    }

    pub fn of_grants(
        cluster: &Cluster,
        job: &Job,
        partition: &str,
        grants: &[Grant],
        time_limit: Option<model::spec::TimeLimit>,
    ) -> Demand {
        let spec = &job.spec;
        let partition = cluster.config.partition(partition);
        let mut all = Amount::default();
        let mut most: Amounts = Amounts::default();
        for grant in grants {
            let one = granted_on(cluster, spec, grant);
            most.merge(&billed(cluster, partition, Amounts::new(&one, &[])), |most, amount| {
                *most = (*most).max(amount)
            });
            all.add(&one);
        }
        all.buffers = buffers_held(spec);
        Demand {
            amounts: billed(cluster, partition, Amounts::new(&all, spec.licenses.certain())),
            on_a_node: most,
            limit_secs: limit_secs(spec, time_limit),
            n_jobs: 1,
            nodes: Some(grants.iter().map(|grant| grant.node.clone()).collect()),
        }
    }

    /// How many nodes would be in use together with those of the party.
    pub(super) fn n_nodes_with(&self, count: &Count) -> u64 {
        let in_use = count.nodes.len() as u64;
        match &self.nodes {
            // At best on the same nodes.
            None => in_use.max(self.amounts.node),
            Some(nodes) => in_use + nodes.iter().filter(|node| !count.nodes.contains_key(*node)).count() as u64,
        }
    }
}

fn granted_on(cluster: &Cluster, spec: &JobSpec, grant: &Grant) -> Amount {
    let whole_node = matches!(spec.size.memory, Memory::WholeNode) && grant.memory_mb == 0;
    let memory_mb = match cluster.node(grant.node.as_str()).filter(|_| whole_node) {
        Some(node) => node.config.memory_mb,
        None => grant.memory_mb,
    };
    let mut amount =
        Amount { n_nodes: 1, n_cpus: grant.n_cpus, n_tasks: grant.n_tasks, memory_mb, ..Default::default() };
    for gres in spec.size.on_node(&grant.gres).gres_for(grant.n_tasks) {
        amount.add_gres(&gres.name, &gres.kind, u64::from(gres.count));
    }
    amount
}

/// The largest part that a node must have if the job is spread evenly.
fn spread(asked: &Amount) -> Amount {
    let nodes = asked.n_nodes.max(1);
    Amount {
        n_nodes: 1,
        n_cpus: asked.n_cpus.div_ceil(nodes),
        n_tasks: asked.n_tasks.div_ceil(nodes),
        memory_mb: asked.memory_mb.div_ceil(nodes.into()),
        gres: asked.gres.iter().map(|(name, count)| (name.clone(), count.div_ceil(nodes.into()))).collect(),
        ..Amount::default()
    }
}

pub(super) fn limit_secs(spec: &JobSpec, shorter: Option<model::spec::TimeLimit>) -> u64 {
    shorter.or(spec.time_limit).and_then(|limit| limit.span()).unwrap_or(ENDLESS).secs()
}

/// Persistent buffers that it has made count for themselves by the time it starts.
fn buffers_held(spec: &JobSpec) -> Vec<(String, u64)> {
    let created = spec.buffer.as_ref().map_or(0, |request| request.tres_mb_created);
    let left = spec.asked().buffers.into_iter().map(|(name, megabytes)| (name, megabytes.saturating_sub(created)));
    left.filter(|(_, megabytes)| *megabytes > 0).collect()
}

/// What a job that has nodes holds.
pub(super) fn held(cluster: &Cluster, job: &Job) -> Amounts {
    let amount = Amount { buffers: buffers_held(&job.spec), ..Amount::of_shares(&job.allocation.nodes) };
    billed(cluster, cluster.config.partition(&job.partition), Amounts::new(&amount, &job.licenses))
}

pub(super) fn billed(cluster: &Cluster, partition: Option<&Partition>, amounts: Amounts) -> Amounts {
    billing::billed(&cluster.config, partition, amounts)
}
