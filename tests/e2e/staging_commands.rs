//! Data that the user's own commands bring in and out (`--bb 'capacity=…;stage_in:…;stage_out:…'`): with the user's rights and the
//! buffer's variables, once, and ended like any mover.
use std::fs;

use crate::burst::{Burst, empty};
use crate::cluster::kill_9;

fn submit(burst: &Burst, option: &str, body: &str) -> String {
    burst.cluster.sbatch(&format!("-o %j.out --bb='{option}' --wrap '{body}'"))
}

/// Commands count the shells of theirs that have begun.
fn begun(burst: &Burst) -> usize {
    fs::read_to_string(burst.cluster.dir.join("work/begun")).map_or(0, |text| text.lines().count())
}

#[test]
fn commands_bring_the_data_and_a_failed_one_is_a_failure() {
    let burst = empty(2, "");
    let cluster = &burst.cluster;
    let option =
        "capacity=1M;stage_in:echo brought $SPUR_BB_PATH > $SPUR_BB_PATH/x;stage_out:cp $SPUR_BB_PATH/x got-%j";
    let job = submit(&burst, option, "cat $SPUR_BB_PATH/x");
    cluster.wait_state(&job, "COMPLETED");
    let said = cluster.file(&format!("{job}.out"));
    assert!(said.starts_with("brought /") && said.ends_with("/shared\n"), "{said}");
    assert_eq!(cluster.file(&format!("got-{job}")), said);
    burst.nothing_is_left();

    let job = submit(&burst, "capacity=1M pool=flash;stage_in:echo oh dear >&2 && false", "true");
    let why = r#"stage_in failed: command "echo oh dear >&2 && false": exit status: 1: oh dear"#;
    let shown = format!("squeue -h -j {job} -o %T%r");
    cluster.wait_until(&shown, |said| said.out.starts_with("PENDING") && said.out.contains(why));
    cluster.ok(&format!("scancel {job}"));
    burst.nothing_is_left();

    let job = submit(&burst, "capacity=1M;stage_out:test -e may", "true");
    cluster.wait_until(&format!("squeue -h -j {job} -o %T%r"), |said| said.out.contains("stage_out failed: command"));
    cluster.ok(&format!("touch may; scontrol release {job}"));
    cluster.wait_state(&job, "COMPLETED");
    burst.nothing_is_left();
}

#[test]
fn a_command_is_ended_when_its_job_is_cancelled_and_joined_by_an_agent_that_restarts() {
    let burst = empty(2, "");
    let cluster = &burst.cluster;
    let command = "echo >> begun; trap : TERM; sleep 300 & wait; sleep 300";
    // Between semicolons are items, so it stands in a file.
    burst.write("bring.sh", command);
    let job = submit(&burst, "capacity=1M;stage_in:sh bring.sh", "true");
    cluster.wait_file("begun", |text| text == "\n");
    kill_9(cluster.agent_pid("n1"));
    kill_9(cluster.agent_pid("n2"));
    cluster.start("");
    cluster.wait_until("sinfo -h -o %T", |said| said.out.trim() == "idle");
    cluster.ok(&format!("scancel {job}"));
    cluster.wait_state(&job, "CANCELLED");
    burst.nothing_is_left();
    assert_eq!(begun(&burst), 1, "an agent that finds a command running does not run it again");

    let job = submit(&burst, "capacity=1M;stage_out:sh bring.sh", "true");
    cluster.wait_file("begun", |text| text == "\n\n");
    cluster.ok(&format!("scancel --hurry {job}"));
    cluster.wait_state(&job, "COMPLETED");
    burst.nothing_is_left();
    let left = cluster.run("pgrep -f 'sh [b]ring.sh'");
    assert_eq!(left.out, "");
}

#[test]
fn a_command_that_takes_too_long_has_failed() {
    // The controller, which would say it otherwise, waits a quarter longer than the agent.
    let burst = empty(2, "StageInTimeout = 16");
    let cluster = &burst.cluster;
    let job = submit(&burst, "capacity=1M;stage_in:sleep 300", "true");
    let shown = format!("squeue -h -j {job} -o %T%r");
    cluster.wait_until(&shown, |said| said.out.contains("stage_in failed: not finished after 16 seconds"));
    cluster.ok(&format!("scancel {job}"));
    burst.nothing_is_left();
}
