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

/// What an association comes to, with what those above it say: the scheduler looks at thousands, and whole ones are large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terse {
    /// Which of `togethers` it says; the first says nothing.
    pub together: u32,
    pub parent: AssociationId,
    /// The next above it that says something of jobs together; 0: nobody.
    pub above: AssociationId,
    /// Which of `eachs` holds for its jobs; the first says nothing.
    pub each: u32,
    /// How many of its own jobs may run; `u32::MAX`: any number.
    pub max_jobs: u32,
    /// A number for the user, in the order of their names, and one for the account: the same in all their associations. 0: none.
    pub user: u32,
    pub account: u32,
    /// What is said of each job lets any job pass.
    pub lets_any: bool,
    /// Of this cluster.
    is_here: bool,
    /// So are all above it.
    pub is_whole: bool,
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

    /// What all of them come to, by number; the first is nobody. For accounts that are not being changed.
    pub fn all_tersely(&self) -> &[Terse] {
        &self.all_terse().associations
    }

    /// What associations say of all their jobs together. For accounts that are not being changed.
    pub fn togethers(&self) -> &[Together] {
        &self.all_terse().togethers
    }

    /// What associations, and those above them, say of each of their jobs. For accounts that are not being changed.
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
            let mut all = vec![Terse::default(); self.last_association as usize + 1];
            let names = self.associations.values().filter(|one| one.is_here() && !one.user.is_empty());
            let names: BTreeSet<&str> = names.map(|one| one.user.as_str()).collect();
            let users: BTreeMap<&str, u32> = names.iter().copied().zip(1..).collect();
            // From 1 on.
            let mut accounts = BTreeMap::from([("", 0)]);
            let mut togethers = BTreeMap::from([(Together::default(), 0)]);
            for one in self.associations.values().filter(|one| one.is_here()) {
                let terse = Terse {
                    together: number(&mut togethers, Together::of(&one.limits)),
                    parent: one.parent,
                    user: users.get(one.user.as_str()).copied().unwrap_or(0),
                    account: number(&mut accounts, one.account.as_str()),
                    is_here: true,
                    ..Terse::default()
                };
                if let Some(place) = all.get_mut(one.id as usize) {
                    *place = terse;
                }
            }
            let users = names.into_iter().map(str::to_owned).collect();
            let eachs = self.heed_above(&mut all);
            AllTerse { associations: all, togethers: by_number(togethers), eachs, users }
        };
        self.index.terse.get_or_init(make)
    }

    /// Adds what those above say. What is said of each job, by all of them.
    fn heed_above(&self, all: &mut [Terse]) -> Vec<EachJob> {
        all[0] = Terse { max_jobs: u32::MAX, lets_any: true, is_whole: true, ..Terse::default() };
        let mut said = BTreeMap::from([(EachJob::default(), 0)]);
        let mut eachs = vec![EachJob::default()];
        for id in 1..all.len() {
            // Up to one that is known already, and down again.
            let next = |id: &usize| Some(all[*id].parent as usize).filter(|parent| *parent < all.len());
            let is_open = |id: &usize| all[*id].is_here && !all[*id].is_whole;
            let mut lineage: Vec<usize> =
                std::iter::successors(Some(id), next).take_while(is_open).take(all.len()).collect();
            while let Some(id) = lineage.pop() {
                let parent = all.get(all[id].parent as usize).copied().unwrap_or_default();
                let Some(one) = self.associations.get(&(id as AssociationId)).filter(|_| parent.is_whole) else {
                    break;
                };
                // How many jobs a user may run stands beside: few say more.
                let max_jobs = one.limits.max_jobs;
                let mut each = EachJob::of(&one.limits);
                if !one.user.is_empty() {
                    each.max_jobs = None;
                }
                let each = each.or(&eachs[parent.each as usize]);
                let terse = &mut all[id];
                terse.max_jobs = max_jobs.or(each.max_jobs).unwrap_or(u32::MAX);
                terse.each = number(&mut said, each);
                terse.lets_any = each.lets_any();
                terse.above = if parent.together != 0 { terse.parent } else { parent.above };
                terse.is_whole = true;
                if terse.each as usize == eachs.len() {
                    eachs.push(each);
                }
            }
        }
        eachs
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

#[cfg(test)]
mod tests {
    use super::super::{Association, Limits, Shares};
    use super::*;

    fn association(id: AssociationId, parent: AssociationId, user: &str, limits: Limits) -> Association {
        let (cluster, account, user) = (String::new(), "physics".to_string(), user.to_string());
        let (partition, comment, default_qos) = Default::default();
        Association {
            id,
            cluster,
            parent,
            account,
            user,
            partition,
            shares: Shares::default(),
            limits,
            qos: None,
            default_qos,
            comment,
        }
    }

    fn accounts(all: impl IntoIterator<Item = Association>) -> Accounts {
        let associations: BTreeMap<_, _> = all.into_iter().map(|one| (one.id, one)).collect();
        let last_association = associations.keys().max().copied().unwrap_or(0);
        Accounts { associations, last_association, ..Accounts::default() }
    }

    #[test]
    fn an_association_heeds_all_above_it() {
        let root = Limits { grp_jobs: Some(100), max_wall: Some(60), max_jobs: Some(9), ..Limits::default() };
        let silent = Limits::default();
        let ann = Limits { max_jobs: Some(3), grp_jobs: Some(5), ..Limits::default() };
        // Children have the lower numbers.
        let all = accounts([
            association(1, 3, "ann", ann),
            association(2, 3, "bob", silent.clone()),
            association(3, 4, "", silent),
            association(4, 0, "", root),
        ]);
        let [ann, bob] = [1, 2].map(|id| *all.terse(id).expect("it is here"));
        assert_eq!((ann.max_jobs, bob.max_jobs), (3, 9));
        assert_eq!((ann.above, bob.above), (4, 4), "the account between them says nothing of jobs together");
        assert_eq!(all.togethers()[ann.together as usize].jobs, Some(5));
        for one in [ann, bob] {
            assert!(one.is_whole && !one.lets_any);
            assert_eq!(all.eachs()[one.each as usize].max_wall, Some(60));
        }
        assert_eq!((ann.user, bob.user), (1, 2));
    }

    #[test]
    fn what_hangs_in_the_air_is_not_whole() {
        let lost = association(1, 7, "ann", Limits::default());
        let circle = [(2, 3), (3, 2)].map(|(id, parent)| association(id, parent, "", Limits::default()));
        let all = accounts([lost].into_iter().chain(circle));
        assert!((1..=3).all(|id| !all.terse(id).expect("it is here").is_whole));
        assert!(all.all_tersely()[0].is_whole, "nobody lets everybody pass");
    }
}
