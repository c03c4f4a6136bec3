//! The wire contract as data: each call, its request's fields, and the noun inside each. Read from `proto/spur.proto` itself.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::codec::Decode;
use serde::Serialize;
use testkit::hostile_values::{Inward, Ordinary, Place, Plain, PlainKind, Poison, discover, make, make_ordinary};

const CONTRACT: &str = include_str!("../../../proto/spur.proto");

/// One `rpc`.
#[derive(Clone, Debug)]
pub struct ContractCall {
    pub service: &'static str,
    pub name: &'static str,
    pub streams_requests: bool,
    pub request: ContractMessage,
}

impl ContractCall {
    pub fn path(&self) -> String {
        format!("/spur.v1.{}/{}", self.service, self.name)
    }
}

/// The message that a call takes.
#[derive(Clone, Debug)]
pub struct ContractMessage {
    pub fields: Vec<ContractField>,
}

#[derive(Clone, Debug)]
pub struct ContractField {
    pub name: &'static str,
    pub kind: &'static str,
    pub number: u32,
    /// What its bytes hold, if that is a noun of `model`.
    pub noun: Option<&'static str>,
}

/// A noun of crate `model`, made without knowing its type.
pub struct NounRow {
    pub name: &'static str,
    pub places: fn(Ordinary) -> Vec<(Place, PlainKind)>,
    pub poisoned: fn(&Poison, Ordinary) -> Option<Vec<u8>>,
    pub ordinary: fn(&[Inward], Ordinary) -> Option<Vec<u8>>,
}

const fn row<T: Decode + Serialize>(name: &'static str) -> NounRow {
    NounRow {
        name,
        places: |ordinary| discover::<T>(ordinary),
        poisoned: |poison, ordinary| make::<T>(poison, ordinary).map(|value| model::codec::encode(&value)),
        ordinary: |place, ordinary| make_ordinary::<T>(place, ordinary).map(|value| model::codec::encode(&value)),
    }
}

/// Every noun that a request may hold.
pub const NOUNS: &[NounRow] = &[
    row::<model::Command>("model::Command"),
    row::<model::JobSpec>("model::JobSpec"),
    row::<model::command::Blob>("model::command::Blob"),
    row::<model::JobRef>("model::JobRef"),
    row::<model::BlobId>("model::BlobId"),
    row::<model::NodeName>("model::NodeName"),
    row::<model::accounts::Change>("model::accounts::Change"),
    row::<model::agent::Report>("model::agent::Report"),
    row::<model::audit::AuditQuery>("model::audit::AuditQuery"),
    row::<model::ask::Question>("model::ask::Question"),
    row::<model::attach::ToStep>("model::attach::ToStep"),
    row::<model::history::AmendRequest>("model::history::AmendRequest"),
    row::<model::history::HistoryQuery>("model::history::HistoryQuery"),
    row::<model::loudness::LoudnessChange>("model::loudness::LoudnessChange"),
    row::<model::members::Wish>("model::members::Wish"),
    row::<model::request::JobFilter>("model::request::JobFilter"),
    row::<model::request::SignalRequest>("model::request::SignalRequest"),
    row::<model::staging::MirrorRequest>("model::staging::MirrorRequest"),
    row::<model::trust::JoinRequest>("model::trust::JoinRequest"),
    row::<model::trust::Role>("model::trust::Role"),
    row::<model::trust::TokensRequest>("model::trust::TokensRequest"),
];

/// Places of a noun, shared by all who walk over it.
pub type NounPlaces = Arc<Vec<(Place, PlainKind)>>;

/// The places of a noun. They are looked for once: some nouns have many thousands.
pub fn places_of(row: &'static NounRow, ordinary: Ordinary) -> NounPlaces {
    static KNOWN: Mutex<BTreeMap<&str, NounPlaces>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(row.name).or_insert_with(|| Arc::new((row.places)(ordinary))).clone()
}

pub fn noun(name: &str) -> &'static NounRow {
    let found = NOUNS.iter().find(|row| row.name == name);
    found.unwrap_or_else(|| panic!("{name} has no row in tests/e2e/door/contract.rs: NOUNS"))
}

/// Every call of the contract. A call or a noun that this cannot make sense of fails the test.
pub fn calls() -> Vec<ContractCall> {
    let mut calls = Vec::new();
    let mut service = "";
    let mut words: Vec<&'static str> = Vec::new();
    for line in CONTRACT.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("service ") {
            service = rest.split_whitespace().next().unwrap();
        }
        if let Some(comment) = line.strip_prefix("//") {
            words.extend(comment.split_whitespace());
            continue;
        }
        if let Some(rest) = line.strip_prefix("rpc ") {
            let (name, rest) = rest.split_once('(').unwrap();
            let request = rest.split(')').next().unwrap();
            let streams_requests = request.starts_with("stream ");
            let message = request.trim_start_matches("stream ");
            calls.push(ContractCall {
                service,
                name,
                streams_requests,
                request: message_of(message, named_in(&words)),
            });
        }
        words.clear();
    }
    calls
}

/// A comment above a call names the noun of its request as `In: model::X.`; else the message's field does.
fn named_in(words: &[&'static str]) -> Option<&'static str> {
    let at = words.iter().position(|word| *word == "In:")?;
    words.get(at + 1).map(|word| word.trim_end_matches('.'))
}

fn message_of(name: &str, named: Option<&'static str>) -> ContractMessage {
    let start = format!("message {name} {{");
    let mut fields = Vec::new();
    let lines = CONTRACT.lines().skip_while(|line| !line.starts_with(&start));
    for line in lines {
        let declared = line.strip_prefix(start.as_str()).unwrap_or(line);
        let (declared, comment) = declared.split_once("//").unwrap_or((declared, ""));
        for field in declared.split(';') {
            let field = field.trim().trim_start_matches("repeated ");
            let Some((left, number)) = field.split_once(" = ") else { continue };
            let (kind, field) = left.split_once(' ').expect("a type and a name");
            let own = comment.split_whitespace().next().filter(|word| word.starts_with("model::"));
            let noun = named.or(own).filter(|_| kind == "bytes").map(|word| word.trim_end_matches(':'));
            fields.push(ContractField { name: field, kind, number: number.trim().parse().unwrap(), noun });
        }
        if line.contains('}') {
            break;
        }
    }
    ContractMessage { fields }
}

/// What a field of a message holds in one request.
#[derive(Clone, Debug)]
pub enum FieldContent {
    Bytes(Vec<u8>),
    Number(u64),
}

/// The message, as protobuf writes it.
pub fn written(fields: &[(u32, FieldContent)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, content) in fields {
        match content {
            FieldContent::Bytes(bytes) => {
                varint(u64::from(*number) << 3 | 2, &mut out);
                varint(bytes.len() as u64, &mut out);
                out.extend_from_slice(bytes);
            }
            FieldContent::Number(value) => {
                varint(u64::from(*number) << 3, &mut out);
                varint(*value, &mut out);
            }
        }
    }
    out
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Hostile values for a field that is no noun.
pub fn plain_contents(kind: &str) -> Vec<FieldContent> {
    match kind {
        "string" => testkit::hostile_values::poisons(PlainKind::Text)
            .into_iter()
            .filter_map(|plain| match plain {
                Plain::Text(text) => Some(FieldContent::Bytes(text.into_bytes())),
                _ => None,
            })
            .collect(),
        "bytes" => vec![
            FieldContent::Bytes(Vec::new()),
            FieldContent::Bytes(vec![0xdc; 300]),
            FieldContent::Bytes(vec![0x81; 60_000]),
        ],
        "bool" => vec![FieldContent::Number(1), FieldContent::Number(u64::MAX)],
        _ => [0, 1, u64::from(u32::MAX), u64::MAX].into_iter().map(FieldContent::Number).collect(),
    }
}

#[test]
fn contract_reads_every_call_and_knows_every_noun() {
    let calls = calls();
    let n_written = CONTRACT.lines().filter(|line| line.trim().starts_with("rpc ")).count();
    assert_eq!(calls.len(), n_written);
    for call in &calls {
        for field in &call.request.fields {
            let is_noun = field.noun.filter(|name| name.starts_with("model::"));
            is_noun.into_iter().map(noun).for_each(|row| assert!(!row.name.is_empty()));
            let is_opaque = ["Renew", "Raft", "Mirror"].contains(&call.name);
            assert!(
                field.kind != "bytes" || is_noun.is_some() || is_opaque,
                "{}: {} holds what?",
                call.name,
                field.name
            );
        }
    }
    let change = calls.iter().find(|call| call.name == "ChangeAccounts").unwrap();
    assert_eq!(change.request.fields[0].noun, Some("model::accounts::Change"));
    let submit = calls.iter().find(|call| call.name == "Submit").unwrap();
    assert_eq!(submit.request.fields.len(), 4);
}
