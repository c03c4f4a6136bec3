//! What users read when something about a buffer has failed: each plugin has its own wording.
use model::Plugin;

pub(crate) struct Words {
    /// In place of the reason.
    pub shown: String,
    /// In SystemComment.
    pub noted: String,
}

/// `operation` is the hook, as the plugin calls it.
pub(crate) fn failure(plugin: Plugin, operation: &str, why: &str) -> Words {
    let name = plugin.word();
    let noted = format!("burst_buffer/{name}: {operation}: {why}");
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
    Words { shown, noted }
}

pub(crate) const DUPLICATE: &str = "Duplicate buffer name";
pub(crate) const DENIED: &str = "permission denied";
