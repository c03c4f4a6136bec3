//! The same documents as YAML (`--yaml`), made of what the JSON writer has written: one value, bracket or name with a value a line.

pub fn of_json(json: &str) -> String {
    let mut out = String::from("---\n");
    // How each open bracket is closed, the innermost last.
    let mut open: Vec<char> = Vec::new();
    let mut lines = json.lines().map(|line| line.trim().trim_end_matches(',')).peekable();
    while let Some(line) = lines.next() {
        if matches!(line, "}" | "]") {
            open.pop();
            continue;
        }
        let is_item = open.last() == Some(&']');
        let indent = "  ".repeat(open.len().saturating_sub(1));
        let (name, value) = if is_item { (None, line) } else { split(line) };
        let lead = match name {
            Some(name) => format!("{indent}{name}:"),
            None if is_item => format!("{indent}-"),
            None => String::new(),
        };
        let close = match value {
            "{" => Some('}'),
            "[" => Some(']'),
            _ => None,
        };
        match close {
            Some(close) if lines.peek().is_some_and(|next| next.starts_with(close)) => {
                lines.next();
                out.push_str(&format!("{lead} {value}{close}\n"));
            }
            Some(close) => {
                if !lead.is_empty() {
                    out.push_str(&format!("{lead}\n"));
                }
                open.push(close);
            }
            None => out.push_str(&format!("{lead} {value}\n")),
        }
    }
    out.push_str("...\n");
    out
}

/// `"name": value`; names that need no quotes lose them.
fn split(line: &str) -> (Option<&str>, &str) {
    let Some((name, value)) = line.strip_prefix('"').and_then(|rest| rest.split_once("\": ")) else {
        return (None, line);
    };
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (Some(if is_plain { name } else { &line[..name.len() + 2] }), value)
}

#[cfg(test)]
mod tests {
    use super::super::Json;
    use super::*;

    #[test]
    fn a_document_reads_the_same_in_both() {
        let mut json = Json::new(Default::default());
        json.object(|json| {
            json.field("name", "a: \"b\"");
            json.field("min nodes per job", 1_u32);
            json.list_field("none", |_| {});
            json.list_field("words", |json| {
                json.item("x");
                json.item("y, z");
            });
            json.list_field("jobs", |json| {
                json.object(|json| {
                    json.field("id", 7_u32);
                    json.object_field("part", |json| json.field("is", true));
                });
                json.object(|_| {});
            });
            json.object_field("empty", |_| {});
        });
        let expected = "---\nname: \"a: \\\"b\\\"\"\n\"min nodes per job\": 1\nnone: []\nwords:\n  - \"x\"\n  - \"y, z\"\n\
            jobs:\n  -\n    id: 7\n    part:\n      is: true\n  - {}\nempty: {}\n...\n";
        assert_eq!(of_json(&json.finish()), expected);
    }
}
