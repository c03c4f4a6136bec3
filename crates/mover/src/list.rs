//! The lines of a list file: `source`, or `source destination`.

/// One line: None for one that says nothing. Fields are split by tabs, or by blanks when there is no tab; a backslash or double
/// quotes keep a blank in a name.
pub fn parse_line(line: &str) -> Result<Option<(String, Option<String>)>, String> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.trim().is_empty() || line.trim_start().starts_with('#') {
        return Ok(None);
    }
    let by_tabs = line.contains('\t');
    let mut fields: Vec<String> = Vec::new();
    let mut field: Option<String> = None;
    let mut characters = line.chars();
    let mut is_quoted = false;
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(next) => field.get_or_insert_default().push(next),
                None => return Err("ends in a backslash".into()),
            },
            '"' => {
                is_quoted = !is_quoted;
                field.get_or_insert_default();
            }
            '\t' if !is_quoted => fields.extend(field.take()),
            ' ' if !is_quoted && !by_tabs => fields.extend(field.take()),
            '\0' => return Err("contains a NUL".into()),
            other => field.get_or_insert_default().push(other),
        }
    }
    if is_quoted {
        return Err("a quotation mark is not closed".into());
    }
    fields.extend(field);
    if fields.iter().any(|field| field.is_empty()) {
        return Err("has an empty name".into());
    }
    let mut fields = fields.into_iter();
    match (fields.next(), fields.next(), fields.next()) {
        (Some(source), destination, None) => Ok(Some((source, destination))),
        _ => Err("has more than two fields; names with blanks need quotation marks or tabs between the fields".into()),
    }
}

/// A path that stays below where it begins.
pub fn is_contained(path: &str) -> bool {
    !path.starts_with('/') && path.split('/').all(|part| part != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_documented() {
        let check = |line: &str, source: &str, destination: Option<&str>| {
            let expected = Some((source.to_string(), destination.map(String::from)));
            assert_eq!(parse_line(line), Ok(expected), "{line:?}");
        };
        check("/data/a", "/data/a", None);
        check("/data/a b", "/data/a", Some("b"));
        check("/data/a b\tsub/c d", "/data/a b", Some("sub/c d"));
        check("\"/data/a b\" c", "/data/a b", Some("c"));
        check("/data/a\\ b  c\r", "/data/a b", Some("c"));
        for line in ["", "   ", "# comment", "  # comment"] {
            assert_eq!(parse_line(line), Ok(None));
        }
        for line in ["a b c", "\"a", "a\\", "\"\" b"] {
            assert!(parse_line(line).is_err(), "{line:?}");
        }
        assert!(is_contained("a/b") && !is_contained("/a") && !is_contained("a/../../b"));
    }
}
