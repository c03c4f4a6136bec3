//! Slurm's file syntax: comments, continued lines, included files, and `Key=Value` pairs.
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::problem::Problem;

/// A place in one of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub file: Rc<str>,
    pub line: usize,
    pub column: usize,
}

impl At {
    pub fn problem(&self, text: impl Into<String>) -> Problem {
        Problem { file: self.file.to_string(), line: self.line, column: self.column, text: text.into() }
    }
}

/// A line with those that continue it, without its comment.
pub(crate) struct Line {
    file: Rc<str>,
    text: String,
    /// Where in `text` each line of the file begins, and its number.
    starts: Vec<(usize, usize)>,
}

/// One `Key=Value`.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub key: String,
    pub value: String,
    pub at: At,
}

impl Line {
    /// The key that the line begins with, in lower case.
    pub fn first_key(&self) -> String {
        self.text.trim_start().chars().take_while(|c| is_key_part(*c)).collect::<String>().to_lowercase()
    }

    pub fn pairs(&self) -> Result<Vec<Pair>, Problem> {
        let mut pairs = Vec::new();
        let mut at = 0;
        loop {
            at += blanks(&self.text[at..]);
            if at == self.text.len() {
                return Ok(pairs);
            }
            at = self.pair(at, &mut pairs)?;
        }
    }

    /// Reads the pair that begins at `start`; where the next may begin.
    fn pair(&self, start: usize, pairs: &mut Vec<Pair>) -> Result<usize, Problem> {
        let refuse = |at: usize, why: String| Err(self.place(at).problem(why));
        let rest = &self.text[start..];
        let key_len = rest.find(|c: char| !is_key_part(c)).unwrap_or(rest.len());
        let key = &rest[..key_len];
        let mut at = start + key_len + blanks(&rest[key_len..]);
        if key.is_empty() || !self.text[at..].starts_with('=') {
            let word = rest.split_whitespace().next().unwrap_or_default();
            return refuse(start, format!("expected Key=Value, not `{word}`"));
        }
        at += 1;
        at += blanks(&self.text[at..]);
        let (value, end) = match self.text[at..].strip_prefix('"') {
            Some(quoted) => match quoted.find('"') {
                Some(len) => (&quoted[..len], at + len + 2),
                None => return refuse(at, format!("the quote of `{key}` is not closed")),
            },
            None => {
                let rest = &self.text[at..];
                let len = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (&rest[..len], at + len)
            }
        };
        if end == at {
            return refuse(start, format!("`{key}` has no value"));
        }
        if self.text[end..].starts_with(|c: char| !c.is_whitespace()) {
            return refuse(end, "a blank must follow a quoted value".into());
        }
        pairs.push(Pair { key: key.into(), value: value.replace("\\#", "#"), at: self.place(start) });
        Ok(end)
    }

    fn place(&self, at: usize) -> At {
        let (start, line) = self.starts.iter().rev().find(|(start, _)| *start <= at).copied().unwrap_or((0, 1));
        At { file: self.file.clone(), line, column: self.text[start..at].chars().count() + 1 }
    }

    /// What an `Include` line names.
    fn included(&self) -> Option<&str> {
        let (word, rest) = self.text.trim_start().split_once(char::is_whitespace)?;
        let is_pair = rest.trim_start().starts_with('=');
        (word.eq_ignore_ascii_case("include") && !is_pair).then(|| rest.trim().trim_matches('"'))
    }
}

fn is_key_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

fn blanks(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// Hands out the lines of a file, and of the files it includes in their places.
pub(crate) struct Reader<'a> {
    /// Where relative names of included files begin.
    pub folder: Option<PathBuf>,
    pub problems: Vec<Problem>,
    pub each: &'a mut dyn FnMut(&Line),
    /// For `%c` in names of included files.
    cluster_name: String,
    depth: usize,
}

const DEPTH_MAX: usize = 20;

impl<'a> Reader<'a> {
    pub fn new(folder: Option<PathBuf>, each: &'a mut dyn FnMut(&Line)) -> Self {
        Reader { folder, problems: Vec::new(), each, cluster_name: String::new(), depth: 0 }
    }

    pub fn read(&mut self, text: &str, file_name: &str) {
        let file: Rc<str> = file_name.into();
        let mut lines = text.lines().zip(1..);
        while let Some((first, number)) = lines.next() {
            let mut line = Line { file: file.clone(), text: String::new(), starts: vec![(0, number)] };
            let mut part = without_comment(first);
            while let Some(continued) = part.trim_end().strip_suffix('\\') {
                line.text.push_str(continued);
                let Some((next, number)) = lines.next() else {
                    part = "";
                    break;
                };
                line.starts.push((line.text.len(), number));
                part = without_comment(next);
            }
            line.text.push_str(part.trim_end());
            if !line.text.trim().is_empty() {
                self.hand_out(&line);
            }
        }
    }

    fn hand_out(&mut self, line: &Line) {
        if let Some(name) = line.included() {
            return self.include(line, name);
        }
        if line.first_key() == "clustername"
            && let Ok(pairs) = line.pairs()
        {
            self.cluster_name = pairs[0].value.clone();
        }
        (self.each)(line);
    }

    fn include(&mut self, line: &Line, name: &str) {
        let at = line.place(blanks(&line.text));
        let name = name.replace("%c", &self.cluster_name);
        let path = match &self.folder {
            Some(folder) => folder.join(&name),
            None => Path::new(&name).to_path_buf(),
        };
        if self.depth == DEPTH_MAX {
            return self.problems.push(at.problem(format!("{name} is included too deeply: does it include itself?")));
        }
        match fs::read_to_string(&path) {
            Err(error) => self.problems.push(at.problem(format!("cannot read {}: {error}", path.display()))),
            Ok(text) => {
                self.depth += 1;
                self.read(&text, &path.display().to_string());
                self.depth -= 1;
            }
        }
    }
}

/// `#` begins a comment, also between quotes; `\#` does not.
fn without_comment(line: &str) -> &str {
    let is_comment = |at: &usize| !line[..*at].ends_with('\\');
    let end = line.match_indices('#').map(|(at, _)| at).find(is_comment);
    &line[..end.unwrap_or(line.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let mut shown = Vec::new();
        let mut each = |line: &Line| match line.pairs() {
            Ok(pairs) => shown.extend(
                pairs.iter().map(|pair| format!("{}:{} {}={}", pair.at.line, pair.at.column, pair.key, pair.value)),
            ),
            Err(problem) => shown.push(format!("{}:{} {}", problem.line, problem.column, problem.text)),
        };
        Reader::new(None, &mut each).read(text, "c");
        shown
    }

    #[test]
    fn pairs_are_found_with_their_places() {
        for (text, expected) in [
            ("", &[] as &[&str]),
            ("# A=1\n  \nA=1", &["3:1 A=1"]),
            ("A=1 B=\"x y\"  C = 3 # D=4", &["1:1 A=1", "1:5 B=x y", "1:14 C=3"]),
            ("A=1 \\\n  B=2 \\ \nC=3\nD=4", &["1:1 A=1", "2:3 B=2", "3:1 C=3", "4:1 D=4"]),
            ("A=x\\#y # no", &["1:1 A=x#y"]),
            ("# comment \\\nA=1", &["2:1 A=1"]),
            ("A=1 what B=2", &["1:5 expected Key=Value, not `what`"]),
            ("A=", &["1:1 `A` has no value"]),
            ("A=\"x", &["1:3 the quote of `A` is not closed"]),
            ("A=\"x\"y", &["1:6 a blank must follow a quoted value"]),
            ("A=1 \\", &["1:1 A=1"]),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
