//! Parts of GPUs (`shard`, `mps`), of which several jobs may have some of one device. A GPU is given whole or in parts, its parts
//! are of one name at a time, and what is asked for at once comes from one GPU.
use std::ops::Range;

use crate::gres::{Gres, GresRequest, GresUnits};
use crate::node::NodeConfig;

const GPU: &str = "gpu";

/// The parts of one GPU.
struct Divided<'a> {
    gpu: u32,
    /// Their numbers within the node's whole list of that name.
    parts: Range<u32>,
    kind: &'a str,
}

pub fn is_part(name: &str) -> bool {
    ["shard", "mps"].contains(&name)
}

/// Whole GPUs, and those of which there are parts.
pub fn gpus_of(held: &[GresUnits]) -> Vec<u32> {
    let whole = held.iter().filter(|units| units.name == GPU).flat_map(|units| units.units.iter());
    let mut gpus: Vec<u32> = whole.chain(held.iter().filter_map(|units| units.device)).collect();
    gpus.sort_unstable();
    gpus.dedup();
    gpus
}

/// How much of a GPU parts of MPS are (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE), where there are any.
pub fn thread_percentage(held: &[GresUnits]) -> Option<u32> {
    let of_mps = || held.iter().filter(|units| units.name == "mps");
    let whole = of_mps().map(|units| units.n_parts).max()?;
    (of_mps().map(|units| units.units.len()).sum::<u32>() * 100).checked_div(whole)
}

impl NodeConfig {
    /// This name is of parts of GPUs here. On a node without GPUs it is a resource like any other.
    pub fn divides_gpus_into(&self, name: &str) -> bool {
        is_part(name) && self.gres.iter().any(|gres| gres.name == GPU && gres.count > 0)
    }

    /// Everything a job gets that has the node alone: GPUs whole, unless it asks for parts of some; of what is only for those who ask
    /// for it, what it asks for.
    pub fn all_gres(&self, asked: &[GresRequest]) -> Vec<GresRequest> {
        let (parts, others): (Vec<_>, Vec<_>) =
            asked.iter().cloned().partition(|request| self.divides_gpus_into(&request.name));
        let is_explicit = |name: &str| self.gres.iter().any(|gres| gres.is_explicit && gres.name == name);
        let comes_along = |gres: &&Gres| {
            !is_explicit(&gres.name) && !self.divides_gpus_into(&gres.name) && (parts.is_empty() || gres.name != GPU)
        };
        let request = |gres: &Gres| GresRequest { name: gres.name.clone(), kind: gres.kind.clone(), count: gres.count };
        let mut all: Vec<GresRequest> = self.gres.iter().filter(comes_along).map(request).collect();
        all.extend(others.into_iter().filter(|request| is_explicit(&request.name)));
        all.extend(parts);
        all
    }

    /// Parts for the request, all of them of the first GPU that has so many left.
    pub(crate) fn pick_parts(
        &self,
        used: &[GresUnits],
        picked: &[GresUnits],
        request: &GresRequest,
    ) -> Option<GresUnits> {
        let held = || used.iter().chain(picked);
        let is_open = |gpu: u32| {
            held().all(|units| match units.device {
                Some(device) => device != gpu || units.name == request.name,
                None => units.name != GPU || !units.units.contains(gpu),
            })
        };
        let is_free = |part: &u32| !held().any(|units| units.name == request.name && units.units.contains(*part));
        let suits = |one: &Divided| request.kind.is_empty() || one.kind == request.kind;
        self.divided(&request.name).into_iter().filter(suits).filter(|one| is_open(one.gpu)).find_map(|one| {
            let free: Vec<u32> = one.parts.clone().filter(is_free).take(request.count as usize).collect();
            (free.len() == request.count as usize).then(|| GresUnits {
                name: request.name.clone(),
                kind: one.kind.to_string(),
                units: free.into_iter().collect(),
                device: Some(one.gpu),
                n_parts: one.parts.len() as u32,
            })
        })
    }

    /// Which parts are of which GPU: as many as the site says, or as many of each as of the next.
    fn divided(&self, name: &str) -> Vec<Divided<'_>> {
        let mut all = Vec::new();
        let mut next = 0;
        for gres in self.gres.iter().filter(|gres| gres.name == name) {
            let gpus = self.gpus_of_kind(&gres.kind);
            let n_gpus = (gpus.len() as u32).max(1);
            let end = next + gres.count;
            for (at, gpu) in gpus.into_iter().enumerate() {
                let evenly = gres.count / n_gpus + u32::from((at as u32) < gres.count % n_gpus);
                let count = gres.parts.get(gpu as usize).copied().unwrap_or(evenly).min(end - next);
                all.push(Divided { gpu, parts: next..next + count, kind: &gres.kind });
                next += count;
            }
            next = end;
        }
        all
    }

    /// The numbers of the GPUs that parts of this kind are of: those of the same kind, or all.
    fn gpus_of_kind(&self, kind: &str) -> Vec<u32> {
        let mut gpus = Vec::new();
        let mut next = 0;
        for gres in self.gres.iter().filter(|gres| gres.name == GPU) {
            if kind.is_empty() || gres.kind == kind {
                gpus.extend(next..next + gres.count);
            }
            next += gres.count;
        }
        if gpus.is_empty() { (0..next).collect() } else { gpus }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gres::parse_list;

    fn node(text: &str) -> NodeConfig {
        let own = |one: GresRequest| Gres { name: one.name, kind: one.kind, count: one.count, ..Gres::default() };
        NodeConfig { gres: parse_list(text).unwrap().into_iter().map(own).collect(), ..NodeConfig::default() }
    }

    /// Jobs take what they ask for, one after the other; `-` is one that finds none.
    fn taken(node: &NodeConfig, jobs: &[&str]) -> Vec<String> {
        let mut used: Vec<GresUnits> = Vec::new();
        let mut told = Vec::new();
        for job in jobs {
            let Some(picked) = node.pick_gres(&used, &parse_list(job).unwrap()) else {
                told.push("-".to_string());
                continue;
            };
            let text = |held: &GresUnits| match held.device {
                Some(device) => format!("{held}@{device}={}", held.units),
                None => format!("{held}={}", held.units),
            };
            told.push(picked.iter().map(text).collect::<Vec<_>>().join(" "));
            used.extend(picked);
        }
        told
    }

    #[test]
    fn several_jobs_have_parts_of_one_gpu_until_it_is_full() {
        let node = node("gpu:2,shard:8");
        let told = taken(&node, &["shard:1", "shard:2", "shard:1", "shard:3", "shard:2", "shard", "shard"]);
        let expected = ["shard:1@0=0", "shard:2@0=1-2", "shard:1@0=3", "shard:3@1=4-6", "-", "shard:1@1=7", "-"];
        assert_eq!(told, expected);
        assert_eq!(taken(&node, &["shard:5"]), ["-"], "what is asked for at once comes from one GPU");
    }

    #[test]
    fn a_gpu_is_given_whole_or_in_parts_of_one_name() {
        let node = node("gpu:2,shard:8,mps:200");
        assert_eq!(taken(&node, &["shard", "gpu", "gpu", "mps"]), ["shard:1@0=0", "gpu:1=1", "-", "-"]);
        assert_eq!(taken(&node, &["gpu", "shard:4", "shard"]), ["gpu:1=0", "shard:4@1=4-7", "-"]);
        let shared = taken(&node, &["shard", "mps:50", "mps:50", "shard", "gpu"]);
        assert_eq!(shared, ["shard:1@0=0", "mps:50@1=100-149", "mps:50@1=150-199", "shard:1@0=1", "-"]);
    }

    #[test]
    fn parts_follow_the_kinds_and_counts_of_the_gpus() {
        let kinds = node("gpu:a:1,gpu:b:1,shard:a:2,shard:b:3");
        assert_eq!(taken(&kinds, &["shard:3", "shard:a:1", "shard:a:2"]), ["shard:b:3@1=2-4", "shard:a:1@0=0", "-"]);
        let mut uneven = node("gpu:2,shard:6");
        uneven.gres[1].parts = vec![1, 5];
        assert_eq!(taken(&uneven, &["shard:2", "shard", "shard:3"]), ["shard:2@1=1-2", "shard:1@0=0", "shard:3@1=3-5"]);
        assert_eq!(taken(&node("gpu:2,shard:3"), &["shard:2", "shard:2"]), ["shard:2@0=0-1", "-"]);
        assert_eq!(taken(&node("shard:4"), &["shard:3", "shard"]), ["shard:3=0-2", "shard:1=3"], "there is no GPU");
    }

    #[test]
    fn who_has_the_node_alone_has_its_gpus_whole_or_the_parts_asked_for() {
        let node = node("gpu:2,shard:8,fpga:1");
        let all = |asked: &str| {
            let all = node.all_gres(&parse_list(asked).unwrap());
            all.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(",")
        };
        assert_eq!(all("none"), "gpu:2,fpga:1");
        assert_eq!(all("shard:3"), "fpga:1,shard:3");
        assert_eq!(gpus_of(&node.pick_gres(&[], &node.all_gres(&[])).unwrap()), [0, 1]);
    }

    #[test]
    fn parts_of_mps_are_so_much_of_a_gpu() {
        let node = node("gpu:2,mps:400,shard:4");
        let percentage = |job: &str| thread_percentage(&node.pick_gres(&[], &parse_list(job).unwrap()).unwrap());
        assert_eq!([percentage("mps:50"), percentage("shard:1"), percentage("gpu:1")], [Some(25), None, None]);
    }

    #[test]
    fn what_is_only_for_those_who_ask_does_not_come_with_the_whole_node() {
        let mut node = node("gpu:2,fpga:4");
        node.gres[1].is_explicit = true;
        let all = |asked: &str| {
            let all = node.all_gres(&parse_list(asked).unwrap());
            all.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(",")
        };
        assert_eq!(all("none"), "gpu:2");
        assert_eq!(all("fpga:1"), "gpu:2,fpga:1");
        assert_eq!(all("gpu:1"), "gpu:2");
    }
}
