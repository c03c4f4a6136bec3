//! Variables of heterogeneous jobs: what each component has (`…_HET_GROUP_1`, and as older programs read it, `…_PACK_GROUP_1`),
//! and for a step over several components what they have together.
use std::fmt::Display;

use model::agent::{HetComponent, HetFacts, HetStep};
use model::spec::Memory;

use model::resources::{NodeShare, repeated};

use super::environment::{Variables, node_list};

pub(super) fn add(own: &mut Variables, het: &HetFacts) {
    if het.components.is_empty() {
        return;
    }
    own.set("HET_SIZE", het.components.len());
    own.plain("SLURM_PACK_SIZE", het.components.len());
    for (group, component) in het.components.iter().enumerate() {
        add_component(own, group, component);
    }
}

fn add_component(own: &mut Variables, group: usize, component: &HetComponent) {
    let mut set = |name: &str, value: &dyn Display| {
        own.set(&format!("{name}_HET_GROUP_{group}"), value);
        own.plain(&format!("SLURM_{name}_PACK_GROUP_{group}"), value);
    };
    let (spec, shares) = (&component.spec, &component.shares);
    let size = &spec.size;
    set("JOB_ID", &component.job);
    set("JOB_NAME", &spec.name);
    set("JOB_PARTITION", &component.partition);
    set("JOB_NODELIST", &node_list(shares));
    set("JOB_NUM_NODES", &shares.len());
    set("JOB_CPUS_PER_NODE", &repeated(shares.iter().map(NodeShare::n_working_cpus)));
    set("TASKS_PER_NODE", &repeated(shares.iter().map(|share| share.n_tasks_told(size))));
    if size.n_tasks.is_some() || size.tasks_per_node.is_some() {
        let n_tasks = size.n_tasks_on(shares.len() as u32);
        set("NTASKS", &n_tasks);
        set("NPROCS", &n_tasks);
    }
    if let Some(per_node) = size.tasks_per_node {
        set("NTASKS_PER_NODE", &per_node);
    }
    if let Some(cpus) = size.cpus_per_task {
        set("CPUS_PER_TASK", &cpus);
    }
    if !spec.account.is_empty() {
        set("JOB_ACCOUNT", &spec.account);
    }
    if !spec.qos.is_empty() {
        set("JOB_QOS", &spec.qos);
    }
    match size.memory {
        Memory::PerNodeMb(megabytes) => set("MEM_PER_NODE", &megabytes),
        Memory::PerCpuMb(megabytes) => set("MEM_PER_CPU", &megabytes),
        Memory::PerGpuMb(megabytes) => set("MEM_PER_GPU", &megabytes),
        Memory::Default | Memory::WholeNode => {}
    }
}

/// Overrides what a part of the step would say of itself.
pub(super) fn add_step(own: &mut Variables, whole: &HetStep) {
    let per_node = repeated(whole.step_shares.iter().map(|share| share.n_tasks));
    let (job_nodes, step_nodes) = (node_list(&whole.job_shares), node_list(&whole.step_shares));
    own.replace("JOB_NODELIST", &job_nodes);
    own.replace("NODELIST", &job_nodes);
    own.replace("JOB_NUM_NODES", whole.job_shares.len());
    own.replace("JOB_CPUS_PER_NODE", repeated(whole.job_shares.iter().map(NodeShare::n_working_cpus)));
    own.replace("NNODES", whole.step_shares.len());
    own.replace("NODEID", whole.node_index);
    own.replace("NTASKS", whole.n_tasks);
    own.replace("NPROCS", whole.n_tasks);
    own.replace("STEP_NODELIST", step_nodes);
    own.replace("STEP_NUM_NODES", whole.step_shares.len());
    own.replace("STEP_NUM_TASKS", whole.n_tasks);
    own.replace("STEP_TASKS_PER_NODE", &per_node);
    own.replace("TASKS_PER_NODE", per_node);
}

/// Describes the components of one heterogeneous job: not for a job submitted from within it.
pub(super) fn is_its_own(name: &[u8]) -> bool {
    let Some(rest) = name.strip_prefix(b"SLURM_").or(name.strip_prefix(b"SPUR_")) else { return false };
    let contains = |part: &[u8]| rest.windows(part.len()).any(|window| window == part);
    rest == b"HET_SIZE" || rest == b"PACK_SIZE" || contains(b"_HET_GROUP_") || contains(b"_PACK_GROUP_")
}
