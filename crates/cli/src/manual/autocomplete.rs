//! `COMMAND --autocomplete=TEXT`: the options that fit, for the completion scripts of current Slurm releases.
use crate::getopt::{Flag, Value};

const OPTION: &str = "--autocomplete";

/// What to print where the first argument asks for it; the error is the text after `command: `.
pub fn autocomplete(command: &str, arguments: &[String]) -> Option<Result<String, String>> {
    let rest = arguments.first()?.strip_prefix(OPTION)?;
    let query = match (rest.strip_prefix('='), rest) {
        (Some(query), _) => query,
        (None, "") => match arguments.get(1) {
            Some(query) => query,
            None => return Some(Err(format!("option '{OPTION}' requires an argument"))),
        },
        (None, _) => return None,
    };
    let manual = super::all().into_iter().find(|manual| manual.name == command)?;
    Some(Ok(fitting(&manual.flags, query)))
}

/// One to a line; what takes a value ends in `=`, and stands twice where the value may be left out.
fn fitting(flags: &[Flag], query: &str) -> String {
    let own = Flag { long: &OPTION[2..], short: None, value: Value::Required };
    let mut lines = Vec::new();
    for flag in std::iter::once(&own).chain(flags).filter(|_| !query.is_empty()) {
        let short = flag.short.map(|letter| format!("-{letter}"));
        lines.extend(short.filter(|short| short.contains(query) || query == "-"));
        let long = format!("--{}", flag.long);
        if query == "-" || !long.contains(query) {
            continue;
        }
        match flag.value {
            Value::None => lines.push(long),
            Value::Required => lines.push(long + "="),
            Value::Optional => lines.extend([format!("{long}="), format!("{long} ")]),
        }
    }
    // An empty line ends a list that has anything in it.
    lines.iter().map(|line| format!("{line}\n")).collect::<String>() + if lines.is_empty() { "" } else { "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, query: &str, expected: &str) {
        let given = [format!("{OPTION}={query}")];
        let told = autocomplete(command, &given).unwrap().unwrap();
        assert_eq!(told.lines().collect::<Vec<_>>().join("|"), expected, "{command} {query}");
    }

    /// As a Slurm 24.11 answers, but for the order.
    #[test]
    fn options_that_fit_are_listed() {
        check("sbatch", "--exclusive", "--exclusive=|--exclusive |");
        check("sbatch", "--exclusive=", "");
        check("sbatch", "-N", "-N|");
        let of_nodes = "--extra-node-info=|--gpus-per-node=|--nodefile=|--nodelist=|--nodes=|--ntasks-per-node=|";
        let more = "--sockets-per-node=|--tasks-per-node=|--use-min-nodes|--wait-all-nodes=|";
        check("sbatch", "node", &format!("{of_nodes}{more}"));
        check("squeue", "--h", "--help|--helpFormat|--helpformat|--helpstate|--hide|");
        check("squeue", "h", "--help|--helpFormat|--helpformat|--helpstate|--hide|-h|--noheader|");
        check("squeue", "--fo", "--format=|");
        check("squeue", "--running", "--running-over=|--running-under=|");
        check("sacct", "--help-", "--help-fields|");
        check("sdiag", "-", "-a|-M|-h|-r|-i|-t|-T|-V|");
        check("squeue", "", "");
        check("squeue", "zz", "");
        assert_eq!(
            autocomplete("squeue", &[OPTION.into()]),
            Some(Err("option '--autocomplete' requires an argument".into()))
        );
        assert_eq!(autocomplete("srun", &["prog".into(), format!("{OPTION}=x")]), None);
    }

    #[test]
    fn every_command_completes_its_own_options() {
        for manual in crate::manual::all() {
            let told = autocomplete(manual.name, &[format!("{OPTION}=--")]).unwrap().unwrap();
            for flag in &manual.flags {
                assert!(told.contains(&format!("--{}", flag.long)), "{} --{}", manual.name, flag.long);
            }
        }
    }
}
