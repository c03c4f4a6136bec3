//! Journals of earlier releases must always load: `tests/journals/` keeps one a release, with a snapshot and a log behind it.
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journal::Journal;
use model::command::Blob;
use model::config::NamedNode;
use model::node::{Machine as MachineFacts, NodeConfig};
use model::spec::{ArraySpec, ResourceLimit, Size};
use model::{BlobId, Caller, Command, Config, Entry, JobId, JobKind, JobSpec, Partition, Phase, Timestamp, codec};
use state::Cluster;

use crate::machine::ClusterMachine;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/journals")
}

async fn open(dir: &Path) -> (Journal<Result<model::Reply, model::Reject>>, crate::machine::Published) {
    let (machine, published) = ClusterMachine::new();
    let mut options = journal::Options::new(dir, 1);
    options.segment_bytes = 16 << 10;
    (Journal::open(options, machine).await.expect("an old journal opens"), published)
}

async fn read(dir: &Path) -> Arc<Cluster> {
    let (journal, published) = open(dir).await;
    let cluster = published.now();
    journal.shutdown().await;
    cluster
}

#[tokio::test]
async fn journals_of_every_release_load() {
    let mut n_journals = 0;
    for release in fs::read_dir(folder()).expect("the journals are kept in the repository").flatten() {
        let copy = std::env::temp_dir().join(format!("spur-journal-{}-{n_journals}", std::process::id()));
        let _ = fs::remove_dir_all(&copy);
        fs::create_dir_all(&copy).unwrap();
        for file in fs::read_dir(release.path()).unwrap().flatten() {
            fs::copy(file.path(), copy.join(file.file_name())).unwrap();
        }
        let cluster = read(&copy).await;
        state::check::check(&cluster).unwrap_or_else(|violation| panic!("{release:?}: {violation}"));
        let phase = |id| cluster.job(JobId(id)).map(|job| job.phase);
        assert_eq!(phase(1), Some(Phase::Pending), "the held job of the snapshot");
        let array = cluster.job(JobId(2)).expect("the array of the log");
        assert_eq!(array.waiting_tasks.as_ref().map(|tasks| tasks.len()), Some(1000));
        assert_eq!(cluster.blob(BlobId([7; 4])).map(|script| &script[..]), Some(&b"#!/bin/sh\n"[..]));
        fs::remove_dir_all(&copy).unwrap();
        n_journals += 1;
    }
    assert!(n_journals > 0);
}

/// Run once a release, by name: `RELEASE=0.2.0 cargo test -p controller writes -- --ignored`.
#[tokio::test]
#[ignore = "writes the journal of a new release"]
async fn writes_the_journal_of_this_release() {
    let dir = folder().join(std::env::var("RELEASE").unwrap_or(env!("CARGO_PKG_VERSION").into()));
    fs::create_dir_all(&dir).unwrap();
    let (journal, _) = open(&dir).await;
    let mut at = 1_800_000_000;
    for (number, command) in story().into_iter().enumerate() {
        at += 1;
        let entry = Entry { at: Timestamp::from_secs(at), by: Caller::SYSTEM, command };
        journal.propose(codec::encode(&entry)).await.unwrap().unwrap();
        if number == 2 {
            journal.snapshot_now().await.unwrap();
        }
    }
    journal.shutdown().await;
}

fn story() -> Vec<Command> {
    let node = NamedNode {
        name: "n1".into(),
        config: NodeConfig { cpus: 4, memory_mb: 1000, weight: 1, ..Default::default() },
    };
    let partition = Partition {
        name: "main".into(),
        nodes_text: "ALL".into(),
        nodes: vec!["n1".into()],
        is_default: true,
        ..Default::default()
    };
    let config = Config { nodes: vec![node], partitions: vec![partition], ..Default::default() };
    let script = BlobId([7; 4]);
    let blobs = || vec![Blob { id: script, content: b"#!/bin/sh\n".to_vec() }];
    let spec = |name: &str| JobSpec {
        name: name.into(),
        kind: JobKind::Batch { script },
        size: Size { min_nodes: 1, n_tasks: Some(1), ..Default::default() },
        limits: vec![ResourceLimit { resource: 7, soft: 1024, hard: ResourceLimit::INFINITY }],
        held: true,
        ..Default::default()
    };
    let array = ArraySpec { tasks: (0..1000).collect(), limit: Some(4) };
    vec![
        Command::Reconfigure { config: Box::new(config) },
        Command::RegisterNode { node: "n1".into(), machine: Box::new(MachineFacts::default()), runs: Vec::new() },
        Command::Submit { spec: Box::new(spec("held")), blobs: blobs() },
        Command::Submit { spec: Box::new(JobSpec { array: Some(array), ..spec("array") }), blobs: Vec::new() },
        Command::Tick,
    ]
}
