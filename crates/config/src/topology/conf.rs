//! A site's topology.conf.
use std::path::Path;

use model::topology::{self, TopologyKind};

use super::{Raw, Unit};
use crate::slurm::lines::{At, Line, Pair, Reader};
use crate::slurm::values::Notes;

const SWITCH_KEYS: [&str; 4] = ["switchname", "nodes", "switches", "linkspeed"];
const BLOCK_KEYS: [&str; 3] = ["blockname", "nodes", "blocksizes"];

/// The file's description of this kind of network; records of the other kind are left out with one warning.
pub(crate) fn read(text: &str, file: &str, folder: Option<&Path>, kind: TopologyKind, notes: &Notes) -> Raw<At> {
    let start = At { file: file.into(), line: 1, column: 1 };
    let mut raw = Raw::new(topology::DEFAULT_NAME, start, kind);
    let mut others: Vec<At> = Vec::new();
    let mut each = |line: &Line| {
        let pairs = match line.pairs() {
            Ok(pairs) => pairs,
            Err(problem) => return notes.problems.borrow_mut().push(problem),
        };
        let Some(first) = pairs.first() else { return };
        match (line.first_key().as_str(), kind) {
            ("switchname", TopologyKind::Tree) => raw.units.extend(unit(&pairs, &SWITCH_KEYS, notes)),
            ("blockname", TopologyKind::Block) => {
                raw.units.extend(unit(&pairs, &BLOCK_KEYS, notes));
                pairs.iter().filter(|pair| is(pair, "blocksizes")).for_each(|pair| sizes(pair, &mut raw, notes));
            }
            ("blocksizes", TopologyKind::Block) => sizes(first, &mut raw, notes),
            ("switchname" | "blockname" | "blocksizes", _) => others.push(first.at.clone()),
            ("ringname", _) => notes.wrong(&first.at, "topology/ring is not supported"),
            _ => notes.wrong(&first.at, format!("Parsing error at unrecognized key: {}", first.key)),
        }
    };
    let mut reader = Reader::new(folder.map(Path::to_path_buf), &mut each);
    reader.read(text, file);
    notes.problems.borrow_mut().extend(reader.problems);
    if let Some(at) = others.first() {
        let plugin = kind.plugin();
        notes.warn(at, format!("{} records are not for {plugin}: ignored", others.len()));
    }
    raw
}

fn is(pair: &Pair, key: &str) -> bool {
    pair.key.eq_ignore_ascii_case(key)
}

fn unit(pairs: &[Pair], keys: &[&str], notes: &Notes) -> Option<Unit<At>> {
    for pair in pairs.iter().filter(|pair| !keys.contains(&pair.key.to_lowercase().as_str())) {
        notes.wrong(&pair.at, format!("Parsing error at unrecognized key: {}", pair.key));
    }
    let value = |key: &str| pairs.iter().find(|pair| is(pair, key)).map(|pair| pair.value.clone());
    let speed = pairs.iter().find(|pair| is(pair, "linkspeed"));
    let link_speed = speed.map_or(Ok(0), |pair| pair.value.parse());
    if let (Some(pair), Err(_)) = (speed, &link_speed) {
        notes.wrong(&pair.at, format!("`LinkSpeed` must be a whole number, not {:?}", pair.value));
    }
    Some(Unit {
        name: pairs.first()?.value.clone(),
        at: pairs.first()?.at.clone(),
        nodes: value("nodes"),
        switches: value("switches"),
        link_speed: link_speed.unwrap_or(0),
    })
}

fn sizes(pair: &Pair, raw: &mut Raw<At>, notes: &Notes) {
    raw.sizes_at = pair.at.clone();
    for word in pair.value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word.parse() {
            Ok(size) => raw.sizes.push(size),
            Err(_) => notes.wrong(&pair.at, format!("Invalid BlockSizes value: {word}")),
        }
    }
}
