//! One node's end of a step: the agent's stream, opened again whenever it breaks.
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use model::attach::{FromStep, ToStep};
use model::{ExitStatus, codec};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use wire::{CallError, Way, proto};

use super::output::Piece;

const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Messages on their way to a node.
const QUEUE: usize = 8;

/// What a node says, besides output, which goes straight to the writer.
#[derive(Debug)]
pub enum News {
    /// Ranks and process ids.
    Started {
        tasks: Vec<(u32, u32)>,
    },
    Ended {
        rank: u32,
        exit: ExitStatus,
    },
    /// All tasks there have entered a fence, and have put this before.
    Fence {
        sequence: u32,
        entries: Vec<(String, String)>,
    },
    /// The tasks there of a group, which is on so many nodes, have come to its meeting.
    Gather {
        group: String,
        n_nodes: u32,
        sequence: u32,
        data: Vec<u8>,
    },
    /// A task there wants what one on another node has put.
    Fetch {
        number: u64,
        node: u32,
        rank: u32,
    },
    Fetched {
        to: u32,
        number: u64,
        status: i32,
        data: Vec<u8>,
    },
    /// A task there wants all to end.
    Abort {
        rank: u32,
        text: String,
    },
    /// Everything is over there, and all output has been passed on.
    Finished,
    /// Nothing will come from there; why.
    Failed(String),
    /// It has not been reached for a while; why. It is tried on.
    Away(String),
}

/// What is said whenever the stream is opened, until it is settled.
pub type Standing = Arc<Mutex<Vec<ToStep>>>;

/// Keeps the stream to one node until the step has ended there.
pub struct Connection {
    pub way: Way,
    pub open: ToStep,
    pub standing: Standing,
    pub node: usize,
    pub output: mpsc::Sender<Piece>,
    pub news: mpsc::UnboundedSender<(usize, News)>,
}

enum Parting {
    Over,
    Broken(String),
}

/// A node that is not reached for so long is worth a word.
const AWAY: Duration = Duration::from_secs(10);

impl Connection {
    /// Starts it; what is sent goes to the node.
    pub fn start(self) -> (mpsc::Sender<ToStep>, tokio::task::AbortHandle) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let task = tokio::spawn(self.keep(receiver));
        (sender, task.abort_handle())
    }

    async fn keep(self, mut outgoing: mpsc::Receiver<ToStep>) {
        let mut pause = PAUSE_MIN;
        let mut since = None;
        loop {
            let Parting::Broken(why) = self.serve(&mut outgoing, &mut pause).await else { return };
            // Whatever was heard meanwhile has set the pause back.
            if pause == PAUSE_MIN {
                since = None;
            }
            match since {
                None => since = Some((Instant::now(), false)),
                Some((begin, false)) if begin.elapsed() > AWAY => {
                    since = Some((begin, true));
                    self.tell(News::Away(why));
                }
                Some(_) => {}
            }
            // An agent that restarts is back within moments; the step's own life ends the waiting otherwise.
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn serve(&self, outgoing: &mut mpsc::Receiver<ToStep>, pause: &mut Duration) -> Parting {
        let mut client = match self.way.open().await {
            Ok(client) => client,
            Err(error) => return Parting::Broken(error.to_string()),
        };
        let (requests, stream) = mpsc::channel(QUEUE);
        if requests.send(encode(&self.open)).await.is_err() {
            return Parting::Broken("the stream has ended".into());
        }
        let mut answers = match client.attach(ReceiverStream::new(stream)).await {
            Ok(answers) => answers.into_inner(),
            Err(status) => return self.refused(CallError::from(status)),
        };
        let standing = self.standing.lock().expect("nobody panics with it").clone();
        let forward = async {
            for message in &standing {
                let _ = requests.send(encode(message)).await;
            }
            while let Some(message) = outgoing.recv().await {
                if requests.send(encode(&message)).await.is_err() {
                    break;
                }
            }
            std::future::pending::<()>().await
        };
        let listen = async {
            loop {
                match answers.message().await {
                    Ok(Some(answer)) => {
                        *pause = PAUSE_MIN;
                        let Ok(message) = codec::decode(&answer.message) else {
                            return Parting::Broken("it says what this srun cannot read".into());
                        };
                        if self.hear(message).await {
                            return Parting::Over;
                        }
                    }
                    Ok(None) => return Parting::Broken("the stream has ended".into()),
                    Err(status) => return self.refused(CallError::from(status)),
                }
            }
        };
        // Both at once: input that waits for the tasks must never keep their output waiting.
        tokio::select! {
            () = forward => Parting::Broken(String::new()),
            parting = listen => parting,
        }
    }

    fn refused(&self, error: CallError) -> Parting {
        match error {
            CallError::Broken(_) | CallError::Unreachable { .. } => Parting::Broken(error.to_string()),
            CallError::Refused(_) | CallError::Other(_) => {
                self.tell(News::Failed(error.to_string()));
                Parting::Over
            }
        }
    }

    /// True when that was the last.
    async fn hear(&self, message: FromStep) -> bool {
        match message {
            FromStep::Output { rank, stream, data } => {
                let _ = self.output.send(Piece { rank, stream, data }).await;
                false
            }
            FromStep::Started { tasks } => self.tell(News::Started { tasks }),
            FromStep::TaskExited { rank, exit } => self.tell(News::Ended { rank, exit }),
            FromStep::Fence { sequence, entries } => self.tell(News::Fence { sequence, entries }),
            FromStep::Gather { group, n_nodes, sequence, data } => {
                self.tell(News::Gather { group, n_nodes, sequence, data })
            }
            FromStep::Fetch { number, node, rank } => self.tell(News::Fetch { number, node, rank }),
            FromStep::Fetched { to, number, status, data } => self.tell(News::Fetched { to, number, status, data }),
            FromStep::Abort { rank, text } => self.tell(News::Abort { rank, text }),
            FromStep::Finished => {
                self.tell(News::Finished);
                true
            }
            FromStep::Failed { why } => {
                self.tell(News::Failed(why));
                true
            }
        }
    }

    fn tell(&self, news: News) -> bool {
        let _ = self.news.send((self.node, news));
        false
    }
}

fn encode(message: &ToStep) -> proto::ToStep {
    proto::ToStep { message: codec::encode(message).into() }
}
