//! A world for one agent: a controller that only speaks the wire contract, a directory, and patience with an end.
#![allow(dead_code)]
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use model::agent::{KillNote, Launch, Order, Report};
use model::command::{DutyResult, Exited};
use model::node::Run;
use model::time::Span;
use model::{JobId, JobSpec, NodeShare, StepId, codec};
use tokio::net::UnixListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::{UnboundedReceiverStream, UnixListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};
use wire::proto::controller_server::{Controller, ControllerServer};
use wire::proto::*;

pub const PATIENCE: Duration = Duration::from_secs(60);

/// Hears an agent out and passes orders on; decides nothing.
#[derive(Clone)]
struct Post {
    reports: UnboundedSender<Report>,
    orders: Arc<Mutex<Option<UnboundedSender<Order>>>>,
}

type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

macro_rules! not_here {
    ($($name:ident: $request:ty => $reply:ty),* $(,)?) => {
        $(fn $name<'a, 's>(&'a self, _: Request<$request>)
            -> Pin<Box<dyn Future<Output = Result<Response<$reply>, Status>> + Send + 's>>
        where 'a: 's, Self: 's {
            Box::pin(async { Err(Status::unimplemented("not in this test")) })
        })*
    };
}

impl Controller for Post {
    type JobsStream = Streamed<JobsReply>;
    type WatchJobsStream = Streamed<JobsReply>;
    type HistoryStream = Streamed<HistoryReply>;
    type BackupStream = Streamed<wire::proto::BackupReply>;
    type AuditStream = Streamed<AuditReply>;
    type WatchStagingStream = Streamed<wire::proto::StagingReply>;
    type AccountsStream = Streamed<AccountsReply>;
    type StandingStream = Streamed<StandingReply>;
    type ChronicleStream = Streamed<ChronicleReply>;
    type TriggersStream = Streamed<TriggersReply>;
    type NodesStream = Streamed<NodesReply>;
    type ConfigurationStream = Streamed<ConfigurationReply>;
    type ReservationsStream = Streamed<ReservationsReply>;
    type LicensesStream = Streamed<LicensesReply>;
    type DiagnoseStream = Streamed<DiagnoseReply>;
    type BurstStream = Streamed<BurstReply>;
    type WhyStream = Streamed<WhyReply>;
    type MembersStream = Streamed<MembersReply>;
    type AttendStream = Streamed<ToAgent>;

    fn attend<'a, 's>(
        &'a self,
        request: Request<Streaming<FromAgent>>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Self::AttendStream>, Status>> + Send + 's>>
    where
        'a: 's,
        Self: 's,
    {
        let post = self.clone();
        Box::pin(async move {
            let mut reports = request.into_inner();
            let (orders, outgoing) = unbounded_channel();
            tokio::spawn(async move {
                while let Ok(Some(message)) = reports.message().await {
                    let report: Report = codec::decode(&message.report).expect("a readable report");
                    if let Report::Hello { .. } = &report {
                        orders.send(Order::Welcome).expect("a stream");
                        *post.orders.lock().unwrap() = Some(orders.clone());
                    }
                    if !matches!(report, Report::Heartbeat | Report::Load(_)) {
                        let _ = post.reports.send(report);
                    }
                }
            });
            let orders = UnboundedReceiverStream::new(outgoing);
            let orders = orders.map(|order| Ok(ToAgent { order: codec::encode(&order).into() }));
            Ok(Response::new(Box::pin(orders) as Self::AttendStream))
        })
    }

    not_here! {
        submit: SubmitRequest => SubmitReply,
        cancel: CommandRequest => CommandReply,
        hold: CommandRequest => CommandReply,
        release: CommandRequest => CommandReply,
        requeue: CommandRequest => CommandReply,
        suspend: CommandRequest => CommandReply,
        resume: CommandRequest => CommandReply,
        update_job: CommandRequest => CommandReply,
        complete: CommandRequest => CommandReply,
        create_step: CommandRequest => CommandReply,
        cancel_step: CommandRequest => CommandReply,
        update_nodes: CommandRequest => CommandReply,
        update_partition: CommandRequest => CommandReply,
        change_accounts: CommandRequest => CommandReply,
        accounts: Nothing => Streamed<AccountsReply>,
        standing: Nothing => Streamed<StandingReply>,
        chronicle: Nothing => Streamed<ChronicleReply>,
        create_partition: CommandRequest => CommandReply,
        delete_partition: CommandRequest => CommandReply,
        create_reservation: CommandRequest => CommandReply,
        update_reservation: CommandRequest => CommandReply,
        delete_reservation: CommandRequest => CommandReply,
        reservations: Nothing => Streamed<ReservationsReply>,
        licenses: Nothing => Streamed<LicensesReply>,
        diagnose: DiagnoseRequest => Streamed<DiagnoseReply>,
        reconfigure: Nothing => Nothing,
        shutdown: wire::proto::ShutdownRequest => Nothing,
        signal: SignalRequest => CommandReply,
        jobs: JobsRequest => Self::JobsStream,
        history: HistoryRequest => Self::HistoryStream,
        watch_jobs: JobsRequest => Self::WatchJobsStream,
        nodes: Nothing => Streamed<NodesReply>,
        configuration: Nothing => Streamed<ConfigurationReply>,
        blob: BlobRequest => BlobReply,
        burst: Nothing => Streamed<BurstReply>,
        burst_status: wire::proto::BurstStatusRequest => wire::proto::BurstStatusReply,
        watch_staging: wire::proto::StagingRequest => Self::WatchStagingStream,
        drop_buffer: CommandRequest => CommandReply,
        why: WhyRequest => Streamed<WhyReply>,
        ping: Nothing => PingReply,
        backup: Nothing => Streamed<wire::proto::BackupReply>,
        audit: AuditRequest => Streamed<AuditReply>,
        join: CommandRequest => CommandReply,
        change_tokens: CommandRequest => CommandReply,
        vouch: wire::proto::VouchRequest => wire::proto::VouchReply,
        renew: CommandRequest => CommandReply,
        make_token: CommandRequest => wire::proto::TokenReply,
        locate: wire::proto::LocateRequest => wire::proto::LocateReply,
        user_token: wire::proto::UserTokenRequest => wire::proto::UserTokenReply,
        remove_node: CommandRequest => Nothing,
        members: Nothing => Streamed<MembersReply>,
        change_members: CommandRequest => Nothing,
        set_debug: CommandRequest => Nothing,
        amend_history: CommandRequest => Nothing,
        set_trigger: CommandRequest => CommandReply,
        set_dampening: CommandRequest => CommandReply,
        clear_triggers: CommandRequest => CommandReply,
        triggers: Nothing => Streamed<TriggersReply>,
    }
}

pub struct World {
    pub dir: PathBuf,
    agent: Option<Child>,
    reports: UnboundedReceiver<Report>,
    /// Read, but not yet asked for.
    kept: Vec<Report>,
    orders: Arc<Mutex<Option<UnboundedSender<Order>>>>,
    next_number: u64,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl World {
    pub async fn new() -> Self {
        let name = format!("spur-agent-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        // A process of an earlier run may have had the same number.
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(dir.join("work")).expect("a directory");
        let (heard, reports) = unbounded_channel();
        let orders = Arc::new(Mutex::new(None));
        let listener = UnixListener::bind(dir.join("controller.sock")).expect("a socket");
        let post = Post { reports: heard, orders: orders.clone() };
        let server = tonic::transport::Server::builder().add_service(ControllerServer::new(post));
        tokio::spawn(server.serve_with_incoming(UnixListenerStream::new(listener)));
        let mut world = World { dir, agent: None, reports, kept: Vec::new(), orders, next_number: 1 };
        world.start_agent().await;
        world
    }

    /// Starts the agent and gives the runs of its Hello.
    pub async fn start_agent(&mut self) -> Vec<Run> {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.dir.join("agent.log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_spurd-test"))
            .args([Path::new("n1"), &self.dir.join("controller.sock"), &self.dir])
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the test's daemon");
        self.agent = Some(child);
        self.wait_for("hello", |report| match report {
            Report::Hello { runs, .. } => Some(runs.clone()),
            _ => None,
        })
        .await
    }

    pub fn agent_pid(&self) -> u32 {
        self.agent.as_ref().expect("an agent").id()
    }

    /// `kill -9`
    pub fn kill_agent(&mut self) {
        let mut agent = self.agent.take().expect("an agent");
        agent.kill().expect("killed");
        agent.wait().expect("waited for");
        *self.orders.lock().unwrap() = None;
    }

    /// SIGTERM, and its exit status.
    pub fn stop_agent(&mut self) -> bool {
        let mut agent = self.agent.take().expect("an agent");
        signal(agent.id(), libc::SIGTERM);
        *self.orders.lock().unwrap() = None;
        agent.wait().expect("waited for").success()
    }

    pub fn options(&self) -> agent::Options {
        agent::Options {
            node: "n1".into(),
            controllers: vec![self.dir.join("controller.sock")],
            remote: None,
            config_file: None,
            topology: None,
            dynamic: None,
            reports_reboot: false,
            socket: self.dir.join("agent.sock"),
            spool_dir: self.dir.join("spool"),
            pid_file: None,
            log_file: None,
            heartbeat: Duration::from_secs(1),
            measure_every: Duration::from_millis(300),
            unkillable_timeout: Duration::from_secs(60),
            pools: vec![model::pool::Pool {
                name: "local".into(),
                root: self.dir.join("pool").display().to_string(),
                ..model::pool::Pool::default()
            }],
        }
    }

    pub fn order(&self, order: Order) {
        self.orders.lock().unwrap().as_ref().expect("an agent that was welcomed").send(order).expect("a stream");
    }

    pub fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    pub async fn launch(&mut self, launch: Launch) -> DutyResult {
        let number = self.number();
        self.order(Order::Launch { number, launch: Box::new(launch) });
        self.answer(number).await
    }

    pub async fn answer(&mut self, number: u64) -> DutyResult {
        self.wait_for("answer", |report| match report {
            Report::Answer { number: given, result } if *given == number => Some(result.clone()),
            _ => None,
        })
        .await
    }

    pub async fn kill(&mut self, run: Run, kill_wait: Duration, note: KillNote) -> DutyResult {
        let number = self.number();
        let kill_wait = Span(kill_wait.as_micros() as u64);
        self.order(Order::Kill { number, run, step: None, kill_wait, note });
        self.answer(number).await
    }

    /// The end of this job's run, acknowledged.
    pub async fn exit(&mut self, job: u32) -> Exited {
        let (sequence, exited) = self.unacknowledged_exit(job).await;
        self.order(Order::Acknowledge { sequences: vec![sequence] });
        exited
    }

    pub async fn unacknowledged_exit(&mut self, job: u32) -> (u64, Exited) {
        self.wait_for("exit", |report| match report {
            Report::Exited { sequence, exited } if exited.job == JobId(job) => Some((*sequence, exited.clone())),
            _ => None,
        })
        .await
    }

    /// The first report that fits; others stay for later calls.
    pub async fn wait_for<T>(&mut self, what: &str, fits: impl Fn(&Report) -> Option<T>) -> T {
        let mut index = 0;
        loop {
            while index < self.kept.len() {
                if let Some(found) = fits(&self.kept[index]) {
                    self.kept.remove(index);
                    return found;
                }
                index += 1;
            }
            let report = tokio::time::timeout(PATIENCE, self.reports.recv()).await;
            let Ok(Some(report)) = report else {
                let log = std::fs::read_to_string(self.dir.join("agent.log")).unwrap_or_default();
                panic!("no {what} came; kept {:?}\nlog:\n{log}", self.kept);
            };
            self.kept.push(report);
        }
    }

    /// A batch launch of this script.
    pub fn script(&self, job: u32, script: &str) -> Launch {
        let share = NodeShare { node: "n1".into(), memory_mb: 100, n_tasks: 1, ..NodeShare::default() };
        Launch {
            job: JobId(job),
            attempt: 1,
            step: StepId::Batch,
            job_spec: Arc::new(self.job_spec()),
            script: format!("#!/bin/sh\n{script}\n").into_bytes(),
            environment: b"PATH=/usr/bin:/bin\0GREETING=hello\0".to_vec(),
            partition: "debug".into(),
            cluster_name: "test".into(),
            job_shares: vec![share.clone()],
            step_shares: vec![share],
            n_tasks: 1,
            ..Launch::default()
        }
    }

    pub fn job_spec(&self) -> JobSpec {
        // SAFETY: cannot fail.
        let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        JobSpec {
            name: "job".into(),
            uid,
            gid,
            user: if uid == 0 { "root".into() } else { "somebody".into() },
            work_dir: self.dir.join("work").display().to_string(),
            ..JobSpec::default()
        }
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.join("work").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Waits for a line that the job writes to a file of its work directory.
    pub async fn line(&self, name: &str) -> String {
        let path = self.dir.join("work").join(name);
        let line = || std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'));
        eventually(&format!("{name} to be written"), || line().is_some()).await;
        line().expect("just seen").trim().to_owned()
    }

    pub fn spool_is_empty(&self) -> bool {
        let mut records = std::fs::read_dir(self.dir.join("spool/runs")).unwrap().flatten();
        records.all(|record| record.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.agent.is_some() {
            self.kill_agent();
        }
        if let Err(error) = agent::clear(&self.options()) {
            eprintln!("clearing: {error:#}");
        }
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

pub fn run(job: u32) -> Run {
    Run { job: JobId(job), attempt: 1 }
}

pub fn signal(pid: u32, signal: i32) {
    // SAFETY: only processes that the tests started.
    unsafe { libc::kill(pid as i32, signal) };
}

pub fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X']))
}

pub async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
