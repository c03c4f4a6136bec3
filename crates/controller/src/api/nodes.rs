//! Nodes, as they are shown, and changes of them: by administrators, and by root of a node where they concern nothing but that node's own health.
use std::sync::Arc;

use bytes::Bytes;
use model::request::NodeView;
use model::update::NodeChange;
use model::{Caller, Command, Node, codec};
use state::Cluster;
use tonic::Request;
use wire::pages::in_batches;
use wire::proto::{CommandReply, CommandRequest};

use super::{Answer, Api, read};
use crate::agents::Agents;
use crate::router::RootOf;

/// Nodes are looked up so many at a time.
const BATCH: usize = 64;

/// All nodes, each encoded when it is asked for.
pub fn all(cluster: Arc<Cluster>, agents: Arc<Agents>) -> impl Iterator<Item = Bytes> + Send {
    let looked_up = cluster.clone();
    let after = move |last: Option<&Arc<Node>>| {
        looked_up.nodes_after(last.map(|last| last.name.clone()), BATCH).cloned().collect()
    };
    in_batches(after)
        .map(move |node| codec::encode(&NodeView { load: agents.load(&node.name), ..cluster.node_view(&node) }).into())
}

pub async fn update(api: &Api, request: Request<CommandRequest>) -> Answer<CommandReply> {
    let by = match request.extensions().get::<RootOf>() {
        Some(RootOf(node)) if is_own_health(&read(&request.get_ref().command)?, node) => Caller::SYSTEM,
        _ => api.caller(&request)?,
    };
    api.command_by(by, request, |command| matches!(command, Command::UpdateNodes { .. })).await
}

/// What a health check says of the machine it runs on. Whoever is root there could as well pull the plug.
fn is_own_health(command: &Command, node: &str) -> bool {
    let Command::UpdateNodes { nodes, change } = command else { return false };
    let is_health = match change {
        NodeChange::Drain { .. }
        | NodeChange::Undrain
        | NodeChange::Down { .. }
        | NodeChange::Resume
        | NodeChange::Idle
        | NodeChange::Reason(_)
        | NodeChange::Fail { .. } => true,
        NodeChange::Features(_)
        | NodeChange::Weight(_)
        | NodeChange::ActiveFeatures(_)
        | NodeChange::Gres(_)
        | NodeChange::Comment(_)
        | NodeChange::Extra(_)
        | NodeChange::InstanceIds(_)
        | NodeChange::InstanceTypes(_)
        | NodeChange::NotResponding
        | NodeChange::Reboot { .. }
        | NodeChange::CancelReboot
        | NodeChange::Topology(_)
        | NodeChange::Create(_)
        | NodeChange::Delete => false,
    };
    is_health && nodes.len() == 1 && nodes[0].as_str() == node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_of_a_node_speaks_for_the_health_of_that_node_only() {
        let drain = |nodes: &[&str]| Command::UpdateNodes {
            nodes: nodes.iter().map(|name| (*name).into()).collect(),
            change: NodeChange::Drain { reason: "sick".into() },
        };
        assert!(is_own_health(&drain(&["a1"]), "a1"));
        assert!(!is_own_health(&drain(&["a2"]), "a1"));
        assert!(!is_own_health(&drain(&["a1", "a2"]), "a1"));
        assert!(!is_own_health(&drain(&[]), "a1"));
        let weight = Command::UpdateNodes { nodes: vec!["a1".into()], change: NodeChange::Weight(1) };
        assert!(!is_own_health(&weight, "a1"));
    }
}
