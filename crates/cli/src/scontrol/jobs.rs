//! Commands about jobs: hold, release, requeue, suspend … and how their answers are told.
use model::command::JobResult;
use model::request::JobFilter;
use model::update::JobChanges;
use model::{Command, JobRef, Reject};
use wire::{CallError, Controller};

use crate::job_ids;
use crate::trouble;

/// What is to be done with jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Hold,
    UserHold,
    Release,
    Requeue,
    RequeueHold,
    Suspend,
    Resume,
    Top,
    Update,
}

impl Verb {
    pub fn command(self, job: JobRef) -> Option<Command> {
        let jobs = vec![job];
        match self {
            Verb::Hold => Some(Command::Hold { jobs, by_user: false }),
            Verb::UserHold => Some(Command::Hold { jobs, by_user: true }),
            Verb::Release => Some(Command::Release { jobs }),
            Verb::Requeue => Some(Command::Requeue { jobs, hold: false }),
            Verb::RequeueHold => Some(Command::Requeue { jobs, hold: true }),
            Verb::Suspend => Some(Command::Suspend { jobs }),
            Verb::Resume => Some(Command::Resume { jobs }),
            Verb::Top => {
                let [job] = <[JobRef; 1]>::try_from(jobs).expect("one job was given");
                let changes = JobChanges { comes_first: Some(true), ..JobChanges::default() };
                Some(Command::UpdateJob { job, changes: Box::new(changes) })
            }
            Verb::Update => None,
        }
    }

    /// Slurm words the same refusals differently for different commands.
    fn wording(self, reject: &Reject) -> String {
        let holds = matches!(self, Verb::Hold | Verb::UserHold | Verb::Release | Verb::Update);
        match reject {
            Reject::AlreadyOver if self == Verb::Top => Reject::JobNotPending.to_string(),
            Reject::AlreadyOver if holds => "Job has already finished".into(),
            Reject::NotPermitted if holds && self != Verb::Release => "Invalid user id".into(),
            _ => reject.to_string(),
        }
    }

    /// `name=` names jobs only for some.
    fn takes_names(self) -> bool {
        self.echoes()
    }

    /// A second line that Slurm adds for these.
    fn echoes(self) -> bool {
        matches!(self, Verb::Hold | Verb::UserHold | Verb::Release)
    }
}

/// The most jobs that one pair of brackets may name.
const MOST_IN_BRACKETS: u32 = 10_000;

/// The items of all arguments: ids, each perhaps behind `jobid=`, or several in brackets (`[100-105]`).
pub fn items(arguments: &[String]) -> Vec<String> {
    let mut items = Vec::new();
    for argument in arguments {
        let ids = match argument.split_once('=') {
            Some((key, ids)) if key.eq_ignore_ascii_case("jobid") || key.eq_ignore_ascii_case("job") => ids,
            _ => argument.as_str(),
        };
        if is_name(ids) {
            items.push(ids.to_string());
        } else {
            items.extend(job_ids::split_list(ids).into_iter().flat_map(out_of_brackets));
        }
    }
    items
}

fn out_of_brackets(item: &str) -> Vec<String> {
    let inside = item.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let ids = inside.and_then(|inside| model::ranges::parse_array(inside).ok()).map(|(ids, _)| ids);
    match ids.filter(|ids| ids.len() <= MOST_IN_BRACKETS) {
        Some(ids) => ids.iter().map(|id| id.to_string()).collect(),
        None => vec![item.to_string()],
    }
}

fn is_name(item: &str) -> bool {
    item.split_once('=').is_some_and(|(key, _)| key.eq_ignore_ascii_case("name") || key.eq_ignore_ascii_case("jobname"))
}

/// Does it for one item; the lines for stderr, none when all went well.
pub async fn act(controller: &mut Controller, verb: Verb, item: &str) -> Result<Vec<String>, CallError> {
    if is_name(item) && verb.takes_names() {
        return act_by_name(controller, verb, item.split_once('=').map_or("", |(_, name)| name)).await;
    }
    let Some(command) = job_ids::parse_job(item).and_then(|job| verb.command(job)) else {
        return Ok(refused(verb, item, &Reject::NoSuchJob));
    };
    match controller.command_each(command).await {
        Ok(results) => Ok(tell(verb, item, &results)),
        Err(CallError::Refused(reject)) => Ok(refused(verb, item, &reject)),
        Err(other) => Err(other),
    }
}

/// What `requeue` and `requeuehold` are told besides jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Tasks of an array that have ended stay as they are.
    pub only_incomplete: bool,
    /// Its end is said to have been a special one (`State=SpecialExit`).
    pub is_special: bool,
}

/// As `act`, in a manner of its own.
pub async fn requeue(
    controller: &mut Controller,
    verb: Verb,
    item: &str,
    manner: Manner,
) -> Result<Vec<String>, CallError> {
    let Some(named) = job_ids::parse_job(item) else { return Ok(refused(verb, item, &Reject::NoSuchJob)) };
    let mut targets = vec![item.to_string()];
    if manner.only_incomplete {
        let filter = JobFilter { jobs: vec![named], ..JobFilter::default() };
        let page = controller.all_jobs(&filter).await?;
        let runs = page.jobs.iter().filter(|job| !job.is_over() && job.phase != model::Phase::Pending);
        // One of the tasks has the number of the whole array.
        let named = |job: &model::Job| match (job.array_id(), job.array_task()) {
            (Some(array), Some(task)) => format!("{array}_{task}"),
            _ => job.id.to_string(),
        };
        targets = runs.map(named).collect();
    }
    let mut lines = Vec::new();
    for target in targets {
        lines.extend(act(controller, verb, &target).await?);
        if let (true, true, Some(job)) = (manner.is_special, lines.is_empty(), job_ids::parse_job(&target)) {
            let changes = JobChanges { special_exit: Some(true), ..JobChanges::default() };
            let results = controller.command_each(Command::UpdateJob { job, changes: Box::new(changes) }).await?;
            lines.extend(tell(verb, &target, &results));
        }
    }
    Ok(lines)
}

/// A job that requeues itself is ended together with this command, which must still tell it that all went well: programs
/// that save themselves before their time is up wait for that word.
pub fn outlive_own_job() {
    if std::env::var_os("SLURM_JOB_ID").is_some() {
        // SAFETY: plain call on valid values.
        unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
    }
}

/// All jobs of that name that have not ended; none at all is no failure.
async fn act_by_name(controller: &mut Controller, verb: Verb, name: &str) -> Result<Vec<String>, CallError> {
    let page = controller.all_jobs(&JobFilter::default()).await?;
    let mut lines = Vec::new();
    for job in page.jobs.iter().filter(|job| job.spec.name == name && !job.is_over()) {
        let item = job.array_id().unwrap_or(job.id).to_string();
        let Some(command) = verb.command(job.id.into()) else { continue };
        match controller.command_each(command).await {
            Ok(results) => lines.extend(tell(verb, &item, &results)),
            Err(CallError::Refused(reject)) => lines.extend(refused(verb, &item, &reject)),
            Err(other) => return Err(other),
        }
    }
    Ok(lines)
}

pub fn refused(verb: Verb, item: &str, reject: &Reject) -> Vec<String> {
    let message = verb.wording(reject);
    // Tasks are answered for by their numbers.
    if item.contains('_') && *reject == Reject::NoSuchJob && verb != Verb::Suspend && verb != Verb::Resume {
        return vec![format!("{item}: {message}")];
    }
    let mut lines = vec![format!("{message} for job {item}")];
    if verb.echoes() {
        lines.push(format!("slurm_suspend error: {message}"));
    }
    lines
}

/// One job: its message. Several: every group of results, those that went well too, if any did not.
pub fn tell(verb: Verb, item: &str, results: &[JobResult]) -> Vec<String> {
    if results.iter().all(|one| one.result.is_ok()) {
        return Vec::new();
    }
    if let [JobResult { job, result: Err(reject) }] = results
        && job.tasks.is_none()
    {
        return refused(verb, item, reject);
    }
    // A hold of an array is about its waiting tasks; that others run already is no failure of it.
    let matters = |one: &&JobResult| !verb.echoes() || one.result != Err(Reject::JobNotPending);
    let results: Vec<&JobResult> = results.iter().filter(matters).collect();
    if results.iter().all(|one| one.result.is_ok()) {
        return Vec::new();
    }
    let mut results = grouped(&results);
    results.sort_by_key(|one| one.job.tasks.as_ref().and_then(|tasks| tasks.first()));
    let line = |one: &JobResult| match &one.result {
        Ok(()) => format!("{}: No error", one.job),
        Err(reject) => format!("{}: {}", one.job, verb.wording(reject)),
    };
    results.iter().map(line).collect()
}

/// Tasks of one array with the same result are told together.
fn grouped(results: &[&JobResult]) -> Vec<JobResult> {
    let mut groups: Vec<JobResult> = Vec::new();
    for one in results {
        let same = |group: &&mut JobResult| group.job.job == one.job.job && group.result == one.result;
        match (groups.iter_mut().find(same).and_then(|group| group.job.tasks.as_mut()), &one.job.tasks) {
            (Some(tasks), Some(more)) => more.iter().for_each(|task| {
                tasks.insert(task);
            }),
            _ => groups.push((*one).clone()),
        }
    }
    groups
}

/// The lines for a call that gave no answer.
pub fn unanswered(item: &str, error: &CallError) -> Vec<String> {
    vec![format!("{} for job {item}", trouble::text(error))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(job: &str, result: Result<(), Reject>) -> JobResult {
        JobResult { job: job_ids::parse_job(job).expect("an id"), result }
    }

    #[test]
    fn answers_are_told_as_slurm_tells_them() {
        assert!(tell(Verb::Hold, "5", &[result("5", Ok(()))]).is_empty());
        assert_eq!(
            tell(Verb::Hold, "5", &[result("5", Err(Reject::AlreadyOver))]),
            ["Job has already finished for job 5", "slurm_suspend error: Job has already finished"]
        );
        assert_eq!(
            tell(Verb::Suspend, "5", &[result("5", Err(Reject::AlreadyOver))]),
            ["Job/step already completing or completed for job 5"]
        );
        assert_eq!(
            tell(Verb::Suspend, "43", &[result("43_[1-16]", Ok(())), result("43_[17-20]", Err(Reject::JobPending))]),
            ["43_1-16: No error", "43_17-20: Job is pending execution"]
        );
        let started = result("43_[1-16]", Err(Reject::JobNotPending));
        assert!(tell(Verb::Hold, "43", &[result("43_[17-20]", Ok(())), started]).is_empty());
        assert_eq!(refused(Verb::Hold, "9_99", &Reject::NoSuchJob), ["9_99: Invalid job id specified"]);
        assert_eq!(refused(Verb::Requeue, "x", &Reject::NoSuchJob), ["Invalid job id specified for job x"]);
    }

    #[test]
    fn items_come_from_all_arguments() {
        let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
        assert_eq!(items(&words("1,2 jobid=3,4_[1,2] name=a,b")), ["1", "2", "3", "4_[1,2]", "name=a,b"]);
        assert_eq!(items(&words("[100-102,7],3 [x]")), ["7", "100", "101", "102", "3", "[x]"]);
    }
}
