//! `spur topo place`: asks the real picker, without a cluster.
use std::io::BufRead;
use std::path::Path;

use model::topology::{Switch, Topology, TopologyKind, TopologyRules};
use model::{NodeName, hostlist};
use serde_json::{Value as Json, json};
use topology::{Ask, Candidate, Network};

use crate::getopt::{Flag, Value, flag};

const FLAGS: &[Flag] = &[
    flag("config", None, Value::Required),
    flag("free", None, Value::Required),
    flag("nodes", Some('N'), Value::Required),
    flag("ntasks", Some('n'), Value::Required),
    flag("cpus", Some('c'), Value::Required),
    flag("switches", None, Value::Required),
    flag("level", None, Value::Required),
    flag("segment", None, Value::Required),
    flag("spread-segments", None, Value::None),
    flag("consolidate-segments", None, Value::None),
    flag("nodelist", Some('w'), Value::Required),
    flag("topology", None, Value::Required),
    flag("instances", None, Value::None),
];

pub fn run(arguments: &[String]) -> Result<i32, String> {
    let parsed = super::super::options(FLAGS, arguments)?;
    if parsed.has("instances") {
        return instances();
    }
    let level = match parsed.value("level").map(str::parse) {
        None => None,
        Some(Ok(level)) => Some(level),
        Some(Err(_)) => return Err("--level must be a number".into()),
    };
    let number = |name: &str| -> Result<Option<u32>, String> {
        let Some(text) = parsed.value(name) else { return Ok(None) };
        text.parse()
            .ok()
            .filter(|n| *n > 0)
            .map(Some)
            .ok_or_else(|| format!("--{name}: {text:?} is not a number from 1"))
    };
    let file = parsed.value("config").ok_or("--config FILE is needed: a spur.conf or slurm.conf with a topology")?;
    let (config, warnings) = config::load_with_warnings(Path::new(file)).map_err(|problems| problems.to_string())?;
    warnings.to_string().lines().for_each(|line| eprintln!("{line}"));
    let network = Network::new(&config, &moved(&config));
    let name = parsed.value("topology").unwrap_or_default();
    let shape = network.shape(name).ok_or(match name {
        "" => format!("{file} describes no topology"),
        name => format!("{file} describes no topology {name}"),
    })?;
    let expand = |list: &str| network.expand(list).map_err(|error| error.to_string());
    let free = match parsed.value("free") {
        Some(list) => expand(list)?,
        None => (0..network.n_nodes() as u32).map(|node| network.name(node).to_string()).collect(),
    };
    let required = parsed.value("nodelist").map(expand).transpose()?.unwrap_or_default();
    let (min, max) = nodes_wanted(parsed.value("nodes"))?;
    let n_tasks = number("ntasks")?;
    let cpus = number("cpus")?.unwrap_or(1);
    let segment = number("segment")?.unwrap_or(0);
    if segment > 0 && min > segment && !min.is_multiple_of(segment) {
        return Err(model::topology::segment_problem(segment, min));
    }
    let mut candidates = Vec::new();
    for name in &free {
        let node = network.find(name).ok_or_else(|| format!("{file} has no node {name}"))?;
        let config = config.nodes.iter().find(|known| known.name.as_str() == name).map(|known| &known.config);
        candidates.push(Candidate {
            node,
            weight: config.map_or(1, |config| config.weight),
            n_tasks: config.map_or(1, |config| (config.cpus / cpus).max(1)),
            is_required: required.contains(name),
            is_in_use: false,
        });
    }
    candidates.sort_by_key(|candidate| candidate.node);
    candidates.dedup_by_key(|candidate| candidate.node);
    if candidates.iter().filter(|candidate| candidate.is_required).count() < required.len() {
        eprintln!("spur topo place: the job would wait: {}", topology::Unfit::RequiredBusy);
        return Ok(1);
    }
    let ask = Ask {
        min_nodes: min,
        max_nodes: max,
        n_nodes: max.min(candidates.len() as u32).max(min),
        n_tasks,
        most_leaves: number("switches")?,
        most_level: level,
        segment,
        spreads: parsed.has("spread-segments"),
        consolidates: parsed.has("consolidate-segments"),
    };
    match shape.pick(&config.topology, &candidates, &ask) {
        Ok(chosen) => {
            say!("{}", hostlist::compress(chosen.iter().map(|at| network.name(candidates[*at].node).as_str())));
            Ok(0)
        }
        Err(unfit) => {
            eprintln!("spur topo place: the job would wait: {unfit}");
            Ok(1)
        }
    }
}

/// Nodes that the configuration itself puts elsewhere.
pub(super) fn moved(config: &model::Config) -> Vec<(NodeName, String)> {
    let place = |node: &model::config::NamedNode| Some((node.name.clone(), node.config.topology.clone()?));
    config.nodes.iter().filter_map(place).collect()
}

/// `-N 4`, `-N 2-4`; one node if nothing is said.
fn nodes_wanted(text: Option<&str>) -> Result<(u32, u32), String> {
    let Some(text) = text else { return Ok((1, 1)) };
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    match (min.parse::<u32>(), max.parse::<u32>()) {
        (Ok(min), Ok(max)) if 0 < min && min <= max => Ok((min, max)),
        _ => Err(format!("-N: {text:?} is not a number of nodes")),
    }
}

/// One decision a line, as the scorer writes them.
fn instances() -> Result<i32, String> {
    for (line, number) in std::io::stdin().lock().lines().zip(1..) {
        let line = line.map_err(|error| format!("standard input: {error}"))?;
        if line.trim().is_empty() {
            continue;
        }
        let instance: Json = serde_json::from_str(&line).map_err(|error| format!("line {number}: {error}"))?;
        let answer =
            decide(&instance).ok_or_else(|| format!("line {number}: an instance has switches, free and want"))?;
        say!("{answer}");
    }
    Ok(0)
}

fn decide(instance: &Json) -> Option<Json> {
    let names = |list: &Json| -> Option<Vec<String>> {
        list.as_array()?.iter().map(|name| name.as_str().map(str::to_string)).collect()
    };
    let mut switches = Vec::new();
    let mut nodes: Vec<NodeName> = Vec::new();
    for switch in instance["switches"].as_array()? {
        let own: Vec<NodeName> = names(&switch["nodes"]).unwrap_or_default().into_iter().map(NodeName::from).collect();
        nodes.extend(own.clone());
        switches.push(Switch {
            name: switch["name"].as_str()?.into(),
            nodes: own,
            switches: names(&switch["switches"]).unwrap_or_default(),
            link_speed: 1,
        });
    }
    let topology = Topology { kind: TopologyKind::Tree, switches, ..Topology::default() };
    let network = Network::over(nodes, &[topology], &[]);
    let free = names(&instance["free"])?;
    let mut candidates: Vec<Candidate> = free
        .iter()
        .filter_map(|name| network.find(name))
        .map(|node| Candidate { node, n_tasks: 1, ..Candidate::default() })
        .collect();
    candidates.sort_by_key(|candidate| candidate.node);
    let want = u32::try_from(instance["want"].as_u64()?).ok()?;
    let chosen = network.shapes[0].pick(&TopologyRules::default(), &candidates, &Ask::nodes(want)).unwrap_or_default();
    let chosen: Vec<&str> = chosen.iter().map(|at| network.name(candidates[*at].node).as_str()).collect();
    Some(json!({ "id": instance["id"], "nodes": chosen }))
}
