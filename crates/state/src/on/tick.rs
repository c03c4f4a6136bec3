//! Time has passed.
use model::{Reply, Timestamp, Wake};

use super::Answer;
use crate::settle::wake;
use crate::{Cluster, accrual, fair_share, gang, limits, plan_due, reboots, reservations, triggers};

pub(crate) fn tick(cluster: &mut Cluster) -> Answer {
    let due: Vec<Timestamp> = cluster
        .waiters
        .iter()
        .map_while(|(wake, _)| match wake {
            Wake::At(at) if *at <= cluster.now => Some(*at),
            _ => None,
        })
        .collect();
    for at in due {
        wake(cluster, Wake::At(at));
    }
    reservations::tick(cluster);
    gang::tick(cluster);
    reboots::tick(cluster);
    fair_share::tick(cluster);
    limits::minutes::tick(cluster);
    triggers::tick(cluster);
    accrual::tick(cluster);
    plan_due::tick(cluster);
    Ok(Reply::Ok)
}
