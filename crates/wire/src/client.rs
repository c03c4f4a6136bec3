//! The controller as commands see it: nouns in, nouns out.
use std::sync::atomic::{AtomicBool, Ordering};

use model::accounts::{Accounts, Change, Standing};
use model::audit::{AuditPage, AuditQuery};
use model::chronicle::Chronicle;
use model::command::{Blob, JobResult};
use model::config::Sockets;
use model::diagnosis::Diagnosis;
use model::history::{AmendRequest, HistoryQuery};
use model::members::{Members, Wish};
use model::request::{BurstPage, JobFilter, JobsPage, LicenseView, NodeView, SignalRequest, StagePage};
use model::trust::{JoinRequest, Joined, Role, TokensRequest, TokensView};
use model::why::Why;
use model::{
    Command, Config, JobId, JobRef, JobSpec, NodeName, Reply, Reservation, StepId, Timestamp, codec, plain_text,
};
use tokio_stream::{Stream, StreamExt};
use tonic::transport::Channel;

use crate::channel::MAX_MESSAGE_BYTES;
use crate::history::Pages;
use crate::pages::{nouns, whole};
use crate::proto::controller_client::ControllerClient;
use crate::proto::{
    AuditRequest, BlobRequest, CommandRequest, DiagnoseRequest, JobsRequest, Nothing, PingReply,
    SignalRequest as SignalMessage, StagingRequest, SubmitRequest, WhyRequest,
};
use crate::reach::Reach;
use crate::refusal::CallError;

/// A connection to the controller.
#[derive(Clone)]
pub struct Controller {
    pub(crate) client: ControllerClient<Reach>,
    pub(crate) is_patient: bool,
}

/// An answer in pieces that breaks off more often than this is given up.
pub(crate) const BREAKS_MAX: u32 = 5;

/// What the controller says of itself and the cluster.
pub struct Configuration {
    pub config: Config,
    pub now: Timestamp,
    pub started: Timestamp,
    pub version: String,
    pub next_job: u32,
    /// Where other machines reach controllers.
    pub controllers: Vec<String>,
    /// The mark of the cluster's authority; empty: this cluster is one machine.
    pub authority: Vec<u8>,
    /// How much its log says.
    pub loudness: model::loudness::Loudness,
}

/// What a submission came to.
pub struct Submitted {
    pub job: JobId,
    /// Of a test: what would happen.
    pub text: String,
    /// What the site says to the user.
    pub told: String,
}

impl Controller {
    /// One socket, or all those where a controller may be asked. Outside an event loop, and where [`Sockets::is_lone`], calls block.
    pub async fn connect(sockets: impl Into<Sockets>) -> Result<Self, CallError> {
        Ok(Controller::by(Reach::open(&sockets.into()).await?))
    }

    /// Over a connection that was made already.
    pub fn over(channel: Channel) -> Self {
        Controller::by(Reach::Direct(channel))
    }

    fn by(reach: Reach) -> Self {
        let is_patient = matches!(reach, Reach::Patient(_));
        let client = ControllerClient::new(reach)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        Controller { client, is_patient }
    }

    pub async fn join(&mut self, request: &JoinRequest) -> Result<Joined, CallError> {
        let request = CommandRequest { command: codec::encode(request).into() };
        read(&self.client.join(request).await?.into_inner().reply)
    }

    /// A token for a machine that is to join, and where controllers are reached.
    pub async fn make_token(&mut self, role: Role) -> Result<(String, Vec<String>), CallError> {
        let request = CommandRequest { command: codec::encode(&role).into() };
        let reply = self.client.make_token(request).await?.into_inner();
        Ok((reply.token, reply.controllers))
    }

    /// For the caller unless somebody is named; 0: it lives as long as usual.
    pub async fn user_token(&mut self, user: &str, lifespan_secs: u64) -> Result<String, CallError> {
        let request = crate::proto::UserTokenRequest { user: user.to_owned(), lifespan_secs };
        Ok(self.client.user_token(request).await?.into_inner().token)
    }

    pub async fn change_tokens(&mut self, asked: &TokensRequest) -> Result<TokensView, CallError> {
        let request = CommandRequest { command: codec::encode(asked).into() };
        let reply = self.client.change_tokens(request).await?.into_inner();
        codec::decode(&reply.reply).map_err(|error| CallError::Other(error.to_string()))
    }

    pub async fn remove_node(&mut self, node: &NodeName) -> Result<(), CallError> {
        self.client.remove_node(CommandRequest { command: codec::encode(node).into() }).await?;
        Ok(())
    }

    pub async fn submit(&mut self, spec: &JobSpec, blobs: &[Blob]) -> Result<JobId, CallError> {
        Ok(self.submit_together(std::slice::from_ref(spec), blobs).await?.job)
    }

    /// The components of a heterogeneous job, or the one job; the id names the whole.
    pub async fn submit_together(&mut self, specs: &[JobSpec], blobs: &[Blob]) -> Result<Submitted, CallError> {
        let reply = self.client.submit(submission(specs, blobs, false)).await?.into_inner();
        Ok(Submitted { job: JobId(reply.job), text: reply.text, told: reply.told })
    }

    /// Says what would happen, submits nothing.
    pub async fn test_submit(&mut self, specs: &[JobSpec], blobs: &[Blob]) -> Result<Submitted, CallError> {
        let reply = self.client.submit(submission(specs, blobs, true)).await?.into_inner();
        Ok(Submitted { job: JobId(reply.job), text: reply.text, told: reply.told })
    }

    /// Gives one command of the log; each kind has its own call on the wire.
    pub async fn command(&mut self, command: Command) -> Result<Reply, CallError> {
        let request = CommandRequest { command: codec::encode(&command).into() };
        let client = &mut self.client;
        let reply = match command {
            Command::Cancel { .. } => client.cancel(request).await?,
            Command::Complete { .. } => client.complete(request).await?,
            Command::Hold { .. } => client.hold(request).await?,
            Command::Release { .. } => client.release(request).await?,
            Command::Requeue { .. } => client.requeue(request).await?,
            Command::Suspend { .. } => client.suspend(request).await?,
            Command::Resume { .. } => client.resume(request).await?,
            Command::UpdateJob { .. } => client.update_job(request).await?,
            Command::CreateStep { .. } | Command::CreateStepTogether { .. } => client.create_step(request).await?,
            Command::CancelStep { .. } => client.cancel_step(request).await?,
            Command::UpdateNodes { .. } => client.update_nodes(request).await?,
            Command::UpdatePartition { .. } => client.update_partition(request).await?,
            Command::DropBuffer { .. } => client.drop_buffer(request).await?,
            Command::CreatePartition { .. } => client.create_partition(request).await?,
            Command::DeletePartition { .. } => client.delete_partition(request).await?,
            Command::CreateReservation { .. } => client.create_reservation(request).await?,
            Command::UpdateReservation { .. } => client.update_reservation(request).await?,
            Command::DeleteReservation { .. } => client.delete_reservation(request).await?,
            Command::SetTrigger { .. } => client.set_trigger(request).await?,
            Command::SetDampening { .. } => client.set_dampening(request).await?,
            Command::ClearTriggers { .. } => client.clear_triggers(request).await?,
            Command::Submit { .. }
            | Command::SubmitTogether { .. }
            | Command::AdoptPlan(_)
            | Command::DutyDone { .. }
            | Command::Exited(_)
            | Command::Staged { .. }
            | Command::PoolsSeen { .. }
            | Command::BufferMeasured { .. }
            | Command::SessionsSeen { .. }
            | Command::RegisterNode { .. }
            | Command::NodeLost { .. }
            | Command::NoteStopped { .. }
            | Command::ChangeAccounts { .. }
            | Command::Reconfigure { .. }
            | Command::Recorded { .. }
            | Command::AmendRun { .. }
            | Command::ContinueIds { .. }
            | Command::Begin { .. }
            | Command::AdoptRules { .. }
            | Command::PoolsReported { .. }
            | Command::Once { .. }
            | Command::Trust(_)
            | Command::Restore { .. }
            | Command::TriggerRan { .. }
            | Command::Happened { .. }
            | Command::Tick => return Err(CallError::Other("not a command that users give".into())),
        };
        read(&reply.into_inner().reply)
    }

    /// What `sacctmgr` asks for; who asks is found out at the other end.
    pub async fn change_accounts(&mut self, change: &Change) -> Result<(), CallError> {
        let request = CommandRequest { command: codec::encode(change).into() };
        let reply: Reply = read(&self.client.change_accounts(request).await?.into_inner().reply)?;
        match reply {
            Reply::Ok => Ok(()),
            other => Err(CallError::Other(format!("unexpected reply {other:?}"))),
        }
    }

    pub async fn accounts(&mut self) -> Result<Accounts, CallError> {
        read(&whole(self.client.accounts(Nothing {}).await?.into_inner()).await?.accounts)
    }

    /// Where everybody stands now: use, shares, fair-share factors.
    pub async fn standing(&mut self) -> Result<Standing, CallError> {
        read(&whole(self.client.standing(Nothing {}).await?.into_inner()).await?.standing)
    }

    /// Who changed accounts, and when nodes were out of service.
    pub async fn chronicle(&mut self) -> Result<Chronicle, CallError> {
        read(&whole(self.client.chronicle(Nothing {}).await?.into_inner()).await?.chronicle)
    }

    /// As `command`, for those that answer for each job.
    pub async fn command_each(&mut self, command: Command) -> Result<Vec<JobResult>, CallError> {
        Ok(each(self.command(command).await?))
    }

    pub async fn signal(&mut self, request: &SignalRequest) -> Result<Vec<JobResult>, CallError> {
        let message = SignalMessage { request: codec::encode(request).into() };
        Ok(each(read(&self.client.signal(message).await?.into_inner().reply)?))
    }

    pub async fn create_step(
        &mut self,
        job: JobId,
        spec: model::StepSpec,
        blobs: Vec<Blob>,
    ) -> Result<StepId, CallError> {
        match self.command(Command::CreateStep { job, spec: Box::new(spec), blobs }).await? {
            Reply::StepCreated(step) => Ok(step),
            other => Err(CallError::Other(format!("unexpected answer {other:?}"))),
        }
    }

    pub async fn create_step_together(
        &mut self,
        parts: Vec<(JobId, model::StepSpec)>,
        blobs: Vec<Blob>,
    ) -> Result<Vec<model::het::StepPart>, CallError> {
        match self.command(Command::CreateStepTogether { parts, blobs }).await? {
            Reply::StepsCreated(parts) => Ok(parts),
            other => Err(CallError::Other(format!("unexpected answer {other:?}"))),
        }
    }

    /// Pools and burst buffers; an empty page where there are none.
    pub async fn burst(&mut self) -> Result<BurstPage, CallError> {
        let reply = whole(self.client.burst(Nothing {}).await?.into_inner()).await?;
        if reply.page.is_empty() { Ok(BurstPage::default()) } else { read(&reply.page) }
    }

    /// What a burst buffer plugin says of itself.
    pub async fn burst_status(&mut self, words: Vec<String>) -> Result<String, CallError> {
        let request = crate::proto::BurstStatusRequest { words };
        Ok(self.client.burst_status(request).await?.into_inner().text)
    }

    /// The job's data on its way, until nothing is left to move.
    pub async fn watch_staging(
        &mut self,
        job: JobId,
    ) -> Result<impl Stream<Item = Result<StagePage, CallError>> + use<>, CallError> {
        let replies = self.client.watch_staging(StagingRequest { job: job.0 }).await?.into_inner();
        Ok(nouns(replies))
    }

    pub async fn reconfigure(&mut self) -> Result<(), CallError> {
        self.client.reconfigure(Nothing {}).await?;
        Ok(())
    }

    /// Ends the controller, and with `agents` those of all nodes.
    pub async fn abort(&mut self) -> Result<(), CallError> {
        self.client.shutdown(crate::proto::ShutdownRequest { agents: false, abort: true }).await?;
        Ok(())
    }

    pub async fn shutdown(&mut self, agents: bool) -> Result<(), CallError> {
        self.client.shutdown(crate::proto::ShutdownRequest { agents, abort: false }).await?;
        Ok(())
    }

    /// All pages of one snapshot, as they come.
    pub async fn jobs(
        &mut self,
        filter: &JobFilter,
    ) -> Result<impl Stream<Item = Result<JobsPage, CallError>> + use<>, CallError> {
        let stream = self.client.jobs(JobsRequest { filter: codec::encode(filter).into() }).await?.into_inner();
        Ok(nouns(stream))
    }

    /// All pages in one. Where calls are made again, so is one whose answer breaks off.
    pub async fn all_jobs(&mut self, filter: &JobFilter) -> Result<JobsPage, CallError> {
        let mut n_left = if self.is_patient { BREAKS_MAX } else { 0 };
        loop {
            match self.all_jobs_once(filter).await {
                Err(CallError::Broken(_)) if n_left > 0 => n_left -= 1,
                outcome => return outcome,
            }
        }
    }

    async fn all_jobs_once(&mut self, filter: &JobFilter) -> Result<JobsPage, CallError> {
        let mut pages = std::pin::pin!(self.jobs(filter).await?);
        let mut all = JobsPage::default();
        while let Some(page) = pages.next().await {
            add(&mut all, page?);
        }
        Ok(all)
    }

    /// The jobs now, and again each time one of them has changed. A page without a job means it is gone.
    pub async fn watch_jobs(
        &mut self,
        filter: &JobFilter,
    ) -> Result<impl Stream<Item = Result<JobsPage, CallError>> + use<>, CallError> {
        let stream = self.client.watch_jobs(JobsRequest { filter: codec::encode(filter).into() }).await?.into_inner();
        let mut begun = JobsPage::default();
        let whole = move |page: Result<JobsPage, CallError>| {
            let page = match page {
                Ok(page) => page,
                Err(error) => return Some(Err(error)),
            };
            let goes_on = page.goes_on;
            add(&mut begun, page);
            (!goes_on).then(|| Ok(std::mem::take(&mut begun)))
        };
        Ok(nouns(stream).filter_map(whole))
    }

    /// Runs of history, page by page, by job id.
    pub async fn history(&mut self, query: &HistoryQuery) -> Result<Pages, CallError> {
        Pages::ask(self.clone(), query).await
    }

    /// What is said of runs afterwards.
    pub async fn amend_history(&mut self, wish: &AmendRequest) -> Result<(), CallError> {
        let request = CommandRequest { command: codec::encode(wish).into() };
        self.client.amend_history(request).await?;
        Ok(())
    }

    pub async fn nodes(&mut self) -> Result<Vec<NodeView>, CallError> {
        let reply = whole(self.client.nodes(Nothing {}).await?.into_inner()).await?;
        reply.nodes.iter().map(|node| read(node)).collect()
    }

    pub async fn diagnose(&mut self) -> Result<Diagnosis, CallError> {
        read(&whole(self.client.diagnose(DiagnoseRequest { reset: false }).await?.into_inner()).await?.diagnosis)
    }

    pub async fn reset_statistics(&mut self) -> Result<(), CallError> {
        self.client.diagnose(DiagnoseRequest { reset: true }).await?;
        Ok(())
    }

    pub async fn reservations(&mut self) -> Result<Vec<Reservation>, CallError> {
        let reply = whole(self.client.reservations(Nothing {}).await?.into_inner()).await?;
        reply.reservations.iter().map(|one| read(one)).collect()
    }

    pub async fn triggers(&mut self) -> Result<Vec<model::trigger::Trigger>, CallError> {
        let reply = whole(self.client.triggers(Nothing {}).await?.into_inner()).await?;
        reply.triggers.iter().map(|one| read(one)).collect()
    }

    pub async fn licenses(&mut self) -> Result<Vec<LicenseView>, CallError> {
        let reply = whole(self.client.licenses(Nothing {}).await?.into_inner()).await?;
        reply.licenses.iter().map(|one| read(one)).collect()
    }

    pub async fn configuration(&mut self) -> Result<Configuration, CallError> {
        let reply = whole(self.client.configuration(Nothing {}).await?.into_inner()).await?;
        Ok(Configuration {
            config: read(&reply.config)?,
            now: Timestamp(reply.now_micros),
            started: Timestamp(reply.started_micros),
            version: reply.version,
            next_job: reply.next_job,
            controllers: reply.controllers,
            authority: reply.authority.to_vec(),
            loudness: if reply.loudness.is_empty() { Default::default() } else { read(&reply.loudness)? },
        })
    }

    pub async fn set_debug(&mut self, change: &model::loudness::LoudnessChange) -> Result<(), CallError> {
        let request = CommandRequest { command: codec::encode(change).into() };
        self.client.set_debug(request).await?;
        Ok(())
    }

    /// The content of a job's script; only its owner and administrators get it.
    pub async fn script(&mut self, job: JobId) -> Result<Vec<u8>, CallError> {
        let request = BlobRequest { job: job.0, ..BlobRequest::default() };
        Ok(self.client.blob(request).await?.into_inner().content.to_vec())
    }

    /// Why the job waits; none if there is no such job.
    pub async fn why(&mut self, job: &JobRef) -> Result<Option<Why>, CallError> {
        let request = WhyRequest { job: codec::encode(job).into() };
        read(&whole(self.client.why(request).await?.into_inner()).await?.why)
    }

    /// The whole state, in a form that can be restored.
    pub async fn backup(&mut self) -> Result<Vec<u8>, CallError> {
        let mut pieces = self.client.backup(Nothing {}).await?.into_inner();
        let mut whole = Vec::new();
        while let Some(piece) = pieces.next().await {
            whole.extend_from_slice(&piece?.piece);
        }
        Ok(whole)
    }

    /// Gives each page of the audit to `take`, the oldest first.
    pub async fn audit(&mut self, query: &AuditQuery, mut take: impl FnMut(AuditPage)) -> Result<(), CallError> {
        let request = AuditRequest { query: codec::encode(query).into() };
        let mut pages = self.client.audit(request).await?.into_inner();
        while let Some(page) = pages.next().await {
            take(read(&page?.page)?);
        }
        Ok(())
    }

    /// The controllers: who leads, how far each is.
    pub async fn members(&mut self) -> Result<Members, CallError> {
        read(&whole(self.client.members(Nothing {}).await?.into_inner()).await?.members)
    }

    pub async fn change_members(&mut self, wish: &Wish) -> Result<(), CallError> {
        self.client.change_members(CommandRequest { command: codec::encode(wish).into() }).await?;
        Ok(())
    }

    pub async fn ping(&mut self) -> Result<PingReply, CallError> {
        Ok(self.client.ping(Nothing {}).await?.into_inner())
    }
}

/// Pages of one picture in one.
fn add(all: &mut JobsPage, page: JobsPage) {
    all.now = page.now;
    all.jobs.extend(page.jobs);
    all.steps.extend(page.steps);
    all.unknown.extend(page.unknown);
    all.progress.extend(page.progress);
    all.notices.extend(page.notices);
}

fn submission(specs: &[JobSpec], blobs: &[Blob], test_only: bool) -> SubmitRequest {
    let blobs = blobs.iter().map(|blob| codec::encode(blob).into()).collect();
    let mut specs = specs.iter().map(|spec| codec::encode(spec).into());
    SubmitRequest { spec: specs.next().unwrap_or_default(), blobs, test_only, more: specs.collect() }
}

fn each(reply: Reply) -> Vec<JobResult> {
    match reply {
        Reply::Each(results) => results,
        Reply::Ok
        | Reply::Submitted(_)
        | Reply::StepCreated(_)
        | Reply::StepsCreated(_)
        | Reply::ReservationCreated(_)
        | Reply::Adopted { .. } => Vec::new(),
    }
}

static READS_PLAINLY: AtomicBool = AtomicBool::new(false);

/// From now on the texts of answers are made harmless for terminals when they are read: for commands that only show them.
pub fn read_texts_plainly() {
    READS_PLAINLY.store(true, Ordering::Relaxed);
}

pub(crate) fn read<T: codec::Decode>(bytes: &[u8]) -> Result<T, CallError> {
    let cleaned = if READS_PLAINLY.load(Ordering::Relaxed) { plain_text::cleaned(bytes) } else { None };
    codec::decode(cleaned.as_deref().unwrap_or(bytes))
        .map_err(|error| CallError::Other(format!("unreadable answer: {error}")))
}
