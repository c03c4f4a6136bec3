//! `scontrol create` and `scontrol delete`: which thing, before anything is sent, and what is said of the answer.
use model::update::NodeChange;
use model::{Command, NodeName, Reject, hostlist};

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
    Nodes,
    GoneReservation,
    GonePartition,
    GoneNode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entity {
    Node,
    Partition,
    Reservation,
}

/// What can be made and deleted, each with the fewest letters that name it.
pub const ENTITIES: &[(&str, usize, Entity)] = &[
    ("NodeName", 3, Entity::Node),
    ("PartitionName", 3, Entity::Partition),
    ("ReservationName", 3, Entity::Reservation),
];

pub fn entity(key: &str) -> Option<Entity> {
    ENTITIES.iter().find(|(name, least, _)| is_short_for(key, name, *least)).map(|(.., entity)| *entity)
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
        Some(Entity::Node) => create_nodes(words),
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
    let said = |name: &str| format!("{key}={name}");
    if kind == Some(Entity::Node) {
        return delete_nodes(names, said);
    }
    let names = names.split(',').filter(|name| !name.is_empty()).map(str::to_string);
    let wish = |name: String| match kind {
        Some(Entity::Reservation) => {
            let said = said(&name);
            Ok(Wish { command: Command::DeleteReservation { name }, what: What::GoneReservation, said })
        }
        Some(Entity::Partition) => {
            let said = said(&name);
            Ok(Wish { command: Command::DeletePartition { name }, what: What::GonePartition, said })
        }
        Some(Entity::Node) | None => Err(no_entity()),
    };
    let wishes: Vec<Wish> = names.map(wish).collect::<Result<_, Lines>>()?;
    let format = "scontrol: error: Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'";
    if wishes.is_empty() { Err(vec![format.into()]) } else { Ok(wishes) }
}

/// What a new node is stands in a line as in slurm.conf.
fn create_nodes(words: &[String]) -> Result<Wish, Lines> {
    let failed = |why: String| vec![format!("Error creating the node(s): {why}")];
    let state = words.iter().find_map(|word| word.split_once('=').filter(|(key, _)| key.eq_ignore_ascii_case("State")));
    let is_allowed = |state: &str| ["FUTURE", "CLOUD"].iter().any(|word| state.eq_ignore_ascii_case(word));
    if state.is_some_and(|(_, state)| !is_allowed(state)) {
        return Err(failed("Only State=FUTURE and State=CLOUD allowed for nodes created by scontrol".into()));
    }
    let line: Vec<String> = words.iter().map(|word| as_in_a_file(word)).collect();
    let (nodes, idle) = config::parse_node_line(&line.join(" ")).map_err(|wrong| failed(wrong.join("; ")))?;
    if let Some(idle) = idle {
        return Err(failed(idle));
    }
    let Some(first) = nodes.first() else { return Err(failed("NodeName names no node".into())) };
    let has_addresses = nodes.iter().any(|node| node.config.address != first.config.address);
    if has_addresses {
        return Err(failed("NodeAddr must be the same for all, or nodes are created one by one".into()));
    }
    let (names, config) = (nodes.iter().map(|node| node.name.clone()).collect(), first.config.clone());
    let command = Command::UpdateNodes { nodes: names, change: NodeChange::Create(Box::new(config)) };
    Ok(Wish { command, what: What::Nodes, said: String::new() })
}

/// A key as it may be abbreviated here, and its value in quotes where it has blanks.
fn as_in_a_file(word: &str) -> String {
    match word.split_once('=') {
        Some((key, value)) if is_short_for(key, "NodeName", 3) => format!("NodeName={value}"),
        Some((key, value)) if value.contains(char::is_whitespace) => format!("{key}=\"{value}\""),
        Some(_) => word.to_string(),
        // The entity itself may stand alone: `create node NodeName=…`.
        None if is_short_for(word, "NodeName", 3) => String::new(),
        None => word.to_string(),
    }
}

fn delete_nodes(list: &str, said: impl Fn(&str) -> String) -> Result<Vec<Wish>, Lines> {
    let names = hostlist::expand(list).map_err(|error| vec![format!("delete_node {}: {error}", said(list))])?;
    if names.is_empty() {
        return Err(vec!["scontrol: error: Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'".into()]);
    }
    let nodes = names.into_iter().map(NodeName::from).collect();
    let command = Command::UpdateNodes { nodes, change: NodeChange::Delete };
    Ok(vec![Wish { command, what: What::GoneNode, said: said(list) }])
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
            What::Nodes => format!("Error creating the node(s): {why}"),
            What::GoneReservation => format!("delete_reservation {said}: {why}"),
            What::GonePartition => format!("delete_partition {said}: {why}"),
            What::GoneNode => format!("delete_node {said}: {why}"),
        })
    }
}
