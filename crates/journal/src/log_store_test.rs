//! The log store and the applier against openraft's own conformance suite, and reading back from the disk.

use std::sync::Arc;

use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::testing::{StoreBuilder, Suite};
use openraft::{EntryPayload, RaftLogReader};

use crate::applier::{Applier, SnapshotPace, Waiters};
use crate::batch::{Batch, RaftEntry, StorageError, Types};
use crate::frame::log_id;
use crate::index::Index;
use crate::log_store::LogStore;
use crate::machine::Machine;
use crate::options::Options;
use crate::recovery::{self, Recovered};
use crate::room::LogRoom;
use crate::snapshots::Cover;
use crate::test_disk::Disk;
use crate::writer;

struct Nothing;

impl Machine for Nothing {
    type Reply = ();
    fn apply(&mut self, _: u64, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
    fn freeze(&self) -> Box<dyn FnOnce() -> Vec<u8> + Send> {
        Box::new(|| b"frozen".to_vec())
    }
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), String> {
        if snapshot == b"frozen" { Ok(()) } else { Err("not what was frozen".into()) }
    }
}

fn open(disk: &Disk) -> (LogStore, Applier<Nothing>) {
    let options = Options { files: Arc::new(disk.clone()), segment_bytes: 600, ..Options::new("/journal", 1) };
    let (lock, _) = recovery::lock(&options).unwrap();
    let Recovered { segments, purged, entries, committed, snapshots, snapshot } = recovery::recover(&options).unwrap();
    let vote = segments.state.vote;
    let index = Arc::new(Index::new(options.files.clone(), options.dir.clone(), purged, entries, committed));
    let room = Arc::new(LogRoom::new(options.files.clone(), options.dir.clone(), 0));
    let (work, _, _) = writer::start(segments, index.clone(), lock.clone(), room.clone()).unwrap();
    let cover = snapshot.map_or_else(Cover::default, |(_, cover, _)| cover);
    let pace = SnapshotPace { every_entries: 1000, every_bytes: u64::MAX };
    let applier = Applier::new(Nothing, cover, snapshots, pace, Arc::new(Waiters::new()), lock, room);
    (LogStore::new(index, work, vote), applier)
}

struct Build;

impl StoreBuilder<Types, LogStore, Applier<Nothing>> for Build {
    async fn build(&self) -> Result<((), LogStore, Applier<Nothing>), StorageError> {
        let (store, applier) = open(&Disk::new(0));
        Ok(((), store, applier))
    }
}

#[test]
fn the_store_does_what_openraft_asks_of_a_store() {
    Suite::test_all(Build).unwrap();
}

fn entry(term: u64, index: u64, text: &str) -> RaftEntry {
    let entries = Arc::new(vec![text.as_bytes().to_vec()]);
    RaftEntry { log_id: log_id(term, 1, index), payload: EntryPayload::Normal(Batch { ticket: 0, entries }) }
}

fn texts(entries: &[RaftEntry]) -> Vec<String> {
    let text = |entry: &RaftEntry| match &entry.payload {
        EntryPayload::Normal(batch) => String::from_utf8(batch.entries[0].clone()).unwrap(),
        EntryPayload::Blank | EntryPayload::Membership(_) => String::new(),
    };
    entries.iter().map(text).collect()
}

#[tokio::test]
async fn a_cut_log_is_read_back_from_disk_as_it_was_cut() {
    let disk = Disk::new(0);
    let (mut store, applier) = open(&disk);
    let old: Vec<_> = (0..10).map(|index| entry(1, index, &format!("old {index}"))).collect();
    store.blocking_append(old[..4].to_vec()).await.unwrap();
    store.blocking_append(old[4..].to_vec()).await.unwrap();
    store.save_committed(Some(log_id(1, 1, 5))).await.unwrap();
    store.truncate(log_id(1, 1, 7)).await.unwrap();
    store.blocking_append([entry(2, 7, "new 7"), entry(2, 8, "new 8")]).await.unwrap();
    store.purge(log_id(1, 1, 2)).await.unwrap();
    let expected = ["old 3", "old 4", "old 5", "old 6", "new 7", "new 8"];
    assert_eq!(texts(&store.try_get_log_entries(0..100).await.unwrap()), expected);
    drop((store, applier));

    let (mut store, _applier) = open(&disk.after_kill());
    let found = store.try_get_log_entries(3..100).await.unwrap();
    assert_eq!(texts(&found), expected);
    assert_eq!(store.read_committed().await.unwrap(), Some(log_id(1, 1, 5)));
    assert_eq!(store.get_log_state().await.unwrap().last_log_id, Some(log_id(2, 1, 8)));
}

#[tokio::test]
async fn a_snapshot_beyond_the_end_of_the_log_replaces_it() {
    let disk = Disk::new(0);
    let (mut store, mut applier) = open(&disk);
    store.blocking_append((0..5).map(|index| entry(1, index, "old"))).await.unwrap();
    let mut data = applier.begin_receiving_snapshot().await.unwrap();
    data.get_mut().extend_from_slice(b"frozen");
    data.get_mut().extend_from_slice(&77u64.to_le_bytes());
    let meta = openraft::SnapshotMeta { last_log_id: Some(log_id(3, 2, 50)), ..Default::default() };
    applier.install_snapshot(&meta, data).await.unwrap();
    store.purge(log_id(3, 2, 50)).await.unwrap();
    store.blocking_append([entry(3, 51, "new")]).await.unwrap();
    drop((store, applier));

    let (mut store, mut applier) = open(&disk.after_kill());
    assert_eq!(applier.applied_state().await.unwrap().0, Some(log_id(3, 2, 50)));
    assert_eq!(store.get_log_state().await.unwrap().last_purged_log_id, Some(log_id(3, 2, 50)));
    assert_eq!(texts(&store.try_get_log_entries(0..100).await.unwrap()), ["new"]);
}
