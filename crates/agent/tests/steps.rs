//! Steps under a real agent: ranks, streams between tasks and client, terminals.
mod support;

use std::sync::Arc;
use std::time::Duration;

use model::agent::{KillNote, Launch};
use model::attach::{FromStep, Stream, ToStep};
use model::command::DutyResult;
use model::step::{StepSpec, StepStream, TerminalSize};
use model::{ExitStatus, JobId, NodeShare, StepId, codec};
use support::{PATIENCE, World, run};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Status, Streaming};
use wire::proto;
use wire::proto::agent_client::AgentClient;

/// What `srun` is to an agent.
struct Client {
    say: Option<UnboundedSender<proto::ToStep>>,
    events: Streaming<proto::FromStep>,
}

impl Client {
    async fn attach(world: &World, job: u32) -> Self {
        let channel = wire::channel::connect(&world.dir.join("agent.sock")).await.expect("an agent's socket");
        let (say, messages) = unbounded_channel();
        let open = ToStep::Open { job: JobId(job), attempt: 1, step: StepId::Number(0) };
        say.send(proto::ToStep { message: codec::encode(&open).into() }).unwrap();
        let mut client = AgentClient::new(channel);
        let events = client.attach(UnboundedReceiverStream::new(messages)).await.expect("an answer").into_inner();
        Client { say: Some(say), events }
    }

    fn say(&self, message: ToStep) {
        let message = proto::ToStep { message: codec::encode(&message).into() };
        self.say.as_ref().expect("an open stream").send(message).expect("a listening agent");
    }

    async fn next(&mut self) -> Result<FromStep, Status> {
        let event = tokio::time::timeout(PATIENCE, self.events.next()).await.expect("an event in time");
        Ok(codec::decode(&event.expect("an event before the end")?.message).expect("a readable event"))
    }

    /// Everything up to the end: the output of each rank (both streams), and the exits.
    async fn rest(&mut self) -> Heard {
        let mut heard = Heard::default();
        loop {
            match self.next().await.expect("no error") {
                FromStep::Started { tasks } => heard.started = tasks,
                FromStep::Output { rank, stream, data } => {
                    heard.total += data.len() as u64;
                    let text = String::from_utf8_lossy(&data).into_owned();
                    match stream {
                        Stream::Stdout => heard.out.entry(rank).or_default().push_str(&text),
                        Stream::Stderr => heard.err.entry(rank).or_default().push_str(&text),
                    }
                    if self.say.is_some() {
                        self.say(ToStep::Received { total_bytes: heard.total });
                    }
                }
                FromStep::TaskExited { rank, exit } => heard.exits.push((rank, exit)),
                FromStep::Finished => return heard,
                FromStep::Fence { .. }
                | FromStep::Gather { .. }
                | FromStep::Fetch { .. }
                | FromStep::Fetched { .. }
                | FromStep::Abort { .. } => {}
                FromStep::Failed { why } => panic!("failed: {why}"),
            }
        }
    }
}

#[derive(Default)]
struct Heard {
    started: Vec<(u32, u32)>,
    out: std::collections::BTreeMap<u32, String>,
    err: std::collections::BTreeMap<u32, String>,
    exits: Vec<(u32, ExitStatus)>,
    total: u64,
}

fn step(world: &World, job: u32, n_tasks: u32, command: &[&str]) -> Launch {
    let share = NodeShare { node: "n1".into(), n_tasks, ..NodeShare::default() };
    Launch {
        step: StepId::Number(0),
        step_spec: Some(Box::new(StepSpec {
            name: command[0].into(),
            arguments: command.iter().map(|word| word.to_string()).collect(),
            work_dir: world.dir.join("work").display().to_string(),
            n_tasks: Some(n_tasks),
            ..StepSpec::default()
        })),
        step_shares: vec![share],
        n_tasks,
        script: Vec::new(),
        ..world.script(job, "")
    }
}

fn spec(launch: &mut Launch) -> &mut StepSpec {
    launch.step_spec.as_mut().expect("a step")
}

#[tokio::test]
async fn tasks_have_ranks_and_their_output_comes_before_the_end() {
    let mut world = World::new().await;
    let script = "echo rank $SLURM_PROCID of $SLURM_NTASKS local $SLURM_LOCALID step $SLURM_STEP_ID gtids $SLURM_GTIDS; \
                  echo oops >&2; exit $((SLURM_PROCID * 2))";
    let launch = step(&world, 3, 3, &["sh", "-c", script]);
    assert_eq!(world.launch(launch).await, DutyResult::Done);
    let heard = Client::attach(&world, 3).await.rest().await;
    for rank in 0..3 {
        assert_eq!(heard.out[&rank], format!("rank {rank} of 3 local {rank} step 0 gtids 0,1,2\n"));
        assert_eq!(heard.err[&rank], "oops\n");
        assert!(heard.exits.contains(&(rank, ExitStatus::exited(rank as u8 * 2))));
    }
    assert_eq!(heard.started.len(), 3);
    assert_eq!(world.exit(3).await.exit, ExitStatus::exited(4));
}

#[tokio::test]
async fn a_client_that_comes_first_waits_for_the_launch() {
    let mut world = World::new().await;
    let mut client = Client::attach(&world, 4).await;
    let launch = step(&world, 4, 1, &["echo", "late"]);
    world.launch(launch).await;
    assert_eq!(client.rest().await.out[&0], "late\n");
    world.exit(4).await;
}

#[tokio::test]
async fn a_client_that_comes_after_the_end_still_gets_everything() {
    let mut world = World::new().await;
    let launch = step(&world, 4, 1, &["echo", "gone"]);
    world.launch(launch).await;
    world.exit(4).await;
    let heard = Client::attach(&world, 4).await.rest().await;
    assert_eq!(heard.out[&0], "gone\n");
    assert_eq!(heard.exits, [(0, ExitStatus::SUCCESS)]);
}

#[tokio::test]
async fn input_goes_to_every_task_or_to_one() {
    let mut world = World::new().await;
    for (job, stdin, expected) in [
        (1, StepStream::Client, ["a lot of input", "a lot of input"]),
        (2, StepStream::ClientTask(1), ["", "a lot of input"]),
    ] {
        let mut launch = step(&world, job, 2, &["sh", "-c", "echo \"[$(cat)]\""]);
        spec(&mut launch).stdin = stdin;
        world.launch(launch).await;
        let mut client = Client::attach(&world, job).await;
        client.say(ToStep::Input { rank: None, data: b"a lot of".to_vec() });
        client.say(ToStep::Input { rank: None, data: b" input".to_vec() });
        client.say(ToStep::EndOfInput);
        let heard = client.rest().await;
        assert_eq!(heard.out[&0], format!("[{}]\n", expected[0]));
        assert_eq!(heard.out[&1], format!("[{}]\n", expected[1]));
    }
}

#[tokio::test]
async fn much_output_and_much_input_pass_with_slow_readers() {
    let mut world = World::new().await;
    // 20 MB out, more than is ever kept; 8 MB in, more than is ever in flight.
    let script = "sleep 0.2; head -c 20000000 /dev/zero; wc -c";
    let launch = step(&world, 1, 1, &["sh", "-c", script]);
    world.launch(launch).await;
    let mut client = Client::attach(&world, 1).await;
    for _ in 0..80 {
        client.say(ToStep::Input { rank: None, data: vec![b'x'; 100_000] });
    }
    client.say(ToStep::EndOfInput);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let heard = client.rest().await;
    assert_eq!(heard.total, 20_000_000 + "8000000\n".len() as u64);
    assert!(heard.out[&0].ends_with("8000000\n"));
}

#[tokio::test]
async fn a_client_that_says_nothing_more_hears_everything() {
    let mut world = World::new().await;
    let launch = step(&world, 1, 1, &["sh", "-c", "head -c 9000000 /dev/zero; echo end"]);
    world.launch(launch).await;
    let mut client = Client::attach(&world, 1).await;
    client.say = None;
    let heard = client.rest().await;
    assert_eq!(heard.total, 9_000_004);
}

#[tokio::test]
async fn a_second_client_goes_on_where_the_first_ended() {
    let mut world = World::new().await;
    let script = "echo first; while ! [ -e go ]; do sleep 0.02; done; echo second";
    let launch = step(&world, 1, 1, &["sh", "-c", script]);
    world.launch(launch).await;
    let mut first = Client::attach(&world, 1).await;
    let mut total_bytes = 0;
    while total_bytes < 6 {
        if let FromStep::Output { data, .. } = first.next().await.unwrap() {
            total_bytes += data.len() as u64;
        }
    }
    first.say(ToStep::Received { total_bytes });
    // The agent passes on in order, so the receipt is there before the next client is.
    drop(first);
    world.kill_agent();
    world.start_agent().await;
    std::fs::write(world.dir.join("work/go"), "").unwrap();
    let heard = Client::attach(&world, 1).await.rest().await;
    assert!(heard.out[&0].ends_with("second\n"), "{:?}", heard.out);
    assert_eq!(heard.exits, [(0, ExitStatus::SUCCESS)]);
    world.exit(1).await;
}

#[tokio::test]
async fn a_terminal_is_the_tasks_own() {
    let mut world = World::new().await;
    let mut launch = step(&world, 1, 1, &["sh", "-c", "tty; stty size; read line; echo got $line"]);
    spec(&mut launch).pty = Some(TerminalSize { rows: 33, columns: 77 });
    world.launch(launch).await;
    let mut client = Client::attach(&world, 1).await;
    client.say(ToStep::Input { rank: None, data: b"word\n".to_vec() });
    let heard = client.rest().await;
    let out = &heard.out[&0];
    assert!(out.contains("/dev/pts/") && out.contains("33 77") && out.contains("got word"), "{out}");
}

#[tokio::test]
async fn streams_may_be_files() {
    let mut world = World::new().await;
    let mut launch = step(&world, 9, 2, &["sh", "-c", "cat; echo $SLURM_PROCID; echo e >&2"]);
    std::fs::write(world.dir.join("work/in"), "in\n").unwrap();
    spec(&mut launch).stdin = StepStream::File("in".into());
    spec(&mut launch).stdout = StepStream::File("out-%J-%2t".into());
    spec(&mut launch).stderr = StepStream::File("err".into());
    world.launch(launch).await;
    assert_eq!(Client::attach(&world, 9).await.rest().await.exits.len(), 2);
    assert_eq!(world.read("out-9.0-00"), "in\n0\n");
    assert_eq!(world.read("err"), "e\ne\n");
}

#[tokio::test]
async fn a_step_waits_for_its_program_and_can_be_ended_before_it_comes() {
    let mut world = World::new().await;
    let mut launch = step(&world, 1, 2, &["named-otherwise", "-c", "echo $0 $LD_LIBRARY_PATH", "here"]);
    spec(&mut launch).waits_for_program = true;
    world.launch(launch.clone()).await;
    let mut client = Client::attach(&world, 1).await;
    client.say(ToStep::Begin { program: "/bin/sh".into(), libraries: Some("/opt/lib".into()) });
    // Said again when a stream is opened again.
    client.say(ToStep::Begin { program: "/bin/false".into(), libraries: None });
    let heard = client.rest().await;
    assert_eq!((heard.out[&0].as_str(), heard.out[&1].as_str()), ("here /opt/lib\n", "here /opt/lib\n"));
    assert_eq!(world.exit(1).await.exit, ExitStatus::SUCCESS);

    launch.job = model::JobId(2);
    world.launch(launch).await;
    let mut client = Client::attach(&world, 2).await;
    client.say(ToStep::Signal { signal: libc::SIGKILL as u32 });
    assert_eq!(client.rest().await.exits, []);
    assert_eq!(world.exit(2).await.exit, ExitStatus::signaled(9));
}

#[tokio::test]
async fn a_program_that_is_not_there_says_so() {
    let mut world = World::new().await;
    let launch = step(&world, 1, 1, &["no-such-program"]);
    world.launch(launch).await;
    let heard = Client::attach(&world, 1).await.rest().await;
    assert_eq!(heard.err[&0], "slurmstepd: error: execve(): no-such-program: No such file or directory\n");
    assert_eq!(heard.exits, [(0, ExitStatus::exited(2))]);
    assert_eq!(world.exit(1).await.exit, ExitStatus::exited(2));
}

#[tokio::test]
async fn a_cancelled_step_says_so_to_its_client() {
    let mut world = World::new().await;
    let launch = step(&world, 1, 2, &["sh", "-c", "echo up; sleep 1000"]);
    world.launch(launch).await;
    let mut client = Client::attach(&world, 1).await;
    while !matches!(client.next().await.unwrap(), FromStep::Output { .. }) {}
    world.kill(run(1), Duration::from_secs(3600), KillNote::Cancelled).await;
    let heard = client.rest().await;
    assert!(heard.err[&0].starts_with("slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT "), "{:?}", heard.err);
    assert_eq!(heard.exits.len(), 2);
    assert_eq!(world.exit(1).await.exit, ExitStatus::signaled(libc::SIGTERM as u8));
}

#[tokio::test]
async fn a_clients_signal_reaches_the_tasks() {
    let mut world = World::new().await;
    let launch =
        step(&world, 1, 1, &["sh", "-c", "trap 'echo caught; exit 7' INT; echo up; while :; do sleep 0.02; done"]);
    world.launch(launch).await;
    let mut client = Client::attach(&world, 1).await;
    while !matches!(client.next().await.unwrap(), FromStep::Output { .. }) {}
    client.say(ToStep::Signal { signal: libc::SIGINT as u32 });
    let heard = client.rest().await;
    assert_eq!(heard.out[&0], "caught\n");
    assert_eq!(heard.exits, [(0, ExitStatus::exited(7))]);
}

#[tokio::test]
async fn only_the_owner_may_attach() {
    // SAFETY: cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    let mut world = World::new().await;
    let launch = step(&world, 1, 1, &["sleep", "1000"]);
    world.launch(launch).await;
    // The owner is root, and so are we: a job of somebody else is attached to by root, never the other way round.
    let mut other = step(&world, 2, 1, &["echo", "theirs"]);
    Arc::make_mut(&mut other.job_spec).uid = 65534;
    Arc::make_mut(&mut other.job_spec).gid = 65534;
    world.launch(other).await;
    assert_eq!(Client::attach(&world, 2).await.rest().await.out[&0], "theirs\n");
    let socket = world.dir.join("agent.sock");
    std::fs::set_permissions(&world.dir, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let refused = std::thread::spawn(move || attach_as(65534, &socket, 1)).join().unwrap();
    assert_eq!(refused, Some(Code::PermissionDenied));
}

/// Attaches from a thread that has become another user.
fn attach_as(uid: u32, socket: &std::path::Path, job: u32) -> Option<Code> {
    // SAFETY: the raw call changes this thread alone.
    unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let channel = wire::channel::connect(socket).await.unwrap();
        let open = ToStep::Open { job: JobId(job), attempt: 1, step: StepId::Number(0) };
        let messages = tokio_stream::iter([proto::ToStep { message: codec::encode(&open).into() }]);
        let mut events = AgentClient::new(channel).attach(messages).await.unwrap().into_inner();
        events.next().await?.err().map(|status| status.code())
    })
}

#[tokio::test]
async fn a_step_is_killed_alone() {
    let mut world = World::new().await;
    world.launch(world.script(1, "echo $$ > shell; while ! [ -e go ]; do sleep 0.02; done")).await;
    let launch = step(&world, 1, 1, &["sleep", "1000"]);
    world.launch(launch).await;
    world.line("shell").await;
    let number = world.number();
    let (step, note) = (Some(StepId::Number(0)), KillNote::Cancelled);
    world.order(model::agent::Order::Kill {
        number,
        run: run(1),
        step,
        kill_wait: model::time::Span::from_secs(5),
        note,
    });
    assert_eq!(world.answer(number).await, DutyResult::Done);
    assert_eq!(world.exit(1).await.step, StepId::Number(0));
    std::fs::write(world.dir.join("work/go"), "").unwrap();
    let exited = world.exit(1).await;
    assert_eq!((exited.step, exited.exit), (StepId::Batch, ExitStatus::SUCCESS));
}

#[tokio::test]
async fn clearing_ends_supervisors_that_wait_for_a_client() {
    let mut world = World::new().await;
    let launch = step(&world, 1, 1, &["echo", "unheard"]);
    world.launch(launch).await;
    world.exit(1).await;
    world.stop_agent();
    let tag = world.dir.join("spool").canonicalize().unwrap();
    assert_eq!(agent::clear(&world.options()).unwrap(), 0);
    // Nobody has the spool's files open any more.
    let pids = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|each| each.file_name().into_string().ok());
    for pid in pids.filter(|name| name.parse::<u32>().is_ok_and(|pid| pid != std::process::id())) {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut targets = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        assert!(!targets.any(|target| target.starts_with(&tag)), "process {pid} still lives");
    }
}
