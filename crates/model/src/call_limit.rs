//! How many calls a user may make: a bucket that each call takes from, and that fills up again.
use crate::time::Span;

/// As Slurm's `SlurmctldParameters=rl_…`; off unless the site turns it on.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct CallLimit {
    pub is_on: bool,
    /// Calls that may be made at once.
    pub bucket_size: u32,
    /// So many more every period.
    pub refill_rate: u32,
    pub refill_period: Span,
    /// Users that are remembered.
    pub table_size: u32,
    /// Of one user it is told so often at most; 0: each time. None: never.
    pub log_every: Option<Span>,
    /// Submissions of one user in a minute; 0: as many as there are.
    pub submissions_per_minute: u32,
}

impl CallLimit {
    pub fn binds(&self) -> bool {
        self.is_on || self.submissions_per_minute > 0
    }
}

impl Default for CallLimit {
    fn default() -> Self {
        CallLimit {
            is_on: false,
            bucket_size: 30,
            refill_rate: 2,
            refill_period: Span::from_secs(1),
            table_size: 8192,
            log_every: Some(Span(0)),
            submissions_per_minute: 0,
        }
    }
}
