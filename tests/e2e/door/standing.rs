//! Certificates that the authority has signed and the state does not know, and connections of those who were removed.
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::agent::Neighbours;
use model::ask::Question;
use model::codec;
use model::request::JobFilter;
use tonic::{Code, Status};
use wire::origin::HEADER;
use wire::tls::Principal;
use wire::tls::authority::Authority;
use wire::tls::identity::NewKey;

use super::callers::{Entrance, RawCaller, on_own_thread};
use super::contract::{FieldContent, written};
use crate::cluster::{Cluster, Folder, is_root, kill_9, new_dir};
use crate::machines::{Machine, free_port, join, token};

const USER: u32 = 1;
const PATIENCE: Duration = Duration::from_secs(30);

fn head() -> (Cluster, String) {
    let head = Cluster { dir: new_dir() };
    let address = format!("127.0.0.1:{}", free_port());
    head.ok(&format!("spur init --dir {} --listen {address}", head.dir.display()));
    (head, address)
}

fn node(head: &Cluster, name: &str) -> (Machine, String) {
    let address = format!("127.0.0.1:{}", free_port());
    let options = format!("--node {name} --cpus 4 --memory 1G --listen {address}");
    (join(&token(head, ""), &options), address)
}

/// What was told to the node's agent, once controllers' certificates are in it.
fn told(node: &Machine) -> Neighbours {
    let end = Instant::now() + PATIENCE;
    loop {
        let kept = std::fs::read(node.0.dir.join("tls/neighbours")).ok();
        if let Some(told) = kept.and_then(|bytes| codec::decode::<Neighbours>(&bytes).ok())
            && !told.standing.is_empty()
        {
            return told;
        }
        assert!(Instant::now() < end, "the agent is told of no certificates");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The authority as whoever has found its key, in an old backup perhaps.
struct Forger {
    key: String,
    certificate: String,
    dir: Folder,
}

impl Forger {
    fn of(head: &Cluster) -> Forger {
        let dir = Folder::new();
        let file = dir.join("backup");
        head.ok(&format!("spur backup {} --dir {}", file.display(), head.dir.display()));
        let backup = std::fs::read(file).unwrap();
        let cluster: state::Cluster = codec::decode(&backup[40..]).unwrap();
        let trust = cluster.trust();
        Forger { key: trust.ca_key.clone(), certificate: trust.ca_certificate.clone(), dir }
    }

    fn forge(&self, who: &Principal) -> PathBuf {
        let key = NewKey::make().unwrap();
        let authority = Authority::open(&self.key).unwrap();
        let issued = authority.sign(who, &key.public(), Duration::from_secs(3600)).unwrap();
        let dir = self.dir.join(who.dns_name());
        key.keep(&dir, &self.certificate, &issued.pem, issued.from_secs, issued.until_secs).unwrap();
        dir
    }
}

fn call(entrance: &Entrance, said: &str, path: &str, body: Vec<u8>) -> Result<Vec<u8>, Status> {
    let headers = if said.is_empty() { vec![] } else { vec![(HEADER, said.to_owned())] };
    let (entrance, path) = (entrance.clone(), format!("/spur.v1.{path}"));
    on_own_thread(async move { RawCaller::open(&entrance, &headers).await.call(&path, body, false).await })
}

fn question() -> Vec<u8> {
    written(&[(1, FieldContent::Bytes(codec::encode(&Question::Runs { job: None })))])
}

#[test]
fn forged_certificates_open_neither_controllers_nor_agents() {
    let (head, address) = head();
    let ((first, _), (second, of_second)) = (node(&head, "a1"), node(&head, "a2"));
    let (_, _) = (told(&first), told(&second));
    let forger = Forger::of(&head);
    let refused = |entrance: &Entrance, said: &str, path: &str, body: Vec<u8>| {
        let status = call(entrance, said, path, body).expect_err(path);
        assert_eq!(status.code(), Code::PermissionDenied, "{path} as {said:?}: {status:?}");
    };
    for who in [Principal::Controller(1), Principal::Controller(2), Principal::Node("a1".into())] {
        let entrance = Entrance::Certificate { address: address.clone(), tls_dir: forger.forge(&who) };
        for path in ["Member/Alive", "Member/Raft", "Member/End", "Controller/Members", "Controller/Ping"] {
            refused(&entrance, "", path, Vec::new());
        }
        refused(&entrance, "local 0 0", "Controller/Backup", Vec::new());
    }
    let at_agent =
        |tls_dir: &Path| Entrance::Agent { address: of_second.clone(), tls_dir: tls_dir.to_owned(), node: "a2".into() };
    // The controller speaks for root, whoever forges its certificate does not.
    call(&at_agent(&head.dir.join("state/tls")), "local 0 0", "Agent/Ask", question()).expect("the controller's word");
    for who in [Principal::Controller(1), Principal::Controller(7)] {
        refused(&at_agent(&forger.forge(&who)), "local 0 0", "Agent/Ask", question());
    }
    if !is_root() {
        eprintln!("skipped: only root has several users");
        return;
    }
    let submit = format!("setpriv --reuid={USER} --regid={USER} --clear-groups sbatch --parsable");
    let job = head.ok(&format!("{submit} -w a1 -D / -o /dev/null --wrap 'sleep 600'"));
    head.wait_state(&job, "RUNNING");
    let said = format!("local {USER} {USER}");
    call(&at_agent(&first.0.dir.join("tls")), &said, "Agent/Ask", question()).expect("its user has a job there");
    refused(&at_agent(&forger.forge(&Principal::Node("a1".into()))), &said, "Agent/Ask", question());
    head.ok(&format!("scancel {job}"));
    // Agents restart with what they were told last.
    kill_9(second.0.agent_pid("a2"));
    second.0.start("");
    head.wait_for("sinfo -h -n a2 -o %T", "idle");
    refused(&at_agent(&forger.forge(&Principal::Controller(1))), "local 0 0", "Agent/Ask", question());
}

#[test]
fn open_streams_of_a_removed_node_end() {
    let (head, address) = head();
    let ((first, _), (second, _)) = (node(&head, "a1"), node(&head, "a2"));
    told(&second);
    let job = head.sbatch("-H -w a2 -D / -o /dev/null --wrap true").parse().map(model::JobId).unwrap();
    let stolen = Folder::new();
    for file in ["ca.pem", "identity.pem"] {
        std::fs::copy(first.0.dir.join("tls").join(file), stolen.join(file)).unwrap();
    }
    let filter = JobFilter { jobs: vec![job.into()], ..JobFilter::default() };
    let body = written(&[(1, FieldContent::Bytes(codec::encode(&filter)))]);
    let entrance = Entrance::Certificate { address, tls_dir: stolen.to_path_buf() };
    let (told_of_it, is_open) = std::sync::mpsc::channel();
    let watching = std::thread::spawn(move || {
        on_own_thread(async move {
            let caller = RawCaller::open(&entrance, &[(HEADER, "local 1 1".to_owned())]).await;
            let mut stream = caller.open_stream("/spur.v1.Controller/WatchJobs", body).await.unwrap();
            stream.message().await.unwrap().unwrap();
            told_of_it.send(()).unwrap();
            let ends = async { while let Ok(Some(_)) = stream.message().await {} };
            tokio::time::timeout(PATIENCE, ends).await.is_ok()
        })
    });
    is_open.recv_timeout(PATIENCE).unwrap();
    head.ok(&format!("spur node remove a1 --dir {}", head.dir.display()));
    assert!(watching.join().unwrap(), "a removed node goes on watching");
    head.wait_for("sinfo -h -n a2 -o %T", "idle");
}

#[test]
fn restored_controller_is_believed_by_agents_that_know_its_reserve() {
    let (head, _) = head();
    let (first, _) = node(&head, "a1");
    let told = told(&first);
    assert!(!told.recovery.is_empty());
    let copy = head.dir.join("work/copy");
    head.ok(&format!("spur backup {} --dir {}", copy.display(), head.dir.display()));
    let kept = Folder::new();
    std::fs::copy(&copy, kept.join("copy")).unwrap();
    kill_9(head.controller_pid());
    // Another disk: nothing of the journal, and no certificate.
    std::fs::remove_dir_all(head.dir.join("state")).unwrap();
    head.ok(&format!("spur restore {} --dir {}", kept.join("copy").display(), head.dir.display()));
    head.wait_for("sinfo -h -o %T", "idle");
    let end = Instant::now() + PATIENCE;
    while self::told(&first).recovery == told.recovery {
        assert!(Instant::now() < end, "what is in use is no reserve any more");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(first.0.ok("sinfo -h -o %T"), "idle");
}

#[test]
fn controller_that_renews_its_certificate_is_cut_off_from_nobody() {
    let (head, _) = head();
    head.ok(&format!(
        "sed -i 's/^certificate_lifetime = .*/certificate_lifetime = 12/' {}/spur.conf",
        head.dir.display()
    ));
    head.ok("scontrol reconfigure");
    let options = format!("--controller --listen 127.0.0.1:{}", free_port());
    let second = join(&token(&head, "--controller"), &options);
    let (first, _) = node(&head, "a1");
    told(&first);
    let shown = || {
        let logs = format!("cat {}/log/*.log | grep -c 'renewed certificate is shown'", second.0.dir.display());
        second.0.run(&logs).out.trim().parse::<u32>().unwrap_or(0)
    };
    let end = Instant::now() + Duration::from_secs(60);
    while shown() < 2 {
        assert!(Instant::now() < end, "{}", second.0.logs());
        // Through each of the controllers, and through the node.
        for machine in [&head, &second.0, &first.0] {
            assert_eq!(machine.ok("sinfo -h -o %T"), "idle");
        }
    }
    kill_9(first.0.agent_pid("a1"));
    first.0.start("");
    head.wait_for("sinfo -h -o %T", "idle");
}
