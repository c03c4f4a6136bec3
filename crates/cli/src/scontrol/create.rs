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
            Ok(Wish { command, what: What::Reservation })
        }
        Some(Entity::Partition) => {
            let (name, fields) = update::partition_fields(words)?;
            match name.as_str() {
                "" => Err(vec!["PartitionName must be given.".into()]),
                _ => Ok(Wish { command: Command::CreatePartition { name, fields }, what: What::Partition }),
            }
        }
        Some(Entity::Node) => {
            Err(vec!["scontrol: error: Nodes are added in the configuration, then scontrol reconfigure".into()])
        }
        None => Err(vec![
            "scontrol: error: No valid entity in create command".into(),
            "scontrol: error: Input line must include \"NodeName\", \"PartitionName\", or \"ReservationName\"".into(),
        ]),
    }
}

pub fn delete(words: &[String]) -> Result<Vec<Wish>, Lines> {
    let no_entity = || {
        vec![
            "scontrol: error: No valid entity in delete command".to_string(),
            "scontrol: error: Input line must include \"NodeName\", \"PartitionName\", or \"ReservationName\"".into(),
        ]
    };
    let pairs: Vec<(&str, &str)> = words
        .iter()
        .map(|word| word.split_once('=').map_or((word.as_str(), ""), |(key, value)| (key, unquote(value))))
        .collect();
    // `delete reservation NAME` as well as `delete reservation=NAME`.
    let (kind, names) = match pairs[..] {
        [(key, ""), (name, ""), ..] if entity(key).is_some() => (entity(key), name),
        _ => match pairs.iter().find(|(key, _)| entity(key).is_some()) {
            Some((key, value)) => (entity(key), *value),
            None => return Err(no_entity()),
        },
    };
    let names = names.split(',').filter(|name| !name.is_empty()).map(str::to_string);
    let wish = |name: String| match kind {
        Some(Entity::Reservation) => {
            Ok(Wish { command: Command::DeleteReservation { name }, what: What::GoneReservation })
        }
        Some(Entity::Partition) => Ok(Wish { command: Command::DeletePartition { name }, what: What::GonePartition }),
        Some(Entity::Node) | None => {
            Err(vec!["scontrol: error: Nodes are taken away in the configuration, then scontrol reconfigure".into()])
        }
    };
    let wishes: Vec<Wish> = names.map(wish).collect::<Result<_, Lines>>()?;
    if wishes.is_empty() { Err(no_entity()) } else { Ok(wishes) }
}

impl Wish {
    /// What the user reads.
    pub fn told(&self, answer: Result<model::Reply, &Reject>) -> Reply {
        match (answer, self.what) {
            (Ok(model::Reply::ReservationCreated(name)), _) => Reply::text(format!("Reservation created: {name}\n")),
            (Ok(_), _) => Reply::default(),
            (Err(reject), what) => Reply::failed(&format!("{}: {reject}", what.failure())),
        }
    }
}

impl What {
    fn failure(self) -> &'static str {
        match self {
            What::Reservation => "Error creating the reservation",
            What::Partition => "Error creating the partition",
            What::GoneReservation | What::GonePartition => "slurm_delete error",
        }
    }
}
