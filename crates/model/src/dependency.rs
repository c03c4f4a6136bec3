//! What a job waits for: `afterok:12:13_4,singleton` (all of them) or `afterok:12?afterany:13` (any of them).
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::JobId;

/// A job waits for at most so many: each end has all of them looked at.
pub const TERMS_MOST: usize = 10_000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dependency {
    pub terms: Vec<Term>,
    /// One met term is enough; otherwise all must be met.
    pub any_is_enough: bool,
}

impl Dependency {
    /// Every term but a singleton names a job. The parser makes no others; a hostile sender may.
    pub fn is_well_formed(&self) -> bool {
        self.terms.iter().all(|term| term.job.is_some() != (term.kind == Kind::Singleton))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Term {
    pub kind: Kind,
    /// None for `singleton`.
    pub job: Option<JobId>,
    pub task: Option<u32>,
    /// `after:12+5`: this many minutes after the start.
    pub delay_minutes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    After,
    AfterAny,
    AfterOk,
    AfterNotOk,
    AfterCorr,
    AfterBurstBuffer,
    Singleton,
}

const KINDS: &[(Kind, &str)] = &[
    (Kind::After, "after"),
    (Kind::AfterAny, "afterany"),
    (Kind::AfterOk, "afterok"),
    (Kind::AfterNotOk, "afternotok"),
    (Kind::AfterCorr, "aftercorr"),
    (Kind::AfterBurstBuffer, "afterburstbuffer"),
    (Kind::Singleton, "singleton"),
];

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let (_, word) = KINDS.iter().find(|(kind, _)| kind == self).expect("every kind has its word");
        out.write_str(word)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}", self.kind)?;
        if let Some(job) = self.job {
            write!(out, ":{job}")?;
        }
        if let Some(task) = self.task {
            write!(out, "_{task}")?;
        }
        if self.delay_minutes > 0 {
            write!(out, "+{}", self.delay_minutes)?;
        }
        Ok(())
    }
}

/// One malformed dependency; shown to the user as Slurm shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DependencyError;

/// Reads `--dependency`. A bare job number means `afterany`.
pub fn parse(text: &str) -> Result<Dependency, DependencyError> {
    let any_is_enough = text.contains('?');
    let parts = split_outside_brackets(text);
    let n_questions = text.matches('?').count();
    if any_is_enough && parts.len() != n_questions + 1 {
        return Err(DependencyError);
    }
    let mut terms = Vec::new();
    for part in parts {
        parse_part(part, &mut terms)?;
        if terms.len() > TERMS_MOST {
            return Err(DependencyError);
        }
    }
    Ok(Dependency { terms, any_is_enough })
}

fn parse_part(part: &str, terms: &mut Vec<Term>) -> Result<(), DependencyError> {
    let (word, jobs) = part.split_once(':').unwrap_or((part, ""));
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        for job in part.split(':').take(TERMS_MOST + 1) {
            parse_jobs(Kind::AfterAny, job, terms)?;
            if terms.len() > TERMS_MOST {
                return Err(DependencyError);
            }
        }
        return Ok(());
    }
    let (kind, _) = KINDS.iter().find(|(_, known)| known.eq_ignore_ascii_case(word)).ok_or(DependencyError)?;
    match (kind, jobs) {
        (Kind::Singleton, "") => terms.push(Term { kind: *kind, job: None, task: None, delay_minutes: 0 }),
        (Kind::Singleton, _) | (_, "") => return Err(DependencyError),
        _ => {
            for job in jobs.split(':').take(TERMS_MOST + 1) {
                parse_jobs(*kind, job, terms)?;
                if terms.len() > TERMS_MOST {
                    return Err(DependencyError);
                }
            }
        }
    }
    Ok(())
}

/// At commas and question marks, but `9_[1,3]` is one piece.
fn split_outside_brackets(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut is_inside) = (0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '[' => is_inside = true,
            ']' => is_inside = false,
            ',' | '?' if !is_inside => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// `9_[1-3]` is a term for each task.
fn parse_jobs(kind: Kind, text: &str, terms: &mut Vec<Term>) -> Result<(), DependencyError> {
    let Some((job, list)) = text.strip_suffix(']').and_then(|text| text.split_once("_[")) else {
        terms.push(parse_job(kind, text)?);
        return Ok(());
    };
    let (tasks, limit) = crate::ranges::parse_array(list).map_err(|_| DependencyError)?;
    if limit.is_some() || tasks.len() > TASKS_MAX {
        return Err(DependencyError);
    }
    for task in tasks.iter() {
        terms.push(parse_job(kind, &format!("{job}_{task}"))?);
    }
    Ok(())
}

/// More tasks than this are better waited for as a whole.
const TASKS_MAX: u32 = 10_000;

fn parse_job(kind: Kind, text: &str) -> Result<Term, DependencyError> {
    // Taken of every kind, as in Slurm; only `after` waits for it.
    let (text, delay_minutes) = match text.split_once('+') {
        Some((text, delay)) => (text, delay.parse().ok().filter(|delay| *delay > 0).ok_or(DependencyError)?),
        None => (text, 0),
    };
    let (job, task) = match text.split_once('_') {
        None => (text, None),
        Some((job, "*")) => (job, None),
        Some((job, task)) => (job, Some(task.parse().map_err(|_| DependencyError)?)),
    };
    let job: JobId = job.parse().map_err(|_| DependencyError)?;
    if job.0 == 0 {
        return Err(DependencyError);
    }
    Ok(Term { kind, job: Some(job), task, delay_minutes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_read_as_slurm_writes_them() {
        let shown = |text: &str| {
            let read = parse(text).ok()?;
            let sign = if read.any_is_enough { "?" } else { "," };
            Some(read.terms.iter().map(|term| term.to_string()).collect::<Vec<_>>().join(sign))
        };
        assert_eq!(shown("afterok:1:2_3,singleton").unwrap(), "afterok:1,afterok:2_3,singleton");
        assert_eq!(shown("afterok:2_[1,3-4]:5").unwrap(), "afterok:2_1,afterok:2_3,afterok:2_4,afterok:5");
        assert_eq!(shown("17").unwrap(), "afterany:17");
        assert_eq!(shown("after:5+10").unwrap(), "after:5+10");
        assert_eq!(shown("afterok:5+10").unwrap(), "afterok:5+10");
        assert_eq!(shown("afterok:1?afterany:2").unwrap(), "afterok:1?afterany:2");
        for bad in [
            "",
            "afterok",
            "afterok:",
            "afterok:x",
            "afterok:1,afterany:2?3",
            "frob:1",
            "singleton:1",
            "afterok:0",
            "after:1+0",
            "after:1+x",
        ] {
            assert_eq!(shown(bad), None, "{bad}");
        }
    }
}
