//! Properties of the segments: whatever is appended, cut and dropped, and wherever the power goes out, what is read
//! back is the log as it was after one of the operations, and never an earlier one than the last that succeeded.

use std::sync::Arc;

use openraft::EntryPayload;
use proptest::prelude::*;

use crate::batch::{Batch, LogId, RaftEntry};
use crate::frame::{self, log_id};
use crate::options::Options;
use crate::recovery;
use crate::segments::Segments;
use crate::test_disk::{Disk, Faults};

#[derive(Debug, Clone)]
enum Operation {
    Append {
        n_entries: u64,
        size: usize,
    },
    /// Leaves this part of the log, in hundredths.
    Cut {
        kept: u64,
    },
    Restart,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (1..4u64, 0..900usize).prop_map(|(n_entries, size)| Operation::Append { n_entries, size }),
        1 => (0..100u64).prop_map(|kept| Operation::Cut { kept }),
        1 => Just(Operation::Restart),
    ]
}

/// The log as plain data.
type Model = Vec<RaftEntry>;

fn perform(segments: &mut Segments, model: &mut Model, operation: &Operation, term: u64) -> std::io::Result<()> {
    match operation {
        Operation::Append { n_entries, size } => {
            let first = model.len() as u64;
            let entries: Vec<_> = (first..first + n_entries).map(|index| entry(term, index, *size)).collect();
            let last = model.last().map(|entry| entry.log_id);
            model.extend(entries.iter().cloned());
            segments.append(&frame::encode(&entries, None), last).map(drop)
        }
        Operation::Cut { kept } => {
            model.truncate((model.len() as u64 * kept / 100) as usize);
            segments.cut_behind(model.last().map(|entry| entry.log_id))
        }
        Operation::Restart => Ok(()),
    }
}

fn entry(term: u64, index: u64, size: usize) -> RaftEntry {
    let entries = Arc::new(vec![vec![index as u8 + 1; size], vec![]]);
    RaftEntry { log_id: log_id(term, 1, index), payload: EntryPayload::Normal(Batch { ticket: 0, entries }) }
}

fn options(disk: &Disk) -> Options {
    Options { files: Arc::new(disk.clone()), segment_bytes: 3000, ..Options::new("/journal", 1) }
}

fn ids(model: &Model) -> Vec<LogId> {
    model.iter().map(|entry| entry.log_id).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_log_read_back_is_the_log_written(
        operations in prop::collection::vec(operation(), 1..30),
        seed in any::<u64>(),
        power_loss in 0..150u64,
    ) {
        let disk = Disk::new(seed);
        let mut segments = recovery::recover(&options(&disk)).unwrap().segments;
        disk.set_faults(Faults { power_loss_at_operation: Some(power_loss), ..Faults::default() });
        let mut model = Model::new();
        let mut before = Model::new();
        for (term, operation) in operations.iter().enumerate() {
            before = model.clone();
            if let Operation::Restart = operation {
                match recovery::recover(&options(&disk)) {
                    Ok(recovered) => {
                        let found: Vec<_> = recovered.entries.iter().map(|(id, _)| *id).collect();
                        prop_assert_eq!(found, ids(&model));
                        segments = recovered.segments;
                    }
                    Err(_) => break,
                }
            } else if perform(&mut segments, &mut model, operation, term as u64).is_err() {
                break;
            }
            before = model.clone();
        }
        let recovered = recovery::recover(&options(&disk.after_power_loss()));
        let recovered = recovered.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let found: Vec<_> = recovered.entries.iter().map(|(id, _)| *id).collect();
        prop_assert!(found == ids(&model) || found == ids(&before), "found {found:?}\nafter {:?}", ids(&model));
    }

    #[test]
    fn a_frame_reads_back_as_it_was_written(sizes in prop::collection::vec(0..3000usize, 1..5), committed: Option<u32>) {
        let entries: Vec<_> = sizes.iter().enumerate().map(|(at, size)| entry(7, 40 + at as u64, *size)).collect();
        let committed = committed.map(u64::from);
        let bytes = frame::encode(&entries, committed);
        prop_assert_eq!(bytes.len() % frame::ALIGNMENT, 0);
        let decoded = frame::decode(&bytes).unwrap();
        prop_assert_eq!(decoded.size, bytes.len());
        prop_assert_eq!(decoded.committed, committed);
        prop_assert_eq!(decoded.entries.len(), entries.len());
        for (decoded, written) in decoded.entries.iter().zip(&entries) {
            let (EntryPayload::Normal(found), EntryPayload::Normal(meant)) = (&decoded.payload, &written.payload) else {
                return Err(TestCaseError::fail("a batch became something else"));
            };
            prop_assert_eq!(decoded.log_id, written.log_id);
            prop_assert_eq!(&found.entries, &meant.entries);
        }
    }
}
