//! Every call, by every kind of caller, with hostile values in every field.
//!
//! Calls, fields and types come from `proto/spur.proto` and from the types themselves, so a new call or field is walked without
//! a change here. Each caller sends a sample of all its hostile requests; `SPUR_WALK=all` sends every one.
//! The controller must answer each of them, must not break, and nobody but its owner may have changed anything of a victim's.
use std::collections::BTreeSet;
use std::path::Path;

use testkit::hostile_values::{Inward, Place, Plain, PlainKind, Poison, poisons};
use tonic::Code;

use super::callers::{Entrance, RawCaller, authority_of, on_own_thread};
use super::contract::{
    ContractCall, ContractField, FieldContent, NounRow, calls, noun, places_of, plain_contents, written,
};
use crate::cluster::{Cluster, is_root, new_dir};
use crate::machines::{free_port, join};

/// Of each call, so many hostile requests by each caller.
const SAMPLE: usize = 30;
const VICTIM: (&str, u32) = ("daemon", 1);
const STRANGER: (&str, u32) = ("nobody", 65_534);
/// These end the cluster, or take it apart, at the word of an administrator, as they should.
const ENDING: &[&str] = &["Shutdown", "ChangeMembers", "RemoveNode", "Restore", "End", "Stand", "Raft"];

/// Who calls, and what may become of it.
struct Walker {
    name: &'static str,
    entrance: Entrance,
    headers: Vec<(&'static str, String)>,
    rights: WalkerRights,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WalkerRights {
    /// May change nothing of others'.
    None,
    /// May say what its node is like.
    OwnNode,
    /// May change what it likes: only that the cluster survives is asked.
    All,
}

/// A request, and where it is hostile.
struct HostileRequest {
    what: String,
    body: Vec<u8>,
}

fn script() -> model::command::Blob {
    model::command::Blob::of(b"#!/bin/sh\ntrue\n".to_vec())
}

/// Values that a call would take, so that the hostile one is looked at.
fn ordinary(victim: u32) -> impl Fn(&[Inward], PlainKind) -> Option<Plain> {
    let words = script().id.0;
    move |place, kind| {
        let field = place.iter().rev().find_map(|step| match step {
            Inward::Field(name) => Some(*name),
            _ => None,
        });
        let item = place.iter().rev().find_map(|step| if let Inward::Item(index) = step { Some(*index) } else { None });
        Some(match (field?, kind) {
            ("script", PlainKind::Unsigned) => Plain::Number(i128::from(words[item? % 4])),
            ("job" | "jobs" | "array", PlainKind::Unsigned) => Plain::Number(i128::from(victim)),
            ("uid" | "gid", PlainKind::Unsigned) => Plain::Number(i128::from(VICTIM.1)),
            ("min_nodes" | "n_tasks", PlainKind::Unsigned) => Plain::Number(1),
            ("node" | "nodes" | "names", PlainKind::Text) => Plain::Text("a1".into()),
            ("partition" | "partitions", PlainKind::Text) => Plain::Text("main".into()),
            ("work_dir", PlainKind::Text) => Plain::Text("/".into()),
            ("stdout" | "stderr", PlainKind::Text) => Plain::Text("/dev/null".into()),
            ("user", PlainKind::Text) => Plain::Text(VICTIM.0.into()),
            ("name", PlainKind::Text) => Plain::Text("walk".into()),
            ("content", PlainKind::Bytes) => Plain::Bytes(script().content),
            // The id of a blob that comes along.
            ("id", PlainKind::Unsigned) => Plain::Number(i128::from(words[item? % 4])),
            _ => return None,
        })
    }
}

/// A request with ordinary values, but for the field that is given.
fn body(call: &ContractCall, field: &ContractField, content: FieldContent, victim: u32) -> Vec<u8> {
    let ordinary = ordinary(victim);
    let fields = call.request.fields.iter().filter_map(|one| {
        if one.number == field.number {
            return Some((one.number, content.clone()));
        }
        if one.name == "job" && one.kind == "uint32" {
            return Some((one.number, FieldContent::Number(u64::from(victim))));
        }
        let is_needed = ["spec", "blobs", "job"].contains(&one.name);
        let noun = one.noun.filter(|name| is_needed && name.starts_with("model::"))?;
        Some((one.number, FieldContent::Bytes((super::contract::noun(noun).ordinary)(&[], &ordinary)?)))
    });
    written(&fields.collect::<Vec<_>>())
}

/// The variants of the noun, one of which a call takes; one without any, where the noun is no enum.
fn kinds_of(row: &NounRow, places: &[(Place, PlainKind)]) -> Vec<Vec<Inward>> {
    let first = places.iter().filter_map(|(place, _)| match place.first() {
        Some(Inward::Variant(name)) => Some(Inward::Variant(name)),
        _ => None,
    });
    let kinds: BTreeSet<Inward> = first.collect();
    assert!(!places.is_empty(), "nothing is known of {}", row.name);
    if kinds.is_empty() { vec![Vec::new()] } else { kinds.into_iter().map(|kind| vec![kind]).collect() }
}

/// Evenly spread over all, another part of it for each caller.
fn sample<T>(all: Vec<T>, n_wanted: usize, turn: usize) -> Vec<T> {
    if std::env::var("SPUR_WALK").is_ok_and(|words| words == "all") || all.len() <= n_wanted {
        return all;
    }
    let stride = all.len() / n_wanted;
    all.into_iter().skip(turn * 7 % stride).step_by(stride).take(n_wanted).collect()
}

impl Walker {
    async fn walk(self, turn: usize, victim: u32) -> (usize, Vec<String>) {
        let caller = RawCaller::open(&self.entrance, &self.headers).await;
        let (mut n_sent, mut wrong) = (0, Vec::new());
        for call in calls() {
            if self.rights == WalkerRights::All && ENDING.contains(&call.name) {
                continue;
            }
            for request in self.requests(&caller, &call, turn, victim).await {
                n_sent += 1;
                wrong.extend(self.send(&caller, &call, request).await);
            }
        }
        (n_sent, wrong)
    }

    /// Sends the ordinary request of each kind first: kinds that the call does not take are not poisoned.
    async fn requests(&self, caller: &RawCaller, call: &ContractCall, turn: usize, victim: u32) -> Vec<HostileRequest> {
        let ordinary = ordinary(victim);
        let mut requests = Vec::new();
        for field in &call.request.fields {
            let Some(row) = field.noun.filter(|name| name.starts_with("model::")).map(noun) else {
                let contents = plain_contents(field.kind).into_iter();
                requests.extend(contents.map(|content| HostileRequest {
                    what: format!("{}.{} {content:.60?}", call.name, field.name),
                    body: body(call, field, content, victim),
                }));
                continue;
            };
            let places = places_of(row, &ordinary);
            let mut taken = Vec::new();
            for kind in kinds_of(row, &places) {
                let Some(bytes) = (row.ordinary)(&kind, &ordinary) else { continue };
                let answer = self.ask(caller, call, body(call, field, FieldContent::Bytes(bytes), victim)).await;
                let is_other =
                    answer.as_ref().is_err_and(|status| status.message().contains("does not belong to this call"));
                let ends = ENDING.iter().any(|name| kind.contains(&Inward::Variant(name)));
                if !is_other && (self.rights != WalkerRights::All || !ends) {
                    taken.push(kind);
                }
            }
            let of_taken = places.iter().filter(|(place, _)| taken.iter().any(|kind| place.starts_with(kind)));
            let all: Vec<Poison> = of_taken
                .flat_map(|(place, kind)| {
                    poisons(*kind).into_iter().map(move |plain| Poison { place: place.clone(), plain })
                })
                .collect();
            for poison in sample(all, SAMPLE, turn) {
                if let Some(bytes) = (row.poisoned)(&poison, &ordinary) {
                    let what = format!("{}.{}{poison}", call.name, field.name);
                    requests.push(HostileRequest { what, body: body(call, field, FieldContent::Bytes(bytes), victim) });
                }
            }
        }
        if call.request.fields.is_empty() {
            requests.push(HostileRequest { what: call.name.into(), body: Vec::new() });
        }
        requests
    }

    async fn ask(&self, caller: &RawCaller, call: &ContractCall, body: Vec<u8>) -> Result<Vec<u8>, tonic::Status> {
        caller.call(&format!("/spur.v1.{}/{}", call.service, call.name), body, call.streams_requests).await
    }

    /// What is wrong with the answer, if anything.
    async fn send(&self, caller: &RawCaller, call: &ContractCall, request: HostileRequest) -> Option<String> {
        let status = self.ask(caller, call, request.body).await.err()?;
        let is_fault = matches!(
            status.code(),
            Code::Internal | Code::Unknown | Code::DeadlineExceeded | Code::Unavailable | Code::DataLoss
        );
        is_fault.then(|| format!("{}: {}: {:?} {}", self.name, request.what, status.code(), status.message()))
    }
}

/// What a victim has, and what belongs to nobody: only the mighty may change it.
fn possessions(head: &Cluster, victim: &str, speaks_for_node: bool) -> Vec<(String, String)> {
    let lines = [
        format!("squeue -h -j {victim} -o '%i %j %u %T %r %k %Q %l %P %v'"),
        "scontrol show partition".into(),
        "sinfo -h -N -o '%N %f %G %E'".into(),
        "scontrol show reservation".into(),
        "sacctmgr -nP show assoc".into(),
        "sacctmgr -nP show qos".into(),
        "sacctmgr -nP show user".into(),
    ];
    // What a node is, its own agent says, and root of it may say that it is sick.
    let asked = lines.into_iter().filter(|line| !speaks_for_node || !line.starts_with("sinfo"));
    asked.map(|line| (line.clone(), head.ok(&line))).collect()
}

fn resident_kib(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

fn walkers(head: &Cluster, node: &Path, address: &str) -> Vec<Walker> {
    let socket = head.dir.join("run/controller.sock");
    let local = |(_, uid): (&str, u32)| Entrance::Local { socket: socket.clone(), uid, gid: uid };
    let node_tls = || Entrance::Certificate { address: address.to_owned(), tls_dir: node.join("tls") };
    let walker = |name, entrance, mut headers: Vec<(&'static str, String)>| {
        // Calls for agents are for that of the one node.
        headers.push((wire::node::NODE_HEADER, "a1".to_owned()));
        Walker { name, entrance, headers, rights: WalkerRights::None }
    };
    let vouched = |uid: u32| vec![(wire::origin::HEADER, format!("local {uid} {uid}"))];
    let stranger =
        Entrance::Stranger { address: address.to_owned(), authority: authority_of(&head.dir.join("state/tls")) };
    let mut walkers = vec![
        walker("a stranger on the network", stranger, Vec::new()),
        Walker { rights: WalkerRights::OwnNode, ..walker("a node for itself", node_tls(), Vec::new()) },
        walker("a node for an unknown user", node_tls(), vouched(54_321)),
        walker("a node for nobody", node_tls(), vouched(STRANGER.1)),
        walker(
            "a node that claims to be a controller",
            node_tls(),
            vec![(wire::origin::HEADER, "controller:1".into())],
        ),
    ];
    if is_root() {
        let token = head.ok(&format!("scontrol token username={} lifespan=3000", STRANGER.0));
        let token = format!("Bearer {}", token.trim_start_matches("SLURM_JWT="));
        walkers.push(walker("another user", local(STRANGER), Vec::new()));
        walkers.push(walker("another user by token", local(VICTIM), vec![(wire::bearer::HEADER, token)]));
        let root = walker("root of a node", node_tls(), vouched(0));
        walkers.push(Walker { rights: WalkerRights::OwnNode, ..root });
        walkers.push(Walker { rights: WalkerRights::All, ..walker("the owner", local(VICTIM), Vec::new()) });
    }
    walkers.push(Walker { rights: WalkerRights::All, ..walker("an administrator", local(("", 0)), Vec::new()) });
    walkers
}

#[test]
fn hostile_values_in_every_field_of_every_call_break_nothing() {
    let head = Cluster { dir: new_dir() };
    let port = free_port();
    let said = head.ok(&format!("spur init --dir {} --listen 127.0.0.1:{port}", head.dir.display()));
    let word = said.rsplit_once(' ').unwrap().1.to_owned();
    let node = join(&word, &format!("--node a1 --cpus 8 --memory 1G --listen 127.0.0.1:{}", free_port()));
    let become_victim = match is_root() {
        true => format!("setpriv --reuid={0} --regid={0} --clear-groups", VICTIM.1),
        false => String::new(),
    };
    let job = head.ok(&format!(
        "{become_victim} sbatch --parsable -H -D / -o /dev/null -J victim --comment precious --wrap true"
    ));
    let victim: u32 = job.parse().unwrap();
    let pid = head.controller_pid();
    let (mut n_sent, mut all_wrong) = (0, Vec::new());
    for (turn, walker) in walkers(&head, &node.0.dir, &format!("127.0.0.1:{port}")).into_iter().enumerate() {
        let (name, rights) = (walker.name, walker.rights);
        let possessions = || possessions(&head, &job, rights == WalkerRights::OwnNode);
        let before = possessions();
        let (n, wrong) = on_own_thread(walker.walk(turn, victim));
        n_sent += n;
        eprintln!("{name}: {n} hostile requests, {} MiB resident", resident_kib(pid) >> 10);
        all_wrong.extend(wrong);
        assert_eq!(head.controller_pid(), pid);
        assert!(crate::cluster::is_alive(pid), "{name} ended the controller\n{}", head.logs());
        if rights != WalkerRights::All {
            for (before, after) in before.iter().zip(possessions()) {
                assert_eq!(*before, after, "{name} changed what is not its own");
            }
        }
    }
    let some = &all_wrong[..all_wrong.len().min(40)];
    assert!(all_wrong.is_empty(), "{} answers, such as\n{}\n{}", all_wrong.len(), some.join("\n"), head.logs());
    assert!(!head.logs().contains("panicked"), "{}", head.logs());
    assert!(n_sent > 2_000, "{n_sent} requests are no walk");
    head.ok("scontrol ping");
}
