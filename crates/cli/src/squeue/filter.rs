//! Which jobs, and which rows each of them gives.
use std::collections::HashMap;

use model::config::Config;
use model::request::JobFilter;
use model::{Job, JobId, JobRef, Phase, Timestamp};

use crate::job_view::{JobView, Scene};

use super::options::{Options, States};

/// What to ask the controller for; the rest is sorted out here.
pub fn request(options: &Options) -> JobFilter {
    let with_finished = match &options.states {
        States::Live => false,
        States::All => true,
        States::Only(states) => states.iter().any(|state| state.is_finished()),
    };
    let jobs = match (&options.jobs, &options.steps) {
        (Some(jobs), _) => jobs.clone(),
        (None, Some(steps)) => steps.iter().map(|(job, _)| job.clone()).collect(),
        (None, None) => Vec::new(),
    };
    JobFilter {
        jobs,
        uids: options.uids.clone().unwrap_or_default(),
        with_finished,
        with_steps: options.shows_steps,
        only_steps: Vec::new(),
        room_for: None,
    }
}

/// The rows of the jobs that were asked for; tasks of an array that wait together are one.
pub fn rows<'a>(options: &Options, jobs: &'a [Job], scene: &'a Scene<'a>) -> Vec<JobView<'a>> {
    let mut rows = Vec::with_capacity(jobs.len());
    for job in jobs.iter().filter(|job| fits(options, job, scene.config, scene.clock.now())) {
        push_partitions(options, JobView::new(job, scene), &mut rows);
    }
    rows
}

/// In the order in which Slurm's controller has them, which decides where no key does: as they came, but that all tasks of an array
/// after its first, and what waits of it, came when the task before them left the others.
pub fn as_they_came(rows: &mut [JobView]) {
    let mut arrays: HashMap<JobId, Vec<JobId>> = HashMap::new();
    for job in rows.iter().map(|row| row.job) {
        if let Some(array) = job.array_id() {
            arrays.entry(array).or_default().push(job.id);
        }
    }
    let mut places = HashMap::new();
    for (array, mut ids) in arrays {
        // The last of them has the array's own id.
        ids.sort_by_key(|id| (*id == array, *id));
        ids.dedup();
        let before = std::iter::once((array, false)).chain(ids.iter().map(|id| (*id, true)));
        places.extend(ids.iter().copied().zip(before));
    }
    rows.sort_by_cached_key(|row| places.get(&row.job.id).copied().unwrap_or((row.job.id, false)));
}

/// Each task for itself where that was asked for.
pub fn one_by_one<'a>(options: &Options, rows: Vec<JobView<'a>>) -> Vec<JobView<'a>> {
    let is_whole = options.jobs.is_none() && !options.array;
    if is_whole { rows } else { rows.into_iter().flat_map(|row| tasks(options, row)).collect() }
}

pub fn fits(options: &Options, job: &Job, config: &Config, now: Timestamp) -> bool {
    let spec = &job.spec;
    let named = |list: &Option<Vec<String>>, name: &str| {
        list.as_ref().is_none_or(|list| list.iter().any(|one| one.eq_ignore_ascii_case(name)))
    };
    let in_reservation = |name: &String| spec.reservations.contains(name) || job.reservation == *name;
    let has_license = |names: &Vec<String>| spec.licenses.list.iter().any(|one| names.contains(&one.name));
    options.licenses.as_ref().is_none_or(has_license)
        && options.reservation.as_ref().is_none_or(in_reservation)
        && options.jobs.as_ref().is_none_or(|refs| refs.iter().any(|one| is_meant(one, job)))
        && options.uids.as_ref().is_none_or(|uids| uids.contains(&spec.uid))
        && options.excluded_uid.is_none_or(|uid| uid != spec.uid)
        && fits_state(&options.states, job)
        && fits_time_run(options, job, now)
        && (!options.start || job.phase == Phase::Pending)
        && fits_partition(options, job, config)
        && named(&options.names, &spec.name)
        && named(&options.accounts, &spec.account)
        && named(&options.qos, &spec.qos)
        && options.nodes.as_ref().is_none_or(|nodes| {
            job.phase != Phase::Pending
                && job.allocation.names().any(|name| nodes.iter().any(|one| one == name.as_str()))
        })
}

fn fits_time_run(options: &Options, job: &Job, now: Timestamp) -> bool {
    if options.ran_over.is_none() && options.ran_under.is_none() {
        return true;
    }
    let ran = job.run_time(now);
    let runs = job.holds_nodes() && job.started.is_some();
    runs && options.ran_over.is_none_or(|span| ran > span) && options.ran_under.is_none_or(|span| ran < span)
}

fn fits_state(states: &States, job: &Job) -> bool {
    match states {
        States::Live => !job.state().is_finished(),
        States::All => true,
        States::Only(states) => states.contains(&job.state()) || states.contains(&job.base_state()),
    }
}

fn fits_partition(options: &Options, job: &Job, config: &Config) -> bool {
    let own = || job.spec.partitions.iter().map(String::as_str).chain([job.partition.as_str()]);
    match &options.partitions {
        Some(wanted) => own().any(|name| wanted.iter().any(|one| one == name)),
        None if options.all => true,
        None => !config.partition(&job.partition).is_some_and(|partition| partition.is_hidden),
    }
}

/// An id names a job, one task by its own id, or all tasks of an array.
pub fn is_meant(wanted: &JobRef, job: &Job) -> bool {
    if let Some(het) = &job.het {
        let is_component = wanted.component.is_none_or(|component| component == het.offset);
        return wanted.tasks.is_none() && (job.id == wanted.job || het.leader == wanted.job) && is_component;
    }
    let is_array = job.array_id() == Some(wanted.job);
    match &wanted.tasks {
        None => job.id == wanted.job || is_array,
        Some(tasks) => {
            is_array
                && match job.array_task() {
                    Some(task) => tasks.contains(task),
                    None => job
                        .waiting_tasks
                        .as_ref()
                        .is_some_and(|waiting| tasks.iter().any(|task| waiting.contains(task))),
                }
        }
    }
}

fn tasks<'a>(options: &Options, view: JobView<'a>) -> Vec<JobView<'a>> {
    let Some(waiting) = &view.job.waiting_tasks else { return vec![view] };
    let single = |task| JobView { task: Some(task), ..view };
    if options.array {
        return waiting.iter().map(single).collect();
    }
    // Tasks that were asked for one by one are shown one by one.
    let asked = options.jobs.iter().flatten().filter(|one| is_meant(one, view.job));
    let (whole, parts): (Vec<&JobRef>, Vec<&JobRef>) = asked.partition(|one| one.tasks.is_none());
    if parts.is_empty() || !whole.is_empty() {
        return vec![view];
    }
    let is_asked = |task: &u32| parts.iter().any(|one| one.tasks.as_ref().is_some_and(|tasks| tasks.contains(*task)));
    waiting.iter().filter(is_asked).map(single).collect()
}

fn push_partitions<'a>(options: &Options, view: JobView<'a>, rows: &mut Vec<JobView<'a>>) {
    let partitions = &view.job.spec.partitions;
    if options.per_partition && view.job.phase == Phase::Pending && partitions.len() > 1 {
        rows.extend(partitions.iter().map(|name| JobView { partition: Some(name), ..view }));
    } else if options.per_partition {
        rows.push(JobView { partition: Some(&view.job.partition), ..view });
    } else {
        rows.push(view);
    }
}
