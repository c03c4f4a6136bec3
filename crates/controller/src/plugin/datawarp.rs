//! What DataWarp's programs mean by what they say.
use model::pool::Pool;
use serde_json::Value;

use super::Bad;

/// What is gone already needs nothing done.
pub fn unless_gone(answer: Result<String, Bad>) -> Result<String, Bad> {
    match answer {
        Err(Bad::Failed { why, .. }) if why.contains("No matching session") || why.contains("token not found") => {
            Ok(why)
        }
        other => other,
    }
}

/// `paths` may complain of other things than the job.
pub fn tolerate_valid(answer: Result<String, Bad>) -> Result<String, Bad> {
    match answer {
        Err(Bad::Failed { why, .. }) if why.starts_with("job_file_valid True") => Ok(why),
        other => other,
    }
}

/// `{"units":"bytes","capacity":N}`; whoever does not know the question gives none.
pub fn real_bytes(answer: Result<String, Bad>) -> u64 {
    match answer {
        Ok(text) if text.starts_with("invalid function") => 0,
        Ok(text) => match read(&text).and_then(|value| value.get("capacity")?.as_u64()) {
            Some(bytes) => bytes,
            None => {
                tracing::error!(text, "real_size gave no capacity");
                0
            }
        },
        Err(Bad::Failed { why, .. }) if why.starts_with("invalid function") => 0,
        Err(bad) => {
            tracing::error!(?bad, "real_size");
            0
        }
    }
}

/// The pools of `--function pools`.
pub fn pools(text: &str) -> Result<Vec<Pool>, String> {
    let value = read(text).ok_or("not JSON")?;
    let list = value.get("pools").and_then(Value::as_array).ok_or("no list \"pools\"")?;
    list.iter().map(|item| super::pools::pool(item, "datawarp")).collect()
}

/// JSON, or what Python prints instead of it.
pub fn read(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| serde_json::from_str(&plain(text)).ok())
}

/// `u'word'` and `'word'` become `"word"`.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut last = ' ';
    for letter in text.chars() {
        if letter == '\'' {
            if last == 'u' {
                out.pop();
            }
            out.push('"');
        } else {
            out.push(letter);
        }
        last = letter;
    }
    out.replace("None", "null").replace("True", "true").replace("False", "false")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_prints_what_is_nearly_json() {
        let text =
            "{u'pools': [{u'id': u'wlm_pool', u'units': 'bytes', u'granularity': 10, u'quantity': 29, u'free': 20}]}";
        let pools = pools(text).unwrap();
        assert_eq!((pools[0].name.as_str(), pools[0].total_bytes, pools[0].unfree_bytes), ("wlm_pool", Some(290), 90));
        assert_eq!(real_bytes(Ok("{'units': 'bytes', 'capacity': 77}".into())), 77);
        assert_eq!(real_bytes(Ok("invalid function: real_size".into())), 0);
    }
}
