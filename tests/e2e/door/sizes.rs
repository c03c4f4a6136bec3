//! Long requests: who may send how much, what it costs before it is judged, and what a body that never ends costs.
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use tonic::{Code, Status};

use super::callers::{Entrance, RawCaller, authority_of, become_user, on_own_thread};
use super::contract::{FieldContent, written};
use crate::cluster::{Cluster, is_alive, is_root, new_dir};
use crate::machines::{Machine, free_port, join};

const USER: u32 = 65_534;
const OTHER: u32 = 1;
const MIB: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(20);

/// The most memory that a process has had, in MiB.
pub fn peak_mib(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

/// A cluster that other machines reach, and a node that has joined it.
fn machines() -> (Cluster, Machine, String) {
    let head = Cluster { dir: new_dir() };
    let address = format!("127.0.0.1:{}", free_port());
    let said = head.ok(&format!("spur init --dir {} --listen {address}", head.dir.display()));
    let word = said.rsplit_once(' ').unwrap().1.to_owned();
    let node = join(&word, "--node a1 --cpus 4 --memory 1G");
    (head, node, address)
}

fn local(head: &Cluster, uid: u32) -> Entrance {
    Entrance::Local { socket: head.dir.join("run/controller.sock"), uid, gid: uid }
}

/// Side by side, each on a connection of its own.
pub fn ask_all(entrance: &Entrance, n_callers: usize, path: &'static str, body: &[u8]) -> Vec<Result<Vec<u8>, Status>> {
    let threads: Vec<_> = (0..n_callers)
        .map(|_| {
            let (entrance, body) = (entrance.clone(), body.to_vec());
            std::thread::spawn(move || {
                on_own_thread(async move { RawCaller::open(&entrance, &[]).await.call(path, body, false).await })
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

pub fn bytes_of(n_bytes: usize) -> Vec<u8> {
    written(&[(1, FieldContent::Bytes(vec![0x91; n_bytes]))])
}

#[test]
fn stranger_costs_little_however_much_is_sent() {
    let (head, _node, address) = machines();
    let pid = head.controller_pid();
    let before = peak_mib(pid);
    let stranger = Entrance::Stranger { address, authority: authority_of(&head.dir.join("state/tls")) };
    let body = bytes_of(32 * MIB);
    for path in ["/spur.v1.Controller/Join", "/spur.v1.Member/Raft", "/spur.v1.Controller/Submit", "/spur.v1.Agent/Ask"]
    {
        for answer in ask_all(&stranger, 6, path, &body) {
            assert!(answer.is_err(), "{path}");
        }
    }
    let grown = peak_mib(pid) - before;
    assert!(grown < 48, "strangers took {grown} MiB");
    assert!(is_alive(pid));
    // Whoever has something to say is still heard.
    let small = ask_all(&stranger, 1, "/spur.v1.Controller/Join", &bytes_of(16)).remove(0).unwrap_err();
    assert_eq!(small.code(), Code::InvalidArgument, "{small:?}");
}

#[test]
fn user_costs_little_at_calls_that_are_not_for_users() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = Cluster::up("--nodes 1");
    let pid = head.controller_pid();
    let before = peak_mib(pid);
    let body = bytes_of(32 * MIB);
    for path in ["/spur.v1.Controller/UpdateNodes", "/spur.v1.Controller/Attend", "/spur.v1.Member/Raft"] {
        for answer in ask_all(&local(&head, USER), 6, path, &body) {
            assert!(answer.is_err(), "{path}");
        }
    }
    let long = ask_all(&local(&head, USER), 6, "/spur.v1.Controller/Jobs", &body);
    let long = long.into_iter().next().unwrap().unwrap_err();
    assert!(long.message().contains("this call takes 1048576 at most"), "{long:?}");
    let grown = peak_mib(pid) - before;
    assert!(grown < 48, "a user took {grown} MiB");
}

/// A brief request that stops before its end.
fn stalled(socket: &Path, call: &str, n_bytes: usize, n_sent: usize) -> UnixStream {
    let mut stream = UnixStream::connect(socket).unwrap();
    let head = format!("/spur.v1.Controller/{call}\ncontent-type:application/grpc\nte:trailers\n");
    let mut request = b"spurcall".to_vec();
    request.extend_from_slice(&(head.len() as u32).to_le_bytes());
    request.extend_from_slice(&((n_bytes + 5) as u32).to_le_bytes());
    request.extend_from_slice(head.as_bytes());
    request.push(0);
    request.extend_from_slice(&(n_bytes as u32).to_be_bytes());
    stream.write_all(&request).unwrap();
    stream.set_nonblocking(true).unwrap();
    let piece = vec![0x91; 64 << 10];
    let (mut n_left, mut n_refused) = (n_sent, 0);
    // The daemon takes what it has room for: after a while without, it has none.
    while n_left > 0 && n_refused < 50 {
        match stream.write(&piece[..n_left.min(piece.len())]) {
            Ok(n_written) => (n_left, n_refused) = (n_left - n_written, 0),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                n_refused += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            // It was refused before it was all sent.
            Err(_) => break,
        }
    }
    stream.set_nonblocking(false).unwrap();
    stream
}

#[test]
fn bodies_that_stop_cost_their_user_alone() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = Cluster::up("--nodes 1");
    let (pid, socket) = (head.controller_pid(), head.dir.join("run/controller.sock"));
    let before = peak_mib(pid);
    let at = socket.clone();
    let held: Vec<UnixStream> = std::thread::spawn(move || {
        become_user(USER, USER);
        let threads: Vec<_> = (0..16)
            .map(|_| {
                let at = at.clone();
                std::thread::spawn(move || {
                    become_user(USER, USER);
                    stalled(&at, "Submit", 20 * MIB, 20 * MIB - 1)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
    .join()
    .unwrap();
    let grown = peak_mib(pid) - before;
    assert!(grown < 120, "bodies that never end took {grown} MiB");
    // Others are answered meanwhile, long requests too.
    let body = bytes_of(20 * MIB);
    let other = ask_all(&local(&head, OTHER), 1, "/spur.v1.Controller/Submit", &body).remove(0).unwrap_err();
    assert_eq!(other.code(), Code::InvalidArgument, "{other:?}");
    head.sbatch("-H -o /dev/null --wrap true");
    // So is that user, if not with much.
    let small = ask_all(&local(&head, USER), 1, "/spur.v1.Controller/Nodes", &[]).remove(0);
    assert!(small.is_ok(), "{small:?}");
    drop(held);
}

#[test]
fn brief_request_that_is_refused_hears_why() {
    let head = Cluster::up("--nodes 1");
    let socket = head.dir.join("run/controller.sock");
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    for n_bytes in [3 * MIB, 9 * MIB] {
        let head = "/spur.v1.Controller/Jobs\ncontent-type:application/grpc\nte:trailers\n";
        let mut request = b"spurcall".to_vec();
        request.extend_from_slice(&(head.len() as u32).to_le_bytes());
        request.extend_from_slice(&((n_bytes + 5) as u32).to_le_bytes());
        request.extend_from_slice(head.as_bytes());
        request.push(0);
        request.extend_from_slice(&(n_bytes as u32).to_be_bytes());
        request.resize(request.len() + n_bytes, 0x91);
        stream.write_all(&request).unwrap();
        let mut answer = Vec::new();
        // The last piece has no content: kind and length alone.
        while !answer.ends_with(b"T\0\0\0\0") {
            let mut part = [0; 4096];
            let n_read = stream.read(&mut part).unwrap();
            assert!(n_read > 0, "closed after {:?}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&part[..n_read]);
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.contains("grpc-status:8") && answer.contains("1048576"), "{answer}");
    }
}

#[test]
fn node_is_bounded_in_what_it_reports() {
    let (head, node, address) = machines();
    let pid = head.controller_pid();
    let before = peak_mib(pid);
    let entrance = Entrance::Certificate { address, tls_dir: node.0.dir.join("tls") };
    let refused = on_own_thread(async move {
        let caller = RawCaller::open(&entrance, &[]).await;
        let mut refused = Vec::new();
        for path in ["/spur.v1.Controller/Attend", "/spur.v1.Controller/Renew", "/spur.v1.Member/Raft"] {
            // No stream in its caller's eyes, so that the answer is waited for.
            refused.push(caller.call(path, bytes_of(100 * MIB), false).await);
        }
        refused
    });
    for answer in &refused {
        assert!(answer.is_err(), "{answer:?}");
    }
    assert!(refused[0].as_ref().unwrap_err().message().contains("takes 33554432 at most"), "{:?}", refused[0]);
    let grown = peak_mib(pid) - before;
    assert!(grown < 64, "a node took {grown} MiB");
    head.wait_for("sinfo -h -o %T", "idle");
}

#[test]
fn long_scripts_and_environments_go_through() {
    let head = Cluster::up("--nodes 1");
    let work = head.dir.join("work");
    std::fs::create_dir_all(&work).unwrap();
    let script =
        format!("#!/bin/sh\necho done\nexit\n{}", "#234567890123456789012345678901234567890123456789\n".repeat(60_000));
    std::fs::write(work.join("long.sh"), script).unwrap();
    let text = "x".repeat(100_000);
    let job =
        head.ok(&format!("for n in 1 2 3 4 5 6 7 8; do export LONG$n={text}; done; sbatch --parsable -o out long.sh"));
    head.wait_state(&job, "COMPLETED");
    assert_eq!(head.file("out"), "done\n");
}
