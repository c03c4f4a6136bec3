//! The state behind the journal: applies committed entries and publishes what readers see.
use std::sync::Arc;

use journal::Machine;
use model::command::Applied;
use model::loudness::DebugFlag;
use model::{Command, Entry, Event, JobId, Reject, Reply, codec};
use state::Cluster;
use tokio::sync::{broadcast, watch};

use crate::statistics::Statistics;

/// Events of one batch of entries, shared by all who listen.
pub type EventBatch = Arc<Vec<Event>>;

/// What readers hold: the newest snapshot, and what has happened since.
#[derive(Clone)]
pub struct Published {
    snapshots: watch::Receiver<Arc<Cluster>>,
    events: broadcast::Sender<EventBatch>,
    /// Words for those who watch a job; nobody remembers them.
    pub notices: broadcast::Sender<(JobId, String)>,
    pub statistics: Arc<Statistics>,
}

impl Published {
    /// The newest state; never blocks a writer.
    pub fn now(&self) -> Arc<Cluster> {
        self.snapshots.borrow().clone()
    }

    /// Wakes whenever the state has changed.
    pub fn changes(&self) -> watch::Receiver<Arc<Cluster>> {
        self.snapshots.clone()
    }

    pub fn events(&self) -> broadcast::Receiver<EventBatch> {
        self.events.subscribe()
    }
}

pub struct ClusterMachine {
    cluster: Cluster,
    snapshots: watch::Sender<Arc<Cluster>>,
    events: broadcast::Sender<EventBatch>,
    /// Of the batch in hand.
    pending: Vec<Event>,
    statistics: Arc<Statistics>,
}

impl ClusterMachine {
    pub fn new() -> (ClusterMachine, Published) {
        let cluster = Cluster::default();
        let (snapshots, reader) = watch::channel(Arc::new(cluster.clone()));
        let (events, _) = broadcast::channel(1024);
        let statistics = Arc::new(Statistics::default());
        let (notices, _) = broadcast::channel(64);
        let published =
            Published { snapshots: reader, events: events.clone(), notices, statistics: statistics.clone() };
        (ClusterMachine { cluster, snapshots, events, pending: Vec::new(), statistics }, published)
    }

    fn publish(&mut self) {
        self.snapshots.send_replace(Arc::new(self.cluster.clone()));
        let events = std::mem::take(&mut self.pending);
        if !events.is_empty() {
            // Nobody listening is fine.
            let _ = self.events.send(Arc::new(events));
        }
    }
}

impl Machine for ClusterMachine {
    type Reply = Result<Reply, Reject>;

    fn apply(&mut self, index: u64, entry: &[u8]) -> Result<Self::Reply, String> {
        let entry: Entry = codec::decode(entry)
            .map_err(|error| format!("entry {index} of the log was written by another release: {error}"))?;
        let Applied { reply, events } = state::apply(&mut self.cluster, &entry);
        if let Err(Reject::Internal(why)) = &reply {
            tracing::error!(index, why, command = shown(&entry.command), "a bug: the entry was not applied");
        }
        events.iter().for_each(tell);
        self.statistics.applied(&self.cluster, &events);
        self.pending.extend(events);
        knows_its_rules(&self.cluster)?;
        Ok(reply)
    }

    fn batch_applied(&mut self) {
        self.publish();
    }

    fn freeze(&self) -> Box<dyn FnOnce() -> Vec<u8> + Send> {
        let cluster = self.cluster.clone();
        Box::new(move || codec::encode(&cluster))
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), String> {
        let cluster = codec::decode(snapshot).map_err(|error| error.to_string())?;
        knows_its_rules(&cluster)?;
        self.cluster = cluster;
        self.publish();
        Ok(())
    }
}

/// Whoever goes on without knowing the rules comes to another state than the others.
fn knows_its_rules(cluster: &Cluster) -> Result<(), String> {
    let (adopted, known) = (cluster.rules(), state::rules::LATEST);
    if adopted <= known {
        return Ok(());
    }
    Err(format!(
        "this cluster has adopted rules of edition {adopted}, and this release knows {known}: start a later one"
    ))
}

/// Without what is secret of it: commands hide keys, scripts and environments, but a whole state is only bytes.
fn shown(command: &Command) -> String {
    match command {
        Command::Restore { state } => format!("Restore of {} bytes", state.len()),
        other => format!("{other:?}"),
    }
}

/// For those who want to follow what happens (DebugFlags).
fn tell(event: &Event) {
    const JOBS: &str = DebugFlag::TraceJobs.target();
    const STEPS: &str = DebugFlag::Steps.target();
    const BUFFERS: &str = DebugFlag::BurstBuffer.target();
    const NODES: &str = DebugFlag::NodeFeatures.target();
    const RESERVATIONS: &str = DebugFlag::Reservation.target();
    match event {
        Event::JobChanged { .. }
        | Event::JobSubmitted { .. }
        | Event::JobUpdated { .. }
        | Event::JobGone { .. }
        | Event::TimeUsed { .. } => tracing::debug!(target: JOBS, ?event),
        Event::StepChanged { .. } => tracing::debug!(target: STEPS, ?event),
        Event::BufferChanged { .. } => tracing::debug!(target: BUFFERS, ?event),
        Event::NodeChanged { .. } | Event::Reconfigured { .. } => tracing::debug!(target: NODES, ?event),
        Event::ReservationChanged { .. } => tracing::debug!(target: RESERVATIONS, ?event),
    }
}

#[cfg(test)]
mod tests {
    use model::{Caller, Timestamp};

    use super::*;

    fn entry(command: Command) -> Vec<u8> {
        codec::encode(&Entry { at: Timestamp::from_secs(1), by: Caller::SYSTEM, command })
    }

    #[test]
    fn what_another_release_wrote_is_not_passed_over() {
        let (mut machine, _published) = ClusterMachine::new();
        machine.apply(1, &entry(Command::Tick)).unwrap().unwrap();
        let unknown = machine.apply(2, b"\x81\xa5Brew!\xc0").unwrap_err();
        assert!(unknown.contains("entry 2 of the log was written by another release"), "{unknown}");
    }

    #[test]
    fn who_does_not_know_the_rules_stops() {
        let (mut machine, _published) = ClusterMachine::new();
        machine.apply(1, &entry(Command::AdoptRules { edition: state::rules::LATEST })).unwrap().unwrap();
        let (mut younger, _published) = ClusterMachine::new();
        younger.restore(&machine.freeze()()).unwrap();
        let unknown = machine.apply(2, &entry(Command::AdoptRules { edition: state::rules::LATEST + 1 })).unwrap_err();
        assert!(unknown.contains("start a later one"), "{unknown}");
        assert_eq!(younger.restore(&machine.freeze()()), Err(unknown));
    }
}
