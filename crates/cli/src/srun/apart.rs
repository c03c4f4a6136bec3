//! The parts of `srun a : b` inside a plain allocation: each has nodes of its own, the first ones that no other part has.
use std::collections::BTreeSet;

use model::{NodeName, StepSpec, hostlist};

/// Gives each part its nodes among those of the job; what Slurm says where they are too few, or named twice.
/// Parts that ask for CPUs only (`--exact`), or share them (`--overlap`), may meet on a node.
pub fn keep(nodes: &[NodeName], parts: &mut [StepSpec]) -> Result<(), String> {
    if parts.iter().all(|part| part.is_exact || part.overlaps) {
        return Ok(());
    }
    let mut taken: BTreeSet<NodeName> = BTreeSet::new();
    for at in 0..parts.len() {
        let show = |names: &BTreeSet<NodeName>| hostlist::compress(names.iter().map(|name| name.to_string()));
        let named: BTreeSet<NodeName> = parts[at].nodes.iter().cloned().collect();
        if !named.is_disjoint(&taken) {
            let (named, taken) = (show(&named), show(&taken));
            return Err(format!(
                "Requested nodelist {named} overlaps with excluded {taken}.\nsrun: error: Job not submitted."
            ));
        }
        let wanted = named.len().max(parts[at].min_nodes.max(1) as usize);
        // Those that a later part names are left to it.
        let later: BTreeSet<&NodeName> = parts[at + 1..].iter().flat_map(|part| &part.nodes).collect();
        let is_free = |name: &&NodeName| {
            let part = &parts[at];
            !taken.contains(*name) && !part.excluded.contains(name) && (!later.contains(name) || named.contains(*name))
        };
        let mut chosen: Vec<NodeName> = nodes.iter().filter(|name| named.contains(*name)).cloned().collect();
        // Names that are not the job's are refused where the step is created.
        let missing = wanted.saturating_sub(named.len());
        let more: Vec<NodeName> =
            nodes.iter().filter(is_free).filter(|name| !named.contains(*name)).take(missing).cloned().collect();
        if more.len() < missing {
            return Err(format!(
                "Allocation failure of {wanted} nodes: job size of {}, already allocated {} nodes to previous components.",
                nodes.len(),
                taken.len()
            ));
        }
        chosen.extend(more);
        taken.extend(chosen.iter().cloned());
        let part = &mut parts[at];
        if chosen.len() == wanted {
            (part.min_nodes, part.max_nodes) = (wanted as u32, Some(wanted as u32));
            part.nodes = chosen;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(nodes: &[&str], min_nodes: u32) -> StepSpec {
        StepSpec { nodes: nodes.iter().map(|name| (*name).into()).collect(), min_nodes, ..StepSpec::default() }
    }

    fn kept(parts: &[StepSpec]) -> Result<Vec<String>, String> {
        let nodes: Vec<NodeName> = ["n1", "n2", "n3"].map(NodeName::from).to_vec();
        let mut parts = parts.to_vec();
        keep(&nodes, &mut parts)?;
        Ok(parts.iter().map(|part| hostlist::compress(part.nodes.iter().map(|name| name.to_string()))).collect())
    }

    #[test]
    fn parts_have_nodes_of_their_own() {
        assert_eq!(kept(&[part(&[], 1), part(&[], 2)]), Ok(vec!["n1".into(), "n[2-3]".into()]));
        assert_eq!(kept(&[part(&[], 1), part(&["n1"], 1)]), Ok(vec!["n2".into(), "n1".into()]));
        assert_eq!(
            kept(&[part(&["n1"], 1), part(&["n1"], 1)]),
            Err("Requested nodelist n1 overlaps with excluded n1.\nsrun: error: Job not submitted.".into())
        );
        assert_eq!(
            kept(&[part(&[], 2), part(&[], 2)]),
            Err("Allocation failure of 2 nodes: job size of 3, already allocated 2 nodes to previous components."
                .into())
        );
        let shared = StepSpec { overlaps: true, ..part(&["n1"], 1) };
        assert_eq!(kept(&[shared.clone(), shared]), Ok(vec!["n1".into(), "n1".into()]));
    }
}
