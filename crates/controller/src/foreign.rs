//! What others than buffers have taken of the pools' file systems. Each agent measures what it holds itself; put together, and
//! told to the log only when it changes what can be given out.
use std::collections::HashMap;
use std::sync::Mutex;

use model::NodeName;
use model::pool::{Pool, PoolKind, PoolReport};
use state::Cluster;

/// What each agent's buffers hold of each pool. Only remembered: agents that register tell it again.
#[derive(Default)]
pub struct Foreign {
    held: Mutex<HashMap<String, HashMap<NodeName, u64>>>,
}

impl Foreign {
    /// Works out what is foreign in these reports; says whether the log should know.
    pub fn judge(&self, cluster: &Cluster, node: &NodeName, reports: &mut [PoolReport]) -> bool {
        let Some(config) = &cluster.config().burst_buffer else { return false };
        let known = cluster.node(node.as_str()).map(|node| node.machine.pools.as_slice()).unwrap_or_default();
        let mut is_news = known.len() != reports.len();
        for report in reports {
            let Some(pool) = config.pool(&report.pool) else { continue };
            let held = self.held(node, pool, report);
            let taken = report.total_bytes.saturating_sub(report.available_bytes);
            report.foreign_bytes = taken.saturating_sub(held);
            let before = known.iter().find(|before| before.pool == report.pool);
            is_news |= before.is_none_or(|before| is_news_of(cluster, pool, before, report));
        }
        is_news
    }

    fn held(&self, node: &NodeName, pool: &Pool, report: &PoolReport) -> u64 {
        if pool.kind == PoolKind::Node {
            return report.held_bytes;
        }
        let mut held = self.held.lock().expect("nobody panics while holding this lock");
        let of_pool = held.entry(pool.name.clone()).or_default();
        match report.held_bytes {
            0 => of_pool.remove(node),
            bytes => of_pool.insert(node.clone(), bytes),
        };
        of_pool.values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }
}

/// A hundredth of what can be given out makes a difference; and whether all of it can, to whoever asks for all.
fn is_news_of(cluster: &Cluster, pool: &Pool, before: &PoolReport, now: &PoolReport) -> bool {
    let differs = |new: u64, old: u64, of: u64| new.abs_diff(old) > of / 100;
    let most = pool.total_bytes.unwrap_or(now.total_bytes);
    let usable_before = match pool.kind {
        PoolKind::Shared => cluster.usable(&pool.name),
        PoolKind::Node => Some(before.usable_bytes()),
    };
    let now_usable = now.usable_bytes().min(most);
    let whole = now.total_bytes.min(most);
    let is_other = |usable: u64| {
        let usable = usable.min(most);
        differs(now_usable, usable, most) || (now_usable == whole) != (usable == whole)
    };
    now.problem != before.problem
        || (pool.total_bytes.is_none() && differs(now.total_bytes, before.total_bytes, before.total_bytes))
        || usable_before.is_none_or(is_other)
}
