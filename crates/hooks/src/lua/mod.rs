//! A site's burst_buffer.lua or job_submit.lua: loaded afresh for every call.
mod edit;
mod errors;
mod slurm_table;
pub(crate) mod values;
pub(crate) mod yaml;

use mlua::{Lua, MultiValue, Value};
use serde_json::Value as Json;

use crate::call::Surroundings;

pub use edit::edit;

/// A script that needs more than this leaks.
const MAX_MEMORY: usize = 512 << 20;

/// Whether the script loads and has every function.
pub fn check(script: &str, functions: &[String]) -> Result<(), String> {
    let lua = load(script, &Surroundings::default())?;
    let is_missing = |name: &&str| lua.globals().get::<mlua::Function>(*name).is_err();
    let missing: Vec<&str> = functions.iter().map(String::as_str).filter(is_missing).collect();
    match missing[..] {
        [] => Ok(()),
        [one] => Err(format!("{script}: the function {one} is missing")),
        _ => Err(format!("{script}: these functions are missing: {}", missing.join(", "))),
    }
}

/// Calls one function: whether it succeeded, and its message.
pub fn call(
    script: &str,
    function: &str,
    arguments: &[String],
    job_info: Option<&Json>,
    around: &Surroundings,
) -> (bool, String) {
    match try_call(script, function, arguments, job_info, around) {
        Ok(answer) => answer,
        Err(why) => {
            eprintln!("error: {function}: {why}");
            (false, why)
        }
    }
}

fn try_call(
    script: &str,
    function: &str,
    arguments: &[String],
    job_info: Option<&Json>,
    around: &Surroundings,
) -> Result<(bool, String), String> {
    let lua = load(script, around)?;
    let short = |error: mlua::Error| in_short(&error);
    let called: mlua::Function =
        lua.globals().get(function).map_err(|_| format!("{script}: the function {function} is missing"))?;
    let mut given = MultiValue::new();
    for argument in arguments {
        given.push_back(Value::String(lua.create_string(argument).map_err(short)?));
    }
    if let Some(info) = job_info {
        given.push_back(values::to_lua(&lua, info).map_err(short)?);
    }
    let returned: MultiValue = called.call(given).map_err(short)?;
    meaning(function, returned)
}

/// A number, and perhaps a text; nothing at all is success.
fn meaning(function: &str, returned: MultiValue) -> Result<(bool, String), String> {
    let mut returned = returned.into_iter();
    let is_success = match returned.next() {
        None => return Ok((true, String::new())),
        Some(Value::Integer(code)) => code == 0,
        Some(Value::Number(code)) => code == 0.0,
        Some(Value::String(text)) => match text.to_string_lossy().trim().parse::<f64>() {
            Ok(code) => code == 0.0,
            Err(_) => return Err(format!("{function} did not return a number first")),
        },
        Some(other) => return Err(format!("{function} returned a {} where a number belongs", other.type_name())),
    };
    let message = match returned.next() {
        None | Some(Value::Nil) => String::new(),
        Some(Value::String(text)) => text.to_string_lossy(),
        Some(Value::Integer(number)) => number.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        Some(other) => return Err(format!("{function} returned a {} where a text belongs", other.type_name())),
    };
    match returned.next() {
        None => Ok((is_success, message)),
        Some(_) => Err(format!("{function} returned more than two values")),
    }
}

fn load(script: &str, around: &Surroundings) -> Result<Lua, String> {
    let text = std::fs::read(script).map_err(|error| format!("{script}: {error}"))?;
    let lua = prepared(around)?;
    begin(&lua, script, &text)?;
    Ok(lua)
}

/// A state without a script.
fn prepared(around: &Surroundings) -> Result<Lua, String> {
    // SAFETY: the script is the site's own, and has a process of its own to break.
    let lua = unsafe { Lua::unsafe_new() };
    let short = |error: mlua::Error| in_short(&error);
    lua.set_memory_limit(MAX_MEMORY).map_err(short)?;
    slurm_table::register(&lua, around).map_err(short)?;
    Ok(lua)
}

fn begin(lua: &Lua, script: &str, text: &[u8]) -> Result<(), String> {
    let returned: MultiValue =
        lua.load(text).set_name(format!("@{script}")).call(()).map_err(|error| in_short(&error))?;
    match returned.into_iter().next() {
        Some(Value::Integer(code)) if code != 0 => Err(format!("{script}: loading it returned {code}")),
        Some(Value::Number(code)) if code != 0.0 => Err(format!("{script}: loading it returned {code}")),
        _ => Ok(()),
    }
}

/// File, line and complaint, without the stack.
fn in_short(error: &mlua::Error) -> String {
    let text = match error {
        mlua::Error::CallbackError { cause, .. } => cause.to_string(),
        other => other.to_string(),
    };
    let text = text.strip_prefix("runtime error: ").or(text.strip_prefix("syntax error: ")).unwrap_or(&text);
    text.lines().next().unwrap_or("an error without a text").to_owned()
}
