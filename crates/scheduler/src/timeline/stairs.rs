//! How many CPUs of a node are free from now on, and for how long: fewer the further the future reaches.
use super::{Free, Slot, Use, Uses};

#[derive(Clone, Default)]
pub(crate) struct Stairs {
    /// So many are free until then, and fewer from then on.
    pub steps: Vec<(Slot, u32)>,
    /// So many are free for ever.
    pub for_ever: u32,
}

impl Stairs {
    /// Who holds the node is asked only where something is promised.
    pub fn of<'s>(promised: &'s [Use], uses: impl Fn() -> Uses<'s>, whole: Free, now_cpus: u32) -> Stairs {
        let mut begins: Vec<Slot> = promised.iter().map(|one| one.interval.from).collect();
        begins.sort_unstable();
        begins.dedup();
        let mut stairs = Stairs { steps: Vec::new(), for_ever: now_cpus };
        for begin in begins {
            let level = uses().free_at(whole, begin).cpus;
            if level < stairs.for_ever {
                stairs.steps.push((begin, stairs.for_ever));
                stairs.for_ever = level;
            }
        }
        stairs
    }

    /// The step that a job of this end stands on; none if it needs to look at what is free for ever.
    pub fn step_for(&self, until: Slot) -> Option<(Slot, u32)> {
        self.steps.iter().copied().find(|(end, _)| *end >= until)
    }
}
