//! Parts of GPUs, which several jobs share, and cores that a job leaves to the system.
use model::gres::{self, Gres, GresRequest};
use model::kept::Spared;
use model::node::NodeConfig;
use model::spec::{JobKind, JobSpec, Sharing, Size};
use model::{Command, JobId};
use world::World;

mod world;

fn node(gres: &str) -> NodeConfig {
    let own = |one: GresRequest| Gres { name: one.name, kind: one.kind, count: one.count, ..Gres::default() };
    let gres = gres::parse_list(gres).unwrap().into_iter().map(own).collect();
    NodeConfig { cpus: 8, memory_mb: 1000, gres, ..NodeConfig::default() }
}

fn submit(world: &mut World, gres: &str, change: impl FnOnce(&mut Size)) -> JobId {
    let mut size = Size { gres: gres::parse_list(gres).unwrap(), ..Size::default() };
    change(&mut size);
    let kind = JobKind::Batch { script: Default::default() };
    let job = world.submit_spec(JobSpec { size, kind, ..JobSpec::default() });
    world.schedule();
    job
}

/// `shard:2@1` for parts of the GPU with that number, `-` for a job that waits.
fn held(world: &World, job: JobId) -> String {
    if !world.is_running(job) {
        return "-".into();
    }
    let job = world.cluster.job(job).unwrap();
    let text = |units: &gres::GresUnits| match units.device {
        Some(device) => format!("{units}@{device}"),
        None => format!("{units}={}", units.units),
    };
    let shares = job.allocation.nodes.iter();
    shares.map(|share| share.gres.iter().map(text).collect::<Vec<_>>().join("+")).collect::<Vec<_>>().join(" ")
}

fn told(world: &World, jobs: &[JobId]) -> Vec<String> {
    jobs.iter().map(|job| held(world, *job)).collect()
}

#[test]
fn several_jobs_run_on_parts_of_one_gpu_and_whole_gpus_wait_for_it() {
    let mut world = World::new(vec![("n1", node("gpu:2,shard:8"))], Vec::new());
    let wanted = ["shard:3", "shard:2", "shard:1", "shard:2", "gpu:1"];
    let jobs = wanted.map(|gres| submit(&mut world, gres, |_| ()));
    assert_eq!(told(&world, &jobs), ["shard:3@0", "shard:2@1", "shard:1@0", "shard:2@1", "-"]);
    // Both on the second GPU have to end before it can be given whole.
    world.finish(jobs[1]);
    world.schedule();
    assert_eq!(held(&world, jobs[4]), "-");
    world.finish(jobs[3]);
    world.schedule();
    assert_eq!(held(&world, jobs[4]), "gpu:1=1");
    // The first one is full, the second one is somebody's.
    let late = submit(&mut world, "shard:1", |_| ());
    assert_eq!(held(&world, late), "-");
    world.finish(jobs[2]);
    world.schedule();
    assert_eq!(held(&world, late), "shard:1@0");
}

#[test]
fn a_promise_of_parts_counts_the_jobs_that_share_the_gpu() {
    let mut world = World::new(vec![("n1", node("gpu:1,shard:4"))], Vec::new());
    let minutes = |minutes: u64| Some(model::spec::TimeLimit::Secs(60 * minutes));
    let mut timed = |gres: &str, limit| {
        let size = Size { gres: gres::parse_list(gres).unwrap(), ..Size::default() };
        let job = world.submit_spec(JobSpec { size, time_limit: minutes(limit), ..JobSpec::default() });
        world.schedule();
        job
    };
    let (first, second, third) = (timed("shard:2", 10), timed("shard:1", 20), timed("shard:2", 5));
    let whole = timed("gpu:1", 5);
    assert_eq!(told(&world, &[first, second, third]), ["shard:2@0", "shard:1@0", "-"]);
    let expected = |job| world.expected(job).map(|(secs, _)| secs.div_ceil(60));
    assert_eq!((expected(third), expected(whole)), (Some(10), Some(20)));
}

#[test]
fn who_has_the_node_alone_has_the_gpus_whole_unless_it_asks_for_parts() {
    let mut world = World::new(vec![("n1", node("gpu:2,shard:8")), ("n2", node("gpu:2,shard:8"))], Vec::new());
    let alone = |size: &mut Size| size.sharing = Sharing::WholeNodes;
    let jobs = [submit(&mut world, "none", alone), submit(&mut world, "shard:3", alone)];
    assert_eq!(told(&world, &jobs), ["gpu:2=0-1", "shard:3@0"]);
}

/// Two nodes of four cores, of which the site keeps one and two.
fn keeping(may_spare: bool) -> World {
    let mut nodes = ["n1", "n2"].map(|name| {
        let shape = NodeConfig { cpus: 4, memory_mb: 1000, sockets: 1, cores_per_socket: 4, ..NodeConfig::default() };
        (name, shape)
    });
    assert!(nodes[0].1.keep_cores(1) && nodes[1].1.keep_cores(2));
    let mut world = World::new(nodes.to_vec(), Vec::new());
    let mut config = (**world.cluster.config()).clone();
    config.jobs.may_spare = may_spare;
    world.apply(Command::Reconfigure { config: Box::new(config) });
    world
}

fn cpus(world: &World, job: JobId) -> String {
    let shares = world.cluster.job(job).unwrap().allocation.nodes.iter();
    shares.map(|share| format!("{}={}", share.node, share.cpus)).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_job_may_say_what_it_leaves_to_the_system() {
    let wide = |spared, n_tasks: Option<u32>| {
        move |size: &mut Size| (size.spared, size.min_nodes, size.n_tasks) = (Some(spared), 2, n_tasks)
    };
    for (spared, n_tasks, expected) in [
        (Spared::Cores(0), Some(8), "n1=0-3 n2=0-3"),
        (Spared::Cores(0), None, "n1=0-3 n2=0-3"),
        (Spared::Cores(1), Some(6), "n1=0-2 n2=0-2"),
        (Spared::Threads(2), None, "n1=0-1 n2=0-1"),
    ] {
        let mut world = keeping(true);
        let job = submit(&mut world, "none", wide(spared, n_tasks));
        assert_eq!(cpus(&world, job), expected, "{spared:?} {n_tasks:?}");
        assert!(world.cluster.job(job).unwrap().allocation.is_exclusive);
        // It has the nodes alone; when it has gone, others have what the site leaves them.
        let next = submit(&mut world, "none", |size| (size.min_nodes, size.sharing) = (2, Sharing::WholeNodes));
        assert!(!world.is_running(next));
        world.finish(job);
        world.schedule();
        assert_eq!(cpus(&world, next), "n1=0-2 n2=0-1");
    }
}

#[test]
fn what_a_job_leaves_to_the_system_does_not_count_where_the_site_says_no() {
    let mut world = keeping(false);
    let job = submit(&mut world, "none", |size| size.spared = Some(Spared::Cores(0)));
    assert_eq!(cpus(&world, job).split('=').nth(1).map(str::len), Some(1), "one CPU");
    assert_eq!(world.cluster.job(job).unwrap().spec.size.spared, None);
}
