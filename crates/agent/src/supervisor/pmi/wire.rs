//! How the two versions of the process manager interface write their messages.
//!
//! Version 1: `cmd=put key=k value=v` and a newline. Version 2 begins with one such line, and goes on with messages of six
//! digits of length and `cmd=kvs-put;key=k;value=v;`, where a semicolon within a value is doubled.

/// The longest message that is believed.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
const LENGTH_DIGITS: usize = 6;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    #[default]
    One,
    Two,
}

/// A command and its arguments in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub command: String,
    pub arguments: Vec<(String, String)>,
}

impl Message {
    pub fn new(command: &str) -> Self {
        Message { command: command.to_owned(), arguments: Vec::new() }
    }

    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.arguments.push((name.to_owned(), value.to_string()));
        self
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn write(&self, version: Version) -> Vec<u8> {
        match version {
            Version::One => {
                let mut line = format!("cmd={}", self.command);
                for (name, value) in &self.arguments {
                    line.push_str(&format!(" {name}={value}"));
                }
                line.push('\n');
                line.into_bytes()
            }
            Version::Two => {
                let mut body = format!("cmd={};", self.command);
                for (name, value) in &self.arguments {
                    body.push_str(&format!("{name}={};", value.replace(';', ";;")));
                }
                format!("{:>LENGTH_DIGITS$}{body}", body.len()).into_bytes()
            }
        }
    }
}

/// Bytes that no message begins with.
#[derive(Debug, PartialEq)]
pub struct NoPmiMessage;

/// Takes the first message off; none until it is whole. An error is nothing that was ever meant.
pub fn take(bytes: &mut Vec<u8>, version: Version) -> Result<Option<Message>, NoPmiMessage> {
    match version {
        Version::One => {
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                return if bytes.len() > MESSAGE_BYTES_MAX { Err(NoPmiMessage) } else { Ok(None) };
            };
            let line: Vec<u8> = bytes.drain(..=end).collect();
            parse_line(&String::from_utf8_lossy(&line)).map(Some).ok_or(NoPmiMessage)
        }
        Version::Two => {
            let Some(digits) = bytes.get(..LENGTH_DIGITS) else { return Ok(None) };
            let length: usize = String::from_utf8_lossy(digits).trim().parse().map_err(|_| NoPmiMessage)?;
            let end = LENGTH_DIGITS + length;
            if bytes.len() < end {
                return if length > MESSAGE_BYTES_MAX { Err(NoPmiMessage) } else { Ok(None) };
            }
            let whole: Vec<u8> = bytes.drain(..end).skip(LENGTH_DIGITS).collect();
            parse_fields(&String::from_utf8_lossy(&whole)).map(Some).ok_or(NoPmiMessage)
        }
    }
}

/// A value reaches to the next blank; the last of `put` may hold blanks itself.
fn parse_line(line: &str) -> Option<Message> {
    let line = line.trim_end_matches('\n');
    let mut message = Message::default();
    let mut rest = line;
    while !rest.trim_start().is_empty() {
        rest = rest.trim_start();
        let (name, after) = rest.split_once('=')?;
        let value = if name == "value" { after } else { after.split(' ').next().unwrap_or_default() };
        rest = &after[value.len()..];
        match name {
            "cmd" | "mcmd" => message.command = value.to_owned(),
            _ => message.arguments.push((name.to_owned(), value.to_owned())),
        }
    }
    (!message.command.is_empty()).then_some(message)
}

fn parse_fields(text: &str) -> Option<Message> {
    let mut message = Message::default();
    let mut field = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != ';' {
            field.push(letter);
        } else if letters.peek() == Some(&';') {
            letters.next();
            field.push(';');
        } else {
            let (name, value) = field.split_once('=')?;
            match name {
                "cmd" => message.command = value.to_owned(),
                _ => message.arguments.push((name.to_owned(), value.to_owned())),
            }
            field.clear();
        }
    }
    (!message.command.is_empty()).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_read_what_they_write() {
        for (version, value) in [(Version::One, "a b=c"), (Version::Two, "x;y=z; w")] {
            let message = Message::new("put").with("key", "k").with("value", value);
            let mut bytes = message.write(version);
            bytes.extend(message.write(version));
            let rest = bytes.split_off(bytes.len() - 3);
            assert_eq!(take(&mut bytes, version), Ok(Some(message.clone())));
            assert_eq!(take(&mut bytes, version), Ok(None));
            bytes.extend(rest);
            assert_eq!(take(&mut bytes, version), Ok(Some(message)));
            assert!(bytes.is_empty());
        }
        assert_eq!(take(&mut b"what is this\n".to_vec(), Version::One), Err(NoPmiMessage));
        assert_eq!(take(&mut b"abcdef".to_vec(), Version::Two), Err(NoPmiMessage));
    }
}
