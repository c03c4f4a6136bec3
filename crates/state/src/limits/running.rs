//! How many jobs of each association run, by its number: the one count that is asked for of thousands at a time. Of users in a quality of
//! service, which have no number, it is known whether any may.
use imbl::Vector;
use model::accounts::AssociationId;

#[derive(Clone, Debug, Default)]
pub(super) struct Running(Vector<u32>);

impl Running {
    pub fn get(&self, id: AssociationId) -> u32 {
        self.0.get(id as usize).copied().unwrap_or(0)
    }

    pub fn set(&mut self, id: AssociationId, n_running: u64) {
        let n_running = u32::try_from(n_running).unwrap_or(u32::MAX);
        if self.get(id) == n_running {
            return;
        }
        while self.0.len() <= id as usize {
            self.0.push_back(0);
        }
        self.0.set(id as usize, n_running);
    }

    /// Of whom some run.
    pub fn iter(&self) -> impl Iterator<Item = (AssociationId, u32)> {
        let all = self.0.iter().enumerate().map(|(id, n_running)| (id as AssociationId, *n_running));
        all.filter(|(_, n_running)| *n_running > 0)
    }
}

/// How many jobs run of all users in qualities of service whose names come to the same number: where none does, none of these has any.
#[derive(Clone, Debug, Default)]
pub(super) struct InQos(Running);

/// Many more than run jobs at a time.
const N_PLACES: u64 = 1 << 14;

impl InQos {
    fn place(qos: &str, user: &str) -> AssociationId {
        let bytes = qos.bytes().chain([0]).chain(user.bytes());
        // FNV-1a, whose upper bits are the better ones.
        let hash = bytes
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        ((hash >> 32) % N_PLACES) as AssociationId
    }

    pub fn may_run(&self, qos: &str, user: &str) -> bool {
        self.0.get(InQos::place(qos, user)) > 0
    }

    /// So many run now of those who ran so many.
    pub fn change(&mut self, (qos, user): (&str, &str), before: u64, now: u64) {
        if before != now {
            let place = InQos::place(qos, user);
            let others = u64::from(self.0.get(place)).saturating_sub(before);
            self.0.set(place, others + now);
        }
    }
}

impl PartialEq for InQos {
    fn eq(&self, other: &InQos) -> bool {
        self.0 == other.0
    }
}

/// How far the list reaches says nothing.
impl PartialEq for Running {
    fn eq(&self, other: &Running) -> bool {
        self.iter().eq(other.iter())
    }
}
