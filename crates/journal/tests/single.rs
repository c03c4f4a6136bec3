//! One member on a real disk: what was acknowledged is there after every restart, once.

mod support;

use std::fs;
use std::sync::Arc;

use journal::{Journal, Leadership, OpenError, Options, ProposeError};
use support::{Memory, TempDir, numbered};

#[tokio::test(flavor = "multi_thread")]
async fn a_lone_member_leads_at_once_and_answers() {
    let dir = TempDir::new();
    let (machine, seen) = Memory::new();
    let journal = Journal::open(Options::new(dir.path(), 1), machine).await.unwrap();
    assert!(journal.is_leader());
    assert_eq!(journal.propose(b"a".to_vec()).await, Ok(1));
    assert_eq!(journal.propose(b"b".to_vec()).await, Ok(2));
    assert_eq!(seen.lock().unwrap().entries, [b"a", b"b"]);
    journal.shutdown().await;
}

#[tokio::test]
async fn it_works_on_a_single_threaded_runtime() {
    let dir = TempDir::new();
    let journal = Journal::open(Options::new(dir.path(), 1), Memory::default()).await.unwrap();
    for n in 1..=20 {
        assert_eq!(journal.propose(numbered(n)).await, Ok(n));
    }
    journal.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn restarts_keep_every_entry_through_segments_and_snapshots() {
    let dir = TempDir::new();
    let mut expected = Vec::new();
    for round in 0..12u64 {
        let options =
            Options { segment_bytes: 2000, snapshot_every_entries: 70, keep_batches: 8, ..Options::new(dir.path(), 1) };
        let (machine, seen) = Memory::new();
        let journal = Journal::open(options, machine).await.unwrap();
        assert_eq!(seen.lock().unwrap().entries, expected, "after restart {round}");
        for n in 0..31 {
            let entry = numbered(round * 1000 + n);
            expected.push(entry.clone());
            assert_eq!(journal.propose(entry).await, Ok(expected.len() as u64));
        }
        if round % 3 == 2 {
            journal.snapshot_now().await.unwrap();
            let n_snapshots = names(&dir).iter().filter(|name| name.starts_with("snapshot-")).count();
            assert_eq!(n_snapshots, 1, "only the newest snapshot is kept");
        }
        journal.shutdown().await;
    }
    let n_segments = names(&dir).iter().filter(|name| name.starts_with("log-")).count();
    assert!(n_segments < 10, "segments behind the snapshot are deleted, {n_segments} are left");
    let (machine, seen) = Memory::new();
    Journal::open(Options::new(dir.path(), 1), machine).await.unwrap().shutdown().await;
    let seen = seen.lock().unwrap();
    assert!(seen.restored > 0, "a restart begins with a snapshot");
    assert_eq!(seen.entries, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn log_of_few_large_entries_is_cut_off_too() {
    let dir = TempDir::new();
    let options = Options {
        segment_bytes: 5000,
        snapshot_every_entries: u64::MAX,
        snapshot_every_bytes: 20_000,
        keep_batches: 2,
        ..Options::new(dir.path(), 1)
    };
    let journal = Journal::open(options, Memory::default()).await.unwrap();
    let n_segments = || names(&dir).iter().filter(|name| name.starts_with("log-")).count();
    for n in 0..200u8 {
        journal.propose(vec![n; 1000]).await.unwrap();
    }
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    while n_segments() > 10 {
        assert!(tokio::time::Instant::now() < deadline, "{} segments of 50", n_segments());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    journal.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_proposers_are_answered_each_with_its_own_reply() {
    let dir = TempDir::new();
    let (machine, seen) = Memory::new();
    let journal = Journal::open(Options::new(dir.path(), 1), machine).await.unwrap();
    let tasks: Vec<_> = (0..64u64)
        .map(|proposer| {
            let journal = journal.clone();
            tokio::spawn(async move {
                let mut replies = Vec::new();
                for n in 0..20 {
                    let entry = numbered(proposer * 100 + n);
                    replies.push((journal.propose(entry.clone()).await.unwrap(), entry));
                }
                replies
            })
        })
        .collect();
    for task in tasks {
        for (index, entry) in task.await.unwrap() {
            assert_eq!(seen.lock().unwrap().entries[index as usize - 1], entry);
        }
    }
    journal.shutdown().await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.entries.len(), 64 * 20);
    assert!(seen.batches < 64 * 20 / 2, "proposals share syncs: {} batches", seen.batches);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_entries_are_split_into_batches_and_too_large_ones_refused() {
    let dir = TempDir::new();
    let (machine, seen) = Memory::new();
    let options = || Options { segment_bytes: 1 << 20, ..Options::new(dir.path(), 1) };
    let journal = Journal::open(options(), machine).await.unwrap();
    let entries: Vec<Vec<u8>> = (0..12u8).map(|n| vec![n; 600 << 10]).collect();
    let tasks: Vec<_> = entries
        .iter()
        .cloned()
        .map(|entry| {
            let journal = journal.clone();
            tokio::spawn(async move { journal.propose(entry).await.unwrap() })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let refused = journal.propose(vec![0; (64 << 20) + 1]).await;
    assert!(matches!(refused, Err(ProposeError::TooLarge { .. })));
    journal.shutdown().await;
    let before = seen.lock().unwrap().entries.clone();
    let (machine, seen) = Memory::new();
    Journal::open(options(), machine).await.unwrap().shutdown().await;
    assert!(before == seen.lock().unwrap().entries);
    assert_eq!(before.len(), 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_open_once_only_and_free_after_shutdown() {
    let dir = TempDir::new();
    let journal = Journal::open(Options::new(dir.path(), 1), Memory::default()).await.unwrap();
    let second = Journal::open(Options::new(dir.path(), 1), Memory::default()).await.err().unwrap();
    assert!(matches!(second, OpenError::InUse(_)), "{second}");
    assert!(second.to_string().contains("in use"));
    let other_handle = journal.clone();
    let mut leadership = journal.leadership();
    journal.shutdown().await;
    assert!(matches!(other_handle.propose(b"late".to_vec()).await, Err(ProposeError::Stopped(_))));
    assert!(leadership.wait_for(|now| *now == Leadership::Stopped).await.is_ok());
    Journal::open(Options::new(dir.path(), 1), Memory::default()).await.unwrap().shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_journal_gives_its_directory_free() {
    let dir = TempDir::new();
    drop(Journal::open(Options::new(dir.path(), 1), Memory::default()).await.unwrap());
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        match Journal::open(Options::new(dir.path(), 1), Memory::default()).await {
            Ok(journal) => break journal.shutdown().await,
            Err(OpenError::InUse(_)) if tokio::time::Instant::now() < deadline => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_members_journal_is_refused() {
    let dir = TempDir::new();
    Journal::open(Options::new(dir.path(), 1), Memory::default()).await.unwrap().shutdown().await;
    let error = Journal::open(Options::new(dir.path(), 2), Memory::default()).await.err().unwrap();
    assert!(matches!(error, OpenError::OtherMember { found: 1, wanted: 2, .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_cannot_go_on_stops_the_journal_and_hangs_nobody() {
    struct Fails;
    impl journal::Machine for Fails {
        type Reply = ();
        fn apply(&mut self, _: u64, entry: &[u8]) -> Result<(), String> {
            assert!(entry != b"boom", "as asked");
            if entry == b"what?" { Err("this is not understood".into()) } else { Ok(()) }
        }
        fn freeze(&self) -> Box<dyn FnOnce() -> Vec<u8> + Send> {
            Box::new(Vec::new)
        }
        fn restore(&mut self, _: &[u8]) -> Result<(), String> {
            Ok(())
        }
    }
    for last in [b"boom".to_vec(), b"what?".to_vec()] {
        let dir = TempDir::new();
        let journal = Journal::open(Options::new(dir.path(), 1), Fails).await.unwrap();
        journal.propose(b"fine".to_vec()).await.unwrap();
        assert!(matches!(journal.propose(last).await, Err(ProposeError::Stopped(_))));
        assert!(matches!(journal.propose(b"fine".to_vec()).await, Err(ProposeError::Stopped(_))));
        journal.shutdown().await;
        let again = Journal::open(Options::new(dir.path(), 1), Fails).await;
        assert!(again.is_err(), "what was committed is not passed over by the next one either");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_taken_off_the_write_path() {
    struct Slow(Arc<std::sync::Mutex<Option<std::sync::mpsc::Receiver<()>>>>);
    impl journal::Machine for Slow {
        type Reply = u64;
        fn apply(&mut self, index: u64, _: &[u8]) -> Result<u64, String> {
            Ok(index)
        }
        fn freeze(&self) -> Box<dyn FnOnce() -> Vec<u8> + Send> {
            let go = self.0.lock().unwrap().take();
            Box::new(move || {
                if let Some(go) = go {
                    go.recv().unwrap();
                }
                Vec::new()
            })
        }
        fn restore(&mut self, _: &[u8]) -> Result<(), String> {
            Ok(())
        }
    }
    let dir = TempDir::new();
    let (go, wait) = std::sync::mpsc::channel();
    let machine = Slow(Arc::new(std::sync::Mutex::new(Some(wait))));
    let journal = Journal::open(Options::new(dir.path(), 1), machine).await.unwrap();
    journal.propose(b"a".to_vec()).await.unwrap();
    let snapshot = tokio::spawn({
        let journal = journal.clone();
        async move { journal.snapshot_now().await }
    });
    for n in 2..50 {
        assert_eq!(journal.propose(numbered(n)).await, Ok(n), "while the snapshot is being written");
    }
    assert!(!names(&dir).iter().any(|name| name.starts_with("snapshot-")));
    go.send(()).unwrap();
    snapshot.await.unwrap().unwrap();
    assert!(names(&dir).iter().any(|name| name.starts_with("snapshot-")));
    journal.shutdown().await;
}

fn names(dir: &TempDir) -> Vec<String> {
    fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
