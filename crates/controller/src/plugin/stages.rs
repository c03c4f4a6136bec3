//! What each duty of a buffer comes to: hooks one after the other, until one fails.
use hooks::Stop;
use model::pool::Plugin;
use model::staging::{Moved, StageFailure, StageResult};
use model::{Duty, Owner, PersistentBuffer, Task};
use state::Cluster;
use tokio::time::{Instant, sleep};

use super::calls::{self, Hook, Subject};
use super::{Bad, Site, Stage, config, datawarp, duration, files};

/// Does the duty; none if it was stopped, or is none any more.
pub async fn perform(site: &Site, duty: &Duty, stop: &mut Stop) -> Option<StageResult> {
    let done = match &duty.owner {
        Owner::Buffer(id) => {
            let cluster = site.published.now();
            let (job, buffer) = (cluster.job(*id)?.clone(), cluster.buffer(*id)?.clone());
            let files = match files::prepare(site, &cluster, &job).await {
                Ok(files) => files,
                Err(why) => return Some(failed("setup", &why)),
            };
            let mut work = Work { site, duty, subject: Subject { cluster, job, buffer, files }, stop };
            match duty.task {
                Task::StageIn => work.stage_in().await,
                Task::PreRun => work.pre_run().await,
                Task::PostRun => work.one(Stage::Out, Subject::post_run).await.map(|_| Moved::default()),
                Task::StageOut => work.stage_out().await,
                _ => work.tear_down().await,
            }
        }
        Owner::Persistent(name) => {
            let cluster = site.published.now();
            let buffer = cluster.persistent(name)?.clone();
            persistent(site, &cluster, &buffer, duty.task, stop).await
        }
        Owner::Job(_) | Owner::Step(..) | Owner::Node(_) => return None,
    };
    match done {
        Ok(moved) => Some(StageResult::Done(moved)),
        Err(Bad::Failed { operation, why }) => Some(failed(&operation, &why)),
        Err(Bad::Stopped) => None,
    }
}

fn failed(operation: &str, why: &str) -> StageResult {
    let why = if why.trim().is_empty() { "no message" } else { why.trim() };
    StageResult::Failed(StageFailure { why: why.into(), operation: operation.into(), ..Default::default() })
}

struct Work<'a> {
    site: &'a Site,
    duty: &'a Duty,
    subject: Subject,
    stop: &'a mut Stop,
}

impl Work<'_> {
    /// One hook, told of the job as it is now.
    async fn one(&mut self, stage: Stage, hook: fn(&Subject) -> Hook) -> Result<String, Bad> {
        let cluster = self.site.published.now();
        let Owner::Buffer(id) = self.duty.owner else { return Err(Bad::Stopped) };
        let (Some(job), Some(buffer)) = (cluster.job(id).cloned(), cluster.buffer(id).cloned()) else {
            return Err(Bad::Stopped);
        };
        let files = self.subject.files.clone();
        self.subject = Subject { cluster, job, buffer, files };
        let hook = hook(&self.subject);
        self.site.run(stage, &hook, self.stop).await
    }

    async fn stage_in(&mut self) -> Result<Moved, Bad> {
        // Each task of an array is looked at by itself; what is thought of it was told at the submission.
        if self.subject.job.array_task().is_some()
            && self.one(Stage::In, Subject::job_process).await == Err(Bad::Stopped)
        {
            return Err(Bad::Stopped);
        }
        self.one(Stage::In, Subject::setup).await?;
        let has_room = !self.subject.buffer.spaces.is_empty();
        let data_in = self.one(Stage::In, Subject::data_in).await;
        match self.plugin() {
            Plugin::DataWarp => {
                let data_in = datawarp::unless_gone(data_in);
                if data_in == Err(Bad::Stopped) {
                    return Err(Bad::Stopped);
                }
                let real = match has_room {
                    true => datawarp::real_bytes(self.one(Stage::In, Subject::real_size).await),
                    false => 0,
                };
                data_in.map(|_| Moved { real_bytes: real, ..Default::default() })
            }
            Plugin::Lua | Plugin::Native => {
                data_in?;
                let limit = config(&self.subject.cluster).stage_in_timeout;
                self.poll(Stage::In, Subject::test_data_in, limit).await?;
                let real = match has_room {
                    true => real_bytes(&self.one(Stage::In, Subject::real_size).await?),
                    false => 0,
                };
                Ok(Moved { real_bytes: real, ..Default::default() })
            }
        }
    }

    async fn pre_run(&mut self) -> Result<Moved, Bad> {
        files::empty(&self.subject.files.paths).await;
        let paths = self.one(Stage::PreRun, Subject::paths).await;
        let paths = if self.plugin() == Plugin::DataWarp { datawarp::tolerate_valid(paths) } else { paths };
        paths?;
        let environment = files::variables(&self.subject.files.paths).await;
        self.one(Stage::PreRun, Subject::pre_run).await?;
        Ok(Moved { environment, ..Default::default() })
    }

    async fn stage_out(&mut self) -> Result<Moved, Bad> {
        let data_out = self.one(Stage::Out, Subject::data_out).await;
        match self.plugin() {
            Plugin::DataWarp => drop(datawarp::unless_gone(data_out)?),
            Plugin::Lua | Plugin::Native => {
                data_out?;
                let limit = config(&self.subject.cluster).stage_out_timeout;
                self.poll(Stage::Out, Subject::test_data_out, limit).await?;
            }
        }
        Ok(Moved::default())
    }

    async fn tear_down(&mut self) -> Result<Moved, Bad> {
        let done = self.one(Stage::TearDown, Subject::teardown).await;
        let done = if self.plugin() == Plugin::DataWarp { datawarp::unless_gone(done) } else { done };
        done.map(|_| Moved::default())
    }

    /// Asks again and again while the answer is BUSY; no worker is kept between.
    async fn poll(&mut self, stage: Stage, hook: fn(&Subject) -> Hook, limit: model::time::Span) -> Result<(), Bad> {
        let give_up = Instant::now() + duration(limit);
        loop {
            let answer = self.one(stage, hook).await?;
            if !answer.trim().eq_ignore_ascii_case("BUSY") {
                return Ok(());
            }
            let pause = duration(config(&self.subject.cluster).poll_interval);
            if Instant::now() + pause > give_up {
                let operation = hook(&self.subject).operation;
                return Err(Bad::Failed { operation, why: "Poll exceeded time limit".into() });
            }
            tokio::select! {
                () = sleep(pause) => (),
                _ = self.stop.wait_for(|stops| *stops) => return Err(Bad::Stopped),
            }
        }
    }

    fn plugin(&self) -> Plugin {
        self.subject.buffer.plugin
    }
}

/// Only a plain number is one; anything else is passed over.
fn real_bytes(text: &str) -> u64 {
    match text.trim().parse() {
        Ok(bytes) => bytes,
        Err(_) => {
            tracing::error!(text, "slurm_bb_real_size gave no number");
            0
        }
    }
}

async fn persistent(
    site: &Site,
    cluster: &Cluster,
    buffer: &PersistentBuffer,
    task: Task,
    stop: &mut Stop,
) -> Result<Moved, Bad> {
    let config = config(cluster);
    if task == Task::Create {
        let hook = calls::create_persistent(&config, buffer);
        let said = site.run(Stage::In, &hook, stop).await?;
        return match said.contains("created") {
            true => Ok(Moved::default()),
            false => Err(Bad::Failed { operation: hook.operation, why: said }),
        };
    }
    let script = match cluster.job(buffer.by_job) {
        Some(job) => files::prepare(site, cluster, job).await.map(|files| files.script),
        None => files::dummy(site).await,
    };
    let operation = "destroy_persistent";
    let script = script.map_err(|why| Bad::Failed { operation: operation.into(), why })?;
    let hook = calls::destroy_persistent(&config, buffer, &script);
    let done = datawarp::unless_gone(site.run(Stage::TearDown, &hook, stop).await);
    done.map(|_| Moved::default())
}
