//! What can go wrong with one file, and what is done about it.
use std::fmt;
use std::path::Path;

use rustix::io::Errno;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Tried again several times, later and later.
    Transient,
    /// The bytes are not what they should be: tried again twice.
    Data,
    Permanent,
    /// The fence is full: nothing more fits.
    Capacity,
    /// The outside is full: it is waited for.
    Full,
    Cancelled,
}

impl Class {
    pub fn retries(self) -> u32 {
        match self {
            Class::Transient => 5,
            Class::Data => 2,
            Class::Permanent | Class::Capacity | Class::Full | Class::Cancelled => 0,
        }
    }
}

/// Whose fault an error number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Source,
    InsideDestination,
    OutsideDestination,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub class: Class,
    pub text: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Trouble {
    pub fn new(class: Class, text: impl Into<String>) -> Self {
        Trouble { class, text: text.into() }
    }

    pub fn permanent(text: impl Into<String>) -> Self {
        Trouble::new(Class::Permanent, text)
    }

    pub fn cancelled() -> Self {
        Trouble::new(Class::Cancelled, "cancelled")
    }

    /// `cannot open /data/x: Permission denied`
    pub fn of(errno: Errno, side: Side, doing: &str, path: &Path) -> Self {
        let text = match errno {
            // A fence and O_NOFOLLOW answer so.
            Errno::LOOP | Errno::XDEV => {
                format!("cannot {doing} {}: a symbolic link in it is not followed", shown(path))
            }
            _ => format!("cannot {doing} {}: {}", shown(path), words(errno)),
        };
        Trouble { class: classify(errno, side), text }
    }
}

fn classify(errno: Errno, side: Side) -> Class {
    match (errno, side) {
        (Errno::NOSPC | Errno::DQUOT, Side::InsideDestination) => Class::Capacity,
        (Errno::NOSPC | Errno::DQUOT | Errno::ROFS, Side::OutsideDestination) => Class::Full,
        (
            Errno::IO
            | Errno::STALE
            | Errno::TIMEDOUT
            | Errno::CONNRESET
            | Errno::AGAIN
            | Errno::BUSY
            | Errno::INTR
            | Errno::NOMEM
            | Errno::MFILE
            | Errno::NFILE
            | Errno::HOSTDOWN
            | Errno::HOSTUNREACH
            | Errno::NOTCONN,
            _,
        ) => Class::Transient,
        _ => Class::Permanent,
    }
}

/// A path for people: one line, and not so long that what follows is lost.
pub fn shown(path: &Path) -> String {
    const MOST: usize = 200;
    let text: String = path.to_string_lossy().chars().map(|each| if each.is_control() { '?' } else { each }).collect();
    let n_chars = text.chars().count();
    if n_chars <= MOST {
        return text;
    }
    let head: String = text.chars().take(MOST / 2).collect();
    let tail: String = text.chars().skip(n_chars - MOST / 2).collect();
    format!("{head}…{tail}")
}

/// The system's words without its number.
pub fn words(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_fall_into_the_classes_of_the_retry_policy() {
        use Side::*;
        for (errno, side, class) in [
            (Errno::IO, Source, Class::Transient),
            (Errno::STALE, OutsideDestination, Class::Transient),
            (Errno::ACCESS, Source, Class::Permanent),
            (Errno::NOENT, Source, Class::Permanent),
            (Errno::LOOP, InsideDestination, Class::Permanent),
            (Errno::NAMETOOLONG, OutsideDestination, Class::Permanent),
            (Errno::NOSPC, InsideDestination, Class::Capacity),
            (Errno::DQUOT, InsideDestination, Class::Capacity),
            (Errno::NOSPC, OutsideDestination, Class::Full),
            (Errno::ROFS, OutsideDestination, Class::Full),
            (Errno::NOSPC, Source, Class::Permanent),
        ] {
            assert_eq!(classify(errno, side), class, "{errno:?} {side:?}");
        }
    }

    #[test]
    fn texts_name_the_path_and_say_why() {
        let trouble = Trouble::of(Errno::ACCESS, Side::Source, "open", Path::new("/data/x"));
        assert_eq!(trouble.text, "cannot open /data/x: Permission denied");
        let long = format!("/data/{}/two\nlines", "deeper/".repeat(1000));
        let trouble = Trouble::of(Errno::IO, Side::Source, "open", Path::new(&long));
        assert!(
            trouble.text.chars().count() < 260 && trouble.text.ends_with("two?lines: Input/output error"),
            "{trouble}"
        );
    }
}
