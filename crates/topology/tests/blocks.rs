//! Places on blocks: the worked examples of the rules, and every small case against all there is.
mod rules;

use model::topology::TopologyRules;
use proptest::prelude::*;
use rules::{can_be_cut, is_allowed, many, network};
use topology::{Ask, Candidate, Network, Unfit};

fn candidates(network: &Network, busy: &str) -> Vec<Candidate> {
    let busy = model::hostlist::expand(busy).expect("a hostlist");
    let is_free = |node: &u32| !busy.iter().any(|name| name == network.name(*node).as_str());
    let free = (0..network.n_nodes() as u32).filter(is_free);
    free.map(|node| Candidate { node, n_tasks: 1, ..Candidate::default() }).collect()
}

/// How many nodes of each block are taken: `4+0+1`.
fn spread(network: &Network, all: &[Candidate], ask: &Ask) -> String {
    let shape = &network.shapes[0];
    let chosen = match shape.pick(&TopologyRules::default(), all, ask) {
        Ok(chosen) => chosen,
        Err(Unfit::NoUnit) => return "no unit".into(),
        Err(Unfit::NoUnitForSegment) => return "no unit for segment".into(),
        Err(other) => return other.to_string(),
    };
    let n_blocks = (0..network.n_nodes() as u32).filter_map(|node| shape.unit_of(node)).max().unwrap_or(0) + 1;
    let count =
        |block: u32| chosen.iter().filter(|at| shape.unit_of(all[**at].node) == Some(block)).count().to_string();
    (0..n_blocks).map(count).collect::<Vec<_>>().join("+")
}

fn check(sizes: &[u32], block_sizes: &[u32], rows: &[(&str, Ask, &str)]) {
    let network = network(sizes, block_sizes);
    for (busy, ask, expected) in rows {
        assert_eq!(spread(&network, &candidates(&network, busy), ask), *expected, "{ask:?} with {busy:?} busy");
    }
}

fn segments(n: u32, segment: u32) -> Ask {
    Ask { segment, ..Ask::nodes(n) }
}

#[test]
fn two_blocks() {
    check(
        &[4, 4],
        &[4, 8],
        &[
            ("", Ask::nodes(2), "0+2"),
            ("n[7-8]", Ask::nodes(3), "3+0"),
            ("n[2-4,7-8]", Ask::nodes(3), "no unit"),
            ("n[6-8]", Ask::nodes(5), "4+1"),
        ],
    );
}

#[test]
fn a_level_that_is_not_enabled() {
    check(
        &[4, 4, 4, 4],
        &[4, 16],
        &[
            ("n[1-2,5-6,9-10,13-14]", Ask::nodes(5), "no unit"),
            ("n[1-2,5-6,9-10]", Ask::nodes(5), "1+0+0+4"),
            ("n1", Ask::nodes(16), "No available nodes in topology"),
            ("", Ask::nodes(9), "4+4+1+0"),
        ],
    );
}

#[test]
fn groups_are_aligned() {
    check(
        &[4, 4, 4, 4],
        &[4, 8, 16],
        &[
            ("n[1-2]", Ask::nodes(6), "2+4+0+0"),
            ("n[1-3,13-15]", Ask::nodes(8), "no unit"),
            ("n[5-8]", Ask::nodes(9), "1+0+4+4"),
        ],
    );
}

#[test]
fn spare_nodes_count() {
    check(
        &[32, 32, 32, 32],
        &[30, 120],
        &[
            ("", Ask::nodes(30), "0+0+0+30"),
            ("", Ask::nodes(31), "31+0+0+0"),
            ("", Ask::nodes(61), "32+29+0+0"),
            ("", Ask::nodes(120), "32+32+32+24"),
            ("", Ask::nodes(121), "32+32+32+25"),
        ],
    );
    check(&[18, 18, 18, 18], &[16, 32, 64], &[("", Ask::nodes(17), "0+0+17+0"), ("", Ask::nodes(18), "0+0+18+0")]);
}

#[test]
fn segments_are_placed_all_or_none() {
    check(
        &[4, 4, 4, 4],
        &[4, 8, 16],
        &[
            ("n1", segments(12, 4), "0+4+4+4"),
            ("n[1,5]", segments(12, 4), "no unit for segment"),
            ("n[1-2,5-6,9-10,13-14]", segments(8, 2), "2+2+2+2"),
            ("", segments(3, 4), "0+0+0+3"),
            ("", segments(5, 2), "no unit for segment"),
        ],
    );
}

#[test]
fn segments_spread_and_consolidate() {
    let spread = |ask: Ask| Ask { spreads: true, ..ask };
    let together = |ask: Ask| Ask { consolidates: true, ..ask };
    check(
        &[4, 4, 4, 4],
        &[4, 8, 16],
        &[
            ("", spread(segments(8, 2)), "2+2+2+2"),
            ("", segments(8, 2), "0+0+4+4"),
            ("", spread(segments(10, 2)), "no unit for segment"),
            ("n[1-2,15-16]", together(segments(8, 2)), "no unit for segment"),
            ("n[1-2,15-16]", segments(8, 2), "2+0+4+2"),
            ("n1", together(segments(8, 4)), "0+0+4+4"),
            ("n[1,13]", together(segments(8, 4)), "no unit for segment"),
            ("n[1,13]", segments(8, 4), "0+4+4+0"),
            ("", together(spread(segments(4, 2))), "0+0+2+2"),
        ],
    );
}

#[test]
fn ranges_take_the_least_size_unless_unrolled() {
    let network = network(&[4, 4], &[4, 8]);
    let all = candidates(&network, "n[1,5]");
    let ask = Ask { min_nodes: 2, max_nodes: 4, n_nodes: 4, ..Ask::default() };
    let shape = &network.shapes[0];
    assert_eq!(shape.pick(&TopologyRules::default(), &all, &ask).unwrap().len(), 2);
    let rules = TopologyRules { max_size_unroll: 4, ..TopologyRules::default() };
    assert_eq!(shape.pick(&rules, &all, &ask).unwrap().len(), 3);
}

#[test]
fn named_nodes_must_fit_the_blocks() {
    let network = network(&[4, 4, 4, 4], &[4, 8]);
    let mut all = candidates(&network, "");
    all[0].is_required = true;
    assert_eq!(spread(&network, &all, &Ask::nodes(3)), "3+0+0+0");
    assert_eq!(spread(&network, &all, &Ask::nodes(5)), "4+1+0+0");
    all[5].is_required = true;
    assert_eq!(spread(&network, &all, &Ask::nodes(3)), "Required nodes do not fit topology");
    assert_eq!(spread(&network, &all, &Ask::nodes(6)), "4+2+0+0");
}

#[test]
fn tasks_may_need_more_nodes() {
    let network = network(&[4, 4], &[4, 8]);
    let mut all = candidates(&network, "");
    all.iter_mut().for_each(|c| c.n_tasks = 2);
    let ask = Ask { min_nodes: 1, max_nodes: u32::MAX, n_nodes: 1, n_tasks: Some(7), ..Ask::default() };
    assert_eq!(spread(&network, &all, &ask), "0+4");
    assert_eq!(spread(&network, &all, &Ask { n_tasks: Some(11), ..ask }), "4+2");
    assert_eq!(spread(&network, &all, &Ask { n_tasks: Some(17), ..ask }), "No available nodes in topology");
}

/// All ways to take `n` nodes of blocks with so many free.
fn ways(free: &[u32], n: u32, taken: &mut Vec<u32>, each: &mut dyn FnMut(&[u32]) -> bool) -> bool {
    if taken.len() == free.len() {
        return n == 0 && each(taken);
    }
    (0..=free[taken.len()].min(n)).any(|some| {
        taken.push(some);
        let found = ways(free, n - some, taken, each);
        taken.pop();
        found
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(many(400)))]
    #[test]
    fn a_place_is_found_exactly_when_the_rules_allow_one(
        free in proptest::collection::vec(0u32..=3, 1..=6),
        levels in proptest::sample::subsequence(vec![1u32, 2, 3], 0..=3),
        base in 1u32..=3,
        segment in 1u32..=5,
        n_segments in 1u32..=4,
    ) {
        let levels: Vec<u32> = [0].into_iter().chain(levels).collect();
        let sizes: Vec<u32> = levels.iter().map(|level| base << level).collect();
        let network = network(&vec![3; free.len()], &sizes);
        let all: Vec<Candidate> = candidates(&network, "")
            .into_iter()
            .filter(|candidate| candidate.node % 3 < free[candidate.node as usize / 3])
            .collect();
        let n = segment * n_segments;
        let exists = ways(&free, n, &mut Vec::new(), &mut |counts| {
            can_be_cut(&mut counts.to_vec(), segment, base, &levels)
        });
        let found = network.shapes[0].pick(&TopologyRules::default(), &all, &segments(n, segment));
        if let Ok(chosen) = &found {
            let mut counts = vec![0; free.len()];
            chosen.iter().for_each(|at| counts[all[*at].node as usize / 3] += 1);
            prop_assert!(can_be_cut(&mut counts, segment, base, &levels), "{counts:?} is not allowed");
            let only: Vec<Candidate> = chosen.iter().map(|at| all[*at]).collect();
            let again = network.shapes[0].pick(&TopologyRules::default(), &only, &segments(n, segment));
            prop_assert_eq!(again.map(|again| again.len()), Ok(chosen.len()), "its own choice is refused");
        }
        prop_assert_eq!(found.is_ok(), exists, "free {:?}", free);
    }
}

/// The groups that can take `n` nodes: free nodes, the fewest parts that are enough, and where it begins. Every set of parts is tried.
fn takers(free: &[u32], n: u32, base: u32, levels: &[u32]) -> Vec<(u32, u32, usize)> {
    let level = n.div_ceil(base).next_power_of_two().ilog2();
    let group = levels.iter().find(|enabled| **enabled >= level).map_or(free.len(), |level| 1 << level);
    let sub = levels.iter().rev().find(|enabled| **enabled < level).map_or(0, |level| *level);
    let most = n.div_ceil(base << sub);
    let taker = |(at, own): (usize, &[u32])| {
        let subs: Vec<u32> = own.chunks(1 << sub).map(|part| part.iter().sum()).collect();
        let is_enough =
            |set: &u32| (0..subs.len()).filter(|at| set >> at & 1 == 1).map(|at| subs[at]).sum::<u32>() >= n;
        let fewest = (0u32..1 << subs.len()).filter(is_enough).map(u32::count_ones).min()?;
        (fewest <= most).then_some((own.iter().sum(), fewest, at * group))
    };
    free.chunks(group).enumerate().filter_map(taker).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(many(200)))]
    #[test]
    fn larger_jobs_keep_whole_groups_whole(
        free in proptest::collection::vec(0u32..=18, 1..=16),
        levels in proptest::sample::subsequence(vec![1u32, 2, 3, 4], 0..=4),
        base in 1u32..=18,
        n in 1u32..=120,
    ) {
        let levels: Vec<u32> = [0].into_iter().chain(levels).collect();
        let sizes: Vec<u32> = levels.iter().map(|level| base << level).collect();
        let network = network(&vec![18; free.len()], &sizes);
        let is_free = |candidate: &Candidate| candidate.node % 18 < free[candidate.node as usize / 18];
        let all: Vec<Candidate> = candidates(&network, "").into_iter().filter(is_free).collect();
        let takers = takers(&free, n, base, &levels);
        let found = network.shapes[0].pick(&TopologyRules::default(), &all, &Ask::nodes(n));
        prop_assert_eq!(found.is_ok(), !takers.is_empty(), "free {:?}", free);
        let Ok(chosen) = found else { return Ok(()) };
        let mut counts = vec![0u32; free.len()];
        chosen.iter().for_each(|at| counts[all[*at].node as usize / 18] += 1);
        prop_assert!(is_allowed(&counts, n, base, &levels), "{counts:?} is not allowed");
        let level = n.div_ceil(base).next_power_of_two().ilog2();
        let sub = levels.iter().rev().find(|enabled| **enabled < level).map_or(0, |level| *level);
        let n_subs = counts.chunks(1 << sub).filter(|part| part.iter().sum::<u32>() > 0).count() as u32;
        let first = counts.iter().position(|count| *count > 0).expect("it has nodes");
        let (least, ..) = *takers.iter().min().expect("there is one");
        let own = takers.iter().rev().find(|(.., begin)| *begin <= first).expect("it is in one of them");
        prop_assert_eq!((own.0, own.1), (least, n_subs), "free {:?}, taken {:?}", free, counts);
    }
}
