//! What users read when something about a buffer has failed: each plugin has its own wording.
use model::Plugin;

pub(crate) struct Words {
    /// In place of the reason.
    pub shown: String,
    /// In SystemComment.
    pub noted: String,
}

/// `operation` is the hook, as the plugin calls it.
/// Since edition 3 of the rules SystemComment names hooks as a 22.05 does.
pub(crate) fn failure(plugin: Plugin, operation: &str, why: &str, rules: u32) -> Words {
    let name = plugin.word();
    let noted = format!("burst_buffer/{name}: {operation}: {why}");
    // As a 22.05 names the two that move data, in the comment only.
    let moves = operation.strip_prefix("dws_").filter(|hook| matches!(*hook, "data_in" | "data_out"));
    let moves = moves.filter(|_| plugin == Plugin::DataWarp && rules >= 3);
    let shown = match (plugin, operation) {
        (Plugin::Native, _) => {
            let shown = format!("burst_buffer/{name}: {operation} failed: {why}");
            return Words { noted: shown.clone(), shown };
        }
        (Plugin::Lua, "teardown") => format!("burst_buffer/{name}: teardown failed: {why}"),
        (Plugin::Lua, _) => format!("burst_buffer/{name}: JobHeldAdmin: {operation} failed: {why}"),
        (Plugin::DataWarp, "pre_run") => "Burst buffer pre_run error".into(),
        (Plugin::DataWarp, "paths") => format!("burst_buffer/{name}: paths failed: {why}"),
        (Plugin::DataWarp, "create_persistent") if why == DUPLICATE => "Burst buffer create_persistent error".into(),
        (Plugin::DataWarp, "destroy_persistent") if why.ends_with(DENIED) => format!("burst_buffer/{name}: {why}"),
        (Plugin::DataWarp, "create_persistent" | "destroy_persistent") => why.to_owned(),
        (Plugin::DataWarp, _) => noted.clone(),
    };
    let noted = moves.map_or(noted, |hook| format!("burst_buffer/{name}: {hook}: {why}"));
    Words { shown, noted }
}

pub(crate) const DUPLICATE: &str = "Duplicate buffer name";
pub(crate) const DENIED: &str = "permission denied";
