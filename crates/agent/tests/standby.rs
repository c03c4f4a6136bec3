//! Supervisors that take run after run: when they do, what they do not carry over, and how they go.
mod support;

use std::sync::Arc;

use model::ExitStatus;
use support::{World, eventually, is_alive, signal};

/// Runs scripts until one has the supervisor of the one before it: who was ready in time is a matter of luck.
async fn supervisor_of_two(world: &mut World, first: u32) -> u32 {
    let mut before = 0;
    for job in first..first + 200 {
        world.launch(world.script(job, "echo $PPID")).await;
        world.exit(job).await;
        let supervisor = world.read(&format!("slurm-{job}.out")).trim().parse().expect("a process id");
        if supervisor == before {
            return supervisor;
        }
        before = supervisor;
    }
    panic!("nobody took a second run");
}

#[tokio::test]
async fn the_next_run_of_a_user_finds_a_supervisor_that_stands_by() {
    let mut world = World::new().await;
    let supervisor = supervisor_of_two(&mut world, 1).await;
    eventually("it to go when nothing comes", || !is_alive(supervisor)).await;
    eventually("the spool to be empty", || world.spool_is_empty()).await;
}

#[tokio::test]
async fn nothing_of_one_run_is_seen_in_the_next() {
    let mut world = World::new().await;
    let mut strict = world.script(1, "umask; ulimit -n; trap '' USR1; cd /; export LEFT=x; exec 9>&1; echo $PPID");
    let spec = Arc::make_mut(&mut strict.job_spec);
    spec.umask = Some(0o077);
    spec.limits.push(model::spec::ResourceLimit { resource: libc::RLIMIT_NOFILE as _, soft: 77, hard: 77 });
    strict.environment.extend_from_slice(b"MINE=secret\0");
    world.launch(strict).await;
    world.exit(1).await;
    assert!(world.read("slurm-1.out").starts_with("0077\n77\n"), "{}", world.read("slurm-1.out"));
    let plain = "umask; echo ${LEFT-none} ${MINE-none} $PWD; ls /proc/self/fd | wc -l; kill -USR1 $$; echo survived";
    world.launch(world.script(2, plain)).await;
    assert_eq!(world.exit(2).await.exit, ExitStatus::signaled(libc::SIGUSR1 as u8));
    world.kill_agent();
    world.start_agent().await;
    world.launch(world.script(3, plain)).await;
    world.exit(3).await;
    assert_eq!(world.read("slurm-2.out"), world.read("slurm-3.out"), "as under a supervisor that is new");
}

#[tokio::test]
async fn one_that_is_killed_while_it_stands_by_costs_nothing() {
    let mut world = World::new().await;
    let supervisor = supervisor_of_two(&mut world, 1).await;
    signal(supervisor, libc::SIGKILL);
    eventually("it to be gone", || !is_alive(supervisor)).await;
    world.launch(world.script(500, "echo $PPID")).await;
    assert_eq!(world.exit(500).await.exit, ExitStatus::SUCCESS);
    assert_ne!(world.read("slurm-500.out").trim(), supervisor.to_string());
}

#[tokio::test]
async fn those_that_stand_by_go_with_their_agent() {
    let mut world = World::new().await;
    let supervisor = supervisor_of_two(&mut world, 1).await;
    world.kill_agent();
    eventually("it to be gone", || !is_alive(supervisor)).await;
}

#[tokio::test]
async fn a_run_that_saw_its_agent_die_is_its_supervisors_last() {
    let mut world = World::new().await;
    world.launch(world.script(1, "echo $PPID > who; while [ ! -e go ]; do sleep 0.02; done")).await;
    let supervisor: u32 = world.line("who").await.trim().parse().expect("a process id");
    world.kill_agent();
    world.start_agent().await;
    std::fs::write(world.dir.join("work/go"), "").unwrap();
    assert_eq!(world.exit(1).await.exit, ExitStatus::SUCCESS);
    eventually("it to be gone", || !is_alive(supervisor)).await;
}
