//! Simple TOML, read line by line: what a file written by `spur up` or by most people looks like.
//!
//! A full parser takes longer to load than a command takes for its work. Whatever is not plainly simple is left to it.

/// Texts and whole numbers by table and key; what stands before the first table has an empty one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plain {
    entries: Vec<(String, String, Scalar)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Scalar {
    Text(String),
    Number(i64),
    /// Something else that ends on its line.
    Other,
}

impl Plain {
    /// None: only a parser can tell what it means.
    pub fn read(text: &str) -> Option<Plain> {
        let mut plain = Plain::default();
        let mut table = String::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[') {
                table = name.strip_suffix(']').filter(|name| is_bare(name))?.to_string();
                continue;
            }
            let (key, value) = line.split_once('=')?;
            let key = key.trim_end();
            if !is_bare(key) || plain.find(&table, key).is_some() {
                return None;
            }
            plain.entries.push((table.clone(), key.to_string(), scalar(value.trim_start())?));
        }
        Some(plain)
    }

    fn find(&self, table: &str, key: &str) -> Option<&Scalar> {
        self.entries.iter().find(|(in_table, known, _)| in_table == table && known == key).map(|(_, _, value)| value)
    }

    pub fn text(&self, table: &str, key: &str) -> Option<&str> {
        match self.find(table, key) {
            Some(Scalar::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub fn number(&self, table: &str, key: &str) -> Option<i64> {
        match self.find(table, key) {
            Some(Scalar::Number(number)) => Some(*number),
            _ => None,
        }
    }
}

fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn scalar(value: &str) -> Option<Scalar> {
    let ends = |rest: &str| rest.trim_start().is_empty() || rest.trim_start().starts_with('#');
    if let Some(rest) = value.strip_prefix('"') {
        let (text, rest) = rest.split_once('"')?;
        let is_simple = !text.is_empty() && !text.contains(|c: char| c == '\\' || c.is_control());
        return (is_simple && ends(rest)).then(|| Scalar::Text(text.to_string()));
    }
    let n_word = value.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(value.len());
    let (word, rest) = value.split_at(n_word);
    if !ends(rest) {
        return None;
    }
    match word {
        "true" | "false" => Some(Scalar::Other),
        "0" => Some(Scalar::Number(0)),
        _ if word.starts_with('0') => None,
        _ if word.bytes().all(|byte| byte.is_ascii_digit()) => word.parse().ok().map(Scalar::Number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_lines_are_read() {
        let text = "# a comment\ncluster_name = \"ant\" # so\n\n[controller]\n socket=\"run/c # d\"\npatience = 30\nx = true\n";
        let plain = Plain::read(text).unwrap();
        assert_eq!(plain.text("", "cluster_name"), Some("ant"));
        assert_eq!(plain.text("controller", "socket"), Some("run/c # d"));
        assert_eq!(plain.number("controller", "patience"), Some(30));
        assert_eq!((plain.text("controller", "patience"), plain.number("controller", "x")), (None, None));
    }

    #[test]
    fn what_is_not_simple_is_left_to_the_parser() {
        let wrong_or_hard = [
            "a",
            "a = ",
            "a = b",
            "a.b = 1",
            "\"a\" = 1",
            "[a.b]",
            "[[a]]",
            "a = 'x'",
            "a = \"x\\n\"",
            "a = \"\"\"x\"\"\"",
            "a = [1]",
            "a = {b = 1}",
            "a = 1_000",
            "a = 0x10",
            "a = -1",
            "a = 1.5",
            "a = 1\na = 2",
            "a = \"x\" y",
            "a = 01",
        ];
        for text in wrong_or_hard {
            assert_eq!(Plain::read(text), None, "{text}");
        }
    }
}
