//! The daemon's side: starts a worker, reads what it says within bounds, and ends it in time.
use std::process::Stdio;
use std::time::Duration;

use prolog::inheritance::clean_environment;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::call::Call;
use crate::group::Group;

/// Longer messages are cut.
const MAX_MESSAGE: usize = 1 << 20;
/// What one call may put into the daemon's log.
const MAX_LOG: usize = 16 << 10;
/// A child that the hook left behind may keep its output open; nobody waits for that.
const LINGER: Duration = Duration::from_millis(200);

/// How a hook ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Ended {
        is_success: bool,
        message: String,
    },
    /// It took too long; what it had said until then.
    TimedOut {
        message: String,
    },
    /// It was stopped on demand.
    Stopped,
    /// It could not be started.
    NotStarted(String),
}

/// True when the hook is to be stopped.
pub type Stop = watch::Receiver<bool>;

/// Runs the call for at most `limit`. When this returns, nothing of the hook is left.
pub async fn run(call: &Call, limit: Duration, stop: &mut Stop) -> Answer {
    let mut child = match start(call.context()) {
        Ok(child) => child,
        Err(error) => return Answer::NotStarted(format!("no worker could be started: {error}")),
    };
    let Some(pid) = child.id() else { return Answer::NotStarted("the worker was gone at once".into()) };
    let group = Group(pid as i32);
    let mut request = serde_json::to_vec(call).expect("calls are plain values");
    request.push(b'\n');
    let mut stdin = child.stdin.take().expect("piped");
    let (stdout, stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let mut said = Vec::new();
    let mut log = Vec::new();
    enum End {
        Exited(std::io::Result<std::process::ExitStatus>),
        TimedOut,
        Stopped,
    }
    let end = {
        let work = async {
            // A worker that dies early is told by its status.
            let _ = stdin.write_all(&request).await;
            let mut read = std::pin::pin!(async {
                tokio::join!(collect(stdout, &mut said, MAX_MESSAGE), collect(stderr, &mut log, MAX_LOG))
            });
            let status = tokio::select! {
                _ = &mut read => return child.wait().await,
                status = child.wait() => status,
            };
            let _ = tokio::time::timeout(LINGER, read).await;
            status
        };
        tokio::select! {
            status = work => End::Exited(status),
            () = tokio::time::sleep(limit) => End::TimedOut,
            () = told(stop) => End::Stopped,
        }
    };
    if !matches!(end, End::Exited(_)) {
        group.end().await;
    }
    drop(group);
    // It is dead; this only takes its status away.
    let _ = child.wait().await;
    drop(stdin);
    show(&log);
    let message = text(&said);
    match end {
        End::TimedOut => Answer::TimedOut { message },
        End::Stopped => Answer::Stopped,
        End::Exited(Err(error)) => Answer::NotStarted(error.to_string()),
        End::Exited(Ok(status)) => match (status.success(), message.is_empty(), status.code()) {
            (false, true, None) => {
                Answer::Ended { is_success: false, message: format!("the hook ended with {status}") }
            }
            (is_success, _, _) => Answer::Ended { is_success, message },
        },
    }
}

/// As [`run`], for daemons that have not begun yet: says what is wrong with a script.
pub fn check(script: &str, functions: &[&str]) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(check_in_time(script, functions))
}

/// Whether the script loads and has these functions.
pub async fn check_in_time(script: &str, functions: &[&str]) -> Result<(), String> {
    const LIMIT: Duration = Duration::from_secs(10);
    let (_keep, mut never) = watch::channel(false);
    let functions = functions.iter().map(|name| name.to_string()).collect();
    match run(&Call::Check { script: script.into(), functions }, LIMIT, &mut never).await {
        Answer::Ended { is_success: true, .. } => Ok(()),
        Answer::Ended { message, .. } => Err(message),
        Answer::TimedOut { .. } => Err(format!("{script}: loading it took longer than {} seconds", LIMIT.as_secs())),
        Answer::Stopped => Err(format!("{script}: was not checked")),
        Answer::NotStarted(why) => Err(why),
    }
}

fn start(context: &str) -> std::io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    // The rest of what it inherits it resets itself: calls before its exec would cost the daemon a copy of its page tables.
    clean_environment(command.as_std_mut());
    command.arg0(crate::WORKER_NAME).env("SLURM_SCRIPT_CONTEXT", context);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0);
    command.spawn()
}

/// Also when nobody is left who could say so: whoever wanted the hook is gone.
async fn told(stop: &mut Stop) {
    let _ = stop.wait_for(|stops| *stops).await;
}

/// Reads to the end, keeps the beginning.
async fn collect(mut from: impl AsyncRead + Unpin, into: &mut Vec<u8>, most: usize) {
    let mut block = vec![0; 8192];
    while let Ok(n_read @ 1..) = from.read(&mut block).await {
        let room = most.saturating_sub(into.len());
        into.extend_from_slice(&block[..n_read.min(room)]);
    }
}

fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.strip_suffix('\n').unwrap_or(&text).to_owned()
}

fn show(log: &[u8]) {
    for line in String::from_utf8_lossy(log).lines() {
        match line.split_once(' ') {
            Some(("error:", text)) => tracing::error!("lua: {text}"),
            Some(("info:", text)) => tracing::info!("lua: {text}"),
            Some(("debug:", text)) => tracing::debug!("lua: {text}"),
            _ => tracing::info!("hook: {line}"),
        }
    }
}
