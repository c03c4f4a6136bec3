//! A bad disk: nothing acknowledged is lost, nothing appears twice, and no damage goes unnoticed.

mod support;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journal::{DiskRoom, Journal, OpenError, Options, ProposeError};
use support::disk::{Disk, Faults, Random};
use support::{Memory, numbered};

fn options(disk: &Disk) -> Options {
    Options { files: Arc::new(disk.clone()), ..Options::new("/journal", 1) }
}

async fn entries_of(disk: &Disk) -> Result<Vec<Vec<u8>>, OpenError> {
    let (machine, seen) = Memory::new();
    Journal::open(options(disk), machine).await?.shutdown().await;
    let seen = seen.lock().unwrap();
    Ok(seen.entries.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_costs_exactly_one_sync() {
    let disk = Disk::new(1);
    let journal = Journal::open(options(&disk), Memory::default()).await.unwrap();
    journal.propose(numbered(0)).await.unwrap();
    let before = disk.n_syncs();
    for n in 1..=100 {
        journal.propose(numbered(n)).await.unwrap();
    }
    assert_eq!(disk.n_syncs() - before, 100);
    journal.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn power_loss_at_any_moment_loses_nothing_acknowledged() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut disk = Disk::new(seed);
        let mut acknowledged: Vec<Vec<u8>> = Vec::new();
        for life in 0..6u64 {
            let every = [40, 400][random.below(2) as usize];
            disk.set_faults(Faults { power_loss_at_operation: Some(random.below(every)), ..Faults::default() });
            let size = 1 + random.below(1500) as usize;
            let told = live(&disk, life, size, 500 + random.below(6000)).await;
            acknowledged.extend(told);
            disk = disk.after_power_loss();
            let found = match entries_of(&disk).await {
                Ok(found) => found,
                Err(error) => panic!("seed {seed}, life {life}: {error}"),
            };
            check(&acknowledged, &found, &format!("seed {seed}, life {life}"));
        }
    }
}

/// Opens, proposes from three tasks until the journal stops, and tells what was acknowledged.
async fn live(disk: &Disk, life: u64, size: usize, segment_bytes: u64) -> Vec<Vec<u8>> {
    let options = Options { segment_bytes, snapshot_every_entries: 25, keep_batches: 4, ..options(disk) };
    let Ok(journal) = Journal::open(options, Memory::default()).await else { return Vec::new() };
    let tasks: Vec<_> = (0..3)
        .map(|task| {
            let journal = journal.clone();
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                for n in 0..1000 {
                    let mut entry = format!("life {life} task {task} entry {n} ").into_bytes();
                    entry.resize(entry.len() + size, n as u8);
                    if journal.propose(entry.clone()).await.is_err() {
                        break;
                    }
                    acknowledged.push(entry);
                }
                acknowledged
            })
        })
        .collect();
    let mut acknowledged = Vec::new();
    for task in tasks {
        acknowledged.extend(task.await.unwrap());
    }
    journal.shutdown().await;
    acknowledged
}

fn check(acknowledged: &[Vec<u8>], found: &[Vec<u8>], when: &str) {
    let unique: HashSet<&Vec<u8>> = found.iter().collect();
    assert_eq!(unique.len(), found.len(), "an entry appears twice, {when}");
    for entry in acknowledged {
        let name = String::from_utf8_lossy(&entry[..entry.len().min(30)]);
        assert!(unique.contains(entry), "acknowledged and lost: {name:?}, {when}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failed_sync_nothing_is_acknowledged_any_more() {
    for nth in 0..8 {
        let disk = Disk::new(nth);
        let journal = Journal::open(options(&disk), Memory::default()).await.unwrap();
        disk.set_faults(Faults { fail_sync: Some(nth), ..Faults::default() });
        let mut acknowledged = Vec::new();
        let mut refused = None;
        for n in 0..20 {
            match journal.propose(numbered(n)).await {
                Ok(_) if refused.is_none() => acknowledged.push(numbered(n)),
                Ok(_) => panic!("acknowledged after a failed sync"),
                Err(ProposeError::Stopped(why)) => refused = Some(why),
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(acknowledged.len() as u64, nth);
        let why = refused.unwrap();
        assert!(why.contains("the disk lost a write"), "{why}");
        journal.shutdown().await;

        // The next process reads the lost write from the page cache; what it builds on it must hold all the same.
        let disk = disk.after_kill();
        let journal = Journal::open(options(&disk), Memory::default()).await.unwrap();
        for n in 100..110 {
            journal.propose(numbered(n)).await.unwrap();
            acknowledged.push(numbered(n));
        }
        let disk = disk.after_power_loss();
        journal.shutdown().await;
        check(&acknowledged, &entries_of(&disk).await.unwrap(), &format!("sync {nth} failed"));
    }
}

/// Many wait for one sync, not each for its own; and who has an answer keeps it, even if the power goes the next moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_disk_makes_answers_late_and_nothing_else() {
    let disk = Disk::new(7);
    let journal = Journal::open(options(&disk), Memory::default()).await.unwrap();
    journal.propose(numbered(1000)).await.unwrap();
    let slow = std::time::Duration::from_millis(60);
    disk.set_faults(Faults { slow_sync: Some(slow), ..Faults::default() });
    let (began, before) = (std::time::Instant::now(), disk.n_syncs());
    let proposing = (0..200).map(|n| {
        let journal = journal.clone();
        tokio::spawn(async move {
            journal.propose(numbered(n)).await.unwrap();
            numbered(n)
        })
    });
    let mut acknowledged = vec![numbered(1000)];
    for proposed in proposing.collect::<Vec<_>>() {
        acknowledged.push(proposed.await.unwrap());
    }
    assert!(began.elapsed() >= slow, "an answer before the disk had it");
    assert!(disk.n_syncs() - before <= 20, "{} syncs for 200 entries", disk.n_syncs() - before);
    let left = disk.after_power_loss();
    journal.shutdown().await;
    check(&acknowledged, &entries_of(&left).await.unwrap(), "a slow disk");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_write_is_completed_and_a_broken_one_stops_the_journal() {
    for nth in 0..6 {
        let disk = Disk::new(nth);
        let journal = Journal::open(options(&disk), Memory::default()).await.unwrap();
        disk.set_faults(Faults { short_write: Some(nth), ..Faults::default() });
        let mut acknowledged = Vec::new();
        for n in 0..10 {
            journal.propose(numbered(n)).await.unwrap();
            acknowledged.push(numbered(n));
        }
        disk.set_faults(Faults { broken_write: Some(0), ..Faults::default() });
        assert!(matches!(journal.propose(numbered(99)).await, Err(ProposeError::Stopped(_))));
        assert!(matches!(journal.propose(numbered(100)).await, Err(ProposeError::Stopped(_))));
        journal.shutdown().await;
        assert_eq!(entries_of(&disk.after_kill()).await.unwrap(), acknowledged);
    }
}

/// A journal with a snapshot and several segments, closed, and what is in it.
async fn settled() -> (Disk, Vec<Vec<u8>>) {
    let disk = Disk::new(0);
    let small = || Options { segment_bytes: 700, keep_batches: 8, ..options(&disk) };
    let journal = Journal::open(small(), Memory::default()).await.unwrap();
    let mut entries = Vec::new();
    for n in 0..40 {
        if n == 20 {
            journal.snapshot_now().await.unwrap();
        }
        entries.push(numbered(n));
        journal.propose(numbered(n)).await.unwrap();
    }
    journal.shutdown().await;
    assert!(named(&disk, "log-").len() > 2);
    (disk, entries)
}

fn named(disk: &Disk, start: &str) -> Vec<PathBuf> {
    let is_named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(start);
    disk.names().into_iter().filter(is_named).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn any_flipped_bit_refuses_to_open_and_says_where() {
    let (disk, entries) = settled().await;
    let newest = named(&disk, "log-").pop().unwrap();
    let mut random = Random(7);
    for path in [named(&disk, "log-"), named(&disk, "snapshot-"), named(&disk, "state")].concat() {
        let content = disk.content(&path);
        let used = content.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        for offset in 0..used {
            let disk = disk.after_kill();
            disk.flip_bit(&path, offset, random.below(8) as u8);
            match entries_of(&disk).await {
                Err(OpenError::Damaged(damage)) => {
                    assert_eq!(damage.file, path, "{damage}");
                    assert!(damage.offset <= offset as u64, "byte {offset}: {damage}");
                }
                Err(error) => panic!("{} byte {offset}: {error}", path.display()),
                Ok(_) => panic!("{} byte {offset} was flipped unnoticed", path.display()),
            }
        }
        if path == newest {
            for offset in (used + 64..content.len()).step_by(content.len() / 5) {
                let disk = disk.after_kill();
                disk.flip_bit(&path, offset, 3);
                assert_eq!(entries_of(&disk).await.unwrap(), entries, "nothing was there yet");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_missing_file_refuses_to_open_and_names_it() {
    let (disk, _) = settled().await;
    let segments = named(&disk, "log-");
    for path in segments[1..].iter().chain(&named(&disk, "state")) {
        let disk = disk.after_kill();
        disk.delete(path);
        match entries_of(&disk).await {
            Err(OpenError::Missing { file, .. }) => assert_eq!(&file, path),
            Err(error) => panic!("{}: {error}", path.display()),
            Ok(_) => panic!("{} was missing unnoticed", path.display()),
        }
    }
    for paths in [named(&disk, "snapshot-"), segments] {
        let disk = disk.after_kill();
        paths.iter().for_each(|path| disk.delete(path));
        assert!(matches!(entries_of(&disk).await, Err(OpenError::Missing { .. })));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_tail_is_cut_wherever_it_is_torn() {
    let disk = Disk::new(0);
    let journal = Journal::open(options(&disk), Memory::default()).await.unwrap();
    let mut entries = Vec::new();
    for n in 0..3u8 {
        let entry = vec![n + 1; 1200];
        entries.push(entry.clone());
        journal.propose(entry).await.unwrap();
    }
    journal.shutdown().await;
    let path = PathBuf::from("/journal/log-00000000000000000001");
    let whole = disk.content(&path);
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let last_entry = used - 1200;
    for end in (last_entry - 40..used - 1).step_by(31) {
        for is_shortened in [false, true] {
            let disk = disk.after_kill();
            cut(&disk, &path, end, is_shortened);
            assert_eq!(entries_of(&disk).await.unwrap(), entries[..2], "cut at {end} of {used}");
            let journal = Journal::open(options(&disk), Memory::default()).await.unwrap();
            journal.propose(b"next".to_vec()).await.unwrap();
            journal.shutdown().await;
            assert_eq!(entries_of(&disk).await.unwrap().last().unwrap(), b"next");
        }
    }
}

fn cut(disk: &Disk, path: &Path, end: usize, is_shortened: bool) {
    use journal::files::Files;
    let file = disk.open(path).unwrap();
    let length = disk.content(path).len();
    file.set_length(end as u64).unwrap();
    if !is_shortened {
        file.set_length(length as u64).unwrap();
    }
    file.sync().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn full_disk_refuses_and_goes_on_when_there_is_room() {
    let disk = Disk::new(9);
    let options =
        Options { reserve_bytes: 50_000, segment_bytes: 20_000, snapshot_every_entries: u64::MAX, ..options(&disk) };
    let (machine, seen) = Memory::new();
    let journal = Journal::open(options.clone(), machine).await.unwrap();
    let mut room = journal.room();
    journal.propose(vec![0; 1000]).await.unwrap();
    while !disk.names().iter().any(|name| name.ends_with("reserve")) {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let used: usize = disk.names().iter().map(|name| disk.content(name).len()).sum();
    disk.set_faults(Faults { room_bytes: Some(used + 30_000), ..Faults::default() });
    let mut written = vec![vec![0; 1000]];
    let mut n = 0;
    let refused = loop {
        n += 1;
        let mut entry = numbered(n);
        entry.resize(3000, 7);
        match journal.propose(entry.clone()).await {
            Ok(_) => written.push(entry),
            Err(error) => break error,
        }
        assert!(n < 1000, "the disk is never full");
    };
    // The write that found the disk full was finished in the reserve.
    assert_eq!(refused, ProposeError::DiskFull);
    assert_eq!(*room.borrow_and_update(), DiskRoom::Reserve);
    // What is vital goes on, until nothing does.
    journal.propose_vital(vec![1; 1000]).await.unwrap();
    written.push(vec![1; 1000]);
    let vital = journal.clone();
    let stuck = tokio::spawn(async move { vital.propose_vital(vec![2; 60_000]).await });
    room.wait_for(|room| *room == DiskRoom::None).await.unwrap();
    assert_eq!(journal.propose_vital(vec![3; 10]).await, Err(ProposeError::DiskFull));
    assert_eq!(stuck.await.unwrap(), Err(ProposeError::WaitsForRoom));
    // Room, and all goes on without a restart; what was begun is done.
    disk.set_faults(Faults::default());
    written.push(vec![2; 60_000]);
    room.wait_for(|room| *room == DiskRoom::Ample).await.unwrap();
    journal.propose(vec![4; 10]).await.unwrap();
    written.push(vec![4; 10]);
    journal.shutdown().await;
    assert_eq!(seen.lock().unwrap().entries, written);
    assert_eq!(entries_of(&disk.after_power_loss()).await.unwrap(), written);
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshot_without_room_is_given_up_and_nothing_is_lost() {
    let disk = Disk::new(10);
    let options = Options { snapshot_every_entries: u64::MAX, keep_batches: 1, ..options(&disk) };
    let journal = Journal::open(options.clone(), Memory::default()).await.unwrap();
    let mut written = Vec::new();
    for n in 0..50 {
        let mut entry = numbered(n);
        entry.resize(2000, 1);
        journal.propose(entry.clone()).await.unwrap();
        written.push(entry);
    }
    let used: usize = disk.names().iter().map(|name| disk.content(name).len()).sum();
    disk.set_faults(Faults { room_bytes: Some(used + 20_000), ..Faults::default() });
    assert_eq!(journal.snapshot_now().await, Err(ProposeError::DiskFull));
    let is_left = |disk: &Disk| disk.names().iter().any(|name| name.extension().is_some_and(|kind| kind == "new"));
    assert!(!is_left(&disk), "{:?}", disk.names());
    journal.propose(vec![5; 10]).await.unwrap();
    written.push(vec![5; 10]);
    assert_eq!(entries_of(&disk.after_kill()).await.unwrap(), written);
    disk.set_faults(Faults::default());
    journal.snapshot_now().await.unwrap();
    journal.shutdown().await;
    assert_eq!(entries_of(&disk.after_power_loss()).await.unwrap(), written);
}

#[tokio::test(flavor = "multi_thread")]
async fn journal_that_waits_for_room_stops_when_told() {
    let disk = Disk::new(11);
    let journal = Journal::open(options(&disk), Memory::default()).await.unwrap();
    let mut room = journal.room();
    disk.set_faults(Faults { room_bytes: Some(0), ..Faults::default() });
    let waiting = journal.clone();
    let waiting = tokio::spawn(async move { waiting.propose(vec![1; 1 << 20]).await });
    room.wait_for(|room| *room == DiskRoom::None).await.unwrap();
    journal.shutdown().await;
    assert!(waiting.await.unwrap().is_err());
}
