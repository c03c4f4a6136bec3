//! What a supervisor writes into the job's own output, in Slurm's words.
use std::io;

use model::agent::KillNote;
use model::{ExitStatus, StepId};

use crate::protocol::{RunId, Start};

/// `slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT 2026-11-15T21:54:12 ***`
pub fn kill_note(start: &Start, note: KillNote) -> Option<String> {
    let why = match note {
        KillNote::Silent => return None,
        KillNote::Cancelled => "",
        KillNote::TimeLimit => " DUE TO TIME LIMIT",
        KillNote::NodeFailure => " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
        KillNote::Preempted => " DUE TO PREEMPTION",
        KillNote::Requeued => " DUE TO JOB REQUEUE",
    };
    let run = RunId::of(&start.launch);
    let what = match run.step {
        StepId::Batch => format!("JOB {}", run.job),
        StepId::Number(step) => format!("STEP {}.{step}", run.job),
    };
    Some(format!("slurmstepd: error: *** {what} ON {} CANCELLED AT {}{why} ***\n", start.node, local_time()))
}

/// `slurmstepd-n1: starting 1 tasks`, and a line for each (`--slurmd-debug`).
pub fn tasks_started(start: &Start, tasks: &[(u32, i32)]) -> String {
    /// What the level adds to errors, as Slurm counts.
    const LEVELS: [&str; 5] = ["error", "info", "verbose", "debug", "debug2"];
    const DEBUG: usize = 3;
    let (node, now) = (&start.node, local_time());
    let asked = start.launch.step_spec.as_ref().map_or(0, |spec| spec.supervisor_verbosity as usize);
    let level = LEVELS[asked.min(LEVELS.len() - 1)];
    let each = tasks.iter().map(|(rank, pid)| format!("slurmstepd-{node}: task {rank} ({pid}) started {now}\n"));
    let each: String = each.collect();
    let n_tasks = tasks.len();
    let mut text = format!("slurmstepd-{node}: debug levels are stderr='{level}'\n");
    if asked >= DEBUG {
        text.push_str(&format!("slurmstepd-{node}: debug:  IO handler started pid={}\n", std::process::id()));
    }
    if asked > DEBUG {
        text.push_str(&format!("slurmstepd-{node}: debug2: {}\n", held_to(start)));
    }
    text.push_str(&format!("slurmstepd-{node}: starting {n_tasks} tasks\n{each}"));
    text
}

/// Where the kernel holds the step, and to what.
fn held_to(start: &Start) -> String {
    let bounds = &start.launch.bounds;
    let memory = bounds.memory_mb.map_or("any".to_string(), |megabytes| format!("{megabytes}M"));
    let cpus = bounds.cpus.as_ref().map_or("any".to_string(), |cpus| cpus.to_string());
    let cgroup = start.cgroup.as_ref().map_or("none".to_string(), |path| format!("{path:?}"));
    format!("memory {memory}, CPUs {cpus}, devices denied {}, cgroup {cgroup}", bounds.denied_files.len())
}

pub fn task_ended(start: &Start, rank: u32, pid: i32, exit: ExitStatus) -> String {
    let how = match exit.signal {
        0 => format!(" with exit code {}.", exit.code),
        signal => format!(". Killed by signal {signal}."),
    };
    format!("slurmstepd-{}: task {rank} ({pid}) exited{how}\n", start.node)
}

pub fn no_work_dir(dir: &str, error: &io::Error) -> String {
    let why = describe(error);
    format!("slurmstepd: error: couldn't chdir to `{dir}': {why}: going to /tmp instead\n")
}

pub fn no_exec(program: &str, error: &io::Error) -> String {
    format!("slurmstepd: error: execve(): {program}: {}\n", describe(error))
}

/// The system's words, without the number that std adds.
pub fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

fn local_time() -> String {
    // SAFETY: both calls fill or read local values; this process has one thread.
    let time = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        let now = libc::time(std::ptr::null_mut());
        libc::localtime_r(&now, &mut time);
        time
    };
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        time.tm_year + 1900,
        time.tm_mon + 1,
        time.tm_mday,
        time.tm_hour,
        time.tm_min,
        time.tm_sec
    )
}
