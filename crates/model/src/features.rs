//! Node features and the constraints that jobs put on them: `a&b`, `a|b`, parentheses, `!a`.
//! Counts (`a*2`) and matching groups (`[a|b]`) are refused by name until topology-aware scheduling brings them.
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

/// Reads a constraint; the error says what is not understood.
pub fn parse(text: &str) -> Result<Constraint, String> {
    if let Some(sign) = text.chars().find(|c| "[]*".contains(*c)) {
        return Err(format!("\"{sign}\" in --constraint is not supported"));
    }
    let mut reader = Reader { rest: text };
    let constraint = reader.any_of()?;
    if !reader.rest.is_empty() {
        return Err(format!("unexpected \"{}\" in --constraint", reader.rest));
    }
    Ok(constraint)
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
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

    fn one(&mut self) -> Result<Constraint, String> {
        if self.take('!') {
            return Ok(Constraint::Not(Box::new(self.one()?)));
        }
        if self.take('(') {
            let inner = self.any_of()?;
            return if self.take(')') { Ok(inner) } else { Err("\")\" is missing in --constraint".into()) };
        }
        let end = self.rest.find(|c: char| "&|,()!".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err("a feature name is missing in --constraint".into());
        }
        self.rest = rest;
        Ok(Constraint::Has(word.to_string()))
    }

    fn take(&mut self, sign: char) -> bool {
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
    }
}
