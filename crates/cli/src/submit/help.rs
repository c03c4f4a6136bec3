//! `--help`, `--usage`, `--version` and the listing of `-v`, made from the table of options.
use crate::getopt::Value;

use super::request::Question;
use super::{Program, Request, table};

/// The answer to a question that stands in the options.
pub fn answer(program: Program, question: Question) -> String {
    match question {
        Question::Help => help(program),
        Question::Usage => usage(program),
        Question::Version => crate::version::line(),
        Question::MpiList => super::set_step::mpi_list(),
    }
}

fn operands(program: Program) -> &'static str {
    match program {
        Program::Sbatch => "[OPTIONS...] script [args...]",
        Program::Salloc => "[OPTIONS...] [command [args...]]",
        Program::Srun => "[OPTIONS...] executable [args...]",
    }
}

fn help(program: Program) -> String {
    let mut text = format!("Usage: {} {}\n", program.name(), operands(program));
    for (title, names) in GROUPS {
        let is_here = |long: &str| match names.is_empty() {
            true => !GROUPS.iter().any(|(_, names)| names.contains(&long)),
            false => names.contains(&long),
        };
        text.push_str(&format!("\n{title}:\n"));
        text.push_str(&listed(program, is_here));
    }
    text
}

/// What `--help` puts together, in Slurm's order; an empty list is everything that no other has.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Parallel run options", &[]),
    (
        "Constraint options",
        &[
            "cluster-constraint",
            "contiguous",
            "constraint",
            "mem",
            "mincpus",
            "nodefile",
            "reservation",
            "tmp",
            "nodelist",
            "exclude",
            "no-allocate",
        ],
    ),
    ("Consumable resources related options", &["exact", "exclusive", "mem-per-cpu", "resv-ports"]),
    (
        "Affinity/Multi-core options",
        &[
            "sockets-per-node",
            "cores-per-socket",
            "threads-per-core",
            "extra-node-info",
            "ntasks-per-core",
            "ntasks-per-socket",
            "cpu-bind",
            "hint",
            "mem-bind",
        ],
    ),
    (
        "GPU scheduling options",
        &["cpus-per-gpu", "gpus", "gpu-bind", "gpus-per-node", "gpus-per-task", "mem-per-gpu", "ntasks-per-gpu"],
    ),
    ("Help options", &["help", "usage"]),
    ("Other options", &["version"]),
];

fn listed(program: Program, is_here: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    for option in table::of(program).filter(|option| !option.help.is_empty() && is_here(option.long)) {
        let short = option.short.map_or("    ".to_string(), |letter| format!("-{letter}, "));
        let names = format!("{short}--{}", valued(option.long, option.value));
        text.push_str(&format!("  {names:<34} {}\n", option.help));
    }
    text
}

/// `nodes=N`, `nice[=value]`
fn valued(long: &str, value: Value) -> String {
    match value {
        Value::None => long.to_string(),
        Value::Required => format!("{long}={}", value_name(long)),
        Value::Optional => format!("{long}[={}]", value_name(long)),
    }
}

/// What an option's value is called.
fn value_name(long: &str) -> &'static str {
    match long {
        "account" | "job-name" | "comment" | "reservation" => "name",
        "begin" | "deadline" => "time",
        "time" | "time-min" => "minutes",
        "nodes" => "N",
        "qos" => "qos",
        "partition" => "partition",
        "mem" | "mem-per-cpu" | "mem-per-gpu" | "tmp" => "MB",
        "ntasks" | "mincpus" | "gpus" | "cpus-per-gpu" | "relative" | "threads" => "n",
        "cpus-per-task" => "ncpus",
        "chdir" => "path",
        "error" | "output" | "input" | "nodefile" | "bbf" => "file",
        "nodelist" | "exclude" => "hosts...",
        "constraint" | "gres" => "list",
        "licenses" => "names",
        "jobid" => "id",
        "dependency" => "type:jobid[:time]",
        "array" => "indexes",
        "immediate" | "wait" | "msg-timeout" => "secs",
        "clusters" => "names",
        "uid" | "mail-user" => "user",
        "gid" => "group",
        "mail-type" | "mpi" => "type",
        _ if long.starts_with("gpus-per-") || long.starts_with("ntasks-per-") => "n",
        _ => "value",
    }
}

const USAGE_COLUMNS: usize = 80;

fn usage(program: Program) -> String {
    let start = format!("Usage: {}", program.name());
    let mut text = start.clone();
    let mut column = text.len();
    for option in table::of(program).filter(|option| !option.help.is_empty()) {
        let word = format!(" [--{}]", valued(option.long, option.value));
        if column + word.len() > USAGE_COLUMNS {
            text.push('\n');
            text.push_str(&" ".repeat(start.len()));
            column = start.len();
        }
        column += word.len();
        text.push_str(&word);
    }
    text.push('\n');
    let operands = if program == Program::Salloc { "[command [args...]]" } else { "executable [args...]" };
    text.push_str(&format!("{} {operands}\n", " ".repeat(start.len())));
    text
}

/// With `-vv`: whom the command is about to ask; with `-vvv` also where it found that.
pub fn connections(program: Program, verbosity: u32, cluster: &config::Client) -> String {
    let name = program.name();
    let mut text = String::new();
    if verbosity > 1 {
        let socket = cluster.controller_socket.display();
        text.push_str(&format!("{name}: debug:  cluster {}, controller at {socket}\n", cluster.cluster_name));
    }
    if verbosity > 1 && program == Program::Salloc {
        text.push_str("salloc: debug:  Entering _msg_thr_internal\n");
    }
    if verbosity > 2 {
        text.push_str(&format!("{name}: debug2: configuration from {}\n", cluster.file.display()));
    }
    text
}

/// The options that were given, as `-v` lists them.
pub fn defined_options(program: Program, request: &Request) -> String {
    let name = program.name();
    let rule = format!("{name}: -------------------- --------------------\n");
    let mut text = format!("{name}: defined options\n{rule}");
    for (long, given) in &request.given {
        let takes_value = table::find(program, long).is_some_and(|option| option.takes_value());
        let value = match (*long, &given.value) {
            ("verbose", _) => request.behaviour.verbosity.to_string(),
            ("time" | "time-min", Some(value)) => {
                model::duration::parse(value).map_or_else(|| value.clone(), |limit| limit.show())
            }
            (_, Some(value)) if takes_value => value.clone(),
            _ => "set".to_string(),
        };
        text.push_str(&format!("{name}: {long:<20}: {value}\n"));
    }
    text.push_str(&rule);
    text.push_str(&format!("{name}: end of defined options\n"));
    text
}
