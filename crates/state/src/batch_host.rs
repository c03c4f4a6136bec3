//! Which node of a job runs its script: the first, or the first with the features that `--batch` names.
use model::{JobSpec, NodeName, Reject};

use crate::Cluster;

/// Names joined by `|` (one is enough) or `&` (all are needed).
struct Wish<'a> {
    names: Vec<&'a str>,
    one_is_enough: bool,
}

impl<'a> Wish<'a> {
    fn of(text: &'a str) -> Option<Wish<'a>> {
        let names: Vec<&str> = text.split(['|', '&']).filter(|name| !name.is_empty()).collect();
        (!names.is_empty()).then(|| Wish { names, one_is_enough: text.contains('|') })
    }

    fn is_met(&self, has: impl Fn(&str) -> bool) -> bool {
        match self.one_is_enough {
            true => self.names.iter().any(|name| has(name)),
            false => self.names.iter().all(|name| has(name)),
        }
    }
}

/// What it names must be part of the job's constraint.
pub(crate) fn check(spec: &JobSpec) -> Result<(), Reject> {
    let Some(wish) = Wish::of(&spec.batch_features) else { return Ok(()) };
    let constraint = spec.size.constraint.iter().flat_map(|wanted| wanted.names());
    let asked: Vec<&str> = constraint.chain(spec.size.feature_sets.names()).collect();
    if wish.is_met(|name| asked.contains(&name)) { Ok(()) } else { Err(Reject::BadBatchFeatures) }
}

/// The node among these; none: there is no wish, or no node meets it.
pub(crate) fn choose<'a>(
    cluster: &Cluster,
    spec: &JobSpec,
    mut nodes: impl Iterator<Item = &'a NodeName>,
) -> Option<NodeName> {
    let wish = Wish::of(&spec.batch_features)?;
    let meets = |name: &&NodeName| {
        let features = cluster.nodes.get(*name).map(|node| node.features()).unwrap_or_default();
        wish.is_met(|wanted| features.iter().any(|feature| feature == wanted))
    };
    nodes.find(meets).cloned()
}
