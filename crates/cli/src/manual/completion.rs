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
        Shell::Bash => manuals.iter().map(bash).collect(),
        Shell::Zsh => {
            let names: Vec<&str> = manuals.iter().map(|manual| manual.name).collect();
            let cases: String = manuals.iter().map(zsh).collect();
            format!(
                "#compdef {names}\n_spur_commands() {{\n  case $service in\n{cases}  esac\n}}\ncompdef _spur_commands {names}\n",
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

fn bash(manual: &Manual) -> String {
    let words: Vec<String> = manual.flags.iter().map(word).collect();
    let name = manual.name;
    format!(
        "_spur_{name}() {{\n  local word=${{COMP_WORDS[COMP_CWORD]}}\n  if [[ $word == -* ]]; then\n    \
         COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n    [[ ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace\n  else\n    \
         COMPREPLY=($(compgen -f -- \"$word\"))\n  fi\n}}\ncomplete -o filenames -F _spur_{name} {name}\n",
        words.join(" ")
    )
}

fn zsh(manual: &Manual) -> String {
    let option = |flag: &Flag| match flag.value {
        Value::None => format!("'--{}'", flag.long),
        Value::Required => format!("'--{}=:value:_files'", flag.long),
        Value::Optional => format!("'--{}=-::value:_files'", flag.long),
    };
    let options: Vec<String> = manual.flags.iter().map(option).collect();
    format!("    {}) _arguments {} '*:file:_files' ;;\n", manual.name, options.join(" "))
}

fn fish(manual: &Manual) -> String {
    let line = |flag: &Flag| {
        let short = flag.short.map_or(String::new(), |letter| format!(" -s {letter}"));
        let value = if flag.value == Value::Required { " -r" } else { "" };
        format!("complete -c {} -l {}{short}{value}\n", manual.name, flag.long)
    };
    manual.flags.iter().map(line).collect()
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
}
