//! The controller's own certificate: made with the cluster, shown to others.
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::trust::{RecoveryIdentity, TrustChange};
use model::{Caller, Command, Timestamp};
use state::Cluster;
use wire::tls::Principal;
use wire::tls::authority::Authority;
use wire::tls::identity::{Keyring, NewKey};

use crate::leading::Ground;
use crate::members::ClusterJournal;

/// Where a controller keeps what it shows; beside its journal.
pub fn dir(state_dir: &Path) -> PathBuf {
    state_dir.join("tls")
}

/// Where this state expects controllers and nodes to call from.
pub fn addresses_of_members(cluster: &Cluster, journal: &ClusterJournal) -> Vec<String> {
    let of_nodes = cluster.nodes().map(|node| node.machine.address.clone()).filter(|address| !address.is_empty());
    journal.standing().members.into_iter().map(|member| member.address).chain(of_nodes).collect()
}

/// As long as anybody may keep a backup.
const RECOVERY_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The key of the authority lies here only until the state has it.
pub const AUTHORITY_KEY: &str = "ca.key";

/// Puts the authority that `spur init` made into the state, where all controllers find it.
pub async fn hand_in_authority(ground: &Ground, door: &crate::door::Door) {
    let Some(keyring) = &ground.keyring else { return };
    let file = keyring.dir.join(AUTHORITY_KEY);
    if ground.published.now().trust().ca_key.is_empty()
        && let Ok(ca_key) = std::fs::read_to_string(&file)
    {
        let own = keyring.now();
        let (ca_certificate, fingerprint) = (own.ca_pem.clone(), own.fingerprint.clone());
        let until = Timestamp::from_secs(own.until_secs);
        let change = TrustChange::Found { ca_certificate, ca_key, fingerprint, until };
        if let Err(refusal) = door.propose(Caller::SYSTEM, Command::Trust(change)).await {
            tracing::error!(?refusal, "the authority could not be handed in");
            return;
        }
    }
    let cluster = ground.published.now();
    if !cluster.trust().ca_key.is_empty() {
        let _ = std::fs::remove_file(file);
        show_own(&cluster, keyring, door).await;
        keep_recovery(&cluster, keyring, door).await;
    }
}

/// Agents know beforehand what a controller shows that is made from a backup. What is in use is no reserve any more.
async fn keep_recovery(cluster: &Cluster, keyring: &Keyring, door: &crate::door::Door) {
    let known = &cluster.trust().recovery.fingerprint;
    if cluster.rules() < 3 || !(known.is_empty() || *known == keyring.now().fingerprint) {
        return;
    }
    let made = NewKey::make().map_err(|error| error.to_string()).and_then(|key| {
        let authority = Authority::open(&cluster.trust().ca_key).map_err(|error| error.to_string())?;
        let issued = authority.sign(&Principal::Controller(1), &key.public(), RECOVERY_LIFETIME);
        let issued = issued.map_err(|error| error.to_string())?;
        Ok(RecoveryIdentity { certificate: issued.pem, key: key.pem(), fingerprint: issued.fingerprint })
    });
    let recovery = match made {
        Ok(recovery) => Box::new(recovery),
        Err(error) => return tracing::error!(error, "no certificate could be made for a controller from a backup"),
    };
    if let Err(refusal) = door.propose(Caller::SYSTEM, Command::Trust(TrustChange::KeepRecovery { recovery })).await {
        tracing::error!(?refusal, "a certificate for a controller from a backup could not be kept");
    }
}

/// A controller that was made from a backup has a certificate that the backup does not know.
async fn show_own(cluster: &Cluster, keyring: &Keyring, door: &crate::door::Door) {
    let own = keyring.now();
    let trust = cluster.trust();
    let (Principal::Controller(member), true) = (&own.principal, cluster.rules() >= 3) else { return };
    if trust.certificates.contains_key(&own.fingerprint) || trust.is_revoked(&own.fingerprint) {
        return;
    }
    let until = Timestamp::from_secs(own.until_secs);
    let change = TrustChange::Lead { member: *member, fingerprint: own.fingerprint.clone(), until };
    if let Err(refusal) = door.propose(Caller::SYSTEM, Command::Trust(change)).await {
        tracing::error!(?refusal, "the own certificate could not be made known");
    }
}
