//! What `squeue` and `sinfo` have in common around their views: being asked, complaining, reaching the right cluster.
use wire::Controller;

use crate::context;
use crate::getopt::{self, Flag, Operands, Parsed};
use crate::json;
use crate::output::print;
use crate::trouble::{Trouble, connect};
use crate::version;

/// Looks up an environment variable.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What the arguments ask for.
pub enum Asked<Options> {
    Show(Box<Options>),
    /// Print this and end well.
    Print(String),
}

/// Why nothing is shown: what goes to stdout and stderr; the exit code is 1.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    pub stdout: String,
    pub stderr: String,
}

impl Refusal {
    pub fn told(stderr: String) -> Refusal {
        Refusal { stderr, ..Refusal::default() }
    }

    /// Every line as the program's own.
    pub fn lines(program: &str, lines: &[String]) -> Refusal {
        Refusal::told(lines.iter().map(|line| format!("{program}: {line}\n")).collect())
    }
}

/// What a command that shows things takes, and says about itself.
pub struct Manual {
    pub program: &'static str,
    pub flags: &'static [Flag],
    pub help: &'static str,
    pub usage: &'static str,
}

impl Manual {
    /// Reads the arguments, answers what is asked about the command itself, and leaves the rest to `options`.
    pub fn read<Options>(
        &self,
        arguments: &[String],
        options: impl FnOnce(&Parsed) -> Result<Asked<Options>, Refusal>,
    ) -> Result<Asked<Options>, Refusal> {
        let program = self.program;
        let parsed = getopt::parse(self.flags, Operands::Mixed, arguments).map_err(|problem| {
            // sacct alone leaves it at that.
            let hint = format!("Try \"{program} --help\" for more information\n");
            Refusal::told(format!("{program}: {problem}\n{}", if program == "sacct" { "" } else { &hint }))
        })?;
        if parsed.has("help") {
            return Ok(Asked::Print(self.help.into()));
        }
        if parsed.has("usage") {
            return Ok(Asked::Print(self.usage.into()));
        }
        if parsed.has("version") {
            return Ok(Asked::Print(version::line()));
        }
        if let Ok(json::Wish::List) = json::wish(&parsed) {
            return Ok(Asked::Print(json::shape::list()));
        }
        options(&parsed)
    }
}

/// What came of rendering.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub text: String,
    /// Lines for stderr.
    pub complaints: Vec<String>,
    /// Nothing can be shown.
    pub failed: bool,
}

impl Shown {
    /// Prints it; gives the exit code when nothing more is to be printed.
    pub fn put_out(&self) -> Option<i32> {
        for complaint in &self.complaints {
            eprintln!("{complaint}");
        }
        let goes_on = print(&self.text) && !self.failed;
        (!goes_on).then_some(i32::from(self.failed))
    }
}

/// How an option is told by `-v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// `true` or `false`
    Flag,
    /// 0 or 1, or the number given
    Number,
    /// As given, or `(null)`
    Text,
}

/// What `-v` prints first: the options as they were understood.
pub fn listing(parsed: &Parsed, lines: &[(&str, &str, Told)]) -> String {
    if !parsed.has("verbose") {
        return String::new();
    }
    let rule = "-----------------------------\n";
    let mut text = rule.to_string();
    for (name, option, told) in lines {
        let (is_given, value) = (parsed.has(option), parsed.value(option));
        let n_times = parsed.options.iter().filter(|(given, _)| given == option).count();
        let value = match told {
            Told::Flag => is_given.to_string(),
            Told::Number => value.map_or(n_times.to_string(), str::to_string),
            Told::Text => value.unwrap_or("(null)").to_string(),
        };
        text.push_str(&format!("{name:<11} = {value}\n"));
    }
    text + rule + "\n\n"
}

/// How a command speaks of itself and of its failed call.
pub struct Viewer {
    pub program: &'static str,
    pub call: &'static str,
}

impl Viewer {
    /// Does what was asked and gives the exit code. `watches`: it shows again and again.
    pub fn run<Options>(
        &self,
        asked: Result<Asked<Options>, Refusal>,
        complaints: impl Fn(&Options) -> &[String],
        watches: impl Fn(&Options) -> bool,
        show: impl AsyncFnOnce(&Options) -> Result<i32, Trouble>,
    ) -> i32 {
        let options = match asked {
            Ok(Asked::Show(options)) => options,
            Ok(Asked::Print(text)) => {
                print(&text);
                return 0;
            }
            Err(refusal) => {
                print(&refusal.stdout);
                eprint!("{}", refusal.stderr);
                return 1;
            }
        };
        for complaint in complaints(&options) {
            eprintln!("{}: {complaint}", self.program);
        }
        let shown = match watches(&options) {
            true => context::block_on(show(&options)),
            false => context::ask(show(&options)),
        };
        match shown {
            Ok(code) => code,
            Err(Trouble::NoCluster(text)) => {
                eprintln!("{}: error: {text}", self.program);
                1
            }
            Err(Trouble::Call(text)) => {
                eprintln!("{} {text}", self.call);
                1
            }
        }
    }

    /// The cluster, if it is among those asked for.
    pub async fn connect(
        &self,
        is_verbose: bool,
        clusters: &[String],
    ) -> Result<Option<(config::Client, Controller)>, Trouble> {
        let (cluster, controller) = connect().await?;
        let program = self.program;
        if is_verbose {
            eprintln!("{program}: cluster {} at {}", cluster.cluster_name, cluster.controller_socket.display());
        }
        if let Some(complaint) = unreachable(clusters, &cluster.cluster_name) {
            eprintln!("{program}: error: {complaint}");
            return Ok(None);
        }
        Ok(Some((cluster, controller)))
    }
}

/// What is said of the first cluster that is not this one.
pub fn unreachable(clusters: &[String], own_name: &str) -> Option<String> {
    let other = clusters.iter().find(|name| *name != own_name && *name != "all")?;
    Some(format!(
        "'{other}' can't be reached now, or it is an invalid entry for --cluster.  \
         Use 'sacctmgr list clusters' to see available clusters."
    ))
}
