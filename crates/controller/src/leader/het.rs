//! What the parts of a heterogeneous job, and of a step over several of them, are told about the whole.
use model::agent::{HetComponent, HetFacts, HetStep};
use model::{Job, Step};
use state::Cluster;

/// None for an ordinary job.
pub fn facts(cluster: &Cluster, job: &Job) -> Option<Box<HetFacts>> {
    let het = job.het.as_ref()?;
    let component = |job: &std::sync::Arc<Job>| HetComponent {
        job: job.id,
        spec: job.spec.clone(),
        partition: job.partition.clone(),
        shares: job.allocation.nodes.clone(),
    };
    let components = het.ids.iter().filter_map(|id| cluster.job(*id)).map(component).collect();
    Some(Box::new(HetFacts { leader: het.leader, components, step: None }))
}

/// How the part stands in its step; and the rank of its first task. None for a step that is its own whole.
pub fn of_step(cluster: &Cluster, step: &Step, node_index: u32) -> Option<(HetStep, u32)> {
    if step.together.is_empty() {
        return None;
    }
    let mut whole = HetStep::default();
    let mut first_rank = 0;
    let mut last_job = None;
    for part in &step.together {
        let (Some(job), Some(other)) = (cluster.job(part.job), cluster.step(part.job, part.step)) else { continue };
        if (part.job, part.step) == (step.job, step.id) {
            whole.node_index = whole.step_shares.len() as u32 + node_index;
            first_rank = whole.n_tasks;
        }
        whole.n_tasks += other.n_tasks;
        whole.step_shares.extend(other.shares.iter().cloned());
        if last_job != Some(part.job) {
            whole.job_shares.extend(job.allocation.nodes.iter().cloned());
        }
        last_job = Some(part.job);
    }
    Some((whole, first_rank))
}
