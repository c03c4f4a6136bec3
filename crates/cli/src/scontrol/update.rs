//! `scontrol update`: which thing, and which changes, before anything is sent.
use model::partition::PartitionState;
use model::update::{JobChanges, NodeChange, PartitionChanges};
use model::{JobRef, hostlist};

use crate::job_ids;

use super::update_job::{self, Now, Problem, is_short_for};

/// What `update` asks for.
#[derive(Debug, PartialEq)]
pub enum Update {
    /// Ids as written; those that are none are kept for the message.
    Job {
        ids: Vec<(String, Option<JobRef>)>,
        changes: Box<JobChanges>,
    },
    /// `ALL` is every node.
    Nodes {
        nodes: Option<Vec<String>>,
        changes: Vec<NodeChange>,
    },
    Partition {
        name: String,
        changes: PartitionChanges,
    },
}

/// Why not, as lines for stderr.
pub type Lines = Vec<String>;

pub fn parse(words: &[String], now: &Now) -> Result<Update, Lines> {
    if words.is_empty() {
        return Err(vec!["too few arguments for update keyword".into()]);
    }
    let pairs: Vec<(&str, Option<&str>)> = words
        .iter()
        .map(|word| match word.split_once('=') {
            Some((key, value)) => (key, Some(unquote(value))),
            None => (word.as_str(), None),
        })
        .collect();
    let named = |name: &str, least: usize| {
        pairs.iter().position(|(key, value)| value.is_some() && is_short_for(key, name, least))
    };
    // A job may be told to go to another partition, so the job is looked for first.
    if let Some(at) = named("JobId", 3) {
        return job(&pairs, at, now);
    }
    if let Some(at) = named("NodeName", 5).or_else(|| named("Node", 4)) {
        return nodes(&pairs, at);
    }
    if let Some(at) = named("PartitionName", 9) {
        return partition(&pairs, at);
    }
    for (name, least) in [("ReservationName", 3), ("StepId", 4), ("SlurmctldDebug", 2), ("FrontendName", 1)] {
        if named(name, least).is_some() {
            return Err(vec![format!("scontrol: error: update of {name} is not supported")]);
        }
    }
    Err(vec![
        "No valid entity in update command".into(),
        "Input line must include \"NodeName\", \"PartitionName\", \"Reservation\", \"JobId\", or \"SlurmctldDebug\""
            .into(),
    ])
}

fn unquote(value: &str) -> &str {
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
    for pair in others(pairs, at) {
        let (key, value) = pair?;
        update_job::note(&mut changes, key, value, now).map_err(|problem| match problem {
            Problem::Lines(lines) => lines,
            Problem::OfJob(message) => vec![format!("{message} for job {text}")],
        })?;
    }
    if changes == JobChanges::default() {
        return Err(vec!["No changes specified".into()]);
    }
    let ids = job_ids::split_list(text).into_iter().map(|item| (item.to_string(), job_ids::parse_job(item))).collect();
    Ok(Update::Job { ids, changes: Box::new(changes) })
}

fn nodes(pairs: &Pairs, at: usize) -> Result<Update, Lines> {
    let text = pairs[at].1.unwrap_or_default();
    let (mut state, mut reason, mut changes) = (None, None, Vec::new());
    for pair in others(pairs, at) {
        let (key, value) = pair?;
        if is_short_for(key, "State", 1) {
            state = Some(value);
        } else if is_short_for(key, "Reason", 1) {
            reason = Some(value);
        } else if is_short_for(key, "Weight", 1) {
            let Ok(weight) = value.parse() else {
                return Err(vec![
                    format!("scontrol: error: Weight value ({value}) is not a valid number"),
                    "No changes specified".into(),
                ]);
            };
            changes.push(NodeChange::Weight(weight));
        } else if is_short_for(key, "Topology", 1) {
            changes.push(NodeChange::Topology(Some(value.into())));
        } else if is_short_for(key, "AvailableFeatures", 2) || is_short_for(key, "Features", 1) {
            changes.push(NodeChange::Features(
                value.split(',').filter(|one| !one.is_empty()).map(str::to_string).collect(),
            ));
        } else {
            let line = format!("Update of this parameter is not supported: {key}={value}");
            return Err(vec![line, "Request aborted".into()]);
        }
    }
    match (state, reason) {
        (Some(state), reason) => changes.push(node_state(state, reason)?),
        (None, Some(reason)) => changes.push(NodeChange::Reason(reason.into())),
        (None, None) if changes.is_empty() => return Err(vec!["No changes specified".into()]),
        (None, None) => {}
    }
    if text.eq_ignore_ascii_case("ALL") {
        return Ok(Update::Nodes { nodes: None, changes });
    }
    let unit = |name: &str, argument: &str| Ok(vec![format!("{name}{{{argument}}}")]);
    let nodes = hostlist::expand_with(text, unit)
        .map_err(|_| vec!["slurm_update error: Invalid node name specified".to_string()])?;
    Ok(Update::Nodes { nodes: Some(nodes), changes })
}

fn node_state(word: &str, reason: Option<&str>) -> Result<NodeChange, Lines> {
    let with_reason = || match reason {
        Some(reason) if !reason.is_empty() => Ok(reason.to_string()),
        _ => Err(vec!["You must specify a reason when DOWNING or DRAINING a node. Request denied".to_string()]),
    };
    match word.to_ascii_uppercase().as_str() {
        "DRAIN" => Ok(NodeChange::Drain { reason: with_reason()? }),
        "DOWN" => Ok(NodeChange::Down { reason: with_reason()? }),
        "RESUME" | "IDLE" => Ok(NodeChange::Resume),
        "UNDRAIN" => Ok(NodeChange::Undrain),
        "ALLOC" | "ALLOCATED" | "MIX" | "MIXED" | "UNKNOWN" => {
            Err(vec!["slurm_update error: Invalid node state specified".into()])
        }
        "FAIL" | "FUTURE" | "NORESP" | "NO_RESPOND" | "POWER_DOWN" | "POWER_DOWN_ASAP" | "POWER_DOWN_FORCE"
        | "POWER_UP" => Err(vec![format!("scontrol: error: node state {word} is not supported")]),
        _ => Err(vec![
            format!("Invalid input: state={word}"),
            "Request aborted".into(),
            "Valid states are: DRAIN DOWN IDLE RESUME UNDRAIN".into(),
            "Not all states are valid given a node's prior state".into(),
        ]),
    }
}

fn partition(pairs: &Pairs, at: usize) -> Result<Update, Lines> {
    let name = pairs[at].1.unwrap_or_default().to_string();
    let mut changes = PartitionChanges::default();
    for pair in others(pairs, at) {
        let (key, value) = pair?;
        if is_short_for(key, "Topology", 3) {
            changes.topology = Some(value.into());
            continue;
        }
        if !is_short_for(key, "State", 2) {
            return Err(vec![
                format!("scontrol: error: Update of this parameter is not supported: {key}={value}"),
                "scontrol: error: Request aborted".into(),
            ]);
        }
        changes.state = Some(match value.to_ascii_uppercase().as_str() {
            "UP" => PartitionState::Up,
            "DOWN" => PartitionState::Down,
            "DRAIN" => PartitionState::Drain,
            "INACTIVE" => PartitionState::Inactive,
            _ => {
                return Err(vec![
                    format!("scontrol: error: Invalid input: {key}={value}"),
                    "scontrol: error: Acceptable State values are UP, DOWN, DRAIN and INACTIVE".into(),
                ]);
            }
        });
    }
    if changes == PartitionChanges::default() {
        return Err(vec!["scontrol: error: No changes specified".into()]);
    }
    Ok(Update::Partition { name, changes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::calendar::UTC;

    fn check(line: &str, expected: &str) {
        let words: Vec<String> = line.split('+').map(str::to_string).filter(|word| !word.is_empty()).collect();
        let now = Now { unix_secs: 0, zone: &UTC };
        let shown = match parse(&words, &now) {
            Ok(Update::Job { ids, .. }) => {
                format!("job {}", ids.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>().join(" "))
            }
            Ok(Update::Nodes { nodes, changes }) => format!("nodes {nodes:?} {changes:?}"),
            Ok(Update::Partition { name, changes }) => format!("partition {name} {:?}", changes.state),
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
        check("nodename=n5+state=fail", "scontrol: error: node state fail is not supported");
        check("nodename=n5+foo=bar", "Update of this parameter is not supported: foo=bar / Request aborted");
        check("partitionname=p+state=down", "partition p Some(Down)");
        check(
            "partitionname=p+state=x",
            "scontrol: error: Invalid input: state=x / \
             scontrol: error: Acceptable State values are UP, DOWN, DRAIN and INACTIVE",
        );
        check("partitionname=p", "scontrol: error: No changes specified");
        check("reservation=r+x=y", "scontrol: error: update of ReservationName is not supported");
    }
}
