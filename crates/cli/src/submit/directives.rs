//! `#SBATCH` lines: the comments before a script's first command that hold options.
use super::Problem;

const MAGIC: &str = "#SBATCH";
/// What stands alone on a line between the options of two components.
const SEPARATORS: [&str; 2] = ["hetjob", "packjob"];

/// The words of all directives of a script, component by component. `name` is the script's, for messages.
pub fn sections(name: &str, script: &str) -> Result<Vec<Vec<String>>, Problem> {
    let mut sections = vec![Vec::new()];
    for (number, line) in comments(script) {
        let Some(mut words) = words(name, number, line, MAGIC)? else { continue };
        match &words[..] {
            [only] if SEPARATORS.contains(&only.as_str()) => sections.push(Vec::new()),
            _ => sections.last_mut().expect("there is always one").append(&mut words),
        }
    }
    Ok(sections)
}

/// The lines before a script's first command, with their numbers.
pub fn comments(script: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_command = |line: &str| !line.trim().is_empty() && !line.trim().starts_with('#');
    script.lines().enumerate().take_while(move |(_, line)| !is_command(line)).map(|(index, line)| (index + 1, line))
}

/// What follows the magic word on this line; none if it does not begin with it.
pub fn words(name: &str, number: usize, line: &str, magic: &str) -> Result<Option<Vec<String>>, Problem> {
    let Some(options) = line.strip_prefix(magic) else { return Ok(None) };
    if options.starts_with(|next: char| !next.is_whitespace()) {
        return Ok(None);
    }
    let mut words = Vec::new();
    split(options, &mut words)
        .map_err(|(quote, rest)| Problem::fatal(format!("{name}: line {number}: Unmatched `{quote}` in [{rest}]")))?;
    Ok(Some(words))
}

/// The script separates components in the way of older releases.
pub fn says_packjob(script: &str) -> bool {
    script.lines().any(|line| line.strip_prefix(MAGIC).is_some_and(|rest| rest.trim() == SEPARATORS[1]))
}

/// What to say of a word that is no option.
pub fn stray(word: &str) -> Problem {
    Problem::error(format!("Invalid directive found in batch script: {word}"))
}

/// Splits as a shell would: quotes, backslashes, a comment at the start of a word. The error is the quote
/// without a partner and what follows the last whole word.
fn split<'a>(line: &'a str, words: &mut Vec<String>) -> Result<(), (char, &'a str)> {
    let mut letters = line.chars().peekable();
    loop {
        let rest: usize = letters.clone().map(char::len_utf8).sum();
        while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
        match letters.peek() {
            None | Some('#') => return Ok(()),
            Some(_) => {}
        }
        let mut word = String::new();
        let mut quote = None;
        while let Some(letter) = letters.next_if(|letter| quote.is_some() || !letter.is_whitespace()) {
            match (letter, quote) {
                ('\\', None | Some('"')) => word.extend(letters.next()),
                ('"' | '\'', None) => quote = Some(letter),
                (letter, Some(open)) if letter == open => quote = None,
                (letter, _) => word.push(letter),
            }
        }
        if let Some(open) = quote {
            return Err((open, &line[line.len() - rest..]));
        }
        words.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(script: &str) -> String {
        match sections("x.sh", script) {
            Ok(sections) => sections.iter().map(|words| words.join("|")).collect::<Vec<_>>().join(" : "),
            Err(problem) => problem.show(crate::submit::Program::Sbatch),
        }
    }

    #[test]
    fn directives_end_at_the_first_command() {
        assert_eq!(
            read("#!/bin/sh\n#SBATCH -J first\n# comment\n\n#SBATCH -N2\necho x\n#SBATCH -J second\n"),
            "-J|first|-N2"
        );
    }

    #[test]
    fn words_are_split_as_a_shell_would() {
        assert_eq!(
            read(
                "#!/bin/sh\n#SBATCH -J one -N 2 --time 5 # trailing\n ## no\n#SBATCH   --comment=\"x y\" -J \"a:b c\"\n"
            ),
            "-J|one|-N|2|--time|5|--comment=x y|-J|a:b c"
        );
        assert_eq!(read("#!/bin/sh\n##SBATCH -N4\n# SBATCH -N5\n#sbatch -N6\n #SBATCH -N7\n#SBATCHX -N8\n"), "");
        assert_eq!(read("#SBATCH -J a\\ b --comment='c \"d\"'"), "-J|a b|--comment=c \"d\"");
    }

    #[test]
    fn components_are_told_apart() {
        assert_eq!(read("#!/bin/sh\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2\n#SBATCH packjob\n"), "-n1 : -n2 : ");
        assert_eq!(read("#SBATCH -n1 hetjob\n"), "-n1|hetjob");
    }

    #[test]
    fn an_open_quote_is_named_with_its_line() {
        assert_eq!(
            read("#!/bin/sh\n#SBATCH -J \"unclosed\ntrue\n"),
            "sbatch: fatal: x.sh: line 2: Unmatched `\"` in [ \"unclosed]\n"
        );
    }
}
