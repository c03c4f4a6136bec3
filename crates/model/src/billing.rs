//! What a partition charges for resources (`TRESBillingWeights`): `CPU=1.0,Mem=0.25G,GRES/gpu=2`.
use crate::accounts::Amounts;

/// Weights in billionths of a unit, so that all machines reckon alike; memory by the megabyte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights(Vec<(String, i64)>);

const BILLION: f64 = 1e9;

impl Weights {
    /// The error is the word that is wrong.
    pub fn parse(text: &str) -> Result<Weights, String> {
        let mut found = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, weight) = word.split_once('=').ok_or(word)?;
            let name = name.trim().to_lowercase();
            let (number, scale) = match weight.trim().char_indices().last() {
                Some((at, 'K' | 'k')) => (&weight.trim()[..at], 1024.0),
                Some((at, 'M' | 'm')) => (&weight.trim()[..at], 1.0),
                Some((at, 'G' | 'g')) => (&weight.trim()[..at], 1.0 / 1024.0),
                Some((at, 'T' | 't')) => (&weight.trim()[..at], 1.0 / 1_048_576.0),
                _ => (weight.trim(), 1.0),
            };
            let number: f64 = number.parse().map_err(|_| word)?;
            if number.abs() >= 1e6 || number.is_nan() {
                return Err(word.into());
            }
            found.push((name, (number * scale * BILLION).round() as i64));
        }
        Ok(Weights(found))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What these amounts are billed as: the sum of all, or only the dearest of what nodes have and the sum of the rest.
    pub fn of(&self, amounts: &Amounts, only_dearest: bool) -> u64 {
        let costs = self.0.iter().map(|(name, weight)| (name, i128::from(amounts.get(name)) * i128::from(*weight)));
        let (of_nodes, of_cluster): (Vec<_>, Vec<_>) =
            costs.partition(|(name, _)| only_dearest && !name.starts_with("license/"));
        let dearest = of_nodes.iter().map(|(_, cost)| *cost).max().unwrap_or(0);
        let rest: i128 = of_cluster.iter().map(|(_, cost)| *cost).sum();
        // A weight may be a discount; nobody is paid for a job.
        u64::try_from((dearest + rest) / 1_000_000_000).unwrap_or(0)
    }
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
        assert!(Weights::parse("cpu=x").is_err() && Weights::parse("cpu").is_err());
        assert_eq!(Weights::parse("").unwrap().of(&amounts, false), 0);
    }
}
