//! Files that srun itself reads and writes for its tasks: those whose name is the same for all of them.
use std::fs::{File, OpenOptions};

use model::pattern::{self, PatternValues};
use model::{Job, Step};

use super::input::Source;
use super::output::Sink;
use super::plan::{Local, Streams};

/// What becomes of what is in a file already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    Empty,
    /// Others write to it too.
    EmptyShared,
    Append,
}

pub struct Files {
    pub stdin: Source,
    pub stdout: Sink,
    /// None: with stdout.
    pub stderr: Option<Sink>,
}

/// The error is what to print after `error: `.
pub fn open(streams: &Streams, opening: Opening, job: &Job, step: &Step) -> Result<Files, String> {
    let name = |text: &str| pattern::expand(text, &values(job, step));
    let output = |text: &str, what: &str| {
        let mut options = OpenOptions::new();
        let is_shared = opening != Opening::Empty;
        options.create(true).write(true).append(is_shared).truncate(!is_shared);
        let failed = |error: std::io::Error| format!("Could not open {what} file: {}", reason(&error));
        let file = options.open(name(text)).map_err(failed)?;
        if opening == Opening::EmptyShared {
            file.set_len(0).map_err(failed)?;
        }
        Ok::<File, String>(file)
    };
    let stdin = match &streams.stdin {
        None => Source::Stdin,
        Some(text) => {
            let file = File::open(name(text));
            Source::File(file.map_err(|error| format!("Could not open stdin file: {}", reason(&error)))?)
        }
    };
    let stdout = match &streams.stdout {
        Local::Own | Local::WithStdout => Sink::Stdout,
        Local::File(text) => Sink::File(output(text, "stdout")?),
    };
    let stderr = match (&streams.stderr, &streams.stdout) {
        (Local::WithStdout, _) => None,
        (Local::Own, _) => Some(Sink::Stderr),
        // Two descriptors on one file would overwrite each other.
        (Local::File(text), Local::File(same)) if text == same => None,
        (Local::File(text), _) => Some(Sink::File(output(text, "stderr")?)),
    };
    Ok(Files { stdin, stdout, stderr })
}

/// Says early what is sure to fail later: before a job is asked for, nothing need be taken back.
pub fn check(streams: &Streams) -> Result<(), String> {
    let is_plain = |text: &&String| !text.contains(['%', '\\']);
    if let Some(text) = streams.stdin.as_ref().filter(is_plain) {
        File::open(text).map_err(|error| format!("Could not open stdin file: {}", reason(&error)))?;
    }
    for (local, what) in [(&streams.stdout, "stdout"), (&streams.stderr, "stderr")] {
        if let Local::File(text) = local
            && is_plain(&text)
        {
            let opened = OpenOptions::new().create(true).append(true).open(text);
            opened.map_err(|error| format!("Could not open {what} file: {}", reason(&error)))?;
        }
    }
    Ok(())
}

fn values(job: &Job, step: &Step) -> PatternValues {
    PatternValues {
        job: job.id.0,
        array_job: job.array_id().map(|array| array.0),
        array_task: job.array_task(),
        step: Some(step.id.to_string()),
        node_name: step.shares.first().map(|share| share.node.to_string()).unwrap_or_default(),
        user: job.spec.user.clone(),
        job_name: job.spec.name.clone(),
        ..PatternValues::default()
    }
}

/// The system's words, without the number that Rust adds.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}
