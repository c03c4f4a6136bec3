//! One run as the agent sees it: its birth, its supervisor's line, its end.
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::ExitStatus;
use model::agent::Launch;
use model::command::Exited;
use model::time::Span;
use tokio::net::UnixStream;

use crate::cgroup::Cgroup;
use crate::frame::{self, Incoming};
use crate::protocol::{Birth, BirthTrade, FromSupervisor, RunId, Start, ToSupervisor};
use crate::standby::Line;
use crate::supervisor::TAG;
use crate::supervisor_words::{SupervisorWords, WordsToWrite};
use crate::sys;
use crate::table::{Agent, Entry};
use crate::{leftovers, processes, spool, unkillable};

/// As Slurm says it of a node whose daemon could not start a job.
pub const LAUNCH_FAILED: &str = "batch job complete failure";

/// Why there is no run.
#[derive(Debug)]
pub enum NotLaunched {
    /// It was to end before it began.
    Ended(String),
    /// Nothing could be noted of it, nor of any other.
    Spool(String),
}

/// Starts a run, once. An error refuses it: it must never be started here.
pub fn launch(agent: &Arc<Agent>, launch: Launch) -> Result<(), NotLaunched> {
    let run = RunId::of(&launch);
    let mut table = agent.table();
    if table.killed.contains(run) {
        return Err(NotLaunched::Ended(format!("run {run} was ended before it was launched")));
    }
    if table.knows(run) {
        return Ok(());
    }
    let spec = &launch.job_spec;
    let own_uid = sys::own_uid();
    let uid = spec.uid;
    let (to, words) = SupervisorWords::new();
    let (slot, record) = loop {
        let slot = table.slots.pick();
        match agent.spool.create(slot, run, uid) {
            Ok(record) => break (slot, record),
            // Left for as long as this agent lives.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                table.slots.hold(slot);
                table.slots.let_go(slot);
                return Err(NotLaunched::Spool(format!("cannot write to the spool: {error}")));
            }
        }
    };
    // From here on the run exists; its end, however early, is reported.
    table.add(run, Entry::new(uid, slot, to));
    if own_uid != 0 && own_uid != uid {
        let why = format!("this agent runs as uid {own_uid} and cannot run jobs of uid {uid}");
        drop(record);
        table.note_exit(slot, conclude(agent, slot, run, ExitStatus::exited(1), Some(why)));
        table.remove(run);
        return Ok(());
    }
    let birth = Birth { uid, gid: spec.gid, user: spec.user.clone(), trade: BirthTrade::Supervisor };
    let start = Start {
        launch,
        node: agent.options.node.clone(),
        spool_dir: agent.spool.dir().display().to_string(),
        cgroup: agent.cgroup.as_ref().map(|path| path.display().to_string()),
        group: crate::daemon::cgroup_name(&agent.options, &agent.spool),
        slot,
        config_file: agent.options.config_file.as_ref().map(|path| path.display().to_string()),
        tag: agent.tag(run),
        unkillable_timeout: Span(agent.options.unkillable_timeout.as_micros() as u64),
    };
    let first = frame::encode(&ToSupervisor::Start(Box::new(start)));
    let (line, rest) = match hand_over(agent, birth, first, record.into()) {
        Ok(handed) => handed,
        Err(error) => {
            let why = format!("cannot make a socket: {error}");
            table.note_exit(slot, conclude(agent, slot, run, ExitStatus::exited(1), Some(why)));
            table.remove(run);
            return Ok(());
        }
    };
    drop(table);
    agent.launched.send_modify(|count| *count += 1);
    tokio::spawn(see_through(agent.clone(), run, line, words, rest));
    Ok(())
}

/// To a supervisor that stands by, or else to a new one: its line, and what has not gone through it yet.
fn hand_over(agent: &Agent, birth: Birth, mut first: Vec<u8>, record: OwnedFd) -> io::Result<(Line, Vec<u8>)> {
    loop {
        let waiting = agent.standby.take(&birth);
        let is_new = waiting.is_none();
        let line = match waiting {
            Some(line) => line,
            None => Line::to_newborn(birth.clone(), &agent.launcher)?,
        };
        // Straight away: the runtime would first have to learn that a new socket takes bytes.
        match sys::send_with_fds(line.stream.as_fd(), &first, &[record.as_raw_fd()]) {
            Ok(sent) => {
                first.drain(..sent);
                return Ok((line, first));
            }
            Err(error) if is_new => return Err(error),
            // Ended while it stood by: the next.
            Err(_) => {}
        }
    }
}

/// From the hand-over to the end; a supervisor that can have another run is kept for it.
async fn see_through(agent: Arc<Agent>, run: RunId, line: Line, words: WordsToWrite, rest: Vec<u8>) {
    if attend(&agent, run, &line.stream, words, rest).await == Last::StandsBy {
        agent.standby.keep(line);
    }
}

/// How a supervisor took its leave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Last {
    Gone,
    StandsBy,
}

/// Carries messages to and from a supervisor until it is gone, or has let go of the run.
pub async fn attend(
    agent: &Arc<Agent>,
    run: RunId,
    stream: &UnixStream,
    mut words: WordsToWrite,
    mut outgoing: Vec<u8>,
) -> Last {
    let mut last = Last::Gone;
    let mut incoming = Incoming::default();
    let mut buffer = vec![0; 16 * 1024];
    let mut sent = 0;
    // A message that is half-way out would run into the next run's first.
    while last == Last::Gone || sent < outgoing.len() {
        tokio::select! {
            biased;
            ready = stream.writable(), if sent < outgoing.len() => {
                if ready.is_err() {
                    break;
                }
                match stream.try_write(&outgoing[sent..]) {
                    Ok(length) => sent += length,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // Its last words may still be there to read.
                    Err(_) => sent = outgoing.len(),
                }
                if sent == outgoing.len() {
                    outgoing = Vec::new();
                    sent = 0;
                }
            }
            ready = stream.readable() => {
                if ready.is_err() {
                    break;
                }
                match stream.try_read(&mut buffer) {
                    Ok(0) => break,
                    Ok(length) => incoming.push(&buffer[..length]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    Err(_) => break,
                }
                while let Ok(Some(message)) = incoming.take() {
                    match message {
                        FromSupervisor::StandsBy => last = Last::StandsBy,
                        message => hear(agent, run, message),
                    }
                }
            }
            // One at a time: what the supervisor does not take waits in its bounded queue.
            Some(message) = words.next(), if outgoing.is_empty() => frame::append(&mut outgoing, &message),
        }
    }
    gone(agent, run).await;
    last
}

fn hear(agent: &Agent, run: RunId, message: FromSupervisor) {
    let mut table = agent.table();
    match message {
        FromSupervisor::Ended(exited) => {
            if let Some(slot) = table.runs.get(&run).map(|entry| entry.slot) {
                table.note_exit(slot, exited);
            }
        }
        FromSupervisor::Done { number } => {
            if let Some(waiter) = table.runs.get_mut(&run).and_then(|entry| entry.on_done.remove(&number)) {
                let _ = waiter.send(());
            }
        }
        FromSupervisor::Measured { number, run: measured } => {
            if let Some(entry) = table.runs.get_mut(&run) {
                entry.measured(number, *measured);
            }
        }
        FromSupervisor::Step(event) => {
            if let Some(entry) = table.runs.get_mut(&run) {
                entry.tell_clients(&event);
            }
        }
        FromSupervisor::InputTaken { bytes } => {
            if let Some(entry) = table.runs.get(&run) {
                entry.to.input_taken(bytes);
            }
        }
        FromSupervisor::StandsBy => {}
    }
}

/// The supervisor's line is closed: it has ended, or was ended before its time.
pub async fn gone(agent: &Arc<Agent>, run: RunId) {
    let Some((slot, has_ended)) = agent.table().runs.get(&run).map(|entry| (entry.slot, entry.has_ended)) else {
        return;
    };
    if !has_ended {
        let record = agent.spool.read(slot).ok().flatten();
        let pid = record.as_ref().and_then(|record| record.pid);
        let exited = match record.and_then(|record| record.result) {
            Some(exited) => exited,
            None => {
                tracing::warn!(%run, "the supervisor is gone before its run; clearing what is left");
                let held = agent.clone();
                let cleared = tokio::task::spawn_blocking(move || clear_leftovers(&held, run, slot)).await;
                let left = cleared.unwrap_or_else(|error| {
                    tracing::error!(%run, %error, "clearing failed");
                    Vec::new()
                });
                let why = pid.is_none().then(|| "the supervisor could not be started".to_owned());
                match left.is_empty() {
                    true => conclude(agent, slot, run, ExitStatus::signaled(libc::SIGKILL as u8), why),
                    false => unkillable::given_up(agent, run, slot, &left),
                }
            }
        };
        agent.table().note_exit(slot, exited);
    }
    agent.table().remove(run);
}

/// Writes the result of a run that has no supervisor any more.
pub fn conclude(agent: &Agent, slot: u32, run: RunId, exit: ExitStatus, launch_error: Option<String>) -> Exited {
    let exited = Exited {
        job: run.job,
        attempt: run.attempt,
        step: run.step,
        node: agent.options.node.clone(),
        exit,
        out_of_memory: false,
        launch_error,
        drained_for: String::new(),
        usage: None,
    };
    if let Err(error) = agent.spool.conclude(slot, &exited) {
        tracing::error!(%run, %error, "cannot write the result to the spool");
    }
    exited
}

/// Ends every process of a run that has lost its supervisor; returns when none is left, or what cannot be ended.
fn clear_leftovers(agent: &Agent, run: RunId, slot: u32) -> Vec<i32> {
    let until = Instant::now() + agent.options.unkillable_timeout;
    let cgroup = agent.cgroup.as_ref().and_then(|parent| Cgroup::open(parent, &spool::slot_name(slot)).ok());
    let entry = format!("{}={}", TAG, agent.tag(run));
    let mut pause_millis = 1;
    while !leftovers::kill(&entry, cgroup.as_ref()) {
        // Nobody tells when a process that is not our child has gone.
        std::thread::sleep(Duration::from_millis(pause_millis));
        pause_millis = (pause_millis * 2).min(100);
        if Instant::now() >= until {
            let mut left = cgroup.as_ref().map(Cgroup::processes).unwrap_or_default();
            left.extend(processes::marked(&entry));
            left.sort_unstable();
            left.dedup();
            return left;
        }
    }
    Vec::new()
}
