//! Requests that have found no place in this pass. Room only gets less while a plan is made, so they need not be tried again.
use std::collections::BTreeMap;

use model::spec::Size;

use crate::room::PoolId;

#[derive(Default)]
pub(crate) struct Failed<'a> {
    by_shape: BTreeMap<Shape, Vec<&'a Size>>,
}

/// The numbers in which requests differ most; the rest is compared one by one.
type Shape = (PoolId, Option<u32>, u32, Option<u32>, Option<u32>, Option<u32>);

/// More of one shape than this are not worth remembering.
const N_OF_A_SHAPE: usize = 32;

fn shape(pool: PoolId, seeker: Option<u32>, size: &Size) -> Shape {
    (pool, seeker, size.min_nodes, size.n_tasks, size.tasks_per_node, size.cpus_per_task)
}

impl<'a> Failed<'a> {
    pub fn is_known(&self, pool: PoolId, seeker: Option<u32>, size: &Size) -> bool {
        self.by_shape.get(&shape(pool, seeker, size)).is_some_and(|sizes| sizes.contains(&size))
    }

    pub fn remember(&mut self, pool: PoolId, seeker: Option<u32>, size: &'a Size) {
        let sizes = self.by_shape.entry(shape(pool, seeker, size)).or_default();
        if sizes.len() < N_OF_A_SHAPE {
            sizes.push(size);
        }
    }
}
