//! `aftercorr`: each task of an array waits for the task of the same number. A task that has none waits for the whole array.
use model::dependency::Kind;
use model::{Array, JobId, TaskSet};

use super::dependency::{Standing, of_array, of_jobs};
use super::*;
use crate::arrays;

/// How the tasks of a record stand, which is the same for all of them once they were set apart.
pub(super) fn standing(cluster: &Cluster, job: &Job, array: &Array) -> Standing {
    let Some(tasks) = tasks_of(job) else { return of_array(Kind::AfterOk, array) };
    let told = Told::of(cluster, job, &tasks, array);
    match (told.never.is_empty(), told.met.len() == tasks.len()) {
        (false, _) => Standing::Never,
        (true, true) => Standing::Met,
        (true, false) => Standing::Open,
    }
}

/// Gives tasks that go different ways records of their own.
pub(super) fn set_apart(cluster: &mut Cluster, id: JobId) {
    for term in cluster.jobs[&id].dependency.terms.clone() {
        let job = &cluster.jobs[&id];
        let Some(waiting) = job.waiting_tasks.as_ref().filter(|tasks| tasks.len() > 1) else { return };
        let Some(array) = term.job.and_then(|other| cluster.arrays.get(&other)) else { continue };
        if term.kind != Kind::AfterCorr || term.task.is_some() {
            continue;
        }
        let told = Told::of(cluster, job, waiting, array);
        let n_all = waiting.len();
        for part in [told.met, told.never] {
            if !part.is_empty() && part.len() < n_all {
                arrays::split(cluster, id, &part);
            }
        }
    }
}

fn tasks_of(job: &Job) -> Option<TaskSet> {
    let single = job.array_task().map(|task| [task].into_iter().collect());
    single.or_else(|| job.waiting_tasks.clone())
}

/// The tasks whose counterpart has ended, well or not.
struct Told {
    met: TaskSet,
    never: TaskSet,
}

impl Told {
    /// Looks at what has become of the other array, which is less than what still waits.
    fn of(cluster: &Cluster, job: &Job, tasks: &TaskSet, array: &Array) -> Told {
        let (mut met, mut never) = (Vec::new(), Vec::new());
        for (task, other) in array.tasks.iter().filter(|(task, _)| tasks.contains(**task)) {
            match of_jobs(cluster, job, Kind::AfterCorr, &[*other]) {
                Standing::Met => met.push(*task),
                Standing::Never => never.push(*task),
                Standing::Open => (),
            }
        }
        // These never began.
        let over = array.waiting.iter().map(|id| &cluster.jobs[id]).filter(|record| record.is_over());
        never.extend(over.filter_map(|record| record.waiting_tasks.as_ref()).flat_map(|gone| gone.iter()));
        let (met, never): (TaskSet, TaskSet) =
            (met.into_iter().collect(), never.into_iter().filter(|task| tasks.contains(*task)).collect());
        let mut told = Told { met, never };
        if array.is_over() {
            let mut without = tasks.clone();
            without.remove_all(&told.met);
            without.remove_all(&told.never);
            let all = if array.n_failed > 0 { &mut told.never } else { &mut told.met };
            *all = all.iter().chain(without.iter()).collect();
        }
        told
    }
}
