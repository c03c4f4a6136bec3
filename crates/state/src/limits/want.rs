//! What a job would take, as far as headrooms speak of it. What few limits ask about is looked up when one does: of a hundred thousand jobs
//! each line of memory that is not read counts.
use model::JobSpec;
use model::plan::Grant;
use model::spec::{Memory, TimeLimit};

use super::demand;

#[derive(Clone, Copy)]
pub struct Want<'j> {
    spec: &'j JobSpec,
    pub(super) nodes: u64,
    pub(super) cpus: u64,
    /// None: not known here.
    pub(super) memory_mb: Option<u64>,
    /// Shorter than the job's own.
    limit: Option<TimeLimit>,
    /// Minutes count more, or less, than they are.
    pub(super) is_weighed: bool,
}

impl<'j> Want<'j> {
    /// The least that would do.
    pub fn asked(spec: &'j JobSpec) -> Want<'j> {
        let (nodes, cpus, memory_mb) = spec.asked_of_nodes();
        Want { spec, nodes: nodes.into(), cpus: cpus.into(), memory_mb, limit: None, is_weighed: false }
    }

    /// What was found for it.
    pub fn granted(spec: &'j JobSpec, grants: &[Grant], limit: Option<TimeLimit>) -> Want<'j> {
        let cpus = grants.iter().map(|grant| u64::from(grant.n_cpus)).sum();
        let memory_mb = grants.iter().map(|grant| grant.memory_mb).sum();
        // What all memory of a node comes to is not looked up here.
        let memory_mb = (!matches!(spec.size.memory, Memory::WholeNode)).then_some(memory_mb);
        Want { spec, nodes: grants.len() as u64, cpus, memory_mb, limit, is_weighed: false }
    }

    pub fn weighed(self) -> Want<'j> {
        Want { is_weighed: true, ..self }
    }

    pub(super) fn limit_secs(&self) -> u64 {
        demand::limit_secs(self.spec, self.limit)
    }

    pub(super) fn cpu_minutes(&self) -> u64 {
        self.cpus.saturating_mul(self.limit_secs()) / 60
    }

    /// It may take something else that has a name: devices, licences, buffers.
    pub(super) fn has_others(&self) -> bool {
        let size = &self.spec.size;
        let has_devices = !(size.gres.is_empty() && size.gres_per_task.is_empty() && size.gres_total.is_empty());
        has_devices || !self.spec.licenses.is_empty() || self.spec.buffer.is_some()
    }
}
