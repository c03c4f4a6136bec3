//! `scontrol create` and `scontrol delete`: which thing, before anything is sent, and what is said of the answer.
use model::{Command, Reject};

use super::Reply;
use super::reservation::{self, Said};
use super::update::{self, Lines, unquote};
use super::update_job::{Now, is_short_for};

/// What is to come or to go, and how failures begin.
#[derive(Debug, PartialEq)]
pub struct Wish {
    pub command: Command,
    what: What,
    /// What is to go, as it was said: `reservation=r1`.
    said: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Reservation,
    Partition,
    GoneReservation,
    GonePartition,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Entity {
    Node,
    Partition,
    Reservation,
}

fn entity(key: &str) -> Option<Entity> {
    match key {
        _ if is_short_for(key, "NodeName", 3) => Some(Entity::Node),
        _ if is_short_for(key, "PartitionName", 3) => Some(Entity::Partition),
        _ if is_short_for(key, "ReservationName", 3) => Some(Entity::Reservation),
        _ => None,
    }
}

pub fn create(words: &[String], now: &Now, utc_offset_secs: i32) -> Result<Wish, Lines> {
    let key = |word: &String| word.split_once('=').map_or(word.as_str(), |(key, _)| key).to_string();
    match words.iter().find_map(|word| entity(&key(word))) {
        Some(Entity::Reservation) => {
            let Said { name, fields } = reservation::create(words, now)?;
            let command = Command::CreateReservation { name, fields, utc_offset_secs };
            Ok(Wish { command, what: What::Reservation, said: String::new() })
        }
        Some(Entity::Partition) => {
            let (name, fields) = update::partition_fields(words)?;
            match name.as_str() {
                "" => Err(vec!["PartitionName must be given.".into()]),
                _ => {
                    let command = Command::CreatePartition { name, fields };
                    Ok(Wish { command, what: What::Partition, said: String::new() })
                }
            }
        }
        Some(Entity::Node) => {
            Err(vec!["scontrol: error: Nodes are added in the configuration, then scontrol reconfigure".into()])
        }
        None => Err(vec![match words.first() {
            None => "too few arguments for create keyword".into(),
            Some(word) => format!("scontrol: error: Invalid creation entity: {word}"),
        }]),
    }
}

pub fn delete(words: &[String]) -> Result<Vec<Wish>, Lines> {
    let Some(first) = words.first() else { return Err(vec!["too few arguments for delete keyword".into()]) };
    let no_entity = || vec![format!("Invalid deletion entity: {first}")];
    let pairs: Vec<(&str, &str)> = words
        .iter()
        .map(|word| word.split_once('=').map_or((word.as_str(), ""), |(key, value)| (key, unquote(value))))
        .collect();
    // `delete reservation NAME` as well as `delete reservation=NAME`.
    let (key, names) = match pairs[..] {
        [(key, ""), (name, ""), ..] if entity(key).is_some() => (key, name),
        _ => match pairs.iter().find(|(key, _)| entity(key).is_some()) {
            Some((key, value)) => (*key, *value),
            None => return Err(no_entity()),
        },
    };
    let kind = entity(key);
    let names = names.split(',').filter(|name| !name.is_empty()).map(str::to_string);
    let said = |name: &str| format!("{key}={name}");
    let wish = |name: String| match kind {
        Some(Entity::Reservation) => {
            let said = said(&name);
            Ok(Wish { command: Command::DeleteReservation { name }, what: What::GoneReservation, said })
        }
        Some(Entity::Partition) => {
            let said = said(&name);
            Ok(Wish { command: Command::DeletePartition { name }, what: What::GonePartition, said })
        }
        Some(Entity::Node) | None => {
            Err(vec!["scontrol: error: Nodes are taken away in the configuration, then scontrol reconfigure".into()])
        }
    };
    let wishes: Vec<Wish> = names.map(wish).collect::<Result<_, Lines>>()?;
    let format = "scontrol: error: Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'";
    if wishes.is_empty() { Err(vec![format.into()]) } else { Ok(wishes) }
}

impl Wish {
    /// What the user reads.
    pub fn told(&self, answer: Result<model::Reply, &Reject>) -> Reply {
        match answer {
            Ok(model::Reply::ReservationCreated(name)) => Reply::text(format!("Reservation created: {name}\n")),
            Ok(_) => Reply::default(),
            Err(Reject::NotPermitted) => self.failed("Invalid user id"),
            Err(reject) => self.failed(&reject.to_string()),
        }
    }

    fn failed(&self, why: &str) -> Reply {
        let said = &self.said;
        Reply::failed(&match self.what {
            What::Reservation => format!("Error creating the reservation: {why}"),
            What::Partition => format!("Error creating the partition: {why}"),
            What::GoneReservation => format!("delete_reservation {said}: {why}"),
            What::GonePartition => format!("delete_partition {said}: {why}"),
        })
    }
}
