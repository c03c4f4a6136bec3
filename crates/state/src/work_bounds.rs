//! How much work a command may make: every list it brings is held against what the cluster has. Asked before a command goes to the
//! log, by whoever writes there; the handlers go on taking what is in it.
use model::feature_sets::FeatureSets;
use model::features::Constraint;
use model::spec::Size;
use model::{Command, JobKind, JobRef, JobSpec, Reject, StepSpec};

use crate::{Cluster, blobs};

/// Records and runs of task numbers that a command looks at, besides a few for each job there is.
const LOOKS_MOST: usize = 200_000;
const LOOKS_A_JOB: usize = 4;
/// Features in all the constraints of a job.
const FEATURES_MOST: usize = 512;
/// Nodes in a list, besides a few for each node there is: lists may name nodes again, for each task.
const NAMES_MOST: usize = 1024;
const NAMES_A_NODE: usize = 4;

/// Refuses what would keep everybody waiting.
pub fn judge_work(cluster: &Cluster, command: &Command) -> Result<(), Reject> {
    match command {
        Command::Once { command, .. } => judge_work(cluster, command),
        Command::Submit { spec, .. } => of_job(cluster, spec),
        Command::SubmitTogether { specs, .. } => specs.iter().try_for_each(|spec| of_job(cluster, spec)),
        Command::CreateStep { spec, .. } => of_step(cluster, spec),
        Command::CreateStepTogether { parts, .. } => parts.iter().try_for_each(|(_, spec)| of_step(cluster, spec)),
        Command::Cancel { jobs, .. }
        | Command::Hold { jobs, .. }
        | Command::Release { jobs }
        | Command::Requeue { jobs, .. }
        | Command::Suspend { jobs }
        | Command::Resume { jobs } => judge_refs(cluster, jobs),
        Command::UpdateJob { job, .. } => judge_refs(cluster, std::slice::from_ref(job)),
        _ => Ok(()),
    }
}

/// As [`judge_work`], for a submission that is not a command yet.
pub fn judge_specs(cluster: &Cluster, specs: &[JobSpec]) -> Result<(), Reject> {
    specs.iter().try_for_each(|spec| of_job(cluster, spec))
}

/// What looking up these jobs comes to: an array may be named again and again, each time with all its records.
pub fn judge_refs(cluster: &Cluster, jobs: &[JobRef]) -> Result<(), Reject> {
    let most = LOOKS_MOST + LOOKS_A_JOB * cluster.n_jobs();
    let mut n_looks: usize = 0;
    for named in jobs {
        n_looks += 1 + looks(cluster, named);
        if n_looks > most {
            return Err(too_much("jobs: the same ones are named too often"));
        }
    }
    Ok(())
}

fn looks(cluster: &Cluster, named: &JobRef) -> usize {
    let Some(array) = cluster.array(named.job) else { return 0 };
    let waiting = array.waiting.iter().filter_map(|id| cluster.job(*id)?.waiting_tasks.as_ref());
    match &named.tasks {
        None => array.n_records(),
        Some(tasks) => {
            let n_tasks = (tasks.len() as usize).min(array.tasks.len());
            n_tasks + tasks.n_runs() + waiting.map(|waiting| waiting.n_runs()).sum::<usize>()
        }
    }
}

fn of_job(cluster: &Cluster, spec: &JobSpec) -> Result<(), Reject> {
    let Size { constraint, preference, feature_sets, nodes, excluded, network, .. } = &spec.size;
    let plain = constraint.iter().chain(preference).map(n_features).sum::<usize>();
    if plain + of_sets(feature_sets) > FEATURES_MOST {
        return Err(Reject::BadConstraint(format!("more than {FEATURES_MOST} features")));
    }
    for list in [nodes, excluded, &network.among] {
        names(cluster, list.len())?;
    }
    match &spec.kind {
        JobKind::Run(step) => of_step(cluster, step),
        JobKind::Batch { .. } | JobKind::Allocation => Ok(()),
    }
}

fn of_step(cluster: &Cluster, spec: &StepSpec) -> Result<(), Reject> {
    names(cluster, spec.nodes.len())?;
    names(cluster, spec.excluded.len())
}

fn names(cluster: &Cluster, n_names: usize) -> Result<(), Reject> {
    match n_names > NAMES_MOST + NAMES_A_NODE * cluster.n_nodes() {
        true => Err(too_much("nodes: more names than this cluster has nodes")),
        false => Ok(()),
    }
}

fn of_sets(sets: &FeatureSets) -> usize {
    let counted = sets.counts.iter().map(|count| &count.constraint);
    sets.one_of.iter().chain(counted).map(n_features).sum()
}

/// Lists without any feature cost, too.
fn n_features(constraint: &Constraint) -> usize {
    match constraint {
        Constraint::Has(_) => 1,
        Constraint::Not(inner) => 1 + n_features(inner),
        Constraint::All(parts) | Constraint::Any(parts) => 1 + parts.iter().map(n_features).sum::<usize>(),
    }
}

fn too_much(what: &str) -> Reject {
    Reject::TextTooLong(what.to_owned())
}

/// The environments that a command names; its other content is scripts.
pub fn environments(command: &Command) -> Vec<model::BlobId> {
    match command {
        Command::Once { command, .. } => environments(command),
        Command::Submit { spec, .. } => of_spec(spec),
        Command::SubmitTogether { specs, .. } => specs.iter().flat_map(of_spec).collect(),
        Command::CreateStep { spec, .. } => blobs::of_step(spec),
        Command::CreateStepTogether { parts, .. } => parts.iter().flat_map(|(_, spec)| blobs::of_step(spec)).collect(),
        _ => Vec::new(),
    }
}

fn of_spec(spec: &JobSpec) -> Vec<model::BlobId> {
    match &spec.kind {
        JobKind::Run(step) => vec![spec.environment, step.environment],
        JobKind::Batch { .. } | JobKind::Allocation => vec![spec.environment],
    }
}
