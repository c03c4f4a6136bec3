//! Requests that have found no place in this pass. Room only gets less while a plan is made, so they need not be tried again.
use std::collections::BTreeMap;

use model::spec::Size;

use crate::request::Request;
use crate::room::PoolId;
use crate::timeline::{Length, Slot};

#[derive(Default)]
pub(crate) struct Failed<'a> {
    by_shape: BTreeMap<Shape, Vec<Failure<'a>>>,
}

struct Failure<'a> {
    size: &'a Size,
    length: Length,
    /// No such job can start before this mark.
    earliest: Slot,
}

/// What tells jobs apart besides their size: the user where some want to be alone, and the nodes that are closed to them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seeker {
    pub pool: PoolId,
    pub uid: Option<u32>,
    pub closed: Vec<u32>,
    /// Until when it waits for few switches, and for a low one.
    pub limit_until: Slot,
    pub level: Option<(u32, Slot)>,
}

/// The numbers in which requests differ most; the rest is compared one by one.
type Shape = (Seeker, u32, Option<u32>, Option<u32>, Option<u32>);

/// More of one shape than this are not worth remembering.
const N_OF_A_SHAPE: usize = 32;

fn shape(seeker: &Seeker, size: &Size) -> Shape {
    (seeker.clone(), size.min_nodes, size.n_tasks, size.tasks_per_node, size.cpus_per_task)
}

impl<'a> Failed<'a> {
    /// Before this mark the request need not be tried: one that asked for the same, and for no longer, has failed.
    pub fn earliest(&self, seeker: &Seeker, request: &Request) -> Slot {
        let known = self.by_shape.get(&shape(seeker, request.size)).into_iter().flatten();
        let alike = known.filter(|known| request.length.is_at_least(known.length) && known.size == request.size);
        alike.map(|known| known.earliest).max().unwrap_or(Slot::NOW)
    }

    pub fn remember(&mut self, seeker: &Seeker, request: &Request<'a>, earliest: Slot) {
        // What else it waits for is not part of the size.
        if !request.counts.is_empty() {
            return;
        }
        let known = self.by_shape.entry(shape(seeker, request.size)).or_default();
        let same = known.iter().position(|known| known.length == request.length && known.size == request.size);
        match same {
            Some(at) => known[at].earliest = known[at].earliest.max(earliest),
            None if known.len() < N_OF_A_SHAPE => {
                known.push(Failure { size: request.size, length: request.length, earliest });
            }
            None => (),
        }
    }
}
