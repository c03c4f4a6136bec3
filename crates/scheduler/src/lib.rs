//! Who goes where and when: a pure function from the cluster's state to a plan.
//!
//! ```text
//! order ──▶ next job ──▶ pick from what is free from now on ──▶ a start, and less room for the rest
//!                          └──▶ nothing fits ──▶ reasons (why it stays)
//!                                  └──▶ timeline ──▶ pick from what is free from then on ──▶ a promise, and less room later
//! ```
//! A plan is a proposal: `state` checks each part again when it is adopted, so a plan may be made on an older state.
use model::{JobId, Plan, Timestamp};
use state::Cluster;

mod ahead;
mod allowance;
mod closures;
mod counts;
mod depth;
mod failed;
mod order;
mod pass;
mod pick;
mod pool;
mod reasons;
mod request;
mod room;
mod spot;
mod staging;
mod timeline;
mod units;
mod unstaging;
mod why;

pub use why::why;

/// A plan, and when another look may give another one though nothing has happened (in the plan only if the state has no
/// deadline as early as that).
#[derive(Default)]
pub struct Outlook {
    pub plan: Plan,
    pub look_again_at: Option<Timestamp>,
    /// So far one pass looks; the next one may go on behind this job.
    pub stopped_at: Option<JobId>,
}

/// Starts what fits now, the most important first, promises the next ones a place in the future, and says why they wait.
pub fn plan(cluster: &Cluster) -> Plan {
    look(cluster).plan
}

pub fn look(cluster: &Cluster) -> Outlook {
    match cluster.n_queued() + cluster.n_to_stage() {
        0 => Outlook::default(),
        _ => pass::Pass::new(cluster).run(None),
    }
}

/// As `look`, for the jobs behind the one at which another look stopped. Those before it keep what they are promised.
pub fn look_behind(cluster: &Cluster, stopped_at: JobId) -> Outlook {
    pass::Pass::new(cluster).run(Some(stopped_at))
}
