//! What the size of a job, or of a segment, asks of the blocks.
use super::Blocks;

/// Where so many nodes may be: in one group of `group`, on at most `most_subs` of its parts of level `sub`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// None: all blocks together are the group.
    pub group: Option<u32>,
    pub sub: u32,
    pub most_subs: u32,
}

impl Blocks {
    pub(crate) fn extent(&self, n: u32) -> Extent {
        let level = doublings(n.div_ceil(self.base).max(1));
        let group = self.levels.iter().copied().find(|enabled| *enabled >= level);
        let sub = self.levels.iter().copied().rfind(|enabled| *enabled < level).unwrap_or(0);
        let sub_size = u64::from(self.base) << sub;
        Extent { group, sub, most_subs: u64::from(n).div_ceil(sub_size) as u32 }
    }

    /// The smallest group that holds a job of such segments as a whole.
    pub(crate) fn group_for(&self, n_segments: u32, segment: u32, spreads: bool) -> Option<u32> {
        let n_blocks = match spreads {
            true => n_segments * segment.div_ceil(self.base),
            false => (n_segments * segment).div_ceil(self.base),
        };
        let level = doublings(n_blocks.max(1));
        self.levels.iter().copied().find(|enabled| *enabled >= level)
    }
}

/// How often 1 must be doubled to be at least `n`.
fn doublings(n: u32) -> u32 {
    n.next_power_of_two().ilog2()
}
