//! What is only looked at, and what nobody can ask for here.
use serde_json::{Value, json};

use super::Change::{No, NotHere, Yes};
use super::Field;
use crate::job_submit::values::{NO_VALUE, moment, or_nil, or_none, seconds, short_or_none};

pub fn fields() -> Vec<Field> {
    vec![
        ("user_id", |spec| json!(spec.uid), No),
        ("group_id", |spec| json!(spec.gid), No),
        ("user_name", |spec| or_nil(&spec.user), No),
        ("alloc_node", |spec| or_nil(&spec.submit_host), No),
        ("argc", |spec| json!(spec.arguments.len()), No),
        ("argv", |spec| json!(spec.arguments), No),
        ("submit_line", |spec| or_nil(&spec.submit_line), No),
        ("cron_job", |_| json!(false), No),
        ("overcommit", |spec| json!(u8::from(spec.size.overcommit)), No),
        ("ntasks_per_core", |spec| short_or_none(spec.size.tasks_per_core), No),
        ("tres_per_socket", |spec| or_nil(&spec.tres_words.per_socket), NotHere),
        ("tres_bind", |spec| or_nil(&spec.gpu_bind_words), NotHere),
        ("tres_freq", |spec| or_nil(&spec.gpu_freq_words), NotHere),
        (
            "delay_boot",
            |spec| or_none(Some(spec.delay_boot.secs()).filter(|secs| *secs > 0)),
            Yes(|spec, name, value| {
                spec.delay_boot = seconds(name, value)?.unwrap_or_default();
                Ok(())
            }),
        ),
        (
            "end_time",
            |spec| json!(spec.deadline.map_or(0, |time| time.secs())),
            Yes(|spec, name, value| {
                spec.deadline = moment(name, value)?;
                Ok(())
            }),
        ),
        ("warn_flags", |spec| json!(spec.warning.as_ref().map_or(0, |warning| u8::from(warning.batch_only))), No),
        ("warn_signal", |spec| json!(spec.warning.as_ref().map_or(0, |warning| warning.signal)), No),
        ("warn_time", |spec| json!(spec.warning.as_ref().map_or(0, |warning| warning.before.secs())), No),
        ("immediate", |_| json!(0), NotHere),
        ("max_cpus", |_| json!(NO_VALUE), NotHere),
        ("ntasks_per_gpu", |_| short_or_none(None), NotHere),
        ("ntasks_per_tres", |_| short_or_none(None), NotHere),
        ("ntasks_per_board", |_| json!(0), No),
        ("boards_per_node", |_| json!(0), No),
        ("sockets_per_board", |_| json!(0), No),
        ("bitflags", |_| json!(0), NotHere),
        ("power_flags", |_| json!(0), NotHere),
        ("reboot", |_| short_or_none(None), NotHere),
        ("cpu_freq_min", |_| json!(NO_VALUE), NotHere),
        ("cpu_freq_max", |_| json!(NO_VALUE), NotHere),
        ("cpu_freq_gov", |_| json!(NO_VALUE), NotHere),
        ("clusters", |_| Value::Null, NotHere),
        ("container", |_| Value::Null, NotHere),
        ("extra", |_| Value::Null, NotHere),
        ("origin_cluster", |_| Value::Null, No),
        ("selinux_context", |_| Value::Null, NotHere),
        ("spank_job_env_size", |_| json!(0), No),
    ]
}
