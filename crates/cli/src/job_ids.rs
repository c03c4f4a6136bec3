//! Job, task, component and step ids as users write them: `12`, `12_3`, `12_[1-3,7]`, `12+1`, `12.0`, `12_3.batch`.
use model::ranges::parse_array;
use model::{JobId, JobRef, StepId};

/// A job, some tasks of an array, or one step of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    pub job: JobRef,
    pub step: Option<StepId>,
}

/// Splits at commas that stand outside brackets.
pub fn split_list(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let outside = move |sign: char| {
        depth += i32::from(sign == '[') - i32::from(sign == ']');
        sign == ',' && depth <= 0
    };
    text.split(outside).map(str::trim).filter(|item| !item.is_empty()).collect()
}

/// A job, some tasks of an array, or a component of a heterogeneous job.
pub fn parse_job(text: &str) -> Option<JobRef> {
    if let Some((job, component)) = text.split_once('+') {
        let job = JobId(number(job).filter(|job| *job > 0)?);
        return Some(JobRef { job, component: Some(number(component)?), tasks: None });
    }
    let (job, tasks) = match text.split_once('_') {
        None => (text, None),
        Some((job, "*")) => (job, None),
        Some((job, tasks)) => (job, Some(tasks)),
    };
    let job = JobId(number(job).filter(|job| *job > 0)?);
    let tasks = match tasks {
        Some(tasks) if tasks.contains('%') => return None,
        Some(tasks) => Some(parse_array(tasks).ok()?.0),
        None => None,
    };
    Some(JobRef { job, tasks, component: None })
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
        check("12+1", "12+1");
        check("12+0.3", "12+0.3");
        check("12.0", "12.0");
        check("12_3.batch", "12_3.batch");
        for bad in ["", "x", "0", "12_", "12_x", "12.x", "-1", "12_[1-3%2]", "12+", "12+x", "+1", " 12"] {
            check(bad, "-");
        }
        assert_eq!(split_list("1,2_[3,4],,5 "), ["1", "2_[3,4]", "5"]);
    }
}
