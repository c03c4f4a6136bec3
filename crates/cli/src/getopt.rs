//! Reads argument vectors the way GNU getopt_long does, because users' fingers and scripts expect exactly that:
//! unambiguous abbreviations, `--name=value`, glued short options, optional values only when glued.

/// One option of a command.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    pub long: &'static str,
    pub short: Option<char>,
    pub value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    None,
    Required,
    Optional,
}

/// Where options end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// Anywhere among the options.
    Mixed,
    /// The first operand ends the options: what follows belongs to the user's program.
    EndOptions,
}

/// What was read: options by their long name, in order, and operands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    pub options: Vec<(&'static str, Option<String>)>,
    pub operands: Vec<String>,
}

impl Parsed {
    pub fn has(&self, long: &str) -> bool {
        self.options.iter().any(|(name, _)| *name == long)
    }

    /// The last value given; users override by repeating.
    pub fn value(&self, long: &str) -> Option<&str> {
        self.options.iter().rev().find(|(name, _)| *name == long).and_then(|(_, value)| value.as_deref())
    }
}

/// The items of a list, none of them empty.
pub fn words(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_string).collect()
}

pub const fn flag(long: &'static str, short: Option<char>, value: Value) -> Flag {
    Flag { long, short, value }
}

/// The error is the text after `program: `.
pub fn parse(flags: &[Flag], operands: Operands, arguments: &[String]) -> Result<Parsed, String> {
    let mut parsed = Parsed::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            parsed.operands.extend(rest.cloned());
            break;
        }
        if let Some(long) = argument.strip_prefix("--") {
            long_option(flags, long, &mut rest, &mut parsed)?;
        } else if argument.len() > 1 && argument.starts_with('-') {
            short_options(flags, &argument[1..], &mut rest, &mut parsed)?;
        } else {
            parsed.operands.push(argument.clone());
            if operands == Operands::EndOptions {
                parsed.operands.extend(rest.cloned());
                break;
            }
        }
    }
    Ok(parsed)
}

fn long_option<'a>(
    flags: &[Flag],
    text: &str,
    rest: &mut impl Iterator<Item = &'a String>,
    parsed: &mut Parsed,
) -> Result<(), String> {
    let (name, glued) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_string())),
        None => (text, None),
    };
    let flag = find(flags, name, text)?;
    let value = match (flag.value, glued) {
        (Value::None, Some(_)) => return Err(format!("option '--{}' doesn't allow an argument", flag.long)),
        (Value::None, None) => None,
        (Value::Optional, glued) => glued,
        (Value::Required, Some(value)) => Some(value),
        (Value::Required, None) => {
            Some(rest.next().ok_or_else(|| format!("option '--{}' requires an argument", flag.long))?.clone())
        }
    };
    parsed.options.push((flag.long, value));
    Ok(())
}

/// Options that a Slurm 22.05 does not have: they make none of its abbreviations ambiguous.
const OWN: &[&str] = &[
    "wait-bb",
    "cron",
    "draining",
    "helpFormat",
    "helpreason",
    "helpstate",
    "no-allocation",
    "no-trunc",
    "resume",
    "running-over",
    "running-under",
];

/// `written` is the whole word, which getopt repeats in its messages.
fn find<'a>(flags: &'a [Flag], name: &str, written: &str) -> Result<&'a Flag, String> {
    if let Some(exact) = flags.iter().find(|flag| flag.long == name) {
        return Ok(exact);
    }
    let mut fitting: Vec<&Flag> = flags.iter().filter(|flag| !name.is_empty() && flag.long.starts_with(name)).collect();
    if fitting.len() > 1 {
        fitting.retain(|flag| !OWN.contains(&flag.long));
    }
    match fitting[..] {
        [] => Err(format!("unrecognized option '--{written}'")),
        [only] => Ok(only),
        _ => {
            let names: Vec<String> = fitting.iter().map(|flag| format!("'--{}'", flag.long)).collect();
            Err(format!("option '--{written}' is ambiguous; possibilities: {}", names.join(" ")))
        }
    }
}

fn short_options<'a>(
    flags: &[Flag],
    letters: &str,
    rest: &mut impl Iterator<Item = &'a String>,
    parsed: &mut Parsed,
) -> Result<(), String> {
    for (at, letter) in letters.char_indices() {
        let flag = flags
            .iter()
            .find(|flag| flag.short == Some(letter))
            .ok_or_else(|| format!("invalid option -- '{letter}'"))?;
        let glued = &letters[at + letter.len_utf8()..];
        match flag.value {
            Value::None => parsed.options.push((flag.long, None)),
            Value::Optional => {
                parsed.options.push((flag.long, (!glued.is_empty()).then(|| glued.to_string())));
                return Ok(());
            }
            Value::Required => {
                let value = match glued {
                    "" => rest.next().ok_or_else(|| format!("option requires an argument -- '{letter}'"))?.clone(),
                    glued => glued.to_string(),
                };
                parsed.options.push((flag.long, Some(value)));
                return Ok(());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: &[Flag] = &[
        flag("nodes", Some('N'), Value::Required),
        flag("ntasks", Some('n'), Value::Required),
        flag("ntasks-per-node", None, Value::Required),
        flag("exclusive", None, Value::Optional),
        flag("kill-on-bad-exit", Some('K'), Value::Optional),
        flag("label", Some('l'), Value::None),
        flag("quiet", Some('Q'), Value::None),
    ];

    fn check(line: &str, expected: &str) {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        let shown = match parse(FLAGS, Operands::EndOptions, &arguments) {
            Err(error) => error,
            Ok(parsed) => {
                let option = |(name, value): &(&str, Option<String>)| match value {
                    Some(value) => format!("{name}={value}"),
                    None => name.to_string(),
                };
                let options: Vec<String> = parsed.options.iter().map(option).collect();
                format!("{} | {}", options.join(" "), parsed.operands.join(" "))
            }
        };
        assert_eq!(shown, expected, "{line}");
    }

    #[test]
    fn options_read_as_getopt_reads_them() {
        check("-N2 -n 4 prog -x", "nodes=2 ntasks=4 | prog -x");
        check("--nodes=2 --lab prog", "nodes=2 label | prog");
        check("--exclusive prog", "exclusive | prog");
        check("--exclusive=user prog", "exclusive=user | prog");
        check("-lQN3 a", "label quiet nodes=3 | a");
        check("-K1 a", "kill-on-bad-exit=1 | a");
        check("-K 1", "kill-on-bad-exit | 1");
        check("--ntasks 3 -- -l", "ntasks=3 | -l");
        check("--n 3", "option '--n' is ambiguous; possibilities: '--nodes' '--ntasks' '--ntasks-per-node'");
        check("--frob", "unrecognized option '--frob'");
        check("--label=1", "option '--label' doesn't allow an argument");
        check("--nodes", "option '--nodes' requires an argument");
        check("-N", "option requires an argument -- 'N'");
        check("-z", "invalid option -- 'z'");
    }
}
