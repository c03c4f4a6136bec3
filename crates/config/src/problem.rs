//! What is wrong with a configuration, and where.
use std::fmt;

/// One mistake, at a place of the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where the file is another than that of the list: an included one.
    pub file: String,
    /// From 1; 0 when the problem is the file as a whole.
    pub line: usize,
    pub column: usize,
    pub text: String,
}

/// Everything that is wrong with one file, in the order of its lines. Shown one problem a line: `file:line:column: text`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    pub file: String,
    pub list: Vec<Problem>,
}

impl Problems {
    pub(crate) fn of_file(file: &str, text: String) -> Self {
        Problems { file: file.into(), list: vec![Problem { file: String::new(), line: 0, column: 0, text }] }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            let file = if problem.file.is_empty() { &self.file } else { &problem.file };
            match problem.line {
                0 => write!(out, "{file}: {}", problem.text)?,
                line => write!(out, "{file}:{line}:{}: {}", problem.column, problem.text)?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Line and column, from 1, of a byte of `text`.
pub(crate) fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
