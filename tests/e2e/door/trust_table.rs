//! The table in SECURITY.md, tried cell by cell against a running cluster.
use model::accounts::Change;
use model::ask::{Answer, Piece, Question};
use model::attach::ToStep;
use model::command::Blob;
use model::history::HistoryQuery;
use model::partition_field::NodesChange;
use model::request::JobFilter;
use model::reservation::Members;
use model::reservation_field::{Field, MembersChange};
use model::time::Span;
use model::trigger::{Trigger, TriggerKind};
use model::update::{NodeChange, PartitionChanges};
use model::{Command, JobId, JobKind, JobSpec, StepId, Timestamp, codec};
use tonic::{Code, Status};

use super::callers::{Entrance, RawCaller, authority_of, on_own_thread};
use super::contract::{FieldContent, written};
use super::processes::{BegunShell, begin};
use super::unread_steps::newest_run;
use crate::cluster::{Cluster, is_root, new_dir};
use crate::machines::{Machine, free_port, join, token};

const TABLE: &str = include_str!("../../../SECURITY.md");
/// Whose the jobs are that others are after, in account `a`. A step of hers runs on n2.
const VICTIM: (&str, u32) = ("daemon", 1);
/// A job of theirs runs on n1, the compute node of the table.
const WORKER: (&str, u32) = ("bin", 2);
const OPERATOR: (&str, u32) = ("sys", 3);
const ADMINISTRATOR: (&str, u32) = ("games", 5);
const COORDINATOR: (&str, u32) = ("man", 6);
/// Of account `b`.
const OTHER_COORDINATOR: (&str, u32) = ("mail", 8);
const USER: (&str, u32) = ("nobody", 65_534);
/// What a login node may say for users it may not say for these.
const MIGHTY: &str = "for somebody mighty";
/// One of the administrators.
const ROOT: &str = "who is root";
/// Root of n1, about n1.
const ABOUT_ITSELF: &str = "for its root, about itself";
/// The name of the victim's jobs, which nothing else is called.
const JOB_NAME: &str = "victims-own";
const SUBMIT: &str = "submit jobs";
const DRAIN: &str = "take nodes out of service";
const CANCEL: &str = "cancel jobs of others";
const SEE_QUEUE: &str = "see jobs of others in the queue (`private_data`)";
const SEE_HISTORY: &str = "see jobs of others in history (`private_data`)";
const ADD_USER: &str = "give a user a place in an account";
const RESERVE: &str = "make a reservation";
const PLAY_FOR_OTHERS: &str = "submit for another user";

/// What is there to be attacked.
#[derive(Clone)]
struct TrialGround {
    /// Of the victim: a held job, and the run of a step on n2.
    held_job: u32,
    run: (JobId, u32),
    /// A directory that only the victim may write to.
    directory: String,
}

/// A row: what is tried, the call, and a request that touches what is the victim's.
type Probe = (&'static str, &'static str, fn(&TrialGround, &TrustActor) -> Vec<u8>);

const PROBES: &[Probe] = &[
    ("ask about jobs, nodes and partitions", "Controller/Jobs", |_, _| noun(&JobFilter::default())),
    (SUBMIT, "Controller/Submit", |_, _| submission(&held_job())),
    (CANCEL, "Controller/Cancel", |ground, _| {
        noun(&Command::Cancel { jobs: vec![JobId(ground.held_job).into()], hurry: false })
    }),
    (PLAY_FOR_OTHERS, "Controller/Submit", |_, _| {
        submission(&JobSpec { uid: VICTIM.1, gid: VICTIM.1, user: VICTIM.0.into(), ..held_job() })
    }),
    ("read the script of another's job", "Controller/Blob", |ground, _| {
        written(&[(2, FieldContent::Number(ground.held_job.into()))])
    }),
    (SEE_QUEUE, "Controller/Jobs", |_, _| noun(&JobFilter::default())),
    (SEE_HISTORY, "Controller/History", |_, _| {
        noun(&HistoryQuery { accounts: vec!["a".into()], ..HistoryQuery::default() })
    }),
    ("watch a step of another (`sattach`)", "Agent/Attach", |ground, _| {
        let (job, attempt) = ground.run;
        noun(&ToStep::Observe { job, attempt, step: StepId::Number(0) })
    }),
    ("write where only another may (`sbcast`)", "Agent/Ask", |ground, _| {
        let (path, data) = (format!("{}/theirs", ground.directory), b"x".to_vec());
        noun(&Question::Write(Piece { path, data, replaces: true, ..Piece::default() }))
    }),
    (ADD_USER, "Controller/ChangeAccounts", |_, _| {
        let (names, accounts) = (vec!["lp".into()], vec!["a".into()]);
        let change = Change::AddUsers { names, accounts, partitions: vec![], edits: vec![], clusters: vec![] };
        noun(&change)
    }),
    (RESERVE, "Controller/CreateReservation", |_, _| {
        let fields = vec![
            Field::Start(Timestamp::from_secs(4_000_000_000)),
            Field::Duration(Some(Span::from_secs(600))),
            Field::Nodes(NodesChange::To(vec!["n2".into()])),
            Field::Users(MembersChange::To(Members { names: vec!["root".into()], are_excluded: false })),
        ];
        noun(&Command::CreateReservation { name: "trust".into(), fields, utc_offset_secs: 0 })
    }),
    ("set a trigger", "Controller/SetTrigger", |_, _| {
        let (kinds, program) = (vec![TriggerKind::ALL[0]], "/bin/true".into());
        noun(&Command::SetTrigger { trigger: Box::new(Trigger { kinds, program, ..Trigger::default() }) })
    }),
    (DRAIN, "Controller/UpdateNodes", |_, actor| {
        let node = if actor.what == ABOUT_ITSELF { "n1" } else { "n2" };
        let change = NodeChange::Drain { reason: "by the trust table".into() };
        noun(&Command::UpdateNodes { nodes: vec![node.into()], change })
    }),
    ("change partitions", "Controller/UpdatePartition", |_, _| {
        noun(&Command::UpdatePartition { name: "main".into(), changes: Box::new(PartitionChanges::default()) })
    }),
    ("read the configuration anew", "Controller/Reconfigure", |_, _| Vec::new()),
    ("make a token for themselves", "Controller/UserToken", |_, _| Vec::new()),
    ("make a token for another user", "Controller/UserToken", |_, _| {
        written(&[(1, FieldContent::Bytes(VICTIM.0.into()))])
    }),
    ("let a machine join", "Controller/MakeToken", |_, _| noun(&model::trust::Role::Node)),
    ("remove a node", "Controller/RemoveNode", |_, _| noun(&model::NodeName::from("gone"))),
    ("read the audit", "Controller/Audit", |_, _| noun(&model::audit::AuditQuery::default())),
    ("copy the whole state, with its keys", "Controller/Backup", |_, _| Vec::new()),
    ("speak as a controller", "Member/Alive", |_, _| Vec::new()),
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
    /// The rows in which what is touched is their own.
    owns: &'static [&'static str],
}

fn actors(head: &Cluster, compute: &Machine, login: &Machine, address: &str) -> Vec<TrustActor> {
    let socket = head.dir.join("run/controller.sock");
    let local = |(_, uid): (&str, u32)| Entrance::Local { socket: socket.clone(), uid, gid: uid };
    let by = |tls_dir| Entrance::Certificate { address: address.to_owned(), tls_dir };
    let of = |machine: &Machine| by(machine.0.dir.join("tls"));
    let says = |words: String| vec![(wire::origin::HEADER, words)];
    let vouches = |(_, uid): (&str, u32)| says(format!("local {uid} {uid}"));
    let actor = |column, what, entrance, headers| TrustActor { column, what, entrance, headers, owns: &[] };
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
        TrustActor { owns: &[DRAIN], ..actor("compute node", ABOUT_ITSELF, of(compute), vouches(("root", 0))) },
        TrustActor {
            owns: &[SUBMIT],
            ..actor("compute node", "for a user with a job there", of(compute), vouches(WORKER))
        },
        actor("login node", "for a user", of(login), vouches(USER)),
        actor("user", "by the kernel's word", local(USER), Vec::new()),
        actor("user", "who claims to be root", local(USER), says("local 0 0".into())),
        TrustActor {
            owns: &[CANCEL, SEE_QUEUE, SEE_HISTORY, ADD_USER],
            ..actor("coordinator", "of the victim's account", local(COORDINATOR), Vec::new())
        },
        actor("coordinator", "of another account", local(OTHER_COORDINATOR), Vec::new()),
        actor("operator", "by the kernel's word", local(OPERATOR), Vec::new()),
        actor("administrator", ROOT, local(("root", 0)), Vec::new()),
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

/// The bytes of an answer's first field.
fn noun_of(reply: &[u8]) -> &[u8] {
    let n_digits = reply[1..].iter().take_while(|byte| **byte >= 0x80).count() + 1;
    &reply[1 + n_digits..]
}

fn names_victim(reply: &[u8]) -> bool {
    reply.windows(JOB_NAME.len()).any(|word| word == JOB_NAME.as_bytes())
}

/// Whether the answer lets the caller through; what a value is worth is not asked.
fn is_heard(what: &str, call: &str, answer: &Result<Vec<u8>, Status>) -> bool {
    match answer {
        Err(status) => !matches!(status.code(), Code::PermissionDenied | Code::Unauthenticated),
        Ok(reply) if call == "Controller/Cancel" => {
            let reply: model::Reply = codec::decode(noun_of(reply)).expect("a reply");
            let model::Reply::Each(results) = reply else { panic!("{reply:?}") };
            results.iter().any(|one| one.result != Err(model::Reject::NotPermitted))
        }
        Ok(reply) if call == "Agent/Ask" => {
            matches!(codec::decode(noun_of(reply)).expect("an answer"), Answer::Written)
        }
        Ok(reply) if [SEE_QUEUE, SEE_HISTORY].contains(&what) => names_victim(reply),
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
    let (head, address) = network();
    let compute = join(&token(&head, ""), "--node n1 --cpus 4 --memory 1G");
    let other = join(&token(&head, ""), "--node n2 --cpus 4 --memory 1G");
    let login = join(&token(&head, "--login"), "--node l1 --cpus 4 --memory 1G");
    let (mut ground, _step) = prepare(&head, &other);
    let actors = actors(&head, &compute, &login, &address);
    let (columns, rows) = rows();
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), PROBES.iter().map(|row| row.0).collect::<Vec<_>>());
    for column in &columns {
        assert!(actors.iter().any(|actor| actor.column == *column), "nobody plays a {column}");
    }
    let mut wrong = Vec::new();
    for (probe @ (what, call, _), (_, words)) in PROBES.iter().zip(&rows) {
        for actor in &actors {
            let column = columns.iter().position(|column| *column == actor.column).expect("a column");
            if ground.held_job == 0 {
                let line = format!("sbatch --parsable -J {JOB_NAME} -H -D / -o /dev/null --wrap true");
                ground.held_job = as_local(&head, VICTIM, &line).parse().unwrap();
            }
            let answer = tried(probe, actor, &ground);
            let is_heard = match *what {
                // Who names another user without the right to gets a job of their own.
                PLAY_FOR_OTHERS => answer.is_ok() && newest_owner(&head) == VICTIM.0,
                what => is_heard(what, call, &answer),
            };
            if is_heard {
                tidy_up(&head, what, &mut ground);
            }
            let as_nobody = || {
                let names_user = actor.headers.iter().any(|(name, _)| *name == wire::origin::HEADER);
                // Heard, without seeing more than anybody may; a node that names no user is not heard.
                (is_heard == answer.is_ok())
                    && !answer.as_ref().is_ok_and(|reply| names_victim(reply))
                    && (is_heard || !names_user || actor.what.contains("claims"))
            };
            let is_question = *what == PROBES[0].0;
            let is_right = match words[column] {
                "yes" if actor.what == MIGHTY && is_question => as_nobody() && is_heard,
                "yes" if actor.what == MIGHTY => !is_heard,
                "yes" => is_heard,
                "no" => !is_heard,
                "own" => is_heard == actor.owns.contains(what),
                "root" => is_heard == (actor.what == ROOT),
                "nobody" => as_nobody(),
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

/// A controller that machines can join, where users do not see each other's jobs.
fn network() -> (Cluster, String) {
    let head = Cluster { dir: new_dir() };
    let address = format!("127.0.0.1:{}", free_port());
    head.ok(&format!("spur init --dir {} --listen {address}", head.dir.display()));
    let file = head.dir.join("spur.conf");
    let conf = std::fs::read_to_string(&file).unwrap();
    let (shown, private) = ("private_data = \"none\"", "private_data = \"jobs\"");
    assert!(conf.contains(shown), "{conf}");
    std::fs::write(&file, conf.replace(shown, private)).unwrap();
    head.ok("scontrol reconfigure");
    (head, address)
}

fn as_local(head: &Cluster, (_, uid): (&str, u32), line: &str) -> String {
    head.ok(&format!("setpriv --reuid={uid} --regid={uid} --clear-groups {line}"))
}

/// Users, accounts, and what runs.
fn prepare(head: &Cluster, other: &Machine) -> (TrialGround, BegunShell) {
    head.ok("sacctmgr -i add account a,b");
    for (name, level) in [(OPERATOR.0, "operator"), (ADMINISTRATOR.0, "admin")] {
        head.ok(&format!("sacctmgr -i add user {name} account=a adminlevel={level}"));
    }
    for name in ["root", VICTIM.0, WORKER.0, USER.0] {
        head.ok(&format!("sacctmgr -i add user {name} account=a"));
    }
    for ((name, _), account) in [(COORDINATOR, "a"), (OTHER_COORDINATOR, "b")] {
        head.ok(&format!("sacctmgr -i add user {name} account={account}"));
        head.ok(&format!("sacctmgr -i add coordinator account={account} names={name}"));
    }
    let worker = as_local(head, WORKER, "sbatch --parsable -w n1 -D / -o /dev/null --wrap 'exec sleep 3600'");
    head.wait_state(&worker, "RUNNING");
    let talks = "bash -c 'while echo still here; do sleep 0.1; done'";
    let uid = VICTIM.1;
    let step = format!("exec setpriv --reuid={uid} --regid={uid} --clear-groups srun -J {JOB_NAME} -w n2 -D / {talks}");
    let step = begin(head, &step);
    head.wait_for("squeue -hs -u daemon -o %i | grep -c 0$", "1");
    let socket = head.dir.join("run/controller.sock");
    let run = on_own_thread(async move { newest_run(&socket).await });
    let directory = other.0.dir.join("work").display().to_string();
    other.0.ok(&format!("chmod 755 {}; chmod 700 .; chown {uid} .", other.0.dir.display()));
    (TrialGround { held_job: 0, run, directory }, step)
}

fn tried((_, call, body): &Probe, actor: &TrustActor, ground: &TrialGround) -> Result<Vec<u8>, Status> {
    let (entrance, mut headers) = (actor.entrance.clone(), actor.headers.clone());
    let (path, body) = (format!("/spur.v1.{call}"), body(ground, actor));
    let is_stream = *call == "Agent/Attach";
    if call.starts_with("Agent/") {
        headers.push((wire::node::NODE_HEADER, "n2".into()));
    }
    on_own_thread(async move {
        let caller = RawCaller::open(&entrance, &headers).await;
        let answering = caller.first_answer(&path, body, is_stream);
        let answer = tokio::time::timeout(std::time::Duration::from_secs(20), answering).await;
        answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer")))
    })
}

/// The next one finds everything as it was.
fn tidy_up(head: &Cluster, what: &str, ground: &mut TrialGround) {
    match what {
        CANCEL => ground.held_job = 0,
        DRAIN => drop(head.run("scontrol update nodename=n1,n2 state=resume")),
        ADD_USER => drop(head.run("sacctmgr -i delete user lp")),
        RESERVE => drop(head.run("scontrol delete reservation=trust")),
        _ => {}
    }
}
