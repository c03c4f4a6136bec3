//! How many jobs one user may have: without a share of its own, one user would fill the queue and nobody else could submit.
//!
//! Counting costs as much as the user has jobs, so it is done only where the queue is nearly full, and again only after as
//! many submissions as there was room for.
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use model::config::ControllerConfig;
use model::{Caller, Command, Reject};
use state::Cluster;

/// A user without room is counted anew so often.
const COUNTED_AGAIN: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct JobQuota {
    users: Mutex<HashMap<u32, CountedJobs>>,
}

struct CountedJobs {
    /// At least as many as the user has, as long as each submission is added.
    n_most: usize,
    at: Instant,
}

impl JobQuota {
    /// Refuses a submission by a user who has as many jobs as one user may.
    pub fn judge(&self, cluster: &Cluster, by: Caller, command: &Command) -> Result<(), Reject> {
        let most = share(&cluster.config().controller);
        let n_new = n_submitted(command);
        if n_new == 0 || by.is_admin {
            return Ok(());
        }
        let mut users = self.users.lock().expect("no panic while it is held");
        if cluster.n_jobs() + n_new <= most {
            // This one is not counted, so an earlier count of the user's is worth nothing any more.
            users.remove(&by.uid);
            return Ok(());
        }
        let now = Instant::now();
        let counted = || cluster.n_live_jobs_of(by.uid, most + 1);
        let known = users.entry(by.uid).or_insert_with(|| CountedJobs { n_most: counted(), at: now });
        if known.n_most + n_new > most && now.duration_since(known.at) >= COUNTED_AGAIN {
            *known = CountedJobs { n_most: counted(), at: now };
        }
        if known.n_most + n_new > most {
            return Err(Reject::TooManyJobs);
        }
        known.n_most += n_new;
        Ok(())
    }
}

fn share(config: &ControllerConfig) -> usize {
    match config.max_jobs_per_user {
        0 => (u64::from(config.max_job_count) * 9).div_ceil(10) as usize,
        most => most as usize,
    }
}

fn n_submitted(command: &Command) -> usize {
    match command {
        Command::Once { command, .. } => n_submitted(command),
        Command::Submit { .. } => 1,
        Command::SubmitTogether { specs, .. } => specs.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use model::{Config, Entry, JobId, JobKind, JobSpec, Partition, Timestamp};

    use super::*;

    const BY: Caller = Caller { uid: 1000, gid: 1000, is_admin: false };

    fn submission(uid: u32) -> Command {
        let spec = JobSpec { uid, gid: uid, kind: JobKind::Allocation, held: true, ..JobSpec::default() };
        Command::Submit { spec: Box::new(spec), blobs: Vec::new() }
    }

    #[test]
    fn user_has_no_more_than_a_share_of_the_queue() {
        let mut config = Config {
            partitions: vec![Partition { name: "main".into(), is_default: true, ..Partition::default() }],
            ..Config::default()
        };
        config.controller.max_job_count = 10;
        let mut cluster = Cluster::default();
        let mut apply = |command, by| {
            let entry = Entry { at: Timestamp::from_secs(1000), by, command };
            state::apply(&mut cluster, &entry).reply.unwrap();
            cluster.clone()
        };
        let mut cluster = apply(Command::Reconfigure { config: config.into() }, Caller::SYSTEM);
        let quota = JobQuota::default();
        // A count from when the user had nothing does not outlive submissions that are not counted.
        quota.users.lock().unwrap().insert(1000, CountedJobs { n_most: 0, at: Instant::now() });
        for _ in 0..9 {
            quota.judge(&cluster, BY, &submission(1000)).expect("nine tenths");
            cluster = apply(submission(1000), BY);
        }
        assert_eq!(quota.judge(&cluster, BY, &submission(1000)), Err(Reject::TooManyJobs));
        let other = Caller { uid: 1001, gid: 1001, is_admin: false };
        quota.judge(&cluster, other, &submission(1001)).expect("room for others");
        quota.judge(&cluster, Caller { is_admin: true, ..BY }, &submission(1000)).expect("operators");
        // Those that are over count no more, once they are counted anew.
        cluster = apply(Command::Cancel { jobs: vec![JobId(1).into()], hurry: false }, BY);
        quota.users.lock().unwrap().get_mut(&1000).unwrap().at -= COUNTED_AGAIN;
        quota.judge(&cluster, BY, &submission(1000)).expect("one is over");
        assert_eq!(quota.judge(&cluster, BY, &submission(1000)), Err(Reject::TooManyJobs));
    }
}
