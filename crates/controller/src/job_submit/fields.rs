//! A submission as a script sees it (`job_desc`): one line a field, with how it is read and, where it may be changed, how.
use model::dependency;
use model::gres::{self, GresRequest};
use model::spec::{ArraySpec, Mail, Memory, Sharing, TimeLimit};
use model::{JobSpec, Reject, feature_sets, features, hostlist, license, ranges};
use serde_json::{Map, Value, json};

use super::values::{
    INFINITE, NO_VALUE, by_script, count, flag, moment, nodes, number, or_nil, or_none, seconds, short_or_none, text,
    words, wrong,
};
use crate::plugin::mail;

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

/// What Slurm adds to a nice value.
const NICE_OFFSET: i64 = 2_147_483_648;
/// This bit of `pn_min_memory` says that the rest is for each CPU.
const PER_CPU: f64 = 9_223_372_036_854_775_808.0;

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

const TEXTS: [Field; 6] = texts!(
    "comment" comment, "admin_comment" admin_comment, "name" name, "wckey" wckey, "burst_buffer" burst_buffer,
    "work_dir" work_dir,
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
    TEXTS.into_iter().chain(COUNTS).chain(wishes()).chain(sizes()).chain(others()).collect()
});

/// Where, when, and on whose account.
fn wishes() -> Vec<Field> {
    vec![
        (
            "account",
            |spec| or_nil(&spec.account),
            Yes(|spec, name, value| {
                spec.account = text(name, value)?.to_lowercase();
                Ok(())
            }),
        ),
        (
            "qos",
            |spec| or_nil(&spec.qos),
            Yes(|spec, name, value| {
                spec.qos = text(name, value)?.to_lowercase();
                Ok(())
            }),
        ),
        (
            "partition",
            |spec| or_nil(&spec.partitions.join(",")),
            Yes(|spec, name, value| {
                spec.partitions = words(name, value)?;
                Ok(())
            }),
        ),
        (
            "reservation",
            |spec| or_nil(&spec.reservations.join(",")),
            Yes(|spec, name, value| {
                spec.reservations = words(name, value)?;
                Ok(())
            }),
        ),
        (
            "array_inx",
            array_text,
            Yes(|spec, name, value| {
                let text = text(name, value)?;
                spec.array = match text.as_str() {
                    "" => None,
                    text => {
                        let (tasks, limit) = ranges::parse_array(text).map_err(|_| Reject::BadArray)?;
                        Some(ArraySpec { tasks, limit })
                    }
                };
                Ok(())
            }),
        ),
        (
            "begin_time",
            |spec| json!(spec.begin.map_or(0, |time| time.secs())),
            Yes(|spec, name, value| {
                spec.begin = moment(name, value)?;
                Ok(())
            }),
        ),
        (
            "dependency",
            |spec| or_nil(&dependency_text(spec)),
            Yes(|spec, name, value| {
                spec.dependency = match text(name, value)?.as_str() {
                    "" => Default::default(),
                    text => dependency::parse(text).map_err(|_| Reject::BadDependency)?,
                };
                Ok(())
            }),
        ),
        (
            "licenses",
            |spec| or_nil(&spec.licenses.to_string()),
            Yes(|spec, name, value| {
                spec.licenses = license::parse(&text(name, value)?).ok_or(Reject::BadLicenses)?;
                Ok(())
            }),
        ),
        (
            "mail_type",
            |spec| json!(spec.mail.as_ref().map_or(0, mail::bits)),
            Yes(|spec, name, value| {
                let kinds = mail::of_bits(count(name, value)?.unwrap_or(0));
                match (&mut spec.mail, kinds.is_empty()) {
                    (Some(mail), _) => mail.kinds = kinds,
                    (None, true) => (),
                    (None, false) => spec.mail = Some(Mail { kinds, ..Mail::default() }),
                }
                Ok(())
            }),
        ),
        (
            "mail_user",
            |spec| or_nil(spec.mail.as_ref().map_or("", |mail| &mail.to)),
            Yes(|spec, name, value| {
                let to = text(name, value)?;
                let mail = spec.mail.get_or_insert_default();
                mail.to = to;
                if mail.has_plain_address() { Ok(()) } else { Err(wrong(name, value)) }
            }),
        ),
        (
            "nice",
            |spec| {
                json!(match spec.nice {
                    0 => NO_VALUE as i64,
                    nice => i64::from(nice) + NICE_OFFSET,
                })
            },
            Yes(|spec, name, value| {
                // Scripts give it as users do, or with Slurm's offset.
                let given = match value.as_f64() {
                    Some(given) if given < 0.0 => given as i64,
                    _ => number(name, value)?.map_or(0, |given| given as i64),
                };
                let nice = if given >= NICE_OFFSET / 2 { given - NICE_OFFSET } else { given };
                spec.nice = i32::try_from(nice).map_err(|_| wrong(name, value))?;
                Ok(())
            }),
        ),
        (
            "priority",
            |spec| or_none(spec.priority),
            Yes(|spec, name, value| {
                spec.priority = count(name, value)?;
                spec.held |= spec.priority == Some(0);
                Ok(())
            }),
        ),
        (
            "site_factor",
            |spec| {
                json!(match spec.site_factor {
                    0 => NO_VALUE as i64,
                    factor => i64::from(factor) + NICE_OFFSET,
                })
            },
            Yes(|spec, name, value| {
                let given = number(name, value)?.map_or(0, |given| given as i64);
                let factor = if given >= NICE_OFFSET / 2 { given - NICE_OFFSET } else { given };
                spec.site_factor = i32::try_from(factor).map_err(|_| wrong(name, value))?;
                Ok(())
            }),
        ),
        (
            "requeue",
            |spec| short_or_none(spec.requeue.map(u32::from)),
            Yes(|spec, name, value| {
                spec.requeue = flag(name, value)?;
                Ok(())
            }),
        ),
        (
            "time_limit",
            |spec| json!(minutes(spec.time_limit)),
            Yes(|spec, name, value| {
                spec.time_limit = limit(name, value)?;
                Ok(())
            }),
        ),
        (
            "time_min",
            |spec| json!(minutes(spec.time_min)),
            Yes(|spec, name, value| {
                spec.time_min = limit(name, value)?;
                Ok(())
            }),
        ),
        (
            "acctg_freq",
            |spec| or_nil(&spec.accounting_secs.map_or(String::new(), |secs| secs.to_string())),
            Yes(|spec, name, value| {
                spec.accounting_secs = count(name, value)?;
                Ok(())
            }),
        ),
        (
            "std_in",
            |spec| or_nil(spec.stdin.as_deref().unwrap_or(if spec.is_batch() { "/dev/null" } else { "" })),
            Yes(|spec, name, value| {
                spec.stdin = file(name, value)?;
                Ok(())
            }),
        ),
        (
            "std_out",
            |spec| or_nil(spec.stdout.as_deref().unwrap_or("")),
            Yes(|spec, name, value| {
                spec.stdout = file(name, value)?;
                Ok(())
            }),
        ),
        (
            "std_err",
            |spec| or_nil(spec.stderr.as_deref().unwrap_or("")),
            Yes(|spec, name, value| {
                spec.stderr = file(name, value)?;
                Ok(())
            }),
        ),
    ]
}

/// How much, and of what kind.
fn sizes() -> Vec<Field> {
    vec![
        (
            "min_nodes",
            |spec| match (spec.size.min_nodes, spec.size.max_nodes) {
                // Commands ask for one where nobody named a number.
                (0, _) | (1, None) => json!(NO_VALUE),
                (least, _) => json!(least),
            },
            Yes(|spec, name, value| {
                spec.size.min_nodes = count(name, value)?.unwrap_or(0);
                let size = &mut spec.size;
                size.max_nodes = size.max_nodes.map(|most| most.max(size.min_nodes));
                Ok(())
            }),
        ),
        (
            "min_cpus",
            |spec| json!(least_cpus(spec)),
            Yes(|spec, name, value| {
                let each = u64::from(spec.size.n_cpus_per_task());
                spec.size.n_tasks = number(name, value)?.map(|cpus| cpus.div_ceil(each) as u32);
                Ok(())
            }),
        ),
        (
            "pn_min_memory",
            |spec| match spec.size.memory {
                Memory::PerNodeMb(megabytes) => json!(megabytes),
                Memory::PerCpuMb(megabytes) => json!(PER_CPU + megabytes as f64),
                Memory::WholeNode => json!(0),
                Memory::Default | Memory::PerGpuMb(_) => json!((u64::MAX - 1) as f64),
            },
            Yes(|spec, name, value| {
                spec.size.memory = match (value.as_f64(), number(name, value)?) {
                    (_, None) => Memory::Default,
                    (Some(given), _) if given >= PER_CPU => Memory::PerCpuMb((given - PER_CPU) as u64),
                    (_, Some(0)) => Memory::WholeNode,
                    (_, Some(megabytes)) => Memory::PerNodeMb(megabytes),
                };
                Ok(())
            }),
        ),
        (
            "min_mem_per_node",
            |spec| match spec.size.memory {
                Memory::PerNodeMb(megabytes) => json!(megabytes),
                Memory::WholeNode => json!(0),
                Memory::Default | Memory::PerCpuMb(_) | Memory::PerGpuMb(_) => Value::Null,
            },
            Yes(|spec, name, value| {
                spec.size.memory = match number(name, value)? {
                    None => Memory::Default,
                    Some(0) => Memory::WholeNode,
                    Some(megabytes) => Memory::PerNodeMb(megabytes),
                };
                Ok(())
            }),
        ),
        (
            "min_mem_per_cpu",
            |spec| match spec.size.memory {
                Memory::PerCpuMb(megabytes) => json!(megabytes),
                Memory::Default | Memory::WholeNode | Memory::PerNodeMb(_) | Memory::PerGpuMb(_) => Value::Null,
            },
            Yes(|spec, name, value| {
                spec.size.memory = number(name, value)?.map_or(Memory::Default, Memory::PerCpuMb);
                Ok(())
            }),
        ),
        (
            "mem_per_tres",
            |spec| match spec.size.memory {
                Memory::PerGpuMb(megabytes) => json!(format!("gres:gpu:{megabytes}")),
                Memory::Default | Memory::WholeNode | Memory::PerNodeMb(_) | Memory::PerCpuMb(_) => Value::Null,
            },
            Yes(|spec, name, value| {
                spec.size.memory = per_gpu(name, value)?.map_or(Memory::Default, Memory::PerGpuMb);
                Ok(())
            }),
        ),
        (
            "cpus_per_tres",
            |spec| or_nil(&spec.size.cpus_per_gpu.map_or(String::new(), |cpus| format!("gres:gpu:{cpus}"))),
            Yes(|spec, name, value| {
                spec.size.cpus_per_gpu = per_gpu(name, value)?.map(|cpus| cpus as u32);
                Ok(())
            }),
        ),
        (
            "pn_min_tmp_disk",
            |spec| or_none(Some(spec.size.tmp_disk_mb).filter(|megabytes| *megabytes > 0)),
            Yes(|spec, name, value| {
                spec.size.tmp_disk_mb = number(name, value)?.unwrap_or(0);
                Ok(())
            }),
        ),
        (
            "contiguous",
            |spec| json!(u8::from(spec.size.contiguous)),
            Yes(|spec, name, value| {
                spec.size.contiguous = flag(name, value)? == Some(true);
                Ok(())
            }),
        ),
        ("shared", sharing, Yes(set_sharing)),
        ("oversubscribe", sharing, Yes(set_sharing)),
        (
            "features",
            |spec| or_nil(&spec.size.features),
            Yes(|spec, name, value| {
                let wanted = text(name, value)?;
                let wish = match wanted.as_str() {
                    "" => Default::default(),
                    text => feature_sets::parse(text).map_err(|_| Reject::BadConstraint(text.to_owned()))?,
                };
                let size = &mut spec.size;
                (size.constraint, size.feature_sets, size.features) = (wish.constraint, wish.sets, wanted);
                Ok(())
            }),
        ),
        (
            "prefer",
            |spec| or_nil(&spec.size.preferred),
            Yes(|spec, name, value| {
                let wanted = text(name, value)?;
                spec.size.preference = match wanted.as_str() {
                    "" => None,
                    text => Some(features::parse(text).map_err(|_| Reject::BadConstraint(text.to_owned()))?),
                };
                spec.size.preferred = wanted;
                Ok(())
            }),
        ),
        (
            "req_nodes",
            |spec| or_nil(&hostlist::compress(spec.size.nodes.iter().map(|name| name.as_str()))),
            Yes(|spec, name, value| {
                spec.size.nodes = nodes(name, value)?;
                Ok(())
            }),
        ),
        (
            "exc_nodes",
            |spec| or_nil(&hostlist::compress(spec.size.excluded.iter().map(|name| name.as_str()))),
            Yes(|spec, name, value| {
                spec.size.excluded = nodes(name, value)?;
                Ok(())
            }),
        ),
        (
            "req_switch",
            |spec| or_none(Some(spec.size.network.n_switches).filter(|count| *count > 0)),
            Yes(|spec, name, value| {
                spec.size.network.n_switches = count(name, value)?.unwrap_or(0);
                Ok(())
            }),
        ),
        (
            "wait4switch",
            |spec| or_none(spec.size.network.switch_wait.map(|wait| wait.secs())),
            Yes(|spec, name, value| {
                spec.size.network.switch_wait = seconds(name, value)?;
                Ok(())
            }),
        ),
        ("gres", per_node_text, Yes(set_per_node)),
        ("tres_per_node", per_node_text, Yes(set_per_node)),
        (
            "tres_per_job",
            |spec| match spec.tres_words.per_job.as_str() {
                "" => or_nil(&joined(&spec.size.gres_total)),
                words => json!(words),
            },
            Yes(|spec, name, value| {
                spec.size.gres_total = devices(name, value)?;
                spec.tres_words.per_job = joined(&spec.size.gres_total);
                Ok(())
            }),
        ),
        (
            "tres_per_task",
            |spec| or_nil(&joined(&spec.size.gres_per_task)),
            Yes(|spec, name, value| {
                spec.size.gres_per_task = devices(name, value)?;
                spec.tres_words.per_task = joined(&spec.size.gres_per_task);
                Ok(())
            }),
        ),
    ]
}

/// What is only looked at, and what nobody can ask for here.
fn others() -> Vec<Field> {
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
        ("batch_features", |_| Value::Null, NotHere),
        ("clusters", |_| Value::Null, NotHere),
        ("container", |_| Value::Null, NotHere),
        ("extra", |_| Value::Null, NotHere),
        ("mcs_label", |_| Value::Null, NotHere),
        ("origin_cluster", |_| Value::Null, No),
        ("selinux_context", |_| Value::Null, NotHere),
        ("spank_job_env_size", |_| json!(0), No),
    ]
}

fn minutes(limit: Option<TimeLimit>) -> u64 {
    limit.map_or(NO_VALUE, |limit| limit.span().map_or(INFINITE, |span| span.secs().div_ceil(60)))
}

pub fn limit(name: &str, value: &Value) -> Result<Option<TimeLimit>, Reject> {
    Ok(number(name, value)?.map(|minutes| match minutes {
        INFINITE => TimeLimit::Unlimited,
        minutes => TimeLimit::Secs(minutes.saturating_mul(60)),
    }))
}

fn file(name: &str, value: &Value) -> Result<Option<String>, Reject> {
    Ok(Some(text(name, value)?).filter(|path| !path.is_empty()))
}

fn array_text(spec: &JobSpec) -> Value {
    let Some(array) = &spec.array else { return Value::Null };
    let limit = array.limit.map_or(String::new(), |limit| format!("%{limit}"));
    json!(format!("{}{limit}", array.tasks))
}

fn dependency_text(spec: &JobSpec) -> String {
    let sign = if spec.dependency.any_is_enough { "?" } else { "," };
    spec.dependency.terms.iter().map(|term| term.to_string()).collect::<Vec<_>>().join(sign)
}

fn least_cpus(spec: &JobSpec) -> u32 {
    let size = &spec.size;
    size.n_tasks_on(size.min_nodes.max(1)).saturating_mul(size.n_cpus_per_task())
}

fn sharing(spec: &JobSpec) -> Value {
    json!(match spec.size.sharing {
        Sharing::Default => 65_534,
        Sharing::WholeNodes => 0,
        Sharing::Oversubscribe => 1,
        Sharing::OneUser => 2,
    })
}

fn set_sharing(spec: &mut JobSpec, name: &str, value: &Value) -> Result<(), Reject> {
    spec.size.sharing = match number(name, value)? {
        None => Sharing::Default,
        Some(0) => Sharing::WholeNodes,
        Some(1) => Sharing::Oversubscribe,
        Some(2) => Sharing::OneUser,
        Some(_) => return Err(wrong(name, value)),
    };
    Ok(())
}

fn per_node_text(spec: &JobSpec) -> Value {
    match spec.tres_words.per_job.is_empty() {
        true => or_nil(&joined(&spec.size.gres)),
        // What each node has was worked out of the job's total.
        false => or_nil(&spec.tres_words.per_node),
    }
}

fn set_per_node(spec: &mut JobSpec, name: &str, value: &Value) -> Result<(), Reject> {
    spec.size.gres = devices(name, value)?;
    if !spec.tres_words.per_node.is_empty() {
        spec.tres_words.per_node = joined(&spec.size.gres);
    }
    Ok(())
}

fn joined(units: &[GresRequest]) -> String {
    units.iter().map(|unit| format!("gres:{unit}")).collect::<Vec<_>>().join(",")
}

/// `gres:gpu:2`, also as later versions write it, `gres/gpu:2`.
fn devices(name: &str, value: &Value) -> Result<Vec<GresRequest>, Reject> {
    let plain = text(name, value)?.replace("gres/", "gres:");
    gres::parse_list(&plain).map_err(|_| Reject::StepGres)
}

/// `gres:gpu:4`: so many for each GPU.
fn per_gpu(name: &str, value: &Value) -> Result<Option<u64>, Reject> {
    let units = devices(name, value)?;
    match &units[..] {
        [] => Ok(None),
        [unit] if unit.name == "gpu" => Ok(Some(unit.count.into())),
        _ => Err(wrong(name, value)),
    }
}

#[cfg(test)]
mod tests {
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
