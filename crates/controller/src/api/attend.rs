//! An agent's one long-lived stream: reports come in, orders go out.
use std::sync::Arc;

use model::agent::{Order, Report};
use model::command::Exited;
use model::{Caller, Command, NodeName, codec};
use tokio::sync::{Notify, mpsc};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Response, Status, Streaming};
use wire::proto::{FromAgent, ToAgent};

use super::{Answer, Api, Streamed, read};
use crate::agents::{Agents, Orders};
use crate::door::{Door, Refusal};
use crate::leader::runner::{Handle, Notice};

pub async fn attend(api: &Api, mut reports: Streaming<FromAgent>) -> Answer<Streamed<ToAgent>> {
    let (orders, outgoing) = mpsc::unbounded_channel();
    let first = reports.next().await.ok_or_else(|| Status::invalid_argument("an agent says hello first"))??;
    let Report::Hello { node, machine, runs } = read(&first.report)? else {
        return Err(Status::invalid_argument("an agent says hello first"));
    };
    let register = Command::RegisterNode { node: node.clone(), machine, runs };
    match api.door.propose(Caller::SYSTEM, register).await {
        Ok(_) => {
            tracing::info!(%node, "the agent is here");
            let _ = orders.send(Order::Welcome);
            let (number, close) = api.agents.connect(&node, orders.clone());
            api.runner.tell(Notice::Connected(node.clone()));
            let listener = Listener {
                node,
                number,
                close,
                orders,
                door: api.door.clone(),
                agents: api.agents.clone(),
                runner: api.runner.clone(),
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
            Report::Answer { number, result } => self.runner.tell(Notice::Answered { number, result }),
            Report::Exited { sequence, exited } => self.take_exit(sequence, exited),
            Report::Heartbeat | Report::Hello { .. } => (),
            // Nothing was ordered, so there is nothing to answer yet.
            Report::Staged { .. } | Report::Progress { .. } | Report::Inventory(_) => (),
        }
    }

    /// Acknowledged once it is durable; a stale report needs no keeping either.
    fn take_exit(&self, sequence: u64, mut exited: Exited) {
        exited.node = self.node.clone();
        let (door, orders) = (self.door.clone(), self.orders.clone());
        tokio::spawn(async move {
            match door.propose(Caller::SYSTEM, Command::Exited(exited)).await {
                Ok(_) | Err(Refusal::Rejected(_)) => {
                    // A broken stream has the report sent again.
                    let _ = orders.send(Order::Acknowledge { sequences: vec![sequence] });
                }
                Err(Refusal::NotWritten(why)) => tracing::warn!(why, "the end of a run was not written"),
            }
        });
    }
}
