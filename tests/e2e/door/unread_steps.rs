//! Clients of steps that do not read what they ask for: the agent keeps little for them, and drops those that lag.
use std::time::{Duration, Instant};

use model::attach::{FromStep, ToStep};
use model::request::JobFilter;
use model::{JobId, StepId, codec};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};
use wire::proto;
use wire::proto::agent_client::AgentClient;

use super::callers::{become_user, on_own_thread};
use super::endurance::resident_mib;
use super::processes::{as_user, own_user, shared};
use crate::cluster::Cluster;

const CONF: &str = "cluster_name = \"unread\"\n[[nodes]]\nnames = \"n1\"\ncpus = 4\nmemory_mb = 1000\n\
    [[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n";
/// What the agent may grow by, whatever its clients do.
const GROWS_MAX_MIB: u64 = 120;
const PATIENCE: Duration = Duration::from_secs(60);

/// One stream to the agent: what is said goes out, what is answered waits until somebody reads it.
struct UnreadStep {
    say: mpsc::Sender<proto::ToStep>,
    answers: Streaming<proto::FromStep>,
}

impl UnreadStep {
    async fn open(channel: &tonic::transport::Channel, first: &ToStep) -> UnreadStep {
        let (say, said) = mpsc::channel(1);
        say.send(encoded(first)).await.unwrap();
        let mut agent = AgentClient::new(channel.clone()).max_decoding_message_size(usize::MAX);
        let answers = agent.attach(ReceiverStream::new(said)).await.unwrap().into_inner();
        UnreadStep { say, answers }
    }

    /// False: the stream has ended.
    async fn say(&self, message: &ToStep) -> bool {
        let sending = self.say.send(encoded(message));
        tokio::time::timeout(Duration::from_millis(200), sending).await.is_ok_and(|sent| sent.is_ok())
    }

    /// How the stream ends, when everything before has been read.
    async fn end(&mut self) -> Option<Status> {
        let reading = async {
            loop {
                match self.answers.message().await {
                    Ok(Some(_)) => {}
                    Ok(None) => return None,
                    Err(status) => return Some(status),
                }
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("the stream ends")
    }
}

fn encoded(message: &ToStep) -> proto::ToStep {
    proto::ToStep { message: codec::encode(message).into() }
}

/// The newest job of a cluster, and its attempt.
pub async fn newest_run(socket: &std::path::Path) -> (JobId, u32) {
    let mut controller = wire::Controller::connect(socket).await.unwrap();
    let jobs = controller.all_jobs(&JobFilter::default()).await.unwrap().jobs;
    let newest = jobs.iter().max_by_key(|job| job.id).expect("a job");
    (newest.id, newest.attempt)
}

/// The most that the agent has grown by while this goes on.
struct GrowthWatch {
    pid: i32,
    before_mib: u64,
    most_mib: u64,
}

impl GrowthWatch {
    fn of_agent(head: &Cluster) -> GrowthWatch {
        let pid = head.agent_pid("n1");
        GrowthWatch { pid, before_mib: resident_mib(pid), most_mib: 0 }
    }

    fn look(&mut self, what: &str) {
        self.most_mib = self.most_mib.max(resident_mib(self.pid).saturating_sub(self.before_mib));
        assert!(self.most_mib < GROWS_MAX_MIB, "{what}: the agent has grown by {} MiB", self.most_mib);
    }
}

#[test]
fn clients_that_read_nothing_cost_the_agent_little() {
    let Some(head) = shared(CONF) else { return };
    let uid = own_user();
    let line = format!("exec {}", as_user(uid, "exec srun -n1 yes > /dev/null"));
    let mut srun = head.shell(&line).spawn().unwrap();
    head.wait_for("squeue -h -o %T; squeue -hs -o %i", "RUNNING\n1.0");
    // It stays connected, and does not come again when another client takes its place.
    // SAFETY: a plain call on a child of ours.
    unsafe { libc::kill(srun.id() as i32, libc::SIGSTOP) };
    let (controller, agent) = (head.dir.join("run/controller.sock"), head.dir.join("run/agent-n1.sock"));
    let mut growth = GrowthWatch::of_agent(&head);
    let growth = on_own_thread(async move {
        let (job, attempt) = newest_run(&controller).await;
        let (open, look) = (
            ToStep::Open { job, attempt, step: StepId::Number(0) },
            ToStep::Observe { job, attempt, step: StepId::Number(0) },
        );
        become_user(uid, uid);
        let channel = wire::channel::connect(&agent).await.unwrap();
        // Who claims to have received everything, and reads nothing.
        let liar = UnreadStep::open(&channel, &open).await;
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until && liar.say(&ToStep::Received { total_bytes: 1 << 62 }).await {
            growth.look("lying about receipts");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // One that takes the others' place, again and again.
        let mut replaced = vec![liar];
        for _ in 0..50 {
            replaced.push(UnreadStep::open(&channel, &open).await);
            growth.look("attaching again and again");
        }
        // Exchanges that nobody has asked for.
        let flood = ToStep::Gathered { group: "0-1".into(), sequence: 7, data: vec![0; 1 << 20] };
        for _ in 0..300 {
            if !replaced.last().unwrap().say(&flood).await {
                break;
            }
            growth.look("gathering");
        }
        drop(replaced);
        // Onlookers that do not look, beside a client that reads: connections of their own, since all share a window.
        let mut onlookers = Vec::new();
        for _ in 0..24 {
            let channel = wire::channel::connect(&agent).await.unwrap();
            onlookers.push(UnreadStep::open(&channel, &look).await);
        }
        let mut reader = UnreadStep::open(&channel, &open).await;
        let (mut n_bytes, until) = (0, Instant::now() + PATIENCE);
        while n_bytes < 100 << 20 {
            assert!(Instant::now() < until, "only {} MiB came", n_bytes >> 20);
            let answer = reader.answers.message().await.unwrap().expect("an endless step");
            if let Ok(FromStep::Output { data, .. }) = codec::decode(&answer.message) {
                n_bytes += data.len();
            }
            growth.look("looking on");
        }
        let (mut n_refused, mut n_lagging) = (0, 0);
        for onlooker in &mut onlookers {
            let end = onlooker.end().await.expect("each is told why");
            assert_eq!(end.code(), Code::ResourceExhausted, "{end}");
            n_refused += u32::from(end.message().contains("too many look on"));
            n_lagging += u32::from(end.message().contains("waiting to be read"));
        }
        assert_eq!((n_refused, n_lagging), (8, 16));
        growth
    });
    eprintln!("the agent grew by {} MiB at most", growth.most_mib);
    // SAFETY: a plain call on a child of ours.
    unsafe { libc::kill(srun.id() as i32, libc::SIGKILL) };
    srun.wait().unwrap();
    head.ok("scancel 1");
    // Others' steps, and their output, are as ever.
    assert_eq!(head.ok("srun -n2 bash -c 'head -c 20000000 /dev/zero' | wc -c"), "40000000");
}
