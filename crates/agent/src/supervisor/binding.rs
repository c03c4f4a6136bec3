//! Binding tasks to CPUs (`--cpu-bind`): which ones, and doing it.
use model::CpuSet;
use model::step::{CpuBind, StepSpec};

use super::environment::tasks_here;
use crate::numbering;
use crate::protocol::Start;

/// The CPUs of one task.
pub struct Binding {
    /// None: it may run anywhere, and only says so.
    cpus: Option<CpuSet>,
    /// What is said of it, but for the process id and the result.
    label: [String; 2],
    is_told: bool,
    /// Why it cannot be: the task is not begun.
    refusal: Option<String>,
}

/// What a task ends with that asks for CPUs which are not the step's.
pub const CANNOT_BIND: i32 = 192;

impl Binding {
    /// None: the task may run anywhere.
    pub fn of(start: &Start, spec: &StepSpec, local_id: u32) -> Option<Self> {
        let launch = &start.launch;
        let share = launch.step_shares.get(launch.node_index as usize);
        let on_machine = |cpus: &CpuSet| numbering::of_machine(cpus, launch.bounds.n_cpus_by_core);
        let own = || part(&share?.cpus, tasks_here(launch), local_id).map(|part| on_machine(&part));
        let cpus = match &spec.cpu_bind {
            CpuBind::None if !spec.tells_binding => return None,
            CpuBind::None => {
                let before = format!("cpu-bind=NONE - {}, task {:2} {local_id:2} [", start.node, launch.rank(local_id));
                let label = [before, "]: mask all ".to_string()];
                return Some(Binding { cpus: None, label, is_told: true, refusal: None });
            }
            CpuBind::Threads => own()?,
            CpuBind::Cores => widened(&own()?, "thread_siblings_list"),
            CpuBind::Sockets => widened(&own()?, "core_siblings_list"),
            CpuBind::Rank => [local_id].into_iter().collect(),
            CpuBind::Map(sets) => sets.get(local_id as usize % sets.len().max(1))?.clone(),
        };
        let node = &start.node;
        let before = format!("cpu-bind=MASK - {node}, task {:2} {local_id:2} [", launch.rank(local_id));
        let after = format!("]: mask {} ", cpus.show_mask());
        let refusal = share
            .filter(|_| matches!(spec.cpu_bind, CpuBind::Map(_)))
            .and_then(|own| outside(&cpus, &on_machine(&own.cpus)));
        Some(Binding { cpus: Some(cpus), label: [before, after], is_told: spec.tells_binding, refusal })
    }

    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// For the calling process; what is to be said about it.
    pub fn bind(&self, pid: u32) -> Option<String> {
        let is_done = self.cpus.as_ref().is_none_or(set_affinity);
        let [before, after] = &self.label;
        (self.is_told || !is_done).then(|| format!("{before}{pid}{after}{}\n", if is_done { "set" } else { "FAILED" }))
    }
}

/// What is said where some of the wanted CPUs are not the step's own.
fn outside(wanted: &CpuSet, own: &CpuSet) -> Option<String> {
    let mask = own.show_mask();
    let says =
        || format!("slurmstepd: error: CPU binding outside of job step allocation, allocated CPUs are: {mask}.\n");
    (!own.is_empty() && !wanted.is_subset(own)).then(says)
}

/// The task's part of the node's CPUs, all of them in turn.
fn part(cpus: &CpuSet, n_tasks: u32, local_id: u32) -> Option<CpuSet> {
    let each = (cpus.len() / n_tasks.max(1)).max(1);
    let first = u64::from(each) * u64::from(local_id) % u64::from(cpus.len().max(1));
    let part: CpuSet = cpus.iter().skip(first as usize).take(each as usize).collect();
    (!part.is_empty()).then_some(part)
}

/// With all CPUs of the same core or socket, as the kernel tells them.
fn widened(cpus: &CpuSet, list: &str) -> CpuSet {
    let mut all = cpus.clone();
    for cpu in cpus.iter() {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{list}");
        let siblings = std::fs::read_to_string(file).ok().and_then(|text| text.parse::<CpuSet>().ok());
        all.extend(siblings.iter().flat_map(CpuSet::iter));
    }
    all
}

fn set_affinity(cpus: &CpuSet) -> bool {
    // SAFETY: the set is plain data, and the numbers put into it are within it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus.iter().filter(|cpu| *cpu < libc::CPU_SETSIZE as u32) {
            libc::CPU_SET(cpu as usize, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_share_the_cpus_of_their_node() {
        let cpus: CpuSet = "2-5".parse().unwrap();
        let parts = |n_tasks| (0..n_tasks).map(|id| part(&cpus, n_tasks, id).unwrap().to_string()).collect::<Vec<_>>();
        assert_eq!(parts(2), ["2-3", "4-5"]);
        assert_eq!(parts(4), ["2", "3", "4", "5"]);
        assert_eq!(parts(5), ["2", "3", "4", "5", "2"]);
        assert_eq!(part(&CpuSet::new(), 1, 0), None);
    }

    #[test]
    fn cpus_of_others_are_refused() {
        let set = |text: &str| text.parse::<CpuSet>().unwrap();
        assert_eq!((outside(&set("2"), &set("2-3")), outside(&set("2"), &CpuSet::new())), (None, None));
        assert!(outside(&set("1-2"), &set("2-3")).unwrap().contains("allocated CPUs are: 0xC."));
    }
}
