//! The table in SECURITY.md, tried cell by cell against a running cluster.
use model::command::Blob;
use model::request::JobFilter;
use model::update::{NodeChange, PartitionChanges};
use model::{Command, JobId, JobKind, JobSpec, codec};
use tonic::{Code, Status};

use super::callers::{Entrance, RawCaller, authority_of, on_own_thread};
use super::contract::{FieldContent, written};
use crate::cluster::{Cluster, is_root, new_dir};
use crate::machines::{Machine, free_port, join, token};

const TABLE: &str = include_str!("../../../SECURITY.md");
const VICTIM: (&str, u32) = ("daemon", 1);
const OPERATOR: (&str, u32) = ("sys", 3);
const ADMINISTRATOR: (&str, u32) = ("games", 5);
const USER: (&str, u32) = ("nobody", 65_534);
/// What a login node may say for users it may not say for these.
const MIGHTY: &str = "for somebody mighty";

/// A row: what is tried, the call, and a request that touches what is the victim's.
type Probe = (&'static str, &'static str, fn(victim_job: u32) -> Vec<u8>);

const PROBES: &[Probe] = &[
    ("ask about jobs, nodes and partitions", "Controller/Jobs", |_| noun(&JobFilter::default())),
    ("submit jobs", "Controller/Submit", |_| submission(&held_job())),
    ("cancel jobs of others", "Controller/Cancel", |job| {
        noun(&Command::Cancel { jobs: vec![JobId(job).into()], hurry: false })
    }),
    ("submit for another user", "Controller/Submit", |_| {
        submission(&JobSpec { uid: VICTIM.1, gid: VICTIM.1, user: VICTIM.0.into(), ..held_job() })
    }),
    ("read the script of another's job", "Controller/Blob", |job| written(&[(2, FieldContent::Number(job.into()))])),
    ("take nodes out of service", "Controller/UpdateNodes", |_| {
        noun(&Command::UpdateNodes {
            nodes: vec!["n2".into()],
            change: NodeChange::Drain { reason: "by the trust table".into() },
        })
    }),
    ("change partitions", "Controller/UpdatePartition", |_| {
        noun(&Command::UpdatePartition { name: "main".into(), changes: Box::new(PartitionChanges::default()) })
    }),
    ("read the configuration anew", "Controller/Reconfigure", |_| Vec::new()),
    ("make a token for themselves", "Controller/UserToken", |_| Vec::new()),
    ("make a token for another user", "Controller/UserToken", |_| {
        written(&[(1, FieldContent::Bytes(VICTIM.0.into()))])
    }),
    ("let a machine join", "Controller/MakeToken", |_| noun(&model::trust::Role::Node)),
    ("remove a node", "Controller/RemoveNode", |_| noun(&model::NodeName::from("gone"))),
    ("read the audit", "Controller/Audit", |_| noun(&model::audit::AuditQuery::default())),
    ("copy the whole state, with its keys", "Controller/Backup", |_| Vec::new()),
    ("speak as a controller", "Member/Alive", |_| Vec::new()),
];

fn noun<T: serde::Serialize>(value: &T) -> Vec<u8> {
    written(&[(1, FieldContent::Bytes(codec::encode(value)))])
}

fn script() -> Blob {
    Blob::of(b"#!/bin/sh\n# of the trust table\n".to_vec())
}

fn held_job() -> JobSpec {
    JobSpec {
        name: "trust".into(),
        kind: JobKind::Batch { script: script().id },
        work_dir: "/".into(),
        held: true,
        ..JobSpec::default()
    }
}

fn submission(spec: &JobSpec) -> Vec<u8> {
    let (spec, script) = (codec::encode(spec), codec::encode(&script()));
    written(&[(1, FieldContent::Bytes(spec)), (2, FieldContent::Bytes(script))])
}

/// One way in which somebody of a column may come.
struct TrustActor {
    column: &'static str,
    what: &'static str,
    entrance: Entrance,
    headers: Vec<(&'static str, String)>,
}

fn actors(head: &Cluster, compute: &Machine, login: &Machine, address: &str) -> Vec<TrustActor> {
    let socket = head.dir.join("run/controller.sock");
    let local = |(_, uid): (&str, u32)| Entrance::Local { socket: socket.clone(), uid, gid: uid };
    let by = |tls_dir| Entrance::Certificate { address: address.to_owned(), tls_dir };
    let of = |machine: &Machine| by(machine.0.dir.join("tls"));
    let says = |words: String| vec![(wire::origin::HEADER, words)];
    let vouches = |(_, uid): (&str, u32)| says(format!("local {uid} {uid}"));
    let actor = |column, what, entrance, headers| TrustActor { column, what, entrance, headers };
    let stranger =
        Entrance::Stranger { address: address.to_owned(), authority: authority_of(&head.dir.join("state/tls")) };
    let bearer = |(name, _): (&str, u32)| {
        let token = head.ok(&format!("scontrol token username={name} lifespan=3000"));
        vec![(wire::bearer::HEADER, format!("Bearer {}", token.trim_start_matches("SLURM_JWT=")))]
    };
    let mut actors = vec![
        actor("stranger", "silent", stranger.clone(), Vec::new()),
        actor("stranger", "who claims to be root", stranger.clone(), says("local 0 0".into())),
        actor("stranger", "who claims to be a controller", stranger, says("controller:1".into())),
        actor("compute node", "for itself", of(compute), Vec::new()),
        actor("compute node", "who claims to be a controller", of(compute), says("controller:1".into())),
        actor("compute node", "who claims to be a login node", of(compute), says("node:l1 65534 65534".into())),
        actor("login node", "for a user", of(login), vouches(USER)),
        actor("user", "by the kernel's word", local(USER), Vec::new()),
        actor("user", "who claims to be root", local(USER), says("local 0 0".into())),
        actor("operator", "by the kernel's word", local(OPERATOR), Vec::new()),
        actor("administrator", "by the kernel's word", local(ADMINISTRATOR), Vec::new()),
        actor("controller", "for itself", by(head.dir.join("state/tls")), Vec::new()),
    ];
    for claimed in [("root", 0), VICTIM, OPERATOR, ADMINISTRATOR, USER] {
        actors.push(actor("compute node", "for a user without jobs there", of(compute), vouches(claimed)));
    }
    for mighty in [("root", 0), OPERATOR, ADMINISTRATOR] {
        actors.push(actor("login node", MIGHTY, of(login), vouches(mighty)));
    }
    actors.push(actor("token", "of a user", local(VICTIM), bearer(USER)));
    actors
}

/// The table's rows: what is tried, and the word of each column.
fn rows() -> (Vec<&'static str>, Vec<(&'static str, Vec<&'static str>)>) {
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
    let mut lines = TABLE.lines().skip_while(|line| !line.starts_with("| may they |"));
    let columns = cells(lines.next().expect("the table stands in SECURITY.md"))[1..].to_vec();
    let rows = lines.skip(1).take_while(|line| line.starts_with('|')).map(|line| {
        let cells = cells(line);
        (cells[0], cells[1..].to_vec())
    });
    (columns, rows.collect())
}

/// Whether the answer lets the caller through; what a value is worth is not asked.
fn is_heard(call: &str, answer: &Result<Vec<u8>, Status>) -> bool {
    match answer {
        Err(status) => !matches!(status.code(), Code::PermissionDenied | Code::Unauthenticated),
        Ok(reply) if call == "Controller/Cancel" => {
            let reply: model::Reply = codec::decode(&reply[2..]).expect("a reply");
            let model::Reply::Each(results) = reply else { panic!("{reply:?}") };
            results.iter().any(|one| one.result != Err(model::Reject::NotPermitted))
        }
        Ok(_) => true,
    }
}

/// Whose the job is that was submitted last.
fn newest_owner(head: &Cluster) -> String {
    head.ok("squeue -h -n trust -S -i -o %u | head -n 1")
}

#[test]
fn every_cell_of_the_trust_table_holds() {
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let head = Cluster { dir: new_dir() };
    let port = free_port();
    head.ok(&format!("spur init --dir {} --listen 127.0.0.1:{port}", head.dir.display()));
    let compute = join(&token(&head, ""), "--node n1 --cpus 4 --memory 1G");
    let _other = join(&token(&head, ""), "--node n2 --cpus 4 --memory 1G");
    let login = join(&token(&head, "--login"), "--node l1 --cpus 4 --memory 1G");
    head.ok("sacctmgr -i add account a");
    for (name, level) in [(OPERATOR.0, "operator"), (ADMINISTRATOR.0, "admin")] {
        head.ok(&format!("sacctmgr -i add user {name} account=a adminlevel={level}"));
    }
    for name in ["root", VICTIM.0, USER.0] {
        head.ok(&format!("sacctmgr -i add user {name} account=a"));
    }
    let actors = actors(&head, &compute, &login, &format!("127.0.0.1:{port}"));
    let (columns, rows) = rows();
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), PROBES.iter().map(|row| row.0).collect::<Vec<_>>());
    for column in &columns {
        assert!(actors.iter().any(|actor| actor.column == *column), "nobody plays a {column}");
    }
    let mut wrong = Vec::new();
    for ((what, call, body), (_, words)) in PROBES.iter().zip(&rows) {
        for actor in &actors {
            let column = columns.iter().position(|column| *column == actor.column).expect("a column");
            let victim = head.ok(&format!(
                "setpriv --reuid={0} --regid={0} --clear-groups sbatch --parsable -H -D / -o /dev/null --wrap true",
                VICTIM.1
            ));
            let (entrance, headers) = (actor.entrance.clone(), actor.headers.clone());
            let (path, body) = (format!("/spur.v1.{call}"), body(victim.parse().unwrap()));
            let answer =
                on_own_thread(async move { RawCaller::open(&entrance, &headers).await.call(&path, body, false).await });
            head.ok(&format!("scancel {victim}"));
            let is_heard = match *what {
                // Who names another user without the right to gets a job of their own.
                "submit for another user" => answer.is_ok() && newest_owner(&head) == VICTIM.0,
                _ => is_heard(call, &answer),
            };
            let is_right = match words[column] {
                "yes" => is_heard || actor.what == MIGHTY,
                "own" | "no" => !is_heard,
                // With fewer rights than anybody else who is heard.
                "nobody" => true,
                other => panic!("{what}: what is {other}?"),
            };
            if !is_right {
                let said = answer.map(|reply| format!("{} bytes", reply.len())).map_err(|status| status.to_string());
                wrong.push(format!("{what}: {} {}: not {}: {said:?}", actor.column, actor.what, words[column]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cells:\n{}\n{}", wrong.len(), wrong.join("\n"), head.logs());
}
