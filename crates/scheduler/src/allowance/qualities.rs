//! What is left in qualities of service to all, to each account and to each user, with what this pass has started taken off.
//!
//! A job is in one quality of service, and its partition may have another; where both speak of the same, the rules know who is heard.
use std::hint::black_box;

use model::accounts::{EachJob, Together};
use model::{Job, Partition};
use state::Cluster;
use state::limits::{self, Gist, Headroom, LeftInQos, Quality, Verdict, Want};

pub(super) struct Qualities<'a> {
    cluster: &'a Cluster,
    /// Every one leaves it to associations.
    pub are_plain: bool,
    known: Vec<Known<'a>>,
    pairs: Vec<Pair<'a>>,
    /// Of all, of accounts and of users; the first limits nothing.
    rooms: Vec<Headroom>,
}

struct Known<'a> {
    quality: Quality<'a>,
    all: u32,
    /// By their numbers; 0: not looked up yet.
    accounts: Vec<u32>,
    users: Users,
    /// Something has started for somebody who has no number.
    is_unsure: bool,
}

/// What users have, or what is left to them, by their numbers.
enum Users {
    /// Where they are limited in jobs, CPUs and memory, or in nothing.
    Have(Vec<Gist>),
    /// Those who have nothing share one room, until they do.
    Rooms(Vec<u32>, u32),
}

/// What there was before something else was taken.
#[derive(Default)]
pub(super) struct Before {
    rooms: Vec<(u32, Headroom)>,
    users: Vec<(u32, u32, Gist)>,
}

/// A job's own quality of service and its partition's.
struct Pair<'a> {
    own: &'a str,
    partition: &'a Partition,
    terms: Terms,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Terms {
    /// For which ones a start counts.
    counts_for: [Option<u32>; 2],
    all: Option<u32>,
    account: Option<u32>,
    user: Option<u32>,
    each: Option<u32>,
    /// Only the rules know.
    is_special: bool,
    /// Minutes count more, or less, than they are.
    pub is_weighed: bool,
    /// How many jobs its user may run is not for the association to say.
    pub decides_jobs: bool,
    /// Of what else associations say, some is not asked.
    pub decides_more: bool,
    pub min_priority: Option<u32>,
}

/// Who asks: numbers of the user and the account, 0 if they have none.
#[derive(Clone, Copy)]
pub(super) struct Asker {
    pub user: u32,
    pub account: u32,
}

impl<'a> Qualities<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        Qualities {
            cluster,
            are_plain: cluster.accounts().qos.values().all(limits::leaves_it_to_associations),
            known: Vec::new(),
            pairs: Vec::new(),
            rooms: vec![Headroom::ALL],
        }
    }

    pub fn fetch_user(&self, number: u32) {
        for known in &self.known {
            if let Users::Have(all) = &known.users {
                black_box(all.get(number as usize).map(|has| has.jobs));
            }
        }
    }

    /// None: only the rules know.
    pub fn terms(&mut self, job: &'a Job, partition: &'a Partition) -> Option<Terms> {
        let terms = self.any_terms(job, partition);
        (!terms.is_special).then_some(terms)
    }

    fn any_terms(&mut self, job: &'a Job, partition: &'a Partition) -> Terms {
        if self.are_plain {
            return Terms::default();
        }
        let (own, of_partition) = (job.spec.qos.as_str(), partition.qos.as_str());
        let is_same = |known: &&Pair| std::ptr::eq(known.partition, partition) && is_same_name(known.own, own);
        if let Some(pair) = self.pairs.iter().find(is_same) {
            return pair.terms;
        }
        let terms = self.terms_of(own, of_partition);
        self.pairs.push(Pair { own, partition, terms });
        terms
    }

    fn terms_of(&mut self, own: &str, of_partition: &str) -> Terms {
        let own = self.know(own);
        let counts_for = [own, self.know(of_partition).filter(|other| Some(*other) != own)];
        let mut terms = Terms { counts_for, ..Terms::default() };
        for at in counts_for.into_iter().flatten() {
            let Quality { qos, all, account, user, each } = &self.known[at as usize].quality;
            let speaks = |together: &Together| !together.is_none();
            // Two that speak of the same are more than is known here.
            let mut note = |place: &mut Option<u32>, speaks: bool| {
                terms.is_special |= speaks && place.is_some();
                *place = if speaks { Some(at) } else { *place };
            };
            note(&mut terms.all, speaks(all));
            note(&mut terms.account, speaks(account));
            note(&mut terms.user, speaks(user));
            note(&mut terms.each, *each != EachJob::default());
            terms.is_special |= self.known[at as usize].quality.is_special();
            // Of its partition's QOS a job has nothing but limits.
            terms.is_weighed |= Some(at) == own && self.known[at as usize].quality.is_weighed();
            terms.decides_jobs |= user.jobs.is_some();
            let more_of_each = EachJob { min_priority: None, ..*each } != EachJob::default();
            terms.decides_more |= speaks(all) || more_of_each;
            terms.min_priority = terms.min_priority.or(qos.limits.min_priority);
        }
        terms
    }

    fn know(&mut self, name: &str) -> Option<u32> {
        let qos = self.cluster.accounts().qos.get(name)?;
        let known = self.known.iter().position(|known| known.quality.qos.id == qos.id);
        let at = known.unwrap_or_else(|| {
            let quality = Quality::of(qos);
            let all = if quality.all.is_none() { 0 } else { self.add(quality.left_to_all(self.cluster)) };
            let all_users = || self.cluster.tally().copy_of_users_in(&qos.name).filter(|_| quality.user.is_plain());
            let users = match quality.user.is_none() {
                true => Users::Have(Vec::new()),
                false => all_users().map_or_else(|| self.rooms_of_users(&quality), Users::Have),
            };
            self.known.push(Known { quality, all, accounts: Vec::new(), users, is_unsure: false });
            self.known.len() - 1
        });
        Some(at as u32)
    }

    /// Those who have something stand in order: no user is looked up.
    fn rooms_of_users(&mut self, quality: &Quality) -> Users {
        let names = self.cluster.accounts().users_by_number();
        let untouched = quality.left_to_others();
        let others = self.add(untouched);
        let mut users = vec![others; names.len() + 1];
        let mut n_before = 0;
        let less = quality.left_to_users(self.cluster).filter(|(_, left)| *left != untouched);
        for (user, left) in less {
            n_before += how_many_before(&names[n_before..], user);
            if names.get(n_before).is_some_and(|name| name == user) {
                users[n_before + 1] = self.add(left);
            }
        }
        Users::Rooms(users, others)
    }

    fn add(&mut self, room: Headroom) -> u32 {
        self.rooms.push(room);
        self.rooms.len() as u32 - 1
    }

    /// What qualities of service say; associations come after them.
    pub fn verdict(&mut self, terms: &Terms, job: &'a Job, asker: Asker, want: &Want) -> Verdict {
        if [terms.all, terms.account, terms.user, terms.each] == [None; 4] {
            return Verdict::Passes;
        }
        let account = terms.account.map_or(Some(0), |at| self.account(at, job, asker));
        let user = terms.user.map_or(Some(Headroom::ALL), |at| self.left_to_user(at, asker, want));
        let (Some(account), Some(user)) = (account, user) else { return Verdict::Unsaid };
        let room = |at: u32| &self.rooms[at as usize];
        let known = |at: Option<u32>| at.map(|at| &self.known[at as usize]);
        let silent = EachJob::default();
        let left = LeftInQos {
            all: room(known(terms.all).map_or(0, |known| known.all)),
            account: room(account),
            user: &user,
            each: known(terms.each).map_or(&silent, |known| &known.quality.each),
        };
        left.verdict(want)
    }

    /// The job starts and has that. What there was before is noted.
    pub fn take(
        &mut self,
        job: &'a Job,
        partition: &'a Partition,
        asker: Asker,
        want: &Want,
        mut before: Option<&mut Before>,
    ) {
        let terms = self.any_terms(job, partition);
        for at in terms.counts_for.into_iter().flatten() {
            let quality = &self.known[at as usize].quality;
            let (has_accounts, has_users) = (!quality.account.is_none(), !quality.user.is_none());
            let account = if has_accounts { self.account(at, job, asker) } else { Some(0) };
            let user = if has_users { self.take_for_user(at, asker, want, before.as_deref_mut()) } else { Some(0) };
            let known = &mut self.known[at as usize];
            known.is_unsure |= account.is_none() || user.is_none();
            for room in [known.all, account.unwrap_or(0), user.unwrap_or(0)].into_iter().filter(|room| *room != 0) {
                let left = &mut self.rooms[room as usize];
                if let Some(before) = &mut before {
                    before.rooms.push((room, *left));
                }
                left.take(want);
            }
        }
    }

    /// What there was is there again.
    pub fn put_back(&mut self, before: Before) {
        before.rooms.into_iter().rev().for_each(|(at, room)| self.rooms[at as usize] = room);
        for (at, user, gist) in before.users.into_iter().rev() {
            if let Users::Have(all) = &mut self.known[at as usize].users {
                all[user as usize] = gist;
            }
        }
    }

    fn account(&mut self, at: u32, job: &Job, asker: Asker) -> Option<u32> {
        let known = &mut self.known[at as usize];
        if asker.account == 0 || known.is_unsure {
            return None;
        }
        match known.accounts.get(asker.account as usize) {
            Some(room) if *room != 0 => return Some(*room),
            _ => (),
        }
        let left = known.quality.left_to_account(self.cluster, &job.spec.account);
        self.rooms.push(left);
        let room = self.rooms.len() as u32 - 1;
        note(&mut known.accounts, asker.account, room);
        Some(room)
    }

    /// What is left to the user; None: only the rules know. Whoever certainly may have that may have anything.
    fn left_to_user(&self, at: u32, asker: Asker, want: &Want) -> Option<Headroom> {
        let known = &self.known[at as usize];
        if asker.user == 0 || known.is_unsure {
            return None;
        }
        match &known.users {
            Users::Have(all) => {
                let gist = all.get(asker.user as usize)?;
                match gist.certainly_leaves(&known.quality.user, want) {
                    true => Some(Headroom::ALL),
                    false => Some(Headroom::beside(&known.quality.user, gist)),
                }
            }
            Users::Rooms(rooms, _) => rooms.get(asker.user as usize).map(|room| self.rooms[*room as usize]),
        }
    }

    /// The user has that too: at once, or when it is taken from the room that is told. None: nobody knows the user here.
    fn take_for_user(&mut self, at: u32, asker: Asker, want: &Want, before: Option<&mut Before>) -> Option<u32> {
        let known = &mut self.known[at as usize];
        if asker.user == 0 || known.is_unsure {
            return None;
        }
        match &mut known.users {
            Users::Have(all) => {
                let gist = all.get_mut(asker.user as usize)?;
                if let Some(before) = before {
                    before.users.push((at, asker.user, *gist));
                }
                gist.add(want);
                Some(0)
            }
            Users::Rooms(rooms, others) => {
                let room = rooms.get_mut(asker.user as usize)?;
                if *room == *others {
                    // From now on it is the user's own.
                    self.rooms.push(self.rooms[*others as usize]);
                    *room = self.rooms.len() as u32 - 1;
                }
                Some(*room)
            }
        }
    }
}

/// Names are short, and asked for of every job: a call would cost more.
fn is_same_name(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).all(|(one, other)| one == other)
}

/// How many names stand before this one: few, of those who follow one another.
fn how_many_before(names: &[String], name: &str) -> usize {
    let mut reach = 1;
    while names.get(reach - 1).is_some_and(|other| other.as_str() < name) {
        reach *= 2;
    }
    let from = reach / 2;
    from + names[from..names.len().min(reach)].partition_point(|other| other.as_str() < name)
}

fn note(rooms: &mut Vec<u32>, number: u32, room: u32) {
    let at = number as usize;
    if rooms.len() <= at {
        rooms.resize((at + 1).next_power_of_two(), 0);
    }
    rooms[at] = room;
}

#[cfg(test)]
mod tests {
    use super::how_many_before;

    #[test]
    fn names_before_one_are_counted() {
        for n_names in 0..20 {
            let names: Vec<String> = (0..n_names).map(|number| format!("{:03}", number * 2)).collect();
            for wanted in 0..=2 * n_names {
                let name = format!("{wanted:03}");
                let expected = names.iter().filter(|other| **other < name).count();
                assert_eq!(how_many_before(&names, &name), expected, "{name} of {names:?}");
            }
        }
    }
}
