//! Values inside values: bytes whose reader would need more stack than it has, at every call and in what is kept.
use model::features::Constraint;
use model::{Command, JobId, JobKind, JobRef, JobSpec, codec};
use tonic::{Code, Status};

use super::callers::{Entrance, RawCaller, on_own_thread};
use super::contract::{FieldContent, calls, noun, written};
use crate::cluster::{Cluster, is_alive, kill_9};

/// What the reader of a hostile value would have needed; its writer needs it, too.
const STACK_BYTES: usize = 1 << 30;
/// As the attack was: 60 KB.
const HOSTILE_BYTES: usize = 60_000;

/// Made on a thread that has the stack for it.
fn with_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).unwrap().join().unwrap()
}

fn constraint(n_deep: usize) -> Constraint {
    (0..n_deep).fold(Constraint::Has("a".into()), |inner, _| Constraint::Not(inner.into()))
}

fn held_allocation(n_deep: usize) -> JobSpec {
    let (kind, work_dir) = (JobKind::Allocation, "/".into());
    let mut spec = JobSpec { held: true, kind, work_dir, ..JobSpec::default() };
    spec.size.constraint = Some(constraint(n_deep));
    spec
}

/// A spec with so many `!` before its constraint.
fn spec_with_constraint(n_deep: usize) -> Vec<u8> {
    with_stack(move || codec::encode(&held_allocation(n_deep)))
}

/// A command inside requests that come again, so many of them.
fn requests_in_requests(n_deep: usize) -> Vec<u8> {
    let inner = codec::encode(&Command::Hold { jobs: vec![JobRef::from(JobId(1))], by_user: false });
    let head = b"\x81\xa4Once\x82\xa7request\x92\x01\x02\xa7command";
    [head.repeat(n_deep), inner].concat()
}

/// Nothing but depth, whatever the type.
fn bottomless() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("lists", vec![0x91; HOSTILE_BYTES]),
        ("maps", b"\x81\xa1x".repeat(HOSTILE_BYTES / 3)),
        ("refusals", b"\x81\xa4Told\x82\xa4told\xa0\xa3why".repeat(HOSTILE_BYTES / 17)),
        ("constraints", b"\x81\xa3Not".repeat(HOSTILE_BYTES / 5)),
        ("an unknown field", [&b"\x81\xa5other"[..], &[0x91; HOSTILE_BYTES]].concat()),
        ("requests", requests_in_requests(HOSTILE_BYTES / 28)),
        ("a claimed list", b"\xdd\xff\xff\xff\xff".to_vec()),
        ("a claimed text", b"\xdb\xff\xff\xff\xff".to_vec()),
        ("claimed bytes", b"\xc6\xff\xff\xff\xff".to_vec()),
        ("a claimed map", b"\xdf\xff\xff\xff\xff\xa1a".to_vec()),
        ("small parts", [&b"\xdd\x00\x3d\x09\x00"[..], &[0x80; 4_000_000]].concat()),
    ]
}

/// Each deep value inside each variant of the noun, as its only content.
fn hostile_values(name: &str) -> Vec<(String, Vec<u8>)> {
    let mut values: Vec<(String, Vec<u8>)> =
        bottomless().into_iter().map(|(what, bytes)| (what.to_owned(), bytes)).collect();
    let places = super::contract::places_of(noun(name), &|_, _| None);
    let mut variants: Vec<&str> = places
        .iter()
        .filter_map(|(place, _)| match place.first() {
            Some(testkit::hostile_values::Inward::Variant(variant)) => Some(*variant),
            _ => None,
        })
        .collect();
    variants.dedup();
    for variant in variants {
        let head = [&[0x81, 0xd9, variant.len() as u8][..], variant.as_bytes()].concat();
        for (what, bytes) in bottomless() {
            // One of the large kind is enough.
            if bytes.len() <= HOSTILE_BYTES + 100 {
                values.push((format!("{variant} of {what}"), [&head[..], &bytes].concat()));
            }
        }
    }
    values
}

/// Sends deep values to all calls of the services; says which were not answered, or not refused.
async fn walk(entrance: Entrance, services: &'static [&'static str]) -> (usize, Vec<String>) {
    let caller = RawCaller::open(&entrance, &[(wire::node::NODE_HEADER, "n1".to_owned())]).await;
    let (mut n_sent, mut wrong) = (0, Vec::new());
    for call in calls().into_iter().filter(|call| services.contains(&call.service)) {
        for field in call.request.fields.iter().filter(|field| field.kind == "bytes") {
            let named = field.noun.filter(|name| name.starts_with("model::"));
            let values = match named {
                Some(name) => hostile_values(name),
                None => bottomless().into_iter().map(|(what, bytes)| (what.to_owned(), bytes)).collect(),
            };
            for (what, bytes) in values {
                n_sent += 1;
                let body = written(&[(field.number, FieldContent::Bytes(bytes))]);
                let path = format!("/spur.v1.{}/{}", call.service, call.name);
                let answer = caller.call(&path, body, call.streams_requests).await;
                if let Some(fault) = fault(&answer, named.is_some() && !call.streams_requests) {
                    wrong.push(format!("{}.{} {what}: {fault}", call.name, field.name));
                }
            }
        }
    }
    (n_sent, wrong)
}

fn fault(answer: &Result<Vec<u8>, Status>, must_be_refused: bool) -> Option<String> {
    match answer {
        Ok(_) => must_be_refused.then(|| "it was taken".to_owned()),
        Err(status) => {
            let is_fault = matches!(
                status.code(),
                Code::Internal | Code::Unknown | Code::DeadlineExceeded | Code::Unavailable | Code::DataLoss
            );
            is_fault.then(|| format!("{:?} {}", status.code(), status.message()))
        }
    }
}

fn check(wrong: &[String], head: &Cluster) {
    let some = &wrong[..wrong.len().min(20)];
    assert!(wrong.is_empty(), "{} answers, such as\n{}\n{}", wrong.len(), some.join("\n"), head.logs());
}

#[test]
fn deep_values_in_every_call_are_refused() {
    let head = Cluster::up("--nodes 1");
    let pid = head.controller_pid();
    let socket = head.dir.join("run/controller.sock");
    let (n_sent, wrong) = on_own_thread(walk(Entrance::Local { socket, uid: 0, gid: 0 }, &["Controller", "Member"]));
    assert!(is_alive(pid) && head.controller_pid() == pid, "the controller has ended\n{}", head.logs());
    check(&wrong, &head);
    assert!(n_sent > 500, "{n_sent} requests are no walk");
    head.ok("scontrol ping");
}

#[test]
fn deep_values_are_refused_by_agents() {
    let head = Cluster::up("--nodes 1");
    let job = head.sbatch("-o /dev/null --wrap 'sleep 600'");
    head.wait_state(&job, "RUNNING");
    let pid = head.agent_pid("n1");
    let socket = head.dir.join("run/agent-n1.sock");
    let (n_sent, wrong) = on_own_thread(walk(Entrance::Local { socket, uid: 0, gid: 0 }, &["Agent"]));
    assert!(is_alive(pid), "the agent has ended\n{}", head.logs());
    check(&wrong, &head);
    assert!(n_sent > 30, "{n_sent} requests are no walk");
    assert_eq!(head.ok(&format!("squeue -h -j {job} -o %T")), "RUNNING");
    head.ok(&format!("srun --overlap --jobid {job} true"));
}

/// What is taken at the door must be readable in the log and in a snapshot, where it is kept inside something else.
#[test]
fn deepest_value_that_is_taken_is_read_again_after_restart() {
    let head = Cluster::up("--nodes 1");
    let socket = head.dir.join("run/controller.sock");
    let entrance = Entrance::Local { socket, uid: 0, gid: 0 };
    let submit = |n_deep: usize| {
        let (entrance, spec) = (entrance.clone(), spec_with_constraint(n_deep));
        on_own_thread(async move {
            let id = vec![(wire::reach::REQUEST_HEADER, format!("{n_deep:032x}"))];
            let caller = RawCaller::open(&entrance, &id).await;
            caller.call("/spur.v1.Controller/Submit", written(&[(1, FieldContent::Bytes(spec))]), false).await
        })
    };
    // The deepest that is understood at all is taken or refused by the state; either way it is in the log.
    let is_unreadable = |answer: &Result<Vec<u8>, Status>| {
        answer.as_ref().is_err_and(|status| status.message().contains("nested too deep"))
    };
    let deepest = (1..1000).rev().find(|n_deep| !is_unreadable(&submit(*n_deep))).unwrap();
    assert!((250..900).contains(&deepest), "{deepest}");
    // The deepest that our own parser makes.
    let nested = |n_deep: usize| format!("{}a{}", "(a|b&".repeat(n_deep), ")".repeat(n_deep));
    head.ok("scontrol update nodename=n1 availablefeatures=a,b");
    let job = head.sbatch(&format!("-H -C '{}' -o /dev/null --wrap true", nested(60)));
    let shown = head.ok(&format!("squeue -h -j {job} -o '%i %f'"));
    let pid = head.controller_pid();
    kill_9(pid);
    head.start("");
    assert_eq!(head.ok(&format!("squeue -h -j {job} -o '%i %f'")), shown);
    // And from a snapshot.
    head.ok(&format!("spur down --dir {}", head.dir.display()));
    head.start("");
    assert_eq!(head.ok(&format!("squeue -h -j {job} -o '%i %f'")), shown);
}
