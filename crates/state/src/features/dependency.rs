//! `--dependency`: waits for other jobs. Met terms are forgotten as they are met, since the jobs they name go away.
use std::collections::{BTreeMap, BTreeSet};

use model::dependency::{Dependency, Kind, Term};
use model::time::Span;
use model::{JobId, JobRef};

use super::*;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    if !is_pending(job) || job.dependency.terms.is_empty() {
        return Hold::Free;
    }
    if !job.dependency_failed {
        return Hold::Wait(Some(Reason::Dependency), all_wakes(cluster, job));
    }
    let kills = job.spec.kill_on_invalid_dependency.unwrap_or(cluster.config.scheduler.kill_on_invalid_dependency);
    match kills {
        true => Hold::End(Outcome::Cancelled, Some(Reason::DependencyNeverSatisfied)),
        false => {
            let wakes = vec![Wake::Released(job.id), Wake::Partitions];
            Hold::Wait(Some(Reason::DependencyNeverSatisfied), wakes)
        }
    }
}

/// A job that waits for something else, too, must hear of these: the jobs it names are forgotten some day.
pub(super) fn all_wakes(cluster: &Cluster, job: &Job) -> Vec<Wake> {
    if job.dependency_failed {
        return Vec::new();
    }
    job.dependency.terms.iter().flat_map(|term| wakes(cluster, job, term)).collect()
}

pub(super) enum Standing {
    Met,
    Open,
    Never,
}

/// Drops the met terms of a pending job; notes when it can never run.
pub(crate) fn forget_what_is_met(cluster: &mut Cluster, id: JobId) {
    let job = &cluster.jobs[&id];
    if job.phase != Phase::Pending || job.dependency.terms.is_empty() || job.dependency_failed {
        return;
    }
    corresponding::set_apart(cluster, id);
    let job = &cluster.jobs[&id];
    let standings: Vec<Standing> = job.dependency.terms.iter().map(|term| standing(cluster, job, term)).collect();
    let n_met = standings.iter().filter(|standing| matches!(standing, Standing::Met)).count();
    let n_never = standings.iter().filter(|standing| matches!(standing, Standing::Never)).count();
    let any_is_enough = job.dependency.any_is_enough;
    let failed = if any_is_enough { n_never == standings.len() } else { n_never > 0 };
    if n_met == 0 && !failed {
        return;
    }
    let job = cluster.job_mut(id);
    job.dependency_failed = failed;
    if any_is_enough && n_met > 0 {
        job.dependency.terms.clear();
        return;
    }
    let mut standings = standings.iter();
    job.dependency.terms.retain(|_| !matches!(standings.next(), Some(Standing::Met)));
}

/// Whether the job of that name would wait for itself, through whatever other jobs wait for.
pub(crate) fn would_wait_for_itself(cluster: &Cluster, id: JobId, name: &str, dependency: &Dependency) -> bool {
    let job = &cluster.jobs[&id];
    let (uid, array) = (job.spec.uid, job.array_id());
    let mut walk = Walk::default();
    walk.goes_on(cluster, (uid, name, id), dependency);
    while let Some(other) = walk.to_visit.pop() {
        if other == id || Some(other) == array {
            return true;
        }
        if !walk.visited.insert(other) {
            continue;
        }
        let records = cluster.named(&other.into()).unwrap_or_default();
        for other in records.iter().map(|id| &cluster.jobs[id]).filter(|job| job.phase == Phase::Pending) {
            let bears_the_name = (other.spec.uid, other.spec.name.as_str()) == (uid, name) && id < other.id;
            if bears_the_name && is_singleton(&other.dependency) {
                return true;
            }
            walk.goes_on(cluster, (other.spec.uid, &other.spec.name, other.id), &other.dependency);
        }
    }
    false
}

fn is_singleton(dependency: &Dependency) -> bool {
    dependency.terms.iter().any(|term| term.kind == Kind::Singleton)
}

/// From job to job along what they wait for, each once.
#[derive(Default)]
struct Walk<'c> {
    to_visit: Vec<JobId>,
    visited: BTreeSet<JobId>,
    /// Of each user's name: up to which job all were found already.
    names: BTreeMap<(u32, &'c str), JobId>,
}

impl<'c> Walk<'c> {
    fn goes_on(&mut self, cluster: &Cluster, (uid, name, id): (u32, &'c str, JobId), dependency: &Dependency) {
        self.to_visit.extend(dependency.terms.iter().filter_map(|term| term.job));
        if is_singleton(dependency) {
            let found = self.names.entry((uid, name)).or_insert(JobId(0));
            let new = earlier_of_the_name(cluster, (uid, name, id)).filter(|earlier| *earlier >= *found);
            self.to_visit.extend(new);
            *found = id.max(*found);
        }
    }
}

/// Jobs that singletons of this user and name wait for.
fn earlier_of_the_name<'c>(
    cluster: &'c Cluster,
    (uid, name, id): (u32, &str, JobId),
) -> impl Iterator<Item = JobId> + 'c {
    let key = |id| (uid, name.to_string(), id);
    cluster.live_names.range(key(JobId(0))..key(id)).map(|(.., earlier)| *earlier)
}

fn standing(cluster: &Cluster, job: &Job, term: &Term) -> Standing {
    if term.kind == Kind::Singleton {
        return singleton(cluster, job);
    }
    let other = term.job.expect("every other kind names a job");
    if term.kind == Kind::After {
        return after_start(cluster, term, &named(term, other));
    }
    match (term.task, cluster.arrays.get(&other)) {
        (None, Some(array)) if term.kind == Kind::AfterCorr => corresponding::standing(cluster, job, array),
        (None, Some(array)) => of_array(term.kind, array),
        _ => match cluster.named(&named(term, other)) {
            Some(jobs) => of_jobs(cluster, job, term.kind, &jobs),
            // Forgotten jobs ended long ago; nobody can tell how, so only `afterany` is met.
            None if matches!(term.kind, Kind::AfterAny | Kind::AfterBurstBuffer) => Standing::Met,
            None => Standing::Never,
        },
    }
}

fn named(term: &Term, job: JobId) -> JobRef {
    JobRef { job, tasks: term.task.map(|task| [task].into_iter().collect()), component: None }
}

fn singleton(cluster: &Cluster, job: &Job) -> Standing {
    let mut earlier = earlier_of_the_name(cluster, (job.spec.uid, &job.spec.name, job.id));
    if earlier.next().is_some() { Standing::Open } else { Standing::Met }
}

pub(super) fn of_array(kind: Kind, array: &model::Array) -> Standing {
    match kind {
        Kind::AfterOk if array.n_failed > 0 => Standing::Never,
        _ if !array.is_over() => Standing::Open,
        Kind::AfterNotOk if array.n_failed == 0 => Standing::Never,
        _ => Standing::Met,
    }
}

/// What `after` counts from: its start, or its end without one.
fn start_or_end(other: &Job) -> Option<Timestamp> {
    other.started.or_else(|| other.ended.filter(|_| other.is_over()))
}

/// `after`: the others have started (some minutes ago), or will not any more.
fn after_start(cluster: &Cluster, term: &Term, named: &JobRef) -> Standing {
    let delay = Span::from_secs(u64::from(term.delay_minutes) * 60);
    let started = |id: &JobId| start_or_end(&cluster.jobs[id]).is_some_and(|at| at + delay <= cluster.now);
    match cluster.named(named) {
        Some(jobs) if !jobs.iter().all(started) => Standing::Open,
        _ => Standing::Met,
    }
}

pub(super) fn of_jobs(cluster: &Cluster, job: &Job, kind: Kind, jobs: &[JobId]) -> Standing {
    let waits_for_data = kind == Kind::AfterBurstBuffer || job.spec.buffer.is_some();
    // A job that uses buffers itself waits until the other's data is staged out.
    let is_over = |id: &JobId| {
        let other = &cluster.jobs[id];
        other.phase == Phase::Done || (!waits_for_data && other.is_staging_out())
    };
    if !jobs.iter().all(is_over) {
        return Standing::Open;
    }
    let all_well = jobs.iter().all(|id| cluster.jobs[id].outcome == Some(Outcome::Completed));
    match kind {
        Kind::AfterOk | Kind::AfterCorr if !all_well => Standing::Never,
        Kind::AfterNotOk if all_well => Standing::Never,
        _ => Standing::Met,
    }
}

fn wakes(cluster: &Cluster, job: &Job, term: &Term) -> Vec<Wake> {
    let Some(other) = term.job else {
        return vec![Wake::NameFree { uid: job.spec.uid, name: job.spec.name.clone() }];
    };
    let mut wakes = vec![Wake::JobMoved(other)];
    if term.delay_minutes > 0 && term.kind == Kind::After {
        let delay = Span::from_secs(u64::from(term.delay_minutes) * 60);
        let others = cluster.named(&named(term, other)).unwrap_or_default();
        let last_start = others.iter().filter_map(|id| start_or_end(&cluster.jobs[id])).max();
        wakes.extend(last_start.map(|started| Wake::At(started + delay)));
    }
    wakes
}
