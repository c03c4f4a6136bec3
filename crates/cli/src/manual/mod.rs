//! Manual pages and shell completion of every command, made from the tables that read its arguments.
mod autocomplete;
mod completion;
mod page;

pub use autocomplete::autocomplete;
pub use completion::{Shell, completion};
pub use page::page;

use crate::getopt::Flag;
use crate::submit::{Program, help, request::Question, table};
use crate::{
    operate, sacct, sacctmgr, sattach, sbcast, scancel, scontrol, sdiag, sgather, sinfo, sprio, squeue, sreport,
    sshare, sstat, strigger,
};

/// What a manual page and a completion need to know of a command.
pub struct Manual {
    pub name: &'static str,
    pub summary: &'static str,
    pub synopsis: &'static str,
    pub flags: Vec<Flag>,
    /// The text of `--help`.
    pub help: String,
    pub variables: Vec<Variable>,
    pub columns: Vec<Column>,
}

/// A variable that stands for an option.
pub struct Variable {
    pub name: &'static str,
    pub option: &'static str,
}

/// A column of a table, for `-o %letter` and `-O name`.
pub struct Column {
    pub letter: Option<char>,
    pub name: &'static str,
    pub title: &'static str,
}

/// What may come next after these words of a command; none where it takes what it is given.
pub fn next_words(command: &str, words: &[&str]) -> Option<Vec<String>> {
    let next = NEXT.iter().find(|(name, _)| *name == command)?.1;
    let words: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
    Some(next(&words))
}

type Next = fn(&[&str]) -> Vec<String>;

/// Commands with words of their own.
const NEXT: &[(&str, Next)] =
    &[("sacctmgr", sacctmgr::next), ("scontrol", scontrol::next), ("spur", operate::next), ("sreport", sreport::next)];

/// All commands, in the order of their names, and `spur` itself.
pub fn all() -> Vec<Manual> {
    let mut all = of_slurm();
    let names: Vec<&str> = all.iter().map(|manual| manual.name).collect();
    let help = operate::help(&names);
    all.push(of_reader("spur", "start, watch and change clusters", "spur VERB [OPTIONS]", &[], &help));
    all
}

fn of_slurm() -> Vec<Manual> {
    vec![
        Manual {
            columns: columns(sacct::FIELDS.iter().filter(|field| field.is_listed).map(|field| ('\0', field.name, ""))),
            ..of_reader("sacct", "show what became of jobs", "sacct [OPTIONS]", sacct::FLAGS, sacct::HELP)
        },
        of_reader(
            "sacctmgr",
            "show and change accounts, users and QOS",
            "sacctmgr [OPTIONS] [COMMAND]",
            sacctmgr::FLAGS,
            sacctmgr::HELP,
        ),
        of_submitter(Program::Salloc, "hold an allocation while a command runs in it"),
        of_reader(
            "sattach",
            "see the output of a running step",
            "sattach [OPTIONS] JOB.STEP",
            sattach::FLAGS,
            sattach::HELP,
        ),
        of_submitter(Program::Sbatch, "submit a script to be run later"),
        of_reader(
            "sbcast",
            "copy a file to the nodes of a job",
            "sbcast [OPTIONS] SOURCE DEST",
            sbcast::FLAGS,
            sbcast::HELP,
        ),
        of_reader(
            "scancel",
            "end or signal jobs",
            "scancel [OPTIONS] [JOB[_TASK|+COMPONENT][.STEP]...]",
            scancel::FLAGS,
            scancel::HELP,
        ),
        of_reader(
            "scontrol",
            "show and change what is in the cluster",
            "scontrol [OPTIONS] [COMMAND]",
            scontrol::FLAGS,
            scontrol::HELP,
        ),
        of_reader("sdiag", "show what the controller has done", "sdiag [OPTIONS]", sdiag::FLAGS, sdiag::HELP),
        of_reader(
            "seff",
            "tell how much of what it held a job made use of",
            "seff JOB[_TASK]",
            sacct::seff::FLAGS,
            sacct::seff::HELP,
        ),
        of_reader(
            "sgather",
            "bring a file of every node of a job to one place",
            "sgather [OPTIONS] SOURCE DEST",
            sgather::FLAGS,
            sgather::HELP,
        ),
        Manual {
            columns: columns(sinfo::COLUMNS.iter().map(|column| (column.letter, column.name, column.title))),
            ..of_reader("sinfo", "show nodes and partitions", "sinfo [OPTIONS]", sinfo::FLAGS, sinfo::HELP)
        },
        Manual {
            columns: columns(sprio::COLUMNS.iter().map(|column| (column.letter, column.name, column.title))),
            ..of_reader("sprio", "show what priorities are made of", "sprio [OPTIONS]", sprio::FLAGS, sprio::HELP)
        },
        Manual {
            columns: columns(squeue::COLUMNS.iter().map(|column| (column.letter, column.name, column.title))),
            ..of_reader("squeue", "show jobs and their steps", "squeue [OPTIONS]", squeue::FLAGS, squeue::HELP)
        },
        of_reader("sreport", "sum up what was used", "sreport [OPTIONS] [COMMAND]", sreport::FLAGS, sreport::HELP),
        of_submitter(Program::Srun, "run a program as the tasks of a step"),
        of_reader("sshare", "show shares and what was used of them", "sshare [OPTIONS]", sshare::FLAGS, sshare::HELP),
        of_reader("sstat", "measure running steps", "sstat [OPTIONS] [JOB[.STEP]]", sstat::FLAGS, sstat::HELP),
        of_reader(
            "strigger",
            "have programs run when something happens",
            "strigger {--set|--get|--clear} [OPTIONS]",
            strigger::FLAGS,
            strigger::HELP,
        ),
    ]
}

fn of_submitter(program: Program, summary: &'static str) -> Manual {
    let variables = table::of(program)
        .filter(|option| !option.is_refused())
        .flat_map(|option| option.variables(program).map(|name| Variable { name, option: option.long }));
    Manual {
        name: program.name(),
        summary,
        synopsis: match program {
            Program::Sbatch => "sbatch [OPTIONS(0)... [ : OPTIONS(N)...]] script(0) [args(0)...]",
            Program::Salloc => "salloc [OPTIONS(0)... [ : OPTIONS(N)...]] [command(0) [args(0)...]]",
            Program::Srun => {
                "srun [OPTIONS(0)... [executable(0) [args(0)...]]] [ : [OPTIONS(N)...]] executable(N) [args(N)...]"
            }
        },
        flags: table::flags(program),
        help: help::answer(program, Question::Help),
        variables: variables.collect(),
        columns: Vec::new(),
    }
}

fn of_reader(name: &'static str, summary: &'static str, synopsis: &'static str, flags: &[Flag], help: &str) -> Manual {
    let (variables, columns) = (Vec::new(), Vec::new());
    Manual { name, summary, synopsis, flags: flags.to_vec(), help: help.to_string(), variables, columns }
}

fn columns(all: impl Iterator<Item = (char, &'static str, &'static str)>) -> Vec<Column> {
    let column =
        |(letter, name, title): (char, _, _)| Column { letter: Some(letter).filter(|one| *one != '\0'), name, title };
    all.map(column).collect()
}
