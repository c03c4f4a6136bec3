//! The state behind the journal: applies committed entries and publishes what readers see.
use std::sync::Arc;

use journal::Machine;
use model::command::Applied;
use model::loudness::DebugFlag;
use model::{Entry, Event, JobId, Reject, Reply, codec};
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

    fn apply(&mut self, index: u64, entry: &[u8]) -> Self::Reply {
        let entry: Entry = match codec::decode(entry) {
            Ok(entry) => entry,
            Err(error) => {
                tracing::error!(index, %error, "an entry of the log cannot be read; it changes nothing");
                return Err(Reject::Internal(format!("unreadable entry: {error}")));
            }
        };
        let Applied { reply, events } = state::apply(&mut self.cluster, &entry);
        if let Err(Reject::Internal(why)) = &reply {
            tracing::error!(index, why, command = ?entry.command, "a bug: the entry was not applied");
        }
        events.iter().for_each(tell);
        self.statistics.applied(&self.cluster, &events);
        self.pending.extend(events);
        reply
    }

    fn batch_applied(&mut self) {
        self.publish();
    }

    fn freeze(&self) -> Box<dyn FnOnce() -> Vec<u8> + Send> {
        let cluster = self.cluster.clone();
        Box::new(move || codec::encode(&cluster))
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), String> {
        self.cluster = codec::decode(snapshot).map_err(|error| error.to_string())?;
        self.publish();
        Ok(())
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
