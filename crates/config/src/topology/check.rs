//! What is wrong with a network: every problem at its place.
use std::collections::{BTreeMap, BTreeSet};

use model::config::NamedNode;
use model::topology::{Block, Switch, Topology, TopologyKind};
use model::{NodeName, hostlist};

use super::{Raw, Severity, Unit};

const NAME_MAX: usize = 64;

type Note<'n, P> = &'n mut dyn FnMut(Severity, &P, String);

/// The topologies, if nothing fatal is noted.
pub(crate) fn check<P: Clone>(raw: Vec<Raw<P>>, nodes: &[NamedNode], note: Note<P>) -> Vec<Topology> {
    let known: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let mut names = BTreeSet::new();
    let default = raw.iter().position(|one| one.is_default).unwrap_or(0);
    let mut topologies = Vec::new();
    for (at, one) in raw.iter().enumerate() {
        if !names.insert(one.name.clone()) {
            note(Severity::Fatal, &one.at, format!("topology {} is given twice", one.name));
        }
        let mut topology = Topology {
            name: one.name.clone(),
            is_default: at == default,
            kind: one.kind,
            cut: one.cut,
            alpha_step_rank: one.alpha_step_rank,
            ..Topology::default()
        };
        match one.kind {
            TopologyKind::Flat => {}
            TopologyKind::Tree => topology.switches = tree(one, &known, note),
            TopologyKind::Block => blocks(one, &known, &mut topology, note),
        }
        topologies.push(topology);
    }
    topologies
}

/// The nodes of a list; those that nobody knows are gathered and left out.
fn members<P>(
    unit: &Unit<P>,
    word: &str,
    known: &BTreeSet<&str>,
    unknown: &mut Vec<String>,
    note: Note<P>,
) -> Vec<NodeName> {
    let Some(list) = &unit.nodes else { return Vec::new() };
    let names = hostlist::expand(list).unwrap_or_else(|error| {
        note(Severity::Fatal, &unit.at, format!("{word} {}: {error}", unit.name));
        Vec::new()
    });
    let (here, strange): (Vec<String>, Vec<String>) = names.into_iter().partition(|name| known.contains(name.as_str()));
    unknown.extend(strange);
    let mut seen = BTreeSet::new();
    here.into_iter().filter(|name| seen.insert(name.clone())).map(NodeName::from).collect()
}

fn name_is_good<P>(unit: &Unit<P>, word: &str, seen: &mut BTreeSet<String>, note: Note<P>) {
    if unit.name.chars().count() >= NAME_MAX {
        note(Severity::Fatal, &unit.at, format!("{word} name {} must be shorter than {NAME_MAX} chars", unit.name));
    }
    if !seen.insert(unit.name.clone()) {
        note(Severity::Fatal, &unit.at, format!("{word} ({}) has already been defined", unit.name));
    }
}

fn tell_unknown<P>(raw: &Raw<P>, unknown: &[String], word: &str, note: Note<P>) {
    if !unknown.is_empty() {
        let list = hostlist::compress(unknown);
        note(Severity::Warning, &raw.at, format!("Invalid hostnames in {word} configuration: {list}"));
    }
}

fn tell_uncovered<P>(raw: &Raw<P>, known: &BTreeSet<&str>, covered: &BTreeSet<NodeName>, who: &str, note: Note<P>) {
    let missing: Vec<&str> = known.iter().copied().filter(|name| !covered.contains(*name)).collect();
    if !missing.is_empty() {
        let list = hostlist::compress(&missing);
        note(Severity::Warning, &raw.at, format!("{who} lack access to {} nodes: {list}", missing.len()));
    }
}

fn tree<P: Clone>(raw: &Raw<P>, known: &BTreeSet<&str>, note: Note<P>) -> Vec<Switch> {
    if raw.units.is_empty() {
        note(Severity::Fatal, &raw.at, "No switches configured".into());
    }
    let (mut seen, mut unknown) = (BTreeSet::new(), Vec::new());
    let mut switches = Vec::new();
    for unit in &raw.units {
        name_is_good(unit, "Switch", &mut seen, note);
        if unit.nodes.is_some() && unit.switches.is_some() {
            note(Severity::Fatal, &unit.at, format!("switch {} has both child switches and nodes", unit.name));
        }
        let children = unit.switches.as_deref().map(hostlist::expand).transpose().unwrap_or_else(|error| {
            note(Severity::Fatal, &unit.at, format!("switch {}: {error}", unit.name));
            None
        });
        switches.push(Switch {
            name: unit.name.clone(),
            nodes: members(unit, "switch", known, &mut unknown, note),
            switches: children.unwrap_or_default(),
            link_speed: unit.link_speed,
        });
    }
    tell_unknown(raw, &unknown, "switch", note);
    children_are_good(raw, &switches, note);
    let covered: BTreeSet<NodeName> = switches.iter().flat_map(|switch| switch.nodes.iter().cloned()).collect();
    tell_uncovered(raw, known, &covered, "switches", note);
    let mut twice: BTreeSet<&NodeName> = BTreeSet::new();
    let mut once = BTreeSet::new();
    for node in switches.iter().flat_map(|switch| &switch.nodes) {
        if !once.insert(node) {
            twice.insert(node);
        }
    }
    if !twice.is_empty() {
        let list = hostlist::compress(twice.iter().map(|name| name.as_str()));
        note(Severity::Warning, &raw.at, format!("Multiple leaf switches contain nodes: {list}"));
    }
    switches
}

fn children_are_good<P: Clone>(raw: &Raw<P>, switches: &[Switch], note: Note<P>) {
    let index: BTreeMap<&str, usize> = switches.iter().map(|switch| switch.name.as_str()).zip(0..).collect();
    let mut parents: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (switch, unit) in switches.iter().zip(&raw.units) {
        for child in &switch.switches {
            if !index.contains_key(child.as_str()) || *child == switch.name {
                let text = format!("Switch configuration {} has invalid child ({child})", switch.name);
                note(Severity::Fatal, &unit.at, text);
            }
            parents.entry(child).or_default().push(&switch.name);
        }
    }
    for (child, claims) in parents.iter().filter(|(_, claims)| claims.len() > 1) {
        let at = index.get(child).map_or(&raw.at, |at| &raw.units[*at].at);
        let last = claims.last().expect("more than one");
        note(Severity::Warning, at, format!("switch {child} is below {}: {last} counts", claims.join(" and ")));
    }
    // Whoever is not reached by taking away switches without children, again and again, is in a circle.
    let mut left: BTreeSet<usize> = (0..switches.len()).collect();
    loop {
        let is_done = |at: &usize| {
            let below = switches[*at].switches.iter().filter_map(|child| index.get(child.as_str()));
            below.filter(|child| *child != at).all(|child| !left.contains(child))
        };
        let done: Vec<usize> = left.iter().copied().filter(is_done).collect();
        if done.is_empty() {
            break;
        }
        done.iter().for_each(|at| {
            left.remove(at);
        });
    }
    if let Some(first) = left.first() {
        let names = hostlist::compress(left.iter().map(|at| switches[*at].name.as_str()));
        note(Severity::Fatal, &raw.units[*first].at, format!("Switch configuration is not a tree: {names}"));
        return;
    }
    let n_roots = switches.iter().filter(|switch| !parents.contains_key(switch.name.as_str())).count();
    if n_roots > 1 {
        note(Severity::Warning, &raw.at, "no switch can reach all nodes: jobs cannot span its trees".into());
    }
}

fn blocks<P: Clone>(raw: &Raw<P>, known: &BTreeSet<&str>, topology: &mut Topology, note: Note<P>) {
    let (mut seen, mut unknown) = (BTreeSet::new(), Vec::new());
    let mut of: BTreeMap<NodeName, &str> = BTreeMap::new();
    for unit in &raw.units {
        name_is_good(unit, "Block", &mut seen, note);
        let nodes = members(unit, "block", known, &mut unknown, note);
        for node in &nodes {
            if let Some(other) = of.insert(node.clone(), &unit.name) {
                note(Severity::Fatal, &unit.at, format!("node {node} is in the blocks {other} and {}", unit.name));
            }
        }
        topology.blocks.push(Block { name: unit.name.clone(), nodes });
    }
    if raw.units.is_empty() && raw.cut == 0 {
        note(Severity::Fatal, &raw.at, "No blocks configured".into());
        return;
    }
    tell_unknown(raw, &unknown, "block", note);
    if raw.cut == 0 {
        tell_uncovered(raw, known, &of.keys().cloned().collect(), "Blocks", note);
    }
    sizes(raw, topology, note);
}

fn sizes<P: Clone>(raw: &Raw<P>, topology: &mut Topology, note: Note<P>) {
    let is_empty = topology.blocks.iter().all(|block| block.nodes.is_empty());
    if raw.sizes.is_empty() {
        if is_empty && raw.cut == 0 {
            let text = "Blocks do not contain any nodes and the BlockSizes are not set";
            note(Severity::Fatal, &raw.at, text.into());
        }
        topology.block_sizes = if raw.cut > 0 { vec![raw.cut] } else { Vec::new() };
        return;
    }
    let base = raw.sizes[0];
    for size in &raw.sizes {
        let is_good = base > 0 && (0..=15).any(|level| base.checked_shl(level) == Some(*size));
        match u32::try_from(*size).ok().filter(|_| is_good) {
            Some(size) => topology.block_sizes.push(size),
            None => note(Severity::Fatal, &raw.sizes_at, format!("Invalid BlockSizes value: {size}")),
        }
    }
    for (block, unit) in topology.blocks.iter().zip(&raw.units) {
        let n_nodes = block.nodes.len();
        if (n_nodes as i64) < base {
            let text = format!("block {} has {n_nodes} nodes, less than the base size {base}", block.name);
            note(Severity::Warning, &unit.at, text);
        }
    }
}
