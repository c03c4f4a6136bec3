//! Reservations: what is shown of them, and whether the users and groups they name exist.
use model::reservation::Members;
use model::reservation_field::Field;
use model::{Command, Reject, codec};
use state::Cluster;
use tonic::{Request, Status};
use wire::accounts;
use wire::proto::{CommandRequest, ReservationsReply};
use wire::refusal::to_status;

use super::privacy::Reader;
use super::read;

pub fn all(cluster: &Cluster, reader: &Reader) -> ReservationsReply {
    let seen = cluster.reservations().filter(|one| reader.may_see_reservation(cluster, one));
    let reservations = seen.map(|one| codec::encode(&**one).into()).collect();
    ReservationsReply { reservations, now_micros: cluster.now().0 }
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
