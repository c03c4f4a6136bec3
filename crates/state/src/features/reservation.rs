//! `--reservation`: only while it is the time of one of them.
use model::Reservation;
use model::reservation::Flag;

use super::*;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    let wanted = &job.spec.reservations;
    if !is_pending(job) || wanted.is_empty() {
        return Hold::Free;
    }
    let mut wakes: Vec<Wake> = wanted.iter().map(|name| Wake::Reservation(name.clone())).collect();
    let known: Vec<&Reservation> =
        wanted.iter().filter_map(|name| cluster.reservations.get(name)).map(|one| &**one).collect();
    if known.is_empty() {
        return Hold::Wait(Some(Reason::ReservationDeleted), wakes);
    }
    let open = known.iter().filter(|one| one.admits(&job.spec));
    let until = |one: &&&Reservation| match one.has(Flag::Flex) {
        true => Some(None),
        false => one.is_active(cluster.now).then_some(Some(one.end)),
    };
    if let Some(until) = open.filter_map(|one| until(&one)).max_by_key(|until| until.unwrap_or(Timestamp(u64::MAX))) {
        return until.map_or(Hold::Free, Hold::FreeUntil);
    }
    let starts = known.iter().map(|one| one.start).filter(|start| cluster.now < *start);
    wakes.extend(starts.min().map(Wake::At));
    Hold::Wait(Some(Reason::Reservation), wakes)
}

/// Whatever a job waits for, what becomes of its reservations concerns it.
pub(crate) fn changes(job: &Job) -> Vec<Wake> {
    match is_pending(job) {
        true => job.spec.reservations.iter().map(|name| Wake::Reservation(name.clone())).collect(),
        false => Vec::new(),
    }
}
