//! The controllers among themselves: the log's messages, who leads, and what is asked of the members.
use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use journal::{Answer, Journal, Leadership, MembersError, Transport};
use model::audit::AuditQuery;
use model::members::{MemberView, Members};
use model::{Reject, Reply, Timestamp, codec};
use tokio_stream::Stream;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::transport::Channel;
use tonic::transport::server::UdsConnectInfo;
use tonic::{Request, Response, Status, Streaming};
use wire::bounded_body::{self, BodyBound};
use wire::channel::MAX_MESSAGE_BYTES;
use wire::proto::member_client::MemberClient;
use wire::proto::member_server::{Member, MemberServer};
use wire::proto::{AuditReply, AuditRequest, Nothing, PingReply, RaftMessage};
use wire::tls;
use wire::tls::Principal;
use wire::tls::certificate_belief::CertificateBelief;
use wire::tls::connect::Expected;
use wire::tls::identity::Keyring;
use wire::tls::listen::Caller;

use crate::api::audit;
use crate::audit::AuditLog;
use crate::certificates;
use crate::leader::neighbours;
use crate::machine::Published;

pub type ClusterJournal = Journal<Result<Reply, Reject>>;

/// A member that does not even take a connection within this time is away.
const CONNECT_PATIENCE: Duration = Duration::from_secs(1);
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// How often one that does not answer is told to end, and how long it is left alone in between.
const END_TRIES: u32 = 4;
const END_PAUSE: Duration = Duration::from_millis(200);
/// A hand-over that has not happened by then will not.
const HAND_OVER_PATIENCE: Duration = Duration::from_secs(10);

/// Where another controller is reached: `unix:PATH` on the same machine.
pub fn unix_address(socket: &str) -> String {
    format!("unix:{socket}")
}

/// Open connections to the other members.
pub struct Connections {
    /// With the certificate that each shows; a newer one is shown to all.
    open: Mutex<HashMap<String, (String, Channel)>>,
    /// What is shown to members on other machines.
    keyring: Option<Arc<Keyring>>,
}

impl Connections {
    pub fn new(keyring: Option<Arc<Keyring>>) -> Connections {
        Connections { open: Mutex::default(), keyring }
    }

    /// The fingerprint of what other machines are shown; empty: nothing.
    pub fn shown(&self) -> String {
        self.keyring.as_ref().map(|keyring| keyring.now().fingerprint.clone()).unwrap_or_default()
    }

    pub async fn to(&self, address: &str) -> io::Result<Channel> {
        let own = self.shown();
        if let Some((_, channel)) = self.lock().get(address).filter(|(shown, _)| *shown == own) {
            return Ok(channel.clone());
        }
        let connecting = tokio::time::timeout(CONNECT_PATIENCE, connect(address, self.keyring.as_ref()));
        let channel = connecting.await.map_err(|_| io::Error::other(format!("{address} does not answer")))??;
        self.lock().insert(address.to_owned(), (own, channel.clone()));
        Ok(channel)
    }

    /// The next one who asks gets a new connection.
    pub fn forget(&self, address: &str) {
        self.lock().remove(address);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (String, Channel)>> {
        self.open.lock().expect("nobody panics with it")
    }
}

async fn connect(address: &str, keyring: Option<&Arc<Keyring>>) -> io::Result<Channel> {
    match (address.strip_prefix("unix:"), keyring) {
        (Some(path), _) => wire::channel::connect_watchful(Path::new(path)).await.map_err(io::Error::other),
        (None, Some(keyring)) => {
            tls::connect::connect(address, keyring.clone(), Expected::AnyController).await.map_err(io::Error::other)
        }
        (None, None) => {
            Err(io::Error::other(format!("{address} is on another machine, and this one has no certificate")))
        }
    }
}

fn member_client(channel: Channel) -> MemberClient<Channel> {
    MemberClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES).max_encoding_message_size(MAX_MESSAGE_BYTES)
}

/// Carries what the log says to other members.
pub struct Carrier {
    pub connections: Arc<Connections>,
}

impl Transport for Carrier {
    fn call(&self, _: u64, address: &str, request: Vec<u8>) -> Answer {
        let (connections, address) = (self.connections.clone(), address.to_owned());
        Box::pin(async move {
            let mut client = member_client(connections.to(&address).await?);
            match client.raft(RaftMessage { content: request.into() }).await {
                Ok(answer) => Ok(answer.into_inner().content.to_vec()),
                Err(status) => {
                    connections.forget(&address);
                    Err(io::Error::other(status.to_string()))
                }
            }
        })
    }
}

/// What a controller answers to the others. Only [`MemberGate`] lets them in.
pub struct MemberApi {
    pub journal: ClusterJournal,
    pub ends_all: Arc<AtomicBool>,
    pub own: MemberView,
    pub audit: AuditLog,
}

#[tonic::async_trait]
impl Member for MemberApi {
    type ReadAuditStream = Pin<Box<dyn Stream<Item = Result<AuditReply, Status>> + Send>>;

    async fn read_audit(&self, request: Request<AuditRequest>) -> Result<Response<Self::ReadAuditStream>, Status> {
        let query = codec::decode_sent(&request.get_ref().query);
        let query = query.map_err(|error| Status::invalid_argument(error.to_string()))?;
        Ok(Response::new(audit::of_one(self.audit.clone(), query)))
    }

    async fn raft(&self, request: Request<RaftMessage>) -> Result<Response<RaftMessage>, Status> {
        let answer = self.journal.answer(&request.into_inner().content).await;
        let content = answer.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => Status::invalid_argument(error.to_string()),
            _ => Status::unavailable(error.to_string()),
        })?;
        Ok(Response::new(RaftMessage { content: content.into() }))
    }

    async fn stand(&self, _: Request<Nothing>) -> Result<Response<Nothing>, Status> {
        self.journal.stand().await.map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(Response::new(Nothing {}))
    }

    async fn end(&self, _: Request<Nothing>) -> Result<Response<Nothing>, Status> {
        tracing::info!("all controllers are to end");
        self.ends_all.store(true, Ordering::Relaxed);
        // SAFETY: a plain system call on this very process.
        unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
        Ok(Response::new(Nothing {}))
    }

    async fn alive(&self, _: Request<Nothing>) -> Result<Response<PingReply>, Status> {
        let started_micros = self.own.started.unwrap_or_default().0;
        let (host, pid) = (self.own.host.clone(), std::process::id());
        let rules = self.own.rules;
        Ok(Response::new(PingReply { host, mode: "backup".into(), pid, started_micros, rules }))
    }
}

/// Nothing is said to members and agents that show a certificate which the state does not believe.
pub async fn keep_belief(published: Published, journal: ClusterJournal, keyring: Arc<Keyring>) {
    let mut changes = published.changes();
    loop {
        let cluster = changes.borrow_and_update().clone();
        let trust = cluster.trust();
        let standing = neighbours::standing(&cluster, &journal, &keyring.now().fingerprint).into_iter();
        keyring.believe(CertificateBelief {
            taken_back: trust.revoked.keys().cloned().collect(),
            controllers: standing.map(|one| (one.fingerprint, one.until.secs())).collect(),
            recovery: trust.recovery.fingerprint.clone(),
        });
        if changes.wait_for(|newer| !Arc::ptr_eq(newer.trust(), trust)).await.is_err() {
            return;
        }
    }
}

/// Hears controllers alone, and decides it before it reads what they say: their messages are the longest of all.
#[derive(Clone)]
pub struct MemberGate {
    pub inner: MemberServer<MemberApi>,
    pub audit: AuditLog,
    pub journal: ClusterJournal,
    pub published: Published,
}

impl NamedService for MemberGate {
    const NAME: &'static str = "spur.v1.Member";
}

impl MemberGate {
    /// By the connection alone: nobody speaks to a member through somebody else.
    fn check(&self, request: &http::Request<Body>) -> Result<(), Status> {
        let denied = || Status::permission_denied("only controllers may say this");
        let Some(caller) = request.extensions().get::<Caller>() else {
            let user = request.extensions().get::<UdsConnectInfo>().and_then(|info| info.peer_cred);
            // SAFETY: geteuid cannot fail.
            let is_own = user.is_some_and(|user| [0, unsafe { libc::geteuid() }].contains(&user.uid()));
            return if is_own { Ok(()) } else { Err(denied()) };
        };
        let Some(principal @ Principal::Controller(_)) = &caller.principal else { return Err(denied()) };
        let cluster = self.published.now();
        let belief = certificates::of_connection(&cluster, &self.journal, principal, &caller.fingerprint);
        belief.refusal(true).map_or(Ok(()), Err)
    }
}

impl Service<http::Request<Body>> for MemberGate {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if let Err(status) = self.check(&request) {
            self.audit.unheard(&request, &status);
            return Box::pin(std::future::ready(Ok(status.into_http())));
        }
        let (request, hold) = bounded_body::bound(request, BodyBound::LOG);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            drop(hold);
            answer
        })
    }
}

/// All members, each asked for a sign of life.
pub async fn view(journal: &ClusterJournal, connections: &Connections, own: &MemberView) -> Members {
    let standing = journal.standing();
    let asked = standing.members.into_iter().map(|member| {
        let last_log = standing.last_log;
        async move {
            let mut view = MemberView {
                id: member.id,
                is_voter: member.is_voter,
                is_leader: Some(member.id) == standing.leader,
                last_log: member.last_log,
                n_behind: member.last_log.map(|reached| last_log.saturating_sub(reached)),
                ..Default::default()
            };
            if member.id == standing.id {
                view = MemberView {
                    answers: true,
                    host: own.host.clone(),
                    started: own.started,
                    rules: own.rules,
                    ..view
                };
            } else if let Some(alive) = ask(connections, &member.address).await {
                let started = Some(Timestamp(alive.started_micros));
                view = MemberView { answers: true, host: alive.host, started, rules: alive.rules, ..view };
            }
            view.address = member.address;
            view
        }
    });
    Members { term: standing.term, members: futures::future::join_all(asked).await }
}

async fn ask(connections: &Connections, address: &str) -> Option<PingReply> {
    let channel = connections.to(address).await.ok()?;
    let mut client = member_client(channel);
    Some(tokio::time::timeout(CONNECT_PATIENCE, client.alive(Nothing {})).await.ok()?.ok()?.into_inner())
}

/// What another member has in its audit; none: it does not answer.
pub async fn read_audit(connections: &Connections, address: &str, query: &AuditQuery) -> Option<Streaming<AuditReply>> {
    let mut client = member_client(connections.to(address).await.ok()?);
    let request = AuditRequest { query: codec::encode(query).into() };
    Some(tokio::time::timeout(ANSWER_PATIENCE, client.read_audit(request)).await.ok()?.ok()?.into_inner())
}

/// Tells all others to end; those that do not hear it are away anyway.
pub async fn end_others(journal: &ClusterJournal, connections: &Connections) {
    let standing = journal.standing();
    let told = standing.members.iter().filter(|member| member.id != standing.id).map(async |member| {
        // One that is slow to answer would stay alone, and lead nobody.
        for _ in 0..END_TRIES {
            let Ok(channel) = connections.to(&member.address).await else { return };
            let ended = tokio::time::timeout(ANSWER_PATIENCE, member_client(channel).end(Nothing {})).await;
            if matches!(ended, Ok(Ok(_))) {
                return;
            }
            tokio::time::sleep(END_PAUSE).await;
        }
        tracing::warn!(member = member.id, "this controller could not be told to end");
    });
    futures::future::join_all(told).await;
}

/// The leader falls silent; when the others no longer wait for it, the one that is to lead stands for election.
pub async fn hand_over(
    journal: &ClusterJournal,
    connections: &Connections,
    to: Option<u64>,
) -> Result<(), MembersError> {
    let standing = journal.standing();
    if to == Some(standing.id) {
        return Ok(());
    }
    let mut able: Vec<_> =
        standing.members.iter().filter(|member| member.is_voter && member.id != standing.id).collect();
    // The one that is furthest can be elected.
    able.sort_by_key(|member| std::cmp::Reverse(member.last_log));
    let next = match to {
        Some(id) => able.iter().find(|member| member.id == id).copied().ok_or(MembersError::Unknown(id))?,
        None => able.first().copied().ok_or(MembersError::Last(standing.id))?,
    };
    let refused = |why: String| MembersError::Refused(format!("controller {} cannot lead: {why}", next.id));
    // One that cannot be reached cannot lead either: nothing is given up for it.
    ask(connections, &next.address).await.ok_or_else(|| refused("it does not answer".into()))?;
    let lease = journal.lease();
    let urging = async {
        loop {
            tokio::time::sleep(lease + lease / 8).await;
            // One that has gone meanwhile will not lead.
            let Ok(channel) = connections.to(&next.address).await else { return };
            let stood = tokio::time::timeout(ANSWER_PATIENCE, member_client(channel).stand(Nothing {})).await;
            if !matches!(stood, Ok(Ok(_))) {
                return connections.forget(&next.address);
            }
        }
    };
    let is_lost = tokio::select! {
        is_lost = journal.fall_silent(HAND_OVER_PATIENCE) => is_lost,
        () = urging => false,
    };
    if !is_lost {
        return Err(refused("it was not elected in time".into()));
    }
    tracing::info!(to = next.id, "the lead was handed over");
    Ok(())
}

/// What a member must know of itself before it has a log.
#[derive(Clone, Debug)]
pub struct Place {
    pub member: u64,
    /// All members, if they begin together.
    pub members: Vec<(u64, String)>,
    /// It waits to be added.
    pub joins: bool,
}

/// The members that share a machine: one socket each.
pub fn on_this_machine(sockets: impl Iterator<Item = PathBuf>) -> Vec<(u64, String)> {
    (1..).zip(sockets.map(|socket| unix_address(&socket.to_string_lossy()))).collect()
}

/// Resolves when this member leads no more.
pub async fn until_lost(journal: &ClusterJournal, term: u64) {
    let mut leadership = journal.leadership();
    let _ = leadership.wait_for(|now| *now != Leadership::Leader { term }).await;
}
