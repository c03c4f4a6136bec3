//! How much the log says, changed while the controller runs.
use std::sync::{Mutex, OnceLock};

use model::loudness::{LogLevel, Loudness, LoudnessChange};
use tracing_subscriber::EnvFilter;
use wire::log_lines::LogLines;

struct Log {
    /// Makes another filter hold.
    change: Box<dyn Fn(EnvFilter) -> bool + Send + Sync>,
    now: Loudness,
    /// `-v` on the command line: so much louder than the configuration says.
    n_verbose: usize,
    /// `SPUR_LOG` says exactly what is logged, whatever the configuration says.
    is_fixed: bool,
}

static LOG: OnceLock<Mutex<Log>> = OnceLock::new();

/// Begins to log to standard error, wherever that leads.
pub fn start(n_verbose: usize) {
    let now = Loudness { level: Some(LogLevel::Info.louder(n_verbose)), flags: Vec::new() };
    let given = EnvFilter::try_from_env("SPUR_LOG").ok();
    let is_fixed = given.is_some();
    let filter = given.unwrap_or_else(|| filter(&now));
    // A log on a full disk loses lines; telling of that on the same disk would end the thread that wanted to say something.
    let log = tracing_subscriber::fmt()
        .with_writer(|| LogLines(std::io::stderr()))
        .with_ansi(false)
        .log_internal_errors(false);
    let log = log.with_env_filter(filter).with_filter_reloading();
    let handle = log.reload_handle();
    log.init();
    let change = Box::new(move |filter| handle.reload(filter).is_ok());
    let _ = LOG.set(Mutex::new(Log { change, now, n_verbose, is_fixed }));
}

/// As the configuration says; what was changed meanwhile is forgotten.
pub fn follow(config: &Loudness) {
    let Some(mut log) = log() else { return };
    if !log.is_fixed {
        let level = config.level.unwrap_or_default().louder(log.n_verbose);
        log.set(Loudness { level: Some(level), flags: config.flags.clone() });
    }
}

pub fn change(change: &LoudnessChange) {
    if let Some(mut log) = log() {
        let next = change.apply(&log.now);
        tracing::info!(level = next.level.unwrap_or_default().word(), flags = ?next.flags, "the log is as loud as this now");
        log.set(next);
    }
}

pub fn now() -> Loudness {
    log().map(|log| log.now.clone()).unwrap_or_default()
}

fn log() -> Option<std::sync::MutexGuard<'static, Log>> {
    LOG.get().map(|log| log.lock().expect("nobody panics while holding this lock"))
}

impl Log {
    fn set(&mut self, next: Loudness) {
        if next != self.now && (self.change)(filter(&next)) {
            self.now = next;
        }
    }
}

fn filter(loudness: &Loudness) -> EnvFilter {
    let general = match loudness.level.unwrap_or_default() {
        LogLevel::Quiet => "off",
        LogLevel::Fatal | LogLevel::Error => "error",
        // A member that is away is no news at every heartbeat.
        LogLevel::Info => "info,openraft=warn,openraft::core::raft_core=off,openraft::replication=off",
        LogLevel::Verbose => "info",
        LogLevel::Debug => "debug,openraft=info,h2=info,hyper=info,tower=info",
        LogLevel::Debug2 | LogLevel::Debug3 | LogLevel::Debug4 | LogLevel::Debug5 => "trace",
    };
    let subjects = loudness.flags.iter().map(|flag| format!(",{}=debug", flag.target()));
    EnvFilter::new(format!("{general}{}", subjects.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::loudness::DebugFlag;

    #[test]
    fn subjects_are_heard_whatever_the_level() {
        let quiet = Loudness { level: Some(LogLevel::Quiet), flags: vec![DebugFlag::TraceJobs] };
        assert_eq!(filter(&quiet).to_string(), "spur::jobs=debug,off");
        assert_eq!(filter(&Loudness { level: Some(LogLevel::Debug3), ..Default::default() }).to_string(), "trace");
    }
}
