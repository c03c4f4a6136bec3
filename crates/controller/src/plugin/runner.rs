//! Which duties are under way: one task for each, ended before another of the same buffer begins.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use model::command::PlaceResult;
use model::pool::Plugin;
use model::staging::{Access, StageResult};
use model::{Caller, Command, Duty, NodeName, Owner, Task};
use state::Cluster;
use tokio::sync::{mpsc, watch};

use super::{Site, duration, files, stages};
use crate::door::Refusal;

/// What could not be written is tried again after this long.
const REST: Duration = Duration::from_secs(1);

struct Running {
    duty: Duty,
    stop: watch::Sender<bool>,
}

pub async fn run(site: Arc<Site>) {
    files::sweep(&site).await;
    let mut changes = site.published.changes();
    let (ended, mut endings) = mpsc::unbounded_channel::<Owner>();
    let mut running: HashMap<Owner, Running> = HashMap::new();
    loop {
        let cluster = changes.borrow_and_update().clone();
        // What no longer stands is stopped; what follows begins when nothing of it is left.
        for (owner, one) in &running {
            if cluster.duty(owner) != Some(&one.duty) {
                one.stop.send_replace(true);
            }
        }
        for duty in cluster.duties().filter(|duty| is_ours(&cluster, duty)) {
            if running.contains_key(&duty.owner) {
                continue;
            }
            let (stop, told) = watch::channel(false);
            running.insert(duty.owner.clone(), Running { duty: duty.clone(), stop });
            let (site, duty, ended) = (site.clone(), duty.clone(), ended.clone());
            tokio::spawn(async move {
                attend(&site, &duty, told).await;
                // The loop ends only with the process.
                let _ = ended.send(duty.owner);
            });
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            owner = endings.recv() => {
                let Some(owner) = owner else { return };
                running.remove(&owner);
                while let Ok(owner) = endings.try_recv() {
                    running.remove(&owner);
                }
            }
        }
    }
}

fn is_ours(cluster: &Cluster, duty: &Duty) -> bool {
    match &duty.owner {
        Owner::Buffer(id) => cluster.buffer(*id).is_some_and(|buffer| buffer.plugin.is_external()),
        Owner::Persistent(name) => cluster.persistent(name).is_some_and(|buffer| buffer.plugin.is_external()),
        Owner::Job(_) | Owner::Step(..) | Owner::Node(_) => false,
    }
}

/// Does the duty, tells what became of it, and rests before it would be done again.
async fn attend(site: &Site, duty: &Duty, mut stop: watch::Receiver<bool>) {
    let Some(result) = stages::perform(site, duty, &mut stop).await else { return };
    let has_failed = matches!(result, StageResult::Failed(_));
    if let StageResult::Failed(failure) = &result {
        tracing::error!(owner = ?duty.owner, hook = failure.operation, why = failure.why, "a burst buffer hook failed");
    }
    let results = vec![PlaceResult { access: Access::Shared, node: NodeName::default(), result }];
    let proposed = site.door.propose(Caller::SYSTEM, Command::Staged { duty: duty.clone(), results }).await;
    let mut rest = if has_failed { pause(site, duty.task) } else { Duration::ZERO };
    if let Err(Refusal::NotWritten(why)) = &proposed {
        tracing::warn!(why, "what became of a burst buffer was not written");
        rest = rest.max(REST);
    }
    if duty.task == Task::TearDown && !has_failed && proposed.is_ok() {
        files::forget(site, &duty.owner).await;
    }
    tokio::select! {
        () = tokio::time::sleep(rest) => (),
        _ = stop.wait_for(|stops| *stops) => (),
    }
}

/// Teardowns are tried again.
fn pause(site: &Site, task: Task) -> Duration {
    let config = site.config();
    match (task, config.teardown_interval.0, config.plugin) {
        (Task::TearDown | Task::Destroy, 0, Plugin::DataWarp) => Duration::from_secs(5),
        (Task::TearDown | Task::Destroy, 0, _) => Duration::from_secs(10),
        (Task::TearDown | Task::Destroy, ..) => duration(config.teardown_interval),
        _ => Duration::ZERO,
    }
}
