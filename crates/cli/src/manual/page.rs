//! One manual page in the language of `man`.
use crate::getopt::Value;

use super::{Column, Manual};

pub fn page(manual: &Manual) -> String {
    let mut page = format!(
        ".TH {} 1 \"\" \"Spur {}\" \"Spur Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}\n",
        manual.name.to_uppercase(),
        env!("CARGO_PKG_VERSION"),
        manual.name,
        escaped(manual.summary),
        escaped(manual.synopsis),
    );
    page.push_str(".SH OPTIONS\n.nf\n");
    for line in manual.help.lines() {
        page.push_str(&guarded(&escaped(line)));
    }
    page.push_str(".fi\n");
    let unlisted: Vec<String> =
        manual.flags.iter().filter(|flag| !manual.help.contains(&format!("--{}", flag.long))).map(option).collect();
    if !unlisted.is_empty() {
        page.push_str(".PP\nKnown by name, too (see \\fIdocs/compat.md\\fR):\n");
        page.push_str(&guarded(&escaped(&unlisted.join(", "))));
    }
    if !manual.columns.is_empty() {
        page.push_str(".SH COLUMNS\n.nf\n");
        manual.columns.iter().for_each(|column| page.push_str(&guarded(&escaped(&shown(column)))));
        page.push_str(".fi\n");
    }
    if !manual.variables.is_empty() {
        page.push_str(
            ".SH ENVIRONMENT\nOptions on the command line go before these, these before what stands in a script.\n",
        );
        for variable in &manual.variables {
            page.push_str(&format!(
                ".TP\n\\fB{}\\fR\nSame as \\fB{}\\fR\n",
                variable.name,
                escaped(&format!("--{}", variable.option))
            ));
        }
    }
    let others = super::all();
    let others: Vec<String> = others
        .iter()
        .filter(|other| other.name != manual.name)
        .map(|other| format!("\\fB{}\\fR(1)", other.name))
        .collect();
    page.push_str(&format!(".SH SEE ALSO\n{}\n", others.join(", ")));
    page
}

fn option(flag: &crate::getopt::Flag) -> String {
    match flag.value {
        Value::None => format!("--{}", flag.long),
        Value::Required => format!("--{}=value", flag.long),
        Value::Optional => format!("--{}[=value]", flag.long),
    }
}

fn shown(column: &Column) -> String {
    let letter = column.letter.map_or("  ".to_string(), |letter| format!("%{letter}"));
    format!("{letter}  {:<24} {}", column.name, column.title).trim_end().to_string()
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// A line that begins with a dot or a quote would be a command of `man`.
fn guarded(line: &str) -> String {
    let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
    format!("{guard}{line}\n")
}
