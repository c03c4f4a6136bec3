//! Which records are wanted, and how they are shown.
use model::chronicle::NodeEvent;
use model::when::{self, Lean};
use model::{Timestamp, hostlist};

use super::{Cells, Record, fields};
use crate::accounting;
use crate::sacctmgr::Options;
use crate::table::{Column, Table};
use crate::zone::Clock;

#[derive(Default)]
pub struct Wish {
    pub format: Option<String>,
    pub start: Option<Timestamp>,
    pub end: Option<Timestamp>,
    pub all_time: bool,
    /// Of events: only those that last.
    pub only_open: bool,
    conditions: Vec<(&'static str, Vec<String>)>,
    /// The least and the most CPUs of an event.
    cpus: (u64, Option<u64>),
}

/// Which conditions each has, with as many letters as are needed.
fn conditions(record: Record) -> &'static [(&'static str, usize)] {
    match record {
        Record::Event => &[("events", 1), ("clusters", 2), ("nodes", 1), ("reason", 1), ("states", 4), ("user", 1)],
        Record::Transaction => {
            &[("accounts", 3), ("actions", 4), ("actors", 4), ("clusters", 3), ("ids", 1), ("txn", 1), ("users", 1)]
        }
        Record::Reservation => &[("clusters", 1), ("ids", 1), ("names", 2), ("nodes", 2)],
        Record::RunawayJobs => &[("clusters", 1)],
        Record::Problem => &[("accounts", 2), ("acct", 4), ("clusters", 1), ("partitions", 4), ("users", 1)],
        Record::Federation => &[("names", 1), ("clusters", 1)],
        Record::Configuration | Record::Stats => &[],
    }
}

/// What a word without a key is about.
fn alone(record: Record) -> &'static str {
    match record {
        Record::Event => "events",
        Record::Transaction => "ids",
        Record::RunawayJobs => "clusters",
        _ => "names",
    }
}

const STATES: [&str; 9] = ["DRAIN", "FAIL", "UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE"];

impl Wish {
    pub fn read(record: Record, words: &[String], clock: &Clock) -> Result<Wish, String> {
        let mut wish = Wish::default();
        for word in words {
            let lower = word.to_lowercase();
            let is_event = record == Record::Event;
            match lower.as_str() {
                "where" => continue,
                "all_clusters" if is_event => continue,
                "all_time" if is_event => {
                    wish.all_time = true;
                    continue;
                }
                "tree" if matches!(record, Record::Problem | Record::Federation) => continue,
                "withdeleted" if record == Record::Federation => continue,
                "withassoc" | "withassocinfo" if record == Record::Transaction => continue,
                _ => wish.take(record, word, clock)?,
            }
        }
        Ok(wish)
    }

    fn take(&mut self, record: Record, word: &str, clock: &Clock) -> Result<(), String> {
        let (key, value) = word.split_once('=').unwrap_or((alone(record), word));
        let value = value.trim_matches(['"', '\'']);
        let key = key.to_lowercase();
        let begins = |of: &str, least: usize| key.len() >= least && of.starts_with(&key);
        let moment = || {
            let now = clock.now().secs() as i64;
            let found = when::parse(value, now, clock, Lean::Past);
            found.map(|secs| Timestamp::from_secs(secs.max(0) as u64)).ok_or_else(|| format!(" Bad time: {word}"))
        };
        let number =
            |of: &str| value.parse::<u64>().map_err(|_| format!("sacctmgr: error: Invalid value for {of} ({value})"));
        let timed = matches!(record, Record::Event | Record::Transaction | Record::Reservation);
        let is_event = record == Record::Event;
        let condition = conditions(record).iter().find(|(name, least)| begins(name, *least)).map(|(name, _)| *name);
        match condition {
            _ if begins("format", 1) => self.format = Some(value.to_string()),
            _ if timed && begins("start", 3) => self.start = Some(moment()?),
            _ if timed && begins("end", 1) && !begins("events", 2) => self.end = Some(moment()?),
            _ if is_event && begins("condflags", 2) => match value.eq_ignore_ascii_case("open") {
                true => self.only_open = true,
                false => return Err(format!("sacctmgr: error: Unknown condition flag {value}")),
            },
            _ if is_event && begins("mincpus", 2) => self.cpus.0 = number("MinCpus")?,
            _ if is_event && begins("maxcpus", 2) => self.cpus.1 = Some(number("MaxCpus")?),
            Some(name) => {
                let values = value.split(',').map(|one| one.trim().to_lowercase()).filter(|one| !one.is_empty());
                let values = values.map(|one| said(name, one)).collect::<Result<Vec<_>, _>>()?;
                // Two names of one.
                let name = match name {
                    "acct" => "accounts",
                    "txn" => "ids",
                    _ => name,
                };
                self.conditions.push((name, values));
            }
            None if record == Record::Reservation => {
                return Err(format!(" Unknown condition: {word}\n Use keyword 'set' to modify value"));
            }
            None => return Err(format!(" Unknown condition: {word}")),
        }
        Ok(())
    }

    /// Whether anything is asked of `key`.
    pub fn asks(&self, key: &str) -> bool {
        self.conditions.iter().any(|(name, _)| *name == key)
    }

    /// Whether what is asked of `key` is among these.
    pub fn wants<'a>(&self, key: &str, values: impl IntoIterator<Item = &'a str> + Clone) -> bool {
        let fits = |wanted: &Vec<String>| {
            values.clone().into_iter().any(|value| wanted.iter().any(|one| value.eq_ignore_ascii_case(one)))
        };
        self.conditions.iter().filter(|(name, _)| *name == key).all(|(_, wanted)| fits(wanted))
    }

    /// Whether one of these nodes is asked for; lists may be compressed.
    pub fn wants_nodes<'a>(&self, nodes: impl IntoIterator<Item = &'a str> + Clone) -> bool {
        let asked = self.conditions.iter().filter(|(name, _)| *name == "nodes");
        let mut asked = asked.map(|(_, words)| hostlist::expand(&words.join(",")).unwrap_or_default());
        asked.all(|wanted| nodes.clone().into_iter().any(|node| wanted.iter().any(|one| one == node)))
    }

    pub fn wants_cpus(&self, n_cpus: u64) -> bool {
        n_cpus >= self.cpus.0 && self.cpus.1.is_none_or(|most| n_cpus <= most)
    }

    /// Whether events of nodes, or of clusters, are wanted: of states and users nodes alone have something to say.
    pub fn wants_events_of(&self, what: &str) -> bool {
        self.wants("events", [what])
            && (what == "node" || !self.asks("states") && !self.asks("user") && !self.asks("nodes"))
    }

    /// States of nodes are given by their beginnings.
    pub fn wants_state(&self, event: &NodeEvent) -> bool {
        let state = event.state.to_lowercase();
        let mut asked = self.conditions.iter().filter(|(name, _)| *name == "states");
        asked.all(|(_, wanted)| {
            wanted.iter().any(|one| state.split(['+', '*']).any(|word| word.starts_with(one.as_str())))
        })
    }

    pub fn table(&self, record: Record, options: &Options, rows: Vec<Cells>) -> Result<String, String> {
        let known = fields::of(record);
        let of_clusters = self.asks("events") && !self.wants("events", ["node"]);
        let format = self.format.as_deref().filter(|format| !format.is_empty());
        let format = format.unwrap_or_else(|| fields::usual(record, of_clusters));
        let chosen = accounting::chosen(known, format, |field| field.0, |field| (field.1, field.2))?;
        let (chosen, columns): (Vec<&fields::Field>, Vec<Column>) = chosen.into_iter().unzip();
        let table = Table { columns, style: options.style.clone() };
        let mut text = String::new();
        if options.has_heading {
            table.heading(&mut text);
        }
        for row in rows {
            // Two names of one column have one title.
            let cell = |field: &fields::Field| {
                let of = |name: &str| known.iter().any(|one| one.0 == name && one.1 == field.1);
                row.iter().find(|(name, _)| of(name)).map_or("", |(_, text)| text.as_str())
            };
            table.row(chosen.iter().map(|field| cell(field)), &mut text);
        }
        Ok(text)
    }
}

/// The value of a condition, if it can be one.
fn said(condition: &str, value: String) -> Result<String, String> {
    match condition {
        "events" => match ["cluster", "node"].iter().find(|known| known.starts_with(&value)) {
            Some(known) => Ok(known.to_string()),
            None => Err(format!(" Unknown event type: '{value}'  Valid events are Cluster and Node.")),
        },
        "states" if value.len() < 3 || !STATES.iter().any(|known| known.to_lowercase().starts_with(&value)) => {
            Err(format!(
                "Invalid state: {value}\nValid node states are: {} \nsacctmgr: fatal: unrecognized job state value",
                STATES.map(|known| if known == "ERROR" { "?" } else { known }).join(" ")
            ))
        }
        "ids" if value.parse::<u64>().is_err() => Err(format!("sacctmgr: error: Invalid value for ID ({value})")),
        _ => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(record: Record, words: &[&str]) -> Result<Wish, String> {
        let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
        Wish::read(record, &words, &Clock::local(None, Timestamp::from_secs(1_000_000)))
    }

    fn wrong(record: Record, word: &str) -> String {
        wish(record, &[word]).err().expect("it is refused")
    }

    #[test]
    fn events_are_chosen_by_what_they_are() {
        let open = wish(Record::Event, &["where", "event=node", "condflags=open", "mincpus=4", "maxcpus=8"]).unwrap();
        assert!(open.only_open && open.wants_events_of("node") && !open.wants_events_of("cluster"));
        assert_eq!([3, 4, 8, 9].map(|n_cpus| open.wants_cpus(n_cpus)), [false, true, true, false]);
        let down = NodeEvent { state: "DOWN*".into(), ..NodeEvent::default() };
        assert!(wish(Record::Event, &["states=dow"]).unwrap().wants_state(&down));
        let drained = wish(Record::Event, &["states=drain"]).unwrap();
        assert!(!drained.wants_state(&down) && !drained.wants_events_of("cluster"));
        let nodes = wish(Record::Event, &["nodes=n[1-3]"]).unwrap();
        assert!(nodes.wants_nodes(["n2"]) && !nodes.wants_nodes(["n4"]));
    }

    #[test]
    fn what_no_record_can_be_is_refused() {
        assert_eq!(wrong(Record::Event, "event=x"), " Unknown event type: 'x'  Valid events are Cluster and Node.");
        assert_eq!(wrong(Record::Event, "condflags=x"), "sacctmgr: error: Unknown condition flag x");
        assert!(wrong(Record::Event, "states=x").starts_with("Invalid state: x\nValid node states are: DRAIN FAIL "));
        assert_eq!(wrong(Record::Event, "colour=x"), " Unknown condition: colour=x");
        assert!(wrong(Record::Reservation, "flags=x").starts_with(" Unknown condition: flags=x\n Use keyword"));
        assert_eq!(wrong(Record::RunawayJobs, "id=1"), " Unknown condition: id=1");
        assert!(wish(Record::Problem, &["accounts=a", "users=u", "tree"]).is_ok());
    }
}
