//! What an agent knows of the other machines: where controllers are, and whose word counts here. Told by the controllers, kept in a
//! file, so that an agent that restarts finds controllers that were added since it joined.
use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use model::agent::Neighbours;
use model::codec;
use wire::tls::certificate_belief::CertificateBelief;
use wire::tls::identity::{Keyring, replace_bytes};

const FILE: &str = "neighbours";

/// Controllers on other machines.
#[derive(Clone, Debug)]
pub struct Remote {
    pub keyring: Arc<Keyring>,
    /// Where commands of other machines are heard; empty: nowhere.
    pub listen: String,
    /// Where they reach this agent; empty: wherever it listens.
    pub address: String,
    known: Arc<RwLock<Neighbours>>,
}

impl Remote {
    /// `configured` are the controllers that it has always known.
    pub fn new(keyring: Keyring, configured: Vec<String>, listen: String, address: String) -> Remote {
        let kept = std::fs::read(keyring.dir.join(FILE)).ok().and_then(|bytes| codec::decode(&bytes).ok());
        let mut known = kept.unwrap_or(Neighbours { root_squash: true, ..Neighbours::default() });
        // All may have moved meanwhile; what the administrator has written is there to help.
        known.controllers.extend(configured);
        known.controllers = without_repetition(known.controllers);
        keyring.believe(belief(&known));
        Remote { keyring: Arc::new(keyring), listen, address, known: Arc::new(RwLock::new(known)) }
    }

    pub fn know(&self, told: Neighbours) {
        if *self.now() == told || told.controllers.is_empty() {
            return;
        }
        tracing::info!(controllers = ?told.controllers, n_revoked = told.revoked.len(), "the cluster has changed");
        if let Err(error) = replace_bytes(&self.path(), &codec::encode(&told)) {
            tracing::error!(%error, "cannot keep what is known of the cluster");
        }
        self.keyring.believe(belief(&told));
        *self.known.write().expect("nobody panics with it") = told;
    }

    pub fn now(&self) -> std::sync::RwLockReadGuard<'_, Neighbours> {
        self.known.read().expect("nobody panics with it")
    }

    /// Any of them will do.
    pub fn controllers(&self) -> Vec<String> {
        self.now().controllers.clone()
    }

    fn path(&self) -> PathBuf {
        self.keyring.dir.join(FILE)
    }
}

fn belief(told: &Neighbours) -> CertificateBelief {
    CertificateBelief {
        taken_back: told.revoked.iter().cloned().collect(),
        controllers: told.standing.iter().map(|one| (one.fingerprint.clone(), one.until.secs())).collect(),
        recovery: told.recovery.clone(),
    }
}

fn without_repetition(mut addresses: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    addresses.retain(|address| seen.insert(address.clone()));
    addresses
}

#[cfg(test)]
mod tests {
    use model::Timestamp;
    use model::agent::StandingCertificate;
    use wire::tls::Principal;
    use wire::tls::authority::Authority;
    use wire::tls::identity::NewKey;

    use super::*;

    fn remote(dir: &std::path::Path) -> Remote {
        Remote::new(Keyring::open(dir).unwrap(), vec!["head:6817".into()], String::new(), String::new())
    }

    #[test]
    fn told_certificates_are_kept_and_earlier_releases_tell_none() {
        let dir = std::env::temp_dir().join(format!("spur-neighbours-{}", std::process::id()));
        let (authority, ca_key) = Authority::create().unwrap();
        let key = NewKey::make().unwrap();
        let lifetime = std::time::Duration::from_secs(3600);
        let issued = Authority::open(&ca_key).unwrap().sign(&Principal::Node("n1".into()), &key.public(), lifetime);
        let issued = issued.unwrap();
        key.keep(&dir, &authority, &issued.pem, issued.from_secs, issued.until_secs).unwrap();
        let believes = |remote: &Remote, mark: &str| remote.keyring.believes(Some(&Principal::Controller(1)), mark);
        let told = |marks: &[&str]| Neighbours {
            controllers: vec!["head:6817".into()],
            standing: marks
                .iter()
                .map(|mark| StandingCertificate { fingerprint: mark.to_string(), until: Timestamp(u64::MAX) })
                .collect(),
            ..Neighbours::default()
        };
        // A first join, and controllers of an earlier release.
        let first = remote(&dir);
        assert!(believes(&first, "any"));
        first.know(told(&[]));
        assert!(believes(&first, "any"));
        first.know(told(&["one", "two"]));
        assert!(believes(&first, "one") && believes(&first, "two") && !believes(&first, "any"));
        let again = remote(&dir);
        assert!(believes(&again, "two") && !believes(&again, "any"));
        std::fs::remove_dir_all(dir).unwrap();
    }
}
