//! Nothing is given out twice, now or at any time that is foreseen: CPUs, memory, devices and licences.
use model::gres::{Gres, GresRequest};
use model::license;
use model::node::NodeConfig;
use model::spec::{JobSpec, Memory, Sharing, Size, TimeLimit};
use model::time::Span;
use model::{Job, Timestamp, hostlist};
use proptest::prelude::*;
use world::World;

mod world;

#[derive(Clone, Debug)]
struct Wish {
    n_nodes: u32,
    n_cpus: u32,
    memory_mb: u64,
    n_gpus: u32,
    n_licenses: u32,
    is_alone: bool,
    minutes: u64,
    /// Heterogeneous: a second component of as many nodes.
    is_double: bool,
}

fn wish() -> impl Strategy<Value = Wish> {
    (
        1..4_u32,
        1..5_u32,
        1..9_u64,
        0..3_u32,
        0..3_u32,
        prop::bool::weighted(0.2),
        1..120_u64,
        prop::bool::weighted(0.15),
    )
        .prop_map(|(n_nodes, n_cpus, memory, n_gpus, n_licenses, is_alone, minutes, is_double)| Wish {
            n_nodes,
            n_cpus,
            memory_mb: memory * 100,
            n_gpus,
            n_licenses,
            is_alone,
            minutes,
            is_double,
        })
}

fn spec(wish: &Wish) -> JobSpec {
    let gpus = GresRequest { name: "gpu".into(), count: wish.n_gpus, ..Default::default() };
    let size = Size {
        min_nodes: wish.n_nodes,
        max_nodes: Some(wish.n_nodes),
        tasks_per_node: Some(wish.n_cpus),
        memory: Memory::PerNodeMb(wish.memory_mb),
        sharing: if wish.is_alone { Sharing::WholeNodes } else { Sharing::Default },
        gres: if wish.n_gpus > 0 { vec![gpus] } else { Vec::new() },
        ..Default::default()
    };
    let licenses = match wish.n_licenses {
        0 => Default::default(),
        count => license::parse(&format!("tool:{count}")).expect("a licence"),
    };
    JobSpec { size, licenses, time_limit: Some(TimeLimit::Secs(wish.minutes * 60)), ..Default::default() }
}

/// From when to when, where, and what of each node.
struct Hold {
    job: model::JobId,
    from: Timestamp,
    until: Timestamp,
    nodes: Vec<String>,
    cpus: u64,
    memory_mb: u64,
    gpus: u64,
    licenses: u64,
}

fn hold(job: &Job, from: Timestamp, nodes: Vec<String>) -> Hold {
    let size = &job.spec.size;
    let Some(TimeLimit::Secs(secs)) = job.spec.time_limit else { panic!("all have limits") };
    let cpus = if size.wants_whole_nodes() { 4 } else { u64::from(size.tasks_per_node.unwrap_or(1)) };
    let Memory::PerNodeMb(memory_mb) = size.memory else { panic!("all say how much") };
    let gpus = if size.wants_whole_nodes() { 2 } else { size.gres.iter().map(|gres| u64::from(gres.count)).sum() };
    let licenses = job.spec.licenses.list.iter().map(|one| u64::from(one.count)).sum();
    Hold { job: job.id, from, until: from + Span::from_secs(secs), nodes, cpus, memory_mb, gpus, licenses }
}

fn holds(world: &World) -> Vec<Hold> {
    let mut holds = Vec::new();
    for job in world.cluster.jobs() {
        if job.holds_nodes() {
            let nodes = job.allocation.names().map(|name| name.to_string()).collect();
            holds.push(hold(job, job.started.expect("it runs"), nodes));
        } else if let Some(at) = job.expected_start {
            // Told to the second, but kept from the next mark of the timeline on.
            let mark = Timestamp::from_secs(at.secs().div_ceil(60) * 60);
            holds.push(hold(job, mark, hostlist::expand(&job.expected_nodes).expect("a list")));
        }
    }
    holds
}

fn check(world: &World) -> Result<(), TestCaseError> {
    let holds = holds(world);
    for moment in holds.iter().map(|hold| hold.from.max(world.now)) {
        let during = || holds.iter().filter(|hold| hold.from <= moment && moment < hold.until);
        for node in world.cluster.nodes() {
            let here = || during().filter(|hold| hold.nodes.iter().any(|name| name == node.name.as_str()));
            let sum = |what: fn(&Hold) -> u64| here().map(what).sum::<u64>();
            let who: Vec<u32> = here().map(|hold| hold.job.0).collect();
            let used = (sum(|hold| hold.cpus), sum(|hold| hold.memory_mb), sum(|hold| hold.gpus));
            prop_assert!(
                used.0 <= 4 && used.1 <= 1000 && used.2 <= 2,
                "{} at {:?}: {:?} {:?}",
                node.name,
                moment,
                used,
                who
            );
        }
        let licenses: u64 = during().map(|hold| hold.licenses).sum();
        prop_assert!(licenses <= 3, "licences at {:?}: {}", moment, licenses);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    #[test]
    fn nothing_is_given_out_twice_at_any_time(
        wishes in prop::collection::vec((wish(), 0..20_u64), 1..20),
    ) {
        let gpu = Gres { name: "gpu".into(), count: 2, ..Default::default() };
        let node = NodeConfig { cpus: 4, memory_mb: 1000, gres: vec![gpu], ..Default::default() };
        let names = ["n1", "n2", "n3", "n4", "n5", "n6"];
        let mut world = World::new(names.map(|name| (name, node.clone())).to_vec(), Vec::new());
        let mut config = (**world.cluster.config()).clone();
        config.licenses = license::parse_list("tool:3").expect("licences");
        world.apply(model::Command::Reconfigure { config: Box::new(config) });
        for (wish, minutes) in wishes {
            match wish.is_double {
                false => drop(world.submit_spec(spec(&wish))),
                true => {
                    let component = JobSpec { licenses: Default::default(), ..spec(&wish) };
                    let specs = vec![spec(&wish), component];
                    world.apply(model::Command::SubmitTogether { specs, blobs: Vec::new() });
                }
            }
            world.schedule();
            check(&world)?;
            world.pass(minutes * 60);
            world.schedule();
            check(&world)?;
        }
    }
}
