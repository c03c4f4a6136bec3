//! Certificates and join tokens: what was taken back, used up or asked for under another name opens nothing.
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::codec;
use model::config::NamedNode;
use model::node::NodeConfig;
use model::trust::{JoinRequest, Joined, Role};
use tonic::{Code, Status};
use wire::origin::{CERTIFICATE_HEADER, HEADER};
use wire::proto::CommandReply;
use wire::tls::Principal;
use wire::tls::identity::{Identity, NewKey};
use wire::tls::token::Token;

use super::callers::{Entrance, RawCaller, authority_of, on_own_thread};
use super::contract::{FieldContent, written};
use crate::cluster::{Cluster, Folder, is_alive, new_dir};
use crate::machines::{free_port, join, token};

fn head() -> (Cluster, String) {
    let head = Cluster { dir: new_dir() };
    let address = format!("127.0.0.1:{}", free_port());
    head.ok(&format!("spur init --dir {} --listen {address}", head.dir.display()));
    (head, address)
}

fn call(entrance: &Entrance, headers: &[(&'static str, String)], path: &str, body: Vec<u8>) -> Result<Vec<u8>, Status> {
    let (entrance, headers, path) = (entrance.clone(), headers.to_vec(), format!("/spur.v1.{path}"));
    on_own_thread(async move { RawCaller::open(&entrance, &headers).await.call(&path, body, false).await })
}

fn bytes(content: Vec<u8>) -> Vec<u8> {
    written(&[(1, FieldContent::Bytes(content))])
}

fn joined(answer: &[u8]) -> Joined {
    let reply: CommandReply = only_field(answer);
    codec::decode(&reply.reply).expect("what a joining machine is told")
}

/// The one field of a `CommandReply`.
fn only_field(answer: &[u8]) -> CommandReply {
    let n_before = 1 + answer[1..].iter().take_while(|byte| **byte >= 0x80).count() + 1;
    CommandReply { reply: answer[n_before..].to_vec().into() }
}

/// Keeps what was given for this key where a caller finds it.
fn keep(key: &NewKey, given: &Joined, dir: &Path) -> PathBuf {
    key.keep(dir, &given.ca_certificate, &given.certificate, given.from_secs, given.until_secs).unwrap();
    dir.to_owned()
}

fn copied(tls_dir: &Path, to: &Path) -> PathBuf {
    std::fs::create_dir_all(to).unwrap();
    for file in ["ca.pem", "identity.pem"] {
        std::fs::copy(tls_dir.join(file), to.join(file)).unwrap();
    }
    to.to_owned()
}

/// Renews over one connection, several at a time, until it is over.
async fn steal(entrance: Entrance, is_over: Arc<AtomicBool>, dir: PathBuf) -> Vec<PathBuf> {
    let caller = Arc::new(RawCaller::open(&entrance, &[]).await);
    let mut taken = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let mut asked = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let caller = caller.clone();
            asked.spawn(async move {
                let key = NewKey::make().unwrap();
                let answer = caller.call("/spur.v1.Controller/Renew", bytes(key.public()), false).await;
                (key, answer)
            });
        }
        while let Some(Ok((key, answer))) = asked.join_next().await {
            if let Ok(answer) = answer {
                taken.push(keep(&key, &joined(&answer), &dir.join(taken.len().to_string())));
            }
        }
    }
    taken
}

#[test]
fn certificates_of_a_removed_node_open_nothing() {
    let (head, address) = head();
    let stolen = Folder::new();
    for round in 0..3 {
        let node = join(&token(&head, ""), "--node a1 --cpus 1 --memory 1G");
        let tls = copied(&node.0.dir.join("tls"), &stolen.join(format!("round-{round}")));
        let is_over = Arc::new(AtomicBool::new(false));
        // Renewals on all the while, until well after the removal.
        let thieves: Vec<_> = (0..8)
            .map(|thief| {
                let entrance = Entrance::Certificate { address: address.clone(), tls_dir: tls.clone() };
                let (is_over, dir) = (is_over.clone(), stolen.join(format!("{round}-{thief}")));
                std::thread::spawn(move || on_own_thread(steal(entrance, is_over, dir)))
            })
            .collect();
        head.ok(&format!("spur node remove a1 --dir {}", head.dir.display()));
        let late =
            call(&Entrance::Certificate { address: address.clone(), tls_dir: tls }, &[], "Controller/Ping", Vec::new());
        assert_eq!(late.unwrap_err().code(), Code::PermissionDenied);
        is_over.store(true, Ordering::Relaxed);
        let taken: Vec<PathBuf> = thieves.into_iter().flat_map(|thief| thief.join().unwrap()).collect();
        eprintln!("{} renewals before the removal", taken.len());
        for tls_dir in taken {
            let entrance = Entrance::Certificate { address: address.clone(), tls_dir };
            let status =
                call(&entrance, &[], "Controller/Ping", Vec::new()).expect_err("a certificate of a removed node");
            assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
        }
        drop(node);
    }
}

#[test]
fn certificate_of_a_removed_controller_ends_nothing() {
    let (head, address) = head();
    let listen = format!("127.0.0.1:{}", free_port());
    let second = join(&token(&head, "--controller"), &format!("--controller --listen {listen}"));
    let stolen = Folder::new();
    let tls_dir = copied(&second.0.dir.join("state/tls"), &stolen);
    let thief = Entrance::Certificate { address: address.clone(), tls_dir };
    call(&thief, &[], "Member/Alive", Vec::new()).expect("it is a controller yet");
    head.ok(&format!("spur controller remove 2 --dir {}", head.dir.display()));
    let pid = head.controller_pid();
    for (path, headers) in [
        ("Member/Raft", vec![]),
        ("Member/Stand", vec![]),
        ("Member/End", vec![]),
        ("Member/Alive", vec![]),
        ("Member/ReadAudit", vec![]),
        ("Member/End", vec![(HEADER, "local 0 0".to_owned())]),
        ("Controller/Renew", vec![]),
        ("Controller/Backup", vec![(HEADER, "local 0 0".to_owned())]),
        ("Controller/Members", vec![]),
        ("Controller/ChangeMembers", vec![]),
    ] {
        let status = call(&thief, &headers, path, Vec::new()).expect_err(path);
        assert_eq!(status.code(), Code::PermissionDenied, "{path}: {status:?}");
    }
    assert!(is_alive(pid));
    head.ok("scontrol ping");
}

#[test]
fn renewal_gives_nobody_another_name() {
    let (head, address) = head();
    let node = join(&token(&head, ""), "--node a1 --cpus 1 --memory 1G");
    let entrance = Entrance::Certificate { address, tls_dir: node.0.dir.join("tls") };
    let controller = Identity::load(&head.dir.join("state/tls")).unwrap().fingerprint;
    let kept = Folder::new();
    for (number, words) in
        ["", "controller:1", "node:a2", "local 0 0", "node:a2 0 0", "stranger"].into_iter().enumerate()
    {
        let key = NewKey::make().unwrap();
        let headers = [(HEADER, words.to_owned()), (CERTIFICATE_HEADER, controller.clone())];
        match call(&entrance, &headers, "Controller/Renew", bytes(key.public())) {
            Ok(answer) => {
                let dir = keep(&key, &joined(&answer), &kept.join(number.to_string()));
                assert_eq!(Identity::load(&dir).unwrap().principal, Principal::Node("a1".into()), "{words}");
            }
            Err(status) => assert_eq!(status.code(), Code::PermissionDenied, "{words}: {status:?}"),
        }
    }
    for wrong in [Vec::new(), vec![0; 31], vec![0; 33], b"a key? no: 32 bytes, but no point.".to_vec()] {
        call(&entrance, &[], "Controller/Renew", bytes(wrong)).expect_err("no key");
    }
    // Each is kept until it ends: nobody is given any number of them.
    let refused =
        (0..100).find_map(|_| call(&entrance, &[], "Controller/Renew", bytes(NewKey::make().unwrap().public())).err());
    assert_eq!(refused.map(|status| status.code()), Some(Code::ResourceExhausted));
    drop(node);
}

fn join_request(word: &str, role: Role, name: &str, key: &NewKey) -> Vec<u8> {
    let word: Token = word.split_once('@').unwrap().0.parse().unwrap();
    let node = NamedNode { name: name.into(), config: NodeConfig { cpus: 1, memory_mb: 100, ..NodeConfig::default() } };
    bytes(codec::encode(&JoinRequest {
        secret: word.secret.to_vec(),
        public_key: key.public(),
        role,
        node: Some(node),
        address: String::new(),
    }))
}

#[test]
fn join_token_is_good_once_and_for_its_role() {
    let (head, address) = head();
    let authority = authority_of(&head.dir.join("state/tls"));
    let stranger = Entrance::Stranger { address, authority };
    let join_as = |word: &str, role, name: &str| {
        call(&stranger, &[], "Controller/Join", join_request(word, role, name, &NewKey::make().unwrap()))
    };
    let word = token(&head, "");
    for role in [Role::Controller, Role::Login] {
        join_as(&word, role, "a1").expect_err("another role than the token's");
    }
    join_as(&token(&head, "--controller"), Role::Node, "a1").expect_err("a node by a controller's token");
    let long = "n".repeat(300);
    for name in ["", ".", "..", "a b", "a/b", "../a", "a\nb", "a\0b", "é", "a,b", "a[1-2]", "-a", &long] {
        join_as(&word, Role::Node, name).expect_err(&format!("a node called {name:?}"));
    }
    assert_eq!(head.ok("scontrol show node -o | grep -c NodeName= || true"), "0");
    // Many at once, each with another name.
    let at_once: Vec<_> = (0..8)
        .map(|number| {
            let (stranger, word) = (stranger.clone(), word.clone());
            std::thread::spawn(move || {
                let request = join_request(&word, Role::Node, &format!("r{number}"), &NewKey::make().unwrap());
                call(&stranger, &[], "Controller/Join", request).is_ok()
            })
        })
        .collect();
    let n_joined = at_once.into_iter().map(|one| one.join().unwrap()).filter(|is_in| *is_in).count();
    assert_eq!(n_joined, 1, "a token is good once");
    join_as(&word, Role::Node, "late").expect_err("it was used");
    assert_eq!(head.ok("scontrol show node -o | grep -c NodeName="), "1");
    // A token for login nodes makes them, whatever the machine says.
    join_as(&token(&head, "--login"), Role::Node, "login").expect("a login node");
    assert_eq!(head.ok("sinfo -h -N -o %N | grep -c login || true"), "0");
}

#[test]
fn join_token_is_seen_in_no_process() {
    let (head, _) = head();
    let word = token(&head, "");
    let secret = word.split_once('@').unwrap().0.to_owned();
    // As an argument it is gone at once: this one waits for somebody who never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let dir = new_dir();
    let line = format!("exec spur join {secret}@{} --node a9 --dir {}", silent.local_addr().unwrap(), dir.display());
    let mut waiting = head.shell(&line).stderr(Stdio::piped()).spawn().unwrap();
    let (connection, _) = silent.accept().unwrap();
    let shown = std::fs::read_to_string(format!("/proc/{}/cmdline", waiting.id())).unwrap();
    assert!(shown.contains("join") && !shown.contains(&secret), "{shown:?}");
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    let mut said = String::new();
    waiting.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("--token-file"), "{said}");
    drop(connection);
    let _ = std::fs::remove_dir_all(dir);
    // From a file, from standard input, from the environment.
    let file = head.dir.join("work/token");
    std::fs::write(&file, format!("{word}\n")).unwrap();
    let ways = [
        format!("spur join --token-file {}", file.display()),
        format!("spur join <<< {}", token(&head, "")),
        format!("SPUR_JOIN_TOKEN={} spur join", token(&head, "")),
        format!("echo {} | spur join -", token(&head, "")),
    ];
    for (number, way) in ways.into_iter().enumerate() {
        let machine = crate::machines::Machine(Cluster { dir: new_dir() });
        let (before, after) = way.split_once("spur join").unwrap();
        let own = format!("--node f{number} --cpus 1 --memory 1G --dir {}", machine.0.dir.display());
        machine.0.ok(&format!("{before}spur join {own}{after}"));
        let pid = machine.0.agent_pid(&format!("f{number}"));
        for file in ["cmdline", "environ"] {
            let shown = std::fs::read(format!("/proc/{pid}/{file}")).unwrap();
            let shown = String::from_utf8_lossy(&shown);
            assert!(!shown.contains("@127.0.0.1") && !shown.contains("SPUR_JOIN_TOKEN"), "{file}: {shown}");
        }
    }
    let nothing = head.run("spur join </dev/null");
    assert!(nothing.code != 0 && nothing.err.contains("--token-file"), "{nothing:?}");
}
