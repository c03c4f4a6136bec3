//! Ending every run of an agent that has stopped: what `spur down` does last.
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use model::agent::KillNote;
use model::time::Span;

use crate::protocol::{FromSupervisor, ToSupervisor};
use crate::spool::{Record, Spool, slot_name, socket_name};
use crate::supervisor::{TAG, through};
use crate::{Options, bounds, cgroup, daemon, frame, hooks, leftovers, staging};

/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Kills what runs and gives how many runs that were. The agent itself must have been stopped before.
pub fn clear(options: &Options) -> anyhow::Result<usize> {
    if !options.spool_dir.exists() {
        return Ok(0);
    }
    let spool = Spool::open(&options.spool_dir).context("the agent must be stopped first")?;
    let until = Instant::now() + PATIENCE;
    let parent = cgroup::find_parent(&daemon::cgroup_name(options, &spool));
    let mut running = spool.records()?;
    running.retain(|record| record.result.is_none());
    // Also the supervisors of steps that have ended and wait for a client.
    for slot in spool.slots()? {
        while spool.is_supervised(slot) && Instant::now() < until {
            if end(&spool, slot).is_err() {
                // It has not seen yet that the agent is gone, or is just ending.
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
    hooks::end_all(options);
    staging::end_all(options, parent.as_deref());
    running.iter().for_each(|record| sweep(parent.as_deref(), &spool, record, until));
    if let Some(parent) = parent {
        cgroup::remove_all(&parent);
    }
    bounds::remove_all(&daemon::cgroup_name(options, &spool));
    Ok(running.len())
}

fn end(spool: &Spool, slot: u32) -> std::io::Result<()> {
    let dir = File::open(spool.runs_dir())?;
    let mut stream = UnixStream::connect(through(dir.as_fd(), &socket_name(slot)))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(&frame::encode(&ToSupervisor::Kill { kill_wait: Span(0), note: KillNote::Cancelled }))?;
    // A step's supervisor stays until it is released or has said all.
    let mut incoming = frame::Incoming::default();
    let mut buffer = [0; 4096];
    loop {
        stream.write_all(&frame::encode(&ToSupervisor::Release))?;
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            length => incoming.push(&buffer[..length]),
        }
        while let Ok(Some(message)) = incoming.take() {
            if let FromSupervisor::Ended(_) = message {
                stream.write_all(&frame::encode(&ToSupervisor::Release))?;
            }
        }
    }
}

/// For runs whose supervisor was gone, or did not obey.
fn sweep(cgroups: Option<&Path>, spool: &Spool, record: &Record, until: Instant) {
    let entry = format!("{TAG}={}:{}", spool.dir().display(), record.run);
    let cgroup = cgroups.and_then(|parent| cgroup::Cgroup::open(parent, &slot_name(record.slot)).ok());
    while Instant::now() < until {
        if leftovers::kill(&entry, cgroup.as_ref()) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
