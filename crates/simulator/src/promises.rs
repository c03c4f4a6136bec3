//! What clients were promised: a job that was acknowledged is there until it has ended, what was cancelled does not run again,
//! an outcome stands until somebody asks for another run, and every task of an array runs for itself.
use std::collections::{BTreeMap, BTreeSet};

use model::command::JobResult;
use model::{Command, Job, JobId, JobRef, Outcome, Phase, Reject, Reply, TaskSet};
use state::Cluster;

#[derive(Default)]
pub struct Promises {
    /// Acknowledged, and not seen to end yet.
    open: BTreeSet<JobId>,
    cancelled: BTreeSet<JobId>,
    /// Tasks of each array, and those that were seen to end.
    arrays: BTreeMap<JobId, (TaskSet, BTreeSet<u32>)>,
}

impl Promises {
    pub fn n_open(&self) -> usize {
        self.open.len()
    }

    pub fn observe(
        &mut self,
        before: &Cluster,
        after: &Cluster,
        command: &Command,
        reply: &Result<Reply, Reject>,
    ) -> Result<(), String> {
        self.note_reply(before, after, command, reply);
        self.check_kept(after)?;
        self.check_arrays(after)?;
        for job in after.jobs() {
            if let Some(was) = before.job(job.id) {
                check_change(before, was, job, command)?;
            }
        }
        check_limits(before, after)?;
        check_rooms(before, after)
    }

    fn note_reply(&mut self, before: &Cluster, after: &Cluster, command: &Command, reply: &Result<Reply, Reject>) {
        match (command, reply) {
            (Command::Submit { spec, .. }, Ok(Reply::Submitted(id))) => {
                match &spec.array {
                    Some(array) => {
                        self.arrays.insert(*id, (array.tasks.clone(), BTreeSet::new()));
                    }
                    None => {
                        self.open.insert(*id);
                    }
                };
            }
            (Command::SubmitTogether { .. }, Ok(Reply::Submitted(id))) => {
                self.open.extend(after.named(&(*id).into()).unwrap_or_default());
            }
            (Command::Cancel { .. }, Ok(Reply::Each(results))) => {
                // A component that was cancelled alone runs again when the whole does.
                let is_component =
                    |id: &JobId| after.job(*id).is_some_and(|job| job.het.as_ref().is_some_and(|het| !het.is_leader()));
                for job in addressed(after, results).into_iter().filter(|id| !is_component(id)) {
                    self.cancelled.insert(job);
                }
            }
            (Command::Requeue { .. }, Ok(Reply::Each(results))) => {
                for job in addressed(before, results).into_iter().chain(addressed(after, results)) {
                    self.cancelled.remove(&job);
                    self.open.insert(job);
                }
            }
            _ => (),
        }
    }

    fn check_kept(&mut self, after: &Cluster) -> Result<(), String> {
        let mut ended = Vec::new();
        for id in &self.open {
            match after.job(*id) {
                None => return Err(format!("job {id} was acknowledged and has vanished")),
                Some(job) if job.phase == Phase::Done => ended.push(*id),
                Some(_) => (),
            }
        }
        for id in ended {
            self.open.remove(&id);
        }
        let lives = |id: &&JobId| {
            after.job(**id).is_some_and(|job| {
                matches!(job.phase, Phase::Pending | Phase::Starting | Phase::Running | Phase::Suspended)
            })
        };
        match self.cancelled.iter().find(lives) {
            Some(id) => Err(format!("job {id} was cancelled and lives again")),
            None => Ok(()),
        }
    }

    /// Every task is in exactly one record until it has ended.
    fn check_arrays(&mut self, after: &Cluster) -> Result<(), String> {
        let mut present: BTreeMap<JobId, Vec<u32>> = BTreeMap::new();
        for job in after.jobs() {
            let Some(array) = job.array_id() else { continue };
            let tasks: Vec<u32> = match (&job.waiting_tasks, job.array_task()) {
                (Some(tasks), _) => tasks.iter().collect(),
                (None, Some(task)) => vec![task],
                (None, None) => return Err(format!("job {} is a part of array {array} without a task", job.id)),
            };
            if job.phase == Phase::Done {
                let (_, over) = self.arrays.get_mut(&array).ok_or(format!("nobody asked for array {array}"))?;
                over.extend(&tasks);
            }
            present.entry(array).or_default().extend(tasks);
        }
        for (array, (tasks, over)) in &self.arrays {
            let here = present.remove(array).unwrap_or_default();
            let distinct: BTreeSet<u32> = here.iter().copied().collect();
            if distinct.len() < here.len() {
                return Err(format!("array {array} has a task twice: {here:?}"));
            }
            if let Some(lost) = tasks.iter().find(|task| !distinct.contains(task) && !over.contains(task)) {
                return Err(format!("task {lost} of array {array} has vanished"));
            }
        }
        Ok(())
    }
}

fn addressed(cluster: &Cluster, results: &[JobResult]) -> Vec<JobId> {
    let done = results.iter().filter(|result| result.result.is_ok());
    let named = |result: &JobResult| -> Vec<JobId> {
        let JobRef { tasks, .. } = &result.job;
        let records = cluster.named(&result.job).unwrap_or_default();
        let is_meant = |id: &JobId| {
            let job = cluster.job(*id).expect("named jobs exist");
            job.waiting_tasks.as_ref().is_none_or(|waiting| tasks.as_ref() == Some(waiting))
        };
        records.into_iter().filter(is_meant).collect()
    };
    done.flat_map(named).collect()
}

fn check_change(before: &Cluster, was: &Job, job: &Job, command: &Command) -> Result<(), String> {
    let id = job.id;
    if job.attempt < was.attempt || job.restarts < was.restarts {
        return Err(format!("job {id} went back to an earlier run"));
    }
    let is_requeue = matches!(command, Command::Requeue { .. });
    if was.outcome == Some(Outcome::Completed) && job.outcome != was.outcome && !is_requeue {
        let is_allowed = was.requeue || matches!(command, Command::Cancel { .. });
        if !is_allowed {
            return Err(format!("job {id} was completed and is now {:?} {:?}", job.phase, job.outcome));
        }
    }
    let has_started = was.phase == Phase::Pending && job.holds_nodes();
    if has_started && !before.is_eligible(was) {
        return Err(format!("job {id} started though it was not eligible: {:?}", was.reason));
    }
    let too_early = |begin: model::Timestamp| job.started.is_some_and(|started| started < begin);
    if has_started && job.spec.begin.is_some_and(too_early) {
        return Err(format!("job {id} started before its time"));
    }
    // A component that ended alone comes back with its leader.
    let is_component = job.het.as_ref().is_some_and(|het| !het.is_leader());
    if was.phase == Phase::Done && job.phase != Phase::Done && !is_requeue && !is_component {
        return Err(format!("job {id} was over and is {:?} again", job.phase));
    }
    Ok(())
}

/// No more tasks of an array run than its limit says, unless they ran before it was lowered.
fn check_limits(before: &Cluster, after: &Cluster) -> Result<(), String> {
    for job in after.jobs().filter(|job| job.holds_nodes()) {
        let Some(array) = job.array_id().and_then(|array| after.array(array)) else { continue };
        let n_before = before.array(array.id).map_or(0, |array| array.n_live);
        if array.limit.is_some_and(|limit| array.n_live > limit) && array.n_live > n_before {
            return Err(format!("array {} runs {} tasks at once", array.id, array.n_live));
        }
    }
    Ok(())
}

/// Nothing is given out that is not there. A node may have been made smaller under its jobs.
fn check_rooms(before: &Cluster, after: &Cluster) -> Result<(), String> {
    for node in after.nodes() {
        let was = before.node(node.name.as_str());
        let (cpus, cpus_before) = (node.used.cpus.len(), was.map_or(0, |was| was.used.cpus.len()));
        // Whoever has lent CPUs of a node that has shrunk since takes back what it had.
        let lends = |cluster: &Cluster, job: &JobId| cluster.job(*job).is_some_and(|job| job.lends_cpus);
        let takes_back = node.jobs.iter().any(|job| lends(before, job) && !lends(after, job));
        if cpus > node.config.cpus && cpus > cpus_before && !takes_back {
            return Err(format!("{} gives out more CPUs than it has", node.name));
        }
        let (memory_mb, memory_before) = (node.used.memory_mb, was.map_or(0, |was| was.used.memory_mb));
        let tracked = after.config().scheduler.tracks_memory;
        if tracked && memory_mb > node.config.memory_mb && memory_mb > memory_before {
            return Err(format!("{} gives out more memory than it has", node.name));
        }
        // Those who are there since may hold parts of what goes whole by now.
        let is_new = |job: &&JobId| was.is_none_or(|was| !was.jobs.contains(job));
        for job in node.jobs.iter().filter(is_new).filter_map(|job| after.job(*job)) {
            let share = job.allocation.share(node.name.as_str());
            if share.is_some_and(|share| node.config.cpus_taken(&share.cpus) != share.cpus.len()) {
                return Err(format!("job {} has only a part of what {} hands out whole", job.id, node.name));
            }
        }
        let grew = was.is_none_or(|was| node.jobs.difference(&was.jobs).next().is_some());
        if grew && !node.jobs.is_empty() && !was.is_some_and(|was| was.is_usable()) {
            return Err(format!("{} took a job though it is not usable", node.name));
        }
    }
    Ok(())
}
