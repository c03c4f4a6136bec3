//! Reservations: what is shown of them, and whether the users and groups they name exist.
use std::sync::Arc;

use bytes::Bytes;
use model::reservation::Members;
use model::reservation_field::Field;
use model::{Command, Reject, Reservation, codec};
use state::Cluster;
use tonic::{Request, Status};
use wire::accounts;
use wire::pages::in_batches;
use wire::proto::{CommandRequest, ReservationsReply};
use wire::refusal::to_status;

use super::privacy::Reader;
use super::read;

/// Reservations are looked up so many at a time.
const BATCH: usize = 64;

/// What is told besides, and the reservations, each encoded when it is asked for.
pub fn all(cluster: Arc<Cluster>, reader: Reader) -> (ReservationsReply, impl Iterator<Item = Bytes> + Send) {
    let first = ReservationsReply { now_micros: cluster.now().0, ..Default::default() };
    let judged = cluster.clone();
    let after = move |last: Option<&Arc<Reservation>>| {
        cluster.reservations_after(last.map(|last| last.name.clone()), BATCH).cloned().collect()
    };
    let seen = in_batches(after).filter(move |one| reader.may_see_reservation(&judged, one));
    (first, seen.map(|one| codec::encode(&*one).into()))
}

/// The state knows no user database, so names are looked up here.
pub fn check_names(request: &Request<CommandRequest>) -> Result<(), Status> {
    let command: Command = read(&request.get_ref().command)?;
    let (Command::CreateReservation { fields, .. } | Command::UpdateReservation { fields, .. }) = command else {
        return Ok(());
    };
    let are_known =
        |members: &Members, look_up: fn(&str) -> Option<u32>| members.names.iter().all(|name| look_up(name).is_some());
    for field in &fields {
        match field {
            Field::Users(change) if !are_known(change.members(), accounts::uid_of) => {
                return Err(to_status(&Reject::NoSuchUser));
            }
            Field::Groups(change) if !are_known(change.members(), accounts::gid_of) => {
                return Err(to_status(&Reject::NoSuchGroup));
            }
            _ => (),
        }
    }
    Ok(())
}
