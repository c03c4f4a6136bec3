//! Programs of the site for the node itself: its health check, and the one that starts the machine anew.
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::Timestamp;
use model::agent::Report;
use model::command::DutyResult;
use prolog::inheritance::{clean_environment, reset_inherited};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use crate::table::Agent;

/// As in Slurm: a check that takes longer is ended.
const CHECK_PATIENCE: Duration = Duration::from_secs(60);
/// Of what a program says, so much is kept for the log.
const SAID_MAX: u64 = 4096;

/// What runs on this node for its own sake.
#[derive(Default)]
pub struct Care {
    is_checking: AtomicBool,
    /// A controller that has died does not know whether it was heard: the next one tells the same again.
    reboot_issued: Mutex<Option<Timestamp>>,
}

/// Runs the health check, unless one is running. What it finds wrong it says itself, with `scontrol update`.
pub fn check(agent: &Arc<Agent>, program: String) {
    if agent.care.is_checking.swap(true, Ordering::Relaxed) {
        tracing::warn!(program, "the health check of before has not ended yet");
        return;
    }
    let agent = agent.clone();
    tokio::spawn(async move {
        match start(&agent, &program) {
            Ok(child) => watch(child, &program).await,
            Err(error) => tracing::error!(program, %error, "the health check cannot be run"),
        }
        agent.care.is_checking.store(false, Ordering::Relaxed);
    });
}

/// Answers when the program runs; the machine may be gone before it ends.
pub fn reboot(agent: &Arc<Agent>, number: u64, program: String, issued: Timestamp) {
    let mut last = agent.care.reboot_issued.lock().expect("no panic while it is held");
    if *last == Some(issued) {
        agent.table().report(Report::Answer { number, result: DutyResult::Done });
        return;
    }
    let result = match start(agent, &program) {
        Ok(child) => {
            *last = Some(issued);
            tracing::warn!(program, "this machine is started anew");
            tokio::spawn(async move { watch(child, &program).await });
            DutyResult::Done
        }
        Err(error) => {
            tracing::error!(program, %error, "the program that starts the machine anew cannot be run");
            DutyResult::Failed { node: agent.options.node.clone(), why: format!("{program}: {error}") }
        }
    };
    agent.table().report(Report::Answer { number, result });
}

/// In a group of its own, so that all of it can be ended.
fn start(agent: &Agent, program: &str) -> std::io::Result<Child> {
    let mut command = Command::new(program);
    clean_environment(command.as_std_mut());
    reset_inherited(command.as_std_mut());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    command.env("SLURMD_NODENAME", agent.options.node.as_str());
    command.env("SPURD_NODENAME", agent.options.node.as_str());
    if let Some(file) = &agent.options.config_file {
        command.env("SPUR_CONF", file);
    }
    command.spawn()
}

async fn watch(mut child: Child, program: &str) {
    let group = child.id();
    let mut said = Vec::new();
    let ended = tokio::time::timeout(CHECK_PATIENCE, async {
        if let Some(mut output) = child.stdout.take() {
            let _ = (&mut output).take(SAID_MAX).read_to_end(&mut said).await;
            // More than is kept must not keep the program waiting.
            let _ = tokio::io::copy(&mut output, &mut tokio::io::sink()).await;
        }
        child.wait().await
    });
    let ended: Option<ExitStatus> = ended.await.ok().and_then(Result::ok);
    let said = String::from_utf8_lossy(&said);
    match ended {
        Some(status) if status.success() => tracing::debug!(program, %said, "the program has ended well"),
        Some(status) => tracing::error!(program, %status, said = said.trim_end(), "the program has failed"),
        None => {
            tracing::error!(program, "the program takes too long, and is ended");
            if let Some(group) = group {
                // SAFETY: a plain system call; the group is ours until its leader is waited for.
                unsafe { libc::kill(-(group as i32), libc::SIGKILL) };
            }
            let _ = child.wait().await;
        }
    }
}
