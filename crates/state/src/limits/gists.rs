//! Of the counts: what plans ask of thousands at a time, by number instead of by name. Made from them, kept beside them, never written down.
use std::sync::Arc;

use imbl::{OrdMap, Vector};
use model::accounts::{Accounts, PerName, Qos, Together};

use super::quality::limits_users;
use super::want::Want;
use super::{Charge, Count, Party, Whom};

/// What the jobs of one party have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gist {
    pub cpus: u64,
    pub memory_mb: u64,
    pub jobs: u32,
    /// A plan has started something of which not all is known.
    pub is_unsure: bool,
}

impl Gist {
    pub fn of(count: &Count) -> Gist {
        let jobs = u32::try_from(count.jobs).unwrap_or(u32::MAX);
        Gist { cpus: count.held.cpu, memory_mb: count.held.mem, jobs, is_unsure: false }
    }

    /// One more job starts and has that.
    pub fn add(&mut self, want: &Want) {
        self.jobs = self.jobs.saturating_add(1);
        self.cpus = self.cpus.saturating_add(want.cpus);
        match want.memory_mb {
            Some(memory_mb) => self.memory_mb = self.memory_mb.saturating_add(memory_mb),
            None => self.is_unsure = true,
        }
    }

    /// Whether limits on jobs, CPUs and memory, and no others, let it have that too, as far as can be seen at a glance.
    pub fn certainly_leaves(&self, together: &Together, want: &Want) -> bool {
        let Together { held, jobs, .. } = together;
        let has_memory = || match want.memory_mb {
            Some(wanted) if !self.is_unsure => self.memory_mb.saturating_add(wanted) <= held.memory_mb,
            _ => false,
        };
        jobs.is_none_or(|most| self.jobs < most)
            && self.cpus.saturating_add(want.cpus) <= held.cpu
            && (held.memory_mb == PerName::NO_LIMIT || has_memory())
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Gists {
    /// By number.
    pub associations: Vector<Gist>,
    /// In each quality of service that limits users: by their numbers.
    pub users: OrdMap<Arc<str>, Vector<Gist>>,
}

impl Gists {
    pub fn new<'c>(accounts: &Accounts, counts: impl Iterator<Item = (Whom<'c>, &'c Count)>) -> Gists {
        let nobody = |n_places: usize| std::iter::repeat_n(Gist::default(), n_places).collect::<Vector<Gist>>();
        let of_users = |qos: &Qos| (Arc::from(qos.name.as_str()), nobody(accounts.users_by_number().len() + 1));
        let mut gists = Gists {
            associations: nobody(accounts.last_association as usize + 1),
            users: accounts.qos.values().filter(|qos| limits_users(qos)).map(of_users).collect(),
        };
        for (whom, count) in counts {
            gists.note(whom, Gist::of(count), || number_of(accounts, whom));
        }
        gists
    }

    /// What the party has now; the number of its user is asked for where that counts.
    pub fn note(&mut self, whom: Whom, gist: Gist, user: impl FnOnce() -> Option<u32>) {
        let (list, at) = match whom {
            Party::Association(id) => (&mut self.associations, Some(id)),
            Party::QosUser(qos, _) => match self.users.get_mut(qos) {
                Some(list) => (list, user()),
                None => return,
            },
            Party::Qos(_) | Party::QosAccount(..) => return,
        };
        let Some(at) = at.map(|at| at as usize) else { return };
        if list.get(at).is_some_and(|before| *before != gist) {
            list.set(at, gist);
        }
    }
}

/// The number of a user in a quality of service.
fn number_of(accounts: &Accounts, whom: Whom) -> Option<u32> {
    match whom {
        Party::QosUser(_, user) => accounts.user_number(user),
        Party::Association(_) | Party::Qos(_) | Party::QosAccount(..) => None,
    }
}

/// The number of a job's user, whose association is at hand, mostly.
pub(super) fn number_of_user(accounts: &Accounts, charge: &Charge) -> Option<u32> {
    let known = accounts.terse(charge.association).map(|terse| terse.user).filter(|user| *user != 0);
    known.or_else(|| accounts.user_number(&charge.user))
}
