//! How much text and content one user's jobs hold here: every controller keeps it in memory for as long as the jobs' records.
//!
//! Only what is large is counted, so that most submissions cost a comparison. What is forgotten with a restart begins anew.
use std::collections::HashMap;
use std::sync::Mutex;

use model::{Caller, JobId, Reject};
use state::Cluster;

/// Smaller ones are bounded by the number of jobs alone.
const LARGE_BYTES: usize = 32 << 10;
/// What the large ones of one user may come to.
const USER_MOST_BYTES: usize = 1 << 30;

#[derive(Default)]
pub struct TextQuota {
    users: Mutex<HashMap<u32, UserTexts>>,
}

#[derive(Default)]
struct UserTexts {
    held_bytes: usize,
    jobs: HashMap<JobId, usize>,
}

impl TextQuota {
    /// Refuses a submission that the user has no more room for. Jobs whose records are gone are forgotten when it matters.
    pub fn judge(&self, cluster: &Cluster, by: Caller, size_bytes: usize) -> Result<(), Reject> {
        if by.is_admin || size_bytes < LARGE_BYTES {
            return Ok(());
        }
        let mut users = self.users.lock().expect("no panic while it is held");
        let Some(held) = users.get_mut(&by.uid) else { return Ok(()) };
        if held.held_bytes + size_bytes > USER_MOST_BYTES {
            held.jobs.retain(|job, _| cluster.job(*job).is_some());
            held.held_bytes = held.jobs.values().sum();
        }
        match held.held_bytes + size_bytes > USER_MOST_BYTES {
            true => Err(Reject::TooManyJobs),
            false => Ok(()),
        }
    }

    pub fn note(&self, uid: u32, job: JobId, size_bytes: usize) {
        if size_bytes >= LARGE_BYTES {
            let mut users = self.users.lock().expect("no panic while it is held");
            let held = users.entry(uid).or_default();
            held.held_bytes += size_bytes;
            *held.jobs.entry(job).or_default() += size_bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_with_large_jobs_has_room_again_when_they_are_gone() {
        let (quota, cluster) = (TextQuota::default(), Cluster::default());
        let by = Caller { uid: 1000, gid: 1000, is_admin: false };
        let large = 512 << 20;
        quota.judge(&cluster, by, large).unwrap();
        quota.note(1000, JobId(1), large);
        quota.judge(&cluster, by, large).unwrap();
        // Neither is known to this cluster: both are forgotten as soon as they stand in the way.
        quota.note(1000, JobId(2), large);
        assert_eq!(quota.users.lock().unwrap()[&1000].held_bytes, 2 * large);
        quota.judge(&cluster, by, large).unwrap();
        assert_eq!(quota.users.lock().unwrap()[&1000].held_bytes, 0);
        assert_eq!(quota.judge(&cluster, by, USER_MOST_BYTES + 1), Err(Reject::TooManyJobs));
    }
}
