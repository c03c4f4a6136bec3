//! One hook: which function, with which arguments, for how long.
use std::sync::Arc;
use std::time::Duration;

use hooks::{Call, Surroundings};
use model::pool::{BurstBufferConfig, Plugin};
use model::{Buffer, Job, PersistentBuffer, size};
use serde_json::Value;
use state::Cluster;

use super::files::Files;
use super::{config, duration, job_info};

pub struct Hook {
    /// As failures name it.
    pub operation: String,
    pub call: Call,
    pub limit: Duration,
}

/// What hooks of one buffer are told.
#[derive(Clone)]
pub struct Subject {
    pub cluster: Arc<Cluster>,
    pub job: Arc<Job>,
    pub buffer: Arc<Buffer>,
    pub files: Files,
}

impl Subject {
    pub fn job_process(&self) -> Hook {
        job_process(&self.cluster, &self.files.script, (self.job.spec.uid, self.job.spec.gid), &self.info())
    }

    pub fn setup(&self) -> Hook {
        let (uid, gid) = self.owner();
        let config = config(&self.cluster);
        let space = self.buffer.spaces.last();
        match config.plugin {
            Plugin::Lua | Plugin::Native => {
                // As Slurm says that the job named none.
                let pool = space.map_or("(null)", |space| space.pool.as_str()).to_owned();
                let bytes = self.buffer.bytes().to_string();
                let words = [self.token(), uid, gid, pool, bytes, self.files.script.clone()];
                self.lua("slurm_bb_setup", words, config.other_timeout)
            }
            Plugin::DataWarp => {
                let pool = space.map(|space| space.pool.clone());
                let pool = pool.or(config.default_pool().map(|pool| pool.name.clone())).unwrap_or_default();
                let capacity = format!("{pool}:{}", size::show_bytes(self.buffer.bytes()));
                let mut words = vec!["--token".into(), self.token(), "--caller".into(), "SLURM".into()];
                words.extend(["--user".into(), uid, "--groupid".into(), gid, "--capacity".into(), capacity]);
                words.extend(["--job".into(), self.files.script.clone()]);
                words.extend(self.nodes_file());
                cli(&config, "setup", "setup", words, duration(config.other_timeout))
            }
        }
    }

    pub fn data_in(&self) -> Hook {
        let limit = config(&self.cluster).stage_in_timeout;
        self.plain("slurm_bb_data_in", "data_in", "dws_data_in", limit)
    }

    pub fn test_data_in(&self) -> Hook {
        self.plain("slurm_bb_test_data_in", "", "", config(&self.cluster).stage_in_timeout)
    }

    pub fn real_size(&self) -> Hook {
        let (uid, gid) = self.owner();
        let config = config(&self.cluster);
        match config.plugin {
            Plugin::Lua | Plugin::Native => {
                self.lua("slurm_bb_real_size", [self.token(), uid, gid], config.stage_in_timeout)
            }
            Plugin::DataWarp => {
                let words = vec!["--token".into(), self.token()];
                cli(&config, "real_size", "real_size", words, duration(config.stage_in_timeout))
            }
        }
    }

    pub fn paths(&self) -> Hook {
        let (uid, gid) = self.owner();
        let config = config(&self.cluster);
        let (script, paths) = (self.files.script.clone(), self.files.paths.clone());
        match config.plugin {
            Plugin::Lua | Plugin::Native => {
                self.lua("slurm_bb_paths", [self.token(), script, paths, uid, gid], config.validate_timeout)
            }
            Plugin::DataWarp => {
                let words = ["--job".into(), script, "--token".into(), self.token(), "--pathfile".into(), paths];
                cli(&config, "paths", "paths", words.into(), duration(config.validate_timeout))
            }
        }
    }

    pub fn pre_run(&self) -> Hook {
        let limit = config(&self.cluster).other_timeout;
        let mut hook = self.plain("slurm_bb_pre_run", "pre_run", "pre_run", limit);
        if let Call::Program { arguments, .. } = &mut hook.call {
            arguments.extend(self.nodes_file());
        }
        hook
    }

    pub fn post_run(&self) -> Hook {
        self.plain("slurm_bb_post_run", "post_run", "dws_post_run", config(&self.cluster).other_timeout)
    }

    pub fn data_out(&self) -> Hook {
        let limit = config(&self.cluster).stage_out_timeout;
        self.plain("slurm_bb_data_out", "data_out", "dws_data_out", limit)
    }

    pub fn test_data_out(&self) -> Hook {
        self.plain("slurm_bb_test_data_out", "", "", config(&self.cluster).stage_out_timeout)
    }

    pub fn teardown(&self) -> Hook {
        let (uid, gid) = self.owner();
        let config = config(&self.cluster);
        match config.plugin {
            Plugin::Lua | Plugin::Native => {
                let hurry = self.buffer.hurry.to_string();
                let words = vec![self.token(), self.files.script.clone(), hurry, uid, gid];
                let limit = duration(config.other_timeout);
                Hook { operation: "teardown".into(), ..lua(&self.cluster, "slurm_bb_job_teardown", words, None, limit) }
            }
            Plugin::DataWarp => tear_down(&config, &self.token(), &self.files.script, self.buffer.hurry),
        }
    }

    /// The hooks that get token and script, and nothing else.
    fn plain(&self, function: &str, program_function: &str, operation: &str, limit: model::time::Span) -> Hook {
        let (uid, gid) = self.owner();
        let config = config(&self.cluster);
        match config.plugin {
            Plugin::Lua | Plugin::Native => {
                self.lua(function, [self.token(), self.files.script.clone(), uid, gid], limit)
            }
            Plugin::DataWarp => {
                let words = ["--token".into(), self.token(), "--job".into(), self.files.script.clone()];
                cli(&config, program_function, operation, words.into(), duration(limit))
            }
        }
    }

    fn lua<const N: usize>(&self, function: &str, words: [String; N], limit: model::time::Span) -> Hook {
        lua(&self.cluster, function, words.into(), Some(self.info()), duration(limit))
    }

    fn info(&self) -> Value {
        job_info::of(&self.cluster, &self.job)
    }

    fn token(&self) -> String {
        self.job.id.to_string()
    }

    fn owner(&self) -> (String, String) {
        (self.job.spec.uid.to_string(), self.job.spec.gid.to_string())
    }

    fn nodes_file(&self) -> Vec<String> {
        match &self.files.nodes {
            Some(file) => vec!["--nodehostnamefile".into(), file.clone()],
            None => Vec::new(),
        }
    }
}

pub fn job_process(cluster: &Cluster, script: &str, (uid, gid): (u32, u32), info: &Value) -> Hook {
    let config = config(cluster);
    let limit = duration(config.validate_timeout);
    match config.plugin {
        Plugin::Lua | Plugin::Native => {
            let words = vec![script.to_owned(), uid.to_string(), gid.to_string()];
            lua(cluster, "slurm_bb_job_process", words, Some(info.clone()), limit)
        }
        Plugin::DataWarp => cli(&config, "job_process", "job_process", vec!["--job".into(), script.into()], limit),
    }
}

pub fn create_persistent(config: &BurstBufferConfig, buffer: &PersistentBuffer) -> Hook {
    let capacity = format!("{}:{}", buffer.pool, buffer.bytes);
    let mut words: Vec<String> = vec!["-c".into(), "CLI".into(), "-t".into(), buffer.name.clone()];
    words.extend(["-u".into(), buffer.uid.to_string(), "-C".into(), capacity]);
    for (flag, value) in [("-a", &buffer.access), ("-T", &buffer.kind)] {
        if !value.is_empty() {
            words.extend([flag.into(), value.clone()]);
        }
    }
    cli(config, "create_persistent", "create_persistent", words, duration(config.other_timeout))
}

pub fn destroy_persistent(config: &BurstBufferConfig, buffer: &PersistentBuffer, script: &str) -> Hook {
    let hook = tear_down(config, &buffer.name, script, buffer.hurry);
    Hook { operation: "destroy_persistent".into(), ..hook }
}

fn tear_down(config: &BurstBufferConfig, token: &str, script: &str, hurry: bool) -> Hook {
    let mut words: Vec<String> = vec!["--token".into(), token.into(), "--job".into(), script.into()];
    words.extend(hurry.then(|| "--hurry".into()));
    cli(config, "teardown", "teardown", words, duration(config.other_timeout))
}

/// `dw_wlm_cli --function NAME …`
pub fn cli(config: &BurstBufferConfig, function: &str, operation: &str, words: Vec<String>, limit: Duration) -> Hook {
    let mut arguments = vec!["--function".to_owned(), function.to_owned()];
    arguments.extend(words);
    let call = Call::Program { path: config.get_sys_state.clone(), name: "dw_wlm_cli".into(), arguments };
    Hook { operation: operation.into(), call, limit }
}

/// What scripts may ask about the cluster.
pub fn surroundings(cluster: &Cluster) -> Surroundings {
    let priority = |(name, qos): (&String, &model::accounts::Qos)| (name.clone(), qos.priority);
    Surroundings {
        cluster_name: cluster.config().cluster_name.clone(),
        qos_priorities: cluster.accounts().qos.iter().map(priority).collect(),
    }
}

pub fn lua(cluster: &Cluster, function: &str, words: Vec<String>, info: Option<Value>, limit: Duration) -> Hook {
    let call = Call::Lua {
        script: config(cluster).script,
        function: function.into(),
        arguments: words,
        job_info: info,
        around: surroundings(cluster),
    };
    Hook { operation: function.into(), call, limit }
}
