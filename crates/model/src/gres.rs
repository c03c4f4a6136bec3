//! Generic resources: GPUs and other countable devices, with optional types.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::CpuSet;
use crate::node::NodeConfig;

record! {
    /// What a node has: `gpu:a100:4`.
    pub struct Gres {
        pub name: String,
        pub kind: String,
        pub count: u32,
        /// Device files, one a unit, where the site names them.
        pub files: Vec<String>,
        /// Parts of GPUs: how many each GPU has, where that is not as many as the next.
        pub parts: Vec<u32>,
        /// Only for jobs that ask for it, also where they have the whole node (`Flags=explicit`).
        pub is_explicit: bool,
    }

    /// What a job asks for on each node: `gpu:2` or `gpu:a100:2`; an empty kind is any kind.
    pub struct GresRequest {
        pub name: String,
        pub kind: String,
        pub count: u32,
    }

    /// Which units of a node's resource a job holds.
    pub struct GresUnits {
        pub name: String,
        pub kind: String,
        /// Unit numbers within the node's whole list of that name.
        pub units: CpuSet,
        /// The GPU that these are parts of (`shard`, `mps`), and how many it has.
        pub device: Option<u32>,
        pub n_parts: u32,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GresError(pub String);

impl fmt::Display for GresError {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "Invalid generic resource (gres) specification: {}", self.0)
    }
}

/// Reads `name[:kind][:count]`, comma separated; a count may end in K, M or G. `none` is nothing.
pub fn parse_list(text: &str) -> Result<Vec<GresRequest>, GresError> {
    if text.eq_ignore_ascii_case("none") {
        return Ok(Vec::new());
    }
    text.split(',').filter(|item| !item.is_empty()).map(|item| parse_one(item.trim())).collect()
}

fn parse_one(item: &str) -> Result<GresRequest, GresError> {
    let refuse = || GresError(item.to_string());
    let item = item.strip_prefix("gres:").unwrap_or(item);
    let mut words = item.split([':', '=']);
    let name = words.next().filter(|name| !name.is_empty()).ok_or_else(refuse)?.to_string();
    let (kind, count) = match (words.next(), words.next(), words.next()) {
        (None, ..) => (String::new(), 1),
        (Some(word), None, _) => match parse_count(word) {
            Some(count) => (String::new(), count),
            None if word.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
                && !word.is_empty()
                && !word.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                (word.to_string(), 1)
            }
            None => return Err(refuse()),
        },
        (Some(kind), Some(count), None) => (kind.to_string(), parse_count(count).ok_or_else(refuse)?),
        _ => return Err(refuse()),
    };
    Ok(GresRequest { name, kind, count })
}

fn parse_count(text: &str) -> Option<u32> {
    let (digits, factor) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1024),
        b'm' | b'M' => (&text[..text.len() - 1], 1024 * 1024),
        b'g' | b'G' => (&text[..text.len() - 1], 1024 * 1024 * 1024),
        _ => (text, 1),
    };
    digits.parse::<u32>().ok()?.checked_mul(factor)
}

impl NodeConfig {
    /// Units for every request out of those that are not in `used`, lowest first; none if there are too few.
    /// Units of each kind are held apart, so that they show as `gpu:a100:2`.
    pub fn pick_gres(&self, used: &[GresUnits], wanted: &[GresRequest]) -> Option<Vec<GresUnits>> {
        let mut picked: Vec<GresUnits> = Vec::new();
        // Those who want a certain kind choose before those who take any.
        let (any, certain): (Vec<_>, Vec<_>) = wanted.iter().partition(|request| request.kind.is_empty());
        for request in certain.into_iter().chain(any) {
            if self.divides_gpus_into(&request.name) {
                if request.count > 0 {
                    picked.push(self.pick_parts(used, &picked, request)?);
                }
                continue;
            }
            let mut left = request.count;
            let mut first = 0;
            for gres in self.gres.iter().filter(|gres| gres.name == request.name) {
                let numbers = first..first + gres.count;
                first += gres.count;
                if !request.kind.is_empty() && gres.kind != request.kind {
                    continue;
                }
                let is_held = |list: &[GresUnits], unit| {
                    list.iter().any(|held| match held.device {
                        Some(device) => request.name == "gpu" && device == unit,
                        None => held.name == request.name && held.units.contains(unit),
                    })
                };
                let free = numbers.filter(|unit| !is_held(used, *unit) && !is_held(&picked, *unit));
                let units: Vec<u32> = free.take(left as usize).collect();
                left -= units.len() as u32;
                let (name, kind) = (gres.name.clone(), gres.kind.clone());
                hold_units(&mut picked, GresUnits { name, kind, ..GresUnits::default() }, &units);
            }
            if left > 0 {
                return None;
            }
        }
        Some(picked)
    }
}

/// Units for every request out of these, lowest first; none if there are too few.
pub fn take_units(from: &[GresUnits], wanted: &[GresRequest]) -> Option<Vec<GresUnits>> {
    let mut left: Vec<GresUnits> = from.to_vec();
    let mut taken: Vec<GresUnits> = Vec::new();
    let (any, certain): (Vec<_>, Vec<_>) = wanted.iter().partition(|request| request.kind.is_empty());
    for request in certain.into_iter().chain(any) {
        let mut missing = request.count;
        let suits =
            |held: &&mut GresUnits| held.name == request.name && (request.kind.is_empty() || held.kind == request.kind);
        for held in left.iter_mut().filter(suits) {
            let units: Vec<u32> = held.units.iter().take(missing as usize).collect();
            missing -= units.len() as u32;
            units.iter().for_each(|unit| held.units.remove(*unit));
            hold_units(&mut taken, GresUnits { units: CpuSet::default(), ..held.clone() }, &units);
        }
        if missing > 0 {
            return None;
        }
    }
    Some(taken)
}

/// What is left of these units without those.
pub fn without_units(from: &[GresUnits], taken: &[GresUnits]) -> Vec<GresUnits> {
    let rest = |held: &GresUnits| {
        let same = taken.iter().filter(|other| other.name == held.name);
        let units = same.fold(held.units.clone(), |units, other| units.difference(&other.units));
        (!units.is_empty()).then(|| GresUnits { units, ..held.clone() })
    };
    from.iter().filter_map(rest).collect()
}

/// More units beside those of the same name, kind and device.
fn hold_units(picked: &mut Vec<GresUnits>, like: GresUnits, units: &[u32]) {
    if units.is_empty() {
        return;
    }
    let same = |held: &GresUnits| held.name == like.name && held.kind == like.kind && held.device == like.device;
    let at = picked.iter().position(same).unwrap_or_else(|| {
        picked.push(like);
        picked.len() - 1
    });
    units.iter().for_each(|unit| picked[at].units.insert(*unit));
}

fn show(out: &mut fmt::Formatter, name: &str, kind: &str, count: u32) -> fmt::Result {
    match kind {
        "" => write!(out, "{name}:{count}"),
        kind => write!(out, "{name}:{kind}:{count}"),
    }
}

impl fmt::Display for Gres {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        show(out, &self.name, &self.kind, self.count)
    }
}

impl fmt::Display for GresRequest {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        show(out, &self.name, &self.kind, self.count)
    }
}

impl fmt::Display for GresUnits {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        show(out, &self.name, &self.kind, self.units.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_a_count_a_kind_or_both() {
        let shown = |text| parse_list(text).map(|list| list.iter().map(|gres| gres.to_string()).collect::<Vec<_>>());
        assert_eq!(shown("gpu").unwrap(), ["gpu:1"]);
        assert_eq!(shown("gpu:2,fpga:1").unwrap(), ["gpu:2", "fpga:1"]);
        assert_eq!(shown("gpu:a100").unwrap(), ["gpu:a100:1"]);
        assert_eq!(shown("gpu:a100:4").unwrap(), ["gpu:a100:4"]);
        assert_eq!(shown("craynetwork:1K").unwrap(), ["craynetwork:1024"]);
        assert!(shown("gpu:a100:x").is_err());
        assert!(shown("gpu:1x").is_err());
        assert!(shown("none").unwrap().is_empty());
    }

    #[test]
    fn two_requests_never_share_a_unit_and_certain_kinds_go_first() {
        let gres = |kind: &str, count| Gres { name: "gpu".into(), kind: kind.into(), count, ..Default::default() };
        let node = NodeConfig { gres: vec![gres("a100", 2), gres("h100", 1)], ..Default::default() };
        let picked = |text, used: &[GresUnits]| node.pick_gres(used, &parse_list(text).unwrap());
        let shown = |text| {
            let picked = picked(text, &[])?;
            Some(picked.iter().map(|held| format!("{held}={}", held.units)).collect::<Vec<_>>())
        };
        assert_eq!(shown("gpu:1,gpu:a100:2"), Some(vec!["gpu:a100:2=0-1".into(), "gpu:h100:1=2".into()]));
        assert_eq!(shown("gpu:3"), Some(vec!["gpu:a100:2=0-1".into(), "gpu:h100:1=2".into()]));
        assert_eq!(shown("gpu:4"), None);
        let used = picked("gpu:a100:1", &[]).unwrap();
        assert_eq!(picked("gpu:a100:2", &used), None);
        assert_eq!(picked("gpu:1", &used).unwrap()[0].units.to_string(), "1");
    }
}
