//! The network as `[topology]` and `[[topologies]]`.
use model::topology::{Topology, TopologyKind, TopologyRules};
use model::{Config, hostlist};

use super::{Text, seconds};

pub(super) fn render(text: &mut Text, config: &Config) {
    if config.topologies.is_empty() && config.topology == TopologyRules::default() {
        return;
    }
    rules(text, &config.topology);
    for topology in &config.topologies {
        text.header("[[topologies]]");
        text.string("name", &topology.name);
        text.value("cluster_default", topology.is_default);
        one(text, topology);
    }
}

fn rules(text: &mut Text, rules: &TopologyRules) {
    text.header("[topology]");
    text.string("apply", if rules.only_on_request { "requested" } else { "all" });
    let mut words: Vec<String> = rules.routes.clone();
    words.extend(rules.ranks_by_unit.then(|| "SwitchAsNodeRank".into()));
    words.extend(rules.is_optional.then(|| "TopoOptional".into()));
    words.extend(rules.dragonfly.then(|| "Dragonfly".into()));
    words.extend((rules.max_size_unroll > 0).then(|| format!("TopoMaxSizeUnroll={}", rules.max_size_unroll)));
    text.string("params", &words.join(","));
    text.value("weight_first", !rules.network_before_weight);
    text.value("exclusive_topo", rules.exclusive_leaves);
    text.value("topology_reasons", !rules.plain_reasons);
    text.optional("max_switch_wait", rules.max_switch_wait.map(seconds));
}

fn one(text: &mut Text, topology: &Topology) {
    text.string("plugin", topology.kind.word());
    if topology.alpha_step_rank {
        text.value("alpha_step_rank", true);
    }
    let sizes: Vec<String> = topology.block_sizes.iter().map(u32::to_string).collect();
    if !sizes.is_empty() && topology.kind == TopologyKind::Block {
        text.value("block_sizes", format!("[{}]", sizes.join(", ")));
    }
    for switch in &topology.switches {
        text.header("[[topologies.switches]]");
        text.string("name", &switch.name);
        text.string("nodes", &hostlist::compress_in_order(switch.nodes.iter().map(|name| name.as_str())));
        text.string("switches", &hostlist::compress_in_order(&switch.switches));
        text.optional("link_speed", (switch.link_speed > 0).then_some(switch.link_speed));
    }
    for block in &topology.blocks {
        text.header("[[topologies.blocks]]");
        text.string("name", &block.name);
        text.string("nodes", &hostlist::compress_in_order(block.nodes.iter().map(|name| name.as_str())));
    }
}
