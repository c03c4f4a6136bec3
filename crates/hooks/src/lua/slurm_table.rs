//! The global table `slurm` that scripts expect.
use mlua::{Lua, MultiValue, Table, Value, Variadic};

use super::errors::ERRORS;
use super::{values, yaml};
use crate::call::Surroundings;

const NUMBERS: &[(&str, i64)] = &[
    ("SUCCESS", 0),
    ("ERROR", -1),
    ("FAILURE", -1),
    ("ALLOC_SID_ADMIN_HOLD", 1),
    ("ALLOC_SID_USER_HOLD", 2),
    ("GRES_DISABLE_BIND", 524_288),
    ("GRES_ENFORCE_BIND", 16),
    ("INFINITE", 4_294_967_295),
    ("JOB_SHARED_NONE", 0),
    ("JOB_SHARED_OK", 1),
    ("JOB_SHARED_USER", 2),
    ("JOB_SHARED_MCS", 3),
    ("KILL_INV_DEP", 1),
    ("NO_KILL_INV_DEP", 2),
    ("MAIL_JOB_BEGIN", 1),
    ("MAIL_JOB_END", 2),
    ("MAIL_JOB_FAIL", 4),
    ("MAIL_JOB_REQUEUE", 8),
    ("MAIL_JOB_TIME100", 16),
    ("MAIL_JOB_TIME890", 32),
    ("MAIL_JOB_TIME90", 32),
    ("MAIL_JOB_TIME80", 64),
    ("MAIL_JOB_TIME50", 128),
    ("MAIL_JOB_STAGE_OUT", 256),
    ("MAIL_INVALID_DEPEND", 1024),
    ("NICE_OFFSET", 2_147_483_648),
    ("NO_VAL", 4_294_967_294),
    ("NO_VAL16", 65_534),
    ("NO_VAL8", 254),
    ("SHARED_FORCE", 32_768),
    ("SPREAD_JOB", 256),
    ("USE_MIN_NODES", 512),
];

pub fn register(lua: &Lua, around: &Surroundings) -> mlua::Result<()> {
    let slurm = lua.create_table()?;
    for (name, number) in NUMBERS {
        slurm.set(*name, *number)?;
    }
    for (name, number) in ERRORS {
        slurm.set(format!("ESLURM_{name}"), *number)?;
    }
    // More than Lua's whole numbers hold.
    slurm.set("INFINITE64", u64::MAX as f64)?;
    slurm.set("NO_VAL64", (u64::MAX - 1) as f64)?;
    slurm.set("MEM_PER_CPU", (1u64 << 63) as f64)?;
    slurm.set("SLURM_BB_BUSY", "BUSY")?;
    slurm.set("CLUSTER_NAME", around.cluster_name.as_str())?;
    logs(lua, &slurm)?;
    slurm.set("time_str2mins", lua.create_function(|_, text: String| Ok(minutes(&text)))?)?;
    slurm.set("to_json", lua.create_function(|_, value: Value| Ok(values::from_lua(&value, 0)?.to_string()))?)?;
    let from_json = lua.create_function(|lua, text: String| {
        let read: serde_json::Value = serde_json::from_str(&text).map_err(mlua::Error::runtime)?;
        values::to_lua(lua, &read)
    })?;
    slurm.set("from_json", from_json)?;
    let to_yaml = lua
        .create_function(|_, value: Value| yaml::write(&values::from_lua(&value, 0)?).map_err(mlua::Error::runtime))?;
    slurm.set("to_yaml", to_yaml)?;
    let from_yaml = lua
        .create_function(|lua, text: String| values::to_lua(lua, &yaml::read(&text).map_err(mlua::Error::runtime)?))?;
    slurm.set("from_yaml", from_yaml)?;
    let priorities = around.qos_priorities.clone();
    // Nothing of one that there is not.
    let priority = lua.create_function(move |_, name: String| Ok(priorities.get(&name).copied()))?;
    slurm.set("get_qos_priority", priority)?;
    lua.globals().set("slurm", slurm)
}

/// Lines for the daemon's log; the daemon knows the first word.
fn logs(lua: &Lua, slurm: &Table) -> mlua::Result<()> {
    let formats: mlua::Function = lua.globals().get::<Table>("string")?.get("format")?;
    for (name, level) in [
        ("log_error", "error"),
        ("log_info", "info"),
        ("log_verbose", "debug"),
        ("log_debug", "debug"),
        ("log_debug2", "debug"),
        ("log_debug3", "debug"),
        ("log_debug4", "debug"),
        ("log_user", "info"),
    ] {
        let formats = formats.clone();
        let log = lua.create_function(move |_, given: MultiValue| {
            let text: mlua::String = formats.call(given)?;
            say(level, &text.to_string_lossy());
            Ok(())
        })?;
        slurm.set(name, log)?;
    }
    let error = lua.create_function(|_, given: Variadic<String>| {
        say("error", given.last().map_or("", String::as_str));
        Ok(())
    })?;
    slurm.set("error", error)?;
    // Level 0 is the most urgent.
    let log = lua.create_function(|_, (level, text): (i64, String)| {
        let word = match level {
            ..=0 => "error",
            1 => "info",
            _ => "debug",
        };
        say(word, &text);
        Ok(())
    })?;
    slurm.set("log", log)
}

fn say(level: &str, text: &str) {
    text.lines().for_each(|line| eprintln!("{level}: {line}"));
}

/// Minutes of `days-hours:minutes:seconds` and its shorter forms, rounded up; -1 for no limit.
fn minutes(text: &str) -> i64 {
    const NO_VALUE: i64 = 4_294_967_294;
    if ["-1", "INFINITE", "UNLIMITED"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return 4_294_967_295;
    }
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (days.parse::<i64>().ok(), rest),
        None => (None, text),
    };
    if text.contains('-') && days.is_none() {
        return NO_VALUE;
    }
    let parts: Option<Vec<i64>> = rest.split(':').map(|part| part.parse().ok()).collect();
    let secs = match (days, parts.as_deref()) {
        (Some(_), Some([hours])) => hours * 3600,
        (Some(_), Some([hours, minutes])) => hours * 3600 + minutes * 60,
        (None, Some([minutes])) => minutes * 60,
        (None, Some([minutes, secs])) => minutes * 60 + secs,
        (_, Some([hours, minutes, secs])) => hours * 3600 + minutes * 60 + secs,
        _ => return NO_VALUE,
    };
    (days.unwrap_or(0) * 86_400 + secs + 59) / 60
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_read_and_write_yaml_and_know_priorities() {
        let lua = Lua::new();
        let qos_priorities = [("high".to_owned(), 100)].into();
        register(&lua, &Surroundings { cluster_name: "here".into(), qos_priorities }).unwrap();
        let script = r#"
            local read = slurm.from_yaml("a: [1, 2]")
            return slurm.get_qos_priority("high") + read.a[2], slurm.get_qos_priority("none") == nil, slurm.to_yaml({b = "x"})
        "#;
        let (sum, is_none, text): (i64, bool, String) = lua.load(script).eval().unwrap();
        assert_eq!((sum, is_none, text.as_str()), (102, true, "---\nb: x\n"));
        assert!(lua.load("return slurm.from_yaml('a: [')").eval::<Value>().is_err());
    }
}
