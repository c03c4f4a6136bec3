//! What a task is told of its GPUs, and of its parts of them.
use model::resources::NodeShare;
use model::{CpuSet, gpu_parts};

use super::environment::{Variables, joined};
use crate::protocol::Start;

/// What programs look at to find their GPUs.
const VISIBLE: [&str; 3] = ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"];

/// Say what one step has, so a step must not find them in the environment of its job.
pub(super) const OF_A_STEP: [&str; 8] = [
    VISIBLE[0],
    VISIBLE[1],
    VISIBLE[2],
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "SLURM_SHARDS_ON_NODE",
    "SLURM_STEP_GPUS",
    "SPUR_SHARDS_ON_NODE",
    "SPUR_STEP_GPUS",
];

pub(super) fn add(own: &mut Variables, start: &Start, local_id: u32) {
    let visible = visible_gpus(start, local_id).1;
    if !visible.is_empty() {
        VISIBLE.iter().for_each(|name| own.plain(name, joined(visible.iter().copied())));
    }
    if let Some(share) = share_here(start) {
        add_parts(own, share);
    }
}

/// Whole GPUs, and those that it has parts of.
pub(super) fn gpus(share: &NodeShare) -> Vec<u32> {
    gpu_parts::gpus_of(&share.gres)
}

fn add_parts(own: &mut Variables, share: &NodeShare) {
    let shards = share.gres.iter().filter(|held| held.name == "shard");
    let n_shards = shards.map(|held| held.units.len()).sum::<u32>();
    if n_shards > 0 {
        own.set("SHARDS_ON_NODE", n_shards);
    }
    if let Some(percentage) = gpu_parts::thread_percentage(&share.gres) {
        own.plain("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percentage);
    }
}

fn share_here(start: &Start) -> Option<&NodeShare> {
    start.launch.step_shares.get(start.launch.node_index as usize)
}

/// The step's GPUs on this node, and those of them that one of its tasks sees.
fn visible_gpus(start: &Start, local_id: u32) -> (Vec<u32>, Vec<u32>) {
    let all = share_here(start).map(gpus).unwrap_or_default();
    let visible = match start.launch.step_spec.as_ref().map(|spec| &spec.gpu_bind) {
        Some(bind) => bind.choose(&all, local_id),
        None => all.clone(),
    };
    (all, visible)
}

/// `--gpu-bind=verbose`: what a task says before it begins.
pub fn gpu_note(start: &Start, local_id: u32) -> String {
    let (all, visible) = visible_gpus(start, local_id);
    if all.is_empty() {
        return String::new();
    }
    let mask = |numbers: &[u32]| numbers.iter().copied().collect::<CpuSet>().show_mask();
    let list = joined(visible.iter().copied());
    format!(
        "gpu-bind: usable_gres={}; bit_alloc={}; local_inx={}; global_list={list}; local_list={list}\n",
        mask(&visible),
        mask(&all),
        visible.len()
    )
}
