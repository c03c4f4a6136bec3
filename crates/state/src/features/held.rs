//! Held jobs wait until they are released.
use model::HeldBy;

use super::*;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    let (true, Some(by)) = (is_pending(job), job.held) else { return Hold::Free };
    let reason = match by {
        HeldBy::User | HeldBy::Requeue | HeldBy::SpecialExit => Reason::JobHeldUser,
        HeldBy::Admin => Reason::JobHeldAdmin,
        HeldBy::LaunchFailed => Reason::JobHeldUser,
        HeldBy::MaxRequeue => Reason::JobHoldMaxRequeue,
        HeldBy::BurstBuffer => Reason::BurstBufferOperation,
        HeldBy::ReservationGone => Reason::ReservationDeleted,
    };
    let mut wakes = dependency::all_wakes(cluster, job);
    wakes.push(Wake::Released(job.id));
    Hold::Wait(Some(reason), wakes)
}
