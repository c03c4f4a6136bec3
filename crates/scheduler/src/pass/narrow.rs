//! Jobs that can do with fewer nodes (`-N2-8`) get as many as the limits of their accounts leave them.
use model::plan::Grant;
use model::spec::Size;

use super::Pass;
use crate::pick::{self, Offer};
use crate::request::Request;
use crate::room::PoolId;
use crate::timeline::Slot;

impl<'a> Pass<'a> {
    /// The most nodes that break no limit, where those that were found do; none if the job needs so many, or the limit is another.
    pub(super) fn within_fewer(&mut self, pool: PoolId, request: &Request<'a>, found: &[Grant]) -> Option<Vec<Grant>> {
        request.size.max_nodes?;
        let partition = self.room.partition(pool);
        let (mut least, _) = pick::bounds(&self.room, pool, request.job, request.size)?;
        let mut most = (found.len() as u32).saturating_sub(1);
        let until = self.clock.interval(Slot::NOW, request.length).until;
        let mut best = None;
        while least <= most {
            let middle = least + (most - least).div_ceil(2);
            let size = Size { max_nodes: Some(middle), ..request.size.clone() };
            let grants = pick::pick(&Offer::now(&self.room, pool, until, request).with_size(&size));
            let allowed = grants.filter(|grants| {
                grants.len() as u32 <= middle
                    && self.allowance.refusal_of(request.job, partition, grants, None).is_none()
            });
            match allowed {
                Some(grants) => {
                    least = middle + 1;
                    best = Some(grants);
                }
                None => most = middle - 1,
            }
        }
        if best.is_some() {
            self.refused = None;
        }
        best
    }
}
