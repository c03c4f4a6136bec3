//! Plays many agents in one process, so that a controller can be measured with thousands of nodes on one machine.
//!
//!     cargo build --release -p wire --example agents
//!     target/release/examples/agents --socket DIR/run/controller.sock [--socket ANOTHER] --nodes 'n[1-1000]' [--run-ms 0]
//!
//! Each agent has a connection of its own, says hello, and answers every order at once; nothing is ever run. A launched script
//! ends well after `--run-ms`, or after as many seconds as a line `#PLAY 2.5` of it says. What it has reported it reports again
//! until that is acknowledged, and a stream that breaks is made again with the next socket: as real agents do it.
//! One line a second tells how many are connected, and what they have done.
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use model::agent::{Launch, Order, Report};
use model::command::{DutyResult, Exited};
use model::node::{Machine, Run};
use model::{ExitStatus, JobId, NodeName, StepId, codec, hostlist};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use wire::channel::MAX_MESSAGE_BYTES;
use wire::proto::controller_client::ControllerClient;
use wire::proto::{FromAgent, ToAgent};

const HEARTBEAT: Duration = Duration::from_secs(5);
const REPORT_AGAIN: Duration = Duration::from_secs(10);
const BACK_OFF: Duration = Duration::from_millis(200);
/// So many come at once in the beginning.
const COMING_AT_ONCE: usize = 64;

#[derive(Default)]
struct Tally {
    connected: AtomicU64,
    launched: AtomicU64,
    ended: AtomicU64,
    killed: AtomicU64,
    acknowledged: AtomicU64,
    lost_streams: AtomicU64,
}

struct Play {
    sockets: Vec<PathBuf>,
    run: Duration,
    tally: Tally,
}

/// What a run is known by on a node.
type Key = (JobId, u32, StepId);

/// One agent's memory: it outlives its streams.
#[derive(Default)]
struct Table {
    live: HashMap<Key, tokio::task::AbortHandle>,
    spool: BTreeMap<u64, Exited>,
    last_sequence: u64,
}

fn main() {
    let (mut sockets, mut nodes, mut run) = (Vec::new(), Vec::new(), Duration::ZERO);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_else(|| fail(&format!("{word} needs a value")));
        match word.as_str() {
            "--socket" => sockets.push(PathBuf::from(value)),
            "--nodes" => nodes = hostlist::expand(&value).unwrap_or_else(|error| fail(&error.to_string())),
            "--run-ms" => {
                run = Duration::from_millis(value.parse().unwrap_or_else(|_| fail("--run-ms needs a number")))
            }
            _ => fail(&format!("what is {word}?")),
        }
    }
    if sockets.is_empty() || nodes.is_empty() {
        fail("usage: agents --socket FILE... --nodes LIST [--run-ms N]");
    }
    let play = Arc::new(Play { sockets, run, tally: Tally::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be started").block_on(all(play, nodes));
}

fn fail(why: &str) -> ! {
    eprintln!("agents: {why}");
    std::process::exit(1)
}

async fn all(play: Arc<Play>, nodes: Vec<String>) {
    for chunk in nodes.chunks(COMING_AT_ONCE) {
        for node in chunk {
            tokio::spawn(keep(play.clone(), NodeName::from(node.as_str())));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    loop {
        seconds.tick().await;
        let Tally { connected, launched, ended, killed, acknowledged, lost_streams } = &play.tally;
        let number = |counter: &AtomicU64| counter.load(Relaxed);
        println!(
            "connected {} launched {} ended {} killed {} acknowledged {} lost {}",
            number(connected),
            number(launched),
            number(ended),
            number(killed),
            number(acknowledged),
            number(lost_streams)
        );
    }
}

async fn keep(play: Arc<Play>, node: NodeName) {
    let mut table = Table::default();
    let (exits, mut ended) = unbounded_channel();
    for turn in 0.. {
        let mut is_connected = false;
        let end = attend(&play, &node, turn, &mut table, (&exits, &mut ended), &mut is_connected).await;
        if is_connected {
            play.tally.connected.fetch_sub(1, Relaxed);
            play.tally.lost_streams.fetch_add(1, Relaxed);
        }
        if let Err(why) = end
            && turn == 0
        {
            eprintln!("agents: {node}: {why}");
        }
        tokio::time::sleep(BACK_OFF).await;
    }
}

async fn attend(
    play: &Play,
    node: &NodeName,
    turn: usize,
    table: &mut Table,
    (exits, ended): (&UnboundedSender<Key>, &mut UnboundedReceiver<Key>),
    is_connected: &mut bool,
) -> Result<(), String> {
    let socket = &play.sockets[turn % play.sockets.len()];
    let channel = wire::channel::connect(socket).await.map_err(|error| error.to_string())?;
    let mut client = ControllerClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let (say, reports) = unbounded_channel();
    let mut runs: Vec<Run> = table.live.keys().map(|(job, attempt, _)| Run { job: *job, attempt: *attempt }).collect();
    runs.sort_unstable_by_key(|run| (run.job, run.attempt));
    runs.dedup();
    let hello = Report::Hello { node: node.clone(), machine: Box::new(Machine::default()), runs };
    let _ = say.send(hello);
    let reports =
        UnboundedReceiverStream::new(reports).map(|report: Report| FromAgent { report: codec::encode(&report).into() });
    let mut orders = client.attend(reports).await.map_err(|status| status.message().to_string())?.into_inner();
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    let mut again = tokio::time::interval(REPORT_AGAIN);
    loop {
        tokio::select! {
            order = orders.message() => {
                let Some(ToAgent { order }) = order.map_err(|status| status.message().to_string())? else {
                    return Ok(());
                };
                let order: Order = codec::decode(&order).map_err(|error| error.to_string())?;
                match order {
                    Order::Welcome => {
                        *is_connected = true;
                        play.tally.connected.fetch_add(1, Relaxed);
                    }
                    Order::Refuse { why } => return Err(why),
                    Order::Stop => return Ok(()),
                    order => obey(play, table, &say, exits, order),
                }
            }
            key = ended.recv() => {
                let Some((job, attempt, step)) = key else { return Ok(()) };
                if table.live.remove(&(job, attempt, step)).is_some() {
                    play.tally.ended.fetch_add(1, Relaxed);
                    table.last_sequence += 1;
                    let exited =
                        Exited { job, attempt, step, node: node.clone(), exit: ExitStatus::SUCCESS, ..Default::default() };
                    table.spool.insert(table.last_sequence, exited.clone());
                    let _ = say.send(Report::Exited { sequence: table.last_sequence, exited });
                }
            }
            _ = again.tick() => for (sequence, exited) in &table.spool {
                let _ = say.send(Report::Exited { sequence: *sequence, exited: exited.clone() });
            },
            _ = heartbeat.tick() => drop(say.send(Report::Heartbeat)),
        }
    }
}

fn obey(play: &Play, table: &mut Table, say: &UnboundedSender<Report>, exits: &UnboundedSender<Key>, order: Order) {
    let answer = |number| drop(say.send(Report::Answer { number, result: DutyResult::Done }));
    match order {
        Order::Launch { number, launch } => {
            play.tally.launched.fetch_add(1, Relaxed);
            let key = (launch.job, launch.attempt, launch.step);
            let (exits, lasts) = (exits.clone(), lasts(play, &launch));
            // One that is launched again, since its answer got lost, is the same run.
            table.live.entry(key).or_insert_with(|| {
                let run = tokio::spawn(async move {
                    tokio::time::sleep(lasts).await;
                    let _ = exits.send(key);
                });
                run.abort_handle()
            });
            answer(number);
        }
        Order::Kill { number, run, step, .. } => {
            let is_meant = |(job, attempt, own): &Key| {
                *job == run.job && *attempt == run.attempt && step.is_none_or(|step| step == *own)
            };
            let meant: Vec<Key> = table.live.keys().filter(|key| is_meant(key)).copied().collect();
            for key in meant {
                table.live.remove(&key).inspect(|run| run.abort());
                play.tally.killed.fetch_add(1, Relaxed);
            }
            answer(number);
        }
        Order::Freeze { number, .. }
        | Order::Thaw { number, .. }
        | Order::Signal { number, .. }
        | Order::Notify { number, .. }
        | Order::Prolog { number, .. }
        | Order::Epilog { number, .. } => answer(number),
        Order::Acknowledge { sequences } => {
            play.tally.acknowledged.fetch_add(sequences.len() as u64, Relaxed);
            sequences.iter().for_each(|sequence| drop(table.spool.remove(sequence)));
        }
        Order::Ping => drop(say.send(Report::Heartbeat)),
        // Buffers are not played.
        _ => (),
    }
}

/// `#PLAY 2.5` in the script, or what all last.
fn lasts(play: &Play, launch: &Launch) -> Duration {
    let script = String::from_utf8_lossy(&launch.script);
    let said = script.lines().find_map(|line| line.strip_prefix("#PLAY ")?.trim().parse::<f64>().ok());
    said.map_or(play.run, |seconds| Duration::from_secs_f64(seconds.clamp(0.0, 1e6)))
}
