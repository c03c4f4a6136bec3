//! Answers that nobody reads: what they cost the daemon, and how long it waits for their readers.
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::command::Blob;
use model::history::HistoryQuery;
use model::request::JobFilter;
use model::{JobId, JobKind, JobSpec, codec};

use super::callers::{Entrance, RawCaller, become_user, on_own_thread};
use super::contract::{FieldContent, written};
use super::endurance::resident_mib;
use crate::cluster::{Cluster, is_root};

const USER: u32 = 65_534;
/// Several pages of a list.
const N_JOBS: usize = 1500;
/// What a user's unread answers may cost: their budget, and what each call needs besides.
const GROWTH_MAX_MIB: u64 = 192;
/// A command that waits for nobody.
const PROMPT: Duration = Duration::from_secs(10);

/// Jobs whose list is as many KiB long, and more; each wants all of a node of four CPUs.
pub(super) fn submit_jobs(head: &Cluster, n_jobs: usize, body: &str, held: bool) {
    let socket = head.dir.join("run/controller.sock");
    let script = Blob::of(format!("#!/bin/sh\n{body}\n").into_bytes());
    on_own_thread(async move {
        let spec = JobSpec {
            name: "long".into(),
            uid: super::content::own_uid(),
            kind: JobKind::Batch { script: script.id },
            work_dir: "/".into(),
            stdout: Some("/dev/null".into()),
            held,
            comment: "c".repeat(1000),
            size: model::spec::Size { min_nodes: 1, cpus_per_task: Some(4), ..Default::default() },
            ..JobSpec::default()
        };
        let controller = wire::Controller::connect(&socket).await.unwrap();
        let mut submitting = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let (mut controller, spec, script) = (controller.clone(), spec.clone(), script.clone());
            submitting.spawn(async move {
                for _ in 0..n_jobs / 10 {
                    controller.submit(&spec, std::slice::from_ref(&script)).await.unwrap();
                }
            });
        }
        submitting.join_all().await;
    });
}

/// Questions whose answers are long, and one that stays open.
fn questions() -> Vec<(&'static str, Vec<u8>)> {
    let encoded = |filter: &JobFilter| written(&[(1, FieldContent::Bytes(codec::encode(filter)))]);
    let named = JobFilter { jobs: (1..=60).map(|id| JobId(id).into()).collect(), ..Default::default() };
    let history = written(&[(1, FieldContent::Bytes(codec::encode(&HistoryQuery::default())))]);
    vec![
        ("Jobs", encoded(&JobFilter::default())),
        ("WatchJobs", encoded(&named)),
        ("Jobs", encoded(&JobFilter { jobs: (1..=1000).map(|id| JobId(id).into()).collect(), ..Default::default() })),
        ("History", history),
        ("Nodes", Vec::new()),
    ]
}

/// A connection of this user that has asked briefly, and reads nothing.
fn asked_briefly(socket: &Path, call: &str, body: &[u8]) -> UnixStream {
    let mut stream = UnixStream::connect(socket).unwrap();
    let head = format!("/spur.v1.Controller/{call}\ncontent-type:application/grpc\nte:trailers\nspur-pages:1\n");
    let mut request = b"spurcall".to_vec();
    request.extend_from_slice(&(head.len() as u32).to_le_bytes());
    request.extend_from_slice(&((body.len() + 5) as u32).to_le_bytes());
    request.extend_from_slice(head.as_bytes());
    request.push(0);
    request.extend_from_slice(&(body.len() as u32).to_be_bytes());
    request.extend_from_slice(body);
    stream.write_all(&request).unwrap();
    stream
}

/// So many brief connections of a user, each with a question.
fn ask_briefly(socket: PathBuf, n_callers: usize) -> Vec<UnixStream> {
    let asking = move || {
        become_user(USER, USER);
        let questions = questions();
        (0..n_callers)
            .map(|at| &questions[at % questions.len()])
            .map(|(call, body)| asked_briefly(&socket, call, body))
            .collect()
    };
    std::thread::spawn(asking).join().unwrap()
}

#[test]
fn answers_that_a_user_does_not_read_stay_within_a_budget() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = Cluster::up("--nodes 1 --cpus 4");
    submit_jobs(&head, N_JOBS, "true", true);
    head.ok("squeue | wc -l && sinfo && sacct -a");
    let (pid, socket) = (head.controller_pid(), head.dir.join("run/controller.sock"));
    let before = resident_mib(pid);
    let held = ask_briefly(socket.clone(), 500);
    // Commands are run by this thread, whose identity stays.
    let (opened, is_open) = std::sync::mpsc::channel();
    let (finish, finished) = tokio::sync::oneshot::channel::<()>();
    let holding = std::thread::spawn(move || {
        on_own_thread(async move {
            let mut streams = Vec::new();
            for _ in 0..8 {
                let entrance = Entrance::Local { socket: socket.clone(), uid: USER, gid: USER };
                let caller = RawCaller::open(&entrance, &[("spur-pages", "1".into())]).await;
                for (call, body) in questions().iter().cycle().take(60) {
                    let path = format!("/spur.v1.Controller/{call}");
                    // Whoever waits for earlier answers has no beginning yet.
                    let patience = Duration::from_millis(100);
                    streams.push(tokio::time::timeout(patience, caller.open_stream(&path, body.clone())).await);
                }
            }
            opened.send(streams.len()).unwrap();
            let _ = finished.await;
            drop(streams);
        });
    });
    assert_eq!(is_open.recv_timeout(Duration::from_secs(60)), Ok(480));
    // Everybody else is answered meanwhile, and what happens reaches watchers.
    let begun = Instant::now();
    head.ok("squeue -h | wc -l");
    head.ok("scontrol update jobid=7 comment=other");
    head.ok("sacctmgr -n show user && sinfo");
    let took = begun.elapsed();
    assert!(took < PROMPT, "others waited for {took:?}");
    let resident = resident_mib(pid);
    assert!(resident < before + GROWTH_MAX_MIB, "{before} MiB before, {resident} MiB with unread answers");
    eprintln!("{before} MiB before, {resident} MiB with unread answers; others waited for {took:?}");
    finish.send(()).unwrap();
    holding.join().unwrap();
    // The user goes on, too, when the answers are gone.
    drop(held);
    assert_eq!(head.ok("setpriv --reuid 65534 --clear-groups squeue -h | wc -l"), N_JOBS.to_string());
}

#[test]
fn reader_that_takes_nothing_is_cut_off() {
    let head = Cluster::up("--nodes 1 --cpus 4");
    submit_jobs(&head, N_JOBS, "true", true);
    if !is_root() {
        eprintln!("skipped: the owner of the cluster is never cut off");
        return;
    }
    let mut held = ask_briefly(head.dir.join("run/controller.sock"), 3);
    let begun = Instant::now();
    let stream = &mut held[0];
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    while is_open(stream) {
        assert!(begun.elapsed() < Duration::from_secs(100), "it is still waited for");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(begun.elapsed() > Duration::from_secs(50), "it was not waited for at all");
    let mut read = Vec::new();
    let _ = stream.read_to_end(&mut read);
    assert!(!read.ends_with(b"T\0\0\0\0") && !read.is_empty());
}

/// The other end has not closed, as far as can be told without reading.
fn is_open(stream: &UnixStream) -> bool {
    use std::os::fd::AsRawFd;
    let mut asked = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: one record, which lives during the call.
    unsafe { libc::poll(&raw mut asked, 1, 0) };
    asked.revents & (libc::POLLRDHUP | libc::POLLHUP) == 0
}

#[test]
fn jobs_start_while_a_crowd_asks_why_others_do_not() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = Cluster::up("--nodes 1 --cpus 4");
    // More than the planner looks at in passing, so that it needs a thread.
    submit_jobs(&head, N_JOBS, "sleep 600", false);
    head.wait_until("squeue -h -t R", |said| !said.out.is_empty());
    let socket = head.dir.join("run/controller.sock");
    let named: model::JobRef = JobId(N_JOBS as u32).into();
    let body = written(&[(1, FieldContent::Bytes(codec::encode(&named)))]);
    let crowd: Vec<UnixStream> = std::thread::spawn(move || {
        become_user(USER, USER);
        (0..600).map(|_| asked_briefly(&socket, "Why", &body)).collect()
    })
    .join()
    .unwrap();
    let begun = Instant::now();
    // The next starts as soon as the planner has looked.
    let running = head.ok("squeue -h -t R -o %i");
    head.ok(&format!("scancel {running}"));
    head.wait_until("squeue -h -t R -o %i", |said| !said.out.is_empty() && said.out.trim() != running);
    let took = begun.elapsed();
    let answered = crowd.iter().filter(|stream| has_answer(stream)).count();
    assert!(took < PROMPT, "a job waited for {took:?}, {answered} were answered meanwhile");
    assert!(answered < crowd.len(), "the crowd was gone before it could be in the way");
    drop(crowd);
    head.ok("scancel -u $(id -un)");
}

fn has_answer(stream: &UnixStream) -> bool {
    use std::os::fd::AsRawFd;
    let mut asked = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one record, which lives during the call.
    unsafe { libc::poll(&raw mut asked, 1, 0) > 0 }
}
