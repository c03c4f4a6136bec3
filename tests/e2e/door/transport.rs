//! Connections and nothing on them: descriptors of the controller and of agents, and handshakes that never come.
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_stream::StreamExt;
use wire::tls::connect::{Expected, connect};
use wire::tls::identity::Keyring;

use super::callers::{Entrance, RawCaller, become_user, on_own_thread};
use crate::cluster::{Cluster, is_alive, is_root, new_dir};
use crate::machines::{Machine, free_port, join};

const USER: u32 = 65_534;
const OTHER: u32 = 1;
const PATIENCE: Duration = Duration::from_secs(30);
/// What a small machine gives a daemon.
const FILES: usize = 400;

fn n_open(pid: i32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// A cluster whose daemons may have so many files open.
fn with_few_files() -> Cluster {
    let head = Cluster { dir: new_dir() };
    head.ok(&format!("prlimit --nofile={FILES}:{FILES} spur up --dir {} --nodes 1", head.dir.display()));
    head
}

/// Connections of this user that say nothing. Those that the daemon has closed are among them.
fn silent(socket: &Path, uid: u32, n_wanted: usize) -> Vec<UnixStream> {
    let socket = socket.to_owned();
    std::thread::spawn(move || {
        become_user(uid, uid);
        (0..n_wanted).filter_map(|_| UnixStream::connect(&socket).ok()).collect()
    })
    .join()
    .unwrap()
}

fn ask(socket: &Path, uid: u32, path: &'static str) -> Result<Vec<u8>, tonic::Status> {
    let entrance = Entrance::Local { socket: socket.to_owned(), uid, gid: uid };
    on_own_thread(async move { RawCaller::open(&entrance, &[]).await.call(path, Vec::new(), false).await })
}

#[test]
fn idle_connections_of_a_user_shut_nobody_out() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = with_few_files();
    let (pid, socket) = (head.controller_pid(), head.dir.join("run/controller.sock"));
    // A watcher of that very user, from before: it waits for something and is not idle.
    let at = socket.clone();
    let (told, watching) = std::sync::mpsc::channel();
    let watcher = std::thread::spawn(move || {
        on_own_thread(async move {
            become_user(USER, USER);
            let mut controller = wire::Controller::over(wire::channel::connect(&at).await.unwrap());
            let filter = model::request::JobFilter::default();
            let mut pages = std::pin::pin!(controller.watch_jobs(&filter).await.unwrap());
            pages.next().await.unwrap().unwrap();
            told.send(()).unwrap();
            // Until something changes.
            tokio::time::timeout(PATIENCE, pages.next()).await.unwrap().unwrap().unwrap();
        });
    });
    watching.recv_timeout(PATIENCE).unwrap();
    let held = silent(&socket, USER, 2 * FILES);
    assert!(n_open(pid) < FILES, "{} files", n_open(pid));
    // Somebody else, the same user, and the cluster's own.
    assert!(ask(&socket, OTHER, "/spur.v1.Controller/Nodes").is_ok());
    assert!(ask(&socket, USER, "/spur.v1.Controller/Nodes").is_ok());
    for _ in 0..20 {
        head.sbatch("-H -o /dev/null --wrap true");
    }
    watcher.join().expect("whoever watches goes on watching");
    let limit = FILES / 4;
    assert!(n_open(pid) < limit + 150, "one user has {} files", n_open(pid));
    assert!(is_alive(pid) && head.controller_pid() == pid, "{}", head.logs());
    drop(held);
}

#[test]
fn connections_in_use_are_refused_beyond_the_limit_with_a_reason() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = with_few_files();
    let (pid, socket) = (head.controller_pid(), head.dir.join("run/controller.sock"));
    // Watchers of everything have a limit of their own.
    let job = head.sbatch("-H -o /dev/null --wrap true").parse().map(model::JobId).unwrap();
    let entrance = Entrance::Local { socket: socket.clone(), uid: USER, gid: USER };
    let (told, refused) = std::sync::mpsc::channel();
    let (enough, is_enough) = tokio::sync::oneshot::channel::<()>();
    let watchers = std::thread::spawn(move || {
        on_own_thread(async move {
            let RawCallers { held, refusal } = watch_until_refused(&entrance, job).await;
            told.send((held.len(), refusal)).unwrap();
            is_enough.await.unwrap();
        });
    });
    let (n_held, refusal) = refused.recv_timeout(PATIENCE).unwrap();
    assert!((20..FILES).contains(&n_held), "{n_held}");
    assert!(refusal.contains("user 65534 has") && refusal.contains("connections in use"), "{refusal}");
    // Others are heard, and the cluster's own.
    let other = ask(&socket, OTHER, "/spur.v1.Controller/Nodes");
    assert!(other.is_ok(), "{other:?}");
    head.sbatch("-H -o /dev/null --wrap true");
    assert!(is_alive(pid));
    enough.send(()).unwrap();
    watchers.join().unwrap();
}

type Watching = tokio::task::JoinHandle<()>;

struct RawCallers {
    held: Vec<Watching>,
    refusal: String,
}

/// Brief watchers of one user, until one is told why there are enough.
async fn watch_until_refused(entrance: &Entrance, job: model::JobId) -> RawCallers {
    let Entrance::Local { socket, uid, gid } = entrance.clone() else { panic!("a user of this machine") };
    become_user(uid, gid);
    let mut held = Vec::new();
    loop {
        assert!(held.len() < 2 * FILES, "there is no limit");
        let outcome = async {
            let mut controller = wire::Controller::connect(socket.clone()).await?;
            let filter = model::request::JobFilter { jobs: vec![job.into()], ..Default::default() };
            let mut pages = Box::pin(controller.watch_jobs(&filter).await?);
            pages.next().await.transpose()?;
            Ok::<_, wire::CallError>((controller, pages))
        };
        match outcome.await {
            Ok(watching) => held.push(tokio::spawn(async move {
                let _watching = watching;
                std::future::pending::<()>().await;
            })),
            Err(error) => return RawCallers { held, refusal: error.to_string() },
        }
    }
}

#[test]
fn idle_connections_leave_agents_files_for_their_steps() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = with_few_files();
    let (pid, socket) = (head.agent_pid("n1"), head.dir.join("run/agent-n1.sock"));
    let held = silent(&socket, USER, 2 * FILES);
    head.ok("srun true");
    assert!(n_open(pid) < FILES / 4 + 150, "{} files", n_open(pid));
    drop(held);
}

/// As many TCP connections as the attack had, or as this process may have.
fn silent_tcp(address: &str) -> Vec<TcpStream> {
    let n_wanted = (wire::open_files::raise_limit() - 200).min(4000);
    (0..n_wanted).map(|_| TcpStream::connect(address).unwrap()).collect()
}

fn machines() -> (Cluster, Machine, [String; 2]) {
    let head = Cluster { dir: new_dir() };
    let [address, of_agent] = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let said = head.ok(&format!("spur init --dir {} --listen {address}", head.dir.display()));
    let word = said.rsplit_once(' ').unwrap().1.to_owned();
    let node = join(&word, &format!("--node a1 --cpus 4 --memory 1G --listen {of_agent}"));
    (head, node, [address, of_agent])
}

#[test]
fn silent_strangers_keep_no_node_waiting() {
    let (head, node, [address, of_agent]) = machines();
    let held = silent_tcp(&address);
    let entrance = Entrance::Certificate { address, tls_dir: node.0.dir.join("tls") };
    // A connection takes three seconds at most, or it fails.
    let answer = on_own_thread(async move {
        RawCaller::open(&entrance, &[]).await.call("/spur.v1.Controller/Ping", Vec::new(), false).await
    });
    assert!(answer.is_ok(), "{answer:?}");
    let pid = head.controller_pid();
    assert!(n_open(pid) < 1500, "{} files for {} strangers", n_open(pid), held.len());
    drop(held);
    // Agents listen with the same means.
    let held = silent_tcp(&of_agent);
    let keyring = Arc::new(Keyring::open(&head.dir.join("state/tls")).unwrap());
    on_own_thread(async move {
        connect(&of_agent, keyring, Expected::Node("a1".into())).await.expect("the agent shakes hands");
    });
    let pid = node.0.agent_pid("a1");
    assert!(n_open(pid) < 1500, "{} files for {} strangers", n_open(pid), held.len());
    head.ok("srun -D / true");
}

#[test]
fn strangers_who_shake_hands_and_say_nothing_are_let_go() {
    let (head, node, [address, _]) = machines();
    let authority = super::callers::authority_of(&head.dir.join("state/tls"));
    let pid = head.controller_pid();
    let before = n_open(pid);
    let entrance = Entrance::Stranger { address: address.clone(), authority };
    let held = on_own_thread(async move {
        let mut held = Vec::new();
        for _ in 0..60 {
            held.push(RawCaller::open(&entrance, &[]).await);
        }
        assert!(n_open(pid) >= before + 30, "they are there for a while");
        let end = Instant::now() + Duration::from_secs(60);
        while n_open(pid) > before + 5 {
            assert!(Instant::now() < end, "{} files, {before} before", n_open(pid));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        held.len()
    });
    assert_eq!(held, 60);
    assert_eq!(node.0.ok("sinfo -h -o %T"), "idle");
}
