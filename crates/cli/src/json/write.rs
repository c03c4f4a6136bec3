//! Writes JSON in the order it is told, indented, straight into one buffer.
use std::fmt::Write;

/// A document being written.
pub struct Json {
    out: String,
    depth: usize,
    is_first: bool,
}

/// A value without parts.
pub enum Scalar<'a> {
    Null,
    Bool(bool),
    Number(i64),
    Real(f64),
    Text(&'a str),
}

impl Json {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Json { out: String::new(), depth: 0, is_first: true }
    }

    pub fn finish(mut self) -> String {
        self.out.push('\n');
        self.out
    }

    /// An object at this place: the document itself, or an item of a list.
    pub fn object(&mut self, fill: impl FnOnce(&mut Json)) {
        self.next();
        self.nest('{', '}', fill);
    }

    pub fn object_field(&mut self, name: &str, fill: impl FnOnce(&mut Json)) {
        self.name(name);
        self.nest('{', '}', fill);
    }

    pub fn list_field(&mut self, name: &str, fill: impl FnOnce(&mut Json)) {
        self.name(name);
        self.nest('[', ']', fill);
    }

    pub fn item<'a>(&mut self, value: impl Into<Scalar<'a>>) {
        self.next();
        self.scalar(value.into());
    }

    pub fn field<'a>(&mut self, name: &str, value: impl Into<Scalar<'a>>) {
        self.name(name);
        self.scalar(value.into());
    }

    fn nest(&mut self, open: char, close: char, fill: impl FnOnce(&mut Json)) {
        self.out.push(open);
        self.depth += 1;
        self.is_first = true;
        fill(self);
        self.depth -= 1;
        self.new_line();
        self.out.push(close);
        self.is_first = false;
    }

    fn name(&mut self, name: &str) {
        self.next();
        self.text(name);
        self.out.push_str(": ");
    }

    fn next(&mut self) {
        if !self.is_first {
            self.out.push(',');
        }
        if self.depth > 0 {
            self.new_line();
        }
        self.is_first = false;
    }

    fn new_line(&mut self) {
        self.out.push('\n');
        (0..self.depth).for_each(|_| self.out.push_str("  "));
    }

    fn scalar(&mut self, value: Scalar) {
        match value {
            Scalar::Null => self.out.push_str("null"),
            Scalar::Bool(true) => self.out.push_str("true"),
            Scalar::Bool(false) => self.out.push_str("false"),
            Scalar::Number(number) => write!(self.out, "{number}").expect("a String takes everything"),
            Scalar::Real(number) => write!(self.out, "{number:?}").expect("a String takes everything"),
            Scalar::Text(text) => self.text(text),
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        let mut plain = 0;
        for (at, byte) in text.bytes().enumerate() {
            if byte >= 0x20 && byte != b'"' && byte != b'\\' {
                continue;
            }
            self.out.push_str(&text[plain..at]);
            plain = at + 1;
            match byte {
                b'"' => self.out.push_str("\\\""),
                b'\\' => self.out.push_str("\\\\"),
                b'\n' => self.out.push_str("\\n"),
                b'\t' => self.out.push_str("\\t"),
                b'\r' => self.out.push_str("\\r"),
                other => write!(self.out, "\\u{other:04x}").expect("a String takes everything"),
            }
        }
        self.out.push_str(&text[plain..]);
        self.out.push('"');
    }
}

impl From<bool> for Scalar<'_> {
    fn from(value: bool) -> Self {
        Scalar::Bool(value)
    }
}

impl From<u32> for Scalar<'_> {
    fn from(value: u32) -> Self {
        Scalar::Number(i64::from(value))
    }
}

impl From<i32> for Scalar<'_> {
    fn from(value: i32) -> Self {
        Scalar::Number(i64::from(value))
    }
}

impl From<u64> for Scalar<'_> {
    fn from(value: u64) -> Self {
        Scalar::Number(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Scalar<'_> {
    fn from(value: f64) -> Self {
        Scalar::Real(value)
    }
}

impl<'a> From<&'a str> for Scalar<'a> {
    fn from(value: &'a str) -> Self {
        Scalar::Text(value)
    }
}

impl<'a> From<&'a String> for Scalar<'a> {
    fn from(value: &'a String) -> Self {
        Scalar::Text(value)
    }
}

impl<'a, T: Into<Scalar<'a>>> From<Option<T>> for Scalar<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Scalar::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mut json = Json::new();
        json.object(|json| {
            json.field("text", "a \"b\" \\ \n\u{1}é/");
            json.field("none", None::<u32>);
            json.field("real", 1.0);
            json.list_field("empty", |_| {});
            json.list_field("items", |json| {
                json.item(1_u32);
                json.object(|json| json.field("yes", true));
            });
        });
        let read: serde_json::Value = serde_json::from_str(&json.finish()).expect("it is JSON");
        let expected = serde_json::json!({
            "text": "a \"b\" \\ \n\u{1}é/", "none": null, "real": 1.0, "empty": [], "items": [1, {"yes": true}],
        });
        assert_eq!(read, expected);
    }
}
