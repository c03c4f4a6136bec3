//! `scontrol create reservation` and `update reservation`: what is said of it, before anything is sent.
use model::calendar::Zone;
use model::duration::{self, Limit};
use model::license;
use model::partition_field::NodesChange;
use model::reservation::{Flag, Members};
use model::reservation_field::{Field, MembersChange};
use model::time::Span;
use model::{NodeName, Timestamp, hostlist, size};

use super::update::Lines;
use super::update_job::{Now, is_short_for};

/// What was said, and of which.
#[derive(Debug, Default, PartialEq)]
pub struct Said {
    pub name: String,
    pub fields: Vec<Field>,
}

/// How a value relates to what is there: `=`, `+=`, `-=`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    Is,
    Plus,
    Minus,
}

pub fn create(words: &[String], now: &Now) -> Result<Said, Lines> {
    const END: &str = "No reservation created.";
    let mut said = read(words, now, END)?;
    let fail = |text: &str| Err(vec![format!("scontrol: error: {text}  {END}")]);
    let fields = &mut said.fields;
    let start = fields.iter().find_map(|field| if let Field::Start(at) = field { Some(*at) } else { None });
    let end = fields.iter().find_map(|field| if let Field::End(at) = field { Some(*at) } else { None });
    let duration = fields.iter().find_map(|field| if let Field::Duration(span) = field { Some(*span) } else { None });
    let has = |fields: &[Field], is: fn(&Field) -> bool| fields.iter().any(is);
    let Some(start) = start else { return fail("A start time must be given.") };
    match (end, duration) {
        (None, None) => return fail("An end time or duration must be given."),
        (Some(end), Some(Some(span))) if start + span != end => {
            return fail("StartTime + Duration does not equal EndTime.");
        }
        (Some(end), _) if end < start => return fail("Start time cannot be after end time."),
        _ => (),
    }
    let has_partition = has(fields, |field| matches!(field, Field::Partition(_)));
    let has_what = has(fields, |field| {
        matches!(
            field,
            Field::Nodes(_) | Field::NodeCount(_) | Field::CoreCounts(_) | Field::Licenses(_) | Field::BurstBuffer(_)
        )
    });
    let names_all = has(fields, |field| matches!(field, Field::Nodes(NodesChange::All)));
    if !has_what && !has_partition {
        return fail("CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be specified.");
    }
    let is_flag = |field: &Field| match field {
        Field::Flags(flags) | Field::AddFlags(flags) => flags.contains(&Flag::PartNodes),
        _ => false,
    };
    if has(fields, is_flag) && !(has_partition && names_all) {
        return fail("PART_NODES flag requires specifying a Partition and ALL nodes.");
    }
    // Nothing said but a partition: all of it.
    if has_partition && (names_all || !has_what) {
        fields.retain(|field| !matches!(field, Field::Nodes(_)));
        fields.push(Field::Nodes(NodesChange::All));
        fields.push(Field::AddFlags(vec![Flag::PartNodes]));
    }
    if !has(fields, |field| matches!(field, Field::Users(_) | Field::Accounts(_) | Field::Groups(_))) {
        return fail("Either Users/Groups and/or Accounts must be specified.");
    }
    Ok(said)
}

pub fn update(words: &[String], now: &Now) -> Result<Said, Lines> {
    const END: &str = "No reservation update.";
    let said = read(words, now, END)?;
    match said.name.as_str() {
        "" => Err(vec![format!("scontrol: error: Reservation must be given.  {END}")]),
        _ => Ok(said),
    }
}

/// What the wall clock here is ahead of UTC.
pub fn utc_offset_secs(zone: &impl Zone, unix_secs: i64) -> i32 {
    let local = zone.to_local(unix_secs);
    (model::calendar::UTC.to_unix(local) - unix_secs) as i32
}

fn read(words: &[String], now: &Now, end: &str) -> Result<Said, Lines> {
    let mut said = Said::default();
    for word in words {
        let (key, value, relation) = split(word);
        let fail = |text: String| vec![format!("scontrol: error: {text}  {end}")];
        let Some(value) = value else {
            // The entity itself may stand alone: `create reservation …`.
            if is_short_for(key, "ReservationName", 3) || is_short_for(key, "Reservations", 3) {
                continue;
            }
            if is_short_for(key, "Skip", 2) {
                said.fields.push(Field::Skip);
                continue;
            }
            return Err(fail(format!("Unknown parameter {word}.")));
        };
        field(&mut said, key, value, relation, now).map_err(fail)?;
    }
    if said.fields.iter().filter(|field| matches!(field, Field::BurstBuffer(_))).count() > 1 {
        let text = "TRES=<buffer_spec>=<num> and BurstBuffer=<buffer_spec> are mutually exclusive.";
        return Err(vec![format!("scontrol: error: {text}  {end}")]);
    }
    Ok(said)
}

fn split(word: &str) -> (&str, Option<&str>, Relation) {
    let Some((key, value)) = word.split_once('=') else { return (word, None, Relation::Is) };
    let value = super::update::unquote(value);
    match (key.strip_suffix('+'), key.strip_suffix('-')) {
        (Some(key), _) => (key, Some(value), Relation::Plus),
        (_, Some(key)) => (key, Some(value), Relation::Minus),
        _ => (key, Some(value), Relation::Is),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Name,
    Accounts,
    BurstBuffer,
    Comment,
    Start,
    End,
    Duration,
    Flags,
    NodeCount,
    Nodes,
    Features,
    Groups,
    Licenses,
    MaxStartDelay,
    Partition,
    Users,
    Tres,
    CoreCounts,
    Watts,
}

/// What can be said of a reservation, each with the fewest letters that name it.
const KEYS: &[(&str, usize, Key)] = &[
    ("ReservationName", 1, Key::Name),
    ("Accounts", 1, Key::Accounts),
    ("BurstBuffer", 2, Key::BurstBuffer),
    ("Comment", 3, Key::Comment),
    ("StartTime", 1, Key::Start),
    ("EndTime", 1, Key::End),
    ("Duration", 1, Key::Duration),
    ("Flags", 2, Key::Flags),
    ("NodeCnt", 5, Key::NodeCount),
    ("NodesCnt", 6, Key::NodeCount),
    ("Nodes", 1, Key::Nodes),
    ("Features", 2, Key::Features),
    ("Groups", 1, Key::Groups),
    ("Licenses", 2, Key::Licenses),
    ("MaxStartDelay", 2, Key::MaxStartDelay),
    ("PartitionName", 1, Key::Partition),
    ("Users", 1, Key::Users),
    ("TRES", 1, Key::Tres),
    ("CoreCnt", 2, Key::CoreCounts),
    ("Watts", 1, Key::Watts),
];

/// All but what is refused.
pub fn keys() -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter(|(.., key)| *key != Key::Watts).map(|(name, ..)| *name)
}

fn field(said: &mut Said, key: &str, value: &str, relation: Relation, now: &Now) -> Result<(), String> {
    let found = KEYS.iter().find(|(name, least, _)| is_short_for(key, name, *least));
    let Some((.., found)) = found else { return Err(format!("Unknown parameter {key}={value}.")) };
    let fields = &mut said.fields;
    let moment = |what: &str| {
        let secs = now.zone.moment(value, now.unix_secs).ok_or_else(|| format!("Invalid {what} time: {value}"))?;
        Ok::<_, String>(Timestamp::from_secs(u64::try_from(secs).unwrap_or(0)))
    };
    match found {
        Key::Name => said.name = value.into(),
        Key::Accounts => fields.push(Field::Accounts(members(value, relation))),
        Key::BurstBuffer => fields.push(Field::BurstBuffer(value.into())),
        Key::Comment => fields.push(Field::Comment(value.into())),
        Key::Start => fields.push(Field::Start(moment("start")?)),
        Key::End => fields.push(Field::End(moment("end")?)),
        Key::Duration => fields.push(length(value, relation)?),
        Key::Flags => flags(fields, value, relation)?,
        Key::NodeCount => {
            let counts: Option<Vec<u64>> = value.split(',').map(count).collect();
            let sum: Option<u64> = counts.map(|counts| counts.iter().sum());
            let count = sum.and_then(|sum| u32::try_from(sum).ok()).filter(|count| *count > 0);
            fields.push(Field::NodeCount(count.ok_or_else(|| format!("Invalid node count: {value}"))?));
        }
        Key::Nodes => {
            fields.push(Field::Nodes(nodes(value, relation).ok_or_else(|| format!("Invalid node list: {value}"))?))
        }
        Key::Features => fields.push(Field::Features(value.into())),
        Key::Groups => fields.push(Field::Groups(members(value, relation))),
        Key::Licenses => {
            let list = license::parse_list(value).ok_or_else(|| format!("Invalid licenses: {value}"))?;
            fields.push(Field::Licenses(list));
        }
        Key::MaxStartDelay => {
            let span = duration::parse_limit(value).and_then(Limit::seconds).map(Span::from_secs);
            fields.push(Field::MaxStartDelay(span.ok_or_else(|| format!("Invalid duration {value}."))?));
        }
        Key::Partition => fields.push(Field::Partition(value.into())),
        Key::Users => fields.push(Field::Users(members(value, relation))),
        Key::Tres => tres(fields, value)?,
        Key::CoreCounts => {
            let counts: Option<Vec<u32>> = value.split(',').map(|text| text.parse().ok()).collect();
            let counts = counts.filter(|counts| counts.iter().any(|count| *count > 0));
            fields.push(Field::CoreCounts(counts.ok_or_else(|| format!("Invalid core count {value}"))?));
        }
        Key::Watts => return Err("Watts is not supported.".into()),
    }
    Ok(())
}

fn count(text: &str) -> Option<u64> {
    size::parse_bytes(text, 1)
}

fn length(value: &str, relation: Relation) -> Result<Field, String> {
    let limit = duration::parse_limit(value).ok_or_else(|| format!("Invalid duration {value}."))?;
    let span = limit.seconds().map(Span::from_secs);
    let change = || span.ok_or_else(|| format!("Invalid duration {value}."));
    Ok(match relation {
        Relation::Is => Field::Duration(span),
        Relation::Plus => Field::LongerBy(change()?),
        Relation::Minus => Field::ShorterBy(change()?),
    })
}

/// `a,b`; `-a` shuts out. A list is of one kind.
fn members(value: &str, relation: Relation) -> MembersChange {
    let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
    let members = Members {
        are_excluded: value.trim_start().starts_with('-'),
        names: names.map(|name| name.trim_start_matches(['-', '+']).to_string()).collect(),
    };
    match relation {
        Relation::Is => MembersChange::To(members),
        Relation::Plus => MembersChange::With(members),
        Relation::Minus => MembersChange::Without(members),
    }
}

fn nodes(value: &str, relation: Relation) -> Option<NodesChange> {
    let names =
        || -> Option<Vec<NodeName>> { Some(hostlist::expand(value).ok()?.into_iter().map(NodeName::from).collect()) };
    match relation {
        Relation::Is => NodesChange::parse(value),
        Relation::Plus => Some(NodesChange::With(names()?)),
        Relation::Minus => Some(NodesChange::Without(names()?)),
    }
}

fn flags(fields: &mut Vec<Field>, value: &str, relation: Relation) -> Result<(), String> {
    let (mut set, mut unset) = (Vec::new(), Vec::new());
    for word in value.split(',').filter(|word| !word.is_empty()) {
        let (word, removes) = match word.strip_prefix('-') {
            Some(word) => (word, true),
            None => (word.strip_prefix('+').unwrap_or(word), false),
        };
        let (name, argument) = match word.split_once('=') {
            Some((name, argument)) => (name, Some(argument)),
            None => (word, None),
        };
        let wrong = || format!("Error parsing flags {value}.");
        let (name, takes_away) = match name.to_ascii_uppercase().strip_prefix("NO_") {
            Some(rest) if Flag::parse(name).is_none() => (rest.to_string(), true),
            _ => (name.to_string(), removes),
        };
        // As it was called before.
        let name = if name.eq_ignore_ascii_case("LICENSE_ONLY") { "ANY_NODES".to_string() } else { name };
        let flag = Flag::parse(&name).ok_or_else(wrong)?;
        if let Some(argument) = argument {
            let span = duration::parse_limit(argument).and_then(Limit::seconds).ok_or_else(wrong)?;
            if flag != Flag::PurgeComp {
                return Err(wrong());
            }
            fields.push(Field::PurgeAfter(Span::from_secs(span)));
        }
        if takes_away { unset.push(flag) } else { set.push(flag) }
    }
    match relation {
        // Flags that are there stay, as in Slurm.
        Relation::Is | Relation::Plus => {
            fields.push(Field::AddFlags(set));
            fields.push(Field::RemoveFlags(unset));
        }
        Relation::Minus => {
            unset.extend(set);
            fields.push(Field::RemoveFlags(unset));
        }
    }
    Ok(())
}

/// `TRES=node=2,license/a=3`
fn tres(fields: &mut Vec<Field>, value: &str) -> Result<(), String> {
    let wrong = || format!("Invalid TRES specification: {value}.");
    let (mut licenses, mut buffers) = (Vec::new(), Vec::new());
    for item in value.split(',').filter(|item| !item.is_empty()) {
        let (name, count) = item.split_once('=').ok_or_else(wrong)?;
        if let Some(plugin) = name.strip_prefix("bb/") {
            // With a unit, as `BurstBuffer=` has it.
            buffers.push(format!("{plugin}:{count}"));
            continue;
        }
        let count: u32 = count.parse().map_err(|_| wrong())?;
        match name.split_once('/') {
            Some(("license", name)) => licenses.push(license::LicenseCount { name: name.into(), count }),
            None if name == "node" => fields.push(Field::NodeCount(count)),
            None if name == "cpu" => fields.push(Field::CoreCounts(vec![count])),
            _ => {
                return Err(format!(
                    "TRES {name} is not supported: nodes, cores, licences and burst buffers are reserved."
                ));
            }
        }
    }
    if !licenses.is_empty() {
        fields.push(Field::Licenses(licenses));
    }
    if !buffers.is_empty() {
        fields.push(Field::BurstBuffer(buffers.join(",")));
    }
    Ok(())
}
