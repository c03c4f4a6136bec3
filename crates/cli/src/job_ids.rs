//! Reads what users name: `12`, `12_3`, `12_[1-3,7]`, `12.0`, `12_3.batch`.
use model::ranges::parse_array;
use model::{JobId, JobRef, StepId};

/// A job, tasks of an array, or one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    pub job: JobRef,
    pub step: Option<StepId>,
}

pub fn parse(text: &str) -> Option<Target> {
    let (job, step) = match text.split_once('.') {
        None => (text, None),
        Some((job, "batch")) => (job, Some(StepId::Batch)),
        Some((job, step)) => (job, Some(StepId::Number(number(step)?))),
    };
    Some(Target { job: parse_job(job)?, step })
}

/// A job or array tasks, without a step.
pub fn parse_job(text: &str) -> Option<JobRef> {
    let (job, tasks) = match text.split_once('_') {
        None => (text, None),
        Some((job, "*")) => (job, None),
        Some((job, tasks)) => match parse_array(tasks).ok()? {
            (tasks, None) => (job, Some(tasks)),
            (_, Some(_)) => return None,
        },
    };
    let job = number(job).filter(|number| *number > 0)?;
    Some(JobRef { job: JobId(job), tasks })
}

fn number(text: &str) -> Option<u32> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_tasks_and_steps_are_told_apart() {
        let shown = |text: &str| {
            let target = parse(text)?;
            let step = target.step.map_or(String::new(), |step| format!(" step {step}"));
            let tasks = target.job.tasks.map_or(String::new(), |tasks| format!(" tasks {tasks}"));
            Some(format!("{}{tasks}{step}", target.job.job))
        };
        let check = |text: &str, expected: Option<&str>| assert_eq!(shown(text).as_deref(), expected, "{text}");
        check("12", Some("12"));
        check("12_3", Some("12 tasks 3"));
        check("12_[1-3,7]", Some("12 tasks 1-3,7"));
        check("12_*", Some("12"));
        check("12.0", Some("12 step 0"));
        check("12_3.batch", Some("12 tasks 3 step batch"));
        for bad in ["", "x", "1x", "0", "-1", "12_", "12_[1", "12.x", "12_1%2", "12+1", "99999999999"] {
            check(bad, None);
        }
    }
}
