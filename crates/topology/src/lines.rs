//! `scontrol show topology`, one line a unit, and the path of a node.
use std::fmt;

use model::hostlist;

use crate::{Blocks, Form, Network, Shape, Tree};

/// Which units are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    #[default]
    All,
    /// The unit of this name.
    Unit(String),
    /// Units that have all these nodes.
    Nodes(String),
    /// A word that may be either.
    Either(String),
}

/// Nothing is as the selection wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched(String);

impl fmt::Display for Unmatched {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "Topology information contains no {}", self.0)
    }
}

struct Line {
    names: Vec<String>,
    nodes: Vec<u32>,
    text: String,
}

impl Network {
    /// The lines of a topology; a flat one has none.
    pub fn lines(&self, shape: &Shape, selection: &Selection) -> Result<Vec<String>, Unmatched> {
        let (word, lines) = match &shape.form {
            Form::Flat { .. } => return Ok(Vec::new()),
            Form::Tree(tree) => ("switch", self.switch_lines(tree)),
            Form::Blocks(blocks) => ("block", self.block_lines(blocks)),
        };
        let named = |name: &str| lines.iter().filter(|line| line.names.iter().any(|own| own == name)).collect();
        let with = |list: &str| -> Vec<&Line> {
            let names = self.expand(list).unwrap_or_default();
            let nodes: Option<Vec<u32>> = names.iter().map(|name| self.find(name)).collect();
            match nodes.filter(|nodes| !nodes.is_empty()) {
                Some(nodes) => lines.iter().filter(|line| nodes.iter().all(|node| line.nodes.contains(node))).collect(),
                None => Vec::new(),
            }
        };
        let (found, missing): (Vec<&Line>, String) = match selection {
            Selection::All => return Ok(lines.into_iter().map(|line| line.text).collect()),
            Selection::Unit(name) => (named(name), format!("{word} named {name}")),
            Selection::Nodes(list) => (with(list), format!("{word} with nodes {list}")),
            Selection::Either(text) => {
                let found: Vec<&Line> = named(text);
                let found = if found.is_empty() { with(text) } else { found };
                (found, format!("{word} or node named {text}"))
            }
        };
        match found.is_empty() {
            true => Err(Unmatched(missing)),
            false => Ok(found.into_iter().map(|line| line.text.clone()).collect()),
        }
    }

    fn switch_lines(&self, tree: &Tree) -> Vec<Line> {
        let line = |at: usize| {
            let switch = &tree.switches[at];
            let nodes = tree.nodes_below(at as u32);
            let mut text = format!("SwitchName={} Level={} LinkSpeed={}", switch.name, switch.level, switch.link_speed);
            if !nodes.is_empty() {
                text.push_str(&format!(" Nodes={}", self.list(nodes.iter().copied())));
            }
            if !switch.children.is_empty() {
                let names = switch.children.iter().map(|child| tree.switches[*child as usize].name.as_str());
                text.push_str(&format!(" Switches={}", hostlist::compress_in_order(names)));
            }
            Line { names: vec![switch.name.clone()], nodes, text }
        };
        (0..tree.switches.len()).map(line).collect()
    }

    fn block_lines(&self, blocks: &Blocks) -> Vec<Line> {
        let base = (0..blocks.list.len()).map(|at| (0, at..at + 1));
        let groups = base.chain(blocks.aggregates()).enumerate();
        let line = |(index, (level, group)): (usize, (u32, std::ops::Range<usize>))| {
            let key = if index < blocks.list.len() { "BlockName" } else { "AggregatedBlock" };
            let names: Vec<&str> = blocks.list[group.clone()].iter().map(|block| block.name.as_str()).collect();
            let name = hostlist::compress_in_order(&names);
            let nodes = blocks.nodes_of(group);
            let size = u64::from(blocks.base) << level;
            let list = self.list(nodes.iter().copied());
            let text = format!("{key}={name} BlockIndex={index} Nodes={list} BlockSize={size}");
            Line { names: vec![name], nodes, text }
        };
        groups.map(line).collect()
    }

    /// The node's leaf switch or base block in the default topology; empty if it is in none.
    pub fn leaf(&self, node: &str) -> &str {
        let unit = self.find(node).zip(self.shape("")).and_then(|(node, shape)| shape.unit_name(node));
        unit.unwrap_or_default()
    }

    /// The units of a node in every topology that has it: `topo1:sw_root:s1,topo2:b1`.
    pub fn place(&self, node: &str) -> String {
        let Some(node) = self.find(node) else { return String::new() };
        let place = |shape: &Shape| {
            let path = match &shape.form {
                Form::Flat { .. } => return None,
                Form::Tree(tree) => {
                    let leaf = tree.leaf_switch(tree.leaf_of(node)?);
                    let mut path: Vec<&str> =
                        tree.ancestors(leaf).map(|at| tree.switches[at as usize].name.as_str()).collect();
                    path.reverse();
                    path.join(":")
                }
                Form::Blocks(_) => shape.unit_name(node)?.to_string(),
            };
            Some(format!("{}:{path}", shape.name))
        };
        let places: Vec<String> = self.shapes.iter().filter_map(place).collect();
        places.join(",")
    }
}
