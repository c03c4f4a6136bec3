//! Which of Slurm's data parsers a document is shaped like (`--json=v0.0.41`), and what the newer ones do to plain values.

/// The parsers after 22.05's own.
const NEWEST: u32 = 43;
const FIRST_NEWER: u32 = 39;
const FIRST: u32 = 38;

/// A parser's last number: v0.0.38 is Slurm 22.05's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape(u32);

impl Default for Shape {
    fn default() -> Self {
        Shape(FIRST)
    }
}

/// What the value of `--json` or `--yaml` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Document(Shape),
    /// The names of the parsers.
    List,
}

impl Shape {
    /// Numbers that may be missing are objects, states are lists.
    pub fn is_newer(self) -> bool {
        self.0 >= FIRST_NEWER
    }

    pub fn is_at_least(self, number: u32) -> bool {
        self.0 >= number
    }

    pub fn name(self) -> String {
        format!("v0.0.{}", self.0)
    }
}

/// `v0.0.41`, `list`, or nothing; the error is what follows `fatal: `. What comes after a `+` are a parser's own flags.
pub fn parse(value: Option<&str>) -> Result<Wish, String> {
    let Some(text) = value.filter(|text| !text.is_empty()) else { return Ok(Wish::Document(Shape::default())) };
    if text == "list" {
        return Ok(Wish::List);
    }
    let name = text.split('+').next().unwrap_or(text);
    let number =
        name.strip_prefix("data_parser/").unwrap_or(name).strip_prefix("v0.0.").and_then(|text| text.parse().ok());
    match number.filter(|number| (FIRST..=NEWEST).contains(number)) {
        Some(number) => Ok(Wish::Document(Shape(number))),
        None => Err(format!("Unable to find plugin: {text}")),
    }
}

pub fn list() -> String {
    let names: String = (FIRST..=NEWEST).map(|number| format!("data_parser/v0.0.{number}\n")).collect();
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
    ("jobs.het_job_offset", Turn::Number), ("jobs.job_state", Turn::List), ("jobs.last_sched_evaluation", Turn::Number),
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
    ("jobs.steps.time.end", Turn::Number),
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
        assert_eq!(parse(None), Ok(Wish::Document(Shape(38))));
        assert_eq!(parse(Some("v0.0.41")), Ok(Wish::Document(Shape(41))));
        assert_eq!(parse(Some("v0.0.41+fast")), Ok(Wish::Document(Shape(41))));
        assert_eq!(parse(Some("list")), Ok(Wish::List));
        assert_eq!(parse(Some("v9")), Err("Unable to find plugin: v9".to_string()));
        assert!(list().contains("data_parser/v0.0.40\n"));
    }
}
