//! Jobs counted in tasks on nodes that take different numbers of them: every small case against all sets of nodes.
mod rules;

use model::NodeName;
use model::topology::{Switch, Topology, TopologyKind, TopologyRules};
use proptest::prelude::*;
use rules::{can_be_cut, is_allowed, many, network};
use topology::{Ask, Candidate, Network};

fn candidates(rooms: &[u32]) -> Vec<Candidate> {
    let candidate =
        |(node, room): (usize, &u32)| Candidate { node: node as u32, n_tasks: *room, ..Candidate::default() };
    rooms.iter().enumerate().filter(|(_, room)| **room > 0).map(candidate).collect()
}

fn counted(min: u32, max: u32, n_tasks: u32) -> Ask {
    let n_nodes = max.min(n_tasks).max(min);
    Ask { min_nodes: min, max_nodes: max, n_nodes, n_tasks: Some(n_tasks), ..Ask::default() }
}

/// The fewest nodes of a set that takes all tasks and is where it may be.
fn fewest(all: &[Candidate], ask: &Ask, may_be: impl Fn(&[u32]) -> bool) -> Option<u32> {
    let sets = 1u32..1 << all.len();
    let members = |set: u32| (0..all.len()).filter(move |at| set >> at & 1 == 1).map(|at| &all[at]);
    let serves = |set: &u32| {
        let n = set.count_ones();
        let n_tasks: u32 = members(*set).map(|one| one.n_tasks).sum();
        let nodes: Vec<u32> = members(*set).map(|one| one.node).collect();
        (ask.min_nodes..=ask.max_nodes).contains(&n) && n_tasks >= ask.n_tasks.unwrap_or(0) && may_be(&nodes)
    };
    sets.filter(serves).map(u32::count_ones).min()
}

#[test]
fn one_node_takes_more_than_the_other() {
    // Three tasks of three CPUs on nodes of eight and of four.
    let network = network(&[2, 2], &[2, 4]);
    let pick = |rooms: &[u32], ask: &Ask| network.shapes[0].pick(&TopologyRules::default(), &candidates(rooms), ask);
    assert_eq!(pick(&[1, 1, 2, 1], &counted(1, 2, 3)), Ok(vec![2, 3]));
    assert!(pick(&[1, 1, 1, 1], &counted(1, 2, 3)).is_err());
    // Segments of two: of the four nodes, two and two in one block each.
    let segments = Ask { segment: 2, ..counted(4, 4, 7) };
    assert_eq!(pick(&[1, 1, 4, 1], &segments), Ok(vec![0, 1, 2, 3]));
    assert!(pick(&[1, 1, 4, 0], &segments).is_err());
    // Parts that are equal are preferred where they need no more nodes.
    assert_eq!(pick(&[3, 3, 5, 1], &counted(1, 2, 6)), Ok(vec![0, 1]));
}

#[test]
fn nodes_in_no_block_serve_jobs_that_blocks_have_no_place_for() {
    let blocks = network(&[2], &[2]);
    let mut nodes: Vec<NodeName> = (0..2).map(|node| blocks.name(node).clone()).collect();
    nodes.extend(["n8".into(), "n9".into()]);
    let own = vec![model::topology::Block { name: "b1".into(), nodes: nodes[..2].to_vec() }];
    let topology = Topology { kind: TopologyKind::Block, blocks: own, block_sizes: vec![2], ..Topology::default() };
    let network = Network::over(nodes, &[topology], &[]);
    let mut all = candidates(&[1, 1, 1, 4]);
    let pick = |all: &[Candidate], ask: &Ask| network.shapes[0].pick(&TopologyRules::default(), all, ask);
    assert_eq!(pick(&all, &Ask::nodes(2)), Ok(vec![0, 1]));
    assert_eq!(pick(&all, &counted(1, 1, 4)), Ok(vec![3]));
    assert_eq!(pick(&all, &counted(2, 3, 5)), Ok(vec![2, 3]));
    assert!(pick(&all, &counted(2, 3, 6)).is_err());
    assert!(pick(&all, &Ask::nodes(3)).is_err());
    // Near to nobody, they make no segments.
    assert!(pick(&all, &Ask { segment: 1, ..counted(2, 3, 5) }).is_err());
    assert!(pick(&all[2..], &Ask { segment: 2, ..Ask::nodes(2) }).is_err());
    assert_eq!(pick(&all[2..], &Ask { segment: 2, ..Ask::nodes(1) }), Ok(vec![0]));
    all[3].is_required = true;
    assert_eq!(pick(&all, &Ask::nodes(1)), Ok(vec![3]));
    assert_eq!(pick(&all, &Ask::nodes(2)), Ok(vec![2, 3]));
    all[0].is_required = true;
    assert!(pick(&all, &Ask::nodes(2)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(many(300)))]
    #[test]
    fn blocks_have_a_place_exactly_when_the_rules_allow_one(
        rooms in proptest::collection::vec(0u32..=4, 3..=12),
        levels in proptest::sample::subsequence(vec![1u32, 2], 0..=2),
        base in 1u32..=3,
        segment in 0u32..=4,
        (min, more) in (1u32..=4, 0u32..=5),
        n_tasks in 1u32..=16,
        named in proptest::collection::vec(0usize..12, 0..=2),
    ) {
        let levels: Vec<u32> = [0].into_iter().chain(levels).collect();
        let sizes: Vec<u32> = levels.iter().map(|level| base << level).collect();
        let n_blocks = rooms.len().div_ceil(3);
        let network = network(&vec![3; n_blocks], &sizes);
        let mut all = candidates(&rooms);
        // Jobs of segments name no nodes that they must have.
        let named = if segment == 0 { named } else { Vec::new() };
        named.iter().for_each(|at| if let Some(one) = all.get_mut(*at) { one.is_required = true });
        let named: Vec<u32> = all.iter().filter(|one| one.is_required).map(|one| one.node).collect();
        let min = min.max(named.len() as u32);
        let ask = Ask { segment, ..counted(min, min + more, n_tasks) };
        let may_be = |nodes: &[u32]| {
            if !named.iter().all(|node| nodes.contains(node)) {
                return false;
            }
            let mut counts = vec![0; n_blocks];
            nodes.iter().for_each(|node| counts[*node as usize / 3] += 1);
            let n = nodes.len() as u32;
            match segment > 0 && segment < n {
                true => n.is_multiple_of(segment) && can_be_cut(&mut counts, segment, base, &levels),
                false => is_allowed(&counts, n, base, &levels),
            }
        };
        let fewest = fewest(&all, &ask, may_be);
        let found = network.shapes[0].pick(&TopologyRules::default(), &all, &ask).ok();
        if let Some(chosen) = &found {
            let nodes: Vec<u32> = chosen.iter().map(|at| all[*at].node).collect();
            prop_assert!(may_be(&nodes), "{nodes:?} is not allowed");
            prop_assert!(chosen.iter().map(|at| all[*at].n_tasks).sum::<u32>() >= n_tasks, "{nodes:?} are too small");
            prop_assert!((min..=min + more).contains(&(nodes.len() as u32)));
        }
        // Segments that are cut out of several parts of larger groups are placed one after the other, without trying all ways.
        let is_exact = segment <= base || levels.len() == 3;
        if is_exact {
            prop_assert_eq!(found.map(|chosen| chosen.len() as u32), fewest);
        }
    }

    #[test]
    fn trees_have_a_place_exactly_when_nodes_have_a_common_switch(
        rooms in proptest::collection::vec(0u32..=4, 3..=12),
        parents in proptest::collection::vec(0usize..=2, 4),
        (min, more) in (1u32..=4, 0u32..=5),
        n_tasks in 1u32..=16,
        named in proptest::collection::vec(0usize..12, 0..=2),
    ) {
        let nodes: Vec<NodeName> = (1..=rooms.len()).map(|number| NodeName::from(format!("n{number}"))).collect();
        let leaves: Vec<Switch> = nodes
            .chunks(3)
            .enumerate()
            .map(|(at, own)| Switch { name: format!("leaf{at}"), nodes: own.to_vec(), ..Switch::default() })
            .collect();
        let below = |root: usize| -> Vec<String> {
            (0..leaves.len()).filter(|at| parents[*at] == root).map(|at| format!("leaf{at}")).collect()
        };
        // Below the third there is nothing in common.
        let roots: Vec<Switch> = (0..2)
            .map(|root| Switch { name: format!("root{root}"), switches: below(root), ..Switch::default() })
            .filter(|root| !root.switches.is_empty())
            .collect();
        let switches = leaves.iter().cloned().chain(roots).collect();
        let topology = Topology { kind: TopologyKind::Tree, switches, ..Topology::default() };
        let network = Network::over(nodes, &[topology], &[]);
        let mut all = candidates(&rooms);
        named.iter().for_each(|at| if let Some(one) = all.get_mut(*at) { one.is_required = true });
        let named: Vec<u32> = all.iter().filter(|one| one.is_required).map(|one| one.node).collect();
        let min = min.max(named.len() as u32);
        let ask = counted(min, min + more, n_tasks);
        let root_of = |node: &u32| match parents[*node as usize / 3] {
            2 => 10 + node / 3,
            root => root as u32,
        };
        let fewest = fewest(&all, &ask, |nodes| {
            let is_near = nodes.iter().all(|node| root_of(node) == root_of(&nodes[0]));
            is_near && named.iter().all(|node| nodes.contains(node))
        });
        let found = network.shapes[0].pick(&TopologyRules::default(), &all, &ask).ok();
        if let Some(chosen) = &found {
            prop_assert!(chosen.iter().map(|at| all[*at].n_tasks).sum::<u32>() >= n_tasks);
            prop_assert!((min..=min + more).contains(&(chosen.len() as u32)));
            prop_assert!(named.iter().all(|node| chosen.iter().any(|at| all[*at].node == *node)), "{chosen:?} lacks one");
        }
        prop_assert_eq!(found.is_some(), fewest.is_some());
    }
}
