//! Makes the directories that a daemon is to use, and keeps them from eyes and hands that have no business there.
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use model::Config;
use model::config::ControllerConfig;

pub fn controller(settings: &ControllerConfig, config: &Config) -> Result<(), String> {
    let (state, socket) = (Path::new(&settings.state_dir), Path::new(&settings.socket));
    // Others must pass through to reach the socket, but need not look around.
    create(state, 0o711)?;
    let journal = state.join("journal");
    create(&journal, 0o700)?;
    // Scripts and environments of all users are in it.
    fs::set_permissions(&journal, Permissions::from_mode(0o700)).map_err(cannot("close", &journal))?;
    if socket.parent() == Some(state) {
        let mode = fs::metadata(state).map_err(cannot("look at", state))?.mode();
        if mode & 0o001 == 0 {
            let dir = state.display();
            tracing::warn!("only its owner can pass through {dir}: for others to reach the cluster, chmod o+x {dir}");
        }
    }
    own_parent(socket)?;
    if let Some(burst) = config.burst_buffer.as_ref().filter(|burst| burst.plugin == model::Plugin::Lua) {
        hooks::check(&burst.script, &hooks::FUNCTIONS)?;
    }
    for script in config.hooks.job_submit_scripts() {
        hooks::check(script, &hooks::SUBMIT_FUNCTIONS)?;
    }
    parents([settings.pid_file.as_str(), settings.log_file.as_str()].map(Path::new))
}

pub fn agent(options: &agent::Options, log: &Path) -> Result<(), String> {
    create(&options.spool_dir, 0o755)?;
    own_parent(&options.socket)?;
    parents(options.pid_file.as_deref().into_iter().chain([log]))
}

const PREDECESSOR_PATIENCE: Duration = Duration::from_secs(10);

/// Removes the journal, if no controller uses it.
pub fn forget_state(state: &Path) -> Result<(), String> {
    let journal = state.join("journal");
    let lock = journal.join("lock");
    let held = File::options().create(true).truncate(false).write(true).open(&lock).map_err(cannot("open", &lock))?;
    // One that was just told to stop needs a moment.
    let end = Instant::now() + PREDECESSOR_PATIENCE;
    while held.try_lock().is_err() {
        if Instant::now() >= end {
            return Err(format!("{} is in use: stop the controller first", journal.display()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    for entry in fs::read_dir(&journal).map_err(cannot("read", &journal))? {
        let path = entry.map_err(cannot("read", &journal))?.path();
        if path == lock {
            continue;
        }
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(cannot("remove", &path))?;
    }
    tracing::info!("the state of earlier runs is forgotten");
    Ok(())
}

/// A socket's directory must be one that nobody else could have put there for us.
fn own_parent(socket: &Path) -> Result<(), String> {
    let Some(dir) = socket.parent() else { return Ok(()) };
    create(dir, 0o755)?;
    let found = fs::symlink_metadata(dir).map_err(cannot("look at", dir))?;
    let is_public = |dir: &Path| fs::metadata(dir).is_ok_and(|found| found.mode() & 0o002 != 0);
    let is_own = [0, rustix::process::geteuid().as_raw()].contains(&found.uid());
    // Where all may make directories, somebody else may have made this one; elsewhere its owner was chosen by root.
    if dir.parent().is_some_and(is_public) && (found.is_symlink() || !is_own) {
        return Err(format!("{} belongs to somebody else", dir.display()));
    }
    // With the sticky bit, nobody can put another socket in the place of ours.
    if found.mode() & 0o1002 == 0o002 && !found.is_symlink() {
        let dir = dir.display();
        return Err(format!("everybody may put sockets into {dir}: chmod o-w {dir}"));
    }
    Ok(())
}

fn parents<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<(), String> {
    files
        .into_iter()
        .filter_map(Path::parent)
        .filter(|dir| !dir.as_os_str().is_empty())
        .try_for_each(|dir| create(dir, 0o755))
}

fn create(dir: &Path, mode: u32) -> Result<(), String> {
    DirBuilder::new().recursive(true).mode(mode).create(dir).map_err(cannot("make", dir))
}

fn cannot(what: &str, path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("cannot {what} {}: {error}", path.display())
}
