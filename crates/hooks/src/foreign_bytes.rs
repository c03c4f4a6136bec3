//! Values of scripts and programs on their way in and out, opened to crate `fuzz_targets` and to nothing else.
use serde_json::Value;

/// The value as a script gets it, and as it comes back.
pub fn through_lua(value: &Value) -> Result<Value, String> {
    let lua = mlua::Lua::new();
    let given = crate::lua::values::to_lua(&lua, value).map_err(|error| error.to_string())?;
    crate::lua::values::from_lua(&given, 0).map_err(|error| error.to_string())
}

pub fn of_yaml(text: &str) -> Result<Value, String> {
    crate::lua::yaml::read(text)
}

pub fn to_yaml(value: &Value) -> Result<String, String> {
    crate::lua::yaml::write(value)
}
