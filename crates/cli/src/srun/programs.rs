//! `--multi-prog`: a file whose lines name tasks and the program that each runs.
use model::spec::Size;
use model::step::RankedProgram;

use crate::submit::{Caller, Problem};

/// Reads the file, and refuses one that leaves a task of a known count without a program.
pub fn read(name: &str, size: &Size, caller: &Caller) -> Result<Vec<RankedProgram>, Problem> {
    let text = std::fs::read_to_string(caller.absolute(name))
        .map_err(|_| Problem::error(format!("Could not open multi_prog config file {name}")))?;
    let programs =
        parse(&text).map_err(|line| Problem::error(format!("Line {line} of configuration file {name} invalid")))?;
    let has_rest = programs.iter().any(|program| program.ranks.is_none());
    let is_named = |rank: &u32| programs.iter().flat_map(|program| &program.ranks).any(|ranks| ranks.contains(*rank));
    match (0..size.n_tasks.unwrap_or(0)).find(|rank| !has_rest && !is_named(rank)) {
        Some(rank) => Err(Problem::error(format!("Configuration file {name} invalid, no record for task id {rank}"))),
        None => Ok(programs),
    }
}

/// The error is the number of the line that is not understood.
fn parse(text: &str) -> Result<Vec<RankedProgram>, usize> {
    let mut programs = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let mut whole = line.to_string();
        while whole.ends_with('\\') {
            whole.pop();
            whole.push_str(lines.next().map_or("", |(_, more)| more));
        }
        let mut words = words(&whole).into_iter();
        let Some(ranks) = words.next().filter(|first| !first.starts_with('#')) else { continue };
        let ranks = match ranks.as_str() {
            "*" => None,
            list => Some(list.parse().map_err(|_| index + 1)?),
        };
        let arguments: Vec<String> = words.collect();
        if arguments.is_empty() {
            return Err(index + 1);
        }
        programs.push(RankedProgram { ranks, arguments });
    }
    Ok(programs)
}

/// Split at blanks outside quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in line.chars() {
        match (letter, quote) {
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, Some(open)) if letter == open => quote = None,
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_tasks_and_programs() {
        let text = "# comment\n\n4-6   hostname\n1,7 echo \"task %t\" %o\n0,2-3 a \\\n  b\n* true\n";
        let shown: Vec<String> = parse(text)
            .unwrap()
            .iter()
            .map(|program| {
                let ranks = program.ranks.as_ref().map_or("*".to_string(), ToString::to_string);
                format!("{ranks}={}", program.arguments.join("|"))
            })
            .collect();
        assert_eq!(shown, ["4-6=hostname", "1,7=echo|task %t|%o", "0,2-3=a|b", "*=true"]);
        assert_eq!(parse("0 a\nx b\n"), Err(2));
        assert_eq!(parse("0\n"), Err(1));
    }
}
