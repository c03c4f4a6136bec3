//! Blocks: an ordered list, of which 1, 2, 4, … neighbours make larger ones.
mod counts;
mod pick;
mod richest;
mod sizes;
mod tasks;

use std::ops::Range;

use model::NodeName;
use model::topology::Topology;

#[derive(Debug, Default)]
pub struct Blocks {
    /// The base blocks, in the order of the configuration.
    pub list: Vec<Block>,
    /// The planning size of a base block.
    pub base: u32,
    /// Groups of 2^level base blocks are used, for these levels; 0 is always the first.
    pub levels: Vec<u32>,
    block_of: Vec<Option<u32>>,
}

#[derive(Debug, Default)]
pub struct Block {
    pub name: String,
    pub nodes: Vec<u32>,
}

impl Blocks {
    pub(crate) fn new(topology: &Topology, n_nodes: usize, find: &dyn Fn(&NodeName) -> Option<u32>) -> Self {
        let mut list: Vec<Block> = Vec::new();
        for block in &topology.blocks {
            list.push(Block { name: block.name.clone(), nodes: block.nodes.iter().filter_map(find).collect() });
        }
        if topology.cut > 0 {
            let all: Vec<u32> = (0..n_nodes as u32).collect();
            let cut = all.chunks(topology.cut as usize).enumerate();
            list.extend(cut.map(|(at, nodes)| Block { name: format!("block{at:03}"), nodes: nodes.to_vec() }));
        }
        let first = list.first().map_or(1, |block| block.nodes.len() as u32).max(1);
        let sizes = match topology.block_sizes.is_empty() {
            true => (0..5).map(|level| first << level).collect(),
            false => topology.block_sizes.clone(),
        };
        let base = sizes[0].max(1);
        let mut levels: Vec<u32> = sizes.iter().filter_map(|size| level_of(*size, base)).chain([0]).collect();
        levels.sort_unstable();
        levels.dedup();
        let mut block_of = vec![None; n_nodes];
        for (at, block) in list.iter().enumerate() {
            for node in &block.nodes {
                block_of[*node as usize].get_or_insert(at as u32);
            }
        }
        Blocks { list, base, levels, block_of }
    }

    /// The base block that a node is in.
    pub fn block_of(&self, node: u32) -> Option<u32> {
        self.block_of.get(node as usize).copied().flatten()
    }

    /// The base blocks of each group of a level; without a level all are one group.
    pub(crate) fn groups(&self, level: Option<u32>) -> Vec<Range<usize>> {
        let size = match level {
            Some(level) => 1usize << level.min(31),
            None => self.list.len().max(1),
        };
        let starts = (0..self.list.len()).step_by(size);
        starts.map(|start| start..(start + size).min(self.list.len())).collect()
    }

    /// The groups of a level that are within these blocks; one that is larger than they are is cut down to them.
    fn groups_within(&self, level: Option<u32>, within: Range<usize>) -> Vec<Range<usize>> {
        let mut groups = self.groups(level);
        groups.retain(|group| within.start <= group.start && group.end <= within.end);
        if groups.is_empty() { vec![within] } else { groups }
    }

    /// The nodes of a group.
    pub fn nodes_of(&self, group: Range<usize>) -> Vec<u32> {
        let mut nodes: Vec<u32> = self.list[group].iter().flat_map(|block| block.nodes.iter().copied()).collect();
        nodes.sort_unstable();
        nodes
    }

    /// The groups that are larger than a base block, by level, as they are shown; one with no more blocks than its first part
    /// is not.
    pub fn aggregates(&self) -> Vec<(u32, Range<usize>)> {
        let mut found = Vec::new();
        let mut below = 0;
        for level in self.levels.iter().copied().filter(|level| *level > 0) {
            let part = 1usize << below;
            let groups = self.groups(Some(level)).into_iter().filter(|group| group.len() > part);
            found.extend(groups.map(|group| (level, group)));
            below = level;
        }
        found
    }
}

/// How often the base is doubled to give the size.
pub fn level_of(size: u32, base: u32) -> Option<u32> {
    (0..=15).find(|level| u64::from(base) << level == u64::from(size))
}
