//! Nodes that are to start anew: asked for, told when their last job has left, awaited, and back, or not.
use model::node::{NextState, NodePhase, NodeReason, Reboot};
use model::{Caller, Duty, NodeName, Owner, Task, Timestamp};

use crate::Cluster;
use crate::on::node::changed;

/// What is to become of a node, as an administrator says.
pub(crate) fn request(
    cluster: &mut Cluster,
    by: Caller,
    name: &NodeName,
    is_asap: bool,
    next: Option<NextState>,
    reason: &str,
) {
    let at = cluster.now;
    let node = cluster.node_mut(name.as_str());
    // Once it is asked for, it is; what was issued cannot be asked for again.
    if node.reboot.is_some() {
        return;
    }
    let next = next.or(is_asap.then_some(NextState::Resume));
    node.reboot = Some(Box::new(Reboot { is_asap, next, ..Reboot::default() }));
    node.drain |= is_asap;
    let text = match (reason, is_asap) {
        ("", true) => "Reboot ASAP",
        ("", false) => "reboot requested",
        (reason, _) => reason,
    };
    if !reason.is_empty() || node.reason.is_none() {
        node.reason = Some(NodeReason { text: text.into(), by_uid: by.uid, at });
    }
    cluster.reboots.insert(name.clone());
}

/// One that was only asked for.
pub(crate) fn cancel(cluster: &mut Cluster, name: &NodeName) {
    let node = cluster.node_mut(name.as_str());
    if let Some(reboot) = node.reboot.take() {
        if reboot.is_asap {
            node.drain = false;
        }
        if !node.drain {
            node.reason = None;
        }
    }
    cluster.reboots.remove(name);
}

/// Whatever was wanted of the node, it is not any more.
pub(crate) fn forget(cluster: &mut Cluster, name: &NodeName) {
    if cluster.reboots.remove(name).is_some() && cluster.nodes.contains_key(name) {
        cluster.node_mut(name.as_str()).reboot = None;
    }
}

/// Nodes that have nothing left to do are told.
pub(crate) fn settle(cluster: &mut Cluster) {
    let ready: Vec<NodeName> = cluster.reboots.iter().filter(|name| is_ready(cluster, name)).cloned().collect();
    let now = cluster.now;
    for name in ready {
        let node = cluster.node_mut(name.as_str());
        let boot_id = node.machine.boot_id.clone();
        let Some(reboot) = &mut node.reboot else { continue };
        (reboot.issued, reboot.boot_id) = (Some(now), boot_id);
        node.phase = NodePhase::Down;
        append(&mut node.reason, "reboot issued", now);
        set_duty(cluster, &name);
        changed(cluster, &name);
    }
}

fn is_ready(cluster: &Cluster, name: &NodeName) -> bool {
    cluster.nodes.get(name).is_some_and(|node| {
        let is_up = matches!(node.phase, NodePhase::Up | NodePhase::Down);
        let is_asked = node.reboot.as_ref().is_some_and(|reboot| reboot.issued.is_none());
        is_asked && is_up && node.answers && node.jobs.is_empty() && node.stale_runs.is_empty()
    })
}

/// True if that is the node's duty now.
pub(crate) fn set_duty(cluster: &mut Cluster, name: &NodeName) -> bool {
    let node = &cluster.nodes[name];
    let is_due = node.answers
        && node.stale_runs.is_empty()
        && node.reboot.as_ref().is_some_and(|reboot| reboot.issued.is_some() && !reboot.is_told);
    if is_due {
        let owner = Owner::Node(name.clone());
        let duty = Duty { owner: owner.clone(), attempt: node.attempt, task: Task::Reboot, sequence: 0 };
        cluster.duties.insert(owner, duty);
    }
    is_due
}

/// The agent has begun, or cannot.
pub(crate) fn told(cluster: &mut Cluster, name: &NodeName, failure: Option<&str>) {
    let now = cluster.now;
    cluster.duties.remove(&Owner::Node(name.clone()));
    let node = cluster.node_mut(name.as_str());
    if let Some(why) = failure {
        append(&mut node.reason, &format!("reboot failed: {why}"), now);
        forget(cluster, name);
    } else if let Some(reboot) = &mut node.reboot {
        reboot.is_told = true;
    }
    changed(cluster, name);
}

/// An agent has come. If its machine has started anew since it was told to, the node is as was wanted.
pub(crate) fn came(cluster: &mut Cluster, name: &NodeName) {
    let now = cluster.now;
    let node = cluster.node_mut(name.as_str());
    let is_done =
        node.reboot.as_ref().is_some_and(|reboot| reboot.issued.is_some() && reboot.boot_id != node.machine.boot_id);
    if !is_done {
        return;
    }
    let next = node.reboot.take().and_then(|reboot| reboot.next);
    cluster.reboots.remove(name);
    let node = cluster.node_mut(name.as_str());
    match next {
        Some(NextState::Down) => {
            node.drain = false;
            append(&mut node.reason, "reboot complete", now);
        }
        next => {
            if next == Some(NextState::Resume) {
                node.drain = false;
            }
            node.phase = if node.stale_runs.is_empty() { NodePhase::Up } else { NodePhase::Clearing };
            if !node.drain {
                node.reason = None;
            }
        }
    }
}

pub(crate) fn tick(cluster: &mut Cluster) {
    let now = cluster.now;
    let late: Vec<NodeName> =
        cluster.reboots.iter().filter(|name| deadline(cluster, name).is_some_and(|at| at <= now)).cloned().collect();
    for name in late {
        append(&mut cluster.node_mut(name.as_str()).reason, "reboot timed out", now);
        forget(cluster, &name);
        cluster.duties.remove(&Owner::Node(name.clone()));
        changed(cluster, &name);
    }
}

pub(crate) fn next_deadline(cluster: &Cluster) -> Option<Timestamp> {
    cluster.reboots.iter().filter_map(|name| deadline(cluster, name)).min()
}

fn deadline(cluster: &Cluster, name: &NodeName) -> Option<Timestamp> {
    Some(cluster.nodes.get(name)?.reboot.as_ref()?.issued? + cluster.config.health.resume_timeout)
}

/// `kernel upgrade : reboot issued`
fn append(reason: &mut Option<NodeReason>, text: &str, at: Timestamp) {
    match reason {
        Some(reason) => {
            reason.text.push_str(" : ");
            reason.text.push_str(text);
            reason.at = at;
        }
        None => *reason = Some(NodeReason { text: text.into(), by_uid: 0, at }),
    }
}
