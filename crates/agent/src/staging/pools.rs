//! The pools of this node: as its configuration had them when the agent started, then as the controller tells, which hears of every
//! reconfiguration. What still lies in a pool that is no more is looked after until it is gone.
use std::sync::Arc;
use std::time::Duration;

use model::agent::NodePools;
use model::pool::Pool;
use tokio::sync::watch;

use super::ground;
use crate::Options;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    pub pools: Vec<Pool>,
    /// Configured no more, or somewhere else.
    former: Vec<Pool>,
    pub measure_every: Duration,
}

impl Known {
    /// Wherever homes of this node may be.
    pub fn all(&self) -> impl Iterator<Item = &Pool> {
        self.pools.iter().chain(&self.former)
    }
}

pub struct Pools {
    known: watch::Sender<Arc<Known>>,
}

impl Pools {
    pub fn of(options: &Options) -> Self {
        let (pools, measure_every) = (options.pools.clone(), options.measure_every);
        Pools { known: watch::Sender::new(Arc::new(Known { pools, former: Vec::new(), measure_every })) }
    }

    pub fn now(&self) -> Arc<Known> {
        self.known.borrow().clone()
    }

    pub fn changes(&self) -> watch::Receiver<Arc<Known>> {
        self.known.subscribe()
    }

    /// Blocks: looks whether something is left in what is no more.
    pub fn know(&self, told: NodePools) {
        let before = self.now();
        let is_told = |pool: &Pool| told.pools.iter().any(|other| other.root == pool.root);
        let is_left = |pool: &&Pool| !is_told(pool) && !ground::homes(&pool.root).is_empty();
        let former = before.all().filter(is_left).cloned().collect();
        let measure_every = Duration::from_micros(told.measure_interval.0);
        let known = Known { pools: told.pools, former, measure_every };
        self.known.send_if_modified(|now| {
            let is_new = **now != known;
            *now = Arc::new(known);
            is_new
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_is_no_more_is_known_while_something_is_in_it() {
        let dir = std::env::temp_dir().join(format!("spur-pools-{}", std::process::id()));
        let pool =
            |name: &str| Pool { name: name.into(), root: dir.join(name).display().to_string(), ..Default::default() };
        std::fs::create_dir_all(dir.join("full/jobs/7.1/shared")).unwrap();
        std::fs::create_dir_all(dir.join("empty/jobs")).unwrap();
        let known = Known { pools: vec![pool("full"), pool("empty")], ..Default::default() };
        let pools = Pools { known: watch::Sender::new(Arc::new(known)) };
        let names = || pools.now().all().map(|pool| pool.name.clone()).collect::<Vec<_>>();
        let told =
            |names: &[&str]| NodePools { pools: names.iter().map(|name| pool(name)).collect(), ..Default::default() };
        let mut changes = pools.changes();
        pools.know(told(&["new"]));
        assert!(changes.has_changed().unwrap());
        assert_eq!(names(), ["new", "full"]);
        changes.mark_unchanged();
        pools.know(told(&["new"]));
        assert!(!changes.has_changed().unwrap(), "nothing new");
        std::fs::remove_dir_all(&dir).unwrap();
        pools.know(told(&["new"]));
        assert_eq!(names(), ["new"]);
    }
}
