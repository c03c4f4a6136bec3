//! Why a command stops before it asks the controller: the lines to print and the exit code.
use model::Reject;

use super::Program;

/// Lines to print and an exit code.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub lines: Vec<Line>,
    pub code: i32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// `sbatch: error: …`
    Error(String),
    /// `sbatch: fatal: …`
    Fatal(String),
    /// `sbatch: …`
    Plain(String),
    /// Without the command's name.
    Bare(String),
    /// As the controller would have refused it.
    Refused(Reject),
    /// What was asked for (`--hint=help`): for stdout.
    Help(String),
}

/// What a command exits with when an option's value makes no sense.
const USAGE: i32 = 255;

impl Problem {
    pub fn error(text: impl Into<String>) -> Self {
        Problem { lines: vec![Line::Error(text.into())], code: 1 }
    }

    pub fn fatal(text: impl Into<String>) -> Self {
        Problem { lines: vec![Line::Fatal(text.into())], code: 1 }
    }

    pub fn refused(reject: Reject) -> Self {
        Problem { lines: vec![Line::Refused(reject)], code: 1 }
    }

    /// `Invalid --time specification`
    pub fn invalid(option: &str) -> Self {
        Problem { lines: vec![Line::Error(format!("Invalid --{option} specification"))], code: USAGE }
    }

    /// An error of the values that Slurm answers with -1.
    pub fn usage(text: impl Into<String>) -> Self {
        Problem { lines: vec![Line::Error(text.into())], code: USAGE }
    }

    pub fn numeric(option: &str, value: &str) -> Self {
        Problem::error(format!("Invalid numeric value \"{value}\" for --{option}."))
    }

    /// What getopt says.
    pub fn unreadable(program: Program, text: String) -> Self {
        let hint = format!("Try \"{} --help\" for more information", program.name());
        Problem { lines: vec![Line::Plain(text), Line::Bare(hint)], code: USAGE }
    }

    pub fn unsupported(option: &str) -> Self {
        Problem::error(format!("--{option} is not supported by this version of Spur"))
    }

    /// The values of an option, which were asked for.
    pub fn help(text: &str, code: i32) -> Self {
        Problem { lines: vec![Line::Help(text.to_string())], code }
    }

    /// Says it: complaints on stderr, what was asked for on stdout.
    pub fn print(&self, program: Program) {
        match &self.lines[..] {
            [Line::Help(text)] => drop(crate::output::print(&format!("{text}\n"))),
            _ => eprint!("{}", self.show(program)),
        }
    }

    /// Ready to print.
    pub fn show(&self, program: Program) -> String {
        let name = program.name();
        let line = |line: &Line| match line {
            Line::Error(text) => format!("{name}: error: {text}\n"),
            Line::Fatal(text) => format!("{name}: fatal: {text}\n"),
            Line::Plain(text) => format!("{name}: {text}\n"),
            Line::Bare(text) | Line::Help(text) => format!("{text}\n"),
            Line::Refused(reject) => format!("{name}: error: {}: {reject}\n", program.refusal()),
        };
        self.lines.iter().map(line).collect()
    }
}
