<<<<<<< HEAD
//! Job, task and step ids as users write them: `12`, `12_3`, `12_[1-3,7]`, `12.0`, `12_3.batch`.
use model::ranges::parse_array;
use model::{JobId, JobRef, StepId};

/// A job, some tasks of an array, or one step of it.
=======
//! Reads what users name: `12`, `12_3`, `12_[1-3,7]`, `12.0`, `12_3.batch`.
use model::ranges::parse_array;
use model::{JobId, JobRef, StepId};

/// A job, tasks of an array, or one step.
>>>>>>> submit
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    pub job: JobRef,
    pub step: Option<StepId>,
}

<<<<<<< HEAD
/// Splits at commas that stand outside brackets.
pub fn split_list(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let outside = move |sign: char| {
        depth += i32::from(sign == '[') - i32::from(sign == ']');
        sign == ',' && depth <= 0
    };
    text.split(outside).map(str::trim).filter(|item| !item.is_empty()).collect()
}

/// A job or some tasks of an array.
=======
pub fn parse(text: &str) -> Option<Target> {
    let (job, step) = match text.split_once('.') {
        None => (text, None),
        Some((job, "batch")) => (job, Some(StepId::Batch)),
        Some((job, step)) => (job, Some(StepId::Number(number(step)?))),
    };
    Some(Target { job: parse_job(job)?, step })
}

/// A job or array tasks, without a step.
>>>>>>> submit
pub fn parse_job(text: &str) -> Option<JobRef> {
    let (job, tasks) = match text.split_once('_') {
        None => (text, None),
        Some((job, "*")) => (job, None),
<<<<<<< HEAD
        Some((job, tasks)) => (job, Some(tasks)),
    };
    let job = JobId(number(job).filter(|job| *job > 0)?);
    let tasks = match tasks {
        Some(tasks) if tasks.contains('%') => return None,
        Some(tasks) => Some(parse_array(tasks).ok()?.0),
        None => None,
    };
    Some(JobRef { job, tasks })
}

/// As `parse_job`, with an optional step after a dot.
pub fn parse(text: &str) -> Option<Target> {
    let Some((job, step)) = text.split_once('.') else {
        return Some(Target { job: parse_job(text)?, step: None });
    };
    let step = match step {
        "batch" => StepId::Batch,
        step => StepId::Number(number(step)?),
    };
    Some(Target { job: parse_job(job)?, step: Some(step) })
}

fn number(digits: &str) -> Option<u32> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
=======
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
>>>>>>> submit
}

#[cfg(test)]
mod tests {
    use super::*;

<<<<<<< HEAD
    fn check(text: &str, expected: &str) {
        let shown = match parse(text) {
            Some(Target { job, step: None }) => job.to_string(),
            Some(Target { job, step: Some(step) }) => format!("{job}.{step}"),
            None => "-".into(),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn ids_are_read_in_every_form() {
        check("12", "12");
        check("0012", "12");
        check("12_3", "12_3");
        check("12_[1-3,7]", "12_1-3,7");
        check("12_1-3", "12_1-3");
        check("12_*", "12");
        check("12.0", "12.0");
        check("12_3.batch", "12_3.batch");
        for bad in ["", "x", "0", "12_", "12_x", "12.x", "-1", "12_[1-3%2]", "12+1", " 12"] {
            check(bad, "-");
        }
        assert_eq!(split_list("1,2_[3,4],,5 "), ["1", "2_[3,4]", "5"]);
=======
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
>>>>>>> submit
    }
}
