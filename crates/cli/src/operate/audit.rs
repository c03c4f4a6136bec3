//! `spur audit`: who asked for which change, from where, and what was refused.
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use model::Timestamp;
use model::audit::{AuditQuery, AuditRecord};
use model::when::{self, Lean};
use wire::{CallError, Controller};

use super::Call;
use super::folder::Folder;
use crate::getopt::{self, Flag, Operands, Parsed, Value, flag};
use crate::zone::Clock;
use crate::{context, trouble};

pub const USAGE: &str = "audit [--user NAME] [--call CALL] [--refused] [--since TIME] [--until TIME] [--last N | --all] [--json] [--dir DIR | --files SPOOL/audit]";

const FLAGS: &[Flag] = &[
    flag("dir", None, Value::Required),
    flag("user", Some('u'), Value::Required),
    flag("call", Some('c'), Value::Required),
    flag("refused", Some('r'), Value::None),
    flag("since", Some('S'), Value::Required),
    flag("until", Some('E'), Value::Required),
    flag("last", Some('n'), Value::Required),
    flag("all", Some('a'), Value::None),
    flag("json", None, Value::None),
    flag("files", None, Value::Required),
];

/// What fits on a few screens.
const LAST_UNASKED: u32 = 100;

pub(super) fn run(call: &Call) -> Result<i32, String> {
    let parsed = getopt::parse(FLAGS, Operands::Mixed, call.arguments)?;
    if let Some(word) = parsed.operands.first() {
        return Err(format!("{word}: records are chosen by --user and --call"));
    }
    if let Some(dir) = parsed.value("files") {
        return read_files(Path::new(dir), &parsed);
    }
    let socket = match super::directory(&parsed) {
        Some(dir) => {
            let conf = Folder::to_find(Some(&dir))?.conf();
            config::load(&conf).map_err(|error| error.to_string())?.controller.sockets()
        }
        None => context::cluster()?.controller_socket,
    };
    let answered = context::block_on(async {
        let mut controller = Controller::connect(&socket).await?;
        let clock = Clock::local(None, controller.configuration().await?.now);
        let query = query(&parsed, &clock).map_err(CallError::Other)?;
        let mut missing = Vec::new();
        let answered = controller.audit(&query, |page| {
            page.records.iter().for_each(|record| show(record, &parsed, &clock));
            missing.extend(page.missing);
        });
        answered.await.map(|()| missing)
    });
    let missing = answered.map_err(|error| trouble::text(&error))?;
    for controller in &missing {
        eprintln!("spur audit: controller {controller} does not answer: what it alone heard is missing here");
    }
    Ok(i32::from(!missing.is_empty()))
}

/// Of an agent, which has its own and answers nobody about it, or of a controller that does not run.
fn read_files(dir: &Path, parsed: &Parsed) -> Result<i32, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let clock = Clock::local(None, Timestamp(now.as_micros() as u64));
    let query = query(parsed, &clock)?;
    let mut newest = VecDeque::new();
    let read = audit::read(dir, &query, |record| {
        match query.last {
            0 => show(&record, parsed, &clock),
            last => {
                newest.push_back(record);
                if newest.len() > last as usize {
                    newest.pop_front();
                }
            }
        }
        true
    });
    read.map_err(|error| format!("{}: {error}", dir.display()))?;
    newest.iter().for_each(|record| show(record, parsed, &clock));
    Ok(0)
}

fn query(parsed: &Parsed, clock: &Clock) -> Result<AuditQuery, String> {
    let words = |name| parsed.value(name).map_or_else(Vec::new, |words| words.split(',').map(str::to_owned).collect());
    let moment = |name| -> Result<Option<Timestamp>, String> {
        let Some(word) = parsed.value(name) else { return Ok(None) };
        let secs = when::parse(word, clock.now().secs() as i64, clock, Lean::Past);
        let secs = secs.and_then(|secs| u64::try_from(secs).ok());
        let wrong = || format!("--{name}: {word} is no time, such as 2026-11-19T08:00 or now-1hour");
        secs.map(Timestamp::from_secs).map(Some).ok_or_else(wrong)
    };
    let last = match (parsed.value("last"), parsed.has("all")) {
        (Some(_), true) => return Err("--last and --all exclude each other".into()),
        (Some(word), false) => {
            let number = word.parse().ok().filter(|number| *number > 0);
            number.ok_or_else(|| format!("--last: {word} is no number of records"))?
        }
        (None, true) => 0,
        (None, false) => LAST_UNASKED,
    };
    Ok(AuditQuery {
        users: words("user"),
        calls: words("call"),
        only_refused: parsed.has("refused"),
        since: moment("since")?,
        until: moment("until")?,
        last,
    })
}

fn show(record: &AuditRecord, parsed: &Parsed, clock: &Clock) {
    if parsed.has("json") {
        let mut fields: BTreeMap<&str, serde_json::Value> = BTreeMap::new();
        fields.insert("time", Clock::utc(record.at).show(record.at).into());
        fields.insert("at_micros", record.at.0.into());
        fields.insert("user", record.user.as_str().into());
        fields.insert("uid", record.uid.into());
        fields.insert("from", record.from.as_str().into());
        fields.insert("behalf", record.behalf.as_str().into());
        fields.insert("call", record.call.as_str().into());
        fields.insert("about", record.about.as_str().into());
        fields.insert("allowed", record.refused.is_empty().into());
        fields.insert("why_refused", record.refused.as_str().into());
        fields.insert("n_more", record.n_more.into());
        fields.insert("n_lost", record.n_lost.into());
        fields.insert("controller", record.controller.into());
        say!("{}", serde_json::to_string(&fields).unwrap_or_default());
        return;
    }
    say!("{}", line(record, clock));
}

/// What a person reads: nothing that callers have chosen comes to the terminal as it is.
fn line(record: &AuditRecord, clock: &Clock) -> String {
    let user = if record.user.is_empty() { "-" } else { &record.user };
    let mut text = format!("{} {user} ({}) {}", clock.show(record.at), record.from, record.call);
    if !record.behalf.is_empty() {
        text.push_str(&format!(" for {}", record.behalf));
    }
    if !record.about.is_empty() {
        text.push_str(&format!(": {}", record.about));
    }
    if !record.refused.is_empty() {
        text.push_str(&format!(" REFUSED: {}", record.refused));
    }
    if record.n_more > 0 {
        text.push_str(&format!(" (the last of {} within a minute that are only counted)", record.n_more));
    }
    if record.n_lost > 0 {
        text.push_str(&format!(" ({} records before this one are missing)", record.n_lost));
    }
    text.chars()
        .flat_map(|letter| match letter.is_control() {
            true => letter.escape_default().collect::<Vec<_>>(),
            false => vec![letter],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_line_tells_who_what_and_why() {
        let record = AuditRecord {
            at: Timestamp::from_secs(60),
            user: "mallory".into(),
            uid: Some(1000),
            from: "node n1".into(),
            behalf: "root".into(),
            call: "Submit".into(),
            about: "job \u{1b}[2J".into(),
            refused: "Access/permission denied".into(),
            n_more: 3,
            n_lost: 0,
            controller: 2,
        };
        let told = line(&record, &Clock::utc(Timestamp::from_secs(60)));
        let wanted = "1970-01-01T00:01:00 mallory (node n1) Submit for root: job \\u{1b}[2J REFUSED: Access/permission denied \
                      (the last of 3 within a minute that are only counted)";
        assert_eq!(told, wanted);
    }
}
