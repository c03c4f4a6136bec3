//! Signals by name and number, as Linux and Slurm spell them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The names of signals 1 to 31, in order.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO",
    "PWR", "SYS",
];
const ALIASES: [(&str, u8); 4] = [("IOT", 6), ("CLD", 17), ("POLL", 29), ("UNUSED", 31)];
const REALTIME_MIN: u8 = 34;
const REALTIME_MAX: u8 = 64;

/// A signal that can be sent: 1 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Signal(u8);

impl Signal {
    pub const HUP: Signal = Signal(1);
    pub const INT: Signal = Signal(2);
    pub const QUIT: Signal = Signal(3);
    pub const KILL: Signal = Signal(9);
    pub const USR1: Signal = Signal(10);
    pub const USR2: Signal = Signal(12);
    pub const TERM: Signal = Signal(15);
    pub const CHLD: Signal = Signal(17);
    pub const CONT: Signal = Signal(18);
    pub const STOP: Signal = Signal(19);
    pub const TSTP: Signal = Signal(20);
    pub const XCPU: Signal = Signal(24);

    pub fn new(number: u8) -> Option<Signal> {
        (1..=REALTIME_MAX).contains(&number).then_some(Signal(number))
    }

    pub fn number(self) -> u8 {
        self.0
    }

    /// The name without `SIG`: `TERM`, `RTMIN+2`; a number where there is no name.
    pub fn name(self) -> String {
        match self.0 {
            1..=31 => NAMES[usize::from(self.0) - 1].to_owned(),
            REALTIME_MIN => "RTMIN".to_owned(),
            REALTIME_MAX => "RTMAX".to_owned(),
            number if number > REALTIME_MIN => format!("RTMIN+{}", number - REALTIME_MIN),
            number => number.to_string(),
        }
    }
}

/// A number, or a name with or without `SIG`, in any case.
pub fn parse(text: &str) -> Option<Signal> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Signal::new(text.parse().ok()?);
    }
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    if let Some(index) = NAMES.iter().position(|known| *known == name) {
        return Some(Signal(index as u8 + 1));
    }
    if let Some((_, number)) = ALIASES.iter().find(|(alias, _)| *alias == name) {
        return Some(Signal(*number));
    }
    parse_realtime(name)
}

fn parse_realtime(name: &str) -> Option<Signal> {
    let number = if let Some(above) = name.strip_prefix("RTMIN") {
        REALTIME_MIN.checked_add(offset(above, '+')?)?
    } else {
        REALTIME_MAX.checked_sub(offset(name.strip_prefix("RTMAX")?, '-')?)?
    };
    (REALTIME_MIN..=REALTIME_MAX).contains(&number).then_some(Signal(number))
}

fn offset(text: &str, sign: char) -> Option<u8> {
    if text.is_empty() {
        return Some(0);
    }
    text.strip_prefix(sign).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

impl fmt::Display for Signal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            32 | 33 => out.pad(&self.name()),
            _ => out.pad(&format!("SIG{}", self.name())),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSignal(pub String);

impl fmt::Display for UnknownSignal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Unknown job signal: {}", self.0)
    }
}

impl std::error::Error for UnknownSignal {}

impl FromStr for Signal {
    type Err = UnknownSignal;

    fn from_str(text: &str) -> Result<Self, UnknownSignal> {
        parse(text).ok_or_else(|| UnknownSignal(text.to_owned()))
    }
}

impl TryFrom<u8> for Signal {
    type Error = UnknownSignal;

    fn try_from(number: u8) -> Result<Self, UnknownSignal> {
        Signal::new(number).ok_or_else(|| UnknownSignal(number.to_string()))
    }
}

impl From<Signal> for u8 {
    fn from(signal: Signal) -> u8 {
        signal.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_numbers_are_read() {
        for text in ["SIGTERM", "TERM", "term", "SigTerm", "15"] {
            assert_eq!(parse(text), Some(Signal::TERM), "{text}");
        }
        assert_eq!(parse("USR1"), Some(Signal::USR1));
        assert_eq!(parse("SIGCLD"), Some(Signal::CHLD));
        assert_eq!(parse("RTMIN+1").map(Signal::number), Some(35));
        assert_eq!(parse("SIGRTMAX-1").map(Signal::number), Some(63));
        for text in ["", "SIG", "0", "65", "-9", "TERMS", "RTMIN+31", "RTMAX-", "SIGSIGTERM", "+9", "15.0"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn constants_have_their_linux_names() {
        for (signal, name) in [
            (Signal::HUP, "SIGHUP"),
            (Signal::INT, "SIGINT"),
            (Signal::QUIT, "SIGQUIT"),
            (Signal::KILL, "SIGKILL"),
            (Signal::USR2, "SIGUSR2"),
            (Signal::CONT, "SIGCONT"),
            (Signal::STOP, "SIGSTOP"),
            (Signal::TSTP, "SIGTSTP"),
            (Signal::XCPU, "SIGXCPU"),
        ] {
            assert_eq!(signal.to_string(), name);
        }
    }

    #[test]
    fn every_signal_is_read_back() {
        for signal in (1..=64).filter_map(Signal::new) {
            assert_eq!(parse(&signal.to_string()), Some(signal));
            assert_eq!(parse(&signal.name()), Some(signal));
            let bytes = crate::codec::encode(&signal);
            assert_eq!(crate::codec::decode::<Signal>(&bytes).expect("decodes"), signal);
        }
        assert!(crate::codec::decode::<Signal>(&[0]).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>(), near in "(?i)(SIG)?(RTMIN|RTMAX)?[+-]?[0-9]{0,5}") {
            parse(&text);
            parse(&near);
        }
    }
}
