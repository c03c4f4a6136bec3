//! Acting as somebody else: operators who would be root, nodes that speak for users, claimed groups, forged origins.
use std::path::Path;
use std::time::Duration;

use model::agent::{Order, Report};
use model::ask::{FileEnd, Piece, Question};
use model::command::{Blob, DutyResult, Exited};
use model::request::JobFilter;
use model::update::JobChanges;
use model::{Command, ExitStatus, JobId, JobKind, JobSpec, StepId, StepSpec, codec};
use tonic::{Code, Status};
use wire::origin::{CERTIFICATE_HEADER, HEADER};

use super::callers::{Entrance, RawCaller, on_own_thread};
use super::contract::{FieldContent, written};
use crate::cluster::{Cluster, is_root, new_dir};
use crate::machines::{Machine, free_port, join, token};

/// Users that every Linux has.
const USER: u32 = 1;
const OTHER: u32 = 2;
const OPERATOR: u32 = 3;
const ADMINISTRATOR: u32 = 5;
/// A group that none of them is in.
const SHADOW: u32 = 42;

fn as_user(uid: u32, line: &str) -> String {
    format!("setpriv --reuid={uid} --regid={uid} --clear-groups bash -c '{}'", line.replace('\'', "'\\''"))
}

fn command(command: &Command) -> Vec<u8> {
    written(&[(1, FieldContent::Bytes(codec::encode(command)))])
}

fn submission(spec: &JobSpec, script: &Blob) -> Vec<u8> {
    written(&[(1, FieldContent::Bytes(codec::encode(spec))), (2, FieldContent::Bytes(codec::encode(script)))])
}

fn script() -> Blob {
    Blob::of(b"#!/bin/sh\nid\n".to_vec())
}

/// A held job in the name of another.
fn job_of(uid: u32, gid: u32, name: &str) -> JobSpec {
    let kind = JobKind::Batch { script: script().id };
    JobSpec { uid, gid, kind, name: name.into(), work_dir: "/".into(), held: true, ..JobSpec::default() }
}

fn ask(entrance: &Entrance, headers: &[(&'static str, String)], call: &str, body: Vec<u8>) -> Result<Vec<u8>, Status> {
    let (entrance, headers) = (entrance.clone(), headers.to_vec());
    let service = if ["Attach", "Ask", "Mirror"].contains(&call) { "Agent" } else { "Controller" };
    let (path, streams) = (format!("/spur.v1.{service}/{call}"), ["Attach", "Attend", "Mirror"].contains(&call));
    on_own_thread(async move { RawCaller::open(&entrance, &headers).await.call(&path, body, streams).await })
}

fn local(head: &Cluster, uid: u32) -> Entrance {
    Entrance::Local { socket: head.dir.join("run/controller.sock"), uid, gid: uid }
}

fn origin(words: &str) -> Vec<(&'static str, String)> {
    vec![(HEADER, words.to_owned())]
}

fn denied(answer: Result<Vec<u8>, Status>, what: &str) {
    let status = answer.expect_err(what);
    assert!(matches!(status.code(), Code::PermissionDenied | Code::Unauthenticated), "{what}: {status:?}");
}

fn accounts(head: &Cluster) {
    head.ok("sacctmgr -i add account chem");
    for name in ["root", "daemon", "bin", "sys", "games"] {
        head.run(&format!("sacctmgr -i add user {name} account=chem"));
    }
    head.ok("sacctmgr -i modify user sys set adminlevel=operator");
    head.ok("sacctmgr -i modify user games set adminlevel=administrator");
}

/// A controller's machine and two nodes of their own.
struct JoinedSite {
    head: Cluster,
    nodes: [Machine; 2],
    address: String,
    agents: [String; 2],
}

impl JoinedSite {
    fn new() -> JoinedSite {
        let head = Cluster { dir: new_dir() };
        let address = format!("127.0.0.1:{}", free_port());
        head.ok(&format!("spur init --dir {} --listen {address}", head.dir.display()));
        let agents = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
        let node = |name: &str, listen: &str| {
            join(&token(&head, ""), &format!("--node {name} --cpus 8 --memory 1G --listen {listen}"))
        };
        let nodes = [node("a1", &agents[0]), node("a2", &agents[1])];
        JoinedSite { head, nodes, address, agents }
    }

    /// Whoever has the certificate of this node.
    fn root_of(&self, node: usize) -> Entrance {
        Entrance::Certificate { address: self.address.clone(), tls_dir: self.nodes[node].0.dir.join("tls") }
    }

    /// From one node to the other's agent.
    fn to_agent(&self, from: usize, to: usize) -> Entrance {
        Entrance::Agent {
            address: self.agents[to].clone(),
            tls_dir: self.nodes[from].0.dir.join("tls"),
            node: ["a1", "a2"][to].into(),
        }
    }

    fn running(&self, uid: u32, node: &str) -> String {
        let job = self.head.ok(&as_user(
            uid,
            &format!("sbatch --parsable -n1 -w {node} -D / -o /dev/null -t 10 --wrap \"sleep 300\""),
        ));
        self.head.wait_state(&job, "RUNNING");
        job
    }

    fn owner_of(&self, name: &str) -> String {
        self.head.ok(&format!("squeue -h -n {name} -o '%u %g'"))
    }
}

#[test]
fn operator_acts_for_nobody_else() {
    if !is_root() {
        return eprintln!("skipped: needs root");
    }
    let head = Cluster::up("--nodes 1 --cpus 8");
    accounts(&head);
    let of_root = head.sbatch("-D / -o /dev/null --wrap 'sleep 300'");
    head.wait_state(&of_root, "RUNNING");
    let waiting = head.sbatch("-H -D / -o /dev/null --wrap true");
    let (running, held) = (JobId(of_root.parse().unwrap()), JobId(waiting.parse().unwrap()));
    for (uid, is_trusted) in [(OPERATOR, false), (USER, false), (ADMINISTRATOR, true)] {
        let name = format!("by{uid}");
        let _ = ask(&local(&head, uid), &[], "Submit", submission(&job_of(0, 0, &name), &script()));
        let owner = head.ok(&format!("squeue -h -n {name} -o %U"));
        assert_eq!(
            owner,
            if is_trusted { "0".to_owned() } else { uid.to_string() },
            "a submission in root's name by {uid}"
        );
        // A step runs as the job's owner.
        let program =
            StepSpec { arguments: vec!["id".into()], n_tasks: Some(1), overlaps: true, ..StepSpec::default() };
        let step = Command::CreateStep { job: running, spec: Box::new(program.clone()), blobs: Vec::new() };
        let parts = Command::CreateStepTogether { parts: vec![(running, program)], blobs: Vec::new() };
        for step in [step, parts] {
            let answer = ask(&local(&head, uid), &[], "CreateStep", command(&step));
            if !is_trusted {
                denied(answer, &format!("a step in root's job by {uid}"));
            }
        }
        // And writes its files as the owner.
        let changes = [
            JobChanges { stdout: Some("/etc/spur-was-here".into()), ..JobChanges::default() },
            JobChanges { work_dir: Some("/root".into()), ..JobChanges::default() },
            JobChanges { name: Some("../x".into()), ..JobChanges::default() },
            JobChanges { name: Some("..".into()), ..JobChanges::default() },
        ];
        for changes in changes {
            let update = Command::UpdateJob { job: held.into(), changes: Box::new(changes) };
            let answer = ask(&local(&head, uid), &[], "UpdateJob", command(&update));
            if !is_trusted {
                denied(answer, &format!("files of root's job by {uid}"));
            }
        }
        // Whoever is an agent is told scripts, and what became of jobs is its word.
        let hello = Report::Hello { node: "n1".into(), machine: Box::default(), runs: Vec::new() };
        let hello = written(&[(1, FieldContent::Bytes(codec::encode(&hello)))]);
        denied(ask(&local(&head, uid), &[], "Attend", hello), &format!("an agent that runs as {uid}"));
    }
    // What an operator is for goes on.
    head.ok(&as_user(OPERATOR, &format!("scontrol update jobid={waiting} timelimit=5 && scancel {of_root}")));
}

#[test]
fn administrator_picks_groups_that_the_user_is_in() {
    if !is_root() {
        return eprintln!("skipped: needs root");
    }
    let head = Cluster::up("--nodes 1 --cpus 8");
    accounts(&head);
    let submit = |uid, spec: &JobSpec| {
        let _ = ask(&local(&head, uid), &[], "Submit", submission(spec, &script()));
        head.ok(&format!("squeue -h -n {} -o '%U %G'", spec.name))
    };
    assert_eq!(submit(ADMINISTRATOR, &job_of(USER, SHADOW, "shadow")), "1 1");
    assert_eq!(submit(ADMINISTRATOR, &job_of(ADMINISTRATOR, SHADOW, "own")), "5 60");
    // Root may be in any group, and give it away.
    assert_eq!(submit(0, &job_of(USER, SHADOW, "root")), "1 42");
}

#[test]
fn groups_of_a_change_are_not_the_callers_to_say() {
    if !is_root() {
        return eprintln!("skipped: needs root");
    }
    let head = Cluster::configured(
        "[[nodes]]\nnames = \"n1\"\ncpus = 4\n[[partitions]]\nname = \"open\"\nnodes = \"ALL\"\ndefault = true\n\
         [[partitions]]\nname = \"closed\"\nnodes = \"ALL\"\nallow_groups = [\"shadow\"]\n\
         [[partitions]]\nname = \"own\"\nnodes = \"ALL\"\nallow_groups = [\"daemon\"]\n",
    );
    let job = head.ok(&as_user(USER, "sbatch --parsable -H -D / -o /dev/null -p open --wrap true"));
    let id = JobId(job.parse().unwrap());
    let move_to = |partition: &str| {
        let changes = JobChanges {
            groups: Some(vec!["shadow".into()]),
            partitions: Some(vec![partition.into()]),
            ..JobChanges::default()
        };
        let update = Command::UpdateJob { job: id.into(), changes: Box::new(changes) };
        let _ = ask(&local(&head, USER), &[], "UpdateJob", command(&update));
        head.ok(&format!("squeue -h -j {job} -o %P"))
    };
    assert_eq!(move_to("closed"), "open");
    assert_eq!(move_to("own"), "own", "what the user database says counts");
}

#[test]
fn node_speaks_only_for_users_with_jobs_there() {
    if !is_root() {
        return eprintln!("skipped: needs root");
    }
    let site = JoinedSite::new();
    let head = &site.head;
    accounts(head);
    let mine = site.running(USER, "a1");
    let filter = written(&[(1, FieldContent::Bytes(codec::encode(&JobFilter::default())))]);
    let submit = |node: usize, words: &str, name: &str| {
        let body = submission(&job_of(0, SHADOW, name), &script());
        ask(&site.root_of(node), &origin(words), "Submit", body)
    };
    // Its group is what the user database says.
    submit(0, "local 1 42", "vouched").expect("a user with a job there");
    assert_eq!(site.owner_of("vouched"), "daemon daemon");
    // Commands in a job work as anywhere.
    let inner = head.ok(&as_user(
        USER,
        "sbatch --parsable -n1 -w a1 -D / -o /dev/null --wrap \"sbatch -H -D / -J inner --wrap true\"",
    ));
    head.wait_state(&inner, "COMPLETED");
    assert_eq!(site.owner_of("inner"), "daemon daemon");
    // Nobody else, and nobody mighty, not even with a job there.
    let (of_operator, of_administrator) = (site.running(OPERATOR, "a1"), site.running(ADMINISTRATOR, "a1"));
    let of_root = head.sbatch("-n1 -w a1 -D / -o /dev/null -t 10 --wrap 'sleep 300'");
    head.wait_state(&of_root, "RUNNING");
    let forged = [
        (0, "local 2 2"),
        (1, "local 1 1"),
        (0, "local 0 0"),
        (0, "local 3 3"),
        (0, "local 5 60"),
        (0, "local 65534 65534"),
        (0, "local 54321 54321"),
        (1, "node:a1 1 1"),
        (1, "controller:1"),
        (1, "controller:1 1 1"),
        (1, "bearer 1 1"),
        (1, "stranger 1 1"),
    ];
    for (node, words) in forged {
        denied(submit(node, words, "forged"), words);
        denied(ask(&site.root_of(node), &origin(words), "Cancel", cancel(&mine)), words);
        for call in ["Backup", "UserToken", "MakeToken", "RemoveNode", "ChangeTokens", "Audit", "Shutdown"] {
            denied(ask(&site.root_of(node), &origin(words), call, Vec::new()), &format!("{call} by {words}"));
        }
    }
    assert_eq!(site.owner_of("forged"), "");
    // Questions that anybody may ask are answered.
    for words in ["local 0 0", "local 2 2", "local 5 60"] {
        ask(&site.root_of(0), &origin(words), "Jobs", filter.clone()).expect("a question");
    }
    // What a token's owner may, its thief may from anywhere: nodes get none.
    denied(ask(&site.root_of(0), &origin("local 1 1"), "UserToken", Vec::new()), "a token through a node");
    // As is said at home, so it is at other agents.
    let runs = |from: usize, words: &str| {
        let question = written(&[(1, FieldContent::Bytes(codec::encode(&Question::Runs { job: None })))]);
        ask(&site.to_agent(from, 1 - from), &origin(words), "Ask", question)
    };
    runs(0, "local 1 1").expect("a user with a job there");
    for (from, words) in [(1, "local 1 1"), (0, "local 2 2"), (0, "local 0 0"), (0, "local 3 3"), (0, "local 54321 1")]
    {
        denied(runs(from, words), &format!("{words} to the other agent"));
    }
    // A file that a node brings is in no group that its user is not in.
    let target = head.dir.join("work");
    std::fs::create_dir_all(&target).unwrap();
    head.ok(&format!("chmod 777 {}", target.display()));
    let file = target.join("planted");
    let last = Some(FileEnd { mode: 0o2755, ..FileEnd::default() });
    let piece = Piece { path: file.display().to_string(), last, ..Piece::default() };
    let write = written(&[(1, FieldContent::Bytes(codec::encode(&Question::Write(piece))))]);
    ask(&site.to_agent(0, 1), &origin("local 1 42"), "Ask", write).expect("a user with a job there");
    let group = std::os::unix::fs::MetadataExt::gid(&std::fs::metadata(&file).unwrap());
    assert_eq!(group, USER, "the group is the user's own");
    for job in [of_operator, of_administrator, of_root, mine] {
        head.ok(&format!("scancel {job}"));
    }
    head.wait_for("squeue -h -t running,completing -o %i", "");
    denied(submit(0, "local 1 1", "late"), "a user whose jobs have left");
}

#[test]
fn coordinator_is_a_plain_user_through_nodes() {
    if !is_root() {
        return eprintln!("skipped: needs root");
    }
    let site = JoinedSite::new();
    let head = &site.head;
    accounts(head);
    head.ok("sacctmgr -i add coordinator account=chem names=daemon");
    let (own, others) = (site.running(USER, "a1"), site.running(OTHER, "a2"));
    // Root of the node where the coordinator's job runs says that the coordinator cancels and holds.
    let _ = ask(&site.root_of(0), &origin("local 1 1"), "Cancel", cancel(&others));
    let of_others = JobId(others.parse().unwrap());
    let requeue = Command::Requeue { jobs: vec![of_others.into()], hold: true };
    let _ = ask(&site.root_of(0), &origin("local 1 1"), "Requeue", command(&requeue));
    assert_eq!(head.ok(&format!("squeue -h -j {others} -o '%T %r'")), "RUNNING None");
    // Where the coordinator's own word counts, so do the rights; numbers that no job has are told, and nothing else happens to them.
    let said = head.run(&as_user(USER, &format!("scancel -v {others} 4000")));
    assert!(said.err.contains("4000"), "{said:?}");
    head.wait_for(&format!("squeue -h -t running -j {others} -o %i 2>&1 | grep -c ^{others}$"), "0");
    ask(&site.root_of(0), &origin("local 1 1"), "Cancel", cancel(&own)).expect("one's own");
    head.wait_for("squeue -h -o %i", "");
}

#[test]
fn compute_token_makes_no_login_node() {
    let head = Cluster { dir: new_dir() };
    let address = format!("127.0.0.1:{}", free_port());
    head.ok(&format!("spur init --dir {} --listen {address}", head.dir.display()));
    head.ok(&format!(
        "sed -i 's/^root_squash = true/root_squash = true\\nlogin_nodes = \"front\"/' {}/spur.conf",
        head.dir.display()
    ));
    head.ok("scontrol reconfigure");
    let (compute, login) = (token(&head, ""), token(&head, "--login"));
    let other = Cluster { dir: new_dir() };
    let join_as = |token: &str| {
        other.run(&format!("spur join {token} --dir {} --node front --cpus 1 --memory 1G", other.dir.display()))
    };
    let refused = join_as(&compute);
    assert!(refused.code != 0 && refused.err.contains("spur token --login"), "{refused:?}");
    let joined = join_as(&login);
    assert_eq!(joined.code, 0, "{joined:?}");
}

fn cancel(job: &str) -> Vec<u8> {
    command(&Command::Cancel { jobs: vec![JobId(job.parse().unwrap()).into()], hurry: false })
}

#[test]
fn login_node_speaks_for_all_but_the_mighty() {
    if !is_root() {
        return eprintln!("skipped: needs root");
    }
    let site = JoinedSite::new();
    let head = &site.head;
    accounts(head);
    let login = join(&token(head, "--login"), "--node login --cpus 2 --memory 1G");
    assert_eq!(head.ok("sinfo -h -N -o %N | sort -u | paste -sd,"), "a1,a2", "where users log in no jobs run");
    login.0.ok(&as_user(OTHER, "sbatch --parsable -H -D / -J there --wrap true"));
    assert_eq!(site.owner_of("there"), "bin bin");
    for uid in [0, OPERATOR, ADMINISTRATOR] {
        let refused = login.0.run(&as_user(uid, "sbatch -H -D / -J mighty --wrap true"));
        assert!(refused.code != 0 && refused.err.contains("does not vouch"), "{uid}: {refused:?}");
        login.0.ok(&as_user(uid, "squeue"));
    }
    let refused = login.0.run(&as_user(OTHER, "scontrol token"));
    assert_ne!(refused.code, 0, "no tokens through nodes: {refused:?}");
    // A node of the file, or any other, becomes one by its name; and a site may trust the root of its login nodes.
    let refused = site.nodes[0].0.run(&as_user(OTHER, "sbatch -H -D / --wrap true"));
    assert_ne!(refused.code, 0, "{refused:?}");
    let conf = head.dir.join("spur.conf");
    head.ok(&format!("sed -i 's/^root_squash = true/root_squash = false\\nlogin_nodes = \"a1\"/' {}", conf.display()));
    head.ok("scontrol reconfigure");
    site.nodes[0].0.ok(&as_user(OTHER, "sbatch --parsable -H -D / -J here --wrap true"));
    assert_eq!(site.owner_of("here"), "bin bin");
    site.nodes[0].0.ok("sbatch --parsable -H -D / -J roots --wrap true");
    assert_eq!(site.owner_of("roots"), "root root");
    let refused = site.nodes[1].0.run("sbatch -H -D / --wrap true");
    assert_ne!(refused.code, 0, "root of a node without logins: {refused:?}");
    // Root of a node that may speak for root is an agent of its own node only.
    let hello = Report::Hello { node: "a2".into(), machine: Box::default(), runs: Vec::new() };
    let hello = written(&[(1, FieldContent::Bytes(codec::encode(&hello)))]);
    denied(ask(&site.root_of(0), &origin("local 0 0"), "Attend", hello), "another node's agent");
}

#[test]
fn node_answers_for_itself_and_its_own_runs() {
    let site = JoinedSite::new();
    let head = &site.head;
    let (line, stays) = ("-n1 -w a1 -D / -o /dev/null -t 10 --wrap 'sleep 300'", "RUNNING");
    let job = head.sbatch(line);
    head.wait_state(&job, stays);
    let hello = |node: &str| Report::Hello { node: node.into(), machine: Box::default(), runs: Vec::new() };
    let exited = Exited {
        job: JobId(job.parse().unwrap()),
        attempt: 1,
        step: StepId::Batch,
        node: "a1".into(),
        exit: ExitStatus::exited(0),
        ..Exited::default()
    };
    let lies = (0..200).map(|number| Report::Answer { number, result: DutyResult::Done });
    let lies: Vec<Report> = std::iter::once(Report::Exited { sequence: 1, exited }).chain(lies).collect();
    let tls = site.nodes[1].0.dir.join("tls");
    let refused = attend(&site.address, &tls, vec![hello("a1")]).unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "another node's name: {refused:?}");
    let first = attend(&site.address, &tls, std::iter::once(hello("a2")).chain(lies).collect()).unwrap();
    assert_eq!(first.first(), Some(&Order::Welcome));
    assert!(first.iter().any(|order| matches!(order, Order::Acknowledge { .. })), "the lie was heard: {first:?}");
    assert_eq!(head.ok(&format!("squeue -h -t all -j {job} -o %T")), stays);
    head.ok(&format!("scancel {job}"));
}

/// The orders that an agent is given after these reports, until they stop coming.
fn attend(address: &str, tls_dir: &Path, reports: Vec<Report>) -> Result<Vec<Order>, Status> {
    use tokio_stream::StreamExt;
    let (address, tls_dir) = (address.to_owned(), tls_dir.to_owned());
    on_own_thread(async move {
        let keyring = std::sync::Arc::new(wire::tls::identity::Keyring::open(&tls_dir).unwrap());
        let expected = wire::tls::connect::Expected::AnyController;
        let channel = wire::tls::connect::connect(&address, keyring, expected).await.unwrap();
        let reports =
            reports.into_iter().map(|report| wire::proto::FromAgent { report: codec::encode(&report).into() });
        let reports = tokio_stream::iter(reports.collect::<Vec<_>>()).chain(tokio_stream::pending());
        let mut client = wire::proto::controller_client::ControllerClient::new(channel);
        let mut orders = client.attend(reports).await?.into_inner();
        let mut given = Vec::new();
        while let Ok(order) = tokio::time::timeout(Duration::from_secs(3), orders.message()).await {
            let Some(order) = order? else { break };
            given.push(codec::decode(&order.order).unwrap());
            if matches!(given.last(), Some(Order::Acknowledge { .. })) {
                break;
            }
        }
        Ok(given)
    })
}

#[test]
fn forged_origins_are_nobodys_word() {
    let site = JoinedSite::new();
    let authority = super::callers::authority_of(&site.head.dir.join("state/tls"));
    let stranger = Entrance::Stranger { address: site.address.clone(), authority };
    let mut callers = vec![("a stranger", stranger), ("a node", site.root_of(0))];
    if is_root() {
        callers.push(("a user", local(&site.head, USER)));
    }
    let fingerprint = wire::tls::identity::Identity::load(&site.head.dir.join("state/tls")).unwrap().fingerprint;
    for (name, entrance) in callers {
        for words in ["controller:1", "controller:1 0 0", "local 0 0", "bearer 0 0", "node:a2", "node:a2 0 0", "local"]
        {
            let mut headers = origin(words);
            headers.push((CERTIFICATE_HEADER, fingerprint.clone()));
            for call in ["Backup", "MakeToken", "ChangeMembers", "RemoveNode"] {
                let what = format!("{call} by {name} as {words}");
                // What a node asks for itself is no user's call.
                denied(ask(&entrance, &headers, call, Vec::new()), &what);
            }
            let answer = ask(&entrance, &headers, "Submit", submission(&job_of(0, 0, "forged"), &script()));
            if name != "a user" {
                denied(answer, &format!("Submit by {name} as {words}"));
            }
        }
    }
    let owners = site.head.ok("squeue -h -n forged -o %u | sort -u");
    assert!(["", "daemon"].contains(&owners.as_str()), "{owners}");
}

#[test]
fn user_tokens_are_listed_revoked_and_signed_by_new_keys() {
    let head = Cluster { dir: new_dir() };
    head.ok(&format!("spur init --dir {} --listen 127.0.0.1:{}", head.dir.display(), free_port()));
    let conf = head.dir.join("client.conf");
    head.ok(&format!("spur client --dir {0} > {1}", head.dir.display(), conf.display()));
    let user = if is_root() { "daemon".to_owned() } else { head.ok("id -un") };
    let make = |more: &str| {
        let said = head.ok(&format!("scontrol token username={user} {more}"));
        said.strip_prefix("SLURM_JWT=").unwrap().to_owned()
    };
    let with = |token: &str| head.run(&format!("SPUR_CONF={} SLURM_JWT={token} timeout 60 squeue", conf.display()));
    let (dir, first) = (head.dir.display(), make("lifespan=600"));
    assert_eq!(with(&first).code, 0);
    let listed = head.ok(&format!("spur token list --dir {dir}"));
    assert!(listed.lines().any(|line| line.starts_with(&user)), "{listed}");
    head.ok(&format!("spur token revoke {user} --dir {dir}"));
    let refused = with(&first);
    assert!(refused.code != 0 && refused.err.contains("revoked"), "{refused:?}");
    let second = make("lifespan=600");
    assert_eq!(with(&second).code, 0, "those that follow are believed, in the same second, too");
    // Another key: what the old one signed is believed until it ends, or until it is to be no more.
    head.ok(&format!("spur token rotate --dir {dir}"));
    let third = make("lifespan=600");
    assert_eq!((with(&second).code, with(&third).code), (0, 0));
    assert_ne!(with(&first).code, 0, "what was revoked stays so");
    head.ok(&format!("spur token rotate --now --dir {dir}"));
    for token in [&second, &third] {
        let refused = with(token);
        assert!(refused.code != 0 && refused.err.contains("not signed"), "{refused:?}");
    }
    assert_eq!(with(&make("lifespan=600")).code, 0);
    if is_root() {
        for line in ["spur token list", "spur token rotate", "spur token revoke daemon"] {
            let said = head.run(&as_user(OTHER, line));
            assert!(line.ends_with("list") || said.code != 0, "{line}: {said:?}");
            assert!(!said.out.contains("daemon"), "others' tokens are not shown: {said:?}");
        }
        // A token that names its user by number is the same user's.
        let by_number = head.ok("scontrol token username=1 lifespan=600");
        head.ok(&as_user(USER, "spur token revoke daemon"));
        assert_ne!(with(by_number.strip_prefix("SLURM_JWT=").unwrap()).code, 0);
    }
}
