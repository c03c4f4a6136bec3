//! `BurstBufferType` of a slurm.conf, and the burst_buffer.conf beside it.
use std::path::{Path, PathBuf};

use model::Config;
use model::pool::{BurstBufferConfig, Plugin};
use model::time::Span;

use super::values::{Again, Notes, Values};
use super::{keys, read_lines};
use crate::problem::Problems;

/// Slurm waits no longer than this for a script.
const LONGEST_OF_LUA: Span = Span::from_secs(2_073_600);

pub(crate) fn read(values: &Values, config: &mut Config, folder: Option<&Path>, notes: &Notes) {
    let file = |plugin: Plugin| folder.and_then(|folder| conf_file(folder, plugin));
    let Some(pair) = values.get("BurstBufferType") else { return idle(file(Plugin::Lua), notes) };
    let types: Vec<&str> = pair.value.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    let plugin = match types[..] {
        [] | ["burst_buffer/none" | "none"] => return idle(file(Plugin::Lua), notes),
        [one] => Plugin::parse(one),
        _ => return notes.wrong(&pair.at, "`BurstBufferType` names more than one plugin; only one can be active"),
    };
    let mut burst = match plugin {
        Some(plugin @ (Plugin::Lua | Plugin::DataWarp)) => BurstBufferConfig { plugin, ..Default::default() },
        Some(Plugin::Native) => {
            return notes.wrong(&pair.at, "burst_buffer/native has pools, which only a spur.conf can describe");
        }
        None => {
            let expected = "burst_buffer/lua, burst_buffer/datawarp or burst_buffer/none";
            return notes.wrong(&pair.at, format!("`BurstBufferType` must be {expected}, not {:?}", pair.value));
        }
    };
    burst.script = folder.map(script).unwrap_or_default();
    let counted = values.text("AccountingStorageTRES").unwrap_or_default();
    let own = format!("bb/{}", burst.plugin.word());
    burst.counts = counted.split(',').any(|word| word.trim().eq_ignore_ascii_case(&own));
    if let Some(file) = file(burst.plugin) {
        options(&file, &mut burst, notes);
    }
    if let Some(pair) = values.get("SchedulerParameters") {
        let count = pair.value.split(',').find_map(|word| word.trim().strip_prefix("bb_array_stage_cnt="));
        match count.map(str::parse::<u32>) {
            None => (),
            Some(Ok(count)) if count > 0 => burst.n_array_tasks = count,
            Some(_) => notes.wrong(&pair.at, "bb_array_stage_cnt must be a whole number from 1"),
        }
    }
    config.burst_buffer = Some(burst);
}

/// Where the site's script is.
pub(crate) fn script(folder: &Path) -> String {
    folder.join("burst_buffer.lua").display().to_string()
}

/// The file of the plugin's options in the folder of the main file, if there is one.
pub(crate) fn conf_file(folder: &Path, plugin: Plugin) -> Option<PathBuf> {
    let names = ["burst_buffer.conf".to_owned(), format!("burst_buffer_{}.conf", plugin.word())];
    names.iter().map(|name| folder.join(name)).find(|file| file.exists())
}

fn idle(file: Option<PathBuf>, notes: &Notes) {
    if let Some(file) = file {
        let text = "without effect: no BurstBufferType asks for it".to_string();
        notes.warnings.borrow_mut().extend(Problems::of_file(&file.display().to_string(), text).list);
    }
}

/// Reads a burst_buffer.conf.
pub(crate) fn options(file: &Path, burst: &mut BurstBufferConfig, notes: &Notes) {
    let name = file.display().to_string();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            return notes.problems.borrow_mut().extend(Problems::of_file(&name, error.to_string()).list);
        }
    };
    let mut values = Values::default();
    read_lines(&text, &name, file.parent(), notes, &mut |line| match line.pairs() {
        Ok(pairs) => {
            let title = "in burst_buffer.conf";
            pairs.iter().for_each(|pair| values.add(keys::BURST_BUFFER, title, pair, Again::Warned, notes));
        }
        Err(problem) => notes.problems.borrow_mut().push(problem),
    });
    apply(&values, burst, notes);
}

fn apply(values: &Values, burst: &mut BurstBufferConfig, notes: &Notes) {
    let is_lua = burst.plugin == Plugin::Lua;
    let not_for_lua = |key: &str| {
        let pair = values.get(key).filter(|_| is_lua);
        pair.map(|pair| notes.warn(&pair.at, format!("`{key}` is not for burst_buffer/lua: it has no effect")))
            .is_some()
    };
    users(values, "AllowUsers", &mut burst.allow_users);
    users(values, "DenyUsers", &mut burst.deny_users);
    if let Some(pair) = values.get("DenyUsers").filter(|_| !burst.allow_users.is_empty()) {
        notes.warn(&pair.at, "`AllowUsers` and `DenyUsers` are both given: both hold");
    }
    let take = |key: &str, target: &mut String| {
        if let Some(text) = values.text(key) {
            text.clone_into(target);
        }
    };
    if !not_for_lua("DefaultPool") {
        take("DefaultPool", &mut burst.default_pool);
    }
    if !not_for_lua("GetSysState") {
        take("GetSysState", &mut burst.get_sys_state);
    }
    if !not_for_lua("GetSysStatus") {
        take("GetSysStatus", &mut burst.get_sys_status);
    }
    directive(values, burst, notes);
    flags(values, burst, notes);
    if values.flag("PrivateData", notes) == Some(true) {
        burst.is_private = true;
    }
    for (key, target) in [
        ("PollInterval", &mut burst.poll_interval),
        ("OtherTimeout", &mut burst.other_timeout),
        ("StageInTimeout", &mut burst.stage_in_timeout),
        ("StageOutTimeout", &mut burst.stage_out_timeout),
        ("ValidateTimeout", &mut burst.validate_timeout),
    ] {
        let Some(span) = values.seconds(key, notes) else { continue };
        *target = span;
        if is_lua && key != "PollInterval" && span > LONGEST_OF_LUA {
            let pair = values.get(key).expect("just read");
            notes.warn(&pair.at, format!("`{key}` is reduced to {} seconds", LONGEST_OF_LUA.secs()));
            *target = LONGEST_OF_LUA;
        }
    }
    for key in keys::BURST_BUFFER_LEGACY {
        if let Some(pair) = values.get(key) {
            notes.warn(&pair.at, format!("`{key}` has no effect: the plugin it was for is no more"));
            if !matches!(*key, "Granularity" | "Pools") {
                burst.legacy.push(format!("{key}={}", pair.value));
            }
        }
    }
}

fn directive(values: &Values, burst: &mut BurstBufferConfig, notes: &Notes) {
    let Some(pair) = values.get("Directive") else { return };
    if burst.plugin != Plugin::Lua {
        return notes.warn(&pair.at, "`Directive` is only for burst_buffer/lua: it has no effect");
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match pair.value.trim_start_matches('#') {
        word if !word.is_empty() && word.chars().all(is_word) => word.clone_into(&mut burst.directive),
        _ => notes.wrong(&pair.at, format!("`Directive` must be a word, not {:?}", pair.value)),
    }
}

/// Slurm's manual separates users with colons, its source with commas.
fn users(values: &Values, key: &str, target: &mut Vec<String>) {
    if let Some(text) = values.text(key) {
        *target = text.split([',', ':']).map(str::trim).filter(|user| !user.is_empty()).map(String::from).collect();
    }
}

fn flags(values: &Values, burst: &mut BurstBufferConfig, notes: &Notes) {
    let Some(pair) = values.get("Flags") else { return };
    for word in pair.value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let is_known = set_flag(burst, word);
        let is_for_others = burst.plugin == Plugin::Lua && (burst.enables_persistent || burst.emulates_cray);
        if is_for_others {
            (burst.enables_persistent, burst.emulates_cray) = (false, false);
            notes.warn(&pair.at, format!("the flag {word} is not for burst_buffer/lua: it has no effect"));
        }
        if !is_known {
            notes.wrong(&pair.at, format!("`Flags`: unknown flag {word}"));
        }
    }
}

/// Says whether there is such a flag.
pub(crate) fn set_flag(burst: &mut BurstBufferConfig, word: &str) -> bool {
    match word.to_lowercase().as_str() {
        "enablepersistent" => burst.enables_persistent = true,
        "disablepersistent" => burst.enables_persistent = false,
        "emulatecray" => burst.emulates_cray = true,
        "privatedata" => burst.is_private = true,
        "teardownfailure" => burst.tears_down_after_failure = true,
        _ => return false,
    }
    true
}
