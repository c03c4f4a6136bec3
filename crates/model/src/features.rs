//! Node features and the constraints that jobs put on them: `a&b`, `a|b`, parentheses, `!a`; what is asked of a job's nodes together
//! (`a*2`, `[a|b]`) is in `feature_sets`.
use serde::{Deserialize, Serialize};

/// A parsed `--constraint`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Constraint {
    Has(String),
    Not(Box<Constraint>),
    All(Vec<Constraint>),
    Any(Vec<Constraint>),
}

impl Constraint {
    pub fn and(self, other: Constraint) -> Constraint {
        Constraint::All(vec![self, other])
    }

    /// Every feature that is named, wanted or not.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Constraint::Has(feature) => vec![feature],
            Constraint::Not(inner) => inner.names(),
            Constraint::All(parts) | Constraint::Any(parts) => parts.iter().flat_map(Constraint::names).collect(),
        }
    }

    pub fn is_met_by(&self, features: &[String]) -> bool {
        match self {
            Constraint::Has(feature) => features.contains(feature),
            Constraint::Not(inner) => !inner.is_met_by(features),
            Constraint::All(parts) => parts.iter().all(|part| part.is_met_by(features)),
            Constraint::Any(parts) => parts.iter().any(|part| part.is_met_by(features)),
        }
    }
}

impl Default for Constraint {
    /// Every node meets it.
    fn default() -> Self {
        Constraint::All(Vec::new())
    }
}

/// Reads a constraint that every node meets by itself; the error says what is not understood.
pub fn parse(text: &str) -> Result<Constraint, String> {
    let mut reader = Reader::of(text);
    let constraint = reader.any_of()?;
    reader.end()?;
    Ok(constraint)
}

/// Takes a constraint apart, from left to right.
pub(crate) struct Reader<'a> {
    rest: &'a str,
    /// How many parentheses and `!` are open.
    depth: u32,
}

/// Nobody writes more than that by hand, and controllers read what users write.
const MOST_DEPTH: u32 = 64;

impl<'a> Reader<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Reader { rest: text, depth: 0 }
    }

    /// Nothing is left.
    pub(crate) fn end(&self) -> Result<(), String> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(format!("unexpected \"{}\" in --constraint", self.rest)),
        }
    }

    fn any_of(&mut self) -> Result<Constraint, String> {
        let mut parts = vec![self.all_of()?];
        while self.take('|') {
            parts.push(self.all_of()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Constraint::Any(parts) })
    }

    fn all_of(&mut self) -> Result<Constraint, String> {
        let mut parts = vec![self.one()?];
        while self.take('&') || self.take(',') {
            parts.push(self.one()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Constraint::All(parts) })
    }

    pub(crate) fn one(&mut self) -> Result<Constraint, String> {
        self.deeper(Self::one_inside)
    }

    /// Reads what stands inside parentheses or brackets, unless too many are open.
    pub(crate) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        if self.depth == MOST_DEPTH {
            return Err("--constraint is nested too deeply".into());
        }
        self.depth += 1;
        let inside = read(self);
        self.depth -= 1;
        inside
    }

    fn one_inside(&mut self) -> Result<Constraint, String> {
        if self.take('!') {
            return Ok(Constraint::Not(Box::new(self.one()?)));
        }
        if self.take('(') {
            let inner = self.any_of()?;
            return if self.take(')') { Ok(inner) } else { Err("\")\" is missing in --constraint".into()) };
        }
        let end = self.rest.find(|c: char| "&|,()![]*".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err("a feature name is missing in --constraint".into());
        }
        self.rest = rest;
        Ok(Constraint::Has(word.to_string()))
    }

    /// The number that stands next.
    pub(crate) fn count(&mut self) -> Result<u32, String> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        let count = digits.parse().ok().filter(|count| *count > 0);
        count.ok_or_else(|| "a count is missing in --constraint".to_string())
    }

    pub(crate) fn take(&mut self, sign: char) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_are_met_by_the_features_they_name() {
        let met = |text: &str, features: &[&str]| {
            let features: Vec<String> = features.iter().map(|feature| feature.to_string()).collect();
            parse(text).unwrap().is_met_by(&features)
        };
        assert!(met("a", &["a", "b"]));
        assert!(met("a&b", &["a", "b"]));
        assert!(!met("a&b", &["a"]));
        assert!(met("a|b", &["b"]));
        assert!(met("(a|b)&c", &["b", "c"]));
        assert!(!met("a&!b", &["a", "b"]));
        for bad in ["", "a&", "(a", "a)", "[a|b]", "a*2"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        for deep in ["!", "("] {
            assert!(parse(&deep.repeat(1_000_000)).is_err());
        }
    }
}
