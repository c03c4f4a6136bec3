//! `scontrol update`: which thing, and which changes, before anything is sent.
use model::loudness::LogLevel;
use model::partition_field::{self, Mistake};
use model::update::{JobChanges, NodeChange, PartitionChanges, StepLimit};
use model::{JobRef, gres, hostlist};

use crate::job_ids;

use super::reservation;
use super::update_job::{self, Now, Problem, is_short_for};

/// What `update` asks for.
#[derive(Debug, PartialEq)]
pub enum Update {
    /// Ids as written; those that are none are kept for the message.
    Job {
        ids: Vec<(String, Option<JobRef>)>,
        changes: Box<JobChanges>,
    },
    /// All jobs of this name, perhaps only one user's.
    Named {
        name: String,
        uid: Option<u32>,
        changes: Box<JobChanges>,
    },
    /// How much the controller's log says.
    Loudness(LogLevel),
    /// `ALL` is every node.
    Nodes {
        nodes: Option<Vec<String>>,
        changes: Vec<NodeChange>,
    },
    Partition {
        name: String,
        changes: PartitionChanges,
    },
    Reservation(reservation::Said),
}

/// Why not, as lines for stderr.
pub type Lines = Vec<String>;

const NO_CHANGES: &str = "No changes specified";

pub fn parse(words: &[String], now: &Now) -> Result<Update, Lines> {
    if words.is_empty() {
        return Err(vec!["too few arguments for update keyword".into()]);
    }
    let pairs = pairs(words);
    let Some((thing, at)) = thing(pairs.iter().map(|(key, value)| (*key, value.is_some()))) else {
        return Err(vec![
            "No valid entity in update command".into(),
            "Input line must include \"NodeName\", \"PartitionName\", \"Reservation\", \"JobId\", or \"SlurmctldDebug\""
                .into(),
        ]);
    };
    match thing {
        Thing::Job => job(&pairs, at, now),
        Thing::NamedJobs => named_jobs(&pairs, at, now),
        Thing::Node => nodes(&pairs, at),
        Thing::Reservation => reservation::update(words, now).map(Update::Reservation),
        Thing::Partition => partition(words),
        Thing::Step => step(&pairs, at),
        Thing::Loudness => {
            let text = pairs[at].1.unwrap_or_default();
            let level = LogLevel::parse(text).ok_or_else(|| vec![format!("invalid debug level: {text}")])?;
            Ok(Update::Loudness(level))
        }
        Thing::FrontEnd => Err(vec!["scontrol: error: update of FrontendName is not supported".into()]),
    }
}

/// What is to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    Job,
    NamedJobs,
    Node,
    Reservation,
    Partition,
    Step,
    Loudness,
    FrontEnd,
}

/// The keys that say so, and which of them goes first: a job may be told to go to another partition, and a reservation has one too.
pub const THINGS: &[(&str, usize, Thing)] = &[
    ("JobId", 3, Thing::Job),
    ("JobName", 4, Thing::NamedJobs),
    ("NodeName", 5, Thing::Node),
    ("Node", 4, Thing::Node),
    ("ReservationName", 3, Thing::Reservation),
    ("PartitionName", 9, Thing::Partition),
    ("StepId", 4, Thing::Step),
    ("SlurmctldDebug", 2, Thing::Loudness),
    ("FrontendName", 1, Thing::FrontEnd),
];

/// The thing that one of these keys names, and which of them does; keys without a value name nothing.
pub fn thing<'a>(keys: impl Iterator<Item = (&'a str, bool)> + Clone) -> Option<(Thing, usize)> {
    THINGS.iter().find_map(|(name, least, thing)| {
        let at = keys.clone().position(|(key, has_value)| has_value && is_short_for(key, name, *least))?;
        Some((*thing, at))
    })
}

/// `Key=value`; of a job also `key value`, in two words.
fn pairs(words: &[String]) -> Vec<(&str, Option<&str>)> {
    let is_job = words.iter().any(|word| is_short_for(word.split_once('=').map_or(word, |(key, _)| key), "JobId", 3));
    let mut pairs = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.split_once('=') {
            Some((key, value)) => pairs.push((key, Some(unquote(value)))),
            None if is_job && update_job::alone(word).is_none() => {
                pairs.push((word.as_str(), rest.next().map(|value| unquote(value))));
            }
            None => pairs.push((word.as_str(), None)),
        }
    }
    pairs
}

/// `JobName=x [UserID=y] …`
fn named_jobs(pairs: &Pairs, at: usize, now: &Now) -> Result<Update, Lines> {
    let name = pairs[at].1.unwrap_or_default().to_string();
    let owner = pairs.iter().position(|(key, value)| value.is_some() && is_short_for(key, "UserId", 3));
    let uid = match owner.and_then(|owner| pairs[owner].1) {
        Some(user) => {
            let uid = crate::users::uid_of(user).or_else(|| user.parse().ok());
            Some(uid.ok_or_else(|| vec![format!("Invalid UserID value: {user}"), "Request aborted".into()])?)
        }
        None => None,
    };
    let mut changes = JobChanges::default();
    for (_, (key, value)) in pairs.iter().enumerate().filter(|(index, _)| *index != at && Some(*index) != owner) {
        let Some(value) = value else { return Err(vec![format!("Invalid input: {key}"), "Request aborted".into()]) };
        update_job::note(&mut changes, key, value, now).map_err(|problem| match problem {
            Problem::Lines(lines) => lines,
            Problem::OfJob(message) => vec![message],
        })?;
    }
    if changes == JobChanges::default() {
        return Err(vec![NO_CHANGES.into()]);
    }
    Ok(Update::Named { name, uid, changes: Box::new(changes) })
}

/// `StepId=12[.0] TimeLimit=5`
/// All that can be changed of a step.
pub const STEP_KEY: &str = "TimeLimit";

fn step(pairs: &Pairs, at: usize) -> Result<Update, Lines> {
    let text = pairs[at].1.unwrap_or_default();
    let mut changes = JobChanges::default();
    let no_step = || vec![format!("Invalid StepID parameter: {}={text}", pairs[at].0), "Request aborted".to_string()];
    let target = job_ids::parse(text).ok_or_else(no_step)?;
    for pair in others(pairs, at) {
        let (key, value) = pair?;
        if !is_short_for(key, STEP_KEY, 1) {
            let line = format!("Update of this parameter is not supported: {key}={value}");
            return Err(vec![line, "Request aborted".into()]);
        }
        let minutes = match model::duration::parse(value).map(model::duration::Limit::in_whole_minutes) {
            Some(model::duration::Limit::Seconds(secs)) => u32::try_from(secs / 60).ok(),
            Some(model::duration::Limit::Unlimited) => Some(StepLimit::UNLIMITED),
            None => None,
        };
        let minutes = minutes.ok_or_else(|| vec!["scontrol: error: Invalid TimeLimit value".to_string()])?;
        changes.step_limit = Some(StepLimit { step: target.step, minutes });
    }
    if changes.step_limit.is_none() {
        return Err(vec![NO_CHANGES.into()]);
    }
    Ok(Update::Job { ids: vec![(text.to_string(), Some(target.job))], changes: Box::new(changes) })
}

pub(crate) fn unquote(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

type Pairs<'a> = [(&'a str, Option<&'a str>)];

fn others<'a>(pairs: &'a Pairs<'a>, at: usize) -> impl Iterator<Item = Result<(&'a str, &'a str), Lines>> {
    let rest = pairs.iter().enumerate().filter(move |(index, _)| *index != at);
    rest.map(|(_, (key, value))| match value {
        Some(value) => Ok((*key, *value)),
        None => Err(vec![format!("Invalid input: {key}"), "Request aborted".into()]),
    })
}

fn job(pairs: &Pairs, at: usize, now: &Now) -> Result<Update, Lines> {
    let text = pairs[at].1.unwrap_or_default();
    let mut changes = JobChanges::default();
    for (_, (key, value)) in pairs.iter().enumerate().filter(|(index, _)| *index != at) {
        let value = match (value, update_job::alone(key)) {
            (Some(value), _) => value,
            (None, Some(set)) => {
                set(&mut changes);
                continue;
            }
            (None, None) => return Err(vec![format!("Invalid input: {key}"), "Request aborted".into()]),
        };
        update_job::note(&mut changes, key, value, now).map_err(|problem| match problem {
            Problem::Lines(lines) => lines,
            Problem::OfJob(message) => vec![format!("{message} for job {text}")],
        })?;
    }
    if changes == JobChanges::default() {
        return Err(vec![NO_CHANGES.into()]);
    }
    let ids = job_ids::split_list(text).into_iter().map(|item| (item.to_string(), job_ids::parse_job(item))).collect();
    Ok(Update::Job { ids, changes: Box::new(changes) })
}

/// What a key of a node is about. Its state and the reason for it go together.
enum NodeKey {
    State,
    Reason,
    Other(fn(&str) -> Result<NodeChange, Lines>),
}

/// What can be changed of a node, each with the fewest letters that name it.
const NODE_KEYS: &[(&str, usize, NodeKey)] = &[
    ("State", 1, NodeKey::State),
    ("Reason", 1, NodeKey::Reason),
    (
        "Weight",
        1,
        NodeKey::Other(|value| {
            let wrong = |why| vec![format!("scontrol: error: Weight value ({value}) is {why}"), NO_CHANGES.into()];
            weight(value).map(NodeChange::Weight).map_err(wrong)
        }),
    ),
    ("ActiveFeatures", 3, NodeKey::Other(|value| Ok(NodeChange::ActiveFeatures(words(value))))),
    ("Comment", 1, NodeKey::Other(|value| Ok(NodeChange::Comment(value.into())))),
    ("Extra", 2, NodeKey::Other(|value| Ok(NodeChange::Extra(value.into())))),
    ("Gres", 1, NodeKey::Other(node_gres)),
    ("InstanceId", 9, NodeKey::Other(|value| Ok(NodeChange::InstanceIds(words(value))))),
    ("InstanceType", 9, NodeKey::Other(|value| Ok(NodeChange::InstanceTypes(words(value))))),
    ("Topology", 1, NodeKey::Other(|value| Ok(NodeChange::Topology(Some(value.into()))))),
    ("AvailableFeatures", 2, NodeKey::Other(|value| Ok(NodeChange::Features(words(value))))),
    ("Features", 1, NodeKey::Other(|value| Ok(NodeChange::Features(words(value))))),
];

pub fn node_keys() -> impl Iterator<Item = &'static str> {
    NODE_KEYS.iter().map(|(name, ..)| *name)
}

fn node_gres(value: &str) -> Result<NodeChange, Lines> {
    let units = gres::parse_list(value)
        .map_err(|_| vec!["slurm_update error: Invalid generic resource (gres) specification".to_string()])?;
    let unit =
        |one: gres::GresRequest| gres::Gres { name: one.name, kind: one.kind, count: one.count, ..Default::default() };
    Ok(NodeChange::Gres(units.into_iter().map(unit).collect()))
}

fn nodes(pairs: &Pairs, at: usize) -> Result<Update, Lines> {
    let text = pairs[at].1.unwrap_or_default();
    let (mut state, mut reason, mut changes) = (None, None, Vec::new());
    for (_, (key, value)) in pairs.iter().enumerate().filter(|(index, _)| *index != at) {
        let value = value.ok_or_else(|| stands_alone(key))?;
        let found = NODE_KEYS.iter().find(|(name, least, _)| is_short_for(key, name, *least));
        let Some((.., found)) = found else {
            let line = format!("Update of this parameter is not supported: {key}={value}");
            return Err(vec![line, "Request aborted".into()]);
        };
        match found {
            NodeKey::State => state = Some(value),
            NodeKey::Reason => reason = Some(value),
            NodeKey::Other(read) => changes.push(read(value)?),
        }
    }
    match (state, reason) {
        (Some(state), reason) => changes.push(node_state(state, reason)?),
        (None, Some(reason)) => changes.push(NodeChange::Reason(reason.into())),
        (None, None) if changes.is_empty() => return Err(vec![NO_CHANGES.into()]),
        (None, None) => {}
    }
    if text.is_empty() {
        return Err(vec!["slurm_update error: Invalid node name specified".into()]);
    }
    if text.eq_ignore_ascii_case("ALL") {
        return Ok(Update::Nodes { nodes: None, changes });
    }
    let unit = |name: &str, argument: &str| Ok(vec![format!("{name}{{{argument}}}")]);
    let nodes = hostlist::expand_with(text, unit)
        .map_err(|_| vec!["slurm_update error: Invalid node name specified".to_string()])?;
    Ok(Update::Nodes { nodes: Some(nodes), changes })
}

/// A weight, or what is wrong with it.
fn weight(text: &str) -> Result<u32, String> {
    /// Above it Slurm has numbers that mean something else.
    const MOST: i128 = 4_294_967_280;
    match text.parse::<i128>() {
        Err(_) => Err("not a valid number".into()),
        Ok(below) if below < 0 => Err("less than zero".into()),
        Ok(above) if above > MOST => Err(format!("greater than {MOST}")),
        Ok(weight) => Ok(weight as u32),
    }
}

fn words(list: &str) -> Vec<String> {
    list.split(',').filter(|one| !one.is_empty()).map(str::to_string).collect()
}

fn node_state(word: &str, reason: Option<&str>) -> Result<NodeChange, Lines> {
    let with_reason = || match reason {
        Some(reason) if !reason.is_empty() => Ok(reason.to_string()),
        _ => Err(vec!["You must specify a reason when DOWNING or DRAINING a node. Request denied".to_string()]),
    };
    match word.to_ascii_uppercase().as_str() {
        "DRAIN" => Ok(NodeChange::Drain { reason: with_reason()? }),
        "DOWN" => Ok(NodeChange::Down { reason: with_reason()? }),
        "RESUME" => Ok(NodeChange::Resume),
        "IDLE" => Ok(NodeChange::Idle),
        "UNDRAIN" => Ok(NodeChange::Undrain),
        "FAIL" | "FAILING" => Ok(NodeChange::Fail { reason: with_reason()? }),
        "CANCEL_REBOOT" => Ok(NodeChange::CancelReboot),
        "NORESP" | "NO_RESPOND" => Ok(NodeChange::NotResponding),
        // The last, as where nothing saves power.
        "ALLOC" | "ALLOCATED" | "MIX" | "MIXED" | "UNKNOWN" | "POWER_DOWN" | "POWER_DOWN_ASAP" | "POWER_DOWN_FORCE"
        | "POWER_UP" => Err(vec!["slurm_update error: Invalid node state specified".into()]),
        "FUTURE" => Err(vec![format!("scontrol: error: node state {word} is not supported")]),
        _ => Err(vec![
            format!("Invalid input: state={word}"),
            "Request aborted".into(),
            "Valid states are: NoResp DRAIN DOWN FAIL IDLE RESUME UNDRAIN CANCEL_REBOOT".into(),
            "Not all states are valid given a node's prior state".into(),
        ]),
    }
}

fn partition(words: &[String]) -> Result<Update, Lines> {
    let (networks, words): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| is_network(word));
    let words: Vec<String> = words.into_iter().cloned().collect();
    let topology = networks.last().and_then(|word| word.split_once('=')).map(|(_, name)| name.to_string());
    let (name, fields) = partition_fields(&words)?;
    if fields.is_empty() && topology.is_none() {
        return Err(vec!["scontrol: error: No changes specified".into()]);
    }
    Ok(Update::Partition { name, changes: PartitionChanges { fields, topology, ..Default::default() } })
}

fn is_network(word: &str) -> bool {
    word.split_once('=').is_some_and(|(key, _)| is_short_for(key, "Topology", 3))
}

/// What is said of which partition: the name and its rules.
pub fn partition_fields(words: &[String]) -> Result<(String, Vec<partition_field::Field>), Lines> {
    let (mut name, mut fields) = (String::new(), Vec::new());
    for word in words {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key, unquote(value)),
            // The entity itself may stand alone beside its name: `create partition PartitionName=…`.
            None if is_short_for(word, "PartitionName", 3) && words.len() > 1 => continue,
            None => return Err(stands_alone(word)),
        };
        if is_short_for(key, "PartitionName", 2) {
            name = value.into();
            continue;
        }
        // `Nodes+=n4` is `Nodes=+n4`.
        let (key, value) = match (key.strip_suffix('+'), key.strip_suffix('-')) {
            (Some(key), _) => (key, format!("+{value}")),
            (_, Some(key)) => (key, format!("-{value}")),
            _ => (key, value.to_string()),
        };
        let field = partition_field::parse(key, &value).map_err(|mistake| mistaken(key, &value, &mistake))?;
        fields.push(field);
    }
    Ok((name, fields))
}

/// A key of a node or a partition without a value.
fn stands_alone(word: &str) -> Lines {
    vec![format!("scontrol: error: Invalid input: {word}  Request aborted")]
}

fn mistaken(key: &str, value: &str, mistake: &Mistake) -> Lines {
    let invalid = format!("scontrol: error: Invalid input: {key}={value}");
    match mistake {
        Mistake::UnknownKey => vec![
            format!("scontrol: error: Update of this parameter is not supported: {key}={value}"),
            "scontrol: error: Request aborted".into(),
        ],
        Mistake::Expected(_) if is_short_for(key, "State", 2) => {
            vec![invalid, "scontrol: error: Acceptable State values are UP, DOWN, DRAIN and INACTIVE".into()]
        }
        Mistake::Expected("YES or NO") => {
            let name = partition_field::whole_name(key);
            vec![invalid, format!("scontrol: error: Acceptable {name} values are YES and NO")]
        }
        Mistake::Expected(_) => vec![match partition_field::whole_name(key) {
            "MaxTime" | "DefaultTime" | "DefTime" => format!("scontrol: error: Invalid input {key}={value}"),
            "MaxNodes" => format!("scontrol: error: Invalid numeric value \"{value}\" for MaxNodes."),
            "MinNodes" => format!("scontrol: error: \"{value}\" is not a valid node count"),
            "TRESBillingWeights" => "slurm_update error: Invalid TRESBillingWeights specification".to_string(),
            "OverSubscribe" | "Shared" | "Nodes" | "AllocNodes" | "PreemptMode" => invalid,
            name => format!("scontrol: error: Invalid {name} value: {value}"),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::calendar::UTC;

    fn check(line: &str, expected: &str) {
        let words: Vec<String> = line.split('+').map(str::to_string).filter(|word| !word.is_empty()).collect();
        let now = Now { unix_secs: 0, zone: &UTC };
        let shown = match parse(&words, &now) {
            Ok(Update::Named { name, uid, .. }) => format!("jobs {name} {uid:?}"),
            Ok(Update::Job { ids, .. }) => {
                format!("job {}", ids.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>().join(" "))
            }
            Ok(Update::Nodes { nodes, changes }) => format!("nodes {nodes:?} {changes:?}"),
            Ok(Update::Partition { name, changes }) => format!("partition {name} {:?}", changes.fields),
            Ok(Update::Reservation(said)) => format!("reservation {} {:?}", said.name, said.fields),
            Ok(Update::Loudness(level)) => format!("log {}", level.word()),
            Err(lines) => lines.join(" / "),
        };
        assert_eq!(shown, expected, "{line}");
    }

    #[test]
    fn updates_name_one_thing() {
        check("", "too few arguments for update keyword");
        check(
            "foo=bar",
            "No valid entity in update command / Input line must include \"NodeName\", \"PartitionName\", \
             \"Reservation\", \"JobId\", or \"SlurmctldDebug\"",
        );
        check("jobid=999999", "No changes specified");
        check("job+5_[1-3]+nice=5+name+abc", "job 5_[1-3]");
        check("jobid=5+nice", "job 5");
        check("job+5+resetaccruetime", "job 5");
        check("job+5", "No changes specified");
        check("jobid=5+comment", "Invalid input: comment / Request aborted");
        check("timelimit=11+jobid=5,6_[1,2]", "job 5 6_[1,2]");
        check("job=5+timelimit", "Invalid input: timelimit / Request aborted");
        check("jobid=5+partition=debug", "job 5");
        check("nodename=n1", "No changes specified");
        check(
            "node=n[1-2]+state=DRAIN+reason=\"two words\"",
            "nodes Some([\"n1\", \"n2\"]) [Drain { reason: \"two words\" }]",
        );
        check("nodename=n5+state=drain", "You must specify a reason when DOWNING or DRAINING a node. Request denied");
        check("nodename=all+reason=x", "nodes None [Reason(\"x\")]");
        check("nodename=n5+state=alloc", "slurm_update error: Invalid node state specified");
        check("nodename=n5+state=future", "scontrol: error: node state future is not supported");
        check("nodename=n5+state=power_up", "slurm_update error: Invalid node state specified");
        check("nodename=n5+state", "scontrol: error: Invalid input: state  Request aborted");
        check("nodename=+state=resume", "slurm_update error: Invalid node name specified");
        check("nodename=n5+weight=x", "scontrol: error: Weight value (x) is not a valid number / No changes specified");
        check("nodename=n5+weight=-1", "scontrol: error: Weight value (-1) is less than zero / No changes specified");
        let large = "scontrol: error: Weight value (4294967281) is greater than 4294967280 / No changes specified";
        check("nodename=n5+weight=4294967281", large);
        check("stepid=5.0+timelimit=x", "scontrol: error: Invalid TimeLimit value");
        check("stepid=x+timelimit=5", "Invalid StepID parameter: stepid=x / Request aborted");
        check("stepid=5.0+timelimit=unlimited", "job 5.0");
        let named = "nodes Some([\"n1\", \"n2\"]) [InstanceIds([\"a\", \"b\"]), InstanceTypes([\"large\"])]";
        check("nodename=n1,n2+instanceid=a,b+InstanceType=large", named);
        check("nodename=n5+instanceid=", "nodes Some([\"n5\"]) [InstanceIds([])]");
        check("nodename=n5+foo=bar", "Update of this parameter is not supported: foo=bar / Request aborted");
        check("partitionname=p+state=down", "partition p [State(Down)]");
        check(
            "partitionname=p+state=x",
            "scontrol: error: Invalid input: state=x / \
             scontrol: error: Acceptable State values are UP, DOWN, DRAIN and INACTIVE",
        );
        check("partitionname=p", "scontrol: error: No changes specified");
        check("partitionname=p+state", "scontrol: error: Invalid input: state  Request aborted");
        check("partitionname=p+maxtime=x", "scontrol: error: Invalid input maxtime=x");
        check("partitionname=p+maxnodes=x", "scontrol: error: Invalid numeric value \"x\" for MaxNodes.");
        check("partitionname=p+minnodes=x", "scontrol: error: \"x\" is not a valid node count");
        check("partitionname=p+prioritytier=x", "scontrol: error: Invalid PriorityTier value: x");
        check("partitionname=p+maxmempercpu=x", "scontrol: error: Invalid MaxMemPerCPU value: x");
        check("partitionname=p+priority=3", "partition p [Priority(3)]");
        check("reservation=r+x=y", "scontrol: error: Unknown parameter x=y.  No reservation update.");
        let both = "scontrol: error: TRES=<buffer_spec>=<num> and BurstBuffer=<buffer_spec> are mutually exclusive.  \
                    No reservation update.";
        check("reservation=r+burstbuffer=1G+tres=bb/native=5M", both);
        check("reservation=r+tres=bb/native=5M,bb/native=1G", "reservation r [BurstBuffer(\"native:5M,native:1G\")]");
    }
}
