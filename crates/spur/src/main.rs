//! One executable, many names: the table from a name to what it does.
mod daemons;

use std::path::Path;
use std::process::ExitCode;

type Run = fn(&[String]) -> i32;

/// Every name this executable answers to, by its own link or as `spur NAME`.
const TABLE: &[(&str, Run)] = &[
    ("spur", spur),
    ("spurctld", daemons::controller),
    ("spurd", daemons::agent),
    ("slurmctld", daemons::slurmctld),
    ("slurmd", daemons::slurmd),
    ("sacctmgr", cli::sacctmgr::run),
    ("sacct", cli::sacct::run),
    ("salloc", cli::salloc::run),
    ("sattach", cli::sattach::run),
    ("sbatch", cli::sbatch::run),
    ("sbcast", cli::sbcast::run),
    ("scancel", cli::scancel::run),
    ("scontrol", cli::scontrol::run),
    ("sdiag", cli::sdiag::run),
    ("sinfo", cli::sinfo::run),
    ("sprio", cli::sprio::run),
    ("squeue", cli::squeue::run),
    ("sreport", cli::sreport::run),
    ("srun", cli::srun::run),
    ("sshare", cli::sshare::run),
    ("sstat", cli::sstat::run),
    ("strigger", cli::strigger::run),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let called_as = arguments.next().unwrap_or_default();
    let name = Path::new(&called_as).file_name().and_then(|name| name.to_str()).unwrap_or("spur").to_string();
    let arguments: Vec<String> = arguments.collect();
    if name == agent::MOVER_NAME {
        return agent::move_data(std::env::args_os().skip(1));
    }
    if name == hooks::WORKER_NAME {
        std::process::exit(hooks::work());
    }
    if name == agent::PROLOG_NAME {
        return agent::run_prolog();
    }
    if name == agent::PMIX_NAME {
        return agent::serve_pmix();
    }
    if name == "spurstepd" {
        return agent::supervise(std::env::args_os().skip(1));
    }
    let run = named(&name).unwrap_or(spur);
    std::process::exit(run(&arguments));
}

fn named(name: &str) -> Option<Run> {
    TABLE.iter().find(|(known, _)| *known == name).map(|(_, run)| *run)
}

/// `spur squeue -l` is `squeue -l`; anything else is a verb of `spur` itself.
fn spur(arguments: &[String]) -> i32 {
    if let Some((name, rest)) = arguments.split_first()
        && name != "spur"
        && let Some(run) = named(name)
    {
        return run(rest);
    }
    let names: Vec<&str> = TABLE.iter().map(|(name, _)| *name).collect();
    cli::operate::run(arguments, &names)
}
