//! One executable, many names: the table from a name to what it does.
#![cfg_attr(not(test), no_main)]
// Tests begin elsewhere.
#![cfg_attr(test, allow(dead_code))]
mod daemons;

use std::path::Path;

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
    ("seff", cli::sacct::seff::run),
    ("sgather", cli::sgather::run),
    ("sinfo", cli::sinfo::run),
    ("sprio", cli::sprio::run),
    ("squeue", cli::squeue::run),
    ("sreport", cli::sreport::run),
    ("srun", cli::srun::run),
    ("sshare", cli::sshare::run),
    ("sstat", cli::sstat::run),
    ("strigger", cli::strigger::run),
];

/// What the C library calls. Rust's own start would first read all of `/proc/self/maps` to find the end of the stack, which takes
/// longer than many a command.
#[cfg(not(test))]
#[unsafe(no_mangle)]
extern "C" fn main(_: i32, _: *const *const libc::c_char) -> i32 {
    prepare();
    // As Rust programs end that panic; what is left to print goes out.
    std::process::exit(std::panic::catch_unwind(start).unwrap_or(101))
}

/// What else that start does: nothing that is opened becomes an output, and a closed pipe is an error instead of an end.
fn prepare() {
    // SAFETY: plain calls in a process that has just begun.
    unsafe {
        for fd in 0..=2 {
            if libc::fcntl(fd, libc::F_GETFD) == -1 && libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) == -1 {
                libc::abort();
            }
        }
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
    }
}

fn start() -> i32 {
    let mut arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let called_as = arguments.next().unwrap_or_default();
    let name = Path::new(&called_as).file_name().and_then(|name| name.to_str()).unwrap_or("spur").to_string();
    let arguments: Vec<String> = arguments.collect();
    if name == agent::MOVER_NAME {
        return agent::move_data(std::env::args_os().skip(1));
    }
    if name == hooks::WORKER_NAME {
        return hooks::work();
    }
    if name == agent::PROLOG_NAME {
        return agent::run_prolog();
    }
    if name == prolog::user_program::NAME {
        return prolog::user_program::serve(std::env::args_os().skip(1));
    }
    if name == agent::PMIX_NAME {
        return agent::serve_pmix();
    }
    if name == "spurstepd" {
        return agent::supervise(std::env::args_os().skip(1));
    }
    match named(&name) {
        Some(run) => run_command(&name, run, &arguments),
        None => spur(&arguments),
    }
}

fn named(name: &str) -> Option<Run> {
    TABLE.iter().find(|(known, _)| *known == name).map(|(_, run)| *run)
}

fn run_command(name: &str, run: Run, arguments: &[String]) -> i32 {
    cli::output::begin(name, arguments);
    match cli::manual::autocomplete(name, arguments) {
        None => run(arguments),
        Some(Ok(text)) => {
            cli::output::print(&text);
            0
        }
        Some(Err(problem)) => {
            eprintln!("{name}: {problem}\nTry \"{name} --help\" for more information");
            1
        }
    }
}

/// `spur squeue -l` is `squeue -l`; anything else is a verb of `spur` itself.
fn spur(arguments: &[String]) -> i32 {
    if let Some((name, rest)) = arguments.split_first()
        && name != "spur"
        && let Some(run) = named(name)
    {
        return run_command(name, run, rest);
    }
    cli::output::begin("spur", arguments);
    let names: Vec<&str> = TABLE.iter().map(|(name, _)| *name).collect();
    cli::operate::run(arguments, &names)
}
