//! Calls that another daemon passes on: what they hold is paid for where they come in, by whoever makes them.
use std::time::{Duration, Instant};

use tonic::Code;

use super::callers::{Entrance, RawCaller, on_own_thread};
use super::sizes::{ask_all, bytes_of, peak_mib};
use crate::cluster::{Cluster, is_root, new_dir};
use crate::machines::{Machine, free_port, join, token};

const USER: u32 = 65_534;
const OTHER: u32 = 1;
const MIB: usize = 1 << 20;
const N_STALLED: usize = 16;
const SUBMIT: &str = "/spur.v1.Controller/Submit";

fn head() -> Cluster {
    let head = Cluster { dir: new_dir() };
    head.ok(&format!("spur init --dir {} --listen 127.0.0.1:{}", head.dir.display(), free_port()));
    head
}

/// Bodies of this user that are never whole, each on a connection of its own, until this is dropped.
struct StalledBodies {
    enough: Option<tokio::sync::watch::Sender<bool>>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl StalledBodies {
    fn begin(entrance: &Entrance) -> StalledBodies {
        let (enough, is_enough) = tokio::sync::watch::channel(false);
        let threads = (0..N_STALLED)
            .map(|_| {
                let (entrance, mut is_enough) = (entrance.clone(), is_enough.clone());
                std::thread::spawn(move || {
                    on_own_thread(async move {
                        let caller = RawCaller::open(&entrance, &[]).await;
                        tokio::select! {
                            _ = caller.stall(SUBMIT, 20 << 20, 20 * MIB - 1) => {}
                            _ = is_enough.changed() => {}
                        }
                    });
                })
            })
            .collect();
        StalledBodies { enough: Some(enough), threads }
    }
}

impl Drop for StalledBodies {
    fn drop(&mut self) {
        drop(self.enough.take());
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// Until as much has come as is taken, so that nothing more is on its way.
fn wait_until_settled(pids: &[i32]) {
    let end = Instant::now() + Duration::from_secs(15);
    let mut last = Vec::new();
    while Instant::now() < end {
        let now: Vec<u64> = pids.iter().map(|pid| peak_mib(*pid)).collect();
        if now == last {
            return;
        }
        last = now;
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn bodies_that_stop_at_a_follower_cost_the_leader_nothing() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = head();
    let listen = format!("--controller --listen 127.0.0.1:{}", free_port());
    let second: Machine = join(&token(&head, "--controller"), &listen);
    second.0.wait_until("scontrol ping", |said| said.out.matches("is UP").count() == 2);
    let socket = second.0.dir.join("run/controller.sock");
    let pids = [head.controller_pid(), second.0.controller_pid()];
    let before = pids.map(peak_mib);
    let held = StalledBodies::begin(&Entrance::Local { socket: socket.clone(), uid: USER, gid: USER });
    wait_until_settled(&pids);
    let grown = [0, 1].map(|at| peak_mib(pids[at]) - before[at]);
    eprintln!("leader and follower grew by {grown:?} MiB");
    assert!(grown[0] < 40, "bodies that never end took {grown:?} MiB");
    assert!(grown[1] < 120, "bodies that never end took {grown:?} MiB");
    // Others are heard meanwhile, with long requests too.
    let other = Entrance::Local { socket, uid: OTHER, gid: OTHER };
    let answer = ask_all(&other, 1, SUBMIT, &bytes_of(20 * MIB)).remove(0).unwrap_err();
    assert_eq!(answer.code(), Code::InvalidArgument, "{answer:?}");
    drop(held);
}

#[test]
fn bodies_that_stop_at_a_login_node_block_nobody_else_there() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = head();
    let login = join(&token(&head, "--login"), "--node login --cpus 1 --memory 1G");
    let socket = login.0.dir.join("run/agent-login.sock");
    let pids = [head.controller_pid(), login.0.agent_pid("login")];
    let before = pids.map(peak_mib);
    let held = StalledBodies::begin(&Entrance::Local { socket: socket.clone(), uid: USER, gid: USER });
    wait_until_settled(&pids);
    let grown = [0, 1].map(|at| peak_mib(pids[at]) - before[at]);
    eprintln!("controller and agent grew by {grown:?} MiB");
    assert!(grown[0] < 40 && grown[1] < 120, "bodies that never end took {grown:?} MiB");
    let other = Entrance::Local { socket, uid: OTHER, gid: OTHER };
    let answer = ask_all(&other, 1, SUBMIT, &bytes_of(20 * MIB)).remove(0).unwrap_err();
    assert_eq!(answer.code(), Code::InvalidArgument, "{answer:?}");
    assert!(login.0.run("sinfo -h").code == 0 && head.run("sinfo -h").code == 0);
    drop(held);
}
