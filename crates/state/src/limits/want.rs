//! What a job would take, as far as headrooms speak of it.
use model::JobSpec;
use model::plan::Grant;
use model::spec::{Memory, TimeLimit};

use super::demand::limit_secs;

#[derive(Clone, Copy)]
pub struct Want {
    pub(super) nodes: u64,
    pub(super) cpus: u64,
    /// None: not known here.
    pub(super) memory_mb: Option<u64>,
    /// It may take something else that has a name: devices, licences, buffers.
    pub(super) has_others: bool,
    pub(super) limit_secs: u64,
    pub(super) cpu_minutes: u64,
    /// Minutes count more, or less, than they are.
    pub(super) is_weighed: bool,
}

impl Want {
    /// The least that would do.
    pub fn asked(spec: &JobSpec) -> Want {
        let (nodes, cpus, memory_mb) = spec.asked_of_nodes();
        Want::new(spec, (nodes.into(), cpus.into(), memory_mb), limit_secs(spec, None))
    }

    /// What was found for it.
    pub fn granted(spec: &JobSpec, grants: &[Grant], limit: Option<TimeLimit>) -> Want {
        let cpus = grants.iter().map(|grant| u64::from(grant.n_cpus)).sum();
        let memory_mb = grants.iter().map(|grant| grant.memory_mb).sum();
        // What all memory of a node comes to is not looked up here.
        let memory_mb = (!matches!(spec.size.memory, Memory::WholeNode)).then_some(memory_mb);
        Want::new(spec, (grants.len() as u64, cpus, memory_mb), limit_secs(spec, limit))
    }

    pub fn weighed(self) -> Want {
        Want { is_weighed: true, ..self }
    }

    fn new(spec: &JobSpec, (nodes, cpus, memory_mb): (u64, u64, Option<u64>), limit_secs: u64) -> Want {
        let size = &spec.size;
        let has_devices = !(size.gres.is_empty() && size.gres_per_task.is_empty() && size.gres_total.is_empty());
        let has_others = has_devices || !spec.licenses.is_empty() || spec.buffer.is_some();
        let cpu_minutes = cpus.saturating_mul(limit_secs) / 60;
        Want { nodes, cpus, memory_mb, has_others, limit_secs, cpu_minutes, is_weighed: false }
    }
}
