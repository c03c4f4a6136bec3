//! What can be counted of burst buffers: the pools as they are, and what has been moved, and failed, since the start.
use std::collections::{BTreeMap, BTreeSet};

use model::{BufferPhase, Event, JobId};
use state::Cluster;
use state::buffers::capacity::{self, Usage};

use crate::metrics::Text;

/// Since the controller started; never set back, as counters must not be.
#[derive(Clone, Debug, Default)]
pub struct Moved {
    /// Files and bytes.
    into: (u64, u64),
    out: (u64, u64),
    failures: BTreeMap<String, u64>,
}

impl Moved {
    /// Events of one entry.
    pub fn applied(&mut self, cluster: &Cluster, events: &[Event]) {
        // One entry may change a buffer several times.
        let (mut given_up, mut seen) = (BTreeSet::<JobId>::new(), BTreeSet::<JobId>::new());
        for event in events {
            let Event::BufferChanged { job: id, to, at } = event else { continue };
            let buffer = cluster.buffer(*id).filter(|buffer| buffer.since == *at);
            if let (Some(BufferPhase::TearingDown), Some(buffer)) = (to, buffer)
                && given_up.insert(*id)
            {
                for (sum, moved) in [(&mut self.into, &buffer.staged_in), (&mut self.out, &buffer.staged_out)] {
                    sum.0 += moved.n_files;
                    sum.1 += moved.n_bytes;
                }
            }
            let Some(job) = cluster.job(*id).filter(|_| seen.insert(*id)) else { continue };
            for remark in job.remarks.iter().filter(|remark| remark.at == *at) {
                if let Some(operation) = operation(&remark.text) {
                    *self.failures.entry(operation.to_owned()).or_default() += 1;
                }
            }
        }
    }
}

/// `burst_buffer/native: stage_in failed: …`, `burst_buffer/lua: slurm_bb_setup: …`
fn operation(text: &str) -> Option<&str> {
    let (_, rest) = text.strip_prefix("burst_buffer/")?.split_once(": ")?;
    rest.split([' ', ':']).next().filter(|word| !word.is_empty())
}

/// Nothing where there are no burst buffers.
pub fn write(out: &mut Text, cluster: &Cluster, moved: &Moved) {
    let Some(config) = &cluster.config().burst_buffer else { return };
    let usage = Usage::of(cluster);
    out.head("spur_burst_buffer_bytes", "gauge", "Burst buffer space, by pool.");
    for pool in &config.pools {
        let kinds = [
            ("total", capacity::total(cluster, pool)),
            ("used", usage.of_pool(pool)),
            ("free", capacity::free(cluster, &usage, pool)),
        ];
        for (kind, bytes) in kinds {
            out.line(format_args!("spur_burst_buffer_bytes{{pool=\"{}\",use=\"{kind}\"}} {bytes}", pool.name));
        }
    }
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    let mut transfers = [("in", 0), ("out", 0)];
    for buffer in cluster.buffers() {
        let word = cluster.job(buffer.job).and_then(|job| job.buffer_state()).map(|state| state.word());
        *states.entry(word.unwrap_or("complete")).or_default() += 1;
        let n_open = buffer.places.iter().filter(|place| !place.is_done && place.failure.is_empty()).count() as u64;
        match buffer.phase {
            BufferPhase::StagingIn | BufferPhase::PreRun | BufferPhase::Revoked => transfers[0].1 += n_open,
            BufferPhase::StagingOut => transfers[1].1 += n_open,
            _ => (),
        }
    }
    out.family("spur_burst_buffers", "gauge", "Burst buffers of jobs, by state.", "state", states);
    let n_persistent = cluster.persistent_buffers().count() as u64;
    out.single("spur_burst_buffers_persistent", "gauge", "Persistent burst buffers.", n_persistent);
    out.family(
        "spur_burst_buffer_transfers",
        "gauge",
        "Directories that data is moved to or from.",
        "direction",
        transfers,
    );
    let files = [("in", moved.into.0), ("out", moved.out.0)];
    let bytes = [("in", moved.into.1), ("out", moved.out.1)];
    let told = "of burst buffers that are given up by now";
    out.family("spur_burst_buffer_files_total", "counter", &format!("Files moved, {told}."), "direction", files);
    out.family("spur_burst_buffer_moved_bytes_total", "counter", &format!("Bytes moved, {told}."), "direction", bytes);
    let failures = moved.failures.iter().map(|(name, count)| (name, *count));
    out.family("spur_burst_buffer_failures_total", "counter", "Failures, by what failed.", "operation", failures);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_by_what_failed() {
        assert_eq!(operation("burst_buffer/native: stage_in failed: no such file"), Some("stage_in"));
        assert_eq!(operation("burst_buffer/lua: slurm_bb_setup: it broke"), Some("slurm_bb_setup"));
        assert_eq!(operation("bb stage-in 1GiB 3 files 1s"), None);
    }
}
