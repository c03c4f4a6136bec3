//! Which certificates of the authority a daemon believes, as the cluster's state had it last.
use std::collections::{HashMap, HashSet};
use std::time::{SystemTime, UNIX_EPOCH};

use super::Principal;

/// What a daemon was told of certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateBelief {
    /// Taken back: nothing is said to who shows one.
    pub taken_back: HashSet<String>,
    /// Those of controllers, and until when each is shown, in seconds. Empty: an earlier release does not tell, or nobody
    /// has yet.
    pub controllers: HashMap<String, u64>,
    /// Shown by a controller that was made from a backup.
    pub recovery: String,
}

impl CertificateBelief {
    pub fn holds(&self, principal: Option<&Principal>, fingerprint: &str) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.holds_at(principal, fingerprint, now)
    }

    fn holds_at(&self, principal: Option<&Principal>, fingerprint: &str, now: u64) -> bool {
        if self.taken_back.contains(fingerprint) {
            return false;
        }
        match principal {
            // Who was away for as long as they all held cannot know the next ones.
            Some(Principal::Controller(_)) if self.controllers.values().any(|until| *until > now) => {
                self.controllers.contains_key(fingerprint) || self.recovery == fingerprint
            }
            // A node's certificate is held against the state whenever a node speaks for somebody.
            Some(Principal::Controller(_) | Principal::Node(_)) | None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn belief() -> CertificateBelief {
        CertificateBelief {
            taken_back: HashSet::from(["old".into()]),
            controllers: HashMap::from([("first".into(), 100), ("second".into(), 200)]),
            recovery: "spare".into(),
        }
    }

    #[test]
    fn controllers_show_what_stands_and_nothing_else() {
        let controller = Some(Principal::Controller(1));
        let holds = |fingerprint, now| belief().holds_at(controller.as_ref(), fingerprint, now);
        for fingerprint in ["first", "second", "spare"] {
            assert!(holds(fingerprint, 99), "{fingerprint}");
        }
        assert!(!holds("forged", 99) && !holds("old", 99) && !holds("", 99));
        // After all have ended unheard of, the authority's word is all there is.
        assert!(!holds("forged", 199) && holds("forged", 200) && !holds("old", 200));
    }

    #[test]
    fn releases_that_tell_nothing_are_believed_as_before() {
        let told = CertificateBelief { controllers: HashMap::new(), recovery: String::new(), ..belief() };
        assert!(told.holds_at(Some(&Principal::Controller(2)), "any", 1));
        assert!(!told.holds_at(Some(&Principal::Controller(2)), "old", 1));
        assert!(!belief().holds_at(Some(&Principal::Node("n1".into())), "old", 1));
    }
}
