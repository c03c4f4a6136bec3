//! What a walk sends: of every call every field, each with hostile values, and which of them have been sent.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use testkit::hostile_values::{Inward, Place, Plain, PlainKind, Poison, place_number, poisons, poisons_in_turn};

use super::callers::RawCaller;
use super::contract::{
    ContractCall, ContractField, FieldContent, NounPlaces, NounRow, calls, noun, places_of, plain_contents, written,
};
use super::walkers::{AT_ONCE, VICTIM, WalkShare, Walker, WalkerRights, side_by_side};

/// Of each noun of each call, so many places by each caller who has no share in all of them.
const SAMPLE: usize = 2;
/// A job that there is not: what calls take is asked before anybody has anything.
const NO_JOB: u32 = 60_000_000;
/// These end the cluster, or take it apart, at the word of the mighty, as they should.
pub const ENDING: &[&str] = &["Shutdown", "ChangeMembers", "RemoveNode", "Restore", "End", "Stand", "Raft"];
/// Commands that the controller makes of what their calls hold: specifications and changes.
const MADE_OF_OTHER_NOUNS: &[&str] = &["Submit", "SubmitTogether", "ChangeAccounts"];
/// Calls that members of the cluster make, and nobody else.
pub const OF_MEMBERS: &[&str] = &["Attend", "Vouch", "Renew", "Raft", "Stand", "End", "Alive", "ReadAudit"];

/// A request, and where it is hostile.
pub struct HostileRequest {
    pub what: String,
    pub body: Vec<u8>,
}

/// Where a request was hostile: the call, the field of its message, the place in the field's noun.
type Touched = (&'static str, &'static str, Place);

/// What the calls take, and what has been sent.
pub struct Walk {
    pub victim: u32,
    pub seed: u64,
    sends_all: bool,
    /// The variants of a noun that a call takes.
    kinds: BTreeMap<(&'static str, &'static str), Vec<Vec<Inward>>>,
    touched: Mutex<BTreeSet<Touched>>,
}

fn script() -> model::command::Blob {
    model::command::Blob::of(b"#!/bin/sh\ntrue\n".to_vec())
}

/// Values that a call would take, so that the hostile one is looked at.
fn ordinary(victim: u32) -> impl Fn(&[Inward], PlainKind) -> Option<Plain> {
    let words = script().id.0;
    move |place, kind| {
        let field = place.iter().rev().find_map(|step| match step {
            Inward::Field(name) => Some(*name),
            _ => None,
        });
        let item = place.iter().rev().find_map(|step| if let Inward::Item(index) = step { Some(*index) } else { None });
        Some(match (field?, kind) {
            ("script", PlainKind::Unsigned) => Plain::Number(i128::from(words[item? % 4])),
            ("job" | "jobs" | "array", PlainKind::Unsigned) => Plain::Number(i128::from(victim)),
            ("uid" | "gid", PlainKind::Unsigned) => Plain::Number(i128::from(VICTIM.1)),
            ("min_nodes" | "n_tasks", PlainKind::Unsigned) => Plain::Number(1),
            // Thousands of jobs that run are another test.
            ("held", PlainKind::Truth) => Plain::Truth(true),
            ("node" | "nodes" | "names", PlainKind::Text) => Plain::Text("a1".into()),
            ("partition" | "partitions", PlainKind::Text) => Plain::Text("main".into()),
            ("work_dir", PlainKind::Text) => Plain::Text("/".into()),
            ("stdout" | "stderr", PlainKind::Text) => Plain::Text("/dev/null".into()),
            ("user", PlainKind::Text) => Plain::Text(VICTIM.0.into()),
            ("name", PlainKind::Text) => Plain::Text("walk".into()),
            ("content", PlainKind::Bytes) => Plain::Bytes(script().content),
            // The id of a blob that comes along.
            ("id", PlainKind::Unsigned) => Plain::Number(i128::from(words[item? % 4])),
            _ => return None,
        })
    }
}

/// A request with ordinary values, but for the field that is given.
fn body(call: &ContractCall, field: &ContractField, content: FieldContent, victim: u32) -> Vec<u8> {
    let ordinary = ordinary(victim);
    let fields = call.request.fields.iter().filter_map(|one| {
        if one.number == field.number {
            return Some((one.number, content.clone()));
        }
        if one.name == "job" && one.kind == "uint32" {
            return Some((one.number, FieldContent::Number(u64::from(victim))));
        }
        let is_needed = ["spec", "blobs", "job"].contains(&one.name);
        let noun = one.noun.filter(|name| is_needed && name.starts_with("model::"))?;
        Some((one.number, FieldContent::Bytes((super::contract::noun(noun).ordinary)(&[], &ordinary)?)))
    });
    written(&fields.collect::<Vec<_>>())
}

/// The noun of a field, if it is one of crate `model`.
fn noun_of(field: &ContractField) -> Option<&'static NounRow> {
    field.noun.filter(|name| name.starts_with("model::")).map(noun)
}

/// The variants of the noun, one of which a call takes; one without any, where the noun is no enum.
fn kinds_of(row: &NounRow, places: &[(Place, PlainKind)]) -> Vec<Vec<Inward>> {
    let first = places.iter().filter_map(|(place, _)| match place.first() {
        Some(Inward::Variant(name)) => Some(Inward::Variant(name)),
        _ => None,
    });
    let kinds: BTreeSet<Inward> = first.collect();
    assert!(!places.is_empty(), "nothing is known of {}", row.name);
    if kinds.is_empty() { vec![Vec::new()] } else { kinds.into_iter().map(|kind| vec![kind]).collect() }
}

/// Places of what a call takes.
fn places_taken<'a>(places: &'a NounPlaces, kinds: &'a [Vec<Inward>]) -> impl Iterator<Item = &'a (Place, PlainKind)> {
    places.iter().filter(|(place, _)| kinds.iter().any(|kind| place.starts_with(kind)))
}

impl Walk {
    /// Asks each call which kinds of its noun it takes. Whoever asks must be heard by all of them.
    pub async fn plan(caller: &RawCaller, seed: u64) -> Walk {
        let victim = NO_JOB;
        let sends_all = std::env::var("SPUR_WALK").is_ok_and(|words| words == "all");
        let mut kinds = BTreeMap::new();
        for call in calls() {
            for field in &call.request.fields {
                let Some(row) = noun_of(field) else { continue };
                let all = kinds_of(row, &places_of(row, &ordinary(victim)));
                let taken = match ENDING.contains(&call.name) {
                    true => all,
                    false => {
                        let asking = all.into_iter().map(|kind| takes(caller, &call, field, (row, kind), victim));
                        side_by_side(asking, AT_ONCE).await.into_iter().flatten().collect()
                    }
                };
                kinds.insert((call.name, field.name), taken);
            }
        }
        Walk { victim, seed, sends_all, kinds, touched: Mutex::default() }
    }

    fn touch(&self, call: &ContractCall, field: &ContractField, place: &[Inward]) {
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        touched.insert((call.name, field.name, place.to_vec()));
    }

    /// What this caller sends to this call.
    pub fn requests(&self, walker: &Walker, call: &ContractCall) -> Vec<HostileRequest> {
        let mut requests = Vec::new();
        for field in &call.request.fields {
            match noun_of(field) {
                Some(row) => self.poisoned(walker, call, field, row, &mut requests),
                None => {
                    self.touch(call, field, &[]);
                    requests.extend(plain_contents(field.kind).into_iter().map(|content| HostileRequest {
                        what: format!("{}.{} {content:.60?}", call.name, field.name),
                        body: body(call, field, content, self.victim),
                    }));
                }
            }
        }
        if call.request.fields.is_empty() {
            requests.push(HostileRequest { what: call.name.into(), body: Vec::new() });
        }
        requests
    }

    fn poisoned(
        &self,
        walker: &Walker,
        call: &ContractCall,
        field: &ContractField,
        row: &'static NounRow,
        into: &mut Vec<HostileRequest>,
    ) {
        let ordinary = ordinary(self.victim);
        let places = places_of(row, &ordinary);
        let is_mighty = walker.rights == WalkerRights::All;
        let may_send =
            |kind: &&Vec<Inward>| !is_mighty || !ENDING.iter().any(|name| kind.contains(&Inward::Variant(name)));
        let kinds: Vec<_> = self.kinds[&(call.name, field.name)].iter().filter(may_send).cloned().collect();
        let taken: Vec<_> = places_taken(&places, &kinds).collect();
        let stride = (taken.len() / SAMPLE).max(1) as u64;
        for (place, kind) in taken {
            let number = place_number(place);
            let is_own = match walker.share {
                Some(share) if share.covers(call.name) => number % share.n_walkers == share.turn,
                _ => number.wrapping_add(self.seed).wrapping_add(walker.turn).is_multiple_of(stride),
            };
            if !(is_own || self.sends_all) {
                continue;
            }
            let in_turn = poisons_in_turn(place, *kind, self.seed);
            let makes = |plain: &Plain| {
                let poison = Poison { place: place.clone(), plain: plain.clone() };
                Some(((row.poisoned)(&poison, &ordinary)?, poison))
            };
            let n_wanted = if self.sends_all { in_turn.len() } else { 1 };
            for (bytes, poison) in in_turn.iter().filter_map(makes).take(n_wanted) {
                self.touch(call, field, place);
                let what = format!("{}.{}{poison}", call.name, field.name);
                into.push(HostileRequest { what, body: body(call, field, FieldContent::Bytes(bytes), self.victim) });
            }
        }
    }

    /// Fields of calls that no request was hostile in.
    pub fn untouched(&self) -> Vec<String> {
        let touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        let mut missing = Vec::new();
        for call in calls() {
            for field in &call.request.fields {
                let Some(row) = noun_of(field) else {
                    if !touched.contains(&(call.name, field.name, Place::new())) {
                        missing.push(format!("{}.{}", call.name, field.name));
                    }
                    continue;
                };
                let places = places_of(row, &ordinary(self.victim));
                let kinds = &self.kinds[&(call.name, field.name)];
                assert!(!kinds.is_empty(), "{}.{} takes no kind of {}", call.name, field.name, row.name);
                for (place, kind) in places_taken(&places, kinds) {
                    if !touched.contains(&(call.name, field.name, place.clone())) {
                        let plain = poisons(*kind).into_iter().next().unwrap_or(Plain::Nothing);
                        let poison = Poison { place: place.clone(), plain };
                        missing.push(format!("{}.{}{poison}", call.name, field.name));
                    }
                }
            }
        }
        missing
    }

    /// Commands of users that no call takes.
    pub fn commands_without_a_call(&self) -> Vec<&'static str> {
        let row = noun("model::Command");
        let places = places_of(row, &ordinary(self.victim));
        let is_taken = |kind: &Vec<Inward>| self.kinds.values().any(|taken| taken.contains(kind));
        let of_users = |kind: &Vec<Inward>| {
            let bytes = (row.ordinary)(kind, &ordinary(self.victim))?;
            let command: model::Command = model::codec::decode(&bytes).ok()?;
            let [Inward::Variant(name)] = kind[..] else { return None };
            // One inside another is what requests that come again are made of.
            let is_single = !matches!(command, model::Command::Once { .. });
            (is_single && command.is_from_users() && !MADE_OF_OTHER_NOUNS.contains(&name)).then_some(name)
        };
        kinds_of(row, &places).iter().filter(|kind| !is_taken(kind)).filter_map(of_users).collect()
    }

    pub fn n_touched(&self) -> usize {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Sends the ordinary request of a kind: kinds that the call does not take are not poisoned.
async fn takes(
    caller: &RawCaller,
    call: &ContractCall,
    field: &ContractField,
    (row, kind): (&NounRow, Vec<Inward>),
    victim: u32,
) -> Option<Vec<Inward>> {
    let bytes = (row.ordinary)(&kind, &ordinary(victim))?;
    let body = body(call, field, FieldContent::Bytes(bytes), victim);
    let answer = caller.call(&call.path(), body, call.streams_requests).await;
    let is_refused = answer.is_err_and(|status| status.message().contains("does not belong to this call"));
    (!is_refused).then_some(kind)
}

impl WalkShare {
    /// Users have a share in what users may ask, members in the rest.
    fn covers(self, call: &str) -> bool {
        OF_MEMBERS.contains(&call) == self.is_of_members
    }
}
