//! Answering what commands ask about this node's runs.
use std::sync::Arc;
use std::time::Duration;

use model::ask::{Answer, LiveRun, Question};
use wire::peer::Peer;

use crate::audited::AuditedCaller;
use crate::staging;
use crate::sys;
use crate::table::Agent;
use crate::writing;

/// A supervisor that does not answer in this time is left out.
const PATIENCE: Duration = Duration::from_secs(3);

/// Of what changes nothing, the audit has what was refused; of a file that comes in pieces, the first.
pub async fn answer(agent: &Arc<Agent>, audited: &AuditedCaller, caller: Peer, question: Question) -> Answer {
    let (about, is_change) = match &question {
        Question::Write(piece) => (format!("writes {}", piece.path), piece.offset == 0),
        Question::MakeDirectory { path } => (format!("makes directory {path}"), true),
        Question::Runs { .. } => ("runs".to_owned(), false),
        Question::Moved { home, .. } | Question::MoveErrors { home } => (format!("{home:?}"), false),
    };
    let answer = answer_to(agent, caller, question).await;
    match &answer {
        Answer::Refused { why } => agent.audit.refused(audited, &about, why),
        _ if is_change => agent.audit.allowed(audited, &about),
        _ => {}
    }
    answer
}

async fn answer_to(agent: &Arc<Agent>, caller: Peer, question: Question) -> Answer {
    match question {
        Question::Runs { job } => {
            let is_meant = |id: &crate::protocol::RunId| job.is_none_or(|job| job == id.job);
            Answer::Runs(live_runs(agent, caller, is_meant).await)
        }
        Question::Write(piece) => written(writing::write(agent, caller, piece).await),
        Question::MakeDirectory { path } => written(writing::make_directory(agent, caller, path).await),
        Question::Moved { home, from } => {
            blocking(agent, move |agent| staging::moved(agent, caller, &home, from)).await
        }
        Question::MoveErrors { home } => blocking(agent, move |agent| staging::errors(agent, caller, &home)).await,
    }
}

fn written(done: Result<(), String>) -> Answer {
    match done {
        Ok(()) => Answer::Written,
        Err(why) => Answer::Refused { why },
    }
}

/// Answers that are on a disk.
async fn blocking(agent: &Arc<Agent>, answer: impl FnOnce(&Agent) -> Answer + Send + 'static) -> Answer {
    let agent = agent.clone();
    let answered = tokio::task::spawn_blocking(move || answer(&agent)).await;
    answered.unwrap_or_else(|error| Answer::Refused { why: error.to_string() })
}

async fn live_runs(agent: &Agent, caller: Peer, is_meant: impl Fn(&crate::protocol::RunId) -> bool) -> Vec<LiveRun> {
    let mut waits = Vec::new();
    {
        let mut table = agent.table();
        let number = table.next_question();
        let is_admin = [0, sys::own_uid()].contains(&caller.uid);
        for (id, entry) in table.runs.iter_mut() {
            if entry.has_ended || !is_meant(id) || !(is_admin || caller.uid == entry.uid) {
                continue;
            }
            waits.extend(entry.measure(number));
        }
    }
    let mut runs = Vec::new();
    for wait in waits {
        if let Ok(Ok(run)) = tokio::time::timeout(PATIENCE, wait).await {
            runs.push(run);
        }
    }
    runs.sort_by_key(|run| (run.job, run.step));
    runs
}
