//! The demo's part about suspension: a job stands still, and its clock with it.
use std::time::Duration;

use super::stage::{Stage, wait};

const SCRIPT: &str = r#"#!/bin/sh
#SBATCH --job-name=clock
#SBATCH --output=clock.out
while :; do echo tick; sleep 0.1; done
"#;

/// So long the job stands still, to be seen.
const STILL: Duration = Duration::from_secs(2);

pub fn tell(stage: &Stage) -> Result<(), String> {
    stage.write("clock.sh", SCRIPT)?;
    let job = stage.submit(&["clock.sh"])?.to_string();
    let n_ticks = || std::fs::read_to_string(stage.work("clock.out")).unwrap_or_default().lines().count();
    wait("the job did not begin to tick", || n_ticks() >= 12)?;
    stage.show("scontrol", &["suspend", &job])?;
    // Its processes have a moment to prepare for it.
    let mut last = n_ticks();
    wait("the job did not stand still", || {
        std::thread::sleep(Duration::from_millis(400));
        std::mem::replace(&mut last, n_ticks()) == last
    })?;
    let shown = ["-j", &job, "-h", "-o", "job %A is %T, has run for %M"];
    let before = stage.show_text("squeue", &shown)?;
    std::thread::sleep(STILL);
    let after = stage.show_text("squeue", &shown)?;
    if before != after || n_ticks() != last {
        return Err(format!("the clock went on: {before:?}, {} s later {after:?}", STILL.as_secs()));
    }
    say!("   {} s later: the same, not a tick more; no process of the job has moved", STILL.as_secs());
    stage.show("scontrol", &["resume", &job])?;
    wait("the job did not go on", || n_ticks() > last)?;
    stage.show("squeue", &shown)?;
    stage.show("scancel", &[&job])?;
    wait("the job did not end", || stage.quietly("squeue", &["-h", "-j", &job]).is_ok_and(|text| text.is_empty()))
}
