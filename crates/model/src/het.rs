//! Heterogeneous jobs: several jobs that are one to their user. They start together, and one that ends ends all.
use std::fmt::Write;

use crate::{JobId, StepId};

/// As many components as Slurm takes.
pub const MAX_COMPONENTS: usize = 128;

record! {
    /// The place of one component in its whole.
    pub struct HetPlace {
        /// The first component; its id names the whole.
        pub leader: JobId,
        /// `ID+offset`
        pub offset: u32,
        /// All components in their order.
        pub ids: Vec<JobId>,
    }

    /// One part of a step that spans several components.
    pub struct StepPart {
        pub job: JobId,
        pub step: StepId,
    }
}

impl HetPlace {
    pub fn is_leader(&self) -> bool {
        self.offset == 0
    }

    /// `3-5,9`: what `HetJobIdSet` shows.
    pub fn id_set(&self) -> String {
        let mut ids: Vec<u32> = self.ids.iter().map(|id| id.0).collect();
        ids.sort_unstable();
        let mut text = String::new();
        for run in ids.chunk_by(|before, after| before + 1 == *after) {
            let comma = if text.is_empty() { "" } else { "," };
            match run {
                [one] => write!(text, "{comma}{one}"),
                [first, .., last] => write!(text, "{comma}{first}-{last}"),
                [] => Ok(()),
            }
            .expect("a String takes everything");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_follow_each_other_are_a_range() {
        let set = |ids: &[u32]| HetPlace { ids: ids.iter().map(|id| JobId(*id)).collect(), ..Default::default() };
        assert_eq!(set(&[3, 4]).id_set(), "3-4");
        assert_eq!(set(&[3, 4, 5, 9]).id_set(), "3-5,9");
        assert_eq!(set(&[7]).id_set(), "7");
    }
}
