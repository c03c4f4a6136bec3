//! Puts together what a supervisor needs to run a batch script or a step's tasks.
use model::agent::{Bounds, Launch};
use model::{Job, JobKind, NodeName, Phase, Step, StepId, Task, resources::NodeShare};
use state::Cluster;

use super::{het, hooks};

pub fn of_batch(cluster: &Cluster, job: &Job, places: &hooks::Places) -> Option<(NodeName, Launch)> {
    let JobKind::Batch { script } = job.spec.kind else { return None };
    let first = job.allocation.share(job.script_node()?.as_str())?;
    let launch = Launch {
        bounds: bounds(cluster, first, first),
        step: StepId::Batch,
        buffer_environment: state::buffers::environment(cluster, job, &first.node),
        script: cluster.blob(script).map(|content| content.to_vec()).unwrap_or_default(),
        environment: cluster.blob(job.spec.environment).map(|content| content.to_vec()).unwrap_or_default(),
        step_shares: vec![first.clone()],
        n_tasks: 1,
        ..of_job(cluster, job, &first.node, places)
    };
    Some((first.node.clone(), launch))
}

/// One launch for each node of the step where its tasks have not ended yet.
pub fn of_step(cluster: &Cluster, job: &Job, step: &Step, places: &hooks::Places) -> Vec<(NodeName, Launch)> {
    let environment: Vec<u8> = cluster.blob(step.spec.environment).map(|content| content.to_vec()).unwrap_or_default();
    let parts = step.shares.iter().zip(step.ranks()).enumerate();
    parts
        .filter(|(_, (share, _))| !step.ended_nodes.contains(&share.node))
        .map(|(node_index, (share, ranks)): (usize, (&NodeShare, Vec<u32>))| {
            let whole = het::of_step(cluster, step, node_index as u32);
            let first_rank = whole.as_ref().map_or(0, |(_, first_rank)| *first_rank);
            let ranks = ranks.into_iter().map(|rank| rank + first_rank).collect();
            let held = job.allocation.share(share.node.as_str()).unwrap_or(share);
            let mut launch = Launch {
                bounds: bounds(cluster, held, share),
                step: step.id,
                buffer_environment: state::buffers::environment(cluster, job, &share.node),
                step_spec: Some(step.spec.clone()),
                environment: environment.clone(),
                step_shares: step.shares.clone(),
                ports: step.port_list(),
                node_index: node_index as u32,
                ranks,
                n_tasks: step.n_tasks,
                ..of_job(cluster, job, &share.node, places)
            };
            if let Some((whole, _)) = whole {
                launch.het.get_or_insert_default().step = Some(whole);
            }
            (share.node.clone(), launch)
        })
        .collect()
}

/// What a run may use of a node where the job holds `whole` and the run itself `share`.
fn bounds(cluster: &Cluster, whole: &NodeShare, share: &NodeShare) -> Bounds {
    let wanted = &cluster.config().agent;
    let memory_mb = if share.memory_mb > 0 { share.memory_mb } else { whole.memory_mb };
    let is_held = |name: &str, unit: u32| {
        share.gres.iter().any(|held| match held.device {
            Some(device) => name == "gpu" && device == unit,
            None => held.name == name && held.units.contains(unit),
        })
    };
    let mut denied_files = Vec::new();
    if wanted.constrain_devices
        && let Some(node) = cluster.node(share.node.as_str())
    {
        let mut next: std::collections::BTreeMap<&str, u32> = std::collections::BTreeMap::new();
        for gres in &node.config.gres {
            let first = next.entry(&gres.name).or_default();
            let files = gres.files.iter().zip(*first..);
            denied_files.extend(files.filter(|(_, unit)| !is_held(&gres.name, *unit)).map(|(file, _)| file.clone()));
            *first += gres.count;
        }
    }
    let node = cluster.node(share.node.as_str()).filter(|node| node.config.unit() > 1);
    Bounds {
        n_cpus_by_core: node.map_or(0, |node| node.config.all_cpus()),
        memory_mb: (wanted.constrain_memory && memory_mb > 0).then_some(memory_mb),
        cpus: wanted.constrain_cores.then(|| share.cpus.clone()),
        denied_files,
    }
}

fn of_job(cluster: &Cluster, job: &Job, node: &NodeName, places: &hooks::Places) -> Launch {
    let site = &cluster.config().hooks;
    let prolog = || Box::new(hooks::on_node(cluster, job, node, Task::Prolog, places));
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
        reservation: job.reservation.clone(),
        cluster_name: cluster.config().cluster_name.clone(),
        job_shares: job.allocation.nodes.clone(),
        started: job.started,
        ends: job.end_time(),
        is_rerun: job.restarts > 0,
        is_suspended: job.phase == Phase::Suspended || job.starts_suspended,
        signal_tasks_only: cluster.config().agent.signal_tasks_only,
        // Root has all there are.
        no_new_privileges: cluster.config().agent.setuid_helpers.is_empty() && job.spec.uid != 0,
        // Without programs of its own it leaves a record all the same, for the epilog.
        prolog: site.on_nodes().then(prolog),
        task_prolog: site.task_prolog.clone(),
        task_epilog: site.task_epilog.clone(),
        het: het::facts(cluster, job),
        topology_address: topology.address,
        topology_pattern: topology.pattern,
        hostname: cluster.node(node.as_str()).map(|node| node.config.hostname.clone()).unwrap_or_default(),
        ..Default::default()
    }
}

/// Where the node is in the network of the job's partition.
fn address(cluster: &Cluster, job: &Job, node: &NodeName) -> topology::Address {
    let name = cluster.config().partition(&job.partition).map_or("", |partition| partition.topology.as_str());
    cluster.network().address(cluster.network().shape(name), node.as_str())
}
