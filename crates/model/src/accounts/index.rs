//! Who has a place where, ready for questions: made when first asked for, and never copied.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use super::{Accounts, AssociationId, EachJob, Together};

type Places = BTreeMap<String, BTreeMap<String, Vec<AssociationId>>>;

#[derive(Debug, Default)]
pub struct Index {
    /// Associations of this cluster by user and account.
    places: OnceLock<Places>,
    most_priority: OnceLock<u32>,
    terse: OnceLock<AllTerse>,
}

#[derive(Debug)]
struct AllTerse {
    /// By number.
    associations: Vec<Terse>,
    togethers: Vec<Together>,
    eachs: Vec<EachJob>,
    /// In order; the first has number 1.
    users: Vec<String>,
}

/// What most associations come to: the scheduler looks at thousands of them, and whole ones are large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terse {
    /// Which of `togethers` it says; the first says nothing.
    pub together: u32,
    pub parent: AssociationId,
    /// Which of `eachs` it says; the first says nothing.
    pub each: u32,
    pub max_jobs: Option<u32>,
    /// A number for the user, in the order of their names, and one for the account: the same in all their associations. 0: none.
    pub user: u32,
    pub account: u32,
    /// Of this cluster.
    pub is_here: bool,
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

/// As they come.
fn number<T: Ord>(known: &mut BTreeMap<T, u32>, one: T) -> u32 {
    let next = known.len() as u32;
    *known.entry(one).or_insert(next)
}

fn by_number<T: Ord>(known: BTreeMap<T, u32>) -> Vec<T> {
    let mut list: Vec<(u32, T)> = known.into_iter().map(|(one, number)| (number, one)).collect();
    list.sort_unstable_by_key(|(number, _)| *number);
    list.into_iter().map(|(_, one)| one).collect()
}

impl Accounts {
    /// What the association comes to; None if there is none. For accounts that are not being changed.
    pub fn terse(&self, id: AssociationId) -> Option<&Terse> {
        self.all_terse().associations.get(id as usize).filter(|terse| terse.is_here)
    }

    /// What associations say of all their jobs together. For accounts that are not being changed.
    pub fn togethers(&self) -> &[Together] {
        &self.all_terse().togethers
    }

    /// What associations say of each of their jobs. For accounts that are not being changed.
    pub fn eachs(&self) -> &[EachJob] {
        &self.all_terse().eachs
    }

    /// Everybody who has an association here, in order: the first has number 1. For accounts that are not being changed.
    pub fn users_by_number(&self) -> &[String] {
        &self.all_terse().users
    }

    /// The user's place in that order. For accounts that are not being changed.
    pub fn user_number(&self, name: &str) -> Option<u32> {
        let found = self.users_by_number().binary_search_by(|other| other.as_str().cmp(name));
        found.ok().map(|at| at as u32 + 1)
    }

    fn all_terse(&self) -> &AllTerse {
        let make = || {
            let absent = Terse { together: 0, parent: 0, each: 0, max_jobs: None, user: 0, account: 0, is_here: false };
            let mut all = vec![absent; self.last_association as usize + 1];
            let names = self.associations.values().filter(|one| one.is_here() && !one.user.is_empty());
            let names: BTreeSet<&str> = names.map(|one| one.user.as_str()).collect();
            let users: BTreeMap<&str, u32> = names.iter().copied().zip(1..).collect();
            // From 1 on.
            let mut accounts = BTreeMap::from([("", 0)]);
            let mut togethers = BTreeMap::from([(Together::default(), 0)]);
            let mut eachs = BTreeMap::from([(EachJob::default(), 0)]);
            for one in self.associations.values().filter(|one| one.is_here()) {
                // How many jobs a user may run stands beside: few say more.
                let mut each = EachJob::of(&one.limits);
                if !one.user.is_empty() {
                    each.max_jobs = None;
                }
                let terse = Terse {
                    together: number(&mut togethers, Together::of(&one.limits)),
                    parent: one.parent,
                    each: number(&mut eachs, each),
                    max_jobs: one.limits.max_jobs,
                    user: users.get(one.user.as_str()).copied().unwrap_or(0),
                    account: number(&mut accounts, one.account.as_str()),
                    is_here: true,
                };
                if let Some(place) = all.get_mut(one.id as usize) {
                    *place = terse;
                }
            }
            let users = names.into_iter().map(str::to_owned).collect();
            AllTerse { associations: all, togethers: by_number(togethers), eachs: by_number(eachs), users }
        };
        self.index.terse.get_or_init(make)
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
