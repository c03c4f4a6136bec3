//! What `scontrol update job` asks for, as a script sees it: fields that are not said are as if nobody had said them.
use model::dependency;
use model::spec::Memory;
use model::update::{JobChanges, TimeLimitChange};
use model::{Reject, hostlist, license};
use serde_json::{Map, Value, json};

use super::values::{
    NICE_OFFSET, NO_SHORT_VALUE, NO_VALUE, by_script, count, dependency_text, devices, flag, joined, limit, minutes,
    moment, nodes, number, or_none, short_or_none, text, words, wrong,
};

type Get = fn(&JobChanges) -> Value;
type Set = fn(&mut JobChanges, &str, &Value) -> Result<(), Reject>;

/// Everything of it that a script finds in the table.
pub fn table(changes: &JobChanges) -> Map<String, Value> {
    FIELDS.iter().map(|(name, get, _)| (name.to_string(), get(changes))).collect()
}

/// Makes the changes what the script has left of the table.
pub fn change(changes: &mut JobChanges, changed: &Map<String, Value>) -> Result<(), Reject> {
    for (name, value) in changed {
        match FIELDS.iter().find(|(known, ..)| known == name) {
            Some((_, _, set)) => set(changes, name, value)?,
            None => return Err(by_script(format!("job_submit.lua: {name} cannot be changed by slurm_job_modify"))),
        }
    }
    Ok(())
}

macro_rules! texts {
    ($($name:literal $field:ident),* $(,)?) => {
        &[$((
            $name,
            |changes| changes.$field.as_ref().map_or(Value::Null, |text| json!(text)),
            |changes, name, value| { changes.$field = optional_text(name, value)?; Ok(()) },
        )),*]
    };
}

macro_rules! counts {
    ($($name:literal $field:ident $shown:ident),* $(,)?) => {
        &[$((
            $name,
            |changes| $shown(changes.$field),
            |changes, name, value| { changes.$field = count(name, value)?; Ok(()) },
        )),*]
    };
}

type Field = (&'static str, Get, Set);

const TEXTS: &[Field] = texts!(
    "account" account, "qos" qos, "comment" comment, "admin_comment" admin_comment, "name" name, "wckey" wckey,
    "features" features, "prefer" preference, "std_in" stdin, "std_out" stdout, "std_err" stderr, "work_dir" work_dir,
    "burst_buffer" burst_buffer, "mail_user" mail_to,
);

const COUNTS: &[Field] = counts!(
    "priority" priority or_none,
    "min_nodes" min_nodes or_none,
    "max_nodes" max_nodes or_none,
    "num_tasks" n_tasks or_none,
    "min_cpus" n_cpus or_none,
    "cpus_per_task" cpus_per_task short_or_none,
    "ntasks_per_node" tasks_per_node short_or_none,
    "pn_min_cpus" min_cpus_per_node short_or_none,
    "req_switch" n_switches or_none,
);

const OTHERS: &[Field] = &[
    (
        "partition",
        |changes| list(&changes.partitions),
        |changes, name, value| {
            changes.partitions = optional_words(name, value)?;
            Ok(())
        },
    ),
    (
        "reservation",
        |changes| list(&changes.reservations),
        |changes, name, value| {
            changes.reservations = optional_words(name, value)?;
            Ok(())
        },
    ),
    (
        "time_limit",
        |changes| json!(limit_minutes(changes.time_limit)),
        |changes, name, value| {
            changes.time_limit = limit(name, value)?.map(TimeLimitChange::To);
            Ok(())
        },
    ),
    (
        "time_min",
        |changes| json!(changes.time_min.map_or(NO_VALUE, minutes)),
        |changes, name, value| {
            changes.time_min = limit(name, value)?;
            Ok(())
        },
    ),
    (
        "begin_time",
        |changes| json!(changes.begin.map_or(0, |time| time.secs())),
        |changes, name, value| {
            changes.begin = moment(name, value)?;
            Ok(())
        },
    ),
    (
        "dependency",
        |changes| changes.dependency.as_ref().map_or(Value::Null, |wanted| json!(dependency_text(wanted))),
        |changes, name, value| {
            changes.dependency = match optional_text(name, value)?.as_deref() {
                None => None,
                Some("") => Some(Default::default()),
                Some(text) => Some(dependency::parse(text).map_err(|_| Reject::BadDependency)?),
            };
            Ok(())
        },
    ),
    (
        "licenses",
        |changes| changes.licenses.as_ref().map_or(Value::Null, |list| json!(list.to_string())),
        |changes, name, value| {
            let text = optional_text(name, value)?;
            changes.licenses = text.map(|text| license::parse(&text).ok_or(Reject::BadLicenses)).transpose()?;
            Ok(())
        },
    ),
    (
        "nice",
        |changes| json!(changes.nice.map_or(NO_VALUE as i64, |nice| i64::from(nice) + NICE_OFFSET)),
        |changes, name, value| {
            changes.nice = match number(name, value)? {
                None => None,
                Some(given) => Some(i32::try_from(given as i64 - NICE_OFFSET).map_err(|_| wrong(name, value))?),
            };
            Ok(())
        },
    ),
    (
        "requeue",
        |changes| short_or_none(changes.requeue.map(u32::from)),
        |changes, name, value| {
            changes.requeue = flag(name, value)?;
            Ok(())
        },
    ),
    (
        "contiguous",
        |changes| short_or_none(changes.contiguous.map(u32::from)),
        |changes, name, value| {
            changes.contiguous = flag(name, value)?;
            Ok(())
        },
    ),
    (
        "shared",
        |changes| json!(changes.shares.map_or(NO_SHORT_VALUE, u64::from)),
        |changes, name, value| {
            changes.shares = flag(name, value)?;
            Ok(())
        },
    ),
    (
        "min_mem_per_node",
        |changes| match changes.memory {
            Some(Memory::PerNodeMb(megabytes)) => json!(megabytes),
            Some(Memory::WholeNode) => json!(0),
            _ => Value::Null,
        },
        |changes, name, value| {
            changes.memory = number(name, value)?.map(|megabytes| match megabytes {
                0 => Memory::WholeNode,
                megabytes => Memory::PerNodeMb(megabytes),
            });
            Ok(())
        },
    ),
    (
        "min_mem_per_cpu",
        |changes| match changes.memory {
            Some(Memory::PerCpuMb(megabytes)) => json!(megabytes),
            _ => Value::Null,
        },
        |changes, name, value| {
            changes.memory = number(name, value)?.map(Memory::PerCpuMb);
            Ok(())
        },
    ),
    ("gres", gres_text, set_gres),
    ("tres_per_node", gres_text, set_gres),
    (
        "req_nodes",
        |changes| node_list(&changes.nodes),
        |changes, name, value| {
            changes.nodes = Some(nodes(name, value)?).filter(|_| !value.is_null());
            Ok(())
        },
    ),
    (
        "exc_nodes",
        |changes| node_list(&changes.excluded),
        |changes, name, value| {
            changes.excluded = Some(nodes(name, value)?).filter(|_| !value.is_null());
            Ok(())
        },
    ),
    (
        "site_factor",
        |changes| json!(changes.site_factor.map_or(NO_VALUE as i64, |one| i64::from(one) + NICE_OFFSET)),
        |changes, name, value| {
            changes.site_factor = match number(name, value)? {
                None => None,
                Some(given) => Some(i32::try_from(given as i64 - NICE_OFFSET).map_err(|_| wrong(name, value))?),
            };
            Ok(())
        },
    ),
];

static FIELDS: std::sync::LazyLock<Vec<Field>> =
    std::sync::LazyLock::new(|| [TEXTS, COUNTS, OTHERS].into_iter().flatten().copied().collect());

fn optional_text(name: &str, value: &Value) -> Result<Option<String>, Reject> {
    if value.is_null() { Ok(None) } else { text(name, value).map(Some) }
}

fn optional_words(name: &str, value: &Value) -> Result<Option<Vec<String>>, Reject> {
    if value.is_null() { Ok(None) } else { words(name, value).map(Some) }
}

fn list(words: &Option<Vec<String>>) -> Value {
    words.as_ref().map_or(Value::Null, |words| json!(words.join(",")))
}

fn node_list(names: &Option<Vec<model::NodeName>>) -> Value {
    names.as_ref().map_or(Value::Null, |names| json!(hostlist::compress(names.iter().map(|name| name.as_str()))))
}

fn gres_text(changes: &JobChanges) -> Value {
    changes.gres.as_ref().map_or(Value::Null, |units| json!(joined(units)))
}

fn set_gres(changes: &mut JobChanges, name: &str, value: &Value) -> Result<(), Reject> {
    changes.gres = Some(devices(name, value)?).filter(|_| !value.is_null());
    Ok(())
}

/// More or less than now is not known yet.
fn limit_minutes(change: Option<TimeLimitChange>) -> u64 {
    match change {
        Some(TimeLimitChange::To(limit)) => minutes(limit),
        Some(TimeLimitChange::LongerBySecs(_) | TimeLimitChange::ShorterBySecs(_)) | None => NO_VALUE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_reads_as_it_was_set_and_says_nothing_of_the_rest() {
        for (name, value) in [
            ("account", json!("ada")),
            ("partition", json!("a,b")),
            ("time_limit", json!(30)),
            ("priority", json!(0)),
            ("nice", json!(2_147_483_698_u64)),
            ("features", json!("")),
            ("min_mem_per_cpu", json!(100)),
            ("gres", json!("gres:gpu:1")),
            ("exc_nodes", json!("n[1-2]")),
            ("dependency", json!("")),
        ] {
            let mut changes = JobChanges::default();
            change(&mut changes, &[(name.to_owned(), value.clone())].into_iter().collect()).unwrap();
            assert_eq!(table(&changes)[name], value, "{name}");
        }
        let nothing = table(&JobChanges::default());
        assert_eq!((&nothing["comment"], &nothing["time_limit"]), (&Value::Null, &json!(NO_VALUE)));
        let unknown = [("nosuch".to_owned(), json!(1))].into_iter().collect();
        assert!(change(&mut JobChanges::default(), &unknown).is_err());
    }
}
