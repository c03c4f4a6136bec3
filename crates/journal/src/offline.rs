//! Reading a journal that nobody has open: for copies, and for what is left after a disaster.

use openraft::EntryPayload;

use crate::error::OpenError;
use crate::hard_state;
use crate::index::Index;
use crate::machine::Machine;
use crate::options::Options;
use crate::recovery::{self, Recovered};

/// So much is read at once.
const PIECE_BYTES: usize = 16 << 20;

/// Applies all that the journal holds, whichever member's it is; how many entries that were. The end of the log may hold what no majority
/// ever had: whoever reads a journal like this has nobody left to ask.
pub fn read_offline<M: Machine>(options: &Options, machine: &mut M) -> Result<u64, OpenError> {
    let (_lock, _) = recovery::lock(options)?;
    let mut options = options.clone();
    match hard_state::load(&*options.files, &options.dir)? {
        Some(state) => options.member = state.member,
        None => {
            let what = "there is no journal here".into();
            return Err(OpenError::Missing { file: hard_state::path(&options.dir), what });
        }
    }
    let Recovered { purged, entries, committed, snapshot, .. } = recovery::recover(&options)?;
    let (mut n_entries, mut next) = (0, 0);
    if let Some((file, cover, data)) = snapshot {
        machine.restore(&data).map_err(|why| OpenError::Snapshot { file, why })?;
        n_entries = cover.n_entries;
        next = cover.meta.last_log_id.map_or(0, |id| id.index + 1);
    }
    let end = entries.back().map_or(0, |(id, _)| id.index + 1);
    let index = Index::new(options.files.clone(), options.dir.clone(), purged, entries, committed);
    while next < end {
        let read = index.read(next, end, PIECE_BYTES).map_err(OpenError::io(&options.dir))?;
        let Some(last) = read.last() else { break };
        next = last.log_id.index + 1;
        for entry in &read {
            if let EntryPayload::Normal(batch) = &entry.payload {
                for one in batch.entries.iter() {
                    n_entries += 1;
                    machine.apply(n_entries, one).map_err(|why| OpenError::Entry { index: n_entries, why })?;
                }
            }
        }
    }
    machine.batch_applied();
    Ok(n_entries)
}
