//! Where the nodes of an MPI step meet (`--mpi=pmi2`, `pmix`): what each has put goes to all, once all are there.
use std::collections::BTreeMap;

/// Nodes bring names and values, or plain bytes.
pub struct Fence<T> {
    n_nodes: usize,
    sequence: u32,
    here: BTreeMap<usize, Vec<T>>,
    /// The last that was complete, for a node whose stream broke before it heard.
    last: Option<(u32, Vec<T>)>,
}

/// Whom to tell, and what.
#[derive(Debug, PartialEq)]
pub enum Told<T> {
    Nobody,
    /// Of the nodes that take part.
    Everybody(u32, Vec<T>),
    Again(u32, Vec<T>),
}

impl<T: Clone> Fence<T> {
    pub fn new(n_nodes: usize) -> Self {
        Fence { n_nodes, sequence: 0, here: BTreeMap::new(), last: None }
    }

    /// A node has entered the fence, perhaps not for the first time.
    pub fn enter(&mut self, node: usize, sequence: u32, entries: Vec<T>) -> Told<T> {
        if let Some((done, all)) = self.last.as_ref().filter(|(done, _)| *done == sequence) {
            return Told::Again(*done, all.clone());
        }
        if sequence != self.sequence {
            return Told::Nobody;
        }
        self.here.insert(node, entries);
        if self.here.len() < self.n_nodes {
            return Told::Nobody;
        }
        let all: Vec<T> = std::mem::take(&mut self.here).into_values().flatten().collect();
        self.last = Some((sequence, all.clone()));
        self.sequence += 1;
        Told::Everybody(sequence, all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_hear_when_all_are_there_and_late_ones_again() {
        let put = |text: &str| vec![(text.to_string(), text.to_string())];
        let mut fence = Fence::new(2);
        assert_eq!(fence.enter(1, 0, put("b")), Told::Nobody);
        assert_eq!(fence.enter(1, 0, put("b")), Told::Nobody);
        let both = [put("a"), put("b")].concat();
        assert_eq!(fence.enter(0, 0, put("a")), Told::Everybody(0, both.clone()));
        assert_eq!(fence.enter(1, 0, put("b")), Told::Again(0, both));
        assert_eq!(fence.enter(1, 1, Vec::new()), Told::Nobody);
    }
}
