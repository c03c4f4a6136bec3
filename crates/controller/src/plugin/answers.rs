//! Hooks that somebody waits for: a submission is looked at, or the state of things is asked.
use std::sync::Arc;

use hooks::Call;
use model::command::Blob;
use model::pool::Plugin;
use model::{Caller, Job, JobSpec, Reject};

use super::calls::Hook;
use super::{Site, calls, duration, files, job_info};

/// What `dwstat` may take.
const STATUS_LIMIT: std::time::Duration = std::time::Duration::from_secs(2);

impl Site {
    /// The plugin's word on a submission; those that ask for no buffer are none of its business.
    pub async fn validate(&self, by: Caller, specs: &[JobSpec], blobs: &[Blob]) -> Result<(), Reject> {
        let cluster = self.published.now();
        let Some(config) = &cluster.config().burst_buffer else { return Ok(()) };
        // A plugin that has not told of its pools yet is not asked either.
        if !config.plugin.is_external() || !config.is_loaded {
            return Ok(());
        }
        let offset = |index: u32| (specs.len() > 1).then_some(index);
        let specs = (0..).zip(specs).map(|(index, spec)| JobSpec { component: offset(index), ..spec.clone() });
        for spec in specs {
            let spec = &spec;
            let Some(request) = state::buffers::preview(&cluster, by, spec, blobs)? else { continue };
            if !request.is_used_by_job() {
                continue;
            }
            let prefix = format!("burst_buffer/{}", config.plugin.word());
            let refuse = |why: String| Reject::BadBuffer(format!("{prefix}: {}", why.trim()));
            let script = files::of_submission(self, &cluster, spec, blobs).await.map_err(refuse)?;
            let spec = JobSpec { buffer: Some(request), ..spec.clone() };
            let owner = (spec.uid, spec.gid);
            let job = Job { spec: Arc::new(spec), submitted: self.door.now(), ..Default::default() };
            let hook = calls::job_process(&cluster, &script.script, owner, &job_info::of(&cluster, &job));
            self.ask(&hook).await.map_err(refuse)?;
        }
        Ok(())
    }

    /// `scontrol show bbstat WORDS`; nothing where no plugin could tell.
    pub async fn status(&self, by: Caller, words: &[String]) -> String {
        let cluster = self.published.now();
        let config = self.config();
        let (hook, complaint) = match config.plugin {
            Plugin::Native => return String::new(),
            Plugin::Lua => {
                let mut given = vec![by.uid.to_string(), by.gid.to_string()];
                given.extend(words.iter().cloned());
                let limit = duration(config.other_timeout);
                let hook = calls::lua(&cluster, "slurm_bb_get_status", given, None, limit);
                (hook, "Error running slurm_bb_get_status\n")
            }
            Plugin::DataWarp => {
                let call = Call::Program {
                    path: config.get_sys_status.clone(),
                    name: "dwstat".into(),
                    arguments: words.to_vec(),
                };
                (Hook { operation: "dwstat".into(), call, limit: STATUS_LIMIT }, "Error running dwstat\n")
            }
        };
        match self.ask(&hook).await {
            Ok(text) if text.is_empty() || text.ends_with('\n') => text,
            Ok(text) => text + "\n",
            Err(why) => {
                tracing::error!(hook = hook.operation, why, "the plugin's status");
                complaint.into()
            }
        }
    }
}
