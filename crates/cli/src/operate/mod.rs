//! `spur <verb>`: clusters on this machine, started, shown, stopped and tried out.
/// A line on stdout; a reader that has gone away is no reason to stop half way.
macro_rules! say {
    ($($text:tt)*) => {{
        let _ = crate::output::print(&format!("{}\n", format_args!($($text)*)));
    }};
}

mod audit;
mod backup;
mod check;
mod daemon;
mod demo;
mod down;
mod env;
mod folder;
mod install;
mod interrupt;
mod machine_wide;
mod machines;
mod manual;
mod mover;
mod settle;
mod share;
mod sim;
mod status;
mod topo;
mod up;
mod why;

use std::path::PathBuf;

use crate::getopt::{self, Flag, Operands, Parsed};

/// One call of `spur`.
struct Call<'a> {
    arguments: &'a [String],
    /// Every name this executable answers to.
    command_names: &'a [&'a str],
}

struct Verb {
    name: &'static str,
    usage: &'static str,
    summary: &'static str,
    run: fn(&Call) -> Result<i32, String>,
}

const VERBS: &[Verb] = &[
    Verb {
        name: "up",
        usage: "up [--nodes N] [--cpus C] [--memory M] [--controllers K] [--dir DIR] [--config FILE]",
        summary: "start a cluster on this machine, or whatever of it is not running",
        run: up::run,
    },
    Verb {
        name: "env",
        usage: "env [--dir DIR]",
        summary: "print shell lines that put the commands on PATH: eval \"$(spur env)\"",
        run: env::run,
    },
    Verb {
        name: "share",
        usage: "share --explain [USER] [--account ACCOUNT]",
        summary: "say why somebody's fair-share factor is what it is, and when it will recover",
        run: |call| Ok(share::run(call.arguments)),
    },
    Verb { name: "status", usage: "status [--dir DIR] [--json]", summary: "show how the cluster is", run: status::run },
    Verb {
        name: "down",
        usage: "down [--dir DIR] [--purge]",
        summary: "stop the cluster and its running jobs; --purge forgets its state too",
        run: down::run,
    },
    Verb { name: "demo", usage: "demo", summary: "see a cluster start, run jobs and go away again", run: demo::run },
    Verb {
        name: "stage",
        usage: crate::stage::watch::USAGE,
        summary: "watch the data of a job on its way into and out of its burst buffers",
        run: |call| crate::stage::watch::run(call.arguments),
    },
    Verb {
        name: "mover",
        usage: mover::USAGE,
        summary: "copy a file, a tree or a list of them as agents do for burst buffers: parallel, verified, resumable",
        run: mover::run,
    },
    Verb {
        name: "why",
        usage: "why JOB [--json] [--dir DIR]",
        summary: "tell what holds a job, when it will start, and what would start it sooner",
        run: why::run,
    },
    Verb {
        name: "sim",
        usage: sim::USAGE,
        summary: "run a workload (SWF, or rows of sacct) through the scheduler on a simulated clock",
        run: sim::run,
    },
    Verb {
        name: "init",
        usage: "init [--dir DIR] [--listen ADDRESS[:PORT]] [--address HOST[:PORT]] [--cluster NAME]",
        summary: "begin a cluster that other machines can join, with this one as its first controller",
        run: machines::init,
    },
    Verb {
        name: "join",
        usage: "join [--token-file FILE] [--node NAME] [--cpus C] [--memory M] [--dir DIR] | join --controller [--token-file FILE] [--listen ADDRESS] [--address HOST]",
        summary: "make this machine a node, or a controller, of the cluster of the token: TOKEN@HOST in a file or on standard input",
        run: machines::join,
    },
    Verb {
        name: "token",
        usage: "token [--controller | --login] [--dir DIR] | token list | revoke USER | rotate [--now]",
        summary: "print the line that makes another machine join, once; list and revoke users' tokens, change their key",
        run: machines::token,
    },
    Verb {
        name: "node",
        usage: "node remove NAME [--dir DIR]",
        summary: "take a machine that has joined out of the cluster, and its certificate back",
        run: machines::node,
    },
    Verb {
        name: "client",
        usage: "client [--dir DIR]",
        summary: "print the configuration for a machine that only asks the cluster, with a token in SLURM_JWT",
        run: machines::client,
    },
    Verb {
        name: "controller",
        usage: "controller add | list | remove NUMBER | lead NUMBER [--dir DIR]",
        summary: "add, show and remove controllers; let another one lead",
        run: machines::controller,
    },
    Verb {
        name: "backup",
        usage: "backup FILE [--dir DIR]",
        summary: "write the whole state of the cluster to a file, while it runs",
        run: backup::backup,
    },
    Verb {
        name: "audit",
        usage: audit::USAGE,
        summary: "show who asked for which change, from where, and what was refused; for administrators",
        run: audit::run,
    },
    Verb {
        name: "restore",
        usage: "restore FILE [--dir DIR]",
        summary: "start the cluster, which must be down, from a backup; what it had is put aside",
        run: backup::restore,
    },
    Verb {
        name: "install",
        usage: "install [--root DIR] [--user NAME [--setuid-programs]]",
        summary: "put this binary, its names and the systemd units where the system expects them",
        run: install::run,
    },
    Verb {
        name: "config",
        usage: "config check FILE | config convert FILE",
        summary: "tell what is wrong with a spur.conf or slurm.conf; write a slurm.conf as a spur.conf",
        run: check::run,
    },
    Verb { name: "man", usage: "man DIR", summary: "write the manual pages of all commands", run: manual::man },
    Verb {
        name: "completion",
        usage: "completion bash|zsh|fish",
        summary: "print a script that completes the commands' options: eval \"$(spur completion bash)\"",
        run: manual::complete,
    },
    Verb {
        name: "topo",
        usage: "topo [--dir DIR] [--svg FILE] [--json] | topo place --config FILE [--free LIST] -N n [--segment s]",
        summary: "show racks, switches and nodes with what runs on them; try where a job would be placed",
        run: topo::run,
    },
];

/// Runs `spur` with these arguments; `command_names` are linked into a cluster's `bin`.
pub fn run(arguments: &[String], command_names: &[&str]) -> i32 {
    let (verb, rest) = match arguments.split_first() {
        None => {
            eprint!("{}", help(command_names));
            return 1;
        }
        Some((verb, rest)) => (verb.as_str(), rest),
    };
    if matches!(verb, "help" | "--help" | "-h") {
        crate::output::print(&help(command_names));
        return 0;
    }
    if matches!(verb, "version" | "--version" | "-V") {
        say!("spur {}", env!("CARGO_PKG_VERSION"));
        return 0;
    }
    let Some(found) = VERBS.iter().find(|known| known.name == verb) else {
        eprintln!("spur: no such verb: {verb}; see `spur help`");
        return 1;
    };
    if rest.iter().any(|argument| argument == "--help" || argument == "-h") {
        say!("usage: spur {}\n\n{}", found.usage, found.summary);
        return 0;
    }
    match (found.run)(&Call { arguments: rest, command_names }) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("spur {verb}: {message}");
            1
        }
    }
}

/// What may come after these words of `spur`, for completion: verbs, the words and options of one, or a command's own.
pub fn next(words: &[&str]) -> Vec<String> {
    let Some((first, rest)) = words.split_first() else {
        return VERBS.iter().map(|verb| verb.name.to_string()).collect();
    };
    let Some(verb) = VERBS.iter().find(|verb| verb.name == *first) else {
        return crate::manual::next_words(first, rest).unwrap_or_default();
    };
    let is_word = |word: &&str| {
        word.starts_with("--")
            || (word.len() > 1 && *word != verb.name && word.chars().all(|one| one.is_ascii_lowercase()))
    };
    let mut words: Vec<String> =
        verb.usage.split([' ', '|', '[', ']', '=', ',']).filter(is_word).map(str::to_string).collect();
    words.sort();
    words.dedup();
    words
}

pub fn help(command_names: &[&str]) -> String {
    let width = VERBS.iter().map(|verb| verb.name.len()).max().unwrap_or(0);
    let mut text = String::from("Spur, a workload manager that speaks Slurm.\n\nusage: spur VERB ...\n\n");
    for verb in VERBS {
        text.push_str(&format!("  {:width$}  {}\n", verb.name, verb.summary));
    }
    let commands: Vec<&str> = command_names.iter().copied().filter(|name| !name.starts_with("spur")).collect();
    text.push_str(&format!("\nSlurm's commands, by their own names or after `spur`:\n  {}\n", commands.join(" ")));
    text
}

/// Reads a verb's options; operands are refused.
fn options(flags: &[Flag], arguments: &[String]) -> Result<Parsed, String> {
    let parsed = getopt::parse(flags, Operands::Mixed, arguments)?;
    match parsed.operands.first() {
        Some(extra) => Err(format!("unexpected argument '{extra}'")),
        None => Ok(parsed),
    }
}

fn directory(parsed: &Parsed) -> Option<PathBuf> {
    parsed.value("dir").map(PathBuf::from)
}
