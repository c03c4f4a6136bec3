//! What DataWarp's programs mean by what they say.
use model::Timestamp;
use model::buffer::Session;
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

/// The sessions of `show_sessions`, each with the bytes of its instances.
pub fn sessions(sessions: &str, instances: &str) -> Option<Vec<Session>> {
    let (sessions, instances) = (read(sessions)?, read(instances)?);
    let instances = instances.get("instances")?.as_array()?.clone();
    let bytes_of = |id: u64| {
        let is_its = |it: &&Value| it.pointer("/links/session").and_then(Value::as_u64) == Some(id);
        let bytes = |it: &Value| it.pointer("/capacity/bytes").and_then(Value::as_u64).unwrap_or(0);
        instances.iter().filter(is_its).map(bytes).fold(0, u64::saturating_add)
    };
    let one = |it: &Value| {
        let number = |key: &str| it.get(key).and_then(Value::as_u64);
        Some(Session {
            token: it.get("token")?.as_str()?.to_owned(),
            uid: u32::try_from(number("owner")?).ok()?,
            created: Timestamp::from_secs(number("created").unwrap_or(0)),
            bytes: bytes_of(number("id")?),
            ..Default::default()
        })
    };
    Some(sessions.get("sessions")?.as_array()?.iter().filter_map(one).collect())
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
        let listed = "{u'sessions': [{'id': 3, u'token': u'data', 'owner': 1000, 'created': 5}, {'id': 4, 'token': '17', 'owner': 1}]}";
        let instances = "{'instances': [{'id': 1, 'capacity': {'bytes': 10}, 'links': {'session': 3}}, {'id': 2, 'capacity': {'bytes': 5}, 'links': {'session': 3}}]}";
        let found = sessions(listed, instances).unwrap();
        assert_eq!((found.len(), found[0].token.as_str(), found[0].uid, found[0].bytes), (2, "data", 1000, 15));
    }
}
