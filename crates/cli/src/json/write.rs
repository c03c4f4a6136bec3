//! Writes JSON in the order it is told, indented, straight into one buffer.
use std::fmt::Write;

use super::shape::{self, Shape, Turn};

/// A document being written.
pub struct Json {
    out: String,
    depth: usize,
    is_first: bool,
    shape: Shape,
    /// The names on the way to where it is written now.
    way: Vec<String>,
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
    pub fn new(shape: Shape) -> Self {
        Json { out: String::new(), depth: 0, is_first: true, shape, way: Vec::new() }
    }

    pub fn shape(&self) -> Shape {
        self.shape
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
        self.way.push(name.to_string());
        self.nest('{', '}', fill);
        self.way.pop();
    }

    pub fn list_field(&mut self, name: &str, fill: impl FnOnce(&mut Json)) {
        self.name(name);
        self.way.push(name.to_string());
        self.nest('[', ']', fill);
        self.way.pop();
    }

    pub fn item<'a>(&mut self, value: impl Into<Scalar<'a>>) {
        self.next();
        self.scalar(value.into());
    }

    pub fn field<'a>(&mut self, name: &str, value: impl Into<Scalar<'a>>) {
        if self.shape.is_newer() {
            self.way.push(name.to_string());
            let turn = shape::turn(self.shape, &self.way);
            self.way.pop();
            if let Some(turn) = turn {
                return self.turned(name, value.into(), turn);
            }
        }
        self.name(name);
        self.scalar(value.into());
    }

    /// `{set, infinite, number}`
    pub fn number(&mut self, name: &str, number: Option<i64>) {
        self.tagged(name, number.map(Scalar::Number), false);
    }

    /// The same of a broken number.
    pub fn real(&mut self, name: &str, number: Option<f64>) {
        self.tagged(name, number.map(Scalar::Real), false);
    }

    /// The same, where nothing may be without end.
    pub fn limit(&mut self, name: &str, number: Option<i64>, none_is_infinite: bool) {
        self.tagged(name, number.map(Scalar::Number), number.is_none() && none_is_infinite);
    }

    fn tagged(&mut self, name: &str, value: Option<Scalar>, is_infinite: bool) {
        self.name(name);
        let is_set = value.is_some();
        self.nest('{', '}', |json| {
            json.plain("set", is_set);
            json.plain("infinite", is_infinite);
            json.plain("number", value.unwrap_or(Scalar::Number(0)));
        });
    }

    fn plain<'a>(&mut self, name: &str, value: impl Into<Scalar<'a>>) {
        self.name(name);
        self.scalar(value.into());
    }

    fn turned(&mut self, name: &str, value: Scalar, turn: Turn) {
        let is_null = matches!(value, Scalar::Null);
        match turn {
            Turn::Number => self.tagged(name, (!is_null).then_some(value), false),
            Turn::Limit => self.tagged(name, (!is_null).then_some(value), is_null),
            Turn::Count => self.plain(name, if is_null { Scalar::Number(0) } else { value }),
            Turn::List => {
                self.name(name);
                self.nest('[', ']', |json| {
                    if !is_null {
                        json.item(value);
                    }
                });
            }
            Turn::Words => {
                let text = if let Scalar::Text(text) = value { text } else { "" };
                self.name(name);
                self.nest('[', ']', |json| {
                    text.split(',').filter(|word| !word.is_empty()).for_each(|word| json.item(word));
                });
            }
            Turn::Exit => {
                let status = if let Scalar::Number(status) = value { status } else { 0 };
                self.exit(name, (status >> 8) as u32 & 0xff, status as u32 & 0x7f);
            }
        }
    }

    /// How something ended, in all detail.
    pub fn exit(&mut self, name: &str, code: u32, signal: u32) {
        let word = match (code, signal) {
            (0, 0) => "SUCCESS",
            (_, 0) => "ERROR",
            _ => "SIGNALED",
        };
        self.name(name);
        self.nest('{', '}', |json| {
            json.name("status");
            json.nest('[', ']', |json| json.item(word));
            json.number("return_code", Some(i64::from(code)));
            json.name("signal");
            json.nest('{', '}', |json| {
                json.number("id", (signal != 0).then_some(i64::from(signal)));
                let known = u8::try_from(signal).ok().and_then(model::signal::Signal::new);
                json.plain("name", known.map_or(String::new(), |signal| signal.name().to_string()).as_str());
            });
        });
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
        // What a terminal obeys beyond ASCII is escaped where it is printed, in the same way.
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

impl From<i64> for Scalar<'_> {
    fn from(value: i64) -> Self {
        Scalar::Number(value)
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
        let mut json = Json::new(Shape::default());
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

    #[test]
    fn newer_parsers_have_numbers_and_states_of_their_own() {
        let shape = Shape::parse("v0.0.41").expect("a parser's name");
        let mut json = Json::new(shape);
        json.object(|json| {
            json.list_field("jobs", |json| {
                json.object(|json| {
                    json.field("job_state", "RUNNING");
                    json.field("cpus", 4_u32);
                    json.field("time_limit", None::<u32>);
                    json.field("array_task_id", None::<u32>);
                    json.field("exit_code", 0x0300_u32);
                    json.field("job_id", 7_u32);
                });
            });
        });
        let read: serde_json::Value = serde_json::from_str(&json.finish()).expect("it is JSON");
        let number = |set, infinite, number| serde_json::json!({"set": set, "infinite": infinite, "number": number});
        let expected = serde_json::json!({"jobs": [{
            "job_state": ["RUNNING"], "cpus": number(true, false, 4), "time_limit": number(false, true, 0),
            "array_task_id": number(false, false, 0), "job_id": 7,
            "exit_code": {"status": ["ERROR"], "return_code": number(true, false, 3), "signal": {"id": number(false, false, 0), "name": ""}},
        }]});
        assert_eq!(read, expected);
    }
}
