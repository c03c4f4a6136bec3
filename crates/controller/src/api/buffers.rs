//! Reading burst buffers: all of them, or how far one job's data is.
use std::collections::BTreeSet;
use std::sync::Arc;

use model::pool::Pool;
use model::request::{BurstPage, PoolView, StagePage};
use model::{Caller, JobId, codec};
use state::Cluster;
use state::buffers::capacity::{self, Usage};
use tokio::sync::watch;
use tonic::Status;
use wire::pages::messages;
use wire::proto::{BurstReply, StagingReply};
use wire::refusal::to_status;

use super::Streamed;
use crate::machine::Published;
use crate::progress::ProgressTable;

/// What `scontrol show burstbuffer` shows.
pub fn page(cluster: &Cluster, by: Caller, progress: &ProgressTable) -> BurstReply {
    let Some(mut config) = cluster.config().burst_buffer.clone() else { return BurstReply::default() };
    let usage = Usage::of(cluster);
    // What still lies in pools that are configured no more is seen as well.
    let lost: Vec<String> = usage.pools().filter(|name| config.pool(name).is_none()).map(str::to_owned).collect();
    config.pools.extend(lost.into_iter().map(|name| Pool { name, total_bytes: Some(0), ..Default::default() }));
    let pools = config.pools.iter().map(|pool| PoolView {
        name: pool.name.clone(),
        total_bytes: capacity::total(cluster, pool),
        used_bytes: usage.of_pool(pool),
        free_bytes: capacity::free(cluster, &usage, pool),
        problems: problems(cluster, &pool.name),
    });
    let pools = pools.collect();
    let may_see = |uid: u32| !config.is_private || by.may_act_for(uid);
    let mut buffers: Vec<_> =
        cluster.buffers().filter(|buffer| may_see(buffer.uid)).map(|buffer| (**buffer).clone()).collect();
    buffers.sort_by_key(|buffer| std::cmp::Reverse((buffer.created, buffer.job)));
    let jobs = buffers.iter().filter_map(|buffer| cluster.job(buffer.job)).map(|job| (**job).clone()).collect();
    let shown: BTreeSet<JobId> = buffers.iter().map(|buffer| buffer.job).collect();
    let used = progress.used().into_iter().filter(|one| match one.name.is_empty() {
        true => shown.contains(&one.job),
        false => cluster.persistent(&one.name).is_some_and(|buffer| may_see(buffer.uid)),
    });
    let used = used.collect();
    let progress = buffers.iter().flat_map(|buffer| progress.of(cluster, buffer.job)).collect();
    let persistent = cluster.persistent_buffers().filter(|buffer| may_see(buffer.uid));
    let persistent = persistent.map(|buffer| (**buffer).clone()).collect();
    let page = BurstPage { config: Some(Box::new(config)), pools, buffers, jobs, persistent, progress, used };
    BurstReply { page: codec::encode(&page).into() }
}

fn problems(cluster: &Cluster, pool: &str) -> Vec<String> {
    let complaint = |node: &Arc<model::Node>| {
        let report = node.machine.pools.iter().find(|report| report.pool == pool && !report.problem.is_empty())?;
        Some(format!("{}: {}", node.name, report.problem))
    };
    cluster.nodes().filter_map(complaint).collect()
}

/// The job's data on its way: now, and again whenever an agent has told of more, until nothing is left to move.
pub fn watch(
    published: Published,
    progress: Arc<ProgressTable>,
    by: Caller,
    job: JobId,
    takes_pages: bool,
) -> Result<Streamed<StagingReply>, Status> {
    let cluster = published.now();
    let known = cluster.job(job).ok_or_else(|| to_status(&model::Reject::NoSuchJob))?;
    if cluster.config().burst_buffer.as_ref().is_some_and(|config| config.is_private) && !by.may_act_for(known.spec.uid)
    {
        return Err(to_status(&model::Reject::NotPermitted));
    }
    let watcher = StagingWatcher {
        steps: progress.changes(),
        news: published.changes(),
        progress,
        job,
        takes_pages,
        last: None,
        is_over: false,
        messages: Vec::new().into_iter(),
    };
    Ok(Box::pin(futures::stream::unfold(watcher, async |mut watcher| {
        let message = watcher.next().await?;
        Some((Ok(message), watcher))
    })))
}

/// One who watches a job's data on its way. Nothing is made before it is asked for.
struct StagingWatcher {
    steps: watch::Receiver<u64>,
    news: watch::Receiver<Arc<Cluster>>,
    progress: Arc<ProgressTable>,
    job: JobId,
    takes_pages: bool,
    last: Option<StagePage>,
    is_over: bool,
    /// Of the page in hand.
    messages: std::vec::IntoIter<StagingReply>,
}

impl StagingWatcher {
    /// None: there will be no more.
    async fn next(&mut self) -> Option<StagingReply> {
        loop {
            if let Some(message) = self.messages.next() {
                return Some(message);
            }
            if self.is_over {
                return None;
            }
            if self.last.is_some() {
                tokio::select! {
                    changed = self.steps.changed() => changed.ok()?,
                    changed = self.news.changed() => changed.ok()?,
                }
            }
            self.look()?;
        }
    }

    /// None: the job is gone.
    fn look(&mut self) -> Option<()> {
        self.steps.borrow_and_update();
        let cluster = self.news.borrow_and_update().clone();
        let known = cluster.job(self.job)?;
        let page = StagePage {
            job: (**known).clone(),
            buffer: cluster.buffer(self.job).map(|buffer| (**buffer).clone()),
            progress: self.progress.of(&cluster, self.job),
            now: cluster.now(),
        };
        self.is_over = known.is_over() && page.buffer.is_none();
        if self.last.as_ref().is_none_or(|last| StagePage { now: last.now, ..page.clone() } != *last) {
            let messages: Vec<StagingReply> =
                messages(model::content::encode_without_ids(&page), self.takes_pages).collect();
            self.messages = messages.into_iter();
            self.last = Some(page);
        }
        Some(())
    }
}
