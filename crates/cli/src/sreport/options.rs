//! The options of `sreport` and the words after a report.
use model::Timestamp;
use model::reservation::Flag;
use model::when::{self, Lean};

use super::usage::Period;
use crate::zone::Clock;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    #[default]
    Minutes,
    Hours,
    Percent,
    SecondsAndPercent,
    MinutesAndPercent,
    HoursAndPercent,
}

impl Unit {
    /// Any beginning of Slurm's words.
    pub fn parse(text: &str) -> Option<Unit> {
        let text = text.to_lowercase();
        let all = [
            ("secper", 4, Unit::SecondsAndPercent),
            ("minper", 4, Unit::MinutesAndPercent),
            ("hourper", 5, Unit::HoursAndPercent),
            ("seconds", 1, Unit::Seconds),
            ("minutes", 1, Unit::Minutes),
            ("hours", 1, Unit::Hours),
            ("percent", 1, Unit::Percent),
        ];
        let is_it = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
        all.into_iter().find(|(word, least, _)| is_it(word, *least)).map(|(_, _, unit)| unit)
    }
}

/// What a report is about: each has conditions of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    Jobs,
    Reservations,
    #[default]
    Others,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    pub no_heading: bool,
    pub parsable: bool,
    pub parsable2: bool,
    pub unit: Unit,
    /// Names of resources; None: CPUs, with energy beside them.
    pub tres: Option<Vec<String>>,
    pub format: Option<String>,
    pub start: Option<Timestamp>,
    pub end: Option<Timestamp>,
    /// Empty: this one.
    pub clusters: Vec<String>,
    pub accounts: Vec<String>,
    pub users: Vec<String>,
    pub wckeys: Vec<String>,
    pub names: Vec<String>,
    pub partitions: Vec<String>,
    pub is_tree: bool,
    pub groups_accounts: bool,
    pub top_count: usize,
    pub grouping: Vec<u32>,
    /// Each size that there is has a column of its own.
    pub is_individual: bool,
    pub subject: Subject,
    pub nodes: Vec<String>,
    pub gids: Vec<u32>,
    pub jobs: Vec<u32>,
    /// Words of reservations.
    pub flags: Vec<String>,
    /// Something was asked for that nothing has here.
    pub is_nothing: bool,
    pub prints_job_count: bool,
    pub is_flat: bool,
    pub account_as_parent: bool,
    /// What is wrong, told after the report.
    pub complaints: Vec<String>,
    pub failed: bool,
}

impl Options {
    /// Others are asked for: of them nothing is known.
    pub fn leave_out(&self, cluster: &str) -> bool {
        !self.clusters.is_empty() && !self.clusters.iter().any(|name| name.eq_ignore_ascii_case(cluster))
    }

    /// Takes one word after the report's name.
    pub fn word(&mut self, word: &str, clock: &Clock) {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key.to_lowercase(), value.trim_matches(['"', '\'']).to_string()),
            None => (word.to_lowercase(), String::new()),
        };
        let begins = |of: &str, least: usize| key.len() >= least && of.starts_with(&key);
        let list = || value.split(',').map(|one| one.trim().to_string()).filter(|one| !one.is_empty());
        let lower = || list().map(|one| one.to_lowercase());
        let (is_job, is_reservation) = (self.subject == Subject::Jobs, self.subject == Subject::Reservations);
        match key.as_str() {
            "where" => (),
            _ if begins("all_clusters", 1) && !begins("accounts", 2) => (),
            _ if begins("accounts", 2) => self.accounts.extend(lower()),
            _ if begins("acctasparent", 3) => self.account_as_parent = true,
            _ if begins("clusters", 1) => self.clusters.extend(lower()),
            _ if begins("start", 1) => self.start = self.moment(&value, clock).or(self.start),
            _ if begins("end", 1) => self.end = self.moment(&value, clock).or(self.end),
            _ if begins("flatview", 2) => self.is_flat = true,
            _ if begins("format", 1) => self.format = Some(value.clone()),
            "grouping" if value.eq_ignore_ascii_case("individual") => self.is_individual = true,
            "grouping" => self.grouping = self.numbers(&value, "Grouping"),
            _ if begins("group", 1) => self.groups_accounts = true,
            _ if is_job && begins("gid", 2) => {
                let numbers = self.numbers(&value, "Gid");
                self.gids.extend(numbers);
            }
            _ if is_job && begins("jobs", 1) => {
                let numbers = self.numbers(&value, "Jobs");
                self.jobs.extend(numbers);
            }
            _ if (is_job || is_reservation) && begins("nodes", 2) => {
                self.nodes.extend(model::hostlist::expand(&value).unwrap_or_default());
            }
            // No reservation has a number.
            _ if is_reservation && begins("ids", 1) => self.is_nothing = true,
            _ if is_reservation && begins("flags", 2) => {
                for word in list() {
                    match Flag::parse(&word) {
                        Some(flag) => self.flags.push(flag.word().to_string()),
                        None => self.complain(format!("sreport: error: Error parsing flags {word}.  _set_resv_cond")),
                    }
                }
            }
            _ if begins("names", 1) => self.names.extend(list()),
            _ if begins("partitions", 2) => self.partitions.extend(list()),
            _ if begins("printjobcount", 2) => self.prints_job_count = true,
            _ if begins("tree", 2) => self.is_tree = true,
            _ if begins("topcount", 2) => match value.parse() {
                Ok(count) => self.top_count = count,
                Err(_) => self.complain(format!("sreport: error: Invalid value for TopCount ({value})")),
            },
            _ if begins("tres", 2) => self.tres = Some(lower().collect()),
            _ if begins("users", 1) => self.users.extend(list()),
            _ if begins("wckeys", 1) => self.wckeys.extend(list()),
            _ => self.complain(format!(" Unknown condition: {word}\nUse keyword set to modify value")),
        }
    }

    fn complain(&mut self, text: String) {
        self.complaints.push(text);
        self.failed = true;
    }

    fn numbers(&mut self, list: &str, what: &str) -> Vec<u32> {
        let mut numbers = Vec::new();
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word.parse() {
                Ok(number) => numbers.push(number),
                Err(_) => self.complain(format!("sreport: error: Invalid value for {what} ({word})")),
            }
        }
        numbers
    }

    fn moment(&mut self, text: &str, clock: &Clock) -> Option<Timestamp> {
        let now = clock.now().secs() as i64;
        match when::parse(text, now, clock, Lean::Past) {
            Some(secs) => Some(Timestamp::from_secs(secs.max(0) as u64)),
            None => {
                self.complaints.push(format!("Invalid time specification (pos=0): {text}"));
                None
            }
        }
    }

    /// The day before today, unless it was said; nothing is known of the future.
    pub fn period(&self, clock: &Clock) -> Period {
        let now = clock.now();
        let midnight = when::parse("00:00:00", now.secs() as i64, clock, Lean::Past).unwrap_or(0).max(0) as u64;
        let today = Timestamp::from_secs(midnight);
        let start = self.start.unwrap_or(Timestamp::from_secs(midnight.saturating_sub(86_400)));
        let end = match (self.end, self.start) {
            (Some(end), _) => end,
            (None, Some(start)) if start >= today => now,
            (None, _) => today,
        };
        let end = end.min(Timestamp::from_secs(now.secs()));
        Period { start, end: end.max(start) }
    }

    pub fn wanted_tres(&self, known: &super::usage::Amounts) -> Vec<String> {
        match &self.tres {
            None => vec!["cpu".into()],
            Some(list) if list.iter().any(|one| one == "all") => {
                let first = ["cpu", "mem", "node", "billing"].map(String::from);
                let others = known.keys().filter(|name| !first.contains(name)).cloned();
                first.iter().cloned().chain(others).collect()
            }
            Some(list) => list.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(subject: Subject, words: &[&str]) -> Options {
        let clock = Clock::local(None, Timestamp::from_secs(1_000_000));
        let mut options = Options { subject, top_count: 10, ..Options::default() };
        words.iter().for_each(|word| options.word(word, &clock));
        options
    }

    #[test]
    fn each_report_has_conditions_of_its_own() {
        let jobs = read(Subject::Jobs, &["nodes=n[1-2]", "gid=0", "jobs=7,8", "grouping=individual"]);
        assert_eq!((jobs.nodes.len(), &jobs.gids[..], &jobs.jobs[..]), (2, &[0][..], &[7, 8][..]));
        assert!(jobs.is_individual && !jobs.failed);
        let kept = read(Subject::Reservations, &["nodes=n1", "flags=maint"]);
        assert_eq!((kept.nodes, kept.flags, kept.failed), (vec!["n1".into()], vec!["MAINT".into()], false));
        for (subject, word, told) in [
            (Subject::Others, "nodes=n1", " Unknown condition: nodes=n1\nUse keyword set to modify value"),
            (Subject::Reservations, "flags=x", "sreport: error: Error parsing flags x.  _set_resv_cond"),
            (Subject::Others, "topcount=x", "sreport: error: Invalid value for TopCount (x)"),
            (Subject::Jobs, "grouping=x", "sreport: error: Invalid value for Grouping (x)"),
        ] {
            let options = read(subject, &[word]);
            assert_eq!((options.complaints, options.failed), (vec![told.to_string()], true), "{word}");
        }
    }
}
