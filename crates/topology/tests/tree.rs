//! The best place on a tree: worked examples, and every small case against all there is.
use model::NodeName;
use model::topology::{Switch, Topology, TopologyKind, TopologyRules};
use proptest::prelude::*;
use topology::{Ask, Candidate, Form, Network, Tree, Unfit};

fn switch(line: &str) -> Switch {
    let (name, below) = line.split_once('=').expect("name=members");
    let names = model::hostlist::expand(below).expect("a hostlist");
    let is_leaf = !below.starts_with('s') && !below.starts_with("pod") && !below.starts_with("rack");
    match is_leaf {
        true => {
            Switch { name: name.into(), nodes: names.into_iter().map(NodeName::from).collect(), ..Switch::default() }
        }
        false => Switch { name: name.into(), switches: names, ..Switch::default() },
    }
}

fn network(lines: &str) -> Network {
    let switches: Vec<Switch> = lines.split_whitespace().map(switch).collect();
    let mut nodes: Vec<NodeName> = switches.iter().flat_map(|switch| switch.nodes.clone()).collect();
    nodes.sort_by(|a, b| model::hostlist::natural_cmp(a.as_str(), b.as_str()));
    nodes.dedup();
    let topology = Topology { name: "default".into(), kind: TopologyKind::Tree, switches, ..Topology::default() };
    Network::over(nodes, &[topology], &[])
}

fn candidates(network: &Network, busy: &str) -> Vec<Candidate> {
    let busy = model::hostlist::expand(busy).expect("a hostlist");
    let is_free = |node: &u32| !busy.iter().any(|name| name == network.name(*node).as_str());
    let free = (0..network.n_nodes() as u32).filter(is_free);
    free.map(|node| Candidate { node, n_tasks: 1, ..Candidate::default() }).collect()
}

fn picked(network: &Network, candidates: &[Candidate], ask: &Ask) -> Result<String, Unfit> {
    let chosen = network.shapes[0].pick(&TopologyRules::default(), candidates, ask)?;
    Ok(model::hostlist::compress(chosen.iter().map(|at| network.name(candidates[*at].node).as_str())))
}

fn check(tree: &str, rows: &[(&str, u32, &str)]) {
    let network = network(tree);
    for (busy, n, expected) in rows {
        let found = picked(&network, &candidates(&network, busy), &Ask::nodes(*n));
        assert_eq!(found.as_deref().unwrap_or("waits"), *expected, "{n} nodes with {busy:?} busy");
    }
}

const TREE_A: &str = "s0=tux[0-1] s1=tux[2-3] s2=tux[4-5] s3=tux[6-7] s4=s[0-1] s5=s[2-3] s6=s[4-5]";
const TREE_B: &str = "s0=tux[0-3] s1=tux[4-7] s2=tux[8-11] s3=tux[12-15] s4=s[0-3]";

#[test]
fn three_levels_as_a_real_slurm_places_them() {
    check(
        TREE_A,
        &[
            ("", 2, "tux[0-1]"),
            ("", 3, "tux[0-2]"),
            ("", 5, "tux[0-4]"),
            ("tux0", 2, "tux[2-3]"),
            ("tux[1,3]", 2, "tux[4-5]"),
            ("tux[0,4]", 3, "tux[1-3]"),
            ("tux[0-1]", 4, "tux[4-7]"),
            ("tux[0,2,4,6]", 2, "tux[1,3]"),
            ("tux[0,2,4]", 2, "tux[6-7]"),
            ("tux[0,2,4,6]", 3, "tux[1,3,5]"),
            ("tux[2,3,6]", 3, "tux[4-5,7]"),
        ],
    );
}

#[test]
fn two_levels_as_a_real_slurm_places_them() {
    check(
        TREE_B,
        &[
            ("", 6, "tux[0-5]"),
            ("tux[0,1,4-6]", 2, "tux[2-3]"),
            ("tux[0,1,4-6]", 1, "tux7"),
            ("tux[0,1,4-6,8]", 5, "tux[7,12-15]"),
            ("tux[0,4,8,12]", 6, "tux[1-3,5-7]"),
            ("tux[0-2,4,8,9]", 6, "tux[10-15]"),
        ],
    );
}

#[test]
fn the_smaller_rack_that_suffices() {
    check(
        "rack01=gpu[001-018] rack02=gpu[019-036] fabric0=rack01,rack02",
        &[
            ("", 4, "gpu[001-004]"),
            ("gpu[001-010]", 4, "gpu[011-014]"),
            ("gpu[001-010]", 12, "gpu[019-030]"),
            ("", 20, "gpu[001-020]"),
        ],
    );
}

#[test]
fn trees_that_are_not_connected_never_share_a_job() {
    check("s0=n[0-3] s1=n[4-7]", &[("", 4, "n[0-3]"), ("", 5, "waits"), ("n0", 4, "n[4-7]"), ("n[0,4]", 4, "waits")]);
}

#[test]
fn the_objective_is_kept_where_a_greedy_choice_is_not_best() {
    // Pod A has leaves of 3, 1, 1, 1 free nodes, pod B of 2, 2, 2.
    let tree = "s0=a[0-2] s1=a3 s2=a4 s3=a5 s4=b[0-1] s5=b[2-3] s6=b[4-5] s7=s[0-3] s8=s[4-6] s9=s[7-8]";
    check(tree, &[("", 6, "b[0-5]")]);
    // Seven leaves of one node, or two of four.
    let tree = "s0=a0 s1=a1 s2=a2 s3=a3 s4=a4 s5=a5 s6=a6 s7=b[0-3] s8=b[4-7] s9=s[0-6] s10=s[7-8] s11=s[9-10]";
    check(tree, &[("", 7, "b[0-6]")]);
}

#[test]
fn few_switches_are_better_than_a_low_one_when_asked() {
    let tree = "s0=a0 s1=a1 s2=a2 s3=a3 s4=a4 s5=a5 s6=a6 s7=b[0-3] s8=c[0-3] s9=s[0-6] s10=s[7] s11=s[8] s12=s[9-11]";
    let network = network(tree);
    let ask = Ask { most_leaves: Some(2), ..Ask::nodes(7) };
    let all = candidates(&network, "");
    assert_eq!(picked(&network, &all, &Ask::nodes(7)).unwrap(), "a[0-6]");
    assert_eq!(picked(&network, &all, &ask).unwrap(), "b[0-3],c[0-2]");
    assert_eq!(picked(&network, &all, &Ask { most_leaves: Some(1), ..ask }), Err(Unfit::TooManyLeaves));
    let range = Ask { most_leaves: Some(1), min_nodes: 3, ..ask };
    assert_eq!(picked(&network, &all, &range).unwrap(), "b[0-3]");
}

#[test]
fn lighter_nodes_come_before_near_ones() {
    let network = network(TREE_B);
    let mut all = candidates(&network, "");
    let weigh = |all: &mut [Candidate], from: usize, to: usize| all[from..=to].iter_mut().for_each(|c| c.weight = 5);
    weigh(&mut all, 0, 3);
    assert_eq!(picked(&network, &all, &Ask::nodes(2)).unwrap(), "tux[4-5]");
    weigh(&mut all, 6, 15);
    // tux[4-5] are light; four more are taken where the job is already, then on one leaf more.
    assert_eq!(picked(&network, &all, &Ask::nodes(4)).unwrap(), "tux[4-7]");
    assert_eq!(picked(&network, &all, &Ask::nodes(6)).unwrap(), "tux[0-1,4-7]");
    let rules = TopologyRules { network_before_weight: true, ..TopologyRules::default() };
    let chosen = network.shapes[0].pick(&rules, &all, &Ask::nodes(2)).unwrap();
    assert_eq!(chosen, [0, 1]);
}

#[test]
fn named_nodes_are_in_the_set_and_the_rest_is_near_them() {
    let network = network(TREE_A);
    let mut all = candidates(&network, "");
    all[5].is_required = true;
    assert_eq!(picked(&network, &all, &Ask::nodes(2)).unwrap(), "tux[4-5]");
    assert_eq!(picked(&network, &all, &Ask::nodes(4)).unwrap(), "tux[4-7]");
    all[0].is_required = true;
    assert_eq!(picked(&network, &all, &Ask::nodes(3)).unwrap(), "tux[0-1,5]");
}

#[test]
fn jobs_counted_in_tasks_find_a_place_if_there_is_one() {
    let network = network(TREE_B);
    let mut all = candidates(&network, "");
    all.iter_mut().for_each(|c| c.n_tasks = 2);
    all[9].n_tasks = 8;
    let tasks = |n_tasks: u32, min: u32, max: u32| Ask {
        min_nodes: min,
        max_nodes: max,
        n_nodes: min,
        n_tasks: Some(n_tasks),
        ..Ask::default()
    };
    assert_eq!(picked(&network, &all, &tasks(7, 1, 16)).unwrap(), "tux9");
    assert_eq!(picked(&network, &all, &tasks(12, 1, 16)).unwrap(), "tux[8-10]");
    assert_eq!(picked(&network, &all, &tasks(38, 1, 16)).unwrap(), "tux[0-15]");
    assert_eq!(picked(&network, &all, &tasks(39, 1, 16)), Err(Unfit::TooSmall));
    assert_eq!(picked(&network, &all, &tasks(16, 1, 5)).unwrap(), "tux[0,8-11]");
    assert!(picked(&network, &all, &tasks(17, 1, 5)).is_err());
}

#[test]
fn a_small_job_goes_where_others_are_already() {
    let network = network(TREE_B);
    let mut all = candidates(&network, "");
    all[9].is_in_use = true;
    assert_eq!(picked(&network, &all, &Ask::nodes(1)).unwrap(), "tux9");
}

#[test]
fn a_dragonfly_spreads() {
    let network = network(TREE_B);
    let rules = TopologyRules { dragonfly: true, ..TopologyRules::default() };
    let all = candidates(&network, "tux0");
    let shown = |n: u32| {
        let chosen = network.shapes[0].pick(&rules, &all, &Ask::nodes(n)).unwrap();
        model::hostlist::compress(chosen.iter().map(|at| network.name(all[*at].node).as_str()))
    };
    assert_eq!(shown(4), "tux[12-15]");
    assert_eq!(shown(6), "tux[1-2,4-5,8,12]");
}

/// Level, leaves, children of the common switch, waste, and free nodes below the common switch: what the choice is judged by.
type Key = (u32, usize, usize, usize, usize);

fn judge(tree: &Tree, all: &[Candidate], chosen: &[usize]) -> Option<Key> {
    let leaf = |at: &usize| tree.leaf_of(all[*at].node).expect("every node is on a leaf");
    let mut leaves: Vec<u32> = chosen.iter().map(leaf).collect();
    leaves.sort_unstable();
    leaves.dedup();
    let switch = tree.common(&leaves)?;
    let free = |leaf: u32| all.iter().filter(|c| tree.leaf_of(c.node) == Some(leaf)).count();
    let waste = leaves.iter().map(|leaf| free(*leaf)).sum::<usize>() - chosen.len();
    let child = |leaf: &u32| {
        let mut at = tree.leaf_switch(*leaf);
        while let Some(parent) = tree.switches[at as usize].parent.filter(|_| at != switch) {
            if parent == switch {
                break;
            }
            at = parent;
        }
        at
    };
    let mut children: Vec<u32> = leaves.iter().map(child).collect();
    children.sort_unstable();
    children.dedup();
    let below = (0..tree.n_leaves() as u32).filter(|leaf| tree.is_above(switch, *leaf)).map(free).sum();
    Some((tree.switches[switch as usize].level, leaves.len(), children.len(), waste, below))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(many(400)))]
    #[test]
    fn no_choice_is_better(
        pods in proptest::collection::vec(proptest::collection::vec(1usize..4, 1..4), 1..4),
        busy in any::<u32>(),
        n in 1u32..7,
        has_root in any::<bool>(),
    ) {
        let (mut text, mut n_nodes, mut n_leaves) = (String::new(), 0, 0);
        let mut pod_lines = String::new();
        for (at, pod) in pods.iter().enumerate() {
            let first = n_leaves;
            for size in pod {
                text.push_str(&format!("s{n_leaves}=n[{n_nodes}-{}] ", n_nodes + size - 1));
                (n_nodes, n_leaves) = (n_nodes + size, n_leaves + 1);
            }
            pod_lines.push_str(&format!("pod{at}=s[{first}-{}] ", n_leaves - 1));
        }
        text.push_str(&pod_lines);
        if has_root {
            text.push_str(&format!("root=pod[0-{}]", pods.len() - 1));
        }
        let network = network(&text);
        let Form::Tree(tree) = &network.shapes[0].form else { unreachable!() };
        let all: Vec<Candidate> = candidates(&network, "").into_iter().filter(|c| busy >> c.node & 1 == 0).take(14).collect();
        let mut best: Option<Key> = None;
        for set in 0u32..1 << all.len() {
            if set.count_ones() == n {
                let chosen: Vec<usize> = (0..all.len()).filter(|at| set >> at & 1 == 1).collect();
                let key = judge(tree, &all, &chosen);
                best = if best.is_none() { key } else { key.map_or(best, |key| best.map(|old| old.min(key))) };
            }
        }
        let found = network.shapes[0].pick(&TopologyRules::default(), &all, &Ask::nodes(n));
        prop_assert_eq!(found.ok().and_then(|chosen| judge(tree, &all, &chosen)), best, "{} busy {:b}", text, busy);
    }
}

/// The fewest leaves below the root that have `n` nodes, the fewest pods for so many leaves, and the fewest nodes left over: by
/// trying every number of pods, leaves and nodes.
fn best_of_pods(pods: &[Vec<u32>], n: u32) -> Option<(usize, usize, u32)> {
    // Pods and leaves used, and the nodes that such a choice can have.
    let mut reached: std::collections::BTreeSet<(usize, usize, u32)> = [(0, 0, 0)].into();
    for pod in pods {
        let mut within: std::collections::BTreeSet<(usize, u32)> = [(0, 0)].into();
        for leaf in pod.iter().filter(|leaf| **leaf > 0) {
            let more: Vec<(usize, u32)> = within.iter().map(|(leaves, nodes)| (leaves + 1, nodes + leaf)).collect();
            within.extend(more);
        }
        let used = within.iter().filter(|(leaves, _)| *leaves > 0);
        let used: Vec<(usize, u32)> = used.copied().collect();
        let more: Vec<(usize, usize, u32)> = reached
            .iter()
            .flat_map(|(pods, leaves, nodes)| used.iter().map(move |one| (pods + 1, leaves + one.0, nodes + one.1)))
            .collect();
        reached.extend(more);
    }
    let enough = reached.into_iter().filter(|(.., nodes)| *nodes >= n);
    enough.map(|(pods, leaves, nodes)| (leaves, pods, nodes - n)).min()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(many(60)))]
    #[test]
    fn large_jobs_use_the_fewest_leaves_and_pods_and_waste_the_least(
        pods in proptest::collection::vec(proptest::collection::vec(0u32..20, 1..8), 2..7),
        share in 0.5f64..1.0,
    ) {
        let (mut text, mut pod_lines, mut n_nodes, mut n_leaves) = (String::new(), String::new(), 0, 0);
        for (at, pod) in pods.iter().enumerate() {
            let first = n_leaves;
            for size in pod {
                // A leaf without free nodes has a busy one.
                text.push_str(&format!("s{n_leaves}=n[{n_nodes}-{}] ", n_nodes + size));
                (n_nodes, n_leaves) = (n_nodes + size + 1, n_leaves + 1);
            }
            pod_lines.push_str(&format!("pod{at}=s[{first}-{}] ", n_leaves - 1));
        }
        let network = network(&format!("{text}{pod_lines}root=pod[0-{}]", pods.len() - 1));
        let Form::Tree(tree) = &network.shapes[0].form else { unreachable!() };
        let mut free: Vec<u32> = pods.iter().flatten().copied().collect();
        let all: Vec<Candidate> = candidates(&network, "").into_iter().filter(|c| {
            let left = &mut free[tree.leaf_of(c.node).expect("every node is on a leaf") as usize];
            let is_free = *left > 0;
            *left = left.saturating_sub(1);
            is_free
        }).collect();
        let largest: u32 = pods.iter().map(|pod| pod.iter().sum()).max().unwrap_or(0);
        let n = (all.len() as f64 * share) as u32;
        // Below one pod the other test looks.
        prop_assume!(n > largest);
        let chosen = network.shapes[0].pick(&TopologyRules::default(), &all, &Ask::nodes(n)).expect("the root has them");
        let (_, leaves, children, waste, _) = judge(tree, &all, &chosen).expect("the root is above all");
        prop_assert_eq!(Some((leaves, children, waste as u32)), best_of_pods(&pods, n), "{:?} n {}", pods, n);
    }
}

/// More cases than the suite tries: `CASES=20000 cargo test -p topology`.
#[allow(clippy::disallowed_methods, reason = "tests may be told how long to try")]
fn many(usual: u32) -> u32 {
    std::env::var("CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
