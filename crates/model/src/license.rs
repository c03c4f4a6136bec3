//! Licences: cluster-wide counts that jobs hold while they hold nodes, and the requests for them (`a:2,b`, `a:2|b`).
use std::collections::BTreeMap;
use std::fmt;

record! {
    /// So many of one licence: what the cluster has, what a job wants or holds, what a reservation keeps.
    pub struct LicenseCount {
        pub name: String,
        pub count: u32,
    }

    /// `--licenses`
    pub struct LicenseRequest {
        pub list: Vec<LicenseCount>,
        /// One of them is enough (`a|b`); the first that is there is taken.
        pub any_is_enough: bool,
    }
}

impl LicenseRequest {
    /// Those that the job will have whatever is free.
    pub fn certain(&self) -> &[LicenseCount] {
        if self.any_is_enough { &[] } else { &self.list }
    }
}

/// Reads `--licenses`; none if it is no list of licences.
pub fn parse(text: &str) -> Option<LicenseRequest> {
    let any_is_enough = text.contains('|');
    if any_is_enough && text.contains([',', ';']) {
        return None;
    }
    let separators: &[char] = if any_is_enough { &['|'] } else { &[',', ';'] };
    let list = parse_items(text, separators)?;
    Some(LicenseRequest { list, any_is_enough })
}

/// Reads a plain list, as the configuration and reservations have it.
pub fn parse_list(text: &str) -> Option<Vec<LicenseCount>> {
    parse_items(text, &[',', ';'])
}

/// More licences no job, reservation or site names.
const NAMES_MOST: usize = 256;

/// The same name twice adds up.
fn parse_items(text: &str, separators: &[char]) -> Option<Vec<LicenseCount>> {
    let mut list: Vec<LicenseCount> = Vec::new();
    for item in text.split(separators).map(str::trim).filter(|item| !item.is_empty()) {
        let (name, count) = match item.split_once([':', '*', '=']) {
            Some((name, count)) => (name, count.parse().ok()?),
            None => (item, 1),
        };
        let is_name = |c: char| c.is_alphanumeric() || "_-.@+/".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        let n_known = list.len();
        match list.iter_mut().find(|known| known.name == name) {
            Some(known) => known.count = known.count.checked_add(count)?,
            None if n_known == NAMES_MOST => return None,
            None => list.push(LicenseCount { name: name.into(), count }),
        }
    }
    Some(list)
}

impl fmt::Display for LicenseCount {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self.count {
            1 => out.write_str(&self.name),
            count => write!(out, "{}:{count}", self.name),
        }
    }
}

impl fmt::Display for LicenseRequest {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let separator = if self.any_is_enough { "|" } else { "," };
        out.write_str(&show(&self.list, separator))
    }
}

pub fn show(list: &[LicenseCount], separator: &str) -> String {
    list.iter().map(LicenseCount::to_string).collect::<Vec<_>>().join(separator)
}

impl LicenseRequest {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A request that no cluster can meet, since it cannot be read.
    pub fn unknown(text: &str) -> LicenseRequest {
        LicenseRequest { list: vec![LicenseCount { name: text.into(), count: u32::MAX }], any_is_enough: false }
    }

    /// What the job would hold if it started while so many of each were free.
    pub fn pick(&self, free: &BTreeMap<String, u32>) -> Option<Vec<LicenseCount>> {
        let is_free = |wanted: &&LicenseCount| free.get(&wanted.name).is_some_and(|free| wanted.count <= *free);
        match self.any_is_enough && !self.list.is_empty() {
            true => self.list.iter().find(is_free).map(|one| vec![one.clone()]),
            false => self.list.iter().all(|one| is_free(&one)).then(|| self.list.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_and_shown() {
        for (text, shown) in [
            ("a", "a"),
            ("a:2,b", "a:2,b"),
            ("a;b:3", "a,b:3"),
            ("a|b:2", "a|b:2"),
            ("a,a", "a:2"),
            ("matlab@server:4", "matlab@server:4"),
            ("", ""),
        ] {
            assert_eq!(parse(text).expect(text).to_string(), shown);
        }
        for text in ["a:x", "a:", ":2", "a b", "a|b,c", "a:-1", "a:4294967295,a"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_free_decides_what_is_taken() {
        let free = BTreeMap::from([("a".to_string(), 1), ("b".to_string(), 4)]);
        let picked = |text: &str| parse(text).expect(text).pick(&free).map(|list| show(&list, ","));
        assert_eq!(picked("a,b:4").as_deref(), Some("a,b:4"));
        assert_eq!(picked("a:2,b"), None);
        assert_eq!(picked("a:2|b:3").as_deref(), Some("b:3"));
        assert_eq!(picked("c"), None);
        assert_eq!(picked("").as_deref(), Some(""));
    }
}
