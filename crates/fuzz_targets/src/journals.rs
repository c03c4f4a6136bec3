//! A journal's directory with any content: recovery of hostile segments, snapshots and states.
use std::path::Path;
use std::sync::Arc;

use controller::foreign_bytes::empty_machine;
use journal::{Journal, Options};
use model::{Caller, Command, Entry, Timestamp, codec};

use crate::journal_files::{pack, unpack};
use crate::memory_disk::MemoryDisk;

const DIR: &str = "/journal";

fn options(disk: &MemoryDisk) -> Options {
    Options {
        segment_bytes: 2_048,
        snapshot_every_entries: 6,
        keep_batches: 2,
        files: Arc::new(disk.clone()),
        ..Options::new(DIR, 1)
    }
}

fn entry(number: u64) -> Vec<u8> {
    let command = match number {
        0 => Command::Reconfigure { config: Box::new(model::Config::default()) },
        _ => Command::Tick,
    };
    codec::encode(&Entry { at: Timestamp::from_secs(1_000 + number), by: Caller::SYSTEM, command })
}

/// What a real journal leaves after so many entries.
fn written(n_entries: u64) -> Vec<(String, Vec<u8>)> {
    let disk = MemoryDisk::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("an event loop");
    runtime.block_on(async {
        let journal = Journal::open(options(&disk), empty_machine()).await.expect("an empty disk");
        for number in 0..n_entries {
            drop(journal.propose(entry(number)).await.expect("a lone member leads"));
        }
        journal.shutdown().await;
    });
    disk.contents()
}

pub fn seeds() -> Vec<Vec<u8>> {
    let without = |files: &[(String, Vec<u8>)], prefix: &str| {
        files.iter().filter(|(name, _)| !name.starts_with(prefix)).cloned().collect::<Vec<_>>()
    };
    let long = written(20);
    let directories = [written(0), written(3), without(&long, "snapshot"), without(&long, "state"), long];
    directories.iter().map(|files| [&[1][..], &pack(files)].concat()).filter(|seed| seed.len() < 40_000).collect()
}

pub fn run(bytes: &[u8]) {
    let Some((flags, rest)) = bytes.split_first() else { return };
    let disk = unpack(rest, Path::new(DIR), flags % 4 != 0);
    let read = || journal::read_offline(&options(&disk), &mut empty_machine());
    if let Ok(n_entries) = read() {
        // Recovery has put the directory in order, and changes nothing the second time.
        assert_eq!(read().expect("what was recovered can be read"), n_entries);
    }
}
