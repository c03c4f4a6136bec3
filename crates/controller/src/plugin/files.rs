//! What hooks read and write: each job with a buffer has a folder as Slurm has it, `hash.<id mod 10>/job.<id>`.
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use model::command::Blob;
use model::directive::{Facts, component, option_lines, replace};
use model::pool::BurstBufferConfig;
use model::{Job, JobId, JobKind, JobSpec, Owner};
use state::Cluster;

use super::{Site, config};

/// Longer answers of `paths` are cut.
const MAX_PATHS: u64 = 256 << 10;

#[derive(Clone, Debug, Default)]
pub struct Files {
    /// The directives with their symbols replaced where they have any, else the job's own script.
    pub script: String,
    pub paths: String,
    /// A host a line; none as long as the job has no nodes.
    pub nodes: Option<String>,
}

/// Writes what the job's hooks read.
pub async fn prepare(site: &Site, cluster: &Cluster, job: &Job) -> Result<Files, String> {
    let folder = folder(&site.state_dir, job.id);
    let config = config(cluster);
    let original = script(&config, &job.spec, |spec| own_script(cluster, spec, &[]));
    let replaced = replaced(job);
    let names: Vec<String> = match job.holds_nodes() {
        true => job.allocation.names().map(|node| node.to_string()).collect(),
        false => job.expected_nodes.split_terminator('\n').flat_map(model::hostlist::expand).flatten().collect(),
    };
    blocking(move || {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
        write(Path::new(&file("script")), &original)?;
        let mut files = Files { script: file("script"), paths: file("path"), nodes: None };
        if let Some(text) = replaced {
            files.script = file("script.bb");
            write(Path::new(&files.script), &text)?;
        }
        if !names.is_empty() {
            let list = names.iter().map(|name| format!("{name}\n")).collect::<String>();
            let nodes = file("client_nids");
            write(Path::new(&nodes), &list)?;
            files.nodes = Some(nodes);
        }
        Ok(files)
    })
    .await
}

/// A script for the hooks of a submission, which has no number yet. The folder goes with the value.
pub struct Submitted {
    folder: PathBuf,
    pub script: String,
}

impl Drop for Submitted {
    fn drop(&mut self) {
        // Nothing depends on it; the next start sweeps.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub async fn of_submission(
    site: &Site,
    cluster: &Cluster,
    spec: &JobSpec,
    blobs: &[Blob],
) -> Result<Submitted, String> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = site.state_dir.join("hash.new").join(format!("submit.{}.{number}", std::process::id()));
    let text = script(&config(cluster), spec, |spec| own_script(cluster, spec, blobs));
    blocking(move || {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let file = folder.join("script");
        write(&file, &text)?;
        Ok(Submitted { folder, script: file.to_string_lossy().into_owned() })
    })
    .await
}

/// For hooks of jobs that are no more.
pub async fn dummy(site: &Site) -> Result<String, String> {
    let folder = site.state_dir.join("hash.new");
    blocking(move || {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let file = folder.join("dummy");
        write(&file, "#!/bin/bash\nexit 0\n")?;
        Ok(file.to_string_lossy().into_owned())
    })
    .await
}

pub async fn empty(file: &str) {
    let file = file.to_owned();
    if let Err(why) = blocking(move || write(Path::new(&file), "")).await {
        tracing::warn!(why, "the file for paths");
    }
}

/// `NAME=value` lines, up to an empty one.
pub async fn variables(file: &str) -> Vec<String> {
    let file = file.to_owned();
    let text = blocking(move || {
        use std::io::Read;
        let mut text = Vec::new();
        fs::File::open(&file)?.take(MAX_PATHS).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    });
    let text = text.await.unwrap_or_default();
    let lines = text.lines().take_while(|line| !line.trim().is_empty());
    let is_variable =
        |line: &&str| line.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !line.contains('\0'));
    lines.filter(is_variable).map(str::to_owned).collect()
}

/// The job's buffer is gone, and with it what its hooks needed.
pub async fn forget(site: &Site, owner: &Owner) {
    let Owner::Buffer(job) = owner else { return };
    let folder = folder(&site.state_dir, *job);
    let gone = blocking(move || match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    });
    if let Err(why) = gone.await {
        tracing::warn!(%job, why, "files of a burst buffer are left");
    }
}

/// What was left by those before us.
pub async fn sweep(site: &Site) {
    let cluster = site.published.now();
    let state_dir = site.state_dir.clone();
    let has_buffer = move |name: &str| {
        let id = name.strip_prefix("job.").and_then(|id| id.parse().ok()).map(JobId);
        id.is_some_and(|id| cluster.buffer(id).is_some())
    };
    let swept = blocking(move || {
        let hashes = (0..10).map(|hash| format!("hash.{hash}")).chain(["hash.new".into()]);
        for folder in hashes.map(|hash| state_dir.join(hash)).filter(|folder| folder.is_dir()) {
            for entry in fs::read_dir(folder)?.flatten() {
                if !has_buffer(&entry.file_name().to_string_lossy()) && entry.path().is_dir() {
                    fs::remove_dir_all(entry.path())?;
                }
            }
        }
        Ok(())
    });
    if let Err(why) = swept.await {
        tracing::warn!(why, "files of former burst buffers are left");
    }
}

fn folder(state_dir: &Path, job: JobId) -> PathBuf {
    state_dir.join(format!("hash.{}", job.0 % 10)).join(format!("job.{job}"))
}

fn own_script(cluster: &Cluster, spec: &JobSpec, brought: &[Blob]) -> Option<String> {
    let JobKind::Batch { script } = &spec.kind else { return None };
    let sent = brought.iter().find(|blob| blob.id == *script).map(|blob| blob.content.as_slice());
    let content = sent.or_else(|| cluster.blob(*script).map(|content| &**content))?;
    Some(String::from_utf8_lossy(content).into_owned())
}

/// The job's script with what the options add to it; for a job without one, the directives alone.
fn script(config: &BurstBufferConfig, spec: &JobSpec, own: impl Fn(&JobSpec) -> Option<String>) -> String {
    let added = option_lines(config, &spec.burst_buffer);
    let added: Vec<&str> = spec.burst_buffer_file.lines().chain(added.iter().map(String::as_str)).collect();
    let own = own(spec).map(|text| component(config, &text, spec.component));
    let Some(own) = own else {
        return format!("#!/bin/bash\n{}\n", added.join("\n"));
    };
    if added.is_empty() {
        return own;
    }
    let added = format!("{}\n", added.join("\n"));
    match own.split_once('\n') {
        Some((first, rest)) if first.starts_with('#') => format!("{first}\n{added}{rest}"),
        _ => added + &own,
    }
}

/// The directives with their symbols replaced, if there are any to replace.
fn replaced(job: &Job) -> Option<String> {
    let text = &job.spec.buffer.as_ref()?.text;
    if !text.contains('%') {
        return None;
    }
    let facts = Facts {
        job: job.id,
        array: job.array_id(),
        task: job.array_task(),
        work_dir: &job.spec.work_dir,
        user: &job.spec.user,
        name: &job.spec.name,
        ..Default::default()
    };
    // Nothing is replaced behind two backslashes.
    let line = |line: &str| match line.find("\\\\") {
        Some(mark) => format!("{}{}\n", replace(&line[..mark], &facts), &line[mark..]),
        None => format!("{}\n", replace(line, &facts)),
    };
    Some(format!("#!/bin/sh\n{}", text.lines().map(line).collect::<String>()))
}

/// In one piece or not at all: hooks may be reading.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    if fs::read(file).is_ok_and(|known| known == text.as_bytes()) {
        return Ok(());
    }
    let new = file.with_extension("new");
    let mut out = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    out.write_all(text.as_bytes())?;
    fs::rename(new, file)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> std::io::Result<T> + Send + 'static) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}
