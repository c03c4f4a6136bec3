//! The memory limit of a run: kept by the kernel where it can, else by looking at the processes now and then.
use super::measure::Meter;
use crate::bounds::Held;
use crate::numbering;
use crate::protocol::{RunId, Start};
use crate::spool;

/// How often memory is looked at where the kernel does not bound it.
const LOOK_MILLIS: i64 = 1_000;

pub struct Memory {
    held: Held,
    limit_bytes: Option<u64>,
    /// Found above the limit; the processes were ended.
    is_exceeded: bool,
    has_told: bool,
}

impl Memory {
    pub fn new(start: &Start, cgroup: Option<&crate::cgroup::Cgroup>, meter: &mut Meter) -> Self {
        let bounds = &numbering::bounds(&start.launch.bounds);
        let slot = spool::slot_name(start.slot);
        let held = Held::new(bounds, cgroup.map(crate::cgroup::Cgroup::path), &start.group, &slot);
        let limit_bytes = bounds.memory_mb.map(|megabytes| megabytes << 20);
        if limit_bytes.is_some() && !held.holds_memory() {
            meter.look_often(LOOK_MILLIS);
        }
        Memory { held, limit_bytes, is_exceeded: false, has_told: false }
    }

    pub fn held(&self) -> &Held {
        &self.held
    }

    /// After a look: true if the run must be ended now.
    pub fn is_above(&mut self, used_bytes: u64) -> bool {
        let is_above = !self.held.holds_memory() && self.limit_bytes.is_some_and(|limit| used_bytes > limit);
        self.is_exceeded |= is_above;
        is_above
    }

    pub fn has_run_out(&self) -> bool {
        self.is_exceeded || self.held.n_kills() > 0
    }

    /// What the job's output says about it, once.
    pub fn note(&mut self, start: &Start) -> Option<String> {
        if self.has_told || !self.has_run_out() {
            return None;
        }
        self.has_told = true;
        let run = RunId::of(&start.launch);
        let step = format!("StepId={}.{}", run.job, run.step);
        Some(match self.held.n_kills() {
            0 => format!("slurmstepd: error: {step} exceeded memory limit, being killed\n"),
            1 => format!(
                "slurmstepd: error: Detected 1 oom_kill event in {step}. Some of the step tasks have been OOM Killed.\n"
            ),
            n => format!(
                "slurmstepd: error: Detected {n} oom_kill events in {step}. Some of the step tasks have been OOM Killed.\n"
            ),
        })
    }
}
