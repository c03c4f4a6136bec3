//! Runs the programs of triggers whose time has come, each as whoever set it: a few at once, of which each user has a share.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::trigger::Trigger;
use model::{Caller, Command};
use prolog::user_program::{ProgramUser, user_program};
use tokio::task::JoinSet;
use wire::accounts;

use crate::door::Door;
use crate::fair_turns::FairTurns;
use crate::machine::Published;

const TRIGGERS: &str = model::loudness::DebugFlag::Triggers.target();

/// Programs that run at once, and those of one user: the others wait their turn.
const PROGRAMS: (usize, usize) = (16, 4);
/// A program that takes longer is killed, with all that it has started.
const PATIENCE: Duration = Duration::from_secs(300);

/// A program may run once more if this ends between its end and the word about it in the log.
pub async fn run(door: Arc<Door>, published: Published, config_file: PathBuf) {
    let mut changes = published.changes();
    let running: Arc<Mutex<BTreeSet<u32>>> = Arc::default();
    // Those under way end with the lead.
    let mut programs = JoinSet::new();
    let turns = FairTurns::new(PROGRAMS.0, PROGRAMS.1);
    loop {
        let cluster = changes.borrow_and_update().clone();
        for trigger in cluster.due_triggers() {
            let is_new = lock(&running).insert(trigger.id);
            if !is_new {
                continue;
            }
            let (door, running, trigger) = (door.clone(), running.clone(), trigger.clone());
            let (config_file, turns) = (config_file.clone(), turns.clone());
            programs.spawn(async move {
                let _turn = turns.take(trigger.uid).await;
                carry_out(&trigger, &config_file).await;
                let ran = Command::TriggerRan { id: trigger.id, n_fired: trigger.n_fired };
                if let Err(refusal) = door.propose(Caller::SYSTEM, ran).await {
                    tracing::warn!(id = trigger.id, ?refusal, "that a trigger has run was not written");
                }
                lock(&running).remove(&trigger.id);
            });
        }
        while programs.try_join_next().is_some() {}
        if changes.changed().await.is_err() {
            return;
        }
    }
}

async fn carry_out(trigger: &Trigger, config_file: &Path) {
    let argument = trigger.argument();
    tracing::debug!(target: TRIGGERS, id = trigger.id, program = trigger.program, argument, user = trigger.user);
    let mut words = trigger.program.split_whitespace();
    let Some(program) = words.next() else { return };
    let groups = accounts::groups_of(&trigger.user, trigger.gid);
    let user = ProgramUser { uid: trigger.uid, gid: trigger.gid, groups: &groups };
    let mut command = tokio::process::Command::from(user_program(Path::new("/proc/self/exe"), &user, program));
    command.args(words).arg(&argument).env("SPUR_CONF", config_file);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            return tracing::warn!(id = trigger.id, program, %error, "the program of a trigger does not start");
        }
    };
    let pid = child.id();
    match tokio::time::timeout(PATIENCE, child.wait()).await {
        Ok(Ok(status)) if status.success() => (),
        Ok(ended) => tracing::info!(id = trigger.id, program, ?ended, "the program of a trigger failed"),
        Err(_) => {
            tracing::warn!(id = trigger.id, program, "the program of a trigger takes too long and is killed");
            if let Some(pid) = pid {
                // SAFETY: a plain system call; the leader of that session is not reaped yet.
                unsafe { libc::kill(-(pid as i32), libc::SIGKILL) };
            }
            let _ = child.wait().await;
        }
    }
}

fn lock(running: &Mutex<BTreeSet<u32>>) -> std::sync::MutexGuard<'_, BTreeSet<u32>> {
    running.lock().expect("nobody panics while holding this lock")
}
