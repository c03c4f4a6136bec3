//! What a job asks of the features of its nodes together: one kind for all (`[rack1|rack2]`), or so many of each (`[a*2&b*1]`).
use std::collections::BTreeMap;

use crate::features::{Constraint, Reader};
use crate::spec::Size;

record! {
    pub struct FeatureSets {
        /// All nodes meet the same one of these.
        pub one_of: Vec<Constraint>,
        /// So many of the nodes meet each of these; no node is counted twice.
        pub counts: Vec<FeatureCount>,
    }

    pub struct FeatureCount {
        pub constraint: Constraint,
        pub n_nodes: u32,
    }
}

/// A whole `--constraint`: what each node meets, and what they meet together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wish {
    pub constraint: Option<Constraint>,
    pub sets: FeatureSets,
}

/// Kinds that are counted are the bits of a number.
const MOST_COUNTS: usize = 64;

/// Reads a whole constraint; the error says what is not understood.
pub fn parse(text: &str) -> Result<Wish, String> {
    let mut reader = Reader::of(text);
    let alternatives = alternatives(&mut reader)?;
    reader.end()?;
    if alternatives.len() > 1 {
        return Ok(Wish { constraint: Some(any_of(alternatives)?), ..Wish::default() });
    }
    let mut wish = Wish::default();
    for part in alternatives.into_iter().flatten() {
        match part {
            Part::Plain(constraint) => wish.requires(constraint),
            Part::Counted(count) => wish.sets.counts.push(count),
            Part::OneOf(kinds) if wish.sets.one_of.is_empty() => wish.sets.one_of = kinds,
            Part::OneOf(_) => return Err("only one \"[ ]\" is possible in --constraint".into()),
        }
    }
    if wish.sets.counts.len() > MOST_COUNTS {
        return Err(format!("more than {MOST_COUNTS} counts in --constraint"));
    }
    Ok(wish)
}

impl Wish {
    fn requires(&mut self, constraint: Constraint) {
        self.constraint = Some(match self.constraint.take() {
            Some(before) => before.and(constraint),
            None => constraint,
        });
    }
}

enum Part {
    Plain(Constraint),
    Counted(FeatureCount),
    OneOf(Vec<Constraint>),
}

/// `a&b|c`: a list of parts for each side of the bars.
fn alternatives(reader: &mut Reader) -> Result<Vec<Vec<Part>>, String> {
    let mut alternatives = vec![parts(reader)?];
    while reader.take('|') {
        alternatives.push(parts(reader)?);
    }
    Ok(alternatives)
}

fn parts(reader: &mut Reader) -> Result<Vec<Part>, String> {
    let mut all = part(reader)?;
    while reader.take('&') || reader.take(',') {
        all.extend(part(reader)?);
    }
    Ok(all)
}

fn part(reader: &mut Reader) -> Result<Vec<Part>, String> {
    if reader.take('[') {
        return reader.deeper(bracket);
    }
    let constraint = reader.one()?;
    Ok(vec![match reader.take('*') {
        true => Part::Counted(FeatureCount { constraint, n_nodes: reader.count()? }),
        false => Part::Plain(constraint),
    }])
}

fn bracket(reader: &mut Reader) -> Result<Vec<Part>, String> {
    let mut inside = alternatives(reader)?;
    if !reader.take(']') {
        return Err("\"]\" is missing in --constraint".into());
    }
    if inside.len() == 1 {
        let parts = inside.remove(0);
        let is_counted = |part: &Part| matches!(part, Part::Counted(_));
        return match parts.len() == 1 || parts.iter().all(is_counted) {
            true => Ok(parts),
            false => Err("in \"[ ]\" of --constraint every feature needs a count".into()),
        };
    }
    let kinds = inside.into_iter().map(all_of).collect::<Result<_, _>>()?;
    Ok(vec![Part::OneOf(kinds)])
}

fn any_of(alternatives: Vec<Vec<Part>>) -> Result<Constraint, String> {
    Ok(Constraint::Any(alternatives.into_iter().map(all_of).collect::<Result<_, _>>()?))
}

fn all_of(parts: Vec<Part>) -> Result<Constraint, String> {
    let plain = |part| match part {
        Part::Plain(constraint) => Ok(constraint),
        Part::Counted(_) | Part::OneOf(_) => {
            Err("counts and \"[ ]\" cannot be alternatives in --constraint".to_string())
        }
    };
    let mut all = parts.into_iter().map(plain).collect::<Result<Vec<_>, _>>()?;
    Ok(if all.len() == 1 { all.remove(0) } else { Constraint::All(all) })
}

impl FeatureSets {
    pub fn is_empty(&self) -> bool {
        self.one_of.is_empty() && self.counts.is_empty()
    }

    /// Every feature that is named, wanted or not.
    pub fn names(&self) -> Vec<&str> {
        let counted = self.counts.iter().map(|count| &count.constraint);
        self.one_of.iter().chain(counted).flat_map(Constraint::names).collect()
    }

    /// With fewer nodes than this the counts cannot be right.
    pub fn least_nodes(&self) -> u32 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(count.n_nodes))
    }

    /// A node with these features may take part.
    pub fn may_have(&self, features: &[String]) -> bool {
        self.one_of.is_empty() || self.one_of.iter().any(|kind| kind.is_met_by(features))
    }

    /// Nodes with these features are right for the job, all together.
    pub fn are_met_by(&self, nodes: &[&[String]]) -> bool {
        let is_kind = |kind: &Constraint| nodes.iter().all(|features| kind.is_met_by(features));
        let of_one_kind = self.one_of.is_empty() || self.one_of.iter().any(is_kind);
        of_one_kind && self.pin(nodes.iter().map(|features| (*features, false))).is_some()
    }

    /// Nodes (by their places) that make the counts right: those that the job has anyway first, then in their order. None if there are
    /// too few.
    pub fn pin<'f>(&self, nodes: impl Iterator<Item = (&'f [String], bool)>) -> Option<Vec<usize>> {
        let mut groups: BTreeMap<u64, Group> = BTreeMap::new();
        for (place, (features, is_required)) in nodes.enumerate() {
            let kinds = self.kinds(features);
            let group = groups.entry(kinds).or_insert_with(|| Group { kinds, ..Group::default() });
            let of = if is_required { &mut group.required } else { &mut group.others };
            of.push(place);
        }
        groups.remove(&0);
        let mut flow = Flow::new(groups.into_values().collect(), self.counts.len());
        // Whoever has a place in the matching keeps it when it grows, so those that come anyway are used as far as they can be.
        let mut left: Vec<u32> = self.counts.iter().map(|count| count.n_nodes).collect();
        for only_required in [true, false] {
            flow.only_required = only_required;
            for (kind, left) in left.iter_mut().enumerate() {
                while *left > 0 && flow.grow(kind, &mut 0) {
                    *left -= 1;
                }
            }
        }
        left.iter().all(|left| *left == 0).then(|| flow.chosen())
    }

    /// Which of the counted kinds a node is of, as bits.
    fn kinds(&self, features: &[String]) -> u64 {
        let met = self.counts.iter().enumerate().filter(|(_, count)| count.constraint.is_met_by(features));
        met.fold(0, |kinds, (kind, _)| kinds | 1 << kind)
    }
}

/// Nodes of the same kinds.
#[derive(Default)]
struct Group {
    kinds: u64,
    required: Vec<usize>,
    others: Vec<usize>,
    n_used: usize,
}

/// How many nodes of each group count for each kind: a matching that grows node by node.
struct Flow {
    groups: Vec<Group>,
    /// By kind, then by group.
    counted: Vec<Vec<u32>>,
    only_required: bool,
}

impl Flow {
    fn new(groups: Vec<Group>, n_kinds: usize) -> Flow {
        let counted = vec![vec![0; groups.len()]; n_kinds];
        Flow { groups, counted, only_required: false }
    }

    /// One more node for this kind; nodes of other kinds may have to change for that, but not those `asked` already.
    fn grow(&mut self, kind: usize, asked: &mut u64) -> bool {
        *asked |= 1 << kind;
        let n_groups = self.groups.len();
        for at in 0..n_groups {
            let group = &mut self.groups[at];
            let room = group.required.len() + if self.only_required { 0 } else { group.others.len() };
            if group.kinds >> kind & 1 == 1 && group.n_used < room {
                group.n_used += 1;
                self.counted[kind][at] += 1;
                return true;
            }
        }
        for at in (0..n_groups).filter(|at| self.groups[*at].kinds >> kind & 1 == 1).collect::<Vec<_>>() {
            for other in 0..self.counted.len() {
                let is_new = *asked >> other & 1 == 0;
                if is_new && self.counted[other][at] > 0 && self.grow(other, asked) {
                    self.counted[other][at] -= 1;
                    self.counted[kind][at] += 1;
                    return true;
                }
            }
        }
        false
    }

    fn chosen(self) -> Vec<usize> {
        let used = |group: Group| group.required.into_iter().chain(group.others).take(group.n_used);
        let mut chosen: Vec<usize> = self.groups.into_iter().flat_map(used).collect();
        chosen.sort_unstable();
        chosen
    }
}

impl Size {
    /// The same for each kind that all its nodes may be of, the first first; itself, if it does not matter.
    pub fn of_each_kind(&self) -> Vec<Size> {
        let of_kind = |kind: &Constraint| {
            let constraint = match self.constraint.clone() {
                Some(required) => required.and(kind.clone()),
                None => kind.clone(),
            };
            let sets = FeatureSets { one_of: Vec::new(), ..self.feature_sets.clone() };
            Size { constraint: Some(constraint), feature_sets: sets, ..self.clone() }
        };
        match self.feature_sets.one_of.is_empty() {
            true => vec![self.clone()],
            false => self.feature_sets.one_of.iter().map(of_kind).collect(),
        }
    }

    /// The same, with those nodes named besides its own that make its counts right.
    pub fn with_pinned(&self, names: impl Iterator<Item = crate::NodeName>) -> Size {
        let mut size = Size { feature_sets: FeatureSets::default(), ..self.clone() };
        for name in names {
            if !size.nodes.contains(&name) {
                size.nodes.push(name);
            }
        }
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pinned(text: &str, nodes: &[&str]) -> Option<Vec<usize>> {
        let sets = parse(text).unwrap().sets;
        let features: Vec<Vec<String>> =
            nodes.iter().map(|node| node.trim_end_matches('!').split(',').map(str::to_string).collect()).collect();
        sets.pin(features.iter().zip(nodes).map(|(features, node)| (&features[..], node.ends_with('!'))))
    }

    #[test]
    fn what_is_asked_of_all_nodes_together_is_read() {
        let plain = parse("a&(b|c)").unwrap();
        assert!(plain.sets.is_empty());
        assert_eq!(plain.constraint, crate::features::parse("a&(b|c)").ok());
        assert_eq!(parse("a|b&c").unwrap().constraint, crate::features::parse("a|b&c").ok());
        let kinds = parse("d&[a|(b&c)]").unwrap();
        assert_eq!(kinds.sets.one_of.len(), 2);
        assert_eq!(kinds.constraint, Some(Constraint::Has("d".into())));
        let counts = parse("[(a&b)*2&c*1]").unwrap();
        assert_eq!(counts.sets.counts.iter().map(|count| count.n_nodes).collect::<Vec<_>>(), [2, 1]);
        assert_eq!((counts.constraint, counts.sets.least_nodes()), (None, 3));
        for bad in [
            "",
            "[",
            "[]",
            "[a",
            "a]",
            "a*",
            "a*0",
            "a*x",
            "a*99999999999",
            "a|b*2",
            "[a*2|b]",
            "[a&b]",
            "[a|b]&[c|d]",
            "*2",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_node_is_counted_twice() {
        assert_eq!(pinned("a*2", &["b", "a", "a,b", "a"]), Some(vec![1, 2]));
        assert_eq!(pinned("[a*1&b*1]", &["a,b"]), None);
        // The first node is needed for b: only the second can be an a.
        assert_eq!(pinned("[a*1&b*1]", &["a,b", "a", "c"]), Some(vec![0, 1]));
        assert_eq!(pinned("[a*2&b*1&c*1]", &["a,b,c", "a,b", "a,c", "a", "b"]), Some(vec![1, 2, 3, 4]));
        assert_eq!(pinned("[a*3&b*1]", &["a,b", "a,b", "a"]), None);
    }

    #[test]
    fn nodes_that_the_job_has_anyway_are_counted_first() {
        assert_eq!(pinned("a*1", &["a", "a,b!"]), Some(vec![1]));
        assert_eq!(pinned("[a*1&b*1]", &["a", "b", "a,b!"]), Some(vec![1, 2]));
    }
}
