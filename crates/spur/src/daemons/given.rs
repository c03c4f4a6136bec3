//! What stands on a daemon's command line. The letters are those of slurmctld and slurmd.
use std::path::PathBuf;

use cli::getopt::{self, Flag, Operands, Value, flag};
use model::{Config, NodeName};

pub const CONTROLLER: &[Flag] = &[
    flag("config", Some('f'), Value::Required),
    // Writes what the journal holds to a file, and ends.
    flag("backup", None, Value::Required),
    // Which of the controllers that share this machine.
    flag("member", None, Value::Required),
    flag("foreground", Some('D'), Value::None),
    flag("log-file", Some('L'), Value::Required),
    flag("verbose", Some('v'), Value::None),
    flag("nice", Some('n'), Value::Required),
    flag("clean", Some('c'), Value::None),
    flag("ignore-errors", Some('i'), Value::None),
    // Of a user who started a cluster for nobody else.
    flag("private", None, Value::None),
    // State is always recovered, all of it.
    flag("recover", Some('r'), Value::None),
    flag("recover-all", Some('R'), Value::None),
    flag("version", Some('V'), Value::None),
    flag("help", Some('h'), Value::None),
];

pub const AGENT: &[Flag] = &[
    flag("config", Some('f'), Value::Required),
    flag("node", Some('N'), Value::Required),
    flag("foreground", Some('D'), Value::None),
    flag("log-file", Some('L'), Value::Required),
    flag("verbose", Some('v'), Value::None),
    flag("nice", Some('n'), Value::Required),
    // Locks of an agent that was killed: ours go with their process, so there never are any.
    flag("clear-locks", Some('c'), Value::None),
    flag("clear", None, Value::None),
    // As if the machine had just been started, for tests, as slurmd has it.
    flag("reboot", Some('b'), Value::None),
    // A node that no file names; what it is, and where in the network.
    flag("dynamic", Some('Z'), Value::None),
    flag("conf", None, Value::Required),
    flag("version", Some('V'), Value::None),
    flag("help", Some('h'), Value::None),
];

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Given {
    pub config: Option<PathBuf>,
    pub node: Option<NodeName>,
    pub member: Option<u32>,
    pub backup: Option<PathBuf>,
    pub log_file: Option<String>,
    pub foreground: bool,
    pub n_verbose: usize,
    /// Forget every job and begin anew.
    pub cleans: bool,
    pub ignores_errors: bool,
    pub is_private: bool,
    /// End all jobs of the node instead of serving it.
    pub clears: bool,
    pub reports_reboot: bool,
    /// The node is not in the file, and says itself what it is.
    pub is_dynamic: bool,
    /// `Key=Value` pairs as of a `NodeName` line.
    pub conf: Option<String>,
}

/// What the caller wants.
#[derive(Debug, PartialEq, Eq)]
pub enum Wish {
    Run(Given),
    Show(String),
}

impl Given {
    pub fn read(flags: &[Flag], arguments: &[String]) -> Result<Wish, String> {
        let parsed = getopt::parse(flags, Operands::Mixed, arguments)?;
        if let Some(extra) = parsed.operands.first() {
            return Err(format!("unexpected argument '{extra}'"));
        }
        if parsed.has("version") {
            return Ok(Wish::Show(cli::version::line()));
        }
        if parsed.has("help") {
            return Ok(Wish::Show(help(flags)));
        }
        if let Some(text) = parsed.value("nice") {
            let nice = text.parse().map_err(|_| format!("-n must be a number, not '{text}'"))?;
            rustix::process::setpriority_process(None, nice).map_err(|error| format!("-n {nice}: {error}"))?;
        }
        Ok(Wish::Run(Given {
            config: parsed.value("config").map(PathBuf::from),
            node: parsed.value("node").map(NodeName::from),
            backup: parsed.value("backup").map(PathBuf::from),
            member: match parsed.value("member").map(str::parse) {
                None => None,
                Some(Ok(member)) if (1..=9).contains(&member) => Some(member),
                Some(_) => return Err("--member must be a number from 1 to 9".into()),
            },
            log_file: parsed.value("log-file").map(String::from),
            foreground: parsed.has("foreground"),
            n_verbose: parsed.options.iter().filter(|(name, _)| *name == "verbose").count(),
            cleans: parsed.has("clean"),
            ignores_errors: parsed.has("ignore-errors"),
            is_private: parsed.has("private"),
            clears: parsed.has("clear"),
            reports_reboot: parsed.has("reboot"),
            is_dynamic: parsed.has("dynamic"),
            conf: parsed.value("conf").map(String::from),
        }))
    }

    /// The configuration; what it says in vain is told on the way.
    pub fn load(&self) -> Result<(PathBuf, Config), String> {
        let file = config::client::locate(self.config.as_deref())?;
        // The daemon may leave the directory it was started in.
        let file = std::path::absolute(&file).unwrap_or(file);
        let (config, warnings) = config::load_with_warnings(&file).map_err(|problems| problems.to_string())?;
        warnings.to_string().lines().for_each(|line| tracing::warn!("{line}"));
        Ok((file, config))
    }
}

fn help(flags: &[Flag]) -> String {
    let mut text = String::from("Options:\n");
    for flag in flags {
        let short = flag.short.map_or(String::from("   "), |letter| format!("-{letter},"));
        let value = if flag.value == Value::Required { " VALUE" } else { "" };
        text.push_str(&format!("  {short} --{}{value}\n", flag.long));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flags: &[Flag], line: &str) -> Result<Wish, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        Given::read(flags, &words)
    }

    #[test]
    fn our_words_and_the_letters_of_slurm_mean_the_same() {
        for line in ["--config /c --node n1 -D -vv", "-f/c -Nn1 -Dvv", "-c -D -v -v -f /c -N n1"] {
            let Wish::Run(given) = read(AGENT, line).unwrap() else { panic!("{line}") };
            assert_eq!((given.config, given.node), (Some("/c".into()), Some("n1".into())), "{line}");
            assert_eq!((given.foreground, given.n_verbose, given.clears), (true, 2, false), "{line}");
        }
        let Wish::Run(given) = read(CONTROLLER, "-c -i -L /log").unwrap() else { panic!() };
        assert_eq!((given.cleans, given.ignores_errors, given.log_file), (true, true, Some("/log".into())));
        assert_eq!(read(CONTROLLER, "-V"), Ok(Wish::Show("slurm 22.05.8\n".into())));
    }

    #[test]
    fn daemons_refuse_arguments_they_do_not_know() {
        for (flags, line, part) in [
            (CONTROLLER, "--clear", "--clear"),
            (CONTROLLER, "-N n1", "N"),
            (CONTROLLER, "-s", "s"),
            (AGENT, "--conf-server head", "--conf-server"),
            (AGENT, "-C", "C"),
            (AGENT, "n1", "n1"),
            (AGENT, "--node", "node"),
            (AGENT, "-n low", "low"),
        ] {
            let message = read(flags, line).unwrap_err();
            assert!(message.contains(part), "{line}: {message}");
        }
    }
}
