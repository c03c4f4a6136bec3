//! The rest of what a script sees of a job: its resources in TRES spelling, and what nobody can ask for here, as if nobody had.
use model::spec::Sharing;
use model::{Job, JobSpec};
use serde_json::{Map, Value, json};
use state::Cluster;

const NO_VALUE: u64 = 4_294_967_294;
const NO_SHORT_VALUE: u64 = 65_534;
/// What clients of Slurm 22.05 say that they speak.
const PROTOCOL: u64 = 9728;

pub fn tell(info: &mut Map<String, Value>, cluster: &Cluster, job: &Job) {
    let spec = &job.spec;
    for (name, number) in [
        ("alloc_sid", 0),
        ("boards_per_node", NO_SHORT_VALUE),
        ("sockets_per_board", NO_SHORT_VALUE),
        ("core_spec", NO_SHORT_VALUE),
        ("cpu_freq_gov", NO_VALUE),
        ("cpu_freq_max", NO_VALUE),
        ("cpu_freq_min", NO_VALUE),
        ("delay_boot", 0),
        ("ntasks_per_tres", NO_SHORT_VALUE),
        ("oversubscribe", u64::from(spec.size.sharing == Sharing::Oversubscribe)),
        ("preemptable_time", 0),
        ("profile", 0),
        ("reboot", 0),
        ("start_protocol_ver", PROTOCOL),
    ] {
        info.insert(name.into(), json!(number));
    }
    let held = job.billed(cluster.config(), job.held());
    let asked = job.billed(cluster.config(), job.asked());
    info.insert("billable_tres".into(), json!(if held.is_nothing() { asked.billing() } else { held.billing() }));
    let joined = |texts: Vec<String>| texts.join(",");
    let per_task = spec.size.gres_per_task.iter().map(|gres| format!("gres/{gres}")).collect();
    let total = held.gres.iter().map(|(name, count)| format!("{name}:{count}")).collect();
    let per_gpu = spec.size.cpus_per_gpu.map(|count| format!("gres/gpu:{count}"));
    for (name, text) in [
        ("dependency", dependency(job)),
        ("array_task_str", job.waiting_tasks.as_ref().map(|tasks| tasks.to_string()).unwrap_or_default()),
        ("tres_req_str", asked.tres()),
        ("tres_alloc_str", if held.is_nothing() { String::new() } else { held.tres() }),
        ("tres_per_task", joined(per_task)),
        ("gres_total", joined(total)),
        ("cpus_per_tres", per_gpu.unwrap_or_default()),
        ("mem_per_tres", memory_per_gpu(spec)),
        ("het_job_id_set", job.het.as_ref().map(|het| het.id_set()).unwrap_or_default()),
    ] {
        if !text.is_empty() {
            info.insert(name.into(), json!(text));
        }
    }
}

/// As `squeue -o %E` has it.
fn dependency(job: &Job) -> String {
    let sign = if job.dependency.any_is_enough { "?" } else { "," };
    let terms: Vec<String> = job.dependency.terms.iter().map(|term| format!("{term}(unfulfilled)")).collect();
    terms.join(sign)
}

fn memory_per_gpu(spec: &JobSpec) -> String {
    match spec.size.memory {
        model::spec::Memory::PerGpuMb(megabytes) => format!("gres/gpu:{megabytes}"),
        _ => String::new(),
    }
}
