//! Clusters that hand out whole cores or sockets: how much a job gets, which CPUs, and that none gets a part of a core.
use model::hand_out::HandOut;
use model::node::NodeConfig;
use model::partition::OverSubscribe;
use model::spec::{Memory, Size};
use model::{Command, JobId, Reason};
use proptest::prelude::*;
use world::World;

mod world;

fn tasks(n_tasks: u32) -> Size {
    Size { n_tasks: Some(n_tasks), ..Default::default() }
}

fn hand_out(world: &mut World, what: HandOut) {
    let mut config = (**world.cluster.config()).clone();
    config.scheduler.hand_out = what;
    world.apply(Command::Reconfigure { config: Box::new(config) });
}

/// Nodes of two sockets, two cores each, of two threads.
fn world(n_nodes: usize, what: HandOut) -> World {
    let config = NodeConfig {
        cpus: 8,
        memory_mb: 1000,
        sockets: 2,
        cores_per_socket: 2,
        threads_per_core: 2,
        ..Default::default()
    };
    let names = ["n1", "n2", "n3"];
    let mut world = World::new(names[..n_nodes].iter().map(|name| (*name, config.clone())).collect(), Vec::new());
    hand_out(&mut world, what);
    world
}

fn cpus(world: &World, job: JobId) -> String {
    let shares = &world.cluster.job(job).unwrap().allocation.nodes;
    shares.iter().map(|share| share.cpus.to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn jobs_get_whole_cores_and_wait_for_whole_cores() {
    let mut world = world(1, HandOut::Cores);
    let [one, three, two] = [1, 3, 2].map(|n| world.submit(tasks(n)));
    let waits = world.submit(tasks(1));
    world.schedule();
    assert_eq!([one, three, two].map(|job| cpus(&world, job)), ["0-1", "2-5", "6-7"]);
    assert!(!world.is_running(waits));
    assert_eq!(world.reason(waits).0, Some(Reason::Resources));
    assert_eq!(world.cluster.node("n1").unwrap().free_cpus(), 0);
    world.finish(one);
    world.schedule();
    assert_eq!(cpus(&world, waits), "0-1");
}

#[test]
fn memory_for_each_cpu_goes_by_what_is_held() {
    let mut world = world(3, HandOut::Cores);
    let job = world.submit(Size { memory: Memory::PerCpuMb(300), ..tasks(3) });
    world.schedule();
    assert_eq!(world.placement(job), "n1:2x2 n2:2x1", "a core for two, and 600 MB of 1000");
}

#[test]
fn jobs_get_whole_sockets() {
    let mut world = world(2, HandOut::Sockets);
    let jobs = [1, 5, 4].map(|n| world.submit(tasks(n)));
    world.schedule();
    assert_eq!(jobs.map(|job| world.placement(job)), ["n1:4x1", "n2:8x5", "n1:4x4"]);
    assert_eq!(cpus(&world, jobs[2]), "4-7");
}

#[test]
fn a_core_that_was_broken_into_before_goes_to_nobody() {
    let mut world = world(1, HandOut::Cpus);
    let before = [1, 1, 1].map(|n| world.submit(tasks(n)));
    world.schedule();
    assert_eq!(before.map(|job| cpus(&world, job)), ["0", "1", "2"]);
    hand_out(&mut world, HandOut::Cores);
    world.finish(before[0]);
    assert_eq!(world.cluster.node("n1").unwrap().free_cpus(), 4);
    let wide = world.submit(tasks(6));
    let narrow = world.submit(tasks(3));
    world.schedule();
    assert!(!world.is_running(wide));
    assert_eq!(cpus(&world, narrow), "4-7");
    world.finish(before[1]);
    world.finish(before[2]);
    world.finish(narrow);
    world.schedule();
    assert_eq!(world.placement(wide), "n1:6x6");
}

#[test]
fn those_who_share_share_whole_cores() {
    let mut world = world(1, HandOut::Cores);
    let mut config = (**world.cluster.config()).clone();
    config.partitions[0].oversubscribe = OverSubscribe::Force(2);
    world.apply(Command::Reconfigure { config: Box::new(config) });
    let jobs = [5, 3, 4].map(|n| world.submit(tasks(n)));
    // A node takes one more of those who share in each plan.
    while !world.schedule().starts.is_empty() {}
    assert_eq!(jobs.map(|job| world.placement(job)), ["n1:6x5", "n1:4x3", "n1:4x4"]);
    assert!(jobs.iter().all(|job| is_whole(&world, *job)));
}

fn is_whole(world: &World, job: JobId) -> bool {
    let shares = &world.cluster.job(job).unwrap().allocation.nodes;
    shares.iter().all(|share| {
        let node = world.cluster.node(share.node.as_str()).unwrap();
        node.config.cpus_taken(&share.cpus) == share.cpus.len()
    })
}

proptest! {
    /// Every start of a plan is accepted (`schedule` checks that), and is of whole units.
    #[test]
    fn nobody_has_a_part_of_a_core(
        sizes in prop::collection::vec((1u32..12, 1u32..5, 0u32..4, 0u32..3, any::<bool>()), 1..12),
        sockets in any::<bool>(),
    ) {
        let mut world = world(3, if sockets { HandOut::Sockets } else { HandOut::Cores });
        let mut jobs = Vec::new();
        for (n_tasks, each, apart, threads, ends) in sizes {
            let size = Size {
                cpus_per_task: Some(each),
                tasks_per_core: Some(apart).filter(|apart| *apart > 0),
                threads_per_core: Some(threads).filter(|threads| *threads > 0),
                memory: if ends { Memory::PerCpuMb(30) } else { Memory::Default },
                ..tasks(n_tasks)
            };
            if n_tasks * each > 12 {
                continue;
            }
            let spec = model::JobSpec { size, ..Default::default() };
            let entry = model::Entry { at: world.now, by: model::Caller::SYSTEM, command: Command::Submit { spec: Box::new(spec), blobs: Vec::new() } };
            let Ok(model::Reply::Submitted(job)) = state::apply(&mut world.cluster, &entry).reply else { continue };
            jobs.push(job);
            world.schedule();
            prop_assert!(jobs.iter().all(|job| is_whole(&world, *job)));
            if ends && world.is_running(jobs[0]) {
                world.finish(jobs.remove(0));
            }
        }
    }
}
