//! The table of all counts. Written down by parties; kept apart by kind, so that whoever is looked for is found by a number or one name, and
//! what a change copies of the table are pointers.
use std::sync::Arc;

use imbl::OrdMap;
use model::accounts::AssociationId;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Count, Party, Whom};

type ByName = OrdMap<Arc<str>, Arc<Count>>;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counts {
    associations: OrdMap<AssociationId, Arc<Count>>,
    qualities: OrdMap<Arc<str>, OfQuality>,
}

/// What is counted in one quality of service.
#[derive(Clone, Debug, Default, PartialEq)]
struct OfQuality {
    all: Option<Arc<Count>>,
    users: ByName,
    accounts: ByName,
}

impl Counts {
    pub fn get(&self, whom: Whom) -> Option<&Count> {
        let found = match whom {
            Party::Association(id) => self.associations.get(&id),
            Party::Qos(qos) => self.qualities.get(qos)?.all.as_ref(),
            Party::QosUser(qos, user) => self.qualities.get(qos)?.users.get(user),
            Party::QosAccount(qos, account) => self.qualities.get(qos)?.accounts.get(account),
        };
        found.map(|count| &**count)
    }

    /// Changes what is counted for one; nothing is kept of a party of whom nothing is.
    pub fn change<T>(&mut self, whom: Whom, change: impl FnOnce(&mut Count) -> T) -> T {
        match whom {
            Party::Association(id) => {
                let count = Arc::make_mut(self.associations.entry(id).or_default());
                let found = change(count);
                if count.is_idle() {
                    self.associations.remove(&id);
                }
                found
            }
            Party::Qos(qos) => {
                let of_all = &mut self.quality(qos).all;
                let count = Arc::make_mut(of_all.get_or_insert_default());
                let found = change(count);
                if count.is_idle() {
                    *of_all = None;
                    self.forget_if_empty(qos);
                }
                found
            }
            Party::QosUser(qos, name) | Party::QosAccount(qos, name) => {
                let of_quality = self.quality(qos);
                let is_user = matches!(whom, Party::QosUser(..));
                let list = if is_user { &mut of_quality.users } else { &mut of_quality.accounts };
                let found = match list.get_mut(name) {
                    Some(count) => {
                        let count = Arc::make_mut(count);
                        let found = change(count);
                        if count.is_idle() {
                            list.remove(name);
                        }
                        found
                    }
                    None => {
                        let mut count = Count::default();
                        let found = change(&mut count);
                        if !count.is_idle() {
                            list.insert(Arc::from(name), Arc::new(count));
                        }
                        found
                    }
                };
                self.forget_if_empty(qos);
                found
            }
        }
    }

    fn quality(&mut self, qos: &str) -> &mut OfQuality {
        if !self.qualities.contains_key(qos) {
            self.qualities.insert(Arc::from(qos), OfQuality::default());
        }
        self.qualities.get_mut(qos).expect("just seen to")
    }

    fn forget_if_empty(&mut self, qos: &str) {
        if self.qualities.get(qos).is_some_and(|of| of.all.is_none() && of.users.is_empty() && of.accounts.is_empty()) {
            self.qualities.remove(qos);
        }
    }

    /// In the order of parties.
    pub fn iter(&self) -> impl Iterator<Item = (Whom<'_>, &Count)> {
        let associations = self.associations.iter().map(|(id, count)| (Party::Association(*id), &**count));
        let all = self.qualities.iter().filter_map(|(qos, of)| Some((Party::Qos(&**qos), &**of.all.as_ref()?)));
        let users = self
            .qualities
            .iter()
            .flat_map(|(qos, of)| of.users.iter().map(|(user, count)| (Party::QosUser(&**qos, &**user), &**count)));
        let accounts = self.qualities.iter().flat_map(|(qos, of)| {
            of.accounts.iter().map(|(account, count)| (Party::QosAccount(&**qos, &**account), &**count))
        });
        associations.chain(all).chain(users).chain(accounts)
    }

    /// Associations of which something is counted, in order.
    pub fn associations(&self) -> impl Iterator<Item = (AssociationId, &Count)> {
        self.associations.iter().map(|(id, count)| (*id, &**count))
    }

    /// Users of whom something is counted in this quality of service, in order.
    pub fn users_in(&self, qos: &str) -> impl Iterator<Item = (&str, &Count)> {
        let users = self.qualities.get(qos).into_iter().flat_map(|of| of.users.iter());
        users.map(|(user, count)| (&**user, &**count))
    }

    fn insert(&mut self, party: Party, count: Arc<Count>) {
        match party {
            Party::Association(id) => drop(self.associations.insert(id, count)),
            Party::Qos(qos) => self.qualities.entry(qos.into()).or_default().all = Some(count),
            Party::QosUser(qos, user) => {
                drop(self.qualities.entry(qos.into()).or_default().users.insert(user.into(), count));
            }
            Party::QosAccount(qos, account) => {
                drop(self.qualities.entry(qos.into()).or_default().accounts.insert(account.into(), count));
            }
        }
    }
}

impl FromIterator<(Party, Arc<Count>)> for Counts {
    fn from_iter<I: IntoIterator<Item = (Party, Arc<Count>)>>(all: I) -> Counts {
        let mut counts = Counts::default();
        all.into_iter().for_each(|(party, count)| counts.insert(party, count));
        counts
    }
}

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.iter().count()))?;
        for (whom, count) in self.iter() {
            map.serialize_entry(&whom, count)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Counts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Counts, D::Error> {
        let stored = OrdMap::<Party, Arc<Count>>::deserialize(deserializer)?;
        Ok(stored.into_iter().collect())
    }
}
