//! `scontrol setdebug` and `setdebugflags`: how much the controller's log says, until it reads its configuration again.
use model::loudness::{DebugFlag, Known, LogLevel, LoudnessChange};

use super::{Reply, asking};

pub fn level(rest: &[String]) -> Reply {
    let text = match rest {
        [] => return Reply::failed("too few arguments for keyword:setdebug"),
        [text] => text,
        _ => return Reply::failed("too many arguments for keyword:setdebug"),
    };
    match LogLevel::parse(text) {
        Some(level) => set(level),
        None => Reply::failed(&format!("invalid debug level: {text}")),
    }
}

pub fn set(level: LogLevel) -> Reply {
    change("slurm_set_debug_level error", LoudnessChange { level: Some(level), ..Default::default() })
}

/// `+NAME` and `-NAME`, several in a row.
pub fn flags(rest: &[String]) -> Reply {
    let mut wanted = LoudnessChange::default();
    let words: Vec<&str> = rest.iter().flat_map(|word| word.split(',')).collect();
    if words.is_empty() {
        return Reply::failed("too few arguments for keyword:setdebugflags");
    }
    for word in words {
        let list = match word.chars().next() {
            Some('+') => &mut wanted.add,
            Some('-') => &mut wanted.remove,
            _ => return Reply::failed("Usage: setdebugflags [+|-]NAME"),
        };
        match DebugFlag::parse(&word[1..]) {
            Known::Flag(flag) => list.push(flag),
            Known::Silent(name) => {
                return Reply::failed(&format!(
                    "scontrol: error: the log says nothing about {name}; see docs/compat.md"
                ));
            }
            Known::No => return Reply::failed(&format!("invalid debug flag: {}", &word[1..])),
        }
    }
    change("slurm_set_debug_flags error", wanted)
}

/// The scheduler has no log of its own to be made louder; a Slurm without SlurmSchedLogFile answers the same.
pub fn scheduler(rest: &[String]) -> Reply {
    let text = match rest {
        [] => return Reply::failed("too few arguments for keyword:schedloglevel"),
        [text] => text,
        _ => return Reply::failed("too many arguments for keyword:schedloglevel"),
    };
    let is_level = text.parse::<u8>().is_ok_and(|level| level <= 1)
        || ["enable", "disable"].iter().any(|word| word.eq_ignore_ascii_case(text));
    match is_level {
        true => Reply::failed("slurm_set_schedlog_level error: Requested operation is presently disabled"),
        false => Reply::failed(&format!("invalid schedlog level: {text}")),
    }
}

fn change(what: &str, change: LoudnessChange) -> Reply {
    asking(what, async |controller, _| {
        controller.set_debug(&change).await?;
        Ok(Reply::default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_told() {
        let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
        assert_eq!(level(&words("loud")).err, "invalid debug level: loud\n");
        assert_eq!(scheduler(&words("x")).err, "invalid schedlog level: x\n");
        assert_eq!(
            scheduler(&words("enable")).err,
            "slurm_set_schedlog_level error: Requested operation is presently disabled\n"
        );
        assert_eq!(flags(&words("TraceJobs")).err, "Usage: setdebugflags [+|-]NAME\n");
        assert_eq!(flags(&words("+bogus")).err, "invalid debug flag: bogus\n");
        assert!(flags(&words("+Gres")).err.contains("nothing about Gres"));
    }
}
