//! Who has a place where, ready for questions: made when first asked for, and never copied.
use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::{Accounts, AssociationId};

type Places = BTreeMap<String, BTreeMap<String, Vec<AssociationId>>>;

#[derive(Debug, Default)]
pub struct Index {
    /// Associations of this cluster by user and account.
    places: OnceLock<Places>,
    most_priority: OnceLock<u32>,
}

/// Whoever changes a copy finds nothing old in it.
impl Clone for Index {
    fn clone(&self) -> Index {
        Index::default()
    }
}

impl PartialEq for Index {
    fn eq(&self, _: &Index) -> bool {
        true
    }
}

impl Accounts {
    /// Associations of the user in the account, in this cluster. For accounts that are not being changed.
    pub(super) fn places_of(&self, account: &str, user: &str) -> &[AssociationId] {
        let make = || {
            let mut places = Places::new();
            for one in self.associations.values().filter(|one| one.is_here()) {
                let of_user = places.entry(one.user.clone()).or_default();
                of_user.entry(one.account.clone()).or_default().push(one.id);
            }
            places
        };
        let places = self.index.places.get_or_init(make);
        places.get(user).and_then(|accounts| accounts.get(account)).map_or(&[], Vec::as_slice)
    }

    /// The highest priority that an association of this cluster has. For accounts that are not being changed.
    pub fn most_association_priority(&self) -> u32 {
        let own = || self.associations.values().filter(|one| one.is_here()).filter_map(|one| one.limits.priority).max();
        *self.index.most_priority.get_or_init(|| own().unwrap_or(0))
    }
}
