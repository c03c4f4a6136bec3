//! The gRPC service: authenticate, decode, propose or read, encode.
mod attend;
pub mod audit;
pub mod authority;
mod buffers;
mod encoded;
mod jobs;
mod members;
mod nodes;
mod privacy;
mod reservations;
pub mod room;
mod shutdown;
mod signal;
mod submit;
mod tokens;
mod triggers;
mod trust;
mod unheard_directives;
mod watchers;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures::{Stream, StreamExt};
use model::accounts::Change;
use model::command::RequestId;
use model::history::HistoryQuery;
use model::members::MemberView;
use model::request::JobFilter;
use model::{Caller, Command, JobKind, JobRef, Timestamp, codec, text_bounds};
use tokio::sync::mpsc;
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status, Streaming};
use wire::origin::{From, Origin};
use wire::pages::{ListInPages, NounInPages};
use wire::proto::controller_server::Controller;
use wire::proto::{
    AccountsReply, AuditReply, AuditRequest, BackupReply, BlobReply, BlobRequest, BurstStatusReply, BurstStatusRequest,
    CommandReply, CommandRequest, ConfigurationReply, DiagnoseReply, DiagnoseRequest, FromAgent, HistoryReply,
    HistoryRequest, JobsReply, JobsRequest, LicensesReply, LocateReply, LocateRequest, MembersReply, NodesReply,
    Nothing, PingReply, ShutdownRequest, SignalRequest, StagingReply, StagingRequest, SubmitReply, SubmitRequest,
    ToAgent, TokenReply, UserTokenReply, UserTokenRequest, VouchReply, VouchRequest, WhyReply, WhyRequest,
};
use wire::reach::{AGAIN_HEADER, REQUEST_HEADER};
use wire::refusal::to_status;
use wire::unread_answers::AnswerStock;

use crate::agents::{Agents, Lead};
use crate::audit::{AuditLog, AuditNotes};
use crate::certificates::{self, Belief};
use crate::door::{Door, Refusal, is_disk_full};
use crate::fair_turns::FairTurns;
use crate::history::History;
use crate::leader::{runner, stage_orders, stager};
use crate::leading::HandOver;
use crate::machine::Published;
use crate::members::{ClusterJournal, Connections};
use crate::names::Names;
use crate::plugin::Site;
use crate::progress::ProgressTable;
use crate::vouching::{self, Vouched};

pub use authority::Level;
use jobs::JobsQuestion;
use watchers::WatchKind;

/// A backup crosses the socket in pieces of this size.
const BACKUP_PIECE: usize = 1 << 20;

/// So many times longer is a filter as a value than it was on its way.
const FILTER_GROWTH: usize = 6;
/// Readers of history in all, and of one user: each has a thread until its answer is read.
const HISTORY_READERS: (usize, usize) = (32, 4);

type Answer<T> = Result<Response<T>, Status>;
pub type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

pub struct Api {
    pub door: Arc<Door>,
    pub published: Published,
    pub agents: Arc<Agents>,
    /// That this answers for.
    pub lead: Lead,
    pub runner: runner::Handle,
    pub stager: stager::Handle,
    pub plugin: Arc<Site>,
    pub screen: crate::job_submit::Screen,
    pub progress: Arc<ProgressTable>,
    pub config_file: PathBuf,
    pub started: Timestamp,
    pub names: Arc<Names>,
    pub history: History,
    pub journal: ClusterJournal,
    pub connections: Arc<Connections>,
    pub own: MemberView,
    /// Told when controllers were added or removed.
    pub members_changed: Arc<tokio::sync::Notify>,
    pub hand_overs: mpsc::Sender<HandOver>,
    pub ends_all: Arc<AtomicBool>,
    pub turns: room::Turns,
    /// Of those who make pictures for watchers of much.
    pub watch_turns: FairTurns,
    /// Of calls that cost as much as the cluster is large.
    pub work_turns: FairTurns,
    /// Of those who read history.
    pub history_turns: FairTurns,
    pub watchers: watchers::WatcherPlaces,
    pub encoded: encoded::EncodedConfig,
    pub audit: AuditLog,
}

/// Turns of those who read history.
pub fn history_turns() -> FairTurns {
    FairTurns::new(HISTORY_READERS.0, HISTORY_READERS.1)
}

impl Api {
    /// Who is calling, by the kernel's word.
    fn caller<T>(&self, request: &Request<T>) -> Result<Caller, Status> {
        Ok(authority::caller(&self.published.now(), peer(request)?, &self.names))
    }

    fn reader<T>(&self, request: &Request<T>) -> Result<privacy::Reader, Status> {
        let by = self.caller(request)?;
        let cluster = self.published.now();
        let reader = privacy::Reader::new(&cluster, by, || self.names.user(by.uid));
        Ok(match comes_through_a_job(&cluster, request.extensions()) {
            true => reader.without_accounts(),
            false => reader,
        })
    }

    /// Proposes what the request holds, if it is the command this call is for.
    async fn command(&self, request: Request<CommandRequest>, is_right: fn(&Command) -> bool) -> Answer<CommandReply> {
        let by = self.caller(&request)?;
        self.command_by(by, request, is_right).await
    }

    async fn command_by(
        &self,
        by: Caller,
        request: Request<CommandRequest>,
        is_right: fn(&Command) -> bool,
    ) -> Answer<CommandReply> {
        let mut command: Command = read(&request.get_ref().command)?;
        AuditNotes::about(request.extensions(), &command);
        let cluster = self.published.now();
        // Whose they are is looked up, too.
        state::judge_work(&cluster, &command).map_err(|reject| to_status(&reject))?;
        let caller = by;
        let by = match comes_through_a_job(&cluster, request.extensions()) {
            true => caller,
            false => authority::among_jobs(&cluster, caller, &self.names, &authority::jobs_of(&command)),
        };
        let unknown = match by == caller {
            true => Vec::new(),
            false => authority::take_unknown(&cluster, &mut command),
        };
        if !is_right(&command) {
            return Err(Status::invalid_argument("the command does not belong to this call"));
        }
        let answers_one = matches!(command, Command::Suspend { .. } | Command::Resume { .. });
        let proposed = self.door.propose_once(by, command, request_id(&request)).await;
        let mut reply = proposed.map_err(|refusal| refused(&refusal))?;
        if let model::Reply::Each(results) = &mut reply {
            let missing = |job| model::command::JobResult { job, result: Err(model::Reject::NoSuchJob) };
            results.extend(unknown.into_iter().map(missing));
        }
        note_denials(by, &reply, request.extensions());
        if let (model::Reply::Each(results), true) = (&reply, answers_one)
            && let Some(why) = one_refusal(results)
        {
            return Err(to_status(why));
        }
        Ok(Response::new(CommandReply { reply: codec::encode(&reply).into() }))
    }
}

/// A compute node vouches for the caller because of a job there: root of that node says so, and is worth no more than a user.
fn comes_through_a_job(cluster: &state::Cluster, extensions: &tonic::Extensions) -> bool {
    let origin = extensions.get::<Origin>();
    origin.is_some_and(|origin| match &origin.from {
        From::Node(node) => !cluster.is_login_node(node),
        _ => false,
    })
}

fn peer<T>(request: &Request<T>) -> Result<wire::peer::Peer, Status> {
    wire::peer::of(request).ok_or_else(|| Status::unauthenticated("the caller's identity is unknown"))
}

impl Api {
    /// With the groups that the user database has the caller in, whatever the caller says.
    fn with_own_groups(
        &self,
        by: Caller,
        mut request: Request<CommandRequest>,
    ) -> Result<Request<CommandRequest>, Status> {
        let mut command: Command = read(&request.get_ref().command)?;
        if let Command::UpdateJob { job, changes } = &mut command {
            let cluster = self.published.now();
            let ids = cluster.named(job).unwrap_or_default();
            let own = ids.iter().filter_map(|id| cluster.job(*id)).find(|job| job.spec.uid == by.uid);
            let groups = own.map(|job| submit::groups(&cluster, &self.names, &job.spec)).unwrap_or_default();
            let groups = Some(groups).filter(|groups| !groups.is_empty());
            if groups != changes.groups {
                changes.groups = groups;
                request.get_mut().command = codec::encode(&command).into();
            }
        }
        Ok(request)
    }

    /// With what the site's scripts make of a change.
    async fn screened(
        &self,
        by: Caller,
        mut request: Request<CommandRequest>,
    ) -> Result<Request<CommandRequest>, Status> {
        let cluster = self.published.now();
        if cluster.config().hooks.job_submit_scripts().next().is_none() {
            return Ok(request);
        }
        let mut command: Command = read(&request.get_ref().command)?;
        if let Command::UpdateJob { job, changes } = &mut command {
            self.screen.changes(&cluster, by, job, changes).await.map_err(|reject| to_status(&reject))?;
            request.get_mut().command = codec::encode(&command).into();
        }
        Ok(request)
    }
}

/// Who tried what is not theirs is for the log, too. The audit has the call as refused, also if none of it could be done.
fn note_denials(by: model::Caller, reply: &model::Reply, extensions: &tonic::Extensions) {
    let model::Reply::Each(results) = reply else { return };
    let denied = |one: &&model::command::JobResult| one.result == Err(model::Reject::NotPermitted);
    for one in results.iter().filter(denied) {
        tracing::warn!(target: "security", uid = by.uid, job = %one.job, "refused: neither owner nor administrator");
    }
    let is_all_refused = results.iter().all(|one| one.result.is_err());
    let told = results.iter().find(denied).or(results.first().filter(|_| is_all_refused));
    if let Some(model::command::JobResult { job, result: Err(why) }) = told {
        AuditNotes::refused_in_part(extensions, &format_args!("{job}: {why}"));
    }
}

/// One job was named, and refused: that is how the call ends.
fn one_refusal(results: &[model::command::JobResult]) -> Option<&model::Reject> {
    match results {
        [model::command::JobResult { job, result: Err(why) }] if job.tasks.is_none() => Some(why),
        _ => None,
    }
}

#[tonic::async_trait]
impl Controller for Api {
    type JobsStream = Streamed<JobsReply>;
    type WatchJobsStream = Streamed<JobsReply>;
    type HistoryStream = Streamed<HistoryReply>;
    type WatchStagingStream = Streamed<StagingReply>;
    type AttendStream = Streamed<ToAgent>;
    type BackupStream = Streamed<BackupReply>;
    type AccountsStream = Streamed<wire::proto::AccountsReply>;
    type StandingStream = Streamed<wire::proto::StandingReply>;
    type ChronicleStream = Streamed<wire::proto::ChronicleReply>;
    type TriggersStream = Streamed<wire::proto::TriggersReply>;
    type NodesStream = Streamed<wire::proto::NodesReply>;
    type ConfigurationStream = Streamed<wire::proto::ConfigurationReply>;
    type ReservationsStream = Streamed<wire::proto::ReservationsReply>;
    type LicensesStream = Streamed<wire::proto::LicensesReply>;
    type DiagnoseStream = Streamed<wire::proto::DiagnoseReply>;
    type BurstStream = Streamed<wire::proto::BurstReply>;
    type WhyStream = Streamed<wire::proto::WhyReply>;
    type MembersStream = Streamed<wire::proto::MembersReply>;
    type AuditStream = Streamed<AuditReply>;

    async fn submit(&self, request: Request<SubmitRequest>) -> Answer<SubmitReply> {
        let by = self.caller(&request)?;
        let request_id = request_id(&request);
        let notes = request.extensions().get::<AuditNotes>().cloned().unwrap_or_default();
        submit::submit(self, by, request.into_inner(), request_id, &notes).await
    }

    async fn cancel(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        self.command(request, |command| matches!(command, Command::Cancel { .. })).await
    }

    async fn hold(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        self.command(request, |command| matches!(command, Command::Hold { .. })).await
    }

    async fn release(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        self.command(request, |command| matches!(command, Command::Release { .. })).await
    }

    async fn requeue(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        self.command(request, |command| matches!(command, Command::Requeue { .. })).await
    }

    async fn suspend(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        self.command(request, |command| matches!(command, Command::Suspend { .. })).await
    }

    async fn resume(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        self.command(request, |command| matches!(command, Command::Resume { .. })).await
    }

    async fn update_job(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        let by = self.caller(&request)?;
        let request = self.screened(by, self.with_own_groups(by, request)?).await?;
        self.command_by(by, request, |command| matches!(command, Command::UpdateJob { .. })).await
    }

    async fn complete(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        self.command(request, |command| matches!(command, Command::Complete { .. })).await
    }

    async fn create_step(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        self.command(request, |command| {
            matches!(command, Command::CreateStep { .. } | Command::CreateStepTogether { .. })
        })
        .await
    }

    async fn cancel_step(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        self.command(request, |command| matches!(command, Command::CancelStep { .. })).await
    }

    async fn update_nodes(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        nodes::update(self, request).await
    }

    async fn create_partition(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        self.command(request, |command| matches!(command, Command::CreatePartition { .. })).await
    }

    async fn delete_partition(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        self.command(request, |command| matches!(command, Command::DeletePartition { .. })).await
    }

    async fn create_reservation(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        reservations::check_names(&request)?;
        self.command(request, |command| matches!(command, Command::CreateReservation { .. })).await
    }

    async fn update_reservation(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        reservations::check_names(&request)?;
        self.command(request, |command| matches!(command, Command::UpdateReservation { .. })).await
    }

    async fn delete_reservation(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        self.command(request, |command| matches!(command, Command::DeleteReservation { .. })).await
    }

    async fn reservations(&self, request: Request<Nothing>) -> Answer<Self::ReservationsStream> {
        let reader = self.reader(&request)?;
        let (first, items) = reservations::all(self.published.now(), reader);
        Ok(listed(&request, first, items))
    }

    async fn diagnose(&self, request: Request<DiagnoseRequest>) -> Answer<Self::DiagnoseStream> {
        let by = self.caller(&request)?;
        let statistics = &self.published.statistics;
        if request.get_ref().reset {
            if !by.is_admin {
                return Err(to_status(&model::Reject::NotPermitted));
            }
            statistics.reset(self.door.now());
        }
        let cluster = self.published.now();
        let (now, n_connected, names) = (self.door.now(), self.agents.n_connected(), self.names.clone());
        let statistics = statistics.clone();
        let make = move || {
            let diagnosis = statistics.diagnosis(&cluster, now, n_connected, |uid| names.user(uid));
            DiagnoseReply { diagnosis: codec::encode(&diagnosis).into() }
        };
        Ok(paged(&request, make))
    }

    async fn licenses(&self, request: Request<Nothing>) -> Answer<Self::LicensesStream> {
        let licenses = self.published.now().licenses().into_iter().map(|license| codec::encode(&license).into());
        Ok(listed(&request, LicensesReply::default(), licenses))
    }

    async fn update_partition(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        self.command(request, |command| matches!(command, Command::UpdatePartition { .. })).await
    }

    async fn change_accounts(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        let by = self.caller(&request)?;
        let change: Box<Change> = read(&request.get_ref().command)?;
        AuditNotes::about(request.extensions(), &change);
        let command = Command::ChangeAccounts { change, by_name: self.names.user(by.uid) };
        let proposed = self.door.propose_once(by, command, request_id(&request)).await;
        let reply = proposed.map_err(|refusal| refused(&refusal))?;
        Ok(Response::new(CommandReply { reply: codec::encode(&reply).into() }))
    }

    async fn accounts(&self, request: Request<Nothing>) -> Answer<Self::AccountsStream> {
        let reader = self.reader(&request)?;
        let cluster = self.published.now();
        let make = move || {
            let accounts = codec::encode(&reader.accounts(cluster.accounts()).with_normal_qos()).into();
            AccountsReply { accounts }
        };
        self.in_turn(&request, make).await
    }

    async fn standing(&self, request: Request<Nothing>) -> Answer<Self::StandingStream> {
        let cluster = self.published.now();
        let at = self.door.now().max(cluster.now());
        let reader = self.reader(&request)?;
        let make = move || {
            let standing = codec::encode(&reader.standing(cluster.accounts(), cluster.standing(at))).into();
            wire::proto::StandingReply { standing }
        };
        self.in_turn(&request, make).await
    }

    async fn chronicle(&self, request: Request<Nothing>) -> Answer<Self::ChronicleStream> {
        let reader = self.reader(&request)?;
        reader.events()?;
        let cluster = self.published.now();
        let make = move || {
            let mut chronicle = cluster.chronicle();
            chronicle.reservations.retain(|one| reader.may_see_reservation(&cluster, one));
            wire::proto::ChronicleReply { chronicle: codec::encode(&chronicle).into() }
        };
        self.in_turn(&request, make).await
    }

    async fn drop_buffer(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        let before = self.published.now();
        let owner = match read(&request.get_ref().command)? {
            Command::DropBuffer { buffer } => Some(buffer),
            _ => None,
        };
        let reply = self.command(request, |command| matches!(command, Command::DropBuffer { .. })).await?;
        // Those who can be reached clear up at once, the others when they come back.
        for errand in owner.iter().flat_map(|owner| stage_orders::given_up(&before, owner)) {
            self.agents.send(&errand.node, errand.order);
        }
        Ok(reply)
    }

    async fn burst(&self, request: Request<Nothing>) -> Answer<Self::BurstStream> {
        let by = self.caller(&request)?;
        let (cluster, progress) = (self.published.now(), self.progress.clone());
        self.in_turn(&request, move || buffers::page(&cluster, by, &progress)).await
    }

    async fn burst_status(&self, request: Request<BurstStatusRequest>) -> Answer<BurstStatusReply> {
        let by = self.caller(&request)?;
        let text = self.plugin.status(by, &request.get_ref().words).await;
        Ok(Response::new(BurstStatusReply { text }))
    }

    async fn watch_staging(&self, request: Request<StagingRequest>) -> Answer<Self::WatchStagingStream> {
        let by = self.caller(&request)?;
        let job = model::JobId(request.get_ref().job);
        let takes_pages = wire::pages::are_taken(&request);
        let place = self.watchers.take(by, WatchKind::Named)?;
        let pages = buffers::watch(self.published.clone(), self.progress.clone(), by, job, takes_pages)?;
        Ok(Response::new(Box::pin(pages.map(move |page| watchers::held(&place, page)))))
    }

    async fn reconfigure(&self, request: Request<Nothing>) -> Answer<Nothing> {
        let by = self.caller(&request)?;
        if !by.is_admin {
            return Err(to_status(&model::Reject::NotPermitted));
        }
        let config =
            config::load(&self.config_file).map_err(|problems| Status::invalid_argument(problems.to_string()))?;
        let loudness = config.controller.loudness.clone();
        let command = Command::Reconfigure { config: Box::new(config) };
        self.door.propose(by, command).await.map_err(|refusal| refused(&refusal))?;
        crate::loudness::follow(&loudness);
        Ok(Response::new(Nothing {}))
    }

    async fn shutdown(&self, request: Request<ShutdownRequest>) -> Answer<Nothing> {
        let by = self.caller(&request)?;
        if !by.is_admin {
            return Err(to_status(&model::Reject::NotPermitted));
        }
        match request.get_ref().abort {
            true => shutdown::abort(),
            false => shutdown::begin(self, request.get_ref().agents),
        }
        Ok(Response::new(Nothing {}))
    }

    async fn signal(&self, request: Request<SignalRequest>) -> Answer<CommandReply> {
        let (by, id) = (self.caller(&request)?, request_id(&request).unwrap_or_else(wire::reach::new_request_id));
        let (extensions, request) = (request.extensions(), read(&request.get_ref().request)?);
        let request: model::request::SignalRequest = request;
        AuditNotes::about(extensions, &request);
        let cluster = self.published.now();
        state::judge_refs(&cluster, &request.jobs).map_err(|reject| to_status(&reject))?;
        let by = match comes_through_a_job(&cluster, extensions) {
            true => by,
            false => authority::among_jobs(&cluster, by, &self.names, &request.jobs),
        };
        let asked = signal::Asked { request: &request, id };
        let (reply, arrivals, note) = signal::signal(&cluster, &self.runner, by, &asked);
        signal::arrive(arrivals).await.map_err(again)?;
        for notice in signal::notices(&self.published.now(), &request, &reply) {
            // Nobody listening is fine.
            let _ = self.published.notices.send(notice);
        }
        if let Some(note) = note {
            self.door.propose(Caller::SYSTEM, note).await.map_err(|refusal| refused(&refusal))?;
        }
        Ok(Response::new(CommandReply { reply: codec::encode(&reply).into() }))
    }

    async fn set_debug(&self, request: Request<CommandRequest>) -> Answer<Nothing> {
        if !self.caller(&request)?.is_admin {
            return Err(to_status(&model::Reject::NotPermitted));
        }
        let asked = read(&request.get_ref().command)?;
        AuditNotes::about(request.extensions(), &asked);
        crate::loudness::change(&asked);
        Ok(Response::new(Nothing {}))
    }

    async fn set_trigger(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        triggers::set(self, request).await
    }

    async fn set_dampening(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        self.command(request, |command| matches!(command, Command::SetDampening { .. })).await
    }

    async fn clear_triggers(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        self.command(request, |command| matches!(command, Command::ClearTriggers { .. })).await
    }

    async fn triggers(&self, request: Request<Nothing>) -> Answer<Self::TriggersStream> {
        triggers::list(self, &request)
    }

    async fn jobs(&self, request: Request<JobsRequest>) -> Answer<Self::JobsStream> {
        let by = self.caller(&request)?;
        let reader = self.reader(&request)?;
        let takes_pages = wire::pages::are_taken(&request);
        let filter: JobFilter = read(&request.get_ref().filter)?;
        state::judge_refs(&self.published.now(), &filter.jobs).map_err(|reject| to_status(&reject))?;
        let (runner, progress) = (self.runner.clone(), self.progress.clone());
        let stock = AnswerStock::of(&request);
        // The filter is kept until the last page is made; as a value it is larger than it was on its way.
        let filter_held = stock.hold(request.get_ref().filter.len() * FILTER_GROWTH).await;
        let question = JobsQuestion::new(filter, by, reader, takes_pages, runner, progress);
        let now = self.door.now();
        let pages = jobs::pages(self.published.now(), now, question, &self.work_turns, &stock).await?;
        Ok(Response::new(Box::pin(pages.map(move |page| watchers::held(&filter_held, page)))))
    }

    async fn watch_jobs(&self, request: Request<JobsRequest>) -> Answer<Self::WatchJobsStream> {
        let by = self.caller(&request)?;
        let reader = self.reader(&request)?;
        let filter: JobFilter = read(&request.get_ref().filter)?;
        state::judge_refs(&self.published.now(), &filter.jobs).map_err(|reject| to_status(&reject))?;
        if let (Some(spec), Some(named)) = (&filter.room_for, filter.jobs.first())
            && self.published.now().job(named.job).is_some_and(|job| by.may_act_for(job.spec.uid))
        {
            let place = self.watchers.take(by, WatchKind::Named)?;
            let told = room::watch(self.published.clone(), &self.turns, named.job, spec.clone());
            return Ok(Response::new(Box::pin(told.map(move |page| watchers::held(&place, page)))));
        }
        let takes_pages = wire::pages::are_taken(&request);
        let (runner, progress) = (self.runner.clone(), self.progress.clone());
        let question = JobsQuestion::new(filter, by, reader, takes_pages, runner, progress);
        let place = self.watchers.take(by, question.kind())?;
        let (published, door) = (self.published.clone(), self.door.clone());
        Ok(Response::new(jobs::watch(published, door, question, self.watch_turns.clone(), place)))
    }

    async fn history(&self, request: Request<HistoryRequest>) -> Answer<Self::HistoryStream> {
        let by = self.caller(&request)?;
        let query: HistoryQuery = read(&request.get_ref().query)?;
        let takes_pages = wire::pages::are_taken(&request);
        // What a script or an environment holds is its owner's business.
        let wants_contents = query.with_scripts || query.with_environments;
        let own = HistoryQuery { uids: vec![by.uid], ..query.clone() };
        let query = if wants_contents && !by.is_admin { own } else { query };
        let query = self.reader(&request)?.history(&self.published.now(), query);
        // Reading takes a thread, which waits for its reader.
        let turn = self.history_turns.take(by.uid).await;
        let pages = self.history.read(query, self.door.now(), takes_pages).await?;
        Ok(Response::new(Box::pin(pages.map(move |page| watchers::held(&turn, page)))))
    }

    async fn amend_history(&self, request: Request<CommandRequest>) -> Answer<Nothing> {
        let by = self.caller(&request)?;
        let amendment = read(&request.get_ref().command)?;
        AuditNotes::about(request.extensions(), &amendment);
        self.history.amend(by, &amendment, &self.door).await?;
        Ok(Response::new(Nothing {}))
    }

    async fn nodes(&self, request: Request<Nothing>) -> Answer<Self::NodesStream> {
        self.reader(&request)?.nodes()?;
        let first = NodesReply { now_micros: self.door.now().0, ..Default::default() };
        Ok(listed(&request, first, nodes::all(self.published.now(), self.agents.clone())))
    }

    async fn configuration(&self, request: Request<Nothing>) -> Answer<Self::ConfigurationStream> {
        let cluster = self.published.now();
        let reader = self.reader(&request)?;
        let reply = ConfigurationReply {
            config: match reader.hidden_from(cluster.config()) {
                None => self.encoded.of(cluster.config()),
                Some(partly) => codec::encode(&partly).into(),
            },
            now_micros: self.door.now().0,
            started_micros: self.started.0,
            version: env!("CARGO_PKG_VERSION").into(),
            next_job: cluster.next_job().0,
            controllers: crate::leader::neighbours::addresses(&cluster, &self.journal),
            authority: wire::tls::token::mark(&cluster.trust().ca_certificate).unwrap_or_default().into(),
            loudness: codec::encode(&crate::loudness::now()).into(),
        };
        Ok(paged(&request, || reply))
    }

    async fn blob(&self, request: Request<BlobRequest>) -> Answer<BlobReply> {
        let by = self.caller(&request)?;
        let cluster = self.published.now();
        let no_such_job = || to_status(&model::Reject::NoSuchJob);
        let job = cluster.job(model::JobId(request.get_ref().job)).ok_or_else(no_such_job)?;
        let JobKind::Batch { script } = job.spec.kind else {
            return Err(to_status(&model::Reject::NotPermitted));
        };
        if !by.may_act_for(job.spec.uid) {
            return Err(to_status(&model::Reject::NotPermitted));
        }
        let content = cluster.blob(script).ok_or_else(no_such_job)?;
        Ok(Response::new(BlobReply { content: bytes::Bytes::from_owner(content.clone()) }))
    }

    async fn why(&self, request: Request<WhyRequest>) -> Answer<Self::WhyStream> {
        let named: JobRef = read(&request.get_ref().job)?;
        let cluster = self.published.now();
        let reader = self.reader(&request)?;
        let id = cluster.named(&named).and_then(|jobs| jobs.first().copied());
        let id = id.filter(|id| cluster.job(*id).is_some_and(|job| reader.may_see_job(&cluster, job)));
        // Several plans are made for one answer.
        let make = move || WhyReply { why: codec::encode(&id.and_then(|id| scheduler::why(&cluster, id))).into() };
        self.in_turn(&request, make).await
    }

    async fn ping(&self, _: Request<Nothing>) -> Answer<PingReply> {
        Ok(Response::new(PingReply {
            host: self.published.now().config().controller.host.clone(),
            mode: "primary".into(),
            pid: std::process::id(),
            started_micros: self.started.0,
            rules: self.own.rules,
        }))
    }

    async fn members(&self, request: Request<Nothing>) -> Answer<Self::MembersStream> {
        let members = crate::members::view(&self.journal, &self.connections, &self.own).await;
        Ok(paged(&request, move || MembersReply { members: codec::encode(&members).into() }))
    }

    async fn audit(&self, request: Request<AuditRequest>) -> Answer<Self::AuditStream> {
        if authority::level(&self.published.now(), peer(&request)?, &self.names) < Level::Administrator {
            return Err(to_status(&model::Reject::NotPermitted));
        }
        Ok(Response::new(audit::of_all(self, read(&request.get_ref().query)?).await))
    }

    async fn backup(&self, request: Request<Nothing>) -> Answer<Self::BackupStream> {
        if !self.caller(&request)?.is_admin {
            return Err(to_status(&model::Reject::NotPermitted));
        }
        let whole = crate::backup::wrap(&codec::encode(&*self.published.now()));
        let pieces: Vec<_> =
            whole.chunks(BACKUP_PIECE).map(|piece| Ok(BackupReply { piece: piece.to_vec().into() })).collect();
        Ok(Response::new(Box::pin(futures::stream::iter(pieces))))
    }

    async fn join(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        let asked: model::trust::JoinRequest = read(&request.get_ref().command)?;
        // Its secret is not for the audit.
        let name = asked.node.as_ref().map_or_else(|| asked.address.clone(), |node| node.name.to_string());
        AuditNotes::about(request.extensions(), &format_args!("{:?} {name}", asked.role));
        trust::join(self, asked).await
    }

    async fn renew(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        let shown = Origin::shown_certificate(&request).unwrap_or_default();
        let origin = origin(&request)?;
        trust::renew(self, &origin, shown, &request.get_ref().command).await
    }

    async fn make_token(&self, request: Request<CommandRequest>) -> Answer<TokenReply> {
        let by = self.caller(&request)?;
        let role = read(&request.get_ref().command)?;
        AuditNotes::about(request.extensions(), &role);
        trust::make_token(self, by, role).await
    }

    async fn locate(&self, request: Request<LocateRequest>) -> Answer<LocateReply> {
        let cluster = self.published.now();
        let node = cluster.node(&request.get_ref().node);
        let node = node.ok_or_else(|| to_status(&model::Reject::NoSuchNode(request.get_ref().node.clone())))?;
        let certificates = certificates::of_node(&cluster, &request.get_ref().node);
        Ok(Response::new(LocateReply { address: node.machine.address.clone(), certificates }))
    }

    async fn user_token(&self, request: Request<UserTokenRequest>) -> Answer<UserTokenReply> {
        let (by, from) = (self.caller(&request)?, origin(&request)?.from);
        AuditNotes::about(request.extensions(), &request.get_ref().user);
        tokens::make(self, by, &from, request.into_inner()).await
    }

    async fn change_tokens(&self, request: Request<CommandRequest>) -> Answer<CommandReply> {
        let (by, from) = (self.caller(&request)?, origin(&request)?.from);
        let asked = read(&request.get_ref().command)?;
        AuditNotes::about(request.extensions(), &asked);
        tokens::change(self, by, &from, asked).await
    }

    async fn vouch(&self, request: Request<VouchRequest>) -> Answer<VouchReply> {
        let VouchRequest { node, uid, for_data, certificate } = request.into_inner();
        let cluster = self.published.now();
        let from = From::Node(node.clone());
        // Agents of an earlier release do not say what they were shown.
        if !certificate.is_empty() && certificates::of_passed_on(&cluster, &from, &certificate) != Belief::Believed {
            return Ok(Response::new(VouchReply { is_believed: false }));
        }
        let said = wire::peer::Peer { uid, gid: 0, pid: None };
        let is_believed = matches!(vouching::vouched(&cluster, &self.names, &node, said), Vouched::Believed(_));
        let may_have_data = || for_data && !authority::is_daemons(said) && cluster.has_buffer_on(uid, &node);
        Ok(Response::new(VouchReply { is_believed: is_believed || may_have_data() }))
    }

    async fn remove_node(&self, request: Request<CommandRequest>) -> Answer<Nothing> {
        let by = self.caller(&request)?;
        let node: model::NodeName = read(&request.get_ref().command)?;
        AuditNotes::about(request.extensions(), &node);
        trust::remove_node(self, by, node).await
    }

    async fn change_members(&self, request: Request<CommandRequest>) -> Answer<Nothing> {
        // A controller that has just joined asks for itself.
        let by = match origin(&request)?.from {
            From::Controller(_) => Caller::SYSTEM,
            From::Local | From::Node(_) | From::Bearer | From::Stranger => self.caller(&request)?,
        };
        let wish = read(&request.get_ref().command)?;
        AuditNotes::about(request.extensions(), &wish);
        members::change(self, by, wish).await
    }

    async fn attend(&self, request: Request<Streaming<FromAgent>>) -> Answer<Self::AttendStream> {
        let proof = match origin(&request)? {
            // By its certificate it can only be this one.
            Origin { from: From::Node(node), user: None } => {
                Some(attend::AgentProof { node, fingerprint: Origin::shown_certificate(&request) })
            }
            // On one machine, agents run as root or as the controller does: nobody else can be a node.
            Origin { from: From::Local, user: Some(user) } if authority::is_daemons(user) => None,
            _ => return Err(to_status(&model::Reject::NotPermitted)),
        };
        attend::attend(self, request.into_inner(), proof).await
    }
}

impl Api {
    /// The answer to a question that costs as much as the cluster is large.
    async fn in_turn<T, R: NounInPages>(
        &self,
        request: &Request<T>,
        make: impl FnOnce() -> R + Send + 'static,
    ) -> Answer<Streamed<R>> {
        let by = self.caller(request)?;
        let (stock, takes_pages) = (AnswerStock::of(request), wire::pages::are_taken(request));
        let kept = stock.clone();
        let made = self.work_turns.work(by.uid, stock.wait_for_room(), move || make().kept(&kept)).await?;
        Ok(Response::new(wire::pages::made_noun(made, takes_pages)))
    }
}

/// The answer, made when it is read; in pages for those who put them together.
fn paged<T, R: NounInPages>(request: &Request<T>, make: impl FnOnce() -> R + Send + 'static) -> Response<Streamed<R>> {
    Response::new(wire::pages::noun(AnswerStock::of(request), wire::pages::are_taken(request), make))
}

/// The list, made page by page as it is read.
fn listed<T, R: ListInPages>(
    request: &Request<T>,
    first: R,
    items: impl Iterator<Item = bytes::Bytes> + Send + 'static,
) -> Response<Streamed<R>> {
    Response::new(wire::pages::list(first, wire::pages::are_taken(request), items))
}

/// What a caller says: decoded within bounds, its texts and lists within theirs.
pub fn read<T: text_bounds::Judged>(bytes: &[u8]) -> Result<T, Status> {
    let value: T =
        codec::decode_sent(bytes).map_err(|error| Status::invalid_argument(format!("unreadable request: {error}")))?;
    text_bounds::judge(&value).map_err(|fault| to_status(&fault.into()))?;
    Ok(value)
}

pub(crate) fn refused(refusal: &Refusal) -> Status {
    match refusal {
        Refusal::Rejected(reject) => to_status(reject),
        // Asking again at once is in vain.
        Refusal::NotWritten(why) if is_disk_full(why) => Status::resource_exhausted(why),
        Refusal::NotWritten(why) => again(why.clone()),
    }
}

/// Somebody else may be able to, or we ourselves soon.
fn again(why: String) -> Status {
    let mut status = Status::unavailable(why);
    status.metadata_mut().insert(AGAIN_HEADER, MetadataValue::from_static("1"));
    status
}

fn request_id<T>(request: &Request<T>) -> Option<RequestId> {
    wire::reach::read_request_id(request.metadata().get(REQUEST_HEADER)?.to_str().ok()?)
}

fn origin<T>(request: &Request<T>) -> Result<Origin, Status> {
    let origin = request.extensions().get::<Origin>().cloned();
    origin.ok_or_else(|| Status::unauthenticated("the caller's identity is unknown"))
}
