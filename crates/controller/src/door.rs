//! The only writer: every change of the state is proposed here, stamped with the time and the caller.
use std::sync::Arc;

use journal::{DiskRoom, Journal, ProposeError};
use model::command::{Blob, RequestId};
use model::{Caller, Command, Entry, JobId, JobSpec, Reject, Reply, Timestamp, codec, error_texts, text_bounds};
use state::{Cluster, JobHome};
use tokio::sync::watch;

use crate::api::authority;
use crate::clock::Clock;
use crate::job_quota::JobQuota;
use crate::machine::Published;
use crate::names::Names;
use crate::text_quota::TextQuota;

pub struct Door {
    journal: Journal<Result<Reply, Reject>>,
    published: Published,
    names: Arc<Names>,
    clock: Clock,
    quota: TextQuota,
    job_quota: JobQuota,
}

impl Door {
    pub fn new(journal: Journal<Result<Reply, Reject>>, published: Published, names: Arc<Names>) -> Door {
        let clock = Clock::from(published.now().now());
        Door { journal, published, names, clock, quota: TextQuota::default(), job_quota: JobQuota::default() }
    }

    /// Resolves when the command is durable and applied. Content, texts, work, and in whose name things are done, are judged here,
    /// so that no call can forget it.
    pub async fn propose(&self, by: Caller, command: Command) -> Result<Reply, Refusal> {
        if state::acts_as_another(&self.published.now(), by.uid, &command) {
            self.may_act_as_another(by)?;
        }
        let by = authority::as_applied(&self.published.now(), by, &self.names, &command);
        state::judge_content(&self.published.now(), by, &command).map_err(Refusal::Rejected)?;
        state::judge_machines(&command).map_err(Refusal::Rejected)?;
        let size_bytes = self.judge(by, &command).map_err(Refusal::Rejected)?;
        let of_step = job_of_step(&command);
        let answer = self.write(by, command).await;
        if let (Some(job), Ok(_)) = (of_step, &answer) {
            self.quota.note(by.uid, job, size_bytes);
        }
        answer
    }

    /// A command's texts are short and clean, its lists cost little, and the user does not hold too much already.
    /// The controller's own commands, and what nodes report, are no user's. Gives how much text and content it brings.
    fn judge(&self, by: Caller, command: &Command) -> Result<usize, Reject> {
        if !command.is_from_users() {
            return Ok(0);
        }
        let cluster = self.published.now();
        state::owners_of_submission(command).into_iter().try_for_each(|uid| self.judge_owner(&cluster, uid))?;
        let tally = text_bounds::judge(command)?;
        state::judge_work(&cluster, command)?;
        let brought = brought(command);
        let environments = if brought.is_empty() { Vec::new() } else { state::environments(command) };
        for blob in brought.iter().filter(|blob| environments.contains(&blob.id)) {
            text_bounds::judge_environment(&blob.content)?;
        }
        let content_bytes: usize = brought.iter().map(|blob| blob.content.len()).sum();
        let size_bytes = tally.text_bytes + content_bytes;
        self.quota.judge(&cluster, by, size_bytes)?;
        self.job_quota.judge(&cluster, by, command)?;
        Ok(size_bytes)
    }

    /// Daemons that are not root's run nobody else's jobs, so these are refused before they wait for a node. A
    /// controller that is not root's cannot tell before an agent has said whose it is.
    fn judge_owner(&self, cluster: &Cluster, uid: u32) -> Result<(), Reject> {
        // SAFETY: geteuid cannot fail.
        let own = unsafe { libc::geteuid() };
        let is_home = match state::home_of_jobs_of(cluster, uid) {
            JobHome::SomeNode => true,
            JobHome::NoNode => false,
            JobHome::Unknown => own == 0 || own == uid,
        };
        if is_home {
            return Ok(());
        }
        let told =
            format!("the nodes of this cluster run no jobs of {}: their daemons are not root's", self.names.user(uid));
        Err(Reject::BySite { code: error_texts::ACCESS_DENIED, told })
    }

    fn may_act_as_another(&self, by: Caller) -> Result<(), Refusal> {
        match authority::may_act_as_another(&self.published.now(), by, &self.names) {
            true => Ok(()),
            false => Err(Refusal::Rejected(Reject::NotPermitted)),
        }
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
        if state::submits_as_another(by.uid, &specs) {
            self.may_act_as_another(by)?;
        }
        state::judge_submission(&self.published.now(), by, &specs, &blobs).map_err(Refusal::Rejected)?;
        let unknown = self.unknown(&blobs);
        let command = once(submission(specs.clone(), unknown), request);
        let size_bytes = self.judge(by, &command).map_err(Refusal::Rejected)?;
        let answer = match self.write(by, command).await {
            // It was forgotten between the look and the log.
            Err(Refusal::Rejected(Reject::MissingBlob)) => {
                self.write(by, once(submission(specs, blobs), request)).await
            }
            other => other,
        };
        if let Ok(Reply::Submitted(job)) = &answer {
            self.quota.note(by.uid, *job, size_bytes);
        }
        answer
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

/// The job in which a step is created.
fn job_of_step(command: &Command) -> Option<JobId> {
    match command {
        Command::Once { command, .. } => job_of_step(command),
        Command::CreateStep { job, .. } => Some(*job),
        Command::CreateStepTogether { parts, .. } => parts.first().map(|(job, _)| *job),
        _ => None,
    }
}

/// Content that comes along.
fn brought(command: &Command) -> &[Blob] {
    match command {
        Command::Once { command, .. } => brought(command),
        Command::Submit { blobs, .. }
        | Command::SubmitTogether { blobs, .. }
        | Command::CreateStep { blobs, .. }
        | Command::CreateStepTogether { blobs, .. } => blobs,
        _ => &[],
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
