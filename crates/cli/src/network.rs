//! The cluster's network as the commands see it: from the configuration and the nodes that the controller tells.
use model::request::NodeView;
use model::{Config, NodeName};
use topology::Network;

pub fn of<'a>(config: &Config, nodes: impl IntoIterator<Item = &'a NodeView>) -> Network {
    let place = |view: &NodeView| view.node.topology.clone().or_else(|| view.node.config.topology.clone());
    let moved: Vec<(NodeName, String)> =
        nodes.into_iter().filter_map(|view| Some((view.node.name.clone(), place(view)?))).collect();
    Network::new(config, &moved)
}
