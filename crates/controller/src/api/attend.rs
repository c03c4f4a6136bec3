//! An agent's one long-lived stream: reports come in, orders go out.
use std::sync::Arc;
use std::time::Duration;

use model::agent::{Order, Report};
use model::command::Exited;
use model::staging::Inventory;
use model::{Caller, Command, NodeName, codec};
use tokio::sync::{Notify, mpsc};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Response, Status, Streaming};
use wire::proto::{FromAgent, ToAgent};

use super::{Answer, Api, Streamed, read};
use crate::agents::{Agents, Orders};
use crate::door::{Door, Refusal, is_disk_full};
use crate::leader::runner::{Handle, Notice};
use crate::leader::{health, neighbours, pools, stager};
use crate::machine::Published;
use crate::progress::ProgressTable;

/// A result that the disk has no room for is proposed again after this long.
const UNWRITTEN_PAUSE: Duration = Duration::from_secs(1);

/// `named` is the node that the agent's certificate is for.
pub async fn attend(api: &Api, mut reports: Streaming<FromAgent>, named: Option<String>) -> Answer<Streamed<ToAgent>> {
    let (orders, outgoing) = mpsc::unbounded_channel();
    let first = reports.next().await.ok_or_else(|| Status::invalid_argument("an agent says hello first"))??;
    let Report::Hello { node, machine, runs } = read(&first.report)? else {
        return Err(Status::invalid_argument("an agent says hello first"));
    };
    if named.is_some_and(|named| named != node.as_str()) {
        return Err(Status::permission_denied("the certificate is another node's"));
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
            if let Some(neighbours) = neighbours::of(&api.published.now(), &api.journal) {
                let _ = orders.send(Order::Neighbours(Box::new(neighbours)));
            }
            let cluster = api.published.now();
            let _ = orders.send(pools::order(&cluster, &node));
            if is_new && !cluster.config().health.check.is_empty() {
                let _ = orders.send(health::order(&cluster));
            }
            let connected = api.agents.connect(api.lead, &node, orders.clone());
            let (number, close) = connected.ok_or_else(|| Status::unavailable("this controller leads no more"))?;
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
}

impl Listener {
    async fn listen(self, mut reports: Streaming<FromAgent>) {
        loop {
            let report = tokio::select! {
                report = reports.next() => report,
                () = self.close.notified() => break,
            };
            match report {
                Some(Ok(message)) => match codec::decode::<Report>(&message.report) {
                    Ok(report) => self.heed(report),
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

    fn heed(&self, report: Report) {
        self.agents.heard(&self.node);
        match report {
            Report::Answer { number, result } => {
                self.runner.tell(Notice::Answered { node: self.node.clone(), number, result });
            }
            Report::Exited { sequence, exited } => self.take_exit(sequence, exited),
            Report::Heartbeat | Report::Hello { .. } => (),
            Report::Load(load) => self.agents.is_loaded(&self.node, load),
            Report::Staged { number, result } => {
                self.stager.tell(stager::Notice::Answered { node: self.node.clone(), number, result });
            }
            Report::Progress { works } => self.progress.take(&self.published.now(), &self.node, works),
            Report::Inventory(inventory) => self.take_inventory(inventory),
        }
    }

    /// What its file systems can hold goes to the log when it has changed by much; what it holds is looked at now.
    fn take_inventory(&self, mut inventory: Inventory) {
        self.progress.measured(&self.node, &inventory.homes);
        if self.progress.foreign.judge(&self.published.now(), &self.node, &mut inventory.pools) {
            let (door, node, pools) = (self.door.clone(), self.node.clone(), inventory.pools.clone());
            tokio::spawn(async move {
                if let Err(refusal) = door.propose(Caller::SYSTEM, Command::PoolsSeen { node, pools }).await {
                    tracing::warn!(?refusal, "what an agent says of its pools was not written");
                }
            });
        }
        self.stager.tell(stager::Notice::Inventory { node: self.node.clone(), inventory });
    }

    /// Acknowledged once it is durable; a stale report needs no keeping either.
    fn take_exit(&self, sequence: u64, mut exited: Exited) {
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
        });
    }
}
