//! Whether a run is one that was asked for: the exact rules, the same for every database.
use model::history::{HistoryQuery, JobChoice, JobRecord};
use model::job_state::JobState;
use model::spec::TimeLimit;
use model::{Timestamp, hostlist};

pub fn fits(query: &HistoryQuery, job: &JobRecord, now: Timestamp) -> bool {
    let one_of = |list: &[String], value: &str| list.is_empty() || list.iter().any(|one| one == value);
    let within = |range: Option<(u32, u32)>, value: u32| range.is_none_or(|(min, max)| (min..=max).contains(&value));
    (query.jobs.is_empty() || query.jobs.iter().any(|choice| is_meant(query, choice, job)))
        && (query.uids.is_empty() || query.uids.contains(&job.uid))
        && (query.gids.is_empty() || query.gids.contains(&job.gid))
        && one_of(&query.accounts, &job.account)
        && (query.partitions.is_empty() || job.partition.split(',').any(|name| one_of(&query.partitions, name)))
        && one_of(&query.qos, &job.qos)
        && one_of(&query.wckeys, &job.wckey)
        && one_of(&query.names, &job.name)
        && one_of(&query.reasons, &job.reason)
        && within(query.n_nodes, job.held.n_nodes)
        && within(query.n_cpus, job.held.n_cpus)
        && query.time_limit.is_none_or(|range| has_limit(range, job))
        && query.constraints.iter().all(|wanted| has_constraint(job, wanted))
        && query.was_backfilled.is_none_or(|wanted| job.was_backfilled == wanted)
        && fits_time(query, job, now)
        && (query.nodes.is_empty() || ran_on(job, query))
}

fn has_limit((min, max): (u64, u64), job: &JobRecord) -> bool {
    match job.time_limit {
        Some(TimeLimit::Secs(secs)) => (min..=max).contains(&secs.div_ceil(60)),
        Some(TimeLimit::Unlimited) | None => false,
    }
}

fn has_constraint(job: &JobRecord, wanted: &str) -> bool {
    job.constraints.split(|sign: char| !(sign.is_alphanumeric() || "_-.".contains(sign))).any(|one| one == wanted)
}

fn ran_on(job: &JobRecord, query: &HistoryQuery) -> bool {
    let Ok(names) = hostlist::expand(&job.nodes) else { return false };
    names.iter().any(|name| query.nodes.iter().any(|wanted| wanted.as_str() == name))
}

/// A number names a job, all tasks of an array, or all parts of a heterogeneous job.
fn is_meant(query: &HistoryQuery, choice: &JobChoice, job: &JobRecord) -> bool {
    if let Some(tasks) = &choice.tasks {
        return job.array == Some(choice.job)
            && match (job.task, &job.waiting) {
                (Some(task), _) => tasks.contains(task),
                (None, Some(waiting)) => tasks.iter().any(|task| waiting.contains(task)),
                (None, None) => false,
            };
    }
    if let Some(offset) = choice.het_offset {
        return job.het_job == Some(choice.job) && job.het_offset == offset;
    }
    let is_its_leader = job.het_job == Some(choice.job);
    match query.whole_het_job {
        Some(false) => job.job == choice.job || job.array == Some(choice.job),
        // The database was asked for all parts of the heterogeneous jobs that are named.
        Some(true) => job.job == choice.job || job.array == Some(choice.job) || job.het_job.is_some(),
        None => job.job == choice.job || job.array == Some(choice.job) || is_its_leader,
    }
}

/// Without states: a job that was eligible before the end of the time looked at and had not ended before its beginning;
/// one that is named need only have been submitted by then.
/// With states: a job that was in one of them during that time; an end counts at its moment.
fn fits_time(query: &HistoryQuery, job: &JobRecord, now: Timestamp) -> bool {
    let after = query.after.map_or(0, Timestamp::secs);
    let before = query.before.unwrap_or(now).secs();
    let secs = |moment: Option<Timestamp>| moment.map(Timestamp::secs);
    let (eligible, started, ended) = (secs(job.eligible), secs(job.started), secs(job.ended));
    let has_not_ended_by = |moment: u64| ended.is_none_or(|ended| ended >= moment);
    if query.states.is_empty() {
        let was_there = match query.jobs.is_empty() {
            true => eligible.is_some_and(|eligible| eligible <= before),
            false => job.submitted.secs() <= before,
        };
        return was_there && has_not_ended_by(after);
    }
    query.states.iter().filter_map(|word| word.parse::<JobState>().ok()).any(|state| match state {
        JobState::Pending => {
            eligible.is_some_and(|eligible| eligible <= before)
                && started.or(ended).is_none_or(|started| started >= after)
        }
        JobState::Running => started.is_some_and(|started| started <= before) && has_not_ended_by(after),
        JobState::Suspended => {
            let is_now = job.state == state.name() && started.is_some_and(|started| started <= before);
            is_now || job.pauses.iter().any(|pause| pause.from.secs() <= before && pause.until.secs() >= after)
        }
        other => job.state == other.name() && ended.is_some_and(|ended| (after..=before).contains(&ended)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{JobId, NodeName};

    const NOW: Timestamp = Timestamp(1_000_000_000);

    fn at(secs: u64) -> Option<Timestamp> {
        Some(Timestamp::from_secs(secs))
    }

    fn ran(start: u64, end: Option<u64>, state: &str) -> JobRecord {
        JobRecord {
            job: JobId(7),
            state: state.into(),
            eligible: at(start - 10),
            started: at(start),
            ended: end.map(Timestamp::from_secs),
            nodes: "n[1-3]".into(),
            constraints: "big&fast".into(),
            ..Default::default()
        }
    }

    fn window(after: u64, before: u64, states: &[&str]) -> HistoryQuery {
        let states = states.iter().map(|state| state.to_string()).collect();
        HistoryQuery { after: at(after), before: at(before), states, ..Default::default() }
    }

    #[test]
    fn a_state_is_asked_for_during_a_time() {
        let done = ran(100, Some(200), "COMPLETED");
        let check = |after, before, states: &[&str], expected: bool| {
            assert_eq!(fits(&window(after, before, states), &done, NOW), expected, "{after}-{before} {states:?}");
        };
        check(150, 160, &[], true);
        check(201, 300, &[], false);
        check(0, 89, &[], false);
        check(150, 160, &["RUNNING"], true);
        check(150, 160, &["COMPLETED"], false);
        check(150, 200, &["CD"], true);
        check(0, 95, &["PENDING"], true);
        check(150, 160, &["PENDING"], false);
        check(0, 999, &["FAILED"], false);
    }

    #[test]
    fn a_job_was_suspended_when_it_stood_still() {
        let pause = model::job::Pause { from: Timestamp::from_secs(120), until: Timestamp::from_secs(130) };
        let job = JobRecord { pauses: vec![pause], ..ran(100, Some(200), "COMPLETED") };
        assert!(fits(&window(0, 125, &["S"]), &job, NOW));
        assert!(fits(&window(125, 300, &["S"]), &job, NOW));
        assert!(!fits(&window(131, 300, &["S"]), &job, NOW));
    }

    #[test]
    fn a_job_that_is_not_eligible_is_shown_by_name_only() {
        let held = JobRecord { job: JobId(3), state: "PENDING".into(), ..Default::default() };
        assert!(!fits(&HistoryQuery::default(), &held, NOW));
        let jobs = vec![JobChoice { job: JobId(3), ..Default::default() }];
        assert!(fits(&HistoryQuery { jobs: jobs.clone(), ..Default::default() }, &held, NOW));
        assert!(!fits(
            &HistoryQuery { jobs: jobs.clone(), states: vec!["PD".into()], ..Default::default() },
            &held,
            NOW
        ));
        // It became eligible later than the time looked at.
        let waited = JobRecord { submitted: Timestamp::from_secs(10), eligible: at(50), ..held };
        assert!(!fits(&window(5, 20, &[]), &waited, NOW));
        assert!(fits(&HistoryQuery { jobs: jobs.clone(), ..window(5, 20, &[]) }, &waited, NOW));
        assert!(!fits(&HistoryQuery { jobs, ..window(5, 9, &[]) }, &waited, NOW));
    }

    #[test]
    fn nodes_and_constraints_are_looked_for_one_by_one() {
        let job = ran(100, None, "RUNNING");
        let on = |name: &str| HistoryQuery { nodes: vec![NodeName::from(name)], ..Default::default() };
        assert!(fits(&on("n2"), &job, NOW));
        assert!(!fits(&on("n4"), &job, NOW));
        let with = |names: &[&str]| HistoryQuery {
            constraints: names.iter().map(|name| name.to_string()).collect(),
            ..Default::default()
        };
        assert!(fits(&with(&["fast", "big"]), &job, NOW));
        assert!(!fits(&with(&["fast", "bi"]), &job, NOW));
    }
}
