//! Trackable resources with amounts: `cpu=4,mem=10G,gres/gpu=2`.
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::size;

/// Amounts by name; memory in megabytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tres(pub BTreeMap<String, u64>);

/// In the order of Slurm's numbers; others follow by name.
const FIRST: [&str; 8] = ["cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"];
const KINDS: [&str; 5] = ["gres/", "license/", "bb/", "ic/", "interconnect/"];

impl Tres {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Takes over each amount; one that is missing (`-1` in the text) is taken out.
    pub fn set(&mut self, edits: &[(String, Option<u64>)]) {
        for (name, amount) in edits {
            match amount {
                Some(amount) => drop(self.0.insert(name.clone(), *amount)),
                None => drop(self.0.remove(name)),
            }
        }
    }
}

/// Where it stands among others: those that every cluster has come first.
pub fn rank(name: &str) -> usize {
    FIRST.iter().position(|known| *known == name).unwrap_or(FIRST.len())
}

/// `cpu=4,mem=10G`; an amount of -1 takes the entry out. The error is the word that is wrong.
pub fn parse(text: &str) -> Result<Vec<(String, Option<u64>)>, String> {
    let mut found = Vec::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let (name, amount) = word.split_once('=').ok_or(word)?;
        let name = canonical(name).ok_or(word)?;
        let amount = match amount {
            "-1" => None,
            _ if matches!(name.as_str(), "mem" | "vmem") => Some(size::parse_megabytes(amount).ok_or(word)?),
            _ => Some(amount.parse().map_err(|_| word)?),
        };
        found.push((name, amount));
    }
    Ok(found)
}

/// Whether anything of it is ever counted for a job here. `energy`, `vmem` and the like are known by name only.
pub fn is_counted(name: &str) -> bool {
    matches!(name, "cpu" | "mem" | "node" | "billing")
        || ["gres/", "license/", "bb/"].iter().any(|kind| name.starts_with(kind))
}

/// The name by which it is counted; None: there is no such resource.
pub fn canonical(name: &str) -> Option<String> {
    let name = name.to_lowercase();
    let by_number = name.parse::<usize>().ok().and_then(|number| FIRST.get(number.checked_sub(1)?));
    if let Some(known) = by_number.or(FIRST.iter().find(|known| **known == name)) {
        return Some(known.to_string());
    }
    KINDS.iter().any(|kind| name.strip_prefix(kind).is_some_and(|rest| !rest.is_empty())).then_some(name)
}

impl fmt::Display for Tres {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let mut names: Vec<(&String, &u64)> = self.0.iter().collect();
        names.sort_by_key(|(name, _)| (rank(name), name.as_str()));
        for (index, (name, amount)) in names.into_iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match name.as_str() {
                "mem" | "vmem" => write!(out, "{comma}{name}={}", size::show_megabytes(*amount))?,
                _ => write!(out, "{comma}{name}={amount}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_written_in_slurms_order() {
        let mut tres = Tres::default();
        tres.set(&parse("node=3,mem=10G,CPU=4,gres/gpu=2").unwrap());
        assert_eq!(tres.to_string(), "cpu=4,mem=10G,node=3,gres/gpu=2");
        tres.set(&parse("node=-1,1=8").unwrap());
        assert_eq!(tres.to_string(), "cpu=8,mem=10G,gres/gpu=2");
        assert_eq!(parse("cpu"), Err("cpu".into()));
        assert_eq!(parse("cpu=x"), Err("cpu=x".into()));
        assert_eq!(parse("apples=1"), Err("apples=1".into()));
        assert!(is_counted("gres/gpu") && is_counted("billing") && !is_counted("energy"));
    }
}
