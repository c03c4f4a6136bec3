//! `%j` and its like in directives.
use crate::JobId;

/// What symbols stand for.
#[derive(Clone, Debug, Default)]
pub struct Facts<'a> {
    pub job: JobId,
    pub array: Option<JobId>,
    pub task: Option<u32>,
    pub work_dir: &'a str,
    pub user: &'a str,
    pub name: &'a str,
    /// The node that copies, and its number among the job's nodes.
    pub node: &'a str,
    pub node_index: u32,
}

/// What Slurm shows for a job that is no task of an array.
const NO_TASK: u32 = 4_294_967_294;

/// `text` with its symbols replaced; unknown ones stay as they are.
pub fn replace(text: &str, facts: &Facts) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        let task = facts.task.unwrap_or(NO_TASK);
        match letters.next() {
            Some('%') => out.push('%'),
            Some('A') => out.push_str(&facts.array.unwrap_or(facts.job).to_string()),
            Some('a') => out.push_str(&task.to_string()),
            Some('b') => out.push_str(&(task % 10).to_string()),
            Some('d') => out.push_str(facts.work_dir),
            Some('j') => out.push_str(&facts.job.to_string()),
            Some('u') => out.push_str(facts.user),
            Some('x') => out.push_str(facts.name),
            Some('n') => out.push_str(facts.node),
            Some('t') => out.push_str(&facts.node_index.to_string()),
            Some(other) => out.extend(['%', other]),
            None => out.push('%'),
        }
    }
    out
}

/// `text` such that replacing gives it back.
pub(super) fn escape(text: &str) -> String {
    text.replace('%', "%%")
}
