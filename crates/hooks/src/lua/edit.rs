//! One function of a job_submit.lua, which may change the table it gets and say something to the user.
use std::cell::RefCell;
use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value};
use serde_json::{Map, Value as Json};

use super::{begin, in_short, prepared, values};
use crate::call::{Edit, Edited};

/// What was said to the user so far.
type Told = Rc<RefCell<Vec<String>>>;

/// A script with a fault changes nothing, and has returned nothing; the log has the fault.
pub fn edit(wanted: &Edit) -> Edited {
    let told = Told::default();
    match try_edit(wanted, &told) {
        Ok((code, changed)) => Edited { code: Some(code), told: told.borrow().join("\n"), changed },
        Err(why) => {
            eprintln!("error: {}: {why}", wanted.function);
            Edited::default()
        }
    }
}

fn try_edit(wanted: &Edit, told: &Told) -> Result<(i64, Map<String, Json>), String> {
    let short = |error: mlua::Error| in_short(&error);
    let lua = prepared(&wanted.around)?;
    let slurm: Table = lua.globals().get("slurm").map_err(short)?;
    for (name, table) in &wanted.known {
        slurm.set(name.as_str(), values::to_lua(&lua, table).map_err(short)?).map_err(short)?;
    }
    let formats: mlua::Function =
        lua.globals().get::<Table>("string").and_then(|string| string.get("format")).map_err(short)?;
    for name in ["log_user", "user_msg"] {
        slurm.set(name, collector(&lua, &formats, told).map_err(short)?).map_err(short)?;
    }
    begin(&lua, &wanted.script, wanted.text.as_bytes())?;
    // What is said while it loads is about no job; it is loaded for every one.
    told.borrow_mut().clear();
    let called: mlua::Function = lua
        .globals()
        .get(wanted.function.as_str())
        .map_err(|_| format!("the function {} is missing", wanted.function))?;
    let table = values::to_lua(&lua, &Json::Object(wanted.table.clone())).map_err(short)?;
    let mut given = MultiValue::new();
    given.push_back(table.clone());
    for other in &wanted.others {
        given.push_back(values::to_lua(&lua, other).map_err(short)?);
    }
    let returned: MultiValue = called.call(given).map_err(short)?;
    let code = meaning(returned.into_iter().next())?;
    Ok((code, changed(&wanted.table, &table).map_err(short)?))
}

/// `slurm.log_user("format", …)`
fn collector(lua: &Lua, formats: &mlua::Function, told: &Told) -> mlua::Result<mlua::Function> {
    let (formats, told) = (formats.clone(), told.clone());
    lua.create_function(move |_, given: MultiValue| {
        let text: mlua::String = formats.call(given)?;
        told.borrow_mut().push(text.to_string_lossy());
        Ok(())
    })
}

/// Nothing at all is success.
fn meaning(returned: Option<Value>) -> Result<i64, String> {
    let text = match returned {
        None | Some(Value::Nil) => return Ok(0),
        Some(Value::Integer(code)) => return Ok(code),
        Some(Value::Number(code)) => return Ok(code as i64),
        Some(Value::String(text)) => text.to_string_lossy(),
        Some(other) => return Err(format!("it returned a {} where a number belongs", other.type_name())),
    };
    text.trim().parse::<f64>().map(|code| code as i64).map_err(|_| "it did not return a number".to_owned())
}

fn changed(before: &Map<String, Json>, table: &Value) -> mlua::Result<Map<String, Json>> {
    let Value::Table(table) = table else { return Ok(Map::new()) };
    let mut changed = Map::new();
    for pair in table.pairs::<mlua::String, Value>() {
        let (name, value) = pair?;
        let (name, value) = (name.to_string_lossy(), values::from_lua(&value, 0)?);
        if !before.get(&name).is_some_and(|known| is_same(known, &value)) {
            changed.insert(name, value);
        }
    }
    for (name, value) in before.iter().filter(|(_, value)| !value.is_null()) {
        if !table.contains_key(name.as_str())? {
            let nothing = if value.is_object() { Json::Object(Map::new()) } else { Json::Null };
            changed.insert(name.clone(), nothing);
        }
    }
    Ok(changed)
}

/// Lua has one empty table, and may have made a whole number of a broken one.
fn is_same(known: &Json, value: &Json) -> bool {
    let is_empty =
        |json: &Json| json.as_object().is_some_and(Map::is_empty) || json.as_array().is_some_and(Vec::is_empty);
    known == value
        || (is_empty(known) && is_empty(value))
        || (known.is_number() && value.is_number() && known.as_f64() == value.as_f64())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, expected: &str) {
        let table = json!({"name": "a", "time_limit": 5, "environment": {"A": "1"}, "account": null});
        let Json::Object(table) = table else { unreachable!() };
        let wanted = Edit {
            script: "job_submit.lua".into(),
            text: format!("slurm.log_user('loaded') function slurm_job_submit(job, parts, uid) {text} end"),
            function: "slurm_job_submit".into(),
            table,
            others: vec![json!({"debug": {"name": "debug"}}), json!(7)],
            ..Edit::default()
        };
        let edited = edit(&wanted);
        let shown = match edited.code {
            Some(code) => format!("{code} {:?} {}", edited.told, Json::Object(edited.changed)),
            None => "a fault".to_owned(),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn a_function_changes_its_table_and_speaks_to_the_user() {
        check("return slurm.SUCCESS", "0 \"\" {}");
        check("", "0 \"\" {}");
        check("return slurm.ERROR", "-1 \"\" {}");
        check("return slurm.ESLURM_INVALID_TIME_LIMIT", "2051 \"\" {}");
        check("slurm.log_user('no %d', 5) slurm.user_msg('x') return -1", "-1 \"no 5\\nx\" {}");
        check("job.time_limit = 10 / 2", "0 \"\" {}");
        check("job.time_limit = job.time_limit + uid", "0 \"\" {\"time_limit\":12}");
        check("job.name = nil job.account = parts.debug.name", "0 \"\" {\"account\":\"debug\",\"name\":null}");
        check("job.environment.B = 'x'", "0 \"\" {\"environment\":{\"A\":\"1\",\"B\":\"x\"}}");
        check("job.environment.A = nil", "0 \"\" {\"environment\":{}}");
        check("local x = nil return x.y", "a fault");
        check("return {}", "a fault");
    }
}
