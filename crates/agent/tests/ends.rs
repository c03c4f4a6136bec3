//! Ends by order and by accident: nothing of a run survives, and every end is told.
mod support;

use std::time::{Duration, Instant};

use model::ExitStatus;
use model::agent::{KillNote, Order};
use model::command::DutyResult;
use model::request::SignalScope;
use model::time::Span;
use support::{World, eventually, is_alive, run, signal};

/// Says its own and its children's ids, then waits.
const FAMILY: &str = "setsid sleep 1000 & echo $! > hidden
(trap '' TERM; exec sleep 1001) & echo $! > deaf
echo $$ > shell
wait; sleep 1002";

async fn pids(world: &World) -> Vec<u32> {
    let mut pids = Vec::new();
    for name in ["hidden", "deaf", "shell"] {
        pids.push(world.line(name).await.parse().expect("a process id"));
    }
    pids
}

#[tokio::test]
async fn a_killed_run_leaves_nothing_and_says_so() {
    let mut world = World::new().await;
    world.launch(world.script(5, &format!("trap 'echo told; exit 4' TERM; {FAMILY}"))).await;
    let pids = pids(&world).await;
    // Nobody waits for as long as it might take.
    assert_eq!(world.kill(run(5), Duration::from_secs(3600), KillNote::Cancelled).await, DutyResult::Done);
    for pid in pids {
        assert!(!is_alive(pid));
    }
    assert_eq!(world.exit(5).await.exit, ExitStatus::exited(4));
    let output = world.read("slurm-5.out");
    let note = output.lines().find(|line| line.starts_with("slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT 20"));
    assert!(note.is_some_and(|line| line.ends_with(" ***")), "{output}");
    assert!(output.contains("told"), "{output}");
}

#[tokio::test]
async fn what_ignores_sigterm_gets_sigkill() {
    let mut world = World::new().await;
    world.launch(world.script(5, "trap '' TERM; echo $$ > shell; while :; do sleep 1; done")).await;
    let pid = world.line("shell").await.parse().unwrap();
    let begun = Instant::now();
    world.kill(run(5), Duration::from_millis(300), KillNote::TimeLimit).await;
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert!(!is_alive(pid));
    assert_eq!(world.exit(5).await.exit, ExitStatus::signaled(libc::SIGKILL as u8));
    assert!(world.read("slurm-5.out").contains("DUE TO TIME LIMIT ***"));
}

#[tokio::test]
async fn a_fork_bomb_of_sessions_is_ended() {
    let mut world = World::new().await;
    let script = "trap '' TERM; echo $$ > shell
spread() { trap '' TERM; while :; do setsid sleep 1000 & sleep 0.01; done; }
spread & spread & wait";
    world.launch(world.script(5, script)).await;
    world.line("shell").await;
    world.kill(run(5), Duration::from_millis(200), KillNote::Silent).await;
    world.exit(5).await;
    let tag = format!("SPUR_SUPERVISED={}:5.1.batch", world.dir.join("spool").canonicalize().unwrap().display());
    assert_eq!(marked(&tag), Vec::<u32>::new());
}

#[tokio::test]
async fn runs_after_a_killed_one_are_not_harmed() {
    let mut world = World::new().await;
    for job in [1, 3, 5] {
        world.launch(world.script(job, FAMILY)).await;
        pids(&world).await;
        world.kill(run(job), Duration::from_millis(20), KillNote::Silent).await;
        world.exit(job).await;
        for name in ["hidden", "deaf", "shell"] {
            std::fs::remove_file(world.dir.join("work").join(name)).unwrap();
        }
        for after in [job + 100, job + 101] {
            world.launch(world.script(after, "sleep 0.01; exit 3")).await;
            assert_eq!(world.exit(after).await.exit, ExitStatus::exited(3));
        }
    }
}

#[tokio::test]
async fn what_a_script_leaves_behind_goes_with_it() {
    let mut world = World::new().await;
    world.launch(world.script(6, "setsid sleep 1000 & echo $! > hidden; exit 2")).await;
    let pid = world.line("hidden").await.parse().unwrap();
    assert_eq!(world.exit(6).await.exit, ExitStatus::exited(2));
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_run_that_was_killed_is_not_launched_later() {
    let mut world = World::new().await;
    assert_eq!(world.kill(run(8), Duration::ZERO, KillNote::Silent).await, DutyResult::Done);
    world.kill_agent();
    world.start_agent().await;
    let launch = world.script(8, "touch ran");
    assert!(matches!(world.launch(launch).await, DutyResult::Failed { .. }));
    let mut again = world.script(8, "true");
    again.attempt = 2;
    assert_eq!(world.launch(again).await, DutyResult::Done);
    world.exit(8).await;
    assert!(!world.dir.join("work/ran").exists());
}

#[tokio::test]
async fn an_agent_that_dies_finds_its_runs_again() {
    let mut world = World::new().await;
    world.launch(world.script(1, "echo $$ > shell; while ! [ -e go ]; do sleep 0.02; done; exit 5")).await;
    world.launch(world.script(2, "echo $$ > other; while ! [ -e early ]; do sleep 0.02; done; exit 6")).await;
    let pid: u32 = world.line("shell").await.parse().unwrap();
    let other: u32 = world.line("other").await.parse().unwrap();
    world.kill_agent();
    assert!(is_alive(pid));
    // The second ends while nobody watches.
    std::fs::write(world.dir.join("work/early"), "").unwrap();
    eventually("the second to end", || !is_alive(other)).await;
    let runs = world.start_agent().await;
    assert_eq!(runs, [run(1), run(2)]);
    assert_eq!(world.exit(2).await.exit, ExitStatus::exited(6));
    std::fs::write(world.dir.join("work/go"), "").unwrap();
    assert_eq!(world.exit(1).await.exit, ExitStatus::exited(5));
    eventually("the spool to be empty", || world.spool_is_empty()).await;
}

#[tokio::test]
async fn a_run_found_again_can_be_killed() {
    let mut world = World::new().await;
    world.launch(world.script(1, FAMILY)).await;
    let pids = pids(&world).await;
    assert!(world.stop_agent(), "SIGTERM is a clean end");
    world.start_agent().await;
    world.kill(run(1), Duration::from_millis(100), KillNote::Cancelled).await;
    assert!(pids.into_iter().all(|pid| !is_alive(pid)));
    world.exit(1).await;
}

#[tokio::test]
async fn an_end_is_reported_until_it_is_acknowledged() {
    let mut world = World::new().await;
    world.launch(world.script(1, "exit 9")).await;
    assert_eq!(world.unacknowledged_exit(1).await.1.exit, ExitStatus::exited(9));
    world.kill_agent();
    assert_eq!(world.start_agent().await, [run(1)]);
    assert_eq!(world.exit(1).await.exit, ExitStatus::exited(9));
    eventually("the spool to be empty", || world.spool_is_empty()).await;
    world.kill_agent();
    assert_eq!(world.start_agent().await, []);
}

#[tokio::test]
async fn a_supervisor_that_is_killed_takes_its_run_along() {
    let mut world = World::new().await;
    world.launch(world.script(1, FAMILY)).await;
    let pids = pids(&world).await;
    signal(parent(pids[2]), libc::SIGKILL);
    assert_eq!(world.exit(1).await.exit, ExitStatus::signaled(libc::SIGKILL as u8));
    assert!(pids.into_iter().all(|pid| !is_alive(pid)));
}

#[tokio::test]
async fn agent_and_supervisor_killed_together_are_found_out() {
    let mut world = World::new().await;
    world.launch(world.script(1, FAMILY)).await;
    let pids = pids(&world).await;
    let supervisor = parent(pids[2]);
    world.kill_agent();
    signal(supervisor, libc::SIGKILL);
    assert_eq!(world.start_agent().await, [run(1)]);
    assert_eq!(world.exit(1).await.exit, ExitStatus::signaled(libc::SIGKILL as u8));
    assert!(pids.into_iter().all(|pid| !is_alive(pid)));
}

#[tokio::test]
async fn a_fork_server_that_is_killed_is_replaced() {
    let mut world = World::new().await;
    world.launch(world.script(1, "true")).await;
    world.exit(1).await;
    let agent = world.agent_pid();
    let servers = || children(agent);
    for server in servers() {
        signal(server, libc::SIGKILL);
        eventually("the server to die", || !is_alive(server)).await;
    }
    world.launch(world.script(2, "exit 3")).await;
    assert_eq!(world.exit(2).await.exit, ExitStatus::exited(3));
}

#[tokio::test]
async fn clearing_ends_everything_of_a_stopped_agent() {
    let mut world = World::new().await;
    world.launch(world.script(1, FAMILY)).await;
    let pids = pids(&world).await;
    world.stop_agent();
    assert_eq!(agent::clear(&world.options()).unwrap(), 1);
    assert!(pids.into_iter().all(|pid| !is_alive(pid)));
}

#[tokio::test]
async fn signals_reach_whom_they_are_meant_for() {
    let mut world = World::new().await;
    let script = "trap 'echo shell >> heard' USR1
sh -c 'trap \"echo child >> heard\" USR1; echo ready > ready; while :; do sleep 0.02; done' &
while ! [ -e done ]; do sleep 0.02; done";
    world.launch(world.script(1, script)).await;
    world.line("ready").await;
    let heard = |world: &World| std::fs::read_to_string(world.dir.join("work/heard")).unwrap_or_default();
    let signal = |scope, request| {
        let (number, run, signal) = (0, run(1), libc::SIGUSR1 as u32);
        Order::Signal { number, run, signal, scope, request }
    };
    let order = |scope| signal(scope, None);
    world.order(order(SignalScope::Steps));
    world.order(order(SignalScope::BatchShell));
    eventually("the shell to hear", || heard(&world) == "shell\n").await;
    world.order(order(SignalScope::Everything));
    eventually("both to hear", || heard(&world).contains("child") && heard(&world).matches("shell").count() == 2).await;
    // A request that the next leader passes on once more is not heard once more.
    for (request, n_heard) in [(1, 3), (1, 3), (2, 4)] {
        let request = Some(model::command::RequestId(request, 0));
        world.order(signal(SignalScope::BatchShell, request));
        tokio::time::sleep(Duration::from_millis(100)).await;
        // Two that wait at the same time would be heard as one.
        eventually("the shell to hear it", || heard(&world).matches("shell").count() == n_heard).await;
    }
    std::fs::write(world.dir.join("work/done"), "").unwrap();
    assert_eq!(world.exit(1).await.exit, ExitStatus::SUCCESS);
    assert_eq!(heard(&world).matches("shell").count(), 4);
}

#[tokio::test]
async fn a_frozen_run_stands_still_until_it_is_thawed() {
    let mut world = World::new().await;
    world.launch(world.script(1, "echo $$ > shell; while :; do echo x >> ticks; sleep 0.01; done")).await;
    world.line("shell").await;
    let number = world.number();
    world.order(Order::Freeze { number, run: run(1), grace: Span(0) });
    assert_eq!(world.answer(number).await, DutyResult::Done);
    let ticks = |world: &World| std::fs::metadata(world.dir.join("work/ticks")).map_or(0, |file| file.len());
    let before = ticks(&world);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(ticks(&world) <= before + 2);
    let number = world.number();
    world.order(Order::Thaw { number, run: run(1) });
    assert_eq!(world.answer(number).await, DutyResult::Done);
    let frozen = ticks(&world);
    eventually("it to go on", || ticks(&world) > frozen).await;
    let number = world.number();
    world.order(Order::Freeze { number, run: run(1), grace: Span(0) });
    world.answer(number).await;
    // Frozen processes can be killed too.
    world.kill(run(1), Duration::from_secs(3600), KillNote::Silent).await;
    world.exit(1).await;
}

#[tokio::test]
async fn a_freeze_asks_first_and_a_thaw_within_the_grace_takes_it_back() {
    let mut world = World::new().await;
    let script = "trap 'echo parked >> heard' TSTP; echo up > shell; while :; do echo x >> ticks; sleep 0.01; done";
    world.launch(world.script(1, script)).await;
    world.line("shell").await;
    let number = world.number();
    world.order(Order::Freeze { number, run: run(1), grace: Span::from_secs(3600) });
    assert_eq!(world.line("heard").await, "parked");
    let thaw = world.number();
    world.order(Order::Thaw { number: thaw, run: run(1) });
    assert_eq!(world.answer(thaw).await, DutyResult::Done);
    let ticks = |world: &World| std::fs::metadata(world.dir.join("work/ticks")).map_or(0, |file| file.len());
    let before = ticks(&world);
    eventually("it to go on", || ticks(&world) > before).await;
    world.kill(run(1), Duration::ZERO, KillNote::Silent).await;
    world.exit(1).await;
}

#[tokio::test]
async fn nobody_is_waited_for_who_has_no_answer_to_the_request() {
    let mut world = World::new().await;
    world.launch(world.script(1, "echo up > shell; while :; do echo x >> ticks; sleep 0.01; done")).await;
    world.line("shell").await;
    let number = world.number();
    world.order(Order::Freeze { number, run: run(1), grace: Span::from_secs(3600) });
    assert_eq!(world.answer(number).await, DutyResult::Done);
    world.kill(run(1), Duration::ZERO, KillNote::Silent).await;
    world.exit(1).await;
}

#[tokio::test]
async fn what_is_launched_into_a_suspended_job_stands_still() {
    let mut world = World::new().await;
    let mut launch = world.script(1, "while [ ! -e stop ]; do echo x >> ticks; sleep 0.01; done");
    launch.is_suspended = true;
    world.launch(launch).await;
    let number = world.number();
    // Already done: answered at once, in spite of the grace.
    world.order(Order::Freeze { number, run: run(1), grace: Span::from_secs(3600) });
    assert_eq!(world.answer(number).await, DutyResult::Done);
    let ticks = |world: &World| std::fs::metadata(world.dir.join("work/ticks")).map_or(0, |file| file.len());
    let before = ticks(&world);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(ticks(&world), before);
    std::fs::write(world.dir.join("work/stop"), "").unwrap();
    let number = world.number();
    world.order(Order::Thaw { number, run: run(1) });
    assert_eq!(world.exit(1).await.exit, ExitStatus::SUCCESS);
}

fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a living process");
    stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    tasks.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn marked(entry: &str) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|each| each.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|each| each == entry.as_bytes()) && is_alive(*pid)
    })
    .collect()
}

/// A controller that has died before it knew the answer is followed by one that tells the same again.
#[tokio::test]
async fn a_machine_is_started_anew_once_however_often_it_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let mut world = World::new().await;
    let program = world.dir.join("reboot");
    std::fs::write(&program, format!("#!/bin/sh\necho anew >> {}/reboots\n", world.dir.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    for issued in [7, 7, 8] {
        let (number, program) = (world.number(), program.display().to_string());
        world.order(Order::Reboot { number, program, issued: model::Timestamp(issued) });
        assert_eq!(world.answer(number).await, DutyResult::Done);
    }
    let told = || std::fs::read_to_string(world.dir.join("reboots")).unwrap_or_default();
    eventually("two have run", || told().lines().count() >= 2).await;
    assert_eq!(told(), "anew\nanew\n");
}
