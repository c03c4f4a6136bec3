//! `[[nodes]]`: one table for nodes of one kind.
use std::collections::BTreeMap;

use model::config::NamedNode;
use model::gpu_parts::is_part;
use model::gres::{self, Gres};
use model::node::{NodeConfig, NodeStart};
use model::{CpuSet, hostlist};

use crate::section::{Section, set};

/// Adds the nodes of one table. `seen` tells where each name was given first.
pub(crate) fn read(mut section: Section, seen: &mut BTreeMap<String, usize>, nodes: &mut Vec<NamedNode>) {
    let names = names(&mut section);
    let config = settings(&mut section);
    let mut twice = Vec::new();
    for name in &names.list {
        if seen.insert(name.clone(), names.at).is_some() {
            twice.push(name.as_str());
        }
    }
    if !twice.is_empty() {
        twice.sort_by(|a, b| hostlist::natural_cmp(a, b));
        section.notes.add(names.at, format!("node named twice: {}", hostlist::compress(twice)));
    }
    let named = |name: &String| NamedNode { name: name.as_str().into(), config: config.clone() };
    nodes.extend(names.list.iter().map(named));
    section.finish();
}

struct Names {
    list: Vec<String>,
    at: usize,
}

fn names(section: &mut Section) -> Names {
    let Some(found) = section.take("names") else {
        section.notes.add(section.at, "[[nodes]] needs `names`, a hostlist such as \"n[1-4]\"");
        return Names { list: Vec::new(), at: section.at };
    };
    let list = match found.item.as_str().map(hostlist::expand) {
        None => {
            section.notes.add(found.at, "`names` must be a hostlist in quotes, such as \"n[1-4]\"");
            Vec::new()
        }
        Some(Err(error)) => {
            section.notes.add(found.at, error.to_string());
            Vec::new()
        }
        Some(Ok(list)) if list.is_empty() => {
            section.notes.add(found.at, "`names` names no node");
            list
        }
        Some(Ok(list)) => list,
    };
    let wrong = list.iter().find(|name| !is_host_name(name));
    if let Some(wrong) = wrong {
        section
            .notes
            .add(found.at, format!("{wrong:?} cannot be a node's name: letters, digits, `-`, `_` and `.` only"));
    }
    Names { list, at: found.at }
}

/// Names end up in file names and hostlists.
pub(crate) fn is_host_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.chars().all(fits) && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

fn settings(section: &mut Section) -> NodeConfig {
    let mut config = NodeConfig { weight: 1, ..NodeConfig::default() };
    section.number("sockets", 1..=1024, &mut config.sockets);
    section.number("cores_per_socket", 1..=65_536, &mut config.cores_per_socket);
    section.number("threads_per_core", 1..=64, &mut config.threads_per_core);
    let product = config.sockets.max(1) * config.cores_per_socket.max(1) * config.threads_per_core.max(1);
    let has_shape = config.sockets + config.cores_per_socket + config.threads_per_core > 0;
    if has_shape && !section.has("cpus") {
        config.cpus = product;
    }
    section.number("cpus", 1..=65_536, &mut config.cpus);
    // A mistyped shape would otherwise hand out CPUs that no socket has.
    if config.cores_per_socket > 0 && config.cpus != product && config.cpus * config.threads_per_core.max(1) != product
    {
        let at = section.take("cpus").map_or(section.at, |found| found.at);
        section.notes.add(at, format!("`cpus` is {}, but sockets × cores × threads is {product}", config.cpus));
    }
    set(&mut config.memory_mb, section.megabytes("memory_mb"));
    keep_from_jobs(section, &mut config);
    set(&mut config.tmp_disk_mb, section.megabytes("tmp_disk_mb"));
    section.number("weight", 0..=u32::MAX, &mut config.weight);
    section.words("features", &mut config.features);
    section.text("address", &mut config.address);
    section.text("hostname", &mut config.hostname);
    let starts = [NodeStart::Usable, NodeStart::Drained, NodeStart::Down];
    let start = section.read("state", "\"UNKNOWN\", \"DRAIN\" or \"DOWN\"", |item| {
        let text = item.as_str()?.to_uppercase();
        starts.into_iter().find(|start| start.word() == text)
    });
    set(&mut config.starts_as, start);
    section.text("reason", &mut config.start_reason);
    let place = "a text such as \"default:rack01\"";
    config.topology = section.read("topology", place, |item| item.as_str().map(str::to_string));
    config.gres = generic_resources(section);
    gres_files(section, &mut config.gres);
    gpu_parts(section, &mut config.gres);
    explicit_gres(section, &mut config.gres);
    config
}

/// What of the node is kept for the system itself: `kept_cores = 1` or `kept_cpus = "0,4"`, and `kept_memory_mb`.
fn keep_from_jobs(section: &mut Section, config: &mut NodeConfig) {
    let mut n_cores = 0;
    section.number("kept_cores", 0..=65_536, &mut n_cores);
    let cpus = section.read("kept_cpus", "CPU numbers such as \"0,4-5\"", |item| item.as_str()?.parse::<CpuSet>().ok());
    let megabytes = section.megabytes("kept_memory_mb").unwrap_or(0);
    let wrong = |text: &str| section.notes.add(section.at, text);
    match cpus {
        Some(_) if n_cores > 0 => wrong("`kept_cores` and `kept_cpus` exclude each other"),
        Some(cpus) if !config.keep_cpus(cpus.clone()) => {
            wrong("`kept_cpus` must be some, but not all, of the node's `cpus`")
        }
        None if n_cores > 0 && !config.keep_cores(n_cores) => {
            wrong("`kept_cores` must leave some of the node's `cpus`")
        }
        _ => (),
    }
    if megabytes > 0 && !config.keep_memory(megabytes) {
        wrong("`kept_memory_mb` must leave some of the node's `memory_mb`");
    }
}

/// `gres_files = ["gpu=/dev/nvidia[0-3]"]`: the device of each unit, in order.
fn gres_files(section: &mut Section, units: &mut [Gres]) {
    let Some(found) = section.take("gres_files") else { return };
    let wrong = |text: String| section.notes.add(found.at, text);
    let list =
        found.item.as_array().and_then(|list| list.iter().map(|value| value.as_str()).collect::<Option<Vec<_>>>());
    let Some(list) = list else {
        return wrong("`gres_files` must be a list such as [\"gpu=/dev/nvidia[0-3]\"]".into());
    };
    for text in list {
        let Some((name, files)) = text.split_once('=') else {
            return wrong(format!("`{text}` must be a resource and its files, as in \"gpu=/dev/nvidia[0-3]\""));
        };
        let mut files = match hostlist::expand(files) {
            Ok(files) => files.into_iter(),
            Err(error) => return wrong(error.to_string()),
        };
        let named = units.iter_mut().filter(|unit| unit.name == name);
        named.for_each(|unit| unit.files = files.by_ref().take(unit.count as usize).collect());
        let n_units: u32 = units.iter().filter(|unit| unit.name == name).map(|unit| unit.count).sum();
        let n_files: usize = units.iter().filter(|unit| unit.name == name).map(|unit| unit.files.len()).sum();
        if files.next().is_some() || n_files != n_units as usize {
            return wrong(format!("`{text}` must name as many files as there are units of {name}: {n_units}"));
        }
    }
}

/// `gpu_parts = ["shard=4,8"]`: how many parts each GPU has, where they do not all have as many.
fn gpu_parts(section: &mut Section, units: &mut [Gres]) {
    let n_gpus: u32 = units.iter().filter(|unit| unit.name == "gpu").map(|unit| unit.count).sum();
    let Some(found) = section.take("gpu_parts") else { return };
    let wrong = |text: &str| section.notes.add(found.at, text);
    let list =
        found.item.as_array().and_then(|list| list.iter().map(|value| value.as_str()).collect::<Option<Vec<_>>>());
    let Some(list) = list else { return wrong("`gpu_parts` must be a list such as [\"shard=4,8\"]") };
    for text in list {
        let parsed = text.split_once('=').and_then(|(name, counts)| {
            let counts: Option<Vec<u32>> = counts.split(',').map(|count| count.parse().ok()).collect();
            Some((name, counts?))
        });
        let Some((name, counts)) = parsed.filter(|(name, _)| is_part(name)) else {
            return wrong(&format!("`{text}` must be `shard` or `mps` and its counts, as in \"shard=4,8\""));
        };
        let mut named = units.iter_mut().filter(|unit| unit.name == name);
        match (named.next(), named.next()) {
            (Some(unit), None) if counts.len() == n_gpus as usize && counts.iter().sum::<u32>() == unit.count => {
                unit.parts = counts;
            }
            _ => {
                return wrong(&format!(
                    "`{text}` must count the parts of each of the {n_gpus} GPUs, and all of {name}"
                ));
            }
        }
    }
}

/// `explicit_gres = ["fpga"]`: what only jobs that ask for it get, whole nodes or not.
fn explicit_gres(section: &mut Section, units: &mut [Gres]) {
    let Some(found) = section.take("explicit_gres") else { return };
    let wrong = |text: &str| section.notes.add(found.at, text);
    let list =
        found.item.as_array().and_then(|list| list.iter().map(|value| value.as_str()).collect::<Option<Vec<_>>>());
    let Some(list) = list else { return wrong("`explicit_gres` must be a list of names such as [\"fpga\"]") };
    for name in list {
        if !units.iter().any(|unit| unit.name == name) {
            return wrong(&format!("`explicit_gres`: the node has no {name}"));
        }
        units.iter_mut().filter(|unit| unit.name == name).for_each(|unit| unit.is_explicit = true);
    }
}

/// `gres = "gpu:a100:4,fpga:1"`, or a list of such texts.
fn generic_resources(section: &mut Section) -> Vec<Gres> {
    let Some(found) = section.take("gres") else { return Vec::new() };
    let texts: Option<Vec<&str>> = match found.item.as_str() {
        Some(text) => Some(vec![text]),
        None => found.item.as_array().and_then(|list| list.iter().map(|value| value.as_str()).collect()),
    };
    let Some(texts) = texts else {
        section.notes.add(found.at, "`gres` must be a text such as \"gpu:a100:4\", or a list of them");
        return Vec::new();
    };
    match gres::parse_list(&texts.join(",")) {
        Ok(list) => list
            .into_iter()
            .map(|one| Gres { name: one.name, kind: one.kind, count: one.count, ..Gres::default() })
            .collect(),
        Err(error) => {
            section.notes.add(found.at, error.to_string());
            Vec::new()
        }
    }
}
