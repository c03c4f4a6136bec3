//! Which of Slurm's data parsers a document is shaped like (`--json=v0.0.41`), and what the newer ones do to plain values.

pub use model::data_parser::DataParser as Shape;

/// What the value of `--json` or `--yaml` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// None: of the shape that the cluster has chosen.
    Document(Option<Shape>),
    /// The names of the parsers.
    List,
}

/// `v0.0.41`, `list`, or nothing; the error is what follows `fatal: `.
pub fn parse(value: Option<&str>) -> Result<Wish, String> {
    match value.filter(|text| !text.is_empty()) {
        None => Ok(Wish::Document(None)),
        Some("list") => Ok(Wish::List),
        Some(text) => match Shape::parse(text) {
            Some(shape) => Ok(Wish::Document(Some(shape))),
            None => Err(format!("Unable to find plugin: {text}")),
        },
    }
}

pub fn list() -> String {
    let names: String = Shape::all().map(|shape| format!("data_parser/{shape}\n")).collect();
    format!("Possible data_parser plugins:\n{names}")
}

/// What becomes of a plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// `{set, infinite, number}`; nothing is unset.
    Number,
    /// The same; nothing is without end.
    Limit,
    /// A list of the one word.
    List,
    /// A list of the words between commas.
    Words,
    /// A plain number; nothing is 0.
    Count,
    /// An exit status as the kernel has it.
    Exit,
}

/// By the names on the way to a value, items of lists not counted; the last that fits the end of the way counts.
#[rustfmt::skip]
const TURNS: &[(&str, Turn)] = &[
    // Jobs of squeue and scontrol.
    ("jobs.accrue_time", Turn::Number), ("jobs.array_job_id", Turn::Number), ("jobs.array_task_id", Turn::Number),
    ("jobs.array_max_tasks", Turn::Number), ("jobs.cores_per_socket", Turn::Number), ("jobs.billable_tres", Turn::Number),
    ("jobs.cpus_per_task", Turn::Number), ("jobs.cpu_frequency_minimum", Turn::Number),
    ("jobs.cpu_frequency_maximum", Turn::Number), ("jobs.cpu_frequency_governor", Turn::Number),
    ("jobs.core_spec", Turn::Count), ("jobs.thread_spec", Turn::Count), ("jobs.deadline", Turn::Number),
    ("jobs.delay_boot", Turn::Number), ("jobs.derived_exit_code", Turn::Exit), ("jobs.eligible_time", Turn::Number),
    ("jobs.end_time", Turn::Number), ("jobs.exit_code", Turn::Exit), ("jobs.het_job_id", Turn::Number),
    ("jobs.het_job_offset", Turn::Number), ("jobs.job_state", Turn::Words), ("jobs.last_sched_evaluation", Turn::Number),
    ("jobs.max_cpus", Turn::Number), ("jobs.max_nodes", Turn::Number), ("jobs.nice", Turn::Count),
    ("jobs.tasks_per_core", Turn::Limit), ("jobs.tasks_per_node", Turn::Number), ("jobs.tasks_per_socket", Turn::Limit),
    ("jobs.tasks_per_board", Turn::Number), ("jobs.cpus", Turn::Number), ("jobs.node_count", Turn::Number),
    ("jobs.tasks", Turn::Number), ("jobs.memory_per_node", Turn::Number), ("jobs.memory_per_cpu", Turn::Number),
    ("jobs.minimum_cpus_per_node", Turn::Number), ("jobs.minimum_tmp_disk_per_node", Turn::Number),
    ("jobs.preempt_time", Turn::Number), ("jobs.pre_sus_time", Turn::Number), ("jobs.priority", Turn::Number),
    ("jobs.profile", Turn::List), ("jobs.resize_time", Turn::Number), ("jobs.shared", Turn::List),
    ("jobs.sockets_per_node", Turn::Number), ("jobs.start_time", Turn::Number), ("jobs.submit_time", Turn::Number),
    ("jobs.suspend_time", Turn::Number), ("jobs.time_limit", Turn::Limit), ("jobs.time_minimum", Turn::Number),
    ("jobs.threads_per_core", Turn::Number),
    // Nodes.
    ("nodes.boot_time", Turn::Number), ("nodes.cpu_load", Turn::Count), ("nodes.free_mem", Turn::Number),
    ("nodes.last_busy", Turn::Number), ("nodes.features", Turn::Words), ("nodes.active_features", Turn::Words),
    ("nodes.reason_changed_at", Turn::Number), ("nodes.slurmd_start_time", Turn::Number),
    // Runs of sacct.
    ("jobs.array.task_id", Turn::Number), ("jobs.het.job_offset", Turn::Number), ("jobs.time.limit", Turn::Limit),
    ("jobs.required.memory_per_cpu", Turn::Number), ("jobs.required.memory_per_node", Turn::Number),
    ("jobs.state.current", Turn::List), ("jobs.steps.state", Turn::List), ("jobs.steps.time.start", Turn::Number),
    ("jobs.steps.time.end", Turn::Number), ("jobs.steps.CPU.requested_frequency.min", Turn::Number),
    ("jobs.steps.CPU.requested_frequency.max", Turn::Number), ("jobs.steps.statistics.energy.consumed", Turn::Number),
];

/// What a parser of this shape makes of the value at the end of this way.
pub fn turn(shape: Shape, way: &[String]) -> Option<Turn> {
    if !shape.is_newer() {
        return None;
    }
    let way = way.join(".");
    TURNS.iter().find(|(name, _)| *name == way).map(|(_, turn)| *turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsers_are_named_as_slurm_names_them() {
        let named = |text| Shape::parse(text).expect("a parser's name");
        assert_eq!(parse(None), Ok(Wish::Document(None)));
        assert_eq!(parse(Some("v0.0.41")), Ok(Wish::Document(Some(named("data_parser/v0.0.41")))));
        assert_eq!(parse(Some("v0.0.38+fast")), Ok(Wish::Document(Some(named("v0.0.38")))));
        assert_eq!(parse(Some("list")), Ok(Wish::List));
        for wrong in ["v9", "v0.0.37", "v0.0.44", "0.0.41"] {
            assert_eq!(parse(Some(wrong)), Err(format!("Unable to find plugin: {wrong}")));
        }
        assert!(list().contains("data_parser/v0.0.40\n"));
    }
}
