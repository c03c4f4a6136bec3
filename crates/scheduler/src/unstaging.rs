//! Buffers that were filled ahead make room for more important jobs that start sooner, where the site wants that.
use model::plan::StagePreemption;
use model::{Buffer, BufferPhase, Job, Phase, Timestamp};
use state::buffers::capacity::{Fit, Usage};

use crate::pass::Pass;
use crate::staging::Expected;

impl<'a> Pass<'a> {
    /// As few as are needed, those that start last first, and only if that is enough.
    pub(crate) fn make_space(&mut self, usage: &Usage, job: &'a Job) {
        let cluster = self.cluster;
        if !cluster.config().burst_buffer.as_ref().is_some_and(|config| config.preempts) {
            return;
        }
        let mut left = usage.clone();
        // What is on its way out will make room without anybody's help.
        let going = cluster.buffers().filter(|buffer| buffer.phase == BufferPhase::TearingDown);
        going.for_each(|buffer| left.give_back(buffer));
        if left.fit(cluster, &job.spec) == Fit::Now {
            return;
        }
        let sooner = match self.expected(job) {
            Expected::Now => cluster.now(),
            Expected::At(at) => at,
            Expected::Unknown | Expected::Never => return,
        };
        let own_key = cluster.queue_key(job);
        let may_go = |buffer: &&Buffer| {
            let is_ahead = matches!(buffer.phase, BufferPhase::StagingIn | BufferPhase::StagedIn);
            let other = cluster.job(buffer.job).filter(|other| other.phase == Phase::Pending);
            // Whoever comes first in the queue would only have its turn again.
            is_ahead && other.is_some_and(|other| cluster.queue_key(other) > own_key && starts(other) > sooner)
        };
        let mut others: Vec<&Buffer> = cluster.buffers().map(|buffer| &**buffer).filter(may_go).collect();
        others
            .sort_by_key(|buffer| std::cmp::Reverse((cluster.job(buffer.job).map(|other| starts(other)), buffer.job)));
        let mut gone = Vec::new();
        for buffer in others {
            left.give_back(buffer);
            gone.push(StagePreemption { job: buffer.job, by: job.id });
            if left.fit(cluster, &job.spec) == Fit::Now {
                self.plan.stage_preemptions.extend(gone);
                return;
            }
        }
    }
}

/// Nobody knows when: later than all others.
fn starts(job: &Job) -> Timestamp {
    job.expected_start.unwrap_or(Timestamp(u64::MAX))
}
