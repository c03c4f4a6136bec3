//! Handshakes that stop after some bytes: members and those who join are served beside any number of them.
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;
use wire::tls::connect::{Expected, connect};
use wire::tls::identity::Keyring;

use super::callers::{Entrance, RawCaller, on_own_thread};
use crate::cluster::{Cluster, kill_9, new_dir};
use crate::machines::{free_port, join, token};

/// The beginning of a record that is never whole.
const PARTIAL_HELLO: &[u8] = &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
const N_AT_ONCE: usize = 1500;

/// Connections from one address, each with some bytes of a hello. Those that are sent away come again.
struct HelloFlood {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl HelloFlood {
    fn begin(address: &str) -> HelloFlood {
        let address: SocketAddr = address.parse().unwrap();
        let (is_over, n_begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (over, begun) = (is_over.clone(), n_begun.clone());
        let flood = async move {
            let mut held = std::collections::VecDeque::new();
            while !over.load(Ordering::Relaxed) {
                let socket = TcpSocket::new_v4().unwrap();
                socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
                if let Ok(mut stream) = socket.connect(address).await
                    && stream.write_all(PARTIAL_HELLO).await.is_ok()
                {
                    held.push_back(stream);
                    begun.fetch_add(1, Ordering::Relaxed);
                }
                if held.len() > N_AT_ONCE {
                    held.pop_front();
                    // As many as the attack had were there; others need the processor too.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        };
        let thread = std::thread::spawn(move || on_own_thread(flood));
        let end = Instant::now() + Duration::from_secs(60);
        while n_begun.load(Ordering::Relaxed) < N_AT_ONCE {
            assert!(Instant::now() < end, "only {n_begun:?} connections");
            std::thread::sleep(Duration::from_millis(10));
        }
        HelloFlood { is_over, thread: Some(thread) }
    }
}

impl Drop for HelloFlood {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn took<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let begun = Instant::now();
    let done = work();
    (begun.elapsed(), done)
}

#[test]
fn partial_hellos_delay_neither_nodes_nor_joins() {
    wire::open_files::raise_limit();
    let head = Cluster { dir: new_dir() };
    let [address, of_agent] = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    head.ok(&format!("spur init --dir {} --listen {address}", head.dir.display()));
    let node = join(&token(&head, ""), &format!("--node a1 --cpus 4 --memory 1G --listen {of_agent}"));
    let entrance = Entrance::Certificate { address: address.clone(), tls_dir: node.0.dir.join("tls") };
    let ping = || {
        let entrance = entrance.clone();
        on_own_thread(async move {
            RawCaller::open(&entrance, &[]).await.call("/spur.v1.Controller/Ping", Vec::new(), false).await.unwrap()
        })
    };
    let words: Vec<String> = (0..2).map(|_| token(&head, "")).collect();
    let (alone, first) = took(|| join(&words[0], "--node a2 --cpus 1 --memory 1G"));
    // What was known in memory is gone.
    kill_9(head.controller_pid());
    head.start("");
    let flood = HelloFlood::begin(&address);
    let slowest = (0..5).map(|_| took(ping).0).max().unwrap();
    let (beside, second) = took(|| join(&words[1], "--node a3 --cpus 1 --memory 1G"));
    eprintln!("a node connects in {slowest:?}, a machine joins in {beside:?}, {alone:?} alone");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    assert!(beside < alone * 2 + Duration::from_secs(1), "{beside:?} beside strangers, {alone:?} alone");
    drop(flood);
    // Agents listen with the same means, and start anew too.
    kill_9(node.0.agent_pid("a1"));
    node.0.start("");
    let flood = HelloFlood::begin(&of_agent);
    let keyring = Arc::new(Keyring::open(&head.dir.join("state/tls")).unwrap());
    let connecting = || {
        let (keyring, of_agent) = (keyring.clone(), of_agent.clone());
        on_own_thread(async move {
            connect(&of_agent, keyring, Expected::Node("a1".into())).await.expect("the agent shakes hands");
        });
    };
    let slowest = (0..5).map(|_| took(connecting).0).max().unwrap();
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    drop((flood, first, second));
}
