//! `srun`'s way to its tasks: one stream a client, between the socket's caller and the step's supervisor.
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::attach::{FromStep, ToStep};
use model::codec;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{self, UnboundedReceiver, unbounded_channel};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use wire::peer::{self, Peer};
use wire::proto;
use wire::proto::agent_server::Agent as AgentService;

use crate::answers;
use crate::processes;
use crate::protocol::{FromSupervisor, RunId, ToSupervisor};
use crate::staging;
use crate::sys;
use crate::table::{Agent, Entry};

/// How long a client waits for its step to be launched.
const LAUNCH_PATIENCE: Duration = Duration::from_secs(60);
/// How long a client that has hung up may take to end.
const DYING_PATIENCE: Duration = Duration::from_secs(2);
/// How long a client that has everything may take to hang up.
const PARTING_PATIENCE: Duration = Duration::from_secs(5);
/// Input on its way to the tasks, at most.
const INPUT_BYTES_MAX: usize = 256 * 1024;

pub struct Door {
    agent: Arc<Agent>,
}

impl Door {
    pub fn new(agent: Arc<Agent>) -> Self {
        Door { agent }
    }
}

type Answer = Result<proto::FromStep, Status>;

#[tonic::async_trait]
impl AgentService for Door {
    type AttachStream = Pin<Box<ReceiverStream<Answer>>>;

    async fn attach(&self, request: Request<Streaming<proto::ToStep>>) -> Result<Response<Self::AttachStream>, Status> {
        let caller = peer::of(&request).ok_or_else(|| Status::unauthenticated("the caller is not known"))?;
        let (answers, stream) = mpsc::channel(16);
        tokio::spawn(serve(self.agent.clone(), caller, request.into_inner(), answers));
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    type MirrorStream = ReceiverStream<Result<proto::Piece, Status>>;

    async fn mirror(&self, request: Request<Streaming<proto::Piece>>) -> Result<Response<Self::MirrorStream>, Status> {
        Ok(Response::new(staging::serve(&self.agent, request).await?))
    }

    async fn ask(&self, request: Request<proto::AskRequest>) -> Result<Response<proto::AskReply>, Status> {
        let caller = peer::of(&request).ok_or_else(|| Status::unauthenticated("the caller is not known"))?;
        let question = codec::decode_sent(&request.into_inner().question)
            .map_err(|_| Status::invalid_argument("an unreadable question"))?;
        let answer = answers::answer(&self.agent, caller, question).await;
        Ok(Response::new(proto::AskReply { answer: codec::encode(&answer).into() }))
    }
}

async fn serve(agent: Arc<Agent>, caller: Peer, mut requests: Streaming<proto::ToStep>, answers: mpsc::Sender<Answer>) {
    let run = match requests.message().await {
        Ok(Some(request)) => match codec::decode_sent(&request.message) {
            Ok(ToStep::Open { job, attempt, step }) => RunId { job, attempt, step },
            Ok(ToStep::Observe { job, attempt, step }) => {
                return observe(agent, caller, RunId { job, attempt, step }, requests, answers).await;
            }
            Ok(_) | Err(_) => {
                let _ = answers.send(Err(Status::invalid_argument("the first message must name a step"))).await;
                return;
            }
        },
        Ok(None) | Err(_) => return,
    };
    let (to_client, events) = unbounded_channel();
    if let Err(refusal) = wait_for_launch(&agent, run, caller, to_client, &answers).await {
        let _ = answers.send(refusal).await;
        return;
    }
    let shared = Arc::new(Shared { has_receipts: AtomicBool::new(false), room: Semaphore::new(INPUT_BYTES_MAX) });
    let hearing = tokio::spawn(hear_client(agent.clone(), run, requests, shared.clone()));
    let abort = hearing.abort_handle();
    match tell_client(&agent, run, events, answers, &shared).await {
        Parting::Finished => {
            // The client hangs up when it has everything; what it did not get would be lost after this.
            let _ = tokio::time::timeout(PARTING_PATIENCE, hearing).await;
            send(&agent, run, ToSupervisor::Release);
        }
        Parting::Broken => {
            send(&agent, run, ToSupervisor::Detach);
            abort.abort();
            // A client that lives may come again; one that has died does not.
            if has_died(caller).await && !agent.table().runs.get(&run).is_some_and(is_attended) {
                send(&agent, run, ToSupervisor::Release);
            }
        }
        Parting::Replaced => {}
    }
    abort.abort();
}

/// Shows a run's output to one more, from what was printed last on; what that one types goes to the tasks.
async fn observe(
    agent: Arc<Agent>,
    caller: Peer,
    run: RunId,
    mut requests: Streaming<proto::ToStep>,
    answers: mpsc::Sender<Answer>,
) {
    let (to_observer, mut events) = unbounded_channel();
    let refusal = match agent.table().runs.get_mut(&run) {
        Some(entry) if ![0, entry.uid, sys::own_uid()].contains(&caller.uid) => {
            Some(Err(Status::permission_denied("Access/permission denied")))
        }
        Some(entry) if !entry.has_ended => {
            entry.recent.pieces().for_each(|piece| {
                let _ = to_observer.send(piece.clone());
            });
            entry.observers.push(to_observer);
            None
        }
        Some(_) | None => Some(encode(&FromStep::Failed { why: "the step has ended".to_owned() })),
    };
    if let Some(refusal) = refusal {
        let _ = answers.send(refusal).await;
        return;
    }
    loop {
        tokio::select! {
            event = events.recv() => {
                // The supervisor's end without a word: nothing more will come.
                let event = event.unwrap_or(FromStep::Finished);
                let is_last = matches!(event, FromStep::Finished | FromStep::Failed { .. });
                if answers.send(encode(&event)).await.is_err() || is_last {
                    return;
                }
            }
            request = requests.message() => match request {
                Ok(Some(request)) => {
                    // The end of what an onlooker has to say is not the end of the tasks' input.
                    if let Ok(message @ (ToStep::Input { .. } | ToStep::Signal { .. } | ToStep::Resize { .. })) =
                        codec::decode_sent(&request.message)
                    {
                        send(&agent, run, ToSupervisor::Step(message));
                    }
                }
                Ok(None) | Err(_) => return,
            },
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

/// Whether a client has come that is still there.
fn is_attended(entry: &Entry) -> bool {
    entry.client.as_ref().is_some_and(|client| !client.is_closed())
}

struct Shared {
    /// The client says what it has received; until then, what it was sent counts as received.
    has_receipts: AtomicBool,
    room: Semaphore,
}

/// Waits until the step is here, and becomes its client.
async fn wait_for_launch(
    agent: &Agent,
    run: RunId,
    caller: Peer,
    to_client: mpsc::UnboundedSender<FromSupervisor>,
    answers: &mpsc::Sender<Answer>,
) -> Result<(), Answer> {
    let failed = |why: &str| Err(encode(&FromStep::Failed { why: why.to_owned() }));
    let mut launches = agent.launched.subscribe();
    let patience = tokio::time::sleep(LAUNCH_PATIENCE);
    tokio::pin!(patience);
    loop {
        launches.borrow_and_update();
        {
            let mut table = agent.table();
            if let Some(entry) = table.runs.get_mut(&run) {
                if ![0, entry.uid, sys::own_uid()].contains(&caller.uid) {
                    return Err(Err(Status::permission_denied("Access/permission denied")));
                }
                entry.client = Some(to_client);
                let _ = entry.to.send(ToSupervisor::Attach);
                return Ok(());
            }
            if table.is_over(run) {
                return failed("the step has ended");
            }
            if table.killed.contains(run) {
                return failed("the step was ended before it was launched");
            }
        }
        tokio::select! {
            changed = launches.changed() => if changed.is_err() { return failed("the agent is stopping") },
            () = &mut patience => return failed("the step was not launched here"),
            () = answers.closed() => return failed("the client has gone"),
        }
    }
}

enum Parting {
    Finished,
    Broken,
    /// Another client has come for the same step.
    Replaced,
}

async fn tell_client(
    agent: &Agent,
    run: RunId,
    mut events: UnboundedReceiver<FromSupervisor>,
    answers: mpsc::Sender<Answer>,
    shared: &Shared,
) -> Parting {
    let mut total_bytes = 0;
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = answers.closed() => return Parting::Broken,
        };
        let Some(event) = event else {
            // The supervisor is gone before it said all, or a newer client has our place.
            let is_gone = !agent.table().runs.contains_key(&run);
            if is_gone {
                let why = "the step's supervisor is gone".to_owned();
                let _ = answers.send(encode(&FromStep::Failed { why })).await;
            }
            return Parting::Replaced;
        };
        match event {
            FromSupervisor::Step(message) => {
                if let FromStep::Output { data, .. } = &message {
                    total_bytes += data.len() as u64;
                }
                let is_last = matches!(message, FromStep::Finished | FromStep::Failed { .. });
                if answers.send(encode(&message)).await.is_err() {
                    return Parting::Broken;
                }
                if !shared.has_receipts.load(Ordering::Relaxed) {
                    send(agent, run, ToSupervisor::Step(ToStep::Received { total_bytes }));
                }
                if is_last {
                    return Parting::Finished;
                }
            }
            FromSupervisor::InputTaken { bytes } => shared.room.add_permits(bytes as usize),
            FromSupervisor::Done { .. }
            | FromSupervisor::Measured { .. }
            | FromSupervisor::Ended(_)
            | FromSupervisor::StandsBy => {}
        }
    }
}

/// Until the client says no more; that it may still listen is no concern of this.
async fn hear_client(agent: Arc<Agent>, run: RunId, mut requests: Streaming<proto::ToStep>, shared: Arc<Shared>) {
    while let Ok(Some(request)) = requests.message().await {
        let Ok(message) = codec::decode_sent::<ToStep>(&request.message) else { return };
        match &message {
            ToStep::Input { data, .. } => {
                // One message may be larger than the room; it then waits until all of it is free.
                let needed = data.len().min(INPUT_BYTES_MAX);
                let Ok(permits) = shared.room.acquire_many(needed as u32).await else { return };
                permits.forget();
                if data.len() > needed {
                    shared.room.forget_permits(data.len() - needed);
                }
            }
            ToStep::Received { .. } => shared.has_receipts.store(true, Ordering::Relaxed),
            ToStep::Open { .. } | ToStep::Observe { .. } => continue,
            ToStep::EndOfInput
            | ToStep::Resize { .. }
            | ToStep::Signal { .. }
            | ToStep::Fence { .. }
            | ToStep::Gathered { .. }
            | ToStep::Fetch { .. }
            | ToStep::Fetched { .. }
            | ToStep::Begin { .. } => {}
        }
        send(&agent, run, ToSupervisor::Step(message));
    }
}

fn send(agent: &Agent, run: RunId, message: ToSupervisor) {
    if let Some(entry) = agent.table().runs.get(&run) {
        let _ = entry.to.send(message);
    }
}

fn encode(message: &FromStep) -> Answer {
    Ok(proto::FromStep { message: codec::encode(message).into() })
}
