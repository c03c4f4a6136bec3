//! What answers hold: no secrets, and never more in one message than a page.
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use model::command::Blob;
use model::request::{JobFilter, JobsPage};
use model::{JobKind, JobSpec, codec};

use super::callers::{Entrance, RawCaller, on_own_thread};
use super::contract::{FieldContent, calls, written};
use crate::cluster::{Cluster, is_root};

const NOBODY: u32 = 65_534;
/// No message holds much more.
const PAGE_BYTES: usize = 1 << 20;
/// In the secrets that are planted, and nowhere else.
const PLANTED: &str = "xyzzy";

fn controller_socket(head: &Cluster) -> PathBuf {
    head.dir.join("run/controller.sock")
}

/// Restarts the cluster with another configuration file.
fn reconfigured(change: impl FnOnce(String) -> String) -> Cluster {
    let head = Cluster::up("--nodes 1");
    head.ok(&format!("spur down --dir {}", head.dir.display()));
    let file = head.dir.join("spur.conf");
    fs::write(&file, change(fs::read_to_string(&file).unwrap())).unwrap();
    head.start("");
    head
}

/// All files below, with what they hold.
pub(super) fn files_below(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files_below(&entry.path()));
        } else if kind.is_file() {
            found.insert(entry.path(), fs::read(entry.path()).unwrap_or_default());
        }
    }
    found
}

fn holds_secret(bytes: &[u8]) -> bool {
    bytes.windows(PLANTED.len()).any(|window| window == PLANTED.as_bytes())
}

/// The process and those that it started, theirs too.
pub(super) fn family(pid: i32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|word| word.parse().ok());
    std::iter::once(pid).chain(children.flat_map(family)).collect()
}

/// Every answer that this user gets to a call without words, from every call.
pub(super) fn all_answers(head: &Cluster, uid: u32) -> Vec<(String, Vec<u8>)> {
    let entrance = Entrance::Local { socket: controller_socket(head), uid, gid: uid };
    on_own_thread(async move {
        let caller = RawCaller::open(&entrance, &[]).await;
        let mut all = Vec::new();
        let ending = ["Shutdown", "Backup", "End", "Stand", "Raft"];
        for call in calls().into_iter().filter(|call| !call.streams_requests && !ending.contains(&call.name)) {
            let path = format!("/spur.v1.{}/{}", call.service, call.name);
            let empty = match call.name {
                "Jobs" | "WatchJobs" => written(&[(1, FieldContent::Bytes(codec::encode(&JobFilter::default())))]),
                "History" => {
                    let query = model::history::HistoryQuery::default();
                    written(&[(1, FieldContent::Bytes(codec::encode(&query)))])
                }
                _ => Vec::new(),
            };
            let n_max = if call.name.starts_with("Watch") { 1 } else { 1000 };
            match caller.messages(&path, empty, n_max).await {
                Ok(messages) => all.push((call.name.to_owned(), messages.concat())),
                Err(status) => all.push((call.name.to_owned(), status.message().as_bytes().to_vec())),
            }
        }
        all
    })
}

#[test]
fn secrets_of_the_configuration_are_told_nobody() {
    let address = format!("postgres://spur:{PLANTED}1@127.0.0.1:1/none?connect_timeout=1&password={PLANTED}2");
    let head = reconfigured(|text| {
        let accounting = format!("[accounting]\ndatabase = \"{address}\"\n");
        let given = format!(
            "\n[slurm_conf]\nAccountingStoragePass = \"{PLANTED}3\"\nJobCompLoc = \"http://u:{PLANTED}4@h/x\"\nJobCompParams = \"timeout=1,password={PLANTED}5\"\n"
        );
        assert!(text.contains("[accounting]\n"), "{text}");
        text.replace("[accounting]\n", &accounting) + &given
    });
    let job = head.sbatch("-o /dev/null --wrap true");
    head.wait_state(&job, "COMPLETED");
    let mut told: Vec<(String, Vec<u8>)> = all_answers(&head, 0);
    assert!(told.iter().any(|(call, answer)| call == "Configuration" && answer.len() > 100));
    if is_root() {
        told.extend(all_answers(&head, NOBODY));
    }
    for line in [
        "scontrol show config",
        "scontrol show config --json",
        "scontrol show partition",
        "sacctmgr -P show configuration",
        "sacctmgr show stats",
        "sdiag",
        "sdiag --json",
        "sacct -a",
        "sreport cluster utilization",
        "squeue --json",
        "sinfo --json",
        "spur status",
        "scontrol ping",
        "scontrol reconfigure",
        "spur audit --all",
        "spur config check ../spur.conf",
    ] {
        let said = head.run(line);
        told.push((line.to_owned(), format!("{}{}", said.out, said.err).into_bytes()));
    }
    assert!(told.iter().any(|(line, said)| line == "sacct -a" && String::from_utf8_lossy(said).contains("database")));
    for (file, content) in files_below(&head.dir) {
        if file.file_name().is_none_or(|name| name != "spur.conf") {
            told.push((file.display().to_string(), content));
        }
    }
    for pid in family(head.controller_pid()).into_iter().chain(family(head.agent_pid("n1"))) {
        for about in ["cmdline", "environ"] {
            told.push((format!("{about} of {pid}"), fs::read(format!("/proc/{pid}/{about}")).unwrap_or_default()));
        }
    }
    let leaks: Vec<&str> =
        told.iter().filter(|(_, said)| holds_secret(said)).map(|(place, _)| place.as_str()).collect();
    assert!(leaks.is_empty(), "secrets are told by {leaks:?}");
    // A file that everybody reads is not made of one with a password.
    let copy = head.dir.join("work/wanted.conf");
    fs::write(&copy, format!("[[nodes]]\nnames = \"n1\"\n[accounting]\ndatabase = \"{address}\"\n")).unwrap();
    let refused = head.run("spur up --dir other --config wanted.conf");
    assert!(refused.code != 0 && refused.err.contains("database_password_file"), "{refused:?}");
    assert!(!holds_secret(refused.err.as_bytes()), "{refused:?}");
}

#[test]
fn password_file_that_others_may_read_is_refused() {
    let head = Cluster::up("--nodes 1");
    let secret = head.dir.join("password");
    fs::write(&secret, format!("{PLANTED}\n")).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    head.ok(&format!("spur down --dir {}", head.dir.display()));
    let file = head.dir.join("spur.conf");
    let text = fs::read_to_string(&file).unwrap();
    let keys = "[accounting]\ndatabase = \"postgres://spur@127.0.0.1:1/none\"\ndatabase_password_file = \"password\"\n";
    fs::write(&file, text.replace("[accounting]\n", keys)).unwrap();
    head.start("");
    let why = head.run("sacct -a").err;
    assert!(why.contains("password: others may read or change it"), "{why}");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    // It is read again with the next attempt: now only the server is missing.
    head.wait_until("sacct -a", |said| said.err.contains("connect"));
    assert!(!holds_secret(head.logs().as_bytes()));
}

#[test]
fn answer_of_any_size_comes_in_pages() {
    const N_JOBS: usize = 1500;
    let head = Cluster::up("--nodes 1");
    let socket = controller_socket(&head);
    let messages = on_own_thread(async move {
        let script = Blob::of(b"#!/bin/sh\ntrue\n".to_vec());
        let spec = JobSpec {
            name: "large".into(),
            // The owner of a private cluster may name others.
            uid: super::content::own_uid(),
            kind: JobKind::Batch { script: script.id },
            work_dir: "/".into(),
            held: true,
            comment: "c".repeat(1000),
            ..JobSpec::default()
        };
        let controller = wire::Controller::connect(&socket).await.unwrap();
        let mut submitting = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let (mut controller, spec, script) = (controller.clone(), spec.clone(), script.clone());
            submitting.spawn(async move {
                for _ in 0..N_JOBS / 10 {
                    controller.submit(&spec, std::slice::from_ref(&script)).await.unwrap();
                }
            });
        }
        submitting.join_all().await;
        let caller = RawCaller::open(&Entrance::Local { socket, uid: 0, gid: 0 }, &[]).await;
        let all = written(&[(1, FieldContent::Bytes(codec::encode(&JobFilter::default())))]);
        caller.messages("/spur.v1.Controller/Jobs", all, usize::MAX).await.unwrap()
    });
    let sizes: Vec<usize> = messages.iter().map(Vec::len).collect();
    assert!(sizes.iter().all(|size| *size < PAGE_BYTES + 64 * 1024), "{sizes:?}");
    assert!(sizes.iter().sum::<usize>() > N_JOBS * 1000, "{sizes:?}");
    // Nothing is lost between pages.
    assert_eq!(head.ok("squeue -h | wc -l"), N_JOBS.to_string());
    assert_eq!(head.ok("squeue -h -o %i | sort -u | wc -l"), N_JOBS.to_string());
    let read_back: usize = messages.iter().map(|message| jobs_of(message).jobs.len()).sum();
    assert_eq!(read_back, N_JOBS);
    head.ok("scancel -u $(id -un)");
    head.wait_for("squeue -h | wc -l", "0");
}

/// The page in a message whose only field is that.
fn jobs_of(message: &[u8]) -> JobsPage {
    // The key of field 1, then its length in seven bits a byte.
    let n_length = message[1..].iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    codec::decode(&message[1 + n_length..]).unwrap()
}
