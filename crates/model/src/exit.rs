//! How a process, a step or a job ended, in Slurm's `code:signal` form.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An exit code and the signal that ended it; at most one of them is not zero for a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ExitStatus {
    pub code: u8,
    pub signal: u8,
}

impl ExitStatus {
    pub const SUCCESS: ExitStatus = ExitStatus { code: 0, signal: 0 };
    /// As Slurm shows what a memory limit has ended.
    pub const OUT_OF_MEMORY: ExitStatus = ExitStatus { code: 0, signal: 125 };

    pub fn exited(code: u8) -> Self {
        ExitStatus { code, signal: 0 }
    }

    pub fn signaled(signal: u8) -> Self {
        ExitStatus { code: 0, signal }
    }

    pub fn is_success(self) -> bool {
        self == Self::SUCCESS
    }

    /// From what `waitpid` gave; whether there was a core dump is not kept.
    pub fn from_wait_status(status: i32) -> Self {
        ExitStatus { code: (status >> 8 & 0xff) as u8, signal: (status & 0x7f) as u8 }
    }

    pub fn to_wait_status(self) -> i32 {
        i32::from(self.code) << 8 | i32::from(self.signal & 0x7f)
    }

    /// What a shell makes of it, and srun exits with: 128 + signal after a signal.
    pub fn shell_code(self) -> u8 {
        match self.signal {
            0 => self.code,
            signal => 128 | signal,
        }
    }

    /// What `sbatch --wait` exits with: the code, or 1 after a signal.
    pub fn wait_code(self) -> u8 {
        match self.signal {
            0 => self.code,
            _ => 1,
        }
    }

    /// The worse of two, as srun reports several tasks: any signal, then the larger code.
    pub fn worse(self, other: Self) -> Self {
        if (other.signal, other.code) > (self.signal, self.code) { other } else { self }
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&format!("{}:{}", self.code, self.signal))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidExitStatus(pub String);

impl fmt::Display for InvalidExitStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Invalid exit code \"{}\"; write code or code:signal", self.0)
    }
}

impl std::error::Error for InvalidExitStatus {}

impl FromStr for ExitStatus {
    type Err = InvalidExitStatus;

    fn from_str(text: &str) -> Result<Self, InvalidExitStatus> {
        let (code, signal) = text.split_once(':').unwrap_or((text, "0"));
        match (number(code), number(signal)) {
            (Some(code), Some(signal)) if signal < 128 => Ok(ExitStatus { code, signal }),
            _ => Err(InvalidExitStatus(text.to_owned())),
        }
    }
}

fn number(digits: &str) -> Option<u8> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_signal_and_a_code_are_told_apart() {
        assert_eq!(ExitStatus::from_wait_status(15).to_string(), "0:15");
        assert_eq!(ExitStatus::from_wait_status(3 << 8).to_string(), "3:0");
        assert_eq!(ExitStatus::from_wait_status(11 | 0x80), ExitStatus::signaled(11));
        assert_eq!(ExitStatus::signaled(9).shell_code(), 137);
        assert_eq!(ExitStatus::signaled(9).wait_code(), 1);
        assert_eq!(ExitStatus::exited(3).shell_code(), 3);
        assert!(ExitStatus::default().is_success());
        assert_eq!(ExitStatus::exited(2).worse(ExitStatus::signaled(15)), ExitStatus::signaled(15));
        assert_eq!(ExitStatus::exited(200).worse(ExitStatus::signaled(9)), ExitStatus::signaled(9));
        assert_eq!(ExitStatus::exited(2).worse(ExitStatus::SUCCESS), ExitStatus::exited(2));
    }

    #[test]
    fn both_spellings_are_read() {
        assert_eq!("3".parse(), Ok(ExitStatus::exited(3)));
        assert_eq!("0:15".parse(), Ok(ExitStatus::signaled(15)));
        for text in ["", ":", "1:", ":1", "256:0", "0:128", "1:2:3", "-1", "+1"] {
            assert!(text.parse::<ExitStatus>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_status_is_read_back(code in any::<u8>(), signal in 0u8..128) {
            let status = ExitStatus { code, signal };
            prop_assert_eq!(status.to_string().parse(), Ok(status));
            prop_assert_eq!(ExitStatus::from_wait_status(status.to_wait_status()), status);
        }

        #[test]
        fn no_input_panics(text in any::<String>(), status in any::<i32>()) {
            let _ = text.parse::<ExitStatus>();
            ExitStatus::from_wait_status(status).shell_code();
        }
    }
}
