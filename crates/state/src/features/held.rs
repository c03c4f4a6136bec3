//! Held jobs wait until they are released.
use model::HeldBy;

use super::*;

pub(super) fn hold(_: &Cluster, job: &Job) -> Hold {
    let (true, Some(by)) = (is_pending(job), job.held) else { return Hold::Free };
    let reason = match by {
        HeldBy::User => Reason::JobHeldUser,
        HeldBy::Admin => Reason::JobHeldAdmin,
        HeldBy::MaxRequeue => Reason::JobHoldMaxRequeue,
    };
    Hold::Wait(Some(reason), vec![Wake::Released(job.id)])
}
