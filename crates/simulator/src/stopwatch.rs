//! Holds a watch beside every job: the time it ran and the time it was suspended, added up entry by entry, independently of the
//! state's own arithmetic.
use std::collections::BTreeMap;

use model::time::Span;
use model::{JobId, Phase};
use state::Cluster;

#[derive(Default)]
pub struct Stopwatch {
    laps: BTreeMap<JobId, Lap>,
}

#[derive(Default)]
struct Lap {
    attempt: u32,
    ran: Span,
    suspended: Span,
}

impl Stopwatch {
    /// Until the entry's stamp every job was in the phase in which the entry found it.
    pub fn observe(&mut self, before: &Cluster, after: &Cluster) -> Result<(), String> {
        let passed = after.now() - before.now();
        for job in before.jobs() {
            let lap = self.laps.entry(job.id).or_default();
            if lap.attempt != job.attempt || job.phase == Phase::Pending {
                *lap = Lap { attempt: job.attempt, ..Lap::default() };
            }
            match job.phase {
                // Its nodes are ready now: it starts anew.
                Phase::Starting if after.job(job.id).is_some_and(|later| later.started > job.started) => {
                    lap.ran = Span(0);
                }
                Phase::Starting | Phase::Running => lap.ran = lap.ran + passed,
                Phase::Suspended => lap.suspended = lap.suspended + passed,
                Phase::Pending | Phase::Ending | Phase::Finishing | Phase::Done => (),
            }
        }
        self.laps.retain(|id, _| after.job(*id).is_some());
        for job in after.jobs().filter(|job| job.started.is_some()) {
            let Some(lap) = self.laps.get(&job.id).filter(|lap| lap.attempt == job.attempt) else { continue };
            let ran = job.run_time(after.now());
            if ran != lap.ran {
                return Err(format!("job {} ran {:?}, but counts {ran:?}", job.id, lap.ran));
            }
            let open = job.suspended_at.map_or(Span(0), |since| after.now() - since);
            if job.total_suspended + open != lap.suspended {
                let counted = job.total_suspended + open;
                return Err(format!("job {} was suspended {:?}, but counts {counted:?}", job.id, lap.suspended));
            }
            if job.suspended_at.is_some() != (job.phase == Phase::Suspended) {
                return Err(format!("job {} is {:?}, suspended at {:?}", job.id, job.phase, job.suspended_at));
            }
        }
        Ok(())
    }
}
