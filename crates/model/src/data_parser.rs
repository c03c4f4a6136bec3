//! Slurm's data parsers, which give JSON documents their shape.
use std::fmt;

use serde::{Deserialize, Serialize};

/// A parser's last number: v0.0.38 is Slurm 22.05's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DataParser(u32);

const FIRST: u32 = 38;
const NEWEST: u32 = 43;

impl DataParser {
    /// `v0.0.41`, `data_parser/v0.0.41`; what comes after a `+` are the parser's own flags.
    pub fn parse(text: &str) -> Option<DataParser> {
        let name = text.split('+').next().unwrap_or(text);
        let name = name.strip_prefix("data_parser/").unwrap_or(name);
        let number = name.strip_prefix("v0.0.")?.parse().ok()?;
        (FIRST..=NEWEST).contains(&number).then_some(DataParser(number))
    }

    pub fn all() -> impl Iterator<Item = DataParser> {
        (FIRST..=NEWEST).map(DataParser)
    }

    /// Numbers that may be missing are objects, states are lists.
    pub fn is_newer(self) -> bool {
        self.0 > FIRST
    }

    pub fn is_at_least(self, number: u32) -> bool {
        self.0 >= number
    }
}

/// What today's clients expect.
impl Default for DataParser {
    fn default() -> Self {
        DataParser(NEWEST)
    }
}

impl fmt::Display for DataParser {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "v0.0.{}", self.0)
    }
}
