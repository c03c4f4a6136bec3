//! What follows from the configuration and the nodes: worked out when first asked for, neither kept nor compared.
use std::sync::{Arc, OnceLock};

use model::capacity::Measures;

use crate::Cluster;

#[derive(Debug)]
pub(crate) struct Derived<T>(Arc<OnceLock<T>>);

impl<T> Clone for Derived<T> {
    fn clone(&self) -> Self {
        Derived(self.0.clone())
    }
}

impl<T> Default for Derived<T> {
    fn default() -> Self {
        Derived(Arc::default())
    }
}

impl<T> PartialEq for Derived<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Derived<T> {
    pub(crate) fn get_or_init(&self, work_out: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(work_out)
    }
}

impl Cluster {
    pub(crate) fn measures(&self) -> &Measures {
        self.measures.get_or_init(|| Measures::of(&self.config))
    }
}
