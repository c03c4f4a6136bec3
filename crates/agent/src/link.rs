//! The one stream to the controller: kept, and made again whenever it breaks.
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use model::agent::{Order, Report};
use model::codec;
use model::node::Machine;
use tokio::sync::mpsc::{self, Receiver};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use wire::channel::MAX_MESSAGE_BYTES;
use wire::proto::controller_client::ControllerClient;
use wire::proto::{FromAgent, ToAgent};
use wire::tls::connect::Expected;

use crate::Options;
use crate::table::{Agent, REPORTS_MAX};
use crate::{hooks, orders, staging};

const BACK_OFF_MIN: Duration = Duration::from_millis(10);
/// An end that is not acknowledged within this time (up to twice) is reported again.
const REPORT_AGAIN: Duration = Duration::from_secs(10);
const BACK_OFF_MAX: Duration = Duration::from_secs(2);
/// Where another controller may be there already.
const BACK_OFF_SEVERAL: Duration = Duration::from_millis(300);

/// Never ends.
pub async fn keep(agent: Arc<Agent>) -> Infallible {
    let mut back_off = BACK_OFF_MIN;
    let mut was_connected = true;
    let mut was_welcome = false;
    let mut turn = 0;
    loop {
        let mut is_welcome = false;
        let end = attend(&agent, turn, (was_welcome, &mut is_welcome)).await;
        was_welcome |= is_welcome;
        turn += 1;
        agent.table().link = None;
        if is_welcome {
            back_off = BACK_OFF_MIN;
        }
        // Said once per outage, not once per attempt.
        if was_connected || is_welcome {
            match end {
                Ok(()) => tracing::warn!("the controller has closed the stream"),
                Err(error) => tracing::warn!("no stream to the controller: {error:#}"),
            }
        }
        was_connected = is_welcome;
        tokio::time::sleep(jittered(back_off)).await;
        let back_off_max = match &agent.options {
            options if options.controllers.len() > 1 || options.remote.is_some() => BACK_OFF_SEVERAL,
            _ => BACK_OFF_MAX,
        };
        back_off = (back_off * 2).min(back_off_max);
    }
}

/// One controller after the other.
async fn connect(options: &Options, turn: usize) -> Result<Channel, wire::CallError> {
    if let Some(remote) = &options.remote {
        let controllers = remote.controllers();
        let address = controllers.get(turn % controllers.len().max(1));
        let address = address.ok_or_else(|| wire::CallError::Other("no controller is known".into()))?;
        return wire::tls::connect::connect(address, remote.keyring.clone(), Expected::AnyController).await;
    }
    let controller = &options.controllers[turn % options.controllers.len()];
    match options.controllers.len() {
        1 => wire::channel::connect(controller).await,
        // One that stands still must not keep the agent from the others.
        _ => wire::channel::connect_watchful(controller).await,
    }
}

async fn attend(agent: &Arc<Agent>, turn: usize, (was_welcome, is_welcome): (bool, &mut bool)) -> anyhow::Result<()> {
    let channel = connect(&agent.options, turn).await?;
    let mut client = ControllerClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let (say, reports) = mpsc::channel(REPORTS_MAX);
    let address = agent.options.remote.as_ref().map(|remote| agent.heard.address(remote)).unwrap_or_default();
    let mut machine = Machine { pools: staging::pool_reports(agent).await, address, ..agent.machine.clone() };
    // A node that was deleted does not come back by itself.
    machine.dynamic = machine.dynamic.filter(|_| !was_welcome);
    let mut runs = agent.table().live_runs();
    // Nodes come back into use only when the epilogs of what ran there have.
    runs.extend(hooks::runs(agent));
    runs.sort_unstable_by_key(|run| (run.job, run.attempt));
    runs.dedup();
    let hello = Report::Hello { node: agent.options.node.clone(), machine: Box::new(machine), runs };
    say.try_send(hello).context("the stream has just been made")?;
    let mut orders = client.attend(encoded(reports)).await?.into_inner();
    let mut again = tokio::time::interval(REPORT_AGAIN);
    let mut old_sequence = 0;
    let mut heartbeat = tokio::time::interval(agent.options.heartbeat);
    heartbeat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            order = orders.message() => {
                let Some(ToAgent { order }) = order? else { return Ok(()) };
                // A controller of a later version may ask for what this agent does not know; the rest is done all the same.
                let order: Order = match codec::decode(&order) {
                    Ok(order) => order,
                    Err(error) => {
                        tracing::error!(%error, "an order that this agent cannot read");
                        continue;
                    }
                };
                match &order {
                    Order::Welcome => {
                        tracing::info!("registered with the controller");
                        *is_welcome = true;
                        agent.table().link = Some(say.clone());
                    }
                    Order::Refuse { why } => anyhow::bail!("refused: {why}"),
                    _ => {}
                }
                orders::obey(agent, order);
            }
            _ = again.tick() => {
                let table = agent.table();
                table.report_again(old_sequence);
                old_sequence = table.next_sequence();
            }
            // The controllers are told where with the next greeting.
            () = agent.heard.is_new() => return Ok(()),
            _ = heartbeat.tick() => {
                // A controller of an earlier version knows only the first.
                drop(say.try_send(Report::Heartbeat));
                drop(say.try_send(Report::Load(crate::machine::load())));
            }
        }
    }
}

fn encoded(reports: Receiver<Report>) -> impl tokio_stream::Stream<Item = FromAgent> {
    ReceiverStream::new(reports).map(|report| FromAgent { report: codec::encode(&report).into() })
}

/// Between half and all of it, so that many agents do not come at once.
fn jittered(pause: Duration) -> Duration {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.subsec_nanos());
    let seed = nanos ^ std::process::id().wrapping_mul(2_654_435_761);
    pause / 2 + (pause / 2).mul_f64(f64::from(seed % 1000) / 1000.0)
}
