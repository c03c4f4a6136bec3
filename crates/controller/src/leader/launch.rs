//! Puts together what a supervisor needs to run a batch script or a step's tasks.
use model::agent::Launch;
use model::{Job, JobKind, NodeName, Phase, Step, StepId, resources::NodeShare};
use state::Cluster;

use super::het;

pub fn of_batch(cluster: &Cluster, job: &Job) -> Option<(NodeName, Launch)> {
    let JobKind::Batch { script } = job.spec.kind else { return None };
    let first = job.allocation.nodes.first()?;
    let launch = Launch {
        step: StepId::Batch,
        script: cluster.blob(script).map(|content| content.to_vec()).unwrap_or_default(),
        environment: cluster.blob(job.spec.environment).map(|content| content.to_vec()).unwrap_or_default(),
        step_shares: vec![first.clone()],
        n_tasks: 1,
        ..of_job(cluster, job, &first.node)
    };
    Some((first.node.clone(), launch))
}

/// One launch for each node of the step where its tasks have not ended yet.
pub fn of_step(cluster: &Cluster, job: &Job, step: &Step) -> Vec<(NodeName, Launch)> {
    let environment: Vec<u8> = cluster.blob(step.spec.environment).map(|content| content.to_vec()).unwrap_or_default();
    let places = step.shares.iter().zip(step.ranks()).enumerate();
    places
        .filter(|(_, (share, _))| !step.ended_nodes.contains(&share.node))
        .map(|(node_index, (share, ranks)): (usize, (&NodeShare, Vec<u32>))| {
            let whole = het::of_step(cluster, step, node_index as u32);
            let first_rank = whole.as_ref().map_or(0, |(_, first_rank)| *first_rank);
            let ranks = ranks.into_iter().map(|rank| rank + first_rank).collect();
            let mut launch = Launch {
                step: step.id,
                step_spec: Some(step.spec.clone()),
                environment: environment.clone(),
                step_shares: step.shares.clone(),
                node_index: node_index as u32,
                ranks,
                n_tasks: step.n_tasks,
                ..of_job(cluster, job, &share.node)
            };
            if let Some((whole, _)) = whole {
                launch.het.get_or_insert_default().step = Some(whole);
            }
            (share.node.clone(), launch)
        })
        .collect()
}

fn of_job(cluster: &Cluster, job: &Job, node: &NodeName) -> Launch {
    let topology = address(cluster, job, node);
    let array = job.array.as_ref().and_then(|place| {
        let array = cluster.array(place.array)?;
        Some(array.facts(place.task?))
    });
    Launch {
        job: job.id,
        attempt: job.attempt,
        restarts: job.restarts,
        job_spec: job.spec.clone(),
        array,
        partition: job.partition.clone(),
        cluster_name: cluster.config().cluster_name.clone(),
        job_shares: job.allocation.nodes.clone(),
        started: job.started,
        ends: job.end_time(),
        is_rerun: job.restarts > 0,
        is_suspended: job.phase == Phase::Suspended,
        het: het::facts(cluster, job),
        topology_address: topology.address,
        topology_pattern: topology.pattern,
        ..Default::default()
    }
}

/// Where the node is in the network of the job's partition.
fn address(cluster: &Cluster, job: &Job, node: &NodeName) -> topology::Address {
    let name = cluster.config().partition(&job.partition).map_or("", |partition| partition.topology.as_str());
    cluster.network().address(cluster.network().shape(name), node.as_str())
}
