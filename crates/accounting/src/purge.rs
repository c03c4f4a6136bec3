//! Forgetting what is old: in small slices, so that whoever writes in between does not wait long.
use model::Timestamp;

use crate::select;

/// What is forgotten of old runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All of them: their steps, and scripts and environments that no later run has used.
    Runs,
    /// Only their steps.
    Steps,
}

/// Runs that one slice takes at most (or those of one moment, if they are more).
const RUNS_PER_SLICE: i64 = 2_000;

/// The end of the run after the slice's last: `$1` and `$2` are the interval, in ends of runs.
pub fn slice_end() -> String {
    format!("SELECT ended FROM job WHERE ended >= $1 AND ended < $2 ORDER BY ended LIMIT 1 OFFSET {RUNS_PER_SLICE}")
}

pub const STEPS: &str = "DELETE FROM step WHERE (job_id, submitted, attempt) IN
    (SELECT job_id, submitted, attempt FROM job WHERE ended >= $1 AND ended < $2)";
pub const RUNS: &str = "DELETE FROM job WHERE ended >= $1 AND ended < $2";
/// Whoever writes a run also notes the use of its contents: none of a run that is kept was used before that run's end.
pub const CONTENTS: &str = "DELETE FROM content WHERE id IN (SELECT id FROM content_use WHERE used < $1)";
pub const USES: &str = "DELETE FROM content_use WHERE used < $1";

/// How far a slice from `from` reaches, if the run after it ended at `next`.
pub fn reach(from: i64, before: i64, next: Option<i64>) -> i64 {
    next.map_or(before, |next| next.max(from.saturating_add(1)))
}

pub fn moment(number: i64) -> Timestamp {
    Timestamp(number.max(0) as u64)
}

/// The interval as the tables have it; what has not ended lies beyond any.
pub fn interval(from: Timestamp, before: Timestamp) -> (i64, i64) {
    (select::number(from), select::number(before).min(select::NOT_ENDED - 1))
}
