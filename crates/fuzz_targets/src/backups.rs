//! Backups and snapshots: any bytes as the state of a cluster.
use controller::backup;
use controller::foreign_bytes::empty_machine;
use journal::Machine;
use model::{Caller, Command, Entry, Timestamp, codec};
use state::{Cluster, apply};

const MAGIC_AND_HASH: usize = 8 + 32;

pub fn seeds() -> Vec<Vec<u8>> {
    let clusters = [Cluster::of_today(), crate::commands::busy_cluster()];
    let backups = clusters.iter().map(|cluster| backup::wrap(&codec::encode(cluster)));
    backups.flat_map(|backup| [0u8, 1].map(|turn| [&[turn], backup.as_slice()].concat())).collect()
}

/// Whoever can change a backup can also compute its hash.
fn repaired(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() > MAGIC_AND_HASH {
        let hash = blake3::hash(&bytes[MAGIC_AND_HASH..]);
        bytes[8..MAGIC_AND_HASH].copy_from_slice(hash.as_bytes());
    }
    bytes
}

pub fn run(bytes: &[u8]) {
    let Some((flags, rest)) = bytes.split_first() else { return };
    let bytes = if flags % 4 == 0 { rest.to_vec() } else { repaired(rest.to_vec()) };
    let Ok(state) = backup::unwrap(&bytes) else { return };
    let mut machine = empty_machine();
    if machine.restore(state).is_ok() {
        // Members that are behind get what this one has.
        machine.restore(&machine.freeze()()).expect("what was taken can be handed on");
    }
    let command = Command::Restore { state: state.to_vec() };
    let entry = Entry { at: Timestamp::from_secs(2_000), by: Caller::SYSTEM, command };
    drop(apply(&mut Cluster::of_today(), &entry));
}
