//! How many jobs of each association run, by its number: the one count that is asked for of thousands at a time.
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

/// How far the list reaches says nothing.
impl PartialEq for Running {
    fn eq(&self, other: &Running) -> bool {
        self.iter().eq(other.iter())
    }
}
