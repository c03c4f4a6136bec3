//! Who has a place where, ready for questions: made when first asked for, and never copied.
use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::{Accounts, AssociationId, Limits};

type Places = BTreeMap<String, BTreeMap<String, Vec<AssociationId>>>;

#[derive(Debug, Default)]
pub struct Index {
    /// Associations of this cluster by user and account.
    places: OnceLock<Places>,
    most_priority: OnceLock<u32>,
    /// By number.
    terse: OnceLock<Vec<Terse>>,
}

/// What most associations come to: the scheduler looks at thousands of them, and whole ones are large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terse {
    pub parent: AssociationId,
    pub is_users: bool,
    pub max_jobs: Option<u32>,
    /// It limits what may start in other ways besides `max_jobs`; or there is none of that number.
    pub says_more: bool,
}

/// Of those that concern a start; how many jobs wait, and how important they are, is asked elsewhere.
fn says_more(limits: &Limits) -> bool {
    let others = Limits {
        max_jobs: None,
        grp_submit: None,
        max_submit: None,
        grp_jobs_accrue: None,
        max_jobs_accrue: None,
        priority: None,
        ..limits.clone()
    };
    others != Limits::default()
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
    /// What the association comes to. For accounts that are not being changed.
    pub fn terse(&self, id: AssociationId) -> Option<&Terse> {
        let make = || {
            let absent = Terse { says_more: true, ..Terse::default() };
            let mut all = vec![absent; self.last_association as usize + 1];
            for one in self.associations.values() {
                let max_jobs = one.limits.max_jobs;
                let (is_users, says_more) = (!one.user.is_empty(), says_more(&one.limits));
                if let Some(terse) = all.get_mut(one.id as usize) {
                    *terse = Terse { parent: one.parent, is_users, max_jobs, says_more };
                }
            }
            all
        };
        self.index.terse.get_or_init(make).get(id as usize)
    }

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
