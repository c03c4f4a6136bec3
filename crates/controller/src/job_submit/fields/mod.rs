//! A submission as a script sees it (`job_desc`): one line a field, with how it is read and, where it may be changed, how.
use model::{JobSpec, Reject};
use serde_json::{Map, Value};

use super::values::{by_script, count, or_nil, or_none, short_or_none, text};

mod others;
mod sizes;
mod wishes;

type Get = fn(&JobSpec) -> Value;
type Set = fn(&mut JobSpec, &str, &Value) -> Result<(), Reject>;

enum Change {
    Yes(Set),
    /// Slurm does not let scripts change it either.
    No,
    /// Slurm does; here it would change nothing.
    NotHere,
}
use Change::{No, NotHere, Yes};

/// Everything a script finds in the table, but script and environment.
pub fn table(spec: &JobSpec) -> Map<String, Value> {
    FIELDS.iter().map(|(name, get, _)| (name.to_string(), get(spec))).collect()
}

/// Makes the spec what the script has left of the table.
pub fn change(spec: &mut JobSpec, changed: &Map<String, Value>) -> Result<(), Reject> {
    for (name, value) in changed {
        match FIELDS.iter().find(|(known, ..)| known == name) {
            Some((_, _, Yes(set))) => set(spec, name, value)?,
            Some((_, _, No)) => return Err(by_script(format!("job_submit.lua: {name} cannot be changed"))),
            Some((_, _, NotHere)) => {
                return Err(by_script(format!(
                    "job_submit.lua: setting {name} is not supported by this version of Spur"
                )));
            }
            None => tracing::error!("job_submit.lua: no field of a job is called {name}"),
        }
    }
    Ok(())
}

/// Fields that are plain texts.
macro_rules! texts {
    ($($name:literal $field:ident),* $(,)?) => {
        [$((
            $name,
            |spec| or_nil(&spec.$field),
            Yes(|spec, name, value| { spec.$field = text(name, value)?; Ok(()) }),
        )),*]
    };
}

/// Counts of the size that may be left open.
macro_rules! counts {
    ($($name:literal $field:ident $shown:ident),* $(,)?) => {
        [$((
            $name,
            |spec| $shown(spec.size.$field),
            Yes(|spec, name, value| { spec.size.$field = count(name, value)?; Ok(()) }),
        )),*]
    };
}

type Field = (&'static str, Get, Change);

const TEXTS: [Field; 8] = texts!(
    "comment" comment, "admin_comment" admin_comment, "name" name, "wckey" wckey, "burst_buffer" burst_buffer,
    "work_dir" work_dir, "batch_features" batch_features, "mcs_label" mcs_label,
);

const COUNTS: [Field; 9] = counts!(
    "num_tasks" n_tasks or_none,
    "max_nodes" max_nodes or_none,
    "cpus_per_task" cpus_per_task short_or_none,
    "ntasks_per_node" tasks_per_node short_or_none,
    "ntasks_per_socket" tasks_per_socket short_or_none,
    "sockets_per_node" sockets_per_node short_or_none,
    "cores_per_socket" cores_per_socket short_or_none,
    "threads_per_core" threads_per_core short_or_none,
    "pn_min_cpus" min_cpus_per_node short_or_none,
);

static FIELDS: std::sync::LazyLock<Vec<Field>> = std::sync::LazyLock::new(|| {
    TEXTS.into_iter().chain(COUNTS).chain(wishes::fields()).chain(sizes::fields()).chain(others::fields()).collect()
});

#[cfg(test)]
mod tests {
    use model::spec::TimeLimit;
    use serde_json::json;

    use super::super::values::{INFINITE, NICE_OFFSET, NO_VALUE};
    use super::*;

    fn changed(name: &str, value: Value) -> Result<JobSpec, Reject> {
        let mut spec = JobSpec::default();
        change(&mut spec, &[(name.to_owned(), value)].into_iter().collect()).map(|()| spec)
    }

    /// What a script sets is what it reads.
    #[test]
    fn a_field_reads_as_it_was_set() {
        for (name, value) in [
            ("account", json!("ada")),
            ("qos", json!("high")),
            ("partition", json!("a,b")),
            ("comment", json!("x y")),
            ("admin_comment", json!("seen")),
            ("time_limit", json!(90)),
            ("time_limit", json!(INFINITE)),
            ("time_limit", json!(NO_VALUE)),
            ("time_min", json!(5)),
            ("num_tasks", json!(4)),
            ("min_nodes", json!(3)),
            ("cpus_per_task", json!(2)),
            ("ntasks_per_node", json!(7)),
            ("min_mem_per_cpu", json!(512)),
            ("min_mem_per_node", json!(0)),
            ("pn_min_memory", json!(2048)),
            ("features", json!("fast&ib")),
            ("gres", json!("gres:gpu:2")),
            ("tres_per_job", json!("gres:gpu:a100:2")),
            ("tres_per_task", json!("gres:gpu:1")),
            ("array_inx", json!("1-5%2")),
            ("dependency", json!("afterok:5,singleton")),
            ("licenses", json!("a:2")),
            ("nice", json!(NICE_OFFSET + 50)),
            ("priority", json!(1000)),
            ("site_factor", json!(NICE_OFFSET + 7)),
            ("shared", json!(0)),
            ("oversubscribe", json!(2)),
            ("requeue", json!(0)),
            ("reservation", json!("r1")),
            ("req_nodes", json!("n[1-3]")),
            ("exc_nodes", json!("n4")),
            ("mail_type", json!(5)),
            ("mail_user", json!("ada@example.org")),
            ("std_out", json!("/tmp/%j")),
            ("req_switch", json!(1)),
            ("wait4switch", json!(60)),
        ] {
            let spec = changed(name, value.clone()).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(table(&spec)[name], value, "{name}");
        }
    }

    #[test]
    fn values_are_taken_as_lua_would_take_them() {
        assert_eq!(changed("time_limit", json!("60")).unwrap().time_limit, Some(TimeLimit::Secs(3600)));
        assert_eq!(changed("name", json!(5)).unwrap().name, "5");
        assert_eq!(changed("nice", json!(-5)).unwrap().nice, -5);
        assert_eq!(changed("nice", json!(50)).unwrap().nice, 50);
        assert_eq!(changed("tres_per_node", json!("gres/gpu:2")).unwrap().size.gres[0].count, 2);
        assert!(changed("priority", json!(0)).unwrap().held);
        assert_eq!(changed("partition", Value::Null).unwrap().partitions, Vec::<String>::new());
        assert_eq!(changed("no_such_field", json!(1)).unwrap(), JobSpec::default());
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let told = |name: &str, value: Value| changed(name, value).unwrap_err().details();
        assert_eq!(told("user_id", json!(0)), "job_submit.lua: user_id cannot be changed");
        assert!(told("reboot", json!(1)).ends_with("setting reboot is not supported by this version of Spur"));
        assert_eq!(told("num_tasks", json!("many")), "job_submit.lua: \"many\" is no value for num_tasks");
        assert_eq!(changed("features", json!("a&&b")), Err(Reject::BadConstraint("a&&b".into())));
        assert_eq!(changed("dependency", json!("x")), Err(Reject::BadDependency));
        assert!(changed("mail_user", json!("|sh")).is_err());
    }
}
