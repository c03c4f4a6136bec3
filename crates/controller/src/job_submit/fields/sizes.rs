//! How much a job asks for, and of what kind.
use model::spec::{Memory, Sharing};
use model::{JobSpec, Reject, feature_sets, features, hostlist};
use serde_json::{Value, json};

use super::Change::Yes;
use super::Field;
use crate::job_submit::values::{
    NO_VALUE, count, devices, flag, joined, nodes, number, or_nil, or_none, seconds, text, wrong,
};

/// This bit of `pn_min_memory` says that the rest is for each CPU.
const PER_CPU: f64 = 9_223_372_036_854_775_808.0;

pub fn fields() -> Vec<Field> {
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

/// `gres:gpu:4`: so many for each GPU.
fn per_gpu(name: &str, value: &Value) -> Result<Option<u64>, Reject> {
    let units = devices(name, value)?;
    match &units[..] {
        [] => Ok(None),
        [unit] if unit.name == "gpu" => Ok(Some(unit.count.into())),
        _ => Err(wrong(name, value)),
    }
}
