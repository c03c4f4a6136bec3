//! `srun`'s way to its tasks: one stream a client, between the socket's caller and the step's supervisor.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use model::attach::{FromStep, ToStep};
use model::codec;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use wire::peer::{self, Peer};
use wire::proto;
use wire::proto::agent_server::Agent as AgentService;

use crate::answers;
use crate::audited::{AgentAudit, AuditedCaller};
use crate::processes;
use crate::protocol::{RunId, ToSupervisor};
use crate::staging;
use crate::step_answers::{AnswerQueue, AnswerStream, EncodedEvent, StepParting};
use crate::supervisor_words::SupervisorWords;
use crate::sys;
use crate::table::{Agent, Entry};

/// How long a client waits for its step to be launched.
const LAUNCH_PATIENCE: Duration = Duration::from_secs(60);
/// How long a client that has hung up may take to end.
const DYING_PATIENCE: Duration = Duration::from_secs(2);
/// How long a client that has everything may take to hang up.
const PARTING_PATIENCE: Duration = Duration::from_secs(5);

pub struct Door {
    agent: Arc<Agent>,
}

impl Door {
    pub fn new(agent: Arc<Agent>) -> Self {
        Door { agent }
    }

    pub fn audit(&self) -> AgentAudit {
        self.agent.audit.clone()
    }
}

#[tonic::async_trait]
impl AgentService for Door {
    type AttachStream = AnswerStream;

    async fn attach(&self, request: Request<Streaming<proto::ToStep>>) -> Result<Response<Self::AttachStream>, Status> {
        let caller = peer::of(&request).ok_or_else(|| Status::unauthenticated("the caller is not known"))?;
        let audited = AuditedCaller::of(request.extensions(), Some(caller), "Attach");
        let mut requests = request.into_inner();
        let queue = AnswerQueue::new(self.agent.shares.of(caller.uid));
        let (stream, agent) = (queue.stream(), self.agent.clone());
        let receipts = Arc::new(OwnReceipts::default());
        let told = (agent.clone(), receipts.clone());
        tokio::spawn(async move {
            let first = tokio::select! {
                first = requests.message() => first,
                _ = queue.parting() => return,
            };
            let Ok(Some(first)) = first else { return };
            match codec::decode_sent(&first.message) {
                Ok(ToStep::Open { job, attempt, step }) => {
                    let run = RunId { job, attempt, step };
                    StepClient { agent, run, caller, audited, queue, receipts }.serve(requests).await;
                }
                Ok(ToStep::Observe { job, attempt, step }) => {
                    let run = RunId { job, attempt, step };
                    StepClient { agent, run, caller, audited, queue, receipts }.look_on(requests).await;
                }
                Ok(_) | Err(_) => queue.refuse(Status::invalid_argument("the first message must name a step")),
            }
        });
        let (agent, receipts) = told;
        Ok(Response::new(stream.on_output(move |handed_bytes| receipts.handed(&agent, handed_bytes))))
    }

    type MirrorStream = ReceiverStream<Result<proto::Piece, Status>>;

    async fn mirror(&self, request: Request<Streaming<proto::Piece>>) -> Result<Response<Self::MirrorStream>, Status> {
        let audited = AuditedCaller::of(request.extensions(), peer::of(&request), "Mirror");
        match staging::serve(&self.agent, request).await {
            Ok((home, pieces)) => {
                self.agent.audit.allowed(&audited, &format!("{home:?}"));
                Ok(Response::new(pieces))
            }
            Err(status) => {
                self.agent.audit.refused(&audited, "", status.message());
                Err(status)
            }
        }
    }

    async fn ask(&self, request: Request<proto::AskRequest>) -> Result<Response<proto::AskReply>, Status> {
        let caller = peer::of(&request).ok_or_else(|| Status::unauthenticated("the caller is not known"))?;
        let audited = AuditedCaller::of(request.extensions(), Some(caller), "Ask");
        let question = codec::decode_sent(&request.into_inner().question)
            .map_err(|_| Status::invalid_argument("an unreadable question"))?;
        let answer = answers::answer(&self.agent, &audited, caller, question).await;
        Ok(Response::new(proto::AskReply { answer: codec::encode(&answer).into() }))
    }
}

/// Receipts for a client that writes none: what its connection has taken counts as received.
#[derive(Default)]
struct OwnReceipts {
    /// The run whose client it has become.
    run: OnceLock<RunId>,
    /// The client says what it has received.
    are_clients: AtomicBool,
}

impl OwnReceipts {
    fn handed(&self, agent: &Agent, handed_bytes: u64) {
        let Some(run) = self.run.get().filter(|_| !self.are_clients.load(Ordering::Relaxed)) else { return };
        if let Some(entry) = agent.table().runs.get(run) {
            entry.to.receive(handed_bytes);
        }
    }
}

/// One call, for one run.
struct StepClient {
    agent: Arc<Agent>,
    run: RunId,
    caller: Peer,
    audited: AuditedCaller,
    queue: AnswerQueue,
    receipts: Arc<OwnReceipts>,
}

impl StepClient {
    async fn serve(self, requests: Streaming<proto::ToStep>) {
        let words = tokio::select! {
            words = self.wait_for_launch() => words,
            _ = self.queue.parting() => return,
        };
        let Some(words) = words else { return };
        self.agent.audit.allowed(&self.audited, &self.run.to_string());
        let hearing = hear_client(words.clone(), requests, self.queue.clone(), self.receipts.clone());
        let mut hearing = std::pin::pin!(hearing);
        let mut is_heard = false;
        let parting = loop {
            tokio::select! {
                parting = self.queue.parting() => break parting,
                // That it says no more does not mean that it hears no more.
                () = &mut hearing, if !is_heard => is_heard = true,
            }
        };
        match parting {
            StepParting::Finished => {
                // The client hangs up when it has everything; what it did not get would be lost after this.
                if !is_heard {
                    let _ = tokio::time::timeout(PARTING_PATIENCE, hearing).await;
                }
                self.say(ToSupervisor::Release);
            }
            StepParting::Broken | StepParting::Lagging => {
                self.say(ToSupervisor::Detach);
                // A client that lives may come again; one that has died does not.
                if has_died(self.caller).await && !self.is_followed() {
                    self.say(ToSupervisor::Release);
                }
            }
            StepParting::Replaced => {}
        }
    }

    /// Another client has come for the run, and is still there.
    fn is_followed(&self) -> bool {
        self.agent.table().runs.get(&self.run).is_some_and(Entry::is_attended)
    }

    /// Shows a run's output to one more, from what was printed last on; what that one types goes to the tasks.
    async fn look_on(self, mut requests: Streaming<proto::ToStep>) {
        let words = match self.agent.table().runs.get_mut(&self.run) {
            Some(entry) if !self.may_attach(entry) => return self.refuse_as_denied(),
            Some(entry) if !entry.has_ended => match entry.take_onlooker(self.queue.clone()) {
                Ok(()) => entry.to.clone(),
                Err(why) => return self.refuse(Status::resource_exhausted(why)),
            },
            Some(_) | None => return self.fail("the step has ended"),
        };
        self.agent.audit.allowed(&self.audited, &format!("onlooker of {}", self.run));
        let hearing = async {
            while let Ok(Some(request)) = requests.message().await {
                // The end of what an onlooker has to say is not the end of the tasks' input.
                if let Ok(message @ (ToStep::Input { .. } | ToStep::Signal { .. } | ToStep::Resize { .. })) =
                    codec::decode_sent(&request.message)
                    && !words.pass_on(message, request.message.len()).await
                {
                    return;
                }
            }
        };
        tokio::select! {
            () = hearing => self.queue.replace(),
            _ = self.queue.parting() => {}
        }
    }

    fn may_attach(&self, entry: &Entry) -> bool {
        [0, entry.uid, sys::own_uid()].contains(&self.caller.uid)
    }

    fn refuse_as_denied(&self) {
        self.refuse(Status::permission_denied("Access/permission denied"));
    }

    fn refuse(&self, refusal: Status) {
        self.agent.audit.refused(&self.audited, &self.run.to_string(), refusal.message());
        self.queue.refuse(refusal);
    }

    fn fail(&self, why: &str) {
        self.queue.push(&EncodedEvent::of(&FromStep::Failed { why: why.to_owned() }));
    }

    /// Waits until the step is here, and becomes its client. None: it is told why not.
    async fn wait_for_launch(&self) -> Option<SupervisorWords> {
        let mut launches = self.agent.launched.subscribe();
        let patience = tokio::time::sleep(LAUNCH_PATIENCE);
        tokio::pin!(patience);
        let why = loop {
            launches.borrow_and_update();
            {
                let mut table = self.agent.table();
                if let Some(entry) = table.runs.get_mut(&self.run) {
                    if !self.may_attach(entry) {
                        self.refuse_as_denied();
                        return None;
                    }
                    let _ = self.receipts.run.set(self.run);
                    entry.take_client(self.queue.clone());
                    return Some(entry.to.clone());
                }
                if table.is_over(self.run) {
                    break "the step has ended";
                }
                if table.killed.contains(self.run) {
                    break "the step was ended before it was launched";
                }
            }
            tokio::select! {
                changed = launches.changed() => if changed.is_err() { break "the agent is stopping" },
                () = &mut patience => break "the step was not launched here",
            }
        };
        self.fail(why);
        None
    }

    fn say(&self, message: ToSupervisor) {
        if let Some(entry) = self.agent.table().runs.get(&self.run) {
            entry.to.say(message);
        }
    }
}

/// Until the client says no more; that it may still listen is no concern of this.
async fn hear_client(
    words: SupervisorWords,
    mut requests: Streaming<proto::ToStep>,
    queue: AnswerQueue,
    receipts: Arc<OwnReceipts>,
) {
    while let Ok(Some(request)) = requests.message().await {
        let Ok(mut message) = codec::decode_sent::<ToStep>(&request.message) else { return };
        match &mut message {
            ToStep::Received { total_bytes } => {
                receipts.are_clients.store(true, Ordering::Relaxed);
                // Nobody has received what is still here: for each such byte the supervisor would send another.
                *total_bytes = (*total_bytes).min(queue.handed_bytes());
            }
            ToStep::Open { .. } | ToStep::Observe { .. } => continue,
            ToStep::Input { .. }
            | ToStep::EndOfInput
            | ToStep::Resize { .. }
            | ToStep::Signal { .. }
            | ToStep::Fence { .. }
            | ToStep::Gathered { .. }
            | ToStep::Fetch { .. }
            | ToStep::Fetched { .. }
            | ToStep::Begin { .. } => {}
        }
        if !words.pass_on(message, request.message.len()).await {
            return;
        }
    }
}

/// Whether the caller, if it is a process of this machine, ends at once: its sockets are closed a little before it is gone.
async fn has_died(caller: Peer) -> bool {
    let Some(pid) = caller.pid.filter(|pid| *pid > 0) else { return false };
    let ends = async {
        while !processes::is_dead(pid) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(DYING_PATIENCE, ends).await.is_ok()
}
