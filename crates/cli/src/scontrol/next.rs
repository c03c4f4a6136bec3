//! What may come next on a line of `scontrol`, from the tables that read it: for completion in a shell.
use model::loudness::{DebugFlag, LogLevel};
use model::partition_field;

use super::create::{self, Entity as Made};
use super::keyword::{ENTITIES, Entity, KEYWORDS, Keyword};
use super::update::{self, THINGS, Thing};
use super::{reservation, script, update_job};

/// The words that fit behind these; those that want a value end with `=`.
pub fn next(words: &[&str]) -> Vec<String> {
    let Some((first, rest)) = words.split_first() else {
        let is_here = |keyword: &Keyword| !matches!(keyword, Keyword::Unsupported(_));
        return names(KEYWORDS.iter().filter(|(.., keyword)| is_here(keyword)).map(|(name, ..)| *name));
    };
    match (Keyword::parse(first), rest) {
        (Some(Keyword::Show), []) => {
            let is_here = |entity: &Entity| !matches!(entity, Entity::Unsupported(_));
            names(ENTITIES.iter().filter(|(.., entity)| is_here(entity)).map(|(name, ..)| *name))
        }
        (Some(Keyword::Update), rest) => update_words(rest),
        (Some(Keyword::Create), rest) => match made(rest) {
            Some(Made::Reservation) => keys(reservation::keys()),
            Some(Made::Partition) => keys(partition_field::all_names()),
            // As in a slurm.conf.
            Some(Made::Node) => Vec::new(),
            None => keys(create::ENTITIES.iter().map(|(name, ..)| *name)),
        },
        (Some(Keyword::Delete), []) => keys(create::ENTITIES.iter().map(|(name, ..)| *name)),
        (Some(Keyword::Write), []) => names(script::WRITTEN.into_iter()),
        (Some(Keyword::SetDebug), []) => names(LogLevel::all().map(LogLevel::word)),
        (Some(Keyword::SetDebugFlags), _) => {
            let both = |flag: &DebugFlag| ["+", "-"].map(|sign| format!("{sign}{}", flag.word()));
            DebugFlag::ALL.iter().flat_map(both).collect()
        }
        _ => Vec::new(),
    }
}

fn update_words(rest: &[&str]) -> Vec<String> {
    let said = rest.iter().map(|word| word.split_once('=').map_or((*word, false), |(key, _)| (key, true)));
    match update::thing(said) {
        None => {
            let is_here = |thing: &Thing| *thing != Thing::FrontEnd;
            keys(THINGS.iter().filter(|(.., thing)| is_here(thing)).map(|(name, ..)| *name))
        }
        Some((Thing::Job | Thing::NamedJobs, _)) => keys(update_job::keys()),
        Some((Thing::Node, _)) => keys(update::node_keys()),
        Some((Thing::Reservation, _)) => keys(reservation::keys()),
        Some((Thing::Partition, _)) => keys(partition_field::all_names()),
        Some((Thing::Step, _)) => keys([update::STEP_KEY].into_iter()),
        Some((Thing::Loudness | Thing::FrontEnd, _)) => Vec::new(),
    }
}

fn made(rest: &[&str]) -> Option<Made> {
    rest.iter().find_map(|word| create::entity(word.split_once('=').map_or(*word, |(key, _)| key)))
}

fn names(all: impl Iterator<Item = &'static str>) -> Vec<String> {
    all.map(str::to_string).collect()
}

fn keys(all: impl Iterator<Item = &'static str>) -> Vec<String> {
    all.map(|name| format!("{name}=")).collect()
}
