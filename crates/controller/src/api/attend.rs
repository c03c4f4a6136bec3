//! An agent's one long-lived stream: reports come in, orders go out.
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::agent::{Order, Report};
use model::command::Exited;
use model::staging::Inventory;
use model::{Caller, Command, NodeName, codec, text_bounds};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Response, Status, Streaming};
use wire::proto::{FromAgent, ToAgent};

use super::{Answer, Api, Streamed, read};
use crate::agents::{Agents, Orders};
use crate::certificates::{self, Belief};
use crate::door::{Door, Refusal, is_disk_full};
use crate::leader::runner::{Handle, Notice};
use crate::leader::{health, neighbours, pools, stager};
use crate::machine::Published;
use crate::progress::ProgressTable;

/// A result that the disk has no room for is proposed again after this long.
const UNWRITTEN_PAUSE: Duration = Duration::from_secs(1);

/// An agent as its certificate has it.
pub struct AgentProof {
    pub node: String,
    /// None: a controller of an earlier release passed its stream on.
    pub fingerprint: Option<String>,
}

impl AgentProof {
    /// The node was not removed since the agent was let in.
    fn still_stands(&self, cluster: &state::Cluster) -> bool {
        let Some(fingerprint) = &self.fingerprint else { return true };
        let from = wire::origin::From::Node(self.node.clone());
        certificates::of_passed_on(cluster, &from, fingerprint) == Belief::Believed
    }
}

/// None: an agent of this machine, which the kernel vouches for.
pub async fn attend(
    api: &Api,
    mut reports: Streaming<FromAgent>,
    proof: Option<AgentProof>,
) -> Answer<Streamed<ToAgent>> {
    let (orders, outgoing) = mpsc::unbounded_channel();
    let first = reports.next().await.ok_or_else(|| Status::invalid_argument("an agent says hello first"))??;
    let Report::Hello { node, machine, runs } = read(&first.report)? else {
        return Err(Status::invalid_argument("an agent says hello first"));
    };
    if proof.as_ref().is_some_and(|proof| proof.node != node.as_str()) {
        return Err(Status::permission_denied("the certificate is another node's"));
    }
    let taken_back = || Status::permission_denied("this certificate was taken back");
    // The greeting may have come long after the call.
    if proof.as_ref().is_some_and(|proof| !proof.still_stands(&api.published.now())) {
        return Err(taken_back());
    }
    // As in Slurm, a node is checked when its agent starts.
    let is_new = api
        .published
        .now()
        .node(node.as_str())
        .is_none_or(|known| known.machine.agent_started != machine.agent_started);
    let register = Command::RegisterNode { node: node.clone(), machine, runs };
    match api.door.propose(Caller::SYSTEM, register).await {
        Ok(_) => {
            tracing::info!(%node, "the agent is here");
            let _ = orders.send(Order::Welcome);
            if let Some(neighbours) = neighbours::of(&api.published.now(), &api.journal, &api.connections) {
                let _ = orders.send(Order::Neighbours(Box::new(neighbours)));
            }
            let cluster = api.published.now();
            let _ = orders.send(pools::order(&cluster, &node));
            if is_new && !cluster.config().health.check.is_empty() {
                let _ = orders.send(health::order(&cluster));
            }
            let connected = api.agents.connect(api.lead, &node, orders.clone());
            let (number, close) = connected.ok_or_else(|| Status::unavailable("this controller leads no more"))?;
            // Whoever removes the node from now on closes this stream; whoever did before has not seen it.
            if proof.as_ref().is_some_and(|proof| !proof.still_stands(&api.published.now())) {
                api.agents.close(&node);
                return Err(taken_back());
            }
            api.runner.tell(Notice::Connected(node.clone()));
            api.stager.tell(stager::Notice::Connected(node.clone()));
            let listener = Listener {
                node,
                number,
                close,
                orders,
                door: api.door.clone(),
                agents: api.agents.clone(),
                runner: api.runner.clone(),
                stager: api.stager.clone(),
                progress: api.progress.clone(),
                published: api.published.clone(),
                writing: Arc::new(Semaphore::new(WRITING_MAX)),
            };
            tokio::spawn(listener.listen(reports));
        }
        Err(Refusal::Rejected(reject)) => {
            tracing::warn!(%node, %reject, "an agent is not wanted here");
            let _ = orders.send(Order::Refuse { why: reject.to_string() });
        }
        Err(Refusal::NotWritten(why)) => return Err(Status::unavailable(why)),
    }
    let stream =
        UnboundedReceiverStream::new(outgoing).map(|order| Ok(ToAgent { order: codec::encode(&order).into() }));
    Ok(Response::new(Box::pin(stream)))
}

struct Listener {
    node: NodeName,
    number: u64,
    close: Arc<Notify>,
    orders: Orders,
    door: Arc<Door>,
    agents: Arc<Agents>,
    runner: Handle,
    stager: stager::Handle,
    progress: Arc<ProgressTable>,
    published: Published,
    writing: Arc<Semaphore>,
}

/// So many reports of one agent wait for the log at once.
const WRITING_MAX: usize = 512;
/// No honest agent says more: a node does not run that many steps.
const REPORTS_PER_SEC: u32 = 20_000;

/// How fast an agent may report; whoever is faster is read later.
struct ReportPace {
    since: Instant,
    n_reports: u32,
}

impl ReportPace {
    fn new(now: Instant) -> ReportPace {
        ReportPace { since: now, n_reports: 0 }
    }

    async fn wait(&mut self) {
        self.n_reports += 1;
        if self.n_reports >= REPORTS_PER_SEC {
            tokio::time::sleep_until((self.since + Duration::from_secs(1)).into()).await;
            *self = ReportPace::new(Instant::now());
        }
    }
}

/// A report whose texts and lists are within bounds, as those of any caller.
fn readable(report: &[u8]) -> Result<Report, String> {
    let mut report: Report = codec::decode_sent(report).map_err(|error| error.to_string())?;
    report.shorten_sentences();
    text_bounds::judge(&report).map_err(|fault| fault.to_string())?;
    Ok(report)
}

impl Listener {
    async fn listen(self, mut reports: Streaming<FromAgent>) {
        let mut pace = ReportPace::new(Instant::now());
        loop {
            let report = tokio::select! {
                report = reports.next() => report,
                () = self.close.notified() => break,
            };
            match report {
                Some(Ok(message)) => match readable(&message.report) {
                    Ok(report) => {
                        self.agents.heard(&self.node);
                        pace.wait().await;
                        // What waits for the log does so in bounds; the agent waits meanwhile.
                        let Ok(turn) = self.writing.clone().acquire_owned().await else { break };
                        self.heed(report, turn);
                    }
                    Err(error) => tracing::warn!(node = %self.node, %error, "an unreadable report"),
                },
                Some(Err(status)) => {
                    tracing::info!(node = %self.node, %status, "the agent's stream broke");
                    break;
                }
                None => break,
            }
        }
        self.agents.disconnect(&self.node, self.number);
    }

    fn heed(&self, report: Report, turn: OwnedSemaphorePermit) {
        match report {
            Report::Answer { number, result } => {
                self.runner.tell(Notice::Answered { node: self.node.clone(), number, result });
            }
            Report::Exited { sequence, exited } => self.take_exit(sequence, exited, turn),
            Report::Heartbeat | Report::Hello { .. } => (),
            Report::Load(load) => self.agents.is_loaded(&self.node, load),
            Report::Staged { number, result } => {
                self.stager.tell(stager::Notice::Answered { node: self.node.clone(), number, result });
            }
            Report::Progress { works } => self.progress.take(&self.published.now(), &self.node, works),
            Report::Inventory(inventory) => self.take_inventory(inventory, turn),
        }
    }

    /// What its file systems can hold goes to the log when it has changed by much; what it holds is looked at now.
    fn take_inventory(&self, mut inventory: Inventory, turn: OwnedSemaphorePermit) {
        self.progress.measured(&self.node, &inventory.homes);
        if self.progress.foreign.judge(&self.published.now(), &self.node, &mut inventory.pools) {
            let (door, node, pools) = (self.door.clone(), self.node.clone(), inventory.pools.clone());
            tokio::spawn(async move {
                if let Err(refusal) = door.propose(Caller::SYSTEM, Command::PoolsSeen { node, pools }).await {
                    tracing::warn!(?refusal, "what an agent says of its pools was not written");
                }
                drop(turn);
            });
        }
        self.stager.tell(stager::Notice::Inventory { node: self.node.clone(), inventory });
    }

    /// Acknowledged once it is durable; a stale report needs no keeping either.
    fn take_exit(&self, sequence: u64, mut exited: Exited, turn: OwnedSemaphorePermit) {
        exited.node = self.node.clone();
        let (door, orders) = (self.door.clone(), self.orders.clone());
        tokio::spawn(async move {
            let mut is_told = false;
            while let Err(Refusal::NotWritten(why)) =
                door.propose(Caller::SYSTEM, Command::Exited(exited.clone())).await
            {
                if !std::mem::replace(&mut is_told, true) {
                    tracing::warn!(why, "the end of a run was not written yet");
                }
                // The agent keeps it until then; a broken stream has the report sent again.
                tokio::time::sleep(UNWRITTEN_PAUSE).await;
                if orders.is_closed() || !is_disk_full(&why) {
                    return;
                }
            }
            let _ = orders.send(Order::Acknowledge { sequences: vec![sequence] });
            drop(turn);
        });
    }
}
