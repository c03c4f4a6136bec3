//! `scontrol update ENTITY`: what each change asks of the controller.
use std::collections::BTreeSet;

use model::node::NodePhase;
use model::request::{JobFilter, NodeView};
use model::update::NodeChange;
use model::{Command, NodeName, Reject, hostlist};
use wire::{CallError, Controller};

use super::jobs::{self, Verb};
use super::{Reply, asking, loudness, now, reservation, resized, update, update_job};
use crate::trouble;

/// `Nodes=switch{rack1}` as the nodes it means; whatever names no unit stays as it is.
pub(super) fn without_units(words: &[String]) -> Result<Vec<String>, Reply> {
    let list_of = |word: &String| -> Option<(String, String)> {
        let (key, value) = word.split_once('=')?;
        let is_list = update_job::is_short_for(key.trim_end_matches(['+', '-']), "Nodes", 3);
        (is_list && value.contains('{')).then(|| (key.to_string(), value.to_string()))
    };
    if !words.iter().any(|word| list_of(word).is_some()) {
        return Ok(words.to_vec());
    }
    let mut resolved = Vec::new();
    let reply = asking("slurm_update error", async |controller, _| {
        let config = controller.configuration().await?.config;
        let network = crate::network::of(&config, &controller.nodes().await?);
        for word in words {
            let Some((key, list)) = list_of(word) else {
                resolved.push(word.clone());
                continue;
            };
            let (sign, list) = list.split_at(list.len() - list.trim_start_matches(['+', '-']).len());
            match network.expand(list) {
                Ok(names) => resolved.push(format!("{key}={sign}{}", hostlist::compress(names))),
                Err(_) => return Ok(Reply::failed("slurm_update error: Invalid node name specified")),
            }
        }
        Ok(Reply::default())
    });
    if reply.code == 0 { Ok(resolved) } else { Err(reply) }
}

pub(super) fn update_any(rest: &[String]) -> Reply {
    let rest = &match without_units(rest) {
        Ok(words) => words,
        Err(reply) => return reply,
    };
    let clock = now();
    let moment = update_job::Now { unix_secs: clock.now().secs() as i64, zone: &clock };
    let update = match update::parse(rest, &moment) {
        Ok(update) => update,
        Err(lines) => return Reply::failed_lines(&lines),
    };
    if let update::Update::Loudness(level) = update {
        return loudness::set(level);
    }
    asking("slurm_update error", async |controller, _| match update {
        update::Update::Loudness(_) => Ok(Reply::default()),
        update::Update::Job { ids, changes } => update_jobs(controller, ids, changes).await,
        update::Update::Named { name, uid, changes } => {
            let page =
                controller.all_jobs(&JobFilter { uids: uid.into_iter().collect(), ..JobFilter::default() }).await?;
            let is_it = |job: &&model::Job| job.spec.name == name && !job.is_over();
            let ids: Vec<_> =
                page.jobs.iter().filter(is_it).map(|job| (job.id.to_string(), Some(job.id.into()))).collect();
            match (ids.is_empty(), uid) {
                (true, Some(uid)) => {
                    Ok(Reply::failed(&format!("scontrol: error: No jobs with user ID {uid} and name '{name}'")))
                }
                (true, None) => Ok(Reply::failed(&format!("scontrol: error: No jobs with name '{name}'"))),
                (false, _) => update_jobs(controller, ids, changes).await,
            }
        }
        update::Update::Nodes { nodes, changes } => {
            let nodes: Vec<NodeName> = match nodes {
                Some(names) if names.iter().any(|name| name.contains('{')) => {
                    let config = controller.configuration().await?.config;
                    let network = crate::network::of(&config, &controller.nodes().await?);
                    match network.expand(&names.join(",")) {
                        Ok(names) => names.into_iter().map(NodeName::from).collect(),
                        Err(_) => return Ok(Reply::failed("slurm_update error: Invalid node name specified")),
                    }
                }
                Some(names) => names.into_iter().map(NodeName::from).collect(),
                None => controller.nodes().await?.into_iter().map(|view| view.node.name).collect(),
            };
            for change in changes {
                update_nodes(controller, &nodes, change).await?;
            }
            Ok(Reply::default())
        }
        update::Update::Partition { name, changes } => {
            controller.command(Command::UpdatePartition { name, changes: Box::new(changes) }).await?;
            Ok(Reply::default())
        }
        update::Update::Reservation(reservation::Said { name, fields }) => {
            match controller.command(Command::UpdateReservation { name, fields }).await {
                Ok(_) => Ok(Reply::text("Reservation updated.\n".into())),
                Err(error) => {
                    let why = trouble::text(&error);
                    Ok(Reply::failed(&format!("Error updating the reservation: {why}\nslurm_update error: {why}")))
                }
            }
        }
    })
}

/// Of several nodes, those that are out of service are resumed, though others that are not make it a failure.
async fn update_nodes(controller: &mut Controller, nodes: &[NodeName], change: NodeChange) -> Result<(), CallError> {
    let command = |nodes: Vec<NodeName>| Command::UpdateNodes { nodes, change: change.clone() };
    let refused = match controller.command(command(nodes.to_vec())).await {
        Err(error @ CallError::Refused(Reject::InvalidNodeState)) if nodes.len() > 1 => error,
        other => return other.map(|_| ()),
    };
    if change != NodeChange::Resume {
        return Err(refused);
    }
    let named: BTreeSet<&NodeName> = nodes.iter().collect();
    let is_out = |view: &NodeView| {
        let node = &view.node;
        named.contains(&node.name) && (node.phase != NodePhase::Up || node.drain || node.reboot.is_some())
    };
    let out: Vec<NodeName> =
        controller.nodes().await?.into_iter().filter(is_out).map(|view| view.node.name.clone()).collect();
    if !out.is_empty() {
        controller.command(command(out)).await?;
    }
    Err(refused)
}

async fn update_jobs(
    controller: &mut Controller,
    ids: Vec<(String, Option<model::JobRef>)>,
    changes: Box<model::update::JobChanges>,
) -> Result<Reply, CallError> {
    let mut lines = Vec::new();
    let mut told = String::new();
    // Slurm asks for a step's change in another way.
    let refused = |item: &str, reject: &Reject| match changes.step_limit {
        Some(_) => vec![format!("slurm_update error: {reject}")],
        None => jobs::refused(Verb::Update, item, reject),
    };
    let is_about_size = changes.min_nodes.is_some() || changes.nodes.is_some();
    for (item, job) in ids {
        let Some(job) = job else {
            lines.extend(refused(&item, &Reject::NoSuchJob));
            continue;
        };
        match controller.command_each(Command::UpdateJob { job: job.clone(), changes: changes.clone() }).await {
            Ok(results) => {
                let problems = match results.iter().find_map(|one| one.result.as_ref().err()) {
                    Some(reject) if changes.step_limit.is_some() => refused(&item, reject),
                    _ => jobs::tell(Verb::Update, &item, &results),
                };
                if is_about_size && problems.is_empty() {
                    told.push_str(&shrunk(controller, job).await?);
                }
                lines.extend(problems);
            }
            Err(CallError::Refused(reject)) => lines.extend(refused(&item, &reject)),
            Err(other) => lines.extend(jobs::unanswered(&item, &other)),
        }
    }
    let reply = if lines.is_empty() { Reply::default() } else { Reply::failed_lines(&lines) };
    Ok(Reply { out: told, ..reply })
}

/// What to tell of a running job that has another size now.
async fn shrunk(controller: &mut Controller, job: model::JobRef) -> Result<String, CallError> {
    let page = controller.all_jobs(&JobFilter { jobs: vec![job], ..JobFilter::default() }).await?;
    let running = page.jobs.iter().find(|job| job.holds_nodes());
    Ok(running.map_or(String::new(), |job| match resized::write(job) {
        Ok(told) => told,
        Err(why) => format!("scontrol: error: {why}\n"),
    }))
}
