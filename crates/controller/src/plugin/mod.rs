//! Burst buffers whose work a site's script or a vendor's program does, on the controller's machine.
//!
//! ```text
//! runner: which duties are under way ──▶ stages: what one duty comes to ──▶ calls: one hook and its arguments ──▶ hooks::run
//!                                        files: what hooks read and write    job_info: what a script sees of a job
//! pools: asked again and again           answers: what users wait for (submission, status)
//! ```
//! Nothing here waits for a hook while holding anything that others need: a hook is a process, and a duty a task of its own.
mod answers;
mod calls;
pub mod datawarp;
mod files;
pub(crate) mod job_info;
mod job_wishes;
pub(crate) mod mail;
pub mod pools;
mod reason_codes;
mod runner;
mod stages;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hooks::{Answer, Stop};
use model::pool::BurstBufferConfig;
use model::time::Span;
use state::Cluster;
use tokio::sync::{Semaphore, watch};

use crate::door::Door;
use crate::machine::Published;
use calls::Hook;
pub(crate) use calls::surroundings;

/// What all hooks have in common.
pub struct Site {
    door: Arc<Door>,
    published: Published,
    state_dir: PathBuf,
    /// Each stage has its own workers, so that none keeps another from its turn.
    workers: [Semaphore; 5],
    /// Never true: for hooks that only their time limit ends.
    never: watch::Sender<bool>,
}

/// Which workers a hook is run by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    In,
    PreRun,
    Out,
    TearDown,
    /// What somebody waits for: submissions, status, pools.
    Asked,
}

/// Why a hook has no answer to go on with.
#[derive(Clone, Debug, PartialEq)]
pub enum Bad {
    Failed { operation: String, why: String },
    Stopped,
}

/// Starts what a plugin needs; without one there is nothing to do.
pub fn start(
    door: Arc<Door>,
    published: Published,
    state_dir: PathBuf,
    loops: &mut tokio::task::JoinSet<()>,
) -> Arc<Site> {
    let config = published.now().config().burst_buffer.clone().unwrap_or_default();
    let workers = std::array::from_fn(|_| Semaphore::new(config.n_hooks.max(1) as usize));
    let site = Arc::new(Site { door, published, state_dir, workers, never: watch::channel(false).0 });
    if config.plugin.is_external() {
        loops.spawn(runner::run(site.clone()));
        loops.spawn(pools::run(site.clone()));
    }
    site
}

impl Site {
    /// Waits for a worker, then for the hook. A hook that fails says why in one way or another.
    async fn run(&self, stage: Stage, hook: &Hook, stop: &mut Stop) -> Result<String, Bad> {
        let failed = |why: String| Bad::Failed { operation: hook.operation.clone(), why };
        let permit = tokio::select! {
            permit = self.workers[stage as usize].acquire() => permit.expect("never closed"),
            _ = stop.wait_for(|stops| *stops) => return Err(Bad::Stopped),
        };
        let answer = hooks::run(&hook.call, hook.limit, stop).await;
        drop(permit);
        match answer {
            Answer::Ended { is_success: true, message } => Ok(message),
            Answer::Ended { is_success: false, message } => Err(failed(message)),
            Answer::TimedOut { message } if message.trim().is_empty() => {
                Err(failed(format!("timed out after {} seconds", hook.limit.as_secs())))
            }
            Answer::TimedOut { message } => Err(failed(message)),
            Answer::Stopped => Err(Bad::Stopped),
            Answer::NotStarted(why) => Err(failed(why)),
        }
    }

    /// As [`Site::run`] where nothing but the time limit ends the hook.
    async fn ask(&self, hook: &Hook) -> Result<String, String> {
        let mut never = self.never.subscribe();
        match self.run(Stage::Asked, hook, &mut never).await {
            Ok(message) => Ok(message),
            Err(Bad::Failed { why, .. }) => Err(why),
            Err(Bad::Stopped) => Err("was stopped".into()),
        }
    }

    fn config(&self) -> BurstBufferConfig {
        config(&self.published.now())
    }
}

fn config(cluster: &Cluster) -> BurstBufferConfig {
    cluster.config().burst_buffer.clone().unwrap_or_default()
}

fn duration(span: Span) -> Duration {
    Duration::from_micros(span.0)
}
