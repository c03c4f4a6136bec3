//! Devices asked for in all (`--gpus`), shared out over nodes that may give different numbers of them.
use std::borrow::Cow;
use std::cmp::Reverse;

use crate::fit::Room;
use crate::gres::{GresRequest, GresUnits};
use crate::node::NodeConfig;
use crate::spec::Size;

/// A node that could give some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Giver {
    /// The job named it.
    pub is_required: bool,
    /// The most it could give of each request of the total.
    pub most: Vec<u32>,
    /// The tasks it could take.
    pub n_tasks: u32,
}

impl Size {
    /// What is asked of a node that gives this part of the total.
    pub fn on_node(&self, part: &[GresRequest]) -> Cow<'_, Size> {
        if self.gres_total.is_empty() {
            return Cow::Borrowed(self);
        }
        let gres = self.gres.iter().chain(part).cloned().collect();
        Cow::Owned(Size { gres, gres_total: Vec::new(), ..self.clone() })
    }

    /// What a node can give at most; none if it can give nothing. `n_tasks` says how many tasks it takes beside such a part.
    pub fn giver(&self, is_required: bool, n_tasks: impl Fn(&Size) -> Option<u32>) -> Option<Giver> {
        let most: Vec<u32> = self.gres_total.iter().map(|unit| most(self, unit, &n_tasks)).collect();
        if most.iter().all(|count| *count == 0) {
            return None;
        }
        let one = self.gres_total.iter().zip(&most).find(|(_, most)| **most > 0);
        let least = one.map(|(unit, _)| GresRequest { count: 1, ..unit.clone() });
        Some(Giver { is_required, most, n_tasks: n_tasks(&self.on_node(least.as_slice()))? })
    }

    /// As `giver`, of a node with `room` where `in_use` is taken of its devices.
    pub fn giver_with(&self, is_required: bool, room: Room, node: &NodeConfig, in_use: &[GresUnits]) -> Option<Giver> {
        self.giver(is_required, |size| {
            let fits = node.pick_gres(in_use, &size.gres).is_some();
            size.n_tasks_fitting(room, node, in_use).filter(|_| fits)
        })
    }

    /// Which of the givers (in natural order of nodes) give how much, each at least one; finds the fewest that will do.
    pub fn share_out(&self, (min, max): (u32, u32), givers: &[Giver]) -> Option<Vec<(usize, Vec<GresRequest>)>> {
        let total: u32 = self.gres_total.iter().map(|unit| unit.count).sum();
        let wanted = self.n_nodes_wanted((min, max)).min(total.max(min)) as usize;
        let n_required = givers.iter().filter(|giver| giver.is_required).count();
        if n_required < self.nodes.len() {
            return None;
        }
        let mut order: Vec<usize> = (0..givers.len()).collect();
        order.sort_by_key(|at| (!givers[*at].is_required, Reverse(givers[*at].most.iter().sum::<u32>()), *at));
        let mut chosen: Vec<usize> = Vec::new();
        let is_enough = |chosen: &[usize]| {
            let gives = |kind: usize| chosen.iter().map(|at| u64::from(givers[*at].most[kind])).sum::<u64>();
            let n_tasks: u64 = chosen.iter().map(|at| u64::from(givers[*at].n_tasks)).sum();
            chosen.len() >= wanted.max(n_required)
                && self.gres_total.iter().enumerate().all(|(kind, unit)| gives(kind) >= u64::from(unit.count))
                && self.n_tasks.is_none_or(|tasks| u64::from(tasks) <= n_tasks)
        };
        for at in order {
            if is_enough(&chosen) || chosen.len() >= max as usize {
                break;
            }
            chosen.push(at);
        }
        if chosen.len() < min as usize || !is_enough(&chosen) {
            return None;
        }
        chosen.sort_unstable();
        let parts = self.parts(chosen.iter().map(|at| &givers[*at].most[..]).collect())?;
        Some(chosen.into_iter().zip(parts).collect())
    }

    /// One each, then the first nodes are filled.
    fn parts(&self, most: Vec<&[u32]>) -> Option<Vec<Vec<GresRequest>>> {
        let mut left: Vec<u32> = self.gres_total.iter().map(|unit| unit.count).collect();
        let mut given = vec![vec![0; left.len()]; most.len()];
        for (given, most) in given.iter_mut().zip(&most) {
            let kind = (0..left.len()).find(|kind| left[*kind] > 0 && most[*kind] > 0)?;
            (given[kind], left[kind]) = (1, left[kind] - 1);
        }
        for (given, most) in given.iter_mut().zip(&most) {
            for kind in 0..left.len() {
                let more = left[kind].min(most[kind] - given[kind]);
                given[kind] += more;
                left[kind] -= more;
            }
        }
        let part = |given: Vec<u32>| {
            let units = self.gres_total.iter().zip(given).filter(|(_, count)| *count > 0);
            units.map(|(unit, count)| GresRequest { count, ..unit.clone() }).collect()
        };
        left.iter().all(|left| *left == 0).then(|| given.into_iter().map(part).collect())
    }

    /// These parts are the whole, with something on each node.
    pub fn is_shared_out_by<'g>(&self, parts: impl Iterator<Item = &'g [GresRequest]> + Clone) -> bool {
        let count = |wanted: &GresRequest| -> u64 {
            let same = |unit: &&GresRequest| (&unit.name, &unit.kind) == (&wanted.name, &wanted.kind);
            parts.clone().flatten().filter(same).map(|unit| u64::from(unit.count)).sum()
        };
        let is_asked = |unit: &GresRequest| {
            self.gres_total.iter().any(|wanted| (&unit.name, &unit.kind) == (&wanted.name, &wanted.kind))
        };
        self.gres_total.iter().all(|wanted| count(wanted) == u64::from(wanted.count))
            && parts.clone().flatten().all(is_asked)
            && (self.gres_total.is_empty() || parts.clone().all(|part| part.iter().any(|unit| unit.count > 0)))
    }
}

fn most(size: &Size, unit: &GresRequest, n_tasks: &impl Fn(&Size) -> Option<u32>) -> u32 {
    let gives = |count: u32| n_tasks(&size.on_node(&[GresRequest { count, ..unit.clone() }])).is_some();
    if gives(unit.count) {
        return unit.count;
    }
    let (mut enough, mut too_many) = (0, unit.count);
    while enough + 1 < too_many {
        let middle = enough.midpoint(too_many);
        match gives(middle) {
            true => enough = middle,
            false => too_many = middle,
        }
    }
    enough
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus(text: &str) -> Vec<GresRequest> {
        crate::gres::parse_list(text).unwrap()
    }

    fn shared(size: &Size, most: &[u32]) -> Option<Vec<(usize, u32)>> {
        let giver = |most: &u32| Giver { is_required: false, most: vec![*most], n_tasks: 4 };
        let givers: Vec<Giver> = most.iter().map(giver).collect();
        let parts = size.share_out(size.node_bounds(), &givers)?;
        let count = |part: &[GresRequest]| part.iter().map(|unit| unit.count).sum();
        assert!(size.is_shared_out_by(parts.iter().map(|(_, part)| &part[..])));
        Some(parts.iter().map(|(at, part)| (*at, count(part))).collect())
    }

    #[test]
    fn a_total_is_shared_out_over_as_few_nodes_as_will_do() {
        let size = |total: u32, min_nodes, max_nodes| Size {
            min_nodes,
            max_nodes,
            gres_total: gpus(&format!("gpu:{total}")),
            ..Default::default()
        };
        assert_eq!(shared(&size(3, 1, None), &[2, 4, 4]), Some(vec![(1, 3)]));
        assert_eq!(shared(&size(5, 1, None), &[2, 4, 2]), Some(vec![(0, 2), (1, 3)]));
        assert_eq!(shared(&size(3, 2, Some(2)), &[2, 2]), Some(vec![(0, 2), (1, 1)]));
        assert_eq!(shared(&size(3, 2, Some(2)), &[1, 1, 1]), None);
        assert_eq!(shared(&size(9, 1, None), &[2, 4, 2]), None);
    }

    #[test]
    fn cpus_for_each_gpu_bound_what_a_node_gives() {
        let gres = crate::gres::Gres { name: "gpu".into(), count: 4, ..Default::default() };
        let node = NodeConfig { cpus: 8, memory_mb: 1000, gres: vec![gres], ..Default::default() };
        let size = Size { gres_total: gpus("gpu:6"), cpus_per_gpu: Some(3), ..Default::default() };
        let giver = size.giver_with(false, node.room(), &node, &[]).unwrap();
        assert_eq!(giver.most, [2]);
        let bare = NodeConfig { gres: Vec::new(), ..node };
        assert_eq!(size.giver_with(false, bare.room(), &bare, &[]), None);
    }
}
