//! What an agent knows of the other machines: where controllers are, and whose word counts here. Told by the controllers, kept in a
//! file, so that an agent that restarts finds controllers that were added since it joined.
use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use model::agent::Neighbours;
use model::codec;
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
        keyring.distrust(&known.revoked);
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
        self.keyring.distrust(&told.revoked);
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

fn without_repetition(mut addresses: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    addresses.retain(|address| seen.insert(address.clone()));
    addresses
}
