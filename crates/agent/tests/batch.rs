//! Batch scripts under a real agent: output, environment, ends.
mod support;

use std::time::Duration;

use model::ExitStatus;
use model::agent::{ArrayFacts, KillNote, Order};
use model::command::DutyResult;
use model::spec::OpenMode;
use support::{World, eventually, is_alive, run, signal};

#[tokio::test]
async fn a_script_runs_and_its_end_is_reported() {
    let mut world = World::new().await;
    assert_eq!(
        world.launch(world.script(7, "echo $GREETING $SLURM_JOB_ID $SPUR_JOB_ID; exit 3")).await,
        DutyResult::Done
    );
    let exited = world.exit(7).await;
    assert_eq!(exited.exit, ExitStatus::exited(3));
    assert_eq!(exited.node.as_str(), "n1");
    assert_eq!(exited.launch_error, None);
    assert_eq!(world.read("slurm-7.out"), "hello 7 7\n");
    eventually("the spool to be empty", || world.spool_is_empty()).await;
    assert!(!world.dir.join("spool/job00007").exists());
}

#[tokio::test]
async fn a_signal_is_told_from_a_code() {
    let mut world = World::new().await;
    world.launch(world.script(1, "kill -USR1 $$")).await;
    assert_eq!(world.exit(1).await.exit, ExitStatus::signaled(libc::SIGUSR1 as u8));
}
