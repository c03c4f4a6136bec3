//! What a site has to say to submissions and to changes of jobs, before they go to the log (JobSubmitPlugins).
//!
//! ```text
//! fields: a submission as the script's table   changes: the same of `scontrol update job`   values: what a script's words mean
//! partitions: the table of partitions          scripts: the text that is run, as long as a newer one does not load
//! ```
//! A script runs in a process of its own (`hooks`), for a bounded time; nothing waits for it but the request it is about.
pub mod changes;
pub mod fields;
mod partitions;
mod scripts;
mod values;

use std::time::Duration;

use hooks::{Answer, Call, Edit, Edited};
use model::command::Blob;
use model::update::JobChanges;
use model::{BlobId, Caller, JobKind, JobRef, JobSpec, Reject};
use serde_json::{Map, Value, json};
use state::Cluster;
use tokio::sync::{Semaphore, watch};

use crate::plugin::job_info;
use scripts::Scripts;

/// What a script gets unless the site says otherwise.
const USUAL_LIMIT: Duration = Duration::from_secs(10);
/// So many scripts run at a time; others wait for their turn.
const N_WORKERS: usize = 16;
/// ESLURM_MISSING_TIME_LIMIT
const MISSING_TIME_LIMIT: u32 = 8000;

pub struct Screen {
    workers: Semaphore,
    scripts: Scripts,
    /// Never true: only its time limit ends a script.
    never: watch::Sender<bool>,
}

impl Default for Screen {
    fn default() -> Self {
        let never = watch::channel(false).0;
        Screen { workers: Semaphore::new(N_WORKERS), scripts: Scripts::default(), never }
    }
}

impl Screen {
    /// Lets the site change the components of a submission, or refuse them; gives back what it says to the user.
    pub async fn submission(
        &self,
        cluster: &Cluster,
        by: Caller,
        specs: &mut [JobSpec],
        blobs: &mut Vec<Blob>,
    ) -> Result<String, Reject> {
        let mut told = Vec::new();
        let is_whole = specs.len() == 1;
        for plugin in &cluster.config().hooks.job_submit {
            for (component, spec) in specs.iter_mut().enumerate() {
                match plugin.as_str() {
                    "all_partitions" if spec.partitions.is_empty() => {
                        spec.partitions = cluster.config().partitions.iter().map(|one| one.name.clone()).collect();
                    }
                    "all_partitions" => (),
                    "require_timelimit" if spec.time_limit.is_some() => (),
                    "require_timelimit" => {
                        return Err(Reject::BySite { code: MISSING_TIME_LIMIT, told: String::new() });
                    }
                    script => match self.submit(script, cluster, by, spec, blobs).await {
                        Ok(said) => told.extend(said_of(component, is_whole, &said)),
                        Err(Reject::BySite { code, told: said }) => {
                            told.extend(said_of(component, is_whole, &said));
                            return Err(Reject::BySite { code, told: told.join("\n") });
                        }
                        Err(other) => return Err(with_words(other, &told.join("\n"))),
                    },
                }
            }
        }
        Ok(told.join("\n"))
    }

    /// Lets the site's scripts change what is to become of a job, or refuse it.
    pub async fn changes(
        &self,
        cluster: &Cluster,
        by: Caller,
        job: &JobRef,
        wanted: &mut JobChanges,
    ) -> Result<(), Reject> {
        for script in cluster.config().hooks.job_submit_scripts() {
            let Some(job) = cluster.named(job).and_then(|ids| ids.first().copied()).and_then(|id| cluster.job(id))
            else {
                return Ok(());
            };
            let edit = Edit {
                function: "slurm_job_modify".into(),
                table: Map::from_iter([
                    ("user_id".to_owned(), json!(job.spec.uid)),
                    ("user_name".to_owned(), json!(job.spec.user)),
                ])
                .into_iter()
                .chain(changes::table(wanted))
                .collect(),
                others: vec![
                    job_info::of(cluster, job),
                    partitions::table(cluster, by, &job.spec.groups),
                    json!(by.uid),
                ],
                ..Edit::default()
            };
            let edited = self.run(script, cluster, edit).await?;
            if !edited.told.is_empty() {
                tracing::error!(told = edited.told, "slurm_job_modify cannot speak to users");
            }
            accepted(&edited, String::new())?;
            changes::change(wanted, &edited.changed)?;
        }
        Ok(())
    }

    async fn submit(
        &self,
        script: &str,
        cluster: &Cluster,
        by: Caller,
        spec: &mut JobSpec,
        blobs: &mut Vec<Blob>,
    ) -> Result<String, Reject> {
        let mut table = fields::table(spec);
        if let JobKind::Batch { script } = &spec.kind {
            table.insert("script".into(), json!(content(cluster, blobs, *script)));
        }
        let environment = content(cluster, blobs, spec.environment);
        table.insert("environment".into(), variables(&environment));
        let user = cluster.accounts().users.get(&spec.user);
        table.insert("default_account".into(), values::or_nil(user.map_or("", |user| user.default_account.as_str())));
        let others = vec![partitions::table(cluster, by, &spec.groups), json!(by.uid)];
        let edit = Edit { function: "slurm_job_submit".into(), table, others, ..Edit::default() };
        let mut edited = self.run(script, cluster, edit).await?;
        accepted(&edited, edited.told.clone())?;
        if let (Some(text), JobKind::Batch { script }) = (edited.changed.remove("script"), &mut spec.kind) {
            *script = bring(blobs, values::text("script", &text)?.into_bytes());
        }
        if let Some(changed) = edited.changed.remove("environment") {
            spec.environment = bring(blobs, entries(&changed)?);
        }
        fields::change(spec, &edited.changed)?;
        Ok(edited.told)
    }

    async fn run(&self, script: &str, cluster: &Cluster, edit: Edit) -> Result<Edited, Reject> {
        let limit = cluster.config().hooks.job_submit_timeout;
        let limit = limit.map_or(USUAL_LIMIT, |span| Duration::from_micros(span.0));
        let text = self.scripts.text(script).await.map_err(values::by_script)?;
        let known = known(cluster, &text);
        let around = crate::plugin::surroundings(cluster);
        let call = Call::Edit(Box::new(Edit { script: script.into(), text, known, around, ..edit }));
        let mut never = self.never.subscribe();
        let turn = self.workers.acquire().await.expect("never closed");
        let answer = hooks::run(&call, limit, &mut never).await;
        drop(turn);
        let why = match answer {
            Answer::Ended { is_success: true, message } => match serde_json::from_str(&message) {
                Ok(edited) => return Ok(edited),
                Err(error) => format!("its answer is not understood: {error}"),
            },
            Answer::Ended { message, .. } => format!("it ended badly: {message}"),
            Answer::TimedOut { .. } => format!("it took longer than {} seconds", limit.as_secs_f32()),
            Answer::Stopped => "it was stopped".into(),
            Answer::NotStarted(why) => why,
        };
        tracing::error!(script, why, "a job is refused");
        Err(values::by_script(format!("job_submit.lua: {why}")))
    }
}

/// Lines of a component of a heterogeneous job begin with its number.
fn said_of(component: usize, is_whole: bool, said: &str) -> Vec<String> {
    let line = |line: &str| if is_whole { line.to_owned() } else { format!("{component}: {line}") };
    said.lines().map(line).collect()
}

/// A refusal, beside what the site had to say to the user.
pub fn with_words(why: Reject, told: &str) -> Reject {
    match told {
        "" => why,
        told => Reject::Told { told: told.to_owned(), why: Box::new(why) },
    }
}

/// A script with a fault has no say, as in Slurm: its site's users are not to suffer from it. The log has the fault.
fn accepted(edited: &Edited, told: String) -> Result<(), Reject> {
    match edited.code {
        None | Some(0) => Ok(()),
        // Slurm's -1 is an error of no certain kind.
        Some(code) => Err(Reject::BySite { code: code as u32, told }),
    }
}

/// What is below `slurm` for scripts that ask for it; telling of all jobs costs too much to do it for those that do not.
fn known(cluster: &Cluster, text: &str) -> Map<String, Value> {
    let mut known = Map::new();
    if text.contains("slurm.jobs") {
        let jobs = cluster.jobs().map(|job| (job.id.to_string(), job_info::of(cluster, job)));
        known.insert("jobs".into(), Value::Object(jobs.collect()));
    }
    if text.contains("slurm.reservations") {
        let all = cluster.reservations().map(|one| (one.name.clone(), reservation(one)));
        known.insert("reservations".into(), Value::Object(all.collect()));
    }
    known
}

fn reservation(one: &model::Reservation) -> Value {
    let members = |members: &model::reservation::Members| {
        let sign = if members.are_excluded { "-" } else { "" };
        values::or_nil(&members.names.iter().map(|name| format!("{sign}{name}")).collect::<Vec<_>>().join(","))
    };
    let licenses: Vec<String> = one.licenses.iter().map(|license| license.to_string()).collect();
    json!({
        "name": one.name,
        "accounts": members(&one.accounts),
        "users": members(&one.users),
        "groups": members(&one.groups),
        "start_time": one.start.secs(),
        "end_time": one.end.secs(),
        "duration": one.end.secs().saturating_sub(one.start.secs()) / 60,
        "features": values::or_nil(&one.features),
        "licenses": values::or_nil(&licenses.join(",")),
        "partition": values::or_nil(&one.partition),
        "node_cnt": one.nodes.len(),
        "node_list": model::hostlist::compress(one.nodes.iter().map(|name| name.as_str())),
        "full_nodes": u8::from(one.cpus.is_empty()),
    })
}

fn content(cluster: &Cluster, brought: &[Blob], id: BlobId) -> String {
    let sent = brought.iter().find(|blob| blob.id == id).map(|blob| blob.content.as_slice());
    let content = sent.or_else(|| cluster.blob(id).map(|content| &**content)).unwrap_or_default();
    String::from_utf8_lossy(content).into_owned()
}

fn bring(blobs: &mut Vec<Blob>, content: Vec<u8>) -> BlobId {
    let new = Blob::of(content);
    let id = new.id;
    if !blobs.iter().any(|known| known.id == id) {
        blobs.push(new);
    }
    id
}

fn variables(entries: &str) -> Value {
    let pairs = entries.split_terminator('\0').filter_map(|entry| entry.split_once('='));
    Value::Object(pairs.map(|(name, value)| (name.to_owned(), json!(value))).collect())
}

fn entries(variables: &Value) -> Result<Vec<u8>, Reject> {
    let mut entries = Vec::new();
    let Value::Object(variables) = variables else { return Ok(entries) };
    for (name, value) in variables {
        let value = values::text(name, value)?;
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(values::wrong(name, &json!(value)));
        }
        entries.extend([name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_comes_back_as_it_went() {
        let text = "A=1\0HOME=/root\0X=a=b\0";
        assert_eq!(entries(&variables(text)).unwrap(), text.as_bytes());
        assert!(entries(&json!({"A": "b\0c"})).is_err());
        assert!(entries(&json!({"A": {}})).is_err());
    }

    #[test]
    fn components_are_told_apart() {
        assert_eq!(said_of(0, true, "a\nb"), ["a", "b"]);
        assert_eq!(said_of(2, false, "a\nb"), ["2: a", "2: b"]);
        let refused = with_words(Reject::UnknownPartition("x".into()), "a");
        assert_eq!(refused.to_string(), "Invalid partition name specified");
        assert_eq!(refused.details(), "a\ninvalid partition specified: x");
        assert_eq!(with_words(Reject::BadQos, ""), Reject::BadQos);
    }

    #[test]
    fn an_error_of_the_script_is_told_by_its_number() {
        let edited = |code| Edited { code, ..Edited::default() };
        assert_eq!(accepted(&edited(None), String::new()), Ok(()));
        assert_eq!(accepted(&edited(Some(0)), String::new()), Ok(()));
        let refused = |code| accepted(&edited(Some(code)), "no".into()).unwrap_err();
        assert_eq!((refused(-1).to_string(), refused(-1).details()), ("Unspecified error".into(), "no".into()));
        assert_eq!(refused(2017).to_string(), "Invalid job id specified");
    }
}
