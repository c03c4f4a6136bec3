//! Completion of option names for bash, zsh and fish.
use std::str::FromStr;

use crate::getopt::{Flag, Value};

use super::Manual;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl FromStr for Shell {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "bash" => Ok(Shell::Bash),
            "zsh" => Ok(Shell::Zsh),
            "fish" => Ok(Shell::Fish),
            _ => Err(format!("no completion for {name}; there is one for bash, zsh and fish")),
        }
    }
}

/// A script for the shell to read.
pub fn completion(shell: Shell, manuals: &[Manual]) -> String {
    match shell {
        Shell::Bash => std::iter::once(BASH_WORDS.to_string()).chain(manuals.iter().map(bash)).collect(),
        Shell::Zsh => {
            let names: Vec<&str> = manuals.iter().map(|manual| manual.name).collect();
            let cases: String = manuals.iter().map(zsh).collect();
            format!(
                "#compdef {names}\n{ZSH_WORDS}_spur_commands() {{\n  case $service in\n{cases}  esac\n}}\ncompdef _spur_commands {names}\n",
                names = names.join(" ")
            )
        }
        Shell::Fish => manuals.iter().map(fish).collect(),
    }
}

/// `--nodes=`, `--exclusive`
fn word(flag: &Flag) -> String {
    let equals = if flag.value == Value::Required { "=" } else { "" };
    format!("--{}{equals}", flag.long)
}

/// Asks for the words of a command. Readline parts words at `=` too, so what stands before that is taken off again.
const BASH_WORDS: &str = r#"_spur_words() {
  local line=${COMP_LINE:0:COMP_POINT} word=${COMP_WORDS[COMP_CWORD]} words current= IFS=$' \t\n'
  [[ $word == '=' ]] && word=
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] || { current=${words[-1]}; unset 'words[-1]'; }
  IFS=$'\n'
  COMPREPLY=($(spur completion words "$1" "${words[@]:1}" "$current"))
  COMPREPLY=("${COMPREPLY[@]#"${current%"$word"}"}")
  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
"#;

fn bash(manual: &Manual) -> String {
    let words: Vec<String> = manual.flags.iter().map(word).collect();
    let name = manual.name;
    // Verbs have options of their own, which are words like others.
    if words.is_empty() {
        return format!("_spur_{name}() {{\n  _spur_words {name}\n}}\ncomplete -o default -F _spur_{name} {name}\n");
    }
    let (operands, files) = match has_words(manual) {
        true => (format!("_spur_words {name}"), ""),
        false => ("COMPREPLY=($(compgen -f -- \"$word\"))".to_string(), "-o filenames "),
    };
    format!(
        "_spur_{name}() {{\n  local word=${{COMP_WORDS[COMP_CWORD]}}\n  if [[ $word == -* ]]; then\n    \
         COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n    [[ ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace\n  else\n    \
         {operands}\n  fi\n}}\ncomplete {files}-F _spur_{name} {name}\n",
        words.join(" ")
    )
}

const ZSH_WORDS: &str = r#"_spur_words() {
  local -a found
  found=("${(@f)$(spur completion words $service "${(@)words[2,CURRENT-1]}" "${words[CURRENT]}")}")
  compadd -M 'm:{a-z}={A-Z}' -S '' -- ${(M)found:#*=}
  compadd -M 'm:{a-z}={A-Z}' -- ${found:#*=}
}
"#;

fn zsh(manual: &Manual) -> String {
    let option = |flag: &Flag| {
        let (long, short) = match flag.value {
            Value::None => ("", ""),
            Value::Required => ("=:value:_files", "+:value:_files"),
            Value::Optional => ("=-::value:_files", "-::value:_files"),
        };
        let letter = flag.short.map_or(String::new(), |letter| format!("'-{letter}{short}' "));
        format!("{letter}'--{}{long}'", flag.long)
    };
    let options: Vec<String> = manual.flags.iter().map(option).collect();
    let operands = if has_words(manual) { "'*:word:_spur_words'" } else { "'*:file:_files'" };
    // Letters may stand together (`-hl`).
    format!("    {}) _arguments -s {} {operands} ;;\n", manual.name, options.join(" "))
}

fn fish(manual: &Manual) -> String {
    let line = |flag: &Flag| {
        let short = flag.short.map_or(String::new(), |letter| format!(" -s {letter}"));
        let value = if flag.value == Value::Required { " -r" } else { "" };
        format!("complete -c {} -l {}{short}{value}\n", manual.name, flag.long)
    };
    let mut lines: String = manual.flags.iter().map(line).collect();
    if has_words(manual) {
        let name = manual.name;
        lines.push_str(&format!(
            "complete -c {name} -f -a '(spur completion words {name} (commandline -opc | tail -n +2) (commandline -ct))'\n"
        ));
    }
    lines
}

/// Whether its operands are words of its own, not files.
fn has_words(manual: &Manual) -> bool {
    super::next_words(manual.name, &[]).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manual::{all, page};

    #[test]
    fn every_option_is_in_the_page_and_in_the_completions() {
        let manuals = all();
        let scripts = [Shell::Bash, Shell::Zsh, Shell::Fish].map(|shell| completion(shell, &manuals));
        for manual in &manuals {
            let text = page(manual);
            assert!(text.starts_with(".TH ") && text.contains(".SH SYNOPSIS\n"), "{}", manual.name);
            for flag in &manual.flags {
                assert!(text.contains(&flag.long.replace('-', "\\-")), "{} --{}", manual.name, flag.long);
                assert!(scripts[0].contains(&format!("--{}", flag.long)), "{}", flag.long);
                assert!(scripts[1].contains(&format!("'--{}", flag.long)), "{}", flag.long);
                assert!(scripts[2].contains(&format!("complete -c {} -l {}", manual.name, flag.long)), "{}", flag.long);
            }
        }
        assert!("tcsh".parse::<Shell>().is_err());
    }

    #[test]
    fn help_names_every_command_and_option_of_those_that_show_and_change() {
        let manuals = all();
        let help = |name: &str| &manuals.iter().find(|manual| manual.name == name).unwrap().help;
        for word in crate::manual::next_words("scontrol", &[]).unwrap() {
            assert!(help("scontrol").contains(&word), "scontrol {word}");
        }
        // Second names, and what is refused by name.
        let untold = ["admin-comment", "completion", "file", "sibling", "uid", "accounts", "nodes", "users"];
        for name in ["sacct", "scancel", "scontrol", "sinfo", "squeue"] {
            let manual = manuals.iter().find(|manual| manual.name == name).unwrap();
            for flag in manual.flags.iter().filter(|flag| !untold.contains(&flag.long)) {
                assert!(manual.help.contains(&format!("--{}", flag.long)), "{name} --{}", flag.long);
            }
        }
    }

    #[test]
    fn words_of_a_command_come_after_what_stands_before_them() {
        for (line, there, not_there) in [
            ("scontrol", "show", "cluster"),
            ("scontrol show", "assoc_mgr", "frontend"),
            ("scontrol -o show", "partitions", "show"),
            ("scontrol update", "NodeName=", "TimeLimit="),
            ("scontrol update JobId=7", "TimeLimit=", "Weight="),
            ("scontrol update nodename=n1 State=DRAIN", "Reason=", "TimeLimit="),
            ("scontrol update PartitionName=p", "MaxTime=", "Reason="),
            ("scontrol update res=r", "Duration=", "Watts="),
            ("scontrol update StepId=1.0", "TimeLimit=", "Name="),
            ("scontrol create", "ReservationName=", "JobId="),
            ("scontrol create reservation=r", "StartTime=", "MaxTime="),
            ("scontrol setdebugflags", "+Backfill", "Backfill"),
            ("sacctmgr", "modify", "archive"),
            ("sacctmgr add", "users", "tres"),
            ("sacctmgr list", "transactions", "job"),
            ("sacctmgr modify", "job", "wckeys"),
            ("sacctmgr add user", "names=", "format="),
            ("sacctmgr modify user where", "AdminLevel=", "MaxJobs="),
            ("sacctmgr modify user where name=x set", "MaxJobs=", "GraceTime="),
            ("sacctmgr modify qos set", "GraceTime=", "AdminLevel="),
            ("sacctmgr show assoc", "onlydefaults", "withfed"),
            ("sreport cluster", "Utilization", "TopUsage"),
            ("spur", "topo", "squeue"),
            ("spur up", "--nodes", "--purge"),
            ("spur config", "convert", "FILE"),
            ("spur scontrol show", "jobs", "show"),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let next = crate::manual::next_words(words[0], &words[1..]).unwrap();
            let has = |word: &str| next.iter().any(|one| one == word);
            assert!(has(there) && !has(not_there), "{line}: {next:?}");
        }
        assert_eq!(crate::manual::next_words("squeue", &[]), None);
        let scripts = [Shell::Bash, Shell::Zsh, Shell::Fish].map(|shell| completion(shell, &all()));
        assert!(scripts.iter().all(|script| script.contains("spur completion words")), "{scripts:?}");
    }
}
