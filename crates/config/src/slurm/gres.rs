//! `gres.conf`: which devices there are; slurm.conf says how many of them are handed out.
use model::config::NamedNode;
use model::gpu_parts::is_part;
use model::gres::Gres;
use model::hostlist;

use super::node::count;
use super::values::{Notes, Values};

/// Gives the nodes' resources their kinds and device files.
pub(crate) fn apply(lines: &[Values], nodes: &mut [NamedNode], notes: &Notes) {
    let mut devices = Vec::new();
    for values in lines {
        devices.extend(Devices::read(values, notes));
    }
    for node in nodes {
        let here: Vec<&Devices> = devices.iter().filter(|one| one.is_on(node.name.as_str())).collect();
        let mut list = Vec::new();
        for gres in std::mem::take(&mut node.config.gres) {
            let fits = |one: &&&Devices| one.name == gres.name && (gres.kind.is_empty() || one.kind == gres.kind);
            let found: Vec<&&Devices> = here.iter().filter(fits).collect();
            list.extend(equip(gres, &found, node.name.as_str(), notes));
        }
        divide(&mut list, &here, node.name.as_str(), notes);
        node.config.gres = list;
    }
}

/// One line: units of one kind.
struct Devices<'a> {
    name: String,
    kind: String,
    count: u32,
    /// Neither a number nor files: as many as slurm.conf hands out.
    is_open: bool,
    /// `Flags=explicit`: for jobs that ask for it, and nobody else.
    is_explicit: bool,
    files: Vec<String>,
    /// None is every node.
    nodes: Option<Vec<String>>,
    values: &'a Values,
}

impl<'a> Devices<'a> {
    fn read(values: &'a Values, notes: &Notes) -> Option<Self> {
        let name = values.text("Name")?.to_string();
        let expand = |key: &str| {
            let pair = values.get(key)?;
            match hostlist::expand(&pair.value) {
                Ok(list) => Some(list),
                Err(error) => {
                    notes.wrong(&pair.at, error.to_string());
                    None
                }
            }
        };
        let files = expand("File").or_else(|| expand("MultipleFiles")).unwrap_or_default();
        let given = values.read("Count", "a whole number, or one with K, M or G", notes, count);
        let is_one_each = |given: &u32| files.is_empty() || is_part(&name) || *given as usize == files.len();
        if let Some(given) = given.filter(|given| !is_one_each(given)) {
            let at = &values.get("Count").expect("just read").at;
            notes.wrong(at, format!("`Count` is {given}, but `File` names {}", files.len()));
        }
        let fallback = if files.is_empty() { 1 } else { files.len() as u32 };
        let kind = values.text("Type").unwrap_or_default().to_string();
        let is_open = given.is_none() && files.is_empty();
        let flags = values.text("Flags").unwrap_or_default();
        let is_explicit = flags.split(',').any(|flag| flag.trim().eq_ignore_ascii_case("explicit"));
        let (count, nodes) = (given.unwrap_or(fallback), expand("NodeName"));
        Some(Devices { name, kind, count, is_open, is_explicit, files, nodes, values })
    }

    fn is_on(&self, node: &str) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.iter().any(|name| name == node))
    }
}

/// The resource with what its lines say. One without a kind takes those of its devices, when they are all of it.
fn equip(gres: Gres, devices: &[&&Devices], node: &str, notes: &Notes) -> Vec<Gres> {
    let Some(last) = devices.last() else { return vec![gres] };
    let total: u32 = devices.iter().map(|one| one.count).sum();
    let open = devices.iter().rposition(|one| one.is_open);
    if total < gres.count && open.is_none() {
        let at = &last.values.get("Name").expect("every line has its name").at;
        let (name, wanted) = (&gres.name, gres.count);
        notes.wrong(at, format!("{node} has {total} of {name} here, but slurm.conf hands out {wanted}"));
        return vec![gres];
    }
    let mut left = gres.count;
    let mut parts: Vec<Gres> = Vec::new();
    for (place, one) in devices.iter().enumerate() {
        let more = if open == Some(place) { gres.count.saturating_sub(total) } else { 0 };
        let count = (one.count + more).min(left);
        left -= count;
        // Files of parts are those of their GPUs.
        let n_files = if is_part(&gres.name) { 0 } else { count as usize };
        let files = one.files.iter().take(n_files).cloned();
        match parts.iter_mut().find(|part| part.kind == one.kind) {
            Some(part) => {
                part.count += count;
                part.is_explicit |= one.is_explicit;
                part.files.extend(files);
            }
            None if count > 0 => {
                let (name, kind) = (one.name.clone(), one.kind.clone());
                let (files, is_explicit) = (files.collect(), one.is_explicit);
                parts.push(Gres { name, kind, count, files, is_explicit, ..Gres::default() });
            }
            None => {}
        }
    }
    parts
}

/// Where lines of parts name the files of their GPUs: how many parts each GPU has.
fn divide(list: &mut [Gres], here: &[&Devices], node: &str, notes: &Notes) {
    let gpus: Vec<String> =
        list.iter().filter(|gres| gres.name == "gpu").flat_map(|gres| gres.files.iter().cloned()).collect();
    for gres in list.iter_mut().filter(|gres| is_part(&gres.name)) {
        let of_it = |one: &&&Devices| one.name == gres.name && one.kind == gres.kind && !one.files.is_empty();
        let mut parts = vec![0; gpus.len()];
        for one in here.iter().filter(of_it) {
            let n_files = one.files.len() as u32;
            for (at, file) in (0..).zip(&one.files) {
                let Some(gpu) = gpus.iter().position(|gpu| gpu == file) else {
                    let pair = one.values.get("File").or_else(|| one.values.get("MultipleFiles"));
                    notes.wrong(&pair.expect("it has files").at, format!("{file} is no GPU of {node}"));
                    return;
                };
                parts[gpu] += one.count / n_files + u32::from(at < one.count % n_files);
            }
        }
        if parts.iter().any(|count| *count != parts[0]) {
            gres.parts = parts;
        }
    }
}
