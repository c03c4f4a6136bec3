//! Copies of the whole state: made while the controller runs or from a journal at rest, and brought back into a new one.
//!
//! ```text
//!  "SpurBak1"  blake3 of what follows (32 bytes)  the state, as in a snapshot
//! ```
//! A file `restore` in the state directory is taken up by the controller that leads first, before anything else is written.
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use journal::Machine;
use model::{Caller, Command, codec};
use wire::tls::Principal;
use wire::tls::authority::Authority;
use wire::tls::identity::{NewKey, write_identity};

use crate::door::{Door, Refusal};
use crate::machine::ClusterMachine;

const MAGIC: &[u8; 8] = b"SpurBak1";
/// In the state directory.
pub const PENDING: &str = "restore";

pub fn wrap(state: &[u8]) -> Vec<u8> {
    [MAGIC.as_slice(), blake3::hash(state).as_bytes(), state].concat()
}

/// The state in a backup, if the backup is whole.
pub fn unwrap(bytes: &[u8]) -> Result<&[u8]> {
    let rest = bytes.strip_prefix(MAGIC).context("this is no backup of a cluster")?;
    let (hash, state) = rest.split_at_checked(32).context("the backup is cut off")?;
    if blake3::hash(state).as_bytes() != hash {
        bail!("the backup is damaged");
    }
    Ok(state)
}

/// A backup of a journal that nobody uses.
pub fn of_journal_at_rest(state_dir: &Path) -> Result<Vec<u8>> {
    let (mut machine, _) = ClusterMachine::new();
    let options = journal::Options::new(state_dir.join("journal"), 1);
    journal::read_offline(&options, &mut machine)?;
    Ok(wrap(&machine.freeze()()))
}

/// Takes up a backup that waits. One that comes too late, because there is a state already, is put aside.
pub async fn take_up(state_dir: &Path, door: &Door) -> Result<()> {
    let file = state_dir.join(PENDING);
    let Ok(bytes) = fs::read(&file) else { return Ok(()) };
    let state = unwrap(&bytes).with_context(|| file.display().to_string())?.to_vec();
    match door.propose(Caller::SYSTEM, Command::Restore { state }).await {
        Ok(_) => tracing::info!("the state of the backup was taken up"),
        Err(Refusal::Rejected(reject)) => tracing::warn!(%reject, "the backup was not taken up"),
        Err(Refusal::NotWritten(why)) => bail!("the backup could not be written: {why}"),
    }
    fs::rename(&file, state_dir.join("restored")).with_context(|| file.display().to_string())
}

/// A cluster of many machines comes back on a new one: its authority is in the backup, so the new controller gets a certificate.
pub fn prepare_identity(state_dir: &Path) -> Result<()> {
    let dir = crate::tls::dir(state_dir);
    let Ok(bytes) = fs::read(state_dir.join(PENDING)) else { return Ok(()) };
    let cluster: state::Cluster = codec::decode(unwrap(&bytes)?)?;
    let trust = cluster.trust();
    if trust.ca_key.is_empty() || dir.join("identity.pem").exists() {
        return Ok(());
    }
    let lifetime = Duration::from_micros(cluster.config().controller.certificate_lifetime.0);
    let recovery = &trust.recovery;
    if !recovery.key.is_empty() {
        // Agents know this one. It renews itself like any other.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let shown = (trust.ca_certificate.as_str(), recovery.certificate.as_str(), recovery.key.as_str());
        write_identity(&dir, "identity.pem", shown, (now.as_secs(), (now + lifetime).as_secs()))?;
        return Ok(());
    }
    let failed = |error: wire::tls::authority::Failure| anyhow::anyhow!("cannot make a certificate: {error}");
    let key = NewKey::make()?;
    let authority = Authority::open(&trust.ca_key).map_err(failed)?;
    let issued = authority.sign(&Principal::Controller(1), &key.public(), lifetime).map_err(failed)?;
    key.keep(&dir, &trust.ca_certificate, &issued.pem, issued.from_secs, issued.until_secs)?;
    Ok(())
}
