//! What sacctmgr, sreport and sshare have in common: how they begin, and how their tables are set.
use crate::getopt::{self, Flag, Operands, Parsed};
use crate::output::print;
use crate::table::{Column, Style};
use crate::version;

/// The options, or the exit code where nothing more is to be done.
pub fn begin(program: &str, flags: &[Flag], help: &str, arguments: &[String]) -> Result<Parsed, i32> {
    let parsed = getopt::parse(flags, Operands::Mixed, arguments).map_err(|text| {
        eprintln!("{program}: {text}\nTry \"{program} --help\" for more information");
        1
    })?;
    let told = match (parsed.has("version"), parsed.has("help") || parsed.has("usage")) {
        (true, _) => version::line(),
        (false, true) => help.to_string(),
        (false, false) => return Ok(parsed),
    };
    print(&told);
    Err(0)
}

/// As `-p` and `-P` ask for it.
pub fn style(parsed: &Parsed) -> Style {
    match (parsed.has("parsable"), parsed.has("parsable2")) {
        (_, true) => Style::Between("|".into()),
        (true, false) => Style::After("|".into()),
        (false, false) => Style::Aligned,
    }
}

/// Reads `account%20,user`: each word with its width, if it says one.
pub fn words_of_format(format: &str) -> impl Iterator<Item = (&str, Option<i32>)> {
    let words = format.split(|sign: char| sign == ',' || sign.is_whitespace()).filter(|word| !word.is_empty());
    words.map(|word| match word.split_once('%') {
        Some((name, width)) => (name, width.parse().ok().filter(|width| *width != 0)),
        None => (word, None),
    })
}

/// Whether a word, in any case, is the name or its beginning.
pub fn begins(name: &str, word: &str) -> bool {
    name.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word))
}

/// The column of a field whose name was cut short; the exact name goes before the beginning of another.
pub fn chosen<'a, F>(
    fields: &'a [F],
    format: &str,
    name_of: fn(&F) -> &str,
    column_of: fn(&F) -> (&str, i32),
) -> Result<Vec<(&'a F, Column)>, String> {
    words_of_format(format)
        .map(|(word, width)| {
            let exact = fields.iter().find(|field| name_of(field).eq_ignore_ascii_case(word));
            let field = exact.or_else(|| fields.iter().find(|field| begins(name_of(field), word)));
            let field = field.ok_or_else(|| word.to_string())?;
            let (title, usual) = column_of(field);
            Ok((field, Column::new(title, width.unwrap_or(usual))))
        })
        .collect()
}
