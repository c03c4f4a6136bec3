//! The only writer: every change of the state is proposed here, stamped with the time and the caller.
use journal::{DiskRoom, Journal, ProposeError};
use model::command::{Blob, RequestId};
use model::{Caller, Command, Entry, JobSpec, Reject, Reply, Timestamp, codec};
use tokio::sync::watch;

use crate::clock::Clock;
use crate::machine::Published;

pub struct Door {
    journal: Journal<Result<Reply, Reject>>,
    published: Published,
    clock: Clock,
}

impl Door {
    pub fn new(journal: Journal<Result<Reply, Reject>>, published: Published) -> Door {
        let clock = Clock::from(published.now().now());
        Door { journal, published, clock }
    }

    /// Resolves when the command is durable and applied. Content is judged here, so that no call can forget it.
    pub async fn propose(&self, by: Caller, command: Command) -> Result<Reply, Refusal> {
        state::judge_content(&self.published.now(), by, &command).map_err(Refusal::Rejected)?;
        self.write(by, command).await
    }

    async fn write(&self, by: Caller, command: Command) -> Result<Reply, Refusal> {
        let entry = Entry { at: self.stamp(), by, command };
        let bytes = codec::encode(&entry);
        let applied = match is_vital(&entry.command) {
            true => self.journal.propose_vital(bytes).await,
            false => self.journal.propose(bytes).await,
        };
        let unwritten = |error| match error {
            ProposeError::DiskFull => Refusal::NotWritten(format!("{DISK_FULL}: {NOTHING_CHANGES}")),
            ProposeError::WaitsForRoom => Refusal::NotWritten(format!("{DISK_FULL}: this is done when there is room")),
            other => Refusal::NotWritten(other.to_string()),
        };
        applied.map_err(unwritten)?.map_err(Refusal::Rejected)
    }

    /// As `propose`; a request that has an id may come again and is carried out once.
    pub async fn propose_once(
        &self,
        by: Caller,
        command: Command,
        request: Option<RequestId>,
    ) -> Result<Reply, Refusal> {
        self.propose(by, once(command, request)).await
    }

    /// Content that the state already has is not written to the log again.
    pub async fn submit(
        &self,
        by: Caller,
        specs: Vec<JobSpec>,
        blobs: Vec<Blob>,
        request: Option<RequestId>,
    ) -> Result<Reply, Refusal> {
        state::judge_submission(&self.published.now(), by, &specs, &blobs).map_err(Refusal::Rejected)?;
        let unknown = self.unknown(&blobs);
        match self.write(by, once(submission(specs.clone(), unknown), request)).await {
            // It was forgotten between the look and the log.
            Err(Refusal::Rejected(Reject::MissingBlob)) => {
                self.write(by, once(submission(specs, blobs), request)).await
            }
            other => other,
        }
    }

    pub fn now(&self) -> Timestamp {
        self.stamp()
    }

    /// How much room the log's disk has.
    pub fn room(&self) -> watch::Receiver<DiskRoom> {
        self.journal.room()
    }

    fn unknown(&self, blobs: &[Blob]) -> Vec<Blob> {
        let cluster = self.published.now();
        blobs.iter().filter(|blob| cluster.blob(blob.id).is_none()).cloned().collect()
    }

    fn stamp(&self) -> Timestamp {
        self.clock.now()
    }
}

/// What may use up the reserve of a full disk: it ends jobs or tells of their end, or makes the state smaller.
fn is_vital(command: &Command) -> bool {
    match command {
        Command::Once { command, .. } => is_vital(command),
        Command::Begin { .. }
        | Command::Cancel { .. }
        | Command::CancelStep { .. }
        | Command::Complete { .. }
        | Command::DropBuffer { .. }
        | Command::DutyDone { .. }
        | Command::Exited(_)
        | Command::NodeLost { .. }
        | Command::NoteStopped { .. }
        | Command::Recorded { .. }
        | Command::RegisterNode { .. }
        | Command::Staged { .. }
        | Command::Tick => true,
        _ => false,
    }
}

fn once(command: Command, request: Option<RequestId>) -> Command {
    match request {
        Some(request) => Command::Once { request, command: Box::new(command) },
        None => command,
    }
}

/// One job, or the components of a heterogeneous one.
pub fn submission(mut specs: Vec<JobSpec>, blobs: Vec<Blob>) -> Command {
    match specs.len() {
        1 => Command::Submit { spec: Box::new(specs.remove(0)), blobs },
        _ => Command::SubmitTogether { specs, blobs },
    }
}

/// What callers hear while there is no room for what they ask begins so.
const DISK_FULL: &str = "The controller's disk is full";
const NOTHING_CHANGES: &str = "nothing is changed until there is room (jobs go on, and can be cancelled)";

/// A command was not written because there is no room; asking again at once is in vain.
pub fn is_disk_full(why: &str) -> bool {
    why.starts_with(DISK_FULL)
}

/// Why a command has no reply.
#[derive(Debug)]
pub enum Refusal {
    /// The state said no.
    Rejected(Reject),
    /// The log did not take it, or it is not known whether it did.
    NotWritten(String),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Rejected(reject) => reject.fmt(f),
            Refusal::NotWritten(why) => f.write_str(why),
        }
    }
}
