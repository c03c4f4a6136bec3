//! How much of each resource that is counted, by Slurm's names for them.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::amount::Amount;
use crate::license::LicenseCount;

/// The resources that every job has are fields; others (`gres/gpu`, `license/a`) have their names. Memory in megabytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "T: Deserialize<'de> + Default"))]
pub struct Amounts<T = u64> {
    pub cpu: T,
    pub mem: T,
    pub node: T,
    pub billing: T,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, T>,
}

impl<T: Copy + Default + PartialEq> Amounts<T> {
    pub fn get(&self, name: &str) -> T {
        match name {
            "cpu" => self.cpu,
            "mem" => self.mem,
            "node" => self.node,
            "billing" => self.billing,
            other => self.others.get(other).copied().unwrap_or_default(),
        }
    }

    /// Those of every job first, in Slurm's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, T)> {
        let fixed = [("cpu", self.cpu), ("mem", self.mem), ("node", self.node), ("billing", self.billing)];
        fixed.into_iter().chain(self.others.iter().map(|(name, amount)| (name.as_str(), *amount)))
    }

    /// Changes each by what the other has of it; named ones that come to nothing are forgotten.
    pub fn merge<U: Copy + Default + PartialEq>(&mut self, other: &Amounts<U>, merge: impl Fn(&mut T, U)) {
        merge(&mut self.cpu, other.cpu);
        merge(&mut self.mem, other.mem);
        merge(&mut self.node, other.node);
        merge(&mut self.billing, other.billing);
        for (name, amount) in &other.others {
            merge(self.others.entry(name.clone()).or_default(), *amount);
        }
        if !other.others.is_empty() {
            self.others.retain(|_, amount| *amount != T::default());
        }
    }

    pub fn map<U: Copy + Default + PartialEq>(&self, change: impl Fn(T) -> U) -> Amounts<U> {
        Amounts {
            cpu: change(self.cpu),
            mem: change(self.mem),
            node: change(self.node),
            billing: change(self.billing),
            others: self.others.iter().map(|(name, amount)| (name.clone(), change(*amount))).collect(),
        }
    }
}

impl Amounts {
    /// Without billing, which depends on the partition.
    pub fn new(amount: &Amount, licenses: &[LicenseCount]) -> Amounts {
        let gres = amount.gres.iter().map(|(name, count)| (format!("gres/{name}"), *count));
        let buffers = amount.buffers.iter().map(|(name, megabytes)| (format!("bb/{name}"), *megabytes));
        let licenses = licenses.iter().map(|one| (format!("license/{}", one.name), u64::from(one.count)));
        Amounts {
            cpu: amount.n_cpus.into(),
            mem: amount.memory_mb,
            node: amount.n_nodes.into(),
            billing: 0,
            others: gres.chain(buffers).chain(licenses).collect(),
        }
    }
}
