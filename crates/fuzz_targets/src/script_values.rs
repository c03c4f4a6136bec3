//! Values of scripts and programs of a site: JSON, YAML and Lua, and what the controller makes of them.
use controller::foreign_bytes::{change_submission, change_update, read_plugin_answer};
use model::update::JobChanges;
use model::{JobSpec, codec};
use serde_json::Value;

/// A reader of text, and a text that it takes.
type Reading = (&'static str, fn(&str));

/// What a job's record may come to, whatever the script says.
fn keeps<T: codec::Decode + serde::Serialize>(value: &T) {
    codec::decode::<T>(&codec::encode(value)).expect("what a script makes of it can be kept");
}

fn object(text: &str) -> Option<serde_json::Map<String, Value>> {
    serde_json::from_str(text).ok()
}

const READINGS: &[Reading] = &[
    (r#"{"a": [1, 2.5, null, true, {"b": "c"}], "7": "x", "": -9223372036854775808}"#, |text| {
        if let Ok(value) = serde_json::from_str::<Value>(text)
            && let Ok(back) = hooks::foreign_bytes::through_lua(&value)
        {
            let again = hooks::foreign_bytes::through_lua(&back).expect("it came out of Lua");
            assert_eq!(back, again);
        }
    }),
    ("a: [1, 'two', ~, 0x1f, .inf]\nb:\n  - &x {y: no}\n  - *x\n? z\n: !!str 3\n", |text| {
        if let Ok(value) = hooks::foreign_bytes::of_yaml(text)
            && let Ok(written) = hooks::foreign_bytes::to_yaml(&value)
        {
            hooks::foreign_bytes::of_yaml(&written).expect("what was written can be read");
        }
    }),
    (r#"{"pools": [{"id": "p", "quantity": 10, "granularity": 1048576, "free": 3}]}"#, |text| {
        read_plugin_answer(text);
    }),
    ("{u'sessions': [{'id': 3, u'token': u'data', 'owner': 1000}], 'instances': []}", |text| {
        read_plugin_answer(text);
    }),
    (
        r#"{"comment": "c", "min_nodes": 2, "time_limit": 30, "nice": -5, "features": "a&b", "partition": "debug",
            "req_nodes": "n[1-3]", "dependency": "afterok:1", "begin_time": 12, "licenses": "m:2", "gres": "gpu:1"}"#,
        |text| {
            let mut spec = JobSpec::default();
            if let Some(changed) = object(text)
                && change_submission(&mut spec, &changed).is_ok()
            {
                keeps(&spec);
            }
        },
    ),
    (
        r#"{"comment": "c", "min_nodes": 2, "time_limit": 30, "nice": "x", "tres_per_node": "gres/gpu:2",
            "pn_min_memory": 9223372036854775808, "num_tasks": 4294967294, "array_inx": "1-9:2%3"}"#,
        |text| {
            let mut update = JobChanges::default();
            if let Some(changed) = object(text)
                && change_update(&mut update, &changed).is_ok()
            {
                keeps(&update);
            }
        },
    ),
    (
        r#"{"Lua": {"script": "/s", "function": "f", "arguments": ["a"], "job_info": {"a": 1}, "around": {"cluster_name": "c", "qos_priorities": {}}}}"#,
        |text| {
            if let Ok(call) = serde_json::from_str::<hooks::Call>(text) {
                let written = serde_json::to_string(&call).expect("plain values");
                assert_eq!(serde_json::from_str::<hooks::Call>(&written).expect("it was written so"), call);
            }
            drop(serde_json::from_str::<hooks::Edited>(text));
        },
    ),
];

pub fn seeds() -> Vec<Vec<u8>> {
    let seed = |(at, (text, _)): (usize, &Reading)| [&[at as u8], text.as_bytes()].concat();
    let nested = (0..READINGS.len()).map(|at| [&[at as u8], "[".repeat(20_000).as_bytes()].concat());
    READINGS.iter().enumerate().map(seed).chain(nested).collect()
}

pub fn run(bytes: &[u8]) {
    if let Some((which, text)) = super::choice_and_text(bytes, READINGS.len()) {
        READINGS[which].1(text);
    }
}
