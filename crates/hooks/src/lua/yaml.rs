//! Plain values as YAML, and back.
use saphyr::{LoadableYamlNode, Mapping, Scalar, Yaml, YamlEmitter};
use serde_json::{Map, Number, Value as Json};

/// The first document; an empty text is nothing.
pub fn read(text: &str) -> Result<Json, String> {
    let documents = Yaml::load_from_str(text).map_err(|error| error.to_string())?;
    documents.first().map_or(Ok(Json::Null), from_node)
}

/// Every reader takes a key of this length, quotes and escapes included; longer ones it takes for something else.
const KEY_LETTERS_MAX: usize = 1000;

pub fn write(value: &Json) -> Result<String, String> {
    if has_long_key(value) {
        return Err(format!("a key of a mapping has more than {KEY_LETTERS_MAX} letters"));
    }
    let mut text = String::new();
    YamlEmitter::new(&mut text).dump(&to_node(value)).map_err(|error| format!("{error:?}"))?;
    text.push('\n');
    Ok(text)
}

fn has_long_key(value: &Json) -> bool {
    match value {
        Json::Array(items) => items.iter().any(has_long_key),
        Json::Object(fields) => {
            fields.iter().any(|(key, item)| key.escape_debug().count() > KEY_LETTERS_MAX || has_long_key(item))
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

fn from_node(node: &Yaml) -> Result<Json, String> {
    Ok(match node {
        Yaml::Value(Scalar::Null) => Json::Null,
        Yaml::Value(Scalar::Boolean(flag)) => Json::Bool(*flag),
        Yaml::Value(Scalar::Integer(number)) => Json::Number((*number).into()),
        Yaml::Value(Scalar::FloatingPoint(number)) => Number::from_f64(**number).map_or(Json::Null, Json::Number),
        Yaml::Value(Scalar::String(text)) => Json::String(text.to_string()),
        Yaml::Sequence(items) => Json::Array(items.iter().map(from_node).collect::<Result<_, _>>()?),
        Yaml::Mapping(fields) => {
            let mut map = Map::new();
            for (key, item) in fields {
                let key = match from_node(key)? {
                    Json::String(text) => text,
                    plain @ (Json::Null | Json::Bool(_) | Json::Number(_)) => plain.to_string(),
                    Json::Array(_) | Json::Object(_) => return Err("a key of a mapping is no plain value".into()),
                };
                map.insert(key, from_node(item)?);
            }
            Json::Object(map)
        }
        Yaml::Tagged(_, inner) => from_node(inner)?,
        Yaml::Representation(text, ..) => Json::String(text.to_string()),
        Yaml::Alias(_) | Yaml::BadValue => return Err("a value cannot be understood".into()),
    })
}

fn to_node(value: &Json) -> Yaml<'_> {
    match value {
        Json::Null => Yaml::Value(Scalar::Null),
        Json::Bool(flag) => Yaml::Value(Scalar::Boolean(*flag)),
        Json::Number(number) => Yaml::Value(match number.as_i64() {
            Some(whole) => Scalar::Integer(whole),
            None => Scalar::FloatingPoint(number.as_f64().unwrap_or(f64::NAN).into()),
        }),
        Json::String(text) => Yaml::Value(Scalar::String(text.as_str().into())),
        Json::Array(items) => Yaml::Sequence(items.iter().map(to_node).collect()),
        Json::Object(fields) => {
            let mut mapping = Mapping::new();
            for (key, item) in fields {
                mapping.insert(Yaml::Value(Scalar::String(key.as_str().into())), to_node(item));
            }
            Yaml::Mapping(mapping)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_reads_as_it_was() {
        let all = json!({"name": "yes: no", "n": 3, "half": 0.5, "flag": true, "none": null, "list": [1, "two", {"x": []}], "7": "#"});
        assert_eq!(read(&write(&all).unwrap()), Ok(all));
        assert_eq!(read("a: [1, 2]\nb:\n  - x\n"), Ok(json!({"a": [1, 2], "b": ["x"]})));
        assert_eq!(read(""), Ok(Json::Null));
        assert!(write(&json!({"a": {("k".repeat(KEY_LETTERS_MAX + 1)): 1}})).is_err());
        assert!(read("a: [").is_err() && read("[a]: 1").is_err());
    }
}
