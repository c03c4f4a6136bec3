//! Weights of resources, `CPU=1.0,Mem=0.25G,GRES/gpu=2`, and what a partition charges by them (`TRESBillingWeights`).
use crate::Partition;
use crate::accounts::{Amounts, tres};
use crate::config::Config;

/// Weights in small whole parts of a unit, so that all machines reckon alike; memory by the megabyte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights(Vec<(String, i128)>);

const BILLION: f64 = 1e9;
/// So fine that a weight for a gigabyte or a terabyte is one for a megabyte without loss.
const PARTS: i128 = 1_000_000_000 << 20;
/// No weight is larger; a weight of a priority is a 32-bit number.
const MOST: f64 = u32::MAX as f64;

impl Weights {
    /// The error is the word that is wrong.
    pub fn parse(text: &str) -> Result<Weights, String> {
        let mut found: Vec<(String, i128)> = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, weight) = word.split_once('=').ok_or(word)?;
            let name = tres::canonical(name.trim()).ok_or(word)?;
            let (number, shift) = match weight.trim().char_indices().last() {
                Some((at, 'K' | 'k')) => (&weight.trim()[..at], 30),
                Some((at, 'M' | 'm')) => (&weight.trim()[..at], 20),
                Some((at, 'G' | 'g')) => (&weight.trim()[..at], 10),
                Some((at, 'T' | 't')) => (&weight.trim()[..at], 0),
                _ => (weight.trim(), 20),
            };
            let number: f64 = number.parse().map_err(|_| word)?;
            if number.abs() > MOST || number.is_nan() {
                return Err(word.into());
            }
            // Whoever says it twice means the latter.
            found.retain(|(known, _)| *known != name);
            found.push((name, ((number * BILLION).round() as i128) << shift));
        }
        Ok(Weights(found))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What these amounts are billed as: the sum of all, or only the dearest of what nodes have and the sum of the rest.
    pub fn of(&self, amounts: &Amounts, only_dearest: bool) -> u64 {
        let costs = self.0.iter().map(|(name, weight)| (name, i128::from(amounts.get(name)).saturating_mul(*weight)));
        let is_of_nodes = |name: &str| matches!(name, "cpu" | "mem" | "node") || name.starts_with("gres/");
        let (of_nodes, of_cluster): (Vec<_>, Vec<_>) = costs.partition(|(name, _)| only_dearest && is_of_nodes(name));
        let dearest = of_nodes.iter().map(|(_, cost)| *cost).max().unwrap_or(0).max(0);
        let rest = of_cluster.iter().fold(0i128, |sum, (_, cost)| sum.saturating_add(*cost));
        // A weight may be a discount; nobody is paid for a job.
        u64::try_from(dearest.saturating_add(rest).max(0) / PARTS).unwrap_or(u64::MAX)
    }

    /// Each resource with its weight.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, weight)| (name.as_str(), *weight as f64 / PARTS as f64))
    }
}

/// With what the partition charges for it: by default the CPUs.
pub fn billed(config: &Config, partition: Option<&Partition>, amounts: Amounts) -> Amounts {
    let written = partition.map_or("", |partition| partition.billing_weights.as_str());
    let billing = match Weights::parse(written) {
        Ok(weights) if !weights.is_empty() => weights.of(&amounts, config.scheduler.priority.bills_dearest),
        _ => amounts.cpu,
    };
    Amounts { billing, ..amounts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_weighed_and_summed() {
        let weights = Weights::parse("CPU=1.0,Mem=0.25G,GRES/gpu=2.0").unwrap();
        let mut amounts = Amounts { cpu: 4, mem: 8192, ..Amounts::default() };
        amounts.others.insert("gres/gpu".into(), 3);
        assert_eq!(weights.of(&amounts, false), 4 + 2 + 6);
        assert_eq!(weights.of(&amounts, true), 6);
        assert_eq!(Weights::parse("cpu=2,gres/gpu=-1").unwrap().of(&amounts, false), 5);
        assert_eq!(Weights::parse("cpu=-1").unwrap().of(&amounts, false), 0);
        // A half of each of four gigabytes is two, not a little less.
        let memory = Amounts { mem: 4096, ..Amounts::default() };
        assert_eq!(Weights::parse("Mem=0.5G").unwrap().of(&memory, false), 2);
        assert_eq!(Weights::parse("Mem=512T").unwrap().of(&memory, false), 2);
        assert_eq!(Weights::parse("cpu=2,CPU=3").unwrap().of(&amounts, false), 12);
        amounts.others.insert("bb/lua".into(), 100);
        // Only what nodes have is compared; nobody is paid for it.
        assert_eq!(Weights::parse("cpu=1,gres/gpu=2,bb/lua=1").unwrap().of(&amounts, true), 106);
        assert_eq!(Weights::parse("cpu=-1,bb/lua=1").unwrap().of(&amounts, true), 100);
        assert!(Weights::parse("apples=1").is_err() && Weights::parse("cpu=1e12").is_err());
        assert!(Weights::parse("cpu=x").is_err() && Weights::parse("cpu").is_err());
        assert_eq!(Weights::parse("").unwrap().of(&amounts, false), 0);
    }
}
