//! `scontrol show topology` in all its forms, and `show topoconf`.
use model::Config;
use model::hostlist;
use model::request::NodeView;
use topology::{Form, Network, Selection};

use super::Reply;
use crate::network;

/// What is meant by the words after `show topology`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    topology: Option<String>,
    selection: Selection,
}

pub fn reply(words: &[String], config: &Config, nodes: &[NodeView], width: Option<usize>) -> Reply {
    let network = network::of(config, nodes);
    let wanted = match parse(words, &network) {
        Ok(wanted) => wanted,
        Err(line) => return Reply::failed(&line),
    };
    let Some(shape) = network.shape(wanted.topology.as_deref().unwrap_or_default()) else {
        return match wanted.topology {
            None => Reply { code: 0, ..Reply::failed("scontrol: error: No topology information available") },
            Some(_) => Reply::failed("slurm_load_topo error: Requested topology configuration is not available"),
        };
    };
    match network.lines(shape, &wanted.selection) {
        Ok(lines) => {
            let cut = |line: &String| match width {
                Some(width) => line.chars().take(width).collect(),
                None => line.clone(),
            };
            Reply::text(lines.iter().map(|line| cut(line) + "\n").collect())
        }
        // Slurm complains, but does not fail.
        Err(unmatched) => Reply { code: 0, ..Reply::failed(&format!("scontrol: error: {unmatched}")) },
    }
}

/// A bare word is a topology's name if one is called so, then a unit, then a list of nodes.
fn parse(words: &[String], network: &Network) -> Result<Wanted, String> {
    let mut wanted = Wanted::default();
    for word in words {
        let pair = word.split_once('=').filter(|(key, _)| !key.contains('['));
        match pair.map(|(key, value)| (key.to_lowercase(), value.to_string())) {
            Some((key, value)) if key == "node" || key == "nodes" => wanted.selection = Selection::Nodes(value),
            Some((key, value)) if ["unit", "switch", "block", "ring"].contains(&key.as_str()) => {
                wanted.selection = Selection::Unit(value);
            }
            Some((key, value)) if key == "topology" => wanted.topology = Some(value),
            Some((key, _)) => return Err(format!("invalid option: {key}")),
            None if network.shapes.iter().any(|shape| shape.name == *word) => wanted.topology = Some(word.clone()),
            None if wanted.selection == Selection::All => wanted.selection = Selection::Either(word.clone()),
            None => return Err("too many arguments for keyword:show".into()),
        }
    }
    Ok(wanted)
}

/// The topologies as a topology.yaml.
pub fn topoconf(config: &Config, nodes: &[NodeView]) -> Reply {
    let network = network::of(config, nodes);
    let mut out = String::from("---\n");
    for shape in &network.shapes {
        out.push_str(&format!("- topology: {}\n  cluster_default: {}\n", shape.name, shape.is_default));
        let list = |own: &[u32]| hostlist::compress(own.iter().map(|node| network.name(*node).as_str()));
        match &shape.form {
            Form::Flat { alpha_step_rank: true } => out.push_str("  flat:\n    alpha_step_rank: true\n"),
            Form::Flat { alpha_step_rank: false } => out.push_str("  flat: true\n"),
            Form::Tree(tree) => {
                out.push_str("  tree:\n    switches:\n");
                for switch in &tree.switches {
                    out.push_str(&format!("    - switch: {}\n", switch.name));
                    let children = switch.children.iter().map(|child| tree.switches[*child as usize].name.as_str());
                    let children = hostlist::compress_in_order(children);
                    if !children.is_empty() {
                        out.push_str(&format!("      children: \"{children}\"\n"));
                    }
                    if !switch.nodes.is_empty() {
                        out.push_str(&format!("      nodes: \"{}\"\n", list(&switch.nodes)));
                    }
                    if switch.link_speed > 1 {
                        out.push_str(&format!("      link_speed: {}\n", switch.link_speed));
                    }
                }
            }
            Form::Blocks(blocks) => {
                out.push_str("  block:\n    block_sizes:\n");
                for level in &blocks.levels {
                    out.push_str(&format!("    - {}\n", u64::from(blocks.base) << level));
                }
                out.push_str("    blocks:\n");
                for block in &blocks.list {
                    out.push_str(&format!("    - block: {}\n      nodes: \"{}\"\n", block.name, list(&block.nodes)));
                }
            }
        }
    }
    Reply::text(if network.shapes.is_empty() { String::new() } else { out })
}
