//! The words after an entity: `where` conditions, `set` values, a format, and names on their own.
use std::collections::BTreeSet;

use model::accounts::{AdminLevel, Edit, EntityFilter, Field, NamedValue, Shares, Value, tres};
use model::duration;

use super::conditions::{self, Condition};
use super::{Entity, Verb};

/// What the words said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Words {
    pub filter: EntityFilter,
    pub edits: Vec<Edit>,
    /// What was set, as the user is told of it.
    pub told: Vec<(String, String)>,
    pub format: Option<String>,
    pub parent: String,
    /// As they were given: the first becomes a new user's own.
    pub accounts: Vec<String>,
    pub with_associations: bool,
    pub with_coordinators: bool,
    pub is_tree: bool,
    /// Without columns for limits.
    pub without_limits: bool,
    /// Without what is the parents'.
    pub without_inherited: bool,
    pub with_sub_accounts: bool,
    pub only_defaults: bool,
    /// Something was asked for that no cluster here is.
    pub is_elsewhere: bool,
    pub classifications: BTreeSet<String>,
    /// Kinds of resources.
    pub kinds: BTreeSet<String>,
    /// With what a federation makes of a cluster.
    pub with_federations: bool,
    /// Keys that new users get.
    pub wckeys: Vec<String>,
}

/// What the words before `where` or `set` are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    Conditions,
    Values,
}

/// How a value is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Count,
    Minutes,
    Seconds,
    Thousandths,
    Tres,
    Text,
    Names,
    Shares,
    /// `MaxCPUs=4` is `MaxTRES=cpu=4`.
    Single(&'static str),
}

/// Keys that can be set, with as many letters as Slurm needs of each.
#[rustfmt::skip]
const VALUES: &[(&str, usize, Field, Kind)] = &[
    ("adminlevel", 2, Field::AdminLevel, Kind::Text),
    ("classification", 3, Field::Classification, Kind::Text),
    ("comment", 3, Field::Comment, Kind::Text),
    ("defaultaccount", 8, Field::DefaultAccount, Kind::Text),
    ("defaultqos", 8, Field::DefaultQos, Kind::Text),
    ("defaultwckey", 8, Field::DefaultWckey, Kind::Text),
    ("description", 3, Field::Description, Kind::Text),
    ("fairshare", 1, Field::Shares, Kind::Shares),
    ("shares", 1, Field::Shares, Kind::Shares),
    ("flags", 2, Field::Flags, Kind::Names),
    ("gracetime", 3, Field::GraceTime, Kind::Seconds),
    ("grpcpumins", 7, Field::GrpTresMins, Kind::Single("cpu")),
    ("grpcpurunmins", 7, Field::GrpTresRunMins, Kind::Single("cpu")),
    ("grpcpus", 6, Field::GrpTres, Kind::Single("cpu")),
    ("grpjobsaccrue", 8, Field::GrpJobsAccrue, Kind::Count),
    ("grpjobs", 4, Field::GrpJobs, Kind::Count),
    ("grpmemory", 4, Field::GrpTres, Kind::Single("mem")),
    ("grpnodes", 4, Field::GrpTres, Kind::Single("node")),
    ("grpsubmitjobs", 4, Field::GrpSubmit, Kind::Count),
    ("grptresmins", 8, Field::GrpTresMins, Kind::Tres),
    ("grptresrunmins", 8, Field::GrpTresRunMins, Kind::Tres),
    ("grptres", 7, Field::GrpTres, Kind::Tres),
    ("grpwall", 4, Field::GrpWall, Kind::Minutes),
    ("limitfactor", 2, Field::LimitFactor, Kind::Thousandths),
    ("maxcpuminsperjob", 7, Field::MaxTresMins, Kind::Single("cpu")),
    ("maxcpurunminsperuser", 10, Field::MaxTresRunMinsUser, Kind::Single("cpu")),
    ("maxcpurunmins", 10, Field::MaxTresRunMins, Kind::Single("cpu")),
    ("maxcpusperuser", 11, Field::MaxTresUser, Kind::Single("cpu")),
    ("maxcpuspu", 9, Field::MaxTresUser, Kind::Single("cpu")),
    ("maxcpusperjob", 6, Field::MaxTres, Kind::Single("cpu")),
    ("maxjobsaccrueperuser", 12, Field::MaxJobsAccrue, Kind::Count),
    ("maxjobsaccrueperaccount", 16, Field::MaxJobsAccrueAccount, Kind::Count),
    ("maxjobsaccruepa", 15, Field::MaxJobsAccrueAccount, Kind::Count),
    ("maxjobsaccruepu", 15, Field::MaxJobsAccrue, Kind::Count),
    ("maxjobsaccrue", 8, Field::MaxJobsAccrue, Kind::Count),
    ("maxjobsperaccount", 11, Field::MaxJobsAccount, Kind::Count),
    ("maxjobspa", 9, Field::MaxJobsAccount, Kind::Count),
    ("maxjobsperuser", 8, Field::MaxJobs, Kind::Count),
    ("maxjobspu", 9, Field::MaxJobs, Kind::Count),
    ("maxjobs", 4, Field::MaxJobs, Kind::Count),
    ("maxnodesperuser", 12, Field::MaxTresUser, Kind::Single("node")),
    ("maxnodespu", 10, Field::MaxTresUser, Kind::Single("node")),
    ("maxnodesperjob", 4, Field::MaxTres, Kind::Single("node")),
    ("maxsubmitjobsperaccount", 17, Field::MaxSubmitAccount, Kind::Count),
    ("maxsubmitjobspa", 15, Field::MaxSubmitAccount, Kind::Count),
    ("maxsubmitjobspu", 15, Field::MaxSubmit, Kind::Count),
    ("maxsubmitpa", 11, Field::MaxSubmitAccount, Kind::Count),
    ("maxsubmitpu", 11, Field::MaxSubmit, Kind::Count),
    ("maxsubmitjobsperuser", 4, Field::MaxSubmit, Kind::Count),
    ("maxtresminsperjob", 8, Field::MaxTresMins, Kind::Tres),
    ("maxtrespernode", 11, Field::MaxTresPerNode, Kind::Tres),
    ("maxtresperaccount", 11, Field::MaxTresAccount, Kind::Tres),
    ("maxtrespa", 9, Field::MaxTresAccount, Kind::Tres),
    ("maxtresperuser", 11, Field::MaxTresUser, Kind::Tres),
    ("maxtrespu", 9, Field::MaxTresUser, Kind::Tres),
    ("maxtresperjob", 7, Field::MaxTres, Kind::Tres),
    ("maxtresrunminsperaccount", 18, Field::MaxTresRunMinsAccount, Kind::Tres),
    ("maxtresrunminspa", 16, Field::MaxTresRunMinsAccount, Kind::Tres),
    ("maxtresrunminsperuser", 8, Field::MaxTresRunMinsUser, Kind::Tres),
    ("maxtresrunminspu", 16, Field::MaxTresRunMinsUser, Kind::Tres),
    ("maxtresrunmins", 8, Field::MaxTresRunMins, Kind::Tres),
    ("maxwalldurationperjob", 4, Field::MaxWall, Kind::Minutes),
    ("mintresperjob", 7, Field::MinTres, Kind::Tres),
    ("mincpusperjob", 6, Field::MinTres, Kind::Single("cpu")),
    ("minpriothresh", 4, Field::MinPriority, Kind::Count),
    ("newname", 1, Field::NewName, Kind::Text),
    ("organization", 1, Field::Organization, Kind::Text),
    ("parent", 3, Field::Parent, Kind::Text),
    ("preemptmode", 8, Field::PreemptMode, Kind::Text),
    ("preemptexempttime", 8, Field::PreemptExemptTime, Kind::Seconds),
    ("preempt", 3, Field::Preempt, Kind::Names),
    ("priority", 3, Field::Priority, Kind::Count),
    ("qoslevel", 1, Field::Qos, Kind::Names),
    ("rawusage", 7, Field::RawUsage, Kind::Count),
    ("usagefactor", 6, Field::UsageFactor, Kind::Thousandths),
    ("usagethreshold", 6, Field::UsageThreshold, Kind::Thousandths),
];

pub(super) fn is_begin(word: &str, of: &str, least: usize) -> bool {
    let word = word.to_lowercase();
    word.len() >= least.min(of.len()) && of.starts_with(&word)
}

type Switch = (&'static str, usize, fn(&mut Words));

/// Words that stand alone and say how to show something.
const SWITCHES: &[Switch] = &[
    ("withassoc", 5, |read| read.with_associations = true),
    ("withcoordinators", 5, |read| read.with_coordinators = true),
    ("wolimits", 3, |read| read.without_limits = true),
    ("woplimits", 4, |read| read.without_limits = true),
    // Nothing that was deleted is kept.
    ("withdeleted", 5, |_| ()),
    ("withrawqoslevel", 5, |_| ()),
    ("tree", 4, |read| read.is_tree = true),
];
const OF_PLACES: &[Switch] = &[
    ("wopinfo", 4, |read| read.without_inherited = true),
    ("withsubaccounts", 5, |read| read.with_sub_accounts = true),
    ("onlydefaults", 4, |read| read.only_defaults = true),
];
const OF_CLUSTERS: &[Switch] = &[("withfed", 5, |read| read.with_federations = true)];

fn switches(entity: Entity) -> impl Iterator<Item = &'static Switch> {
    let more: &[Switch] = match entity {
        Entity::Association => OF_PLACES,
        Entity::Cluster => OF_CLUSTERS,
        _ => &[],
    };
    SWITCHES.iter().chain(more)
}

/// The words that fit behind these, from the tables that read them: for completion in a shell.
pub fn next(entity: Entity, words: &[&str], verb: Verb) -> Vec<String> {
    let is = |word: &&&str, what: &str| word.eq_ignore_ascii_case(what);
    let last = words.iter().rev().find(|word| is(word, "where") || is(word, "set"));
    let begin = match last {
        Some(word) if is(&word, "set") => Begin::Values,
        None if verb == Verb::Add => Begin::Values,
        _ => Begin::Conditions,
    };
    let mut found: Vec<String> = Vec::new();
    let key = |name: &str| format!("{}=", title(name).filter(|title| title.eq_ignore_ascii_case(name)).unwrap_or(name));
    match begin {
        Begin::Values => {
            let settable = VALUES.iter().filter(|(_, _, field, _)| entity.has(*field));
            found.extend(settable.map(|(name, ..)| key(name)));
            let named = conditions::names(entity).filter(|(_, one)| conditions::names_what_is_added(entity, *one));
            found.extend(named.filter(|_| verb == Verb::Add).map(|(name, _)| key(name)));
        }
        Begin::Conditions => found.extend(conditions::names(entity).map(|(name, _)| key(name))),
    }
    match verb {
        Verb::Show => {
            found.extend(switches(entity).map(|(name, ..)| name.to_string()));
            found.push("format=".into());
        }
        Verb::Modify => found.extend(["where".into(), "set".into()]),
        Verb::Delete => found.push("where".into()),
        Verb::Add => {}
    }
    found.sort();
    found.dedup();
    found
}

/// Reads the words; the errors are all that is wrong with them, one a line.
pub fn read(entity: Entity, words: &[String], mut begin: Begin) -> Result<Words, Vec<String>> {
    let mut read = Words::default();
    let mut wrong = Vec::new();
    for word in words {
        let lower = word.to_lowercase();
        match lower.as_str() {
            "where" => begin = Begin::Conditions,
            "set" => begin = Begin::Values,
            _ => match switches(entity).find(|(name, least, _)| is_begin(&lower, name, *least)) {
                Some((.., set)) => set(&mut read),
                None => {
                    if let Err(text) = one(entity, word, begin, &mut read) {
                        wrong.push(text);
                    }
                }
            },
        }
    }
    if wrong.is_empty() { Ok(read) } else { Err(wrong) }
}

fn one(entity: Entity, word: &str, begin: Begin, read: &mut Words) -> Result<(), String> {
    let Some((key, sign, value)) = split(word) else {
        return conditions::alone(entity, word, read);
    };
    if is_begin(key, "format", 1) && key.len() >= 2 || key.eq_ignore_ascii_case("o") {
        // Nothing is what is usual.
        read.format = Some(value.to_string()).filter(|format| !format.is_empty());
        return Ok(());
    }
    if entity == Entity::User && is_begin(key, "wckeys", 1) {
        read.wckeys =
            unquoted(value).split(',').map(|name| name.trim().to_string()).filter(|name| !name.is_empty()).collect();
        return Ok(());
    }
    let is_value = |field: &Field| begin == Begin::Values || !chooses(entity, *field);
    let settable = VALUES
        .iter()
        .find(|(name, least, field, _)| is_begin(key, name, *least) && is_value(field) && entity.has(*field));
    if begin == Begin::Values {
        let condition =
            conditions::find(entity, key).filter(|condition| conditions::names_what_is_added(entity, *condition));
        return match (condition, settable) {
            (Some(condition), _) if !is_really_a_value(entity, condition) => {
                conditions::add(entity, condition, value, read)
            }
            (_, Some((_, _, field, kind))) => set(*field, *kind, sign, key, value, read),
            (Some(condition), None) => conditions::add(entity, condition, value, read),
            (None, None) => Err(format!(" Unknown option: {word}\n Use keyword 'where' to modify condition")),
        };
    }
    match conditions::find(entity, key) {
        Some(condition) => conditions::add(entity, condition, value, read),
        None if entity == Entity::Association => Err(format!(" Unknown condition: {word}")),
        None => Err(format!(" Unknown condition: {word}\n Use keyword 'set' to modify value")),
    }
}

fn is_really_a_value(entity: Entity, condition: Condition) -> bool {
    entity == Entity::User && condition == Condition::DefaultAccounts
}

fn chooses(entity: Entity, field: Field) -> bool {
    match entity {
        Entity::Account => matches!(field, Field::Description | Field::Organization | Field::Parent),
        Entity::User => matches!(field, Field::AdminLevel | Field::DefaultAccount),
        _ => false,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Set,
    Add,
    Remove,
}

fn split(word: &str) -> Option<(&str, Sign, &str)> {
    let (key, value) = word.split_once('=')?;
    let value = unquoted(value);
    Some(match (key.strip_suffix('+'), key.strip_suffix('-')) {
        (Some(key), _) => (key, Sign::Add, value),
        (_, Some(key)) => (key, Sign::Remove, value),
        _ => (key, Sign::Set, value),
    })
}

pub(super) fn unquoted(text: &str) -> &str {
    let inner = |mark: char| text.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
    inner('"').or(inner('\'')).unwrap_or(text)
}

/// Names in a list; accounts, users and QOS are in small letters, as in Slurm.
pub(super) fn names(text: &str, entity: Entity) -> BTreeSet<String> {
    let keeps_case = matches!(entity, Entity::Wckey);
    let word = |word: &str| if keeps_case { word.to_string() } else { word.to_lowercase() };
    unquoted(text).split(',').map(str::trim).filter(|name| !name.is_empty()).map(word).collect()
}

fn set(field: Field, kind: Kind, sign: Sign, key: &str, text: &str, read: &mut Words) -> Result<(), String> {
    let bad = || format!(" Bad value '{text}' for {key}");
    if sign != Sign::Set && kind != Kind::Names {
        return Err(format!(" {key} takes no += or -="));
    }
    let value = match kind {
        Kind::Count => Value::Count(count(text).ok_or_else(bad)?),
        Kind::Minutes => Value::Count(minutes(text).ok_or_else(bad)?),
        Kind::Seconds => Value::Count(seconds(text).ok_or_else(bad)?),
        Kind::Thousandths => Value::Count(thousandths(text).ok_or_else(bad)?),
        Kind::Tres => Value::Tres(amounts(text, key)?),
        Kind::Single(name) => Value::Tres(tres::parse(&format!("{name}={text}")).map_err(|_| bad())?),
        Kind::Shares if text.eq_ignore_ascii_case("parent") => Value::Shares(Shares::Parent),
        Kind::Shares => Value::Shares(Shares::Number(count(text).ok_or_else(bad)?.unwrap_or(1))),
        Kind::Text if field == Field::PreemptMode => Value::Text(preempt_mode(text).ok_or_else(bad)?),
        Kind::Text
            if matches!(field, Field::Description | Field::Organization | Field::Comment | Field::Classification) =>
        {
            Value::Text(text.into())
        }
        Kind::Text if text == "-1" => Value::Text(String::new()),
        Kind::Text => Value::Text(text.to_lowercase()),
        Kind::Names => Value::Names(named(field, sign, text)?),
    };
    if field == Field::RawUsage && value != Value::Count(Some(0)) {
        return Err("sacctmgr: error: Raw usage can only be set to 0 (zero)".into());
    }
    if let (Field::AdminLevel, Value::Text(level)) = (field, &value) {
        AdminLevel::parse(level).ok_or_else(bad)?;
    }
    if field == Field::Parent {
        read.parent = text.to_lowercase();
    }
    read.told.push((key.to_string(), text.to_string()));
    read.edits.push(Edit { field, value });
    Ok(())
}

/// A limit on what is never counted would never hold anybody.
fn amounts(text: &str, key: &str) -> Result<Vec<(String, Option<u64>)>, String> {
    let amounts = tres::parse(text).map_err(|word| format!(" Bad TRES '{word}' for {key}"))?;
    let uncounted = amounts.iter().find(|(name, amount)| amount.is_some() && !tres::is_counted(name));
    match uncounted {
        Some((name, _)) => Err(format!(" {name} is not counted here: a limit on it ({key}) would have no effect")),
        None => Ok(amounts),
    }
}

/// `a,b` instead of what was; `+a,-b` and `+=`, `-=` change it.
fn named(field: Field, sign: Sign, text: &str) -> Result<NamedValue, String> {
    let canonical = |name: &str| match field {
        Field::Flags => flag(name),
        _ => Ok(name.to_lowercase()),
    };
    let words = || text.split(',').map(str::trim).filter(|word| !word.is_empty());
    let is_signed = words().any(|word| word.starts_with(['+', '-'])) && text != "-1";
    if sign == Sign::Set && !is_signed {
        let words: Vec<&str> = if text == "-1" { Vec::new() } else { words().collect() };
        return Ok(NamedValue::Set(words.into_iter().map(canonical).collect::<Result<_, _>>()?));
    }
    let change = |word: &str| {
        let is_added = if is_signed { !word.starts_with('-') } else { sign == Sign::Add };
        Ok((is_added, canonical(word.trim_start_matches(['+', '-']))?))
    };
    words().map(change).collect::<Result<_, String>>().map(NamedValue::Changes)
}

pub const QOS_FLAGS: &[&str] = &[
    "DenyOnLimit",
    "EnforceUsageThreshold",
    "NoReserve",
    "PartitionMaxNodes",
    "PartitionMinNodes",
    "OverPartQOS",
    "PartitionTimeLimit",
    "RequiresReservation",
    "NoDecay",
    "UsageFactorSafe",
    "Relative",
];

fn flag(name: &str) -> Result<String, String> {
    let known = QOS_FLAGS.iter().find(|known| known.eq_ignore_ascii_case(name));
    let known = known.ok_or_else(|| {
        let valid = QOS_FLAGS.join(",");
        format!(" Unknown QOS flag used in:\n  '{name}'\n Valid QOS flags are\n  '{valid}'")
    })?;
    Ok(known.to_string())
}

fn preempt_mode(text: &str) -> Option<String> {
    let known = ["cluster", "off", "cancel", "requeue", "suspend", "gang"];
    let text = text.to_lowercase();
    text.split(',').all(|word| known.contains(&word)).then(|| if text == "cluster" { String::new() } else { text })
}

/// -1 takes a limit away.
fn count(text: &str) -> Option<Option<u32>> {
    if text == "-1" { Some(None) } else { text.parse().ok().map(Some) }
}

fn minutes(text: &str) -> Option<Option<u32>> {
    if matches!(text.to_lowercase().as_str(), "-1" | "unlimited" | "infinite") {
        return Some(None);
    }
    match duration::parse(text)? {
        duration::Limit::Seconds(secs) => Some(Some(u32::try_from(secs.div_ceil(60)).ok()?)),
        duration::Limit::Unlimited => Some(None),
    }
}

/// Seconds alone, or with colons.
fn seconds(text: &str) -> Option<Option<u32>> {
    if text.contains([':', '-']) && text != "-1" {
        return match duration::parse(text)? {
            duration::Limit::Seconds(secs) => Some(Some(u32::try_from(secs).ok()?)),
            duration::Limit::Unlimited => Some(None),
        };
    }
    count(text)
}

fn thousandths(text: &str) -> Option<Option<u32>> {
    if text == "-1" {
        return Some(None);
    }
    let number: f64 = text.parse().ok()?;
    (0.0..4_000_000.0).contains(&number).then(|| Some((number * 1000.0).round() as u32))
}

/// Slurm's spelling of a key, as it tells of what was set.
pub fn title(key: &str) -> Option<&'static str> {
    const TITLES: &[&str] = &[
        "AdminLevel",
        "Comment",
        "DefaultAccount",
        "DefaultQOS",
        "DefaultWCKey",
        "Description",
        "Fairshare",
        "Flags",
        "GraceTime",
        "GrpJobs",
        "GrpJobsAccrue",
        "GrpSubmitJobs",
        "GrpTRES",
        "GrpTRESMins",
        "GrpTRESRunMins",
        "GrpWall",
        "LimitFactor",
        "MaxJobs",
        "MaxJobsAccrue",
        "MaxJobsAccruePerAccount",
        "MaxJobsAccruePerUser",
        "MaxJobsPerAccount",
        "MaxJobsPerUser",
        "MaxSubmitJobs",
        "MaxSubmitJobsPerAccount",
        "MaxSubmitJobsPerUser",
        "MaxTRESPerJob",
        "MaxTRESPerAccount",
        "MaxTRESPerNode",
        "MaxTRESPerUser",
        "MaxTRESMinsPerJob",
        "MaxWall",
        "MinPrioThresh",
        "MinTRESPerJob",
        "Organization",
        "Parent",
        "Preempt",
        "PreemptExemptTime",
        "PreemptMode",
        "Priority",
        "QOS",
        "UsageFactor",
        "UsageThreshold",
    ];
    let short = [("pu", "PerUser"), ("pa", "PerAccount"), ("pj", "PerJob"), ("pn", "PerNode")];
    let lower = key.to_lowercase();
    let lower = short
        .iter()
        .find_map(|(end, whole)| lower.strip_suffix(end).map(|begin| format!("{begin}{}", whole.to_lowercase())))
        .unwrap_or(lower);
    let exact = TITLES.iter().find(|title| title.to_lowercase() == lower);
    exact.or_else(|| TITLES.iter().find(|title| title.to_lowercase().starts_with(&lower))).copied()
}

#[cfg(test)]
mod tests {
    use model::accounts::Limits;

    use super::*;

    fn sample(field: Field, kind: Kind) -> &'static str {
        match kind {
            Kind::Count | Kind::Minutes | Kind::Seconds | Kind::Thousandths | Kind::Shares | Kind::Single(_) => "0",
            Kind::Tres => "cpu=3",
            Kind::Names if field == Field::Flags => "NoDecay",
            Kind::Text if field == Field::AdminLevel => "operator",
            Kind::Text if field == Field::PreemptMode => "cancel",
            Kind::Text | Kind::Names => "word",
        }
    }

    /// Whatever a user, an account or a QOS can be told is a limit of theirs, or one of the few other things that they have.
    #[test]
    fn whatever_can_be_set_is_there_to_be_set() {
        use Field::*;
        let others = [Shares, Comment, Qos, DefaultQos, RawUsage];
        for (word, _, field, kind) in VALUES {
            for entity in [Entity::Account, Entity::User, Entity::Qos] {
                if !entity.has(*field) {
                    continue;
                }
                let words = [format!("{word}={}", sample(*field, *kind))];
                let read = read(entity, &words, Begin::Values).unwrap_or_else(|wrong| panic!("{word}: {wrong:?}"));
                let Some(edit) = read.edits.first() else { continue };
                let is_there = match entity {
                    Entity::Qos => edit.field == RawUsage || model::accounts::Qos::default().set(edit),
                    Entity::Account if matches!(edit.field, Description | Organization | Parent) => true,
                    Entity::User if matches!(edit.field, DefaultAccount | DefaultWckey | AdminLevel | NewName) => true,
                    _ => others.contains(&edit.field) || Limits::default().set(edit.field, &edit.value),
                };
                assert!(is_there, "{entity:?} {word}");
            }
        }
    }

    #[test]
    fn limits_of_a_qos_have_short_names_too() {
        for (word, field) in [
            ("MaxSubmitJobsPU=1", Field::MaxSubmit),
            ("MaxSubmitJobsPA=1", Field::MaxSubmitAccount),
            ("MaxCPUsPU=1", Field::MaxTresUser),
            ("MaxNodesPU=1", Field::MaxTresUser),
            ("MaxNodes=1", Field::MaxTres),
        ] {
            let read = read(Entity::Qos, &[word.into()], Begin::Values).unwrap();
            assert_eq!(read.edits.iter().map(|edit| edit.field).collect::<Vec<_>>(), [field], "{word}");
        }
    }

    #[test]
    fn what_is_never_counted_is_not_limited() {
        let set = |text: &str| read(Entity::User, &[text.into()], Begin::Values).map(|read| read.edits.len());
        let uncounted = " energy is not counted here: a limit on it (GrpTRES) would have no effect";
        assert_eq!(set("GrpTRES=cpu=1,energy=5"), Err(vec![uncounted.into()]));
        assert_eq!(set("GrpTRES=energy=-1"), Ok(1));
        assert_eq!(set("MaxTRESRunMins=cpu=5,gres/gpu=7"), Ok(1));
    }
}
