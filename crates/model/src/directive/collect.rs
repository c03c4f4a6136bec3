//! Finds the directive lines of a script, and joins those that go on in the next line.
use super::{Problem, whole};

/// Only the comments that a script begins with count.
pub(super) fn from_script(script: &str, keywords: &[String]) -> Result<Vec<String>, Problem> {
    let head = script.lines().take_while(|line| line.is_empty() || line.starts_with('#'));
    join(head.filter(|line| keyword(line, keywords).is_some()), keywords)
}

/// Every line must be a directive, a comment or empty.
pub(super) fn from_text(text: &str, keywords: &[String]) -> Result<Vec<String>, Problem> {
    if let Some(line) = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        return Err(whole(line, "not a burst buffer directive"));
    }
    join(text.lines().filter(|line| keyword(line, keywords).is_some()), keywords)
}

/// The directive's keyword, with white space or nothing behind it.
fn keyword<'k>(line: &str, keywords: &'k [String]) -> Option<&'k str> {
    keywords.iter().map(String::as_str).find(|keyword| {
        line.strip_prefix(keyword).is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
    })
}

fn join<'a>(lines: impl Iterator<Item = &'a str>, keywords: &[String]) -> Result<Vec<String>, Problem> {
    let mut joined: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in lines {
        let line = line.trim_end();
        let word = keyword(line, keywords).expect("only directives are joined");
        if goes_on {
            let last = joined.last_mut().expect("something goes on");
            if keyword(last, keywords) != Some(word) {
                return Err(whole(line, "the line before goes on, but this one has another directive"));
            }
            let rest = &line[word.len()..];
            last.push_str(if last.ends_with(char::is_whitespace) { rest.trim_start() } else { rest });
        } else {
            joined.push(line.to_owned());
        }
        let last = joined.last_mut().expect("just added");
        // Two backslashes are a mark of their own: nothing is replaced behind them.
        goes_on = last.ends_with('\\') && !last.ends_with("\\\\");
        if goes_on {
            last.pop();
        }
    }
    Ok(joined)
}
