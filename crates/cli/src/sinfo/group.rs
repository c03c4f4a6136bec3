//! Nodes of a partition that look alike in every column asked for: one line of `sinfo`.
use std::collections::{HashMap, HashSet};

use model::config::Config;
use model::request::NodeView;
use model::{NodeName, Partition};

use crate::render::{Format, Merge, View};
use crate::users::Names;
use crate::zone::Clock;

/// What all groups of one answer share.
pub struct Scene<'a> {
    pub clock: &'a Clock,
    pub config: &'a Config,
    pub names: &'a Names,
    pub converts: bool,
}

#[derive(Clone)]
pub struct Group<'a> {
    pub partition: &'a Partition,
    /// The partition's place in the configuration.
    pub place: usize,
    pub nodes: Vec<&'a NodeView>,
    pub scene: &'a Scene<'a>,
}

impl<'a> Group<'a> {
    pub fn first(&self) -> Option<&'a NodeView> {
        self.nodes.first().copied()
    }

    /// The smallest and the largest of a number over the nodes.
    pub fn range(&self, number: impl Fn(&NodeView) -> u64) -> (u64, u64) {
        let numbers = || self.nodes.iter().map(|node| number(node));
        (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0))
    }
}

/// How nodes are gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gather {
    /// One line a node and partition.
    Not,
    Alike,
    /// Also numbers must be alike.
    Exactly,
}

/// The lines for these partitions and nodes.
pub fn gather<'a, V>(
    format: &Format<V>,
    how: Gather,
    partitions: &[(usize, &'a Partition, Vec<&'a NodeView>)],
    with_empty: bool,
    scene: &'a Scene<'a>,
) -> Vec<Group<'a>>
where
    V: View<Row<'a> = Group<'a>>,
{
    let mut groups: Vec<(Vec<String>, Group<'a>)> = Vec::new();
    // Lines by their keys: a partition of thousands of nodes may have as many lines.
    let mut lines: HashMap<Vec<String>, (usize, HashSet<&NodeName>)> = HashMap::new();
    for (place, partition, nodes) in partitions {
        for node in nodes {
            let single = Group { partition, place: *place, nodes: vec![*node], scene };
            if how == Gather::Not {
                groups.push((Vec::new(), single));
                continue;
            }
            let key = key(format, how, &single);
            match lines.get_mut(&key) {
                Some((line, names)) => {
                    // A node of two partitions counts once where partitions are not told apart.
                    if names.insert(&node.node.name) {
                        groups[*line].1.nodes.push(node);
                    }
                }
                None => {
                    lines.insert(key.clone(), (groups.len(), HashSet::from([&node.node.name])));
                    groups.push((key, single));
                }
            }
        }
        if nodes.is_empty() && with_empty {
            let empty = Group { partition, place: *place, nodes: Vec::new(), scene };
            let own = partition_key(format, &empty);
            if !groups.iter().any(|(_, group)| partition_key(format, group) == own) {
                groups.push((vec![format!("\0{place}")], empty));
            }
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

fn key<'a, V: View<Row<'a> = Group<'a>>>(format: &Format<V>, how: Gather, group: &Group<'a>) -> Vec<String> {
    texts(format, group, |merge| match merge {
        Merge::Never | Merge::NeverAcross => true,
        Merge::UnlessExact => how == Gather::Exactly,
        Merge::Always => false,
    })
}

fn partition_key<'a, V: View<Row<'a> = Group<'a>>>(format: &Format<V>, group: &Group<'a>) -> Vec<String> {
    texts(format, group, |merge| merge == Merge::NeverAcross)
}

fn texts<'a, V>(format: &Format<V>, group: &Group<'a>, tells: impl Fn(Merge) -> bool) -> Vec<String>
where
    V: View<Row<'a> = Group<'a>>,
{
    let columns = format.cells.iter().filter_map(|cell| cell.column).filter(|column| tells(column.merge));
    let text = |column: &'static crate::render::Column<V>| {
        let mut text = String::new();
        V::fill(column.fill, group, &mut text);
        text
    };
    columns.map(text).collect()
}
