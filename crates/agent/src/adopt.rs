//! What an agent finds in its spool when it starts: runs that go on, runs that have ended, runs of an earlier life of the machine.
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use model::ExitStatus;
use tokio::net::UnixStream;

use crate::protocol::RunId;
use crate::run;
use crate::spool::{Record, Spool, socket_name};
use crate::supervisor::through;
use crate::supervisor_words::{SupervisorWords, WordsToWrite};
use crate::table::{Agent, Entry};

pub fn adopt_all(agent: &Arc<Agent>) -> io::Result<()> {
    for record in agent.spool.records()? {
        adopt(agent, record);
    }
    Ok(())
}

fn adopt(agent: &Arc<Agent>, record: Record) {
    let (run, slot) = (record.run, record.slot);
    let mut table = agent.table();
    if record.boot != agent.spool.boot {
        let exited = record.result.unwrap_or_else(|| {
            tracing::warn!(%run, "lost in a restart of the machine");
            run::conclude(agent, slot, run, ExitStatus::signaled(libc::SIGKILL as u8), None)
        });
        return table.note_exit(slot, exited);
    }
    if !agent.spool.is_supervised(slot)
        && let Some(exited) = record.result
    {
        agent.spool.forget_socket(slot);
        return table.note_exit(slot, exited);
    }
    let (to, words) = SupervisorWords::new();
    table.add(run, Entry::new(record.uid, slot, to));
    if let Some(exited) = record.result {
        table.note_exit(slot, exited);
    }
    drop(table);
    tokio::spawn(reconnect(agent.clone(), run, slot, words));
}

/// The supervisor listens as soon as it has seen that its agent is gone.
async fn reconnect(agent: Arc<Agent>, run: RunId, slot: u32, words: WordsToWrite) {
    let mut pause = Duration::from_millis(1);
    loop {
        match connect(&agent.spool, slot) {
            Ok(stream) => {
                tracing::info!(%run, "found again");
                // It has seen an agent die: it does not stand by for another.
                run::attend(&agent, run, &stream, words, Vec::new()).await;
                return;
            }
            Err(_) if !agent.spool.is_supervised(slot) => {
                agent.spool.forget_socket(slot);
                return run::gone(&agent, run).await;
            }
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}

fn connect(spool: &Spool, slot: u32) -> io::Result<UnixStream> {
    let dir = File::open(spool.runs_dir())?;
    let stream = std::os::unix::net::UnixStream::connect(through(dir.as_fd(), &socket_name(slot)))?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
