//! Plain values into Lua and out of it.
use mlua::{Lua, Value};
use serde_json::{Map, Number, Value as Json};

/// Null is nothing; lists begin at 1.
pub fn to_lua(lua: &Lua, value: &Json) -> mlua::Result<Value> {
    Ok(match value {
        Json::Null => Value::Nil,
        Json::Bool(flag) => Value::Boolean(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Integer(whole),
            None => Value::Number(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(lua.create_string(text)?),
        Json::Array(items) => {
            let table = lua.create_table()?;
            for (index, item) in items.iter().enumerate() {
                table.set(index + 1, to_lua(lua, item)?)?;
            }
            Value::Table(table)
        }
        Json::Object(fields) => {
            let table = lua.create_table()?;
            for (key, item) in fields {
                table.set(key.as_str(), to_lua(lua, item)?)?;
            }
            Value::Table(table)
        }
    })
}

/// A table with only whole numbers from 1 as keys is a list.
pub fn from_lua(value: &Value, depth: usize) -> mlua::Result<Json> {
    const DEEPEST: usize = 64;
    if depth > DEEPEST {
        return Err(mlua::Error::runtime("a table is nested too deeply, or contains itself"));
    }
    Ok(match value {
        Value::Nil => Json::Null,
        Value::Boolean(flag) => Json::Bool(*flag),
        Value::Integer(number) => Json::Number((*number).into()),
        Value::Number(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
        Value::String(text) => Json::String(text.to_string_lossy()),
        Value::Table(table) => {
            let length = table.raw_len();
            let mut fields = Map::new();
            let mut items = vec![Json::Null; length];
            for pair in table.pairs::<Value, Value>() {
                let (key, item) = pair?;
                let item = from_lua(&item, depth + 1)?;
                match key {
                    Value::Integer(at) if at >= 1 && at as usize <= length => items[at as usize - 1] = item,
                    Value::String(name) => drop(fields.insert(name.to_string_lossy(), item)),
                    other => drop(fields.insert(other.to_string()?, item)),
                }
            }
            match fields.is_empty() && length > 0 {
                true => Json::Array(items),
                false => {
                    let numbered = items.into_iter().enumerate().map(|(at, item)| ((at + 1).to_string(), item));
                    fields.extend(numbered);
                    Json::Object(fields)
                }
            }
        }
        other => return Err(mlua::Error::runtime(format!("a {} cannot be told", other.type_name()))),
    })
}
