//! `spur backup` and `spur restore`: the whole state of a cluster in one file, and back.
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use model::config::for_member;
use wire::Controller;

use super::folder::{Folder, cannot};
use super::settle::Wanted;
use super::{Call, daemon, directory, up};
use crate::context::block_on;
use crate::getopt::{self, Operands, Parsed, Value, flag};

/// `spur backup FILE`
pub fn backup(call: &Call) -> Result<i32, String> {
    let (parsed, file) = read(call)?;
    let conf = Folder::to_find(directory(&parsed).as_deref())?.conf();
    let config = config::load(&conf).map_err(|error| error.to_string())?;
    let copied = block_on(async { Controller::connect(config.controller.sockets()).await?.backup().await });
    let bytes = copied.map_err(|error| crate::trouble::text(&error))?;
    write(&file, &bytes)?;
    eprintln!(
        "{}: {} bytes. It holds scripts, environments and the cluster's keys: keep it safe.",
        file.display(),
        bytes.len()
    );
    Ok(0)
}

/// `spur restore FILE`
pub fn restore(call: &Call) -> Result<i32, String> {
    let (parsed, file) = read(call)?;
    let folder = Folder::to_find(directory(&parsed).as_deref())?;
    let config = config::load(&folder.conf()).map_err(|error| error.to_string())?;
    if daemon::running(&folder.conf(), &config).iter().any(|daemon| daemon.role.is_controller()) {
        return Err("the controller runs: `spur down` first".into());
    }
    let bytes = fs::read(&file).map_err(|error| cannot("read", &file, error))?;
    // Nothing is put aside for a file that is something else.
    let is_whole =
        |rest: &[u8]| rest.split_at_checked(32).is_some_and(|(hash, state)| blake3::hash(state).as_bytes() == hash);
    if !bytes.strip_prefix(b"SpurBak1").is_some_and(is_whole) {
        return Err(format!("{} is no whole backup of a cluster", file.display()));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let members = 1..=config.controller.local_members.max(1);
    let states: Vec<PathBuf> = members.map(|member| for_member(&config.controller.state_dir, member).into()).collect();
    // Somebody may restore twice in a second.
    let is_free = |name: &String| !states.iter().any(|state| state.join(name).exists());
    let mut names = (0..).map(|count| match count {
        0 => format!("journal.before-{now}"),
        more => format!("journal.before-{now}.{more}"),
    });
    let aside = names.find(is_free).expect("there is always another name");
    for state in &states {
        fs::create_dir_all(state).map_err(|error| cannot("make", state, error))?;
        let journal = state.join("journal");
        if journal.exists() {
            fs::rename(&journal, state.join(&aside)).map_err(|error| cannot("move", &journal, error))?;
        }
        write(&state.join("restore"), &bytes)?;
    }
    up::bring_up(&folder, &Wanted::default(), call.command_names)?;
    eprintln!("The cluster goes on from {}; what was there before is kept as {aside}.", file.display());
    Ok(0)
}

fn read(call: &Call) -> Result<(Parsed, PathBuf), String> {
    let flags = [flag("dir", Some('d'), Value::Required)];
    let parsed = getopt::parse(&flags, Operands::Mixed, call.arguments)?;
    match &parsed.operands[..] {
        [file] => Ok((parsed.clone(), PathBuf::from(file))),
        _ => Err("name one file".into()),
    }
}

/// Whole or not at all, and for nobody else's eyes.
fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    wire::tls::identity::replace_bytes(path, bytes).map_err(|error| cannot("write", path, error))
}
