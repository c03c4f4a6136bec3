//! How much the controller's log says: a level, and subjects about which it says more.
use serde::{Deserialize, Serialize};

/// As SlurmctldDebug: each says all that those before it say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LogLevel {
    Quiet,
    Fatal,
    Error,
    #[default]
    Info,
    Verbose,
    Debug,
    Debug2,
    Debug3,
    Debug4,
    Debug5,
}

const LEVELS: [(&str, LogLevel); 10] = [
    ("quiet", LogLevel::Quiet),
    ("fatal", LogLevel::Fatal),
    ("error", LogLevel::Error),
    ("info", LogLevel::Info),
    ("verbose", LogLevel::Verbose),
    ("debug", LogLevel::Debug),
    ("debug2", LogLevel::Debug2),
    ("debug3", LogLevel::Debug3),
    ("debug4", LogLevel::Debug4),
    ("debug5", LogLevel::Debug5),
];

impl LogLevel {
    pub fn word(self) -> &'static str {
        LEVELS[self as usize].0
    }

    /// From the quietest.
    pub fn all() -> impl Iterator<Item = LogLevel> {
        LEVELS.iter().map(|(_, level)| *level)
    }

    /// A word, or its number.
    pub fn parse(text: &str) -> Option<LogLevel> {
        let by_number = text.parse().ok().and_then(|number: usize| LEVELS.get(number));
        by_number.or_else(|| LEVELS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text))).map(|(_, level)| *level)
    }

    /// So many steps louder.
    pub fn louder(self, by: usize) -> LogLevel {
        LEVELS[(self as usize + by).min(LEVELS.len() - 1)].1
    }
}

macro_rules! subjects {
    ($($name:ident $target:literal),* $(,)?) => {
        /// What the log can say more about, as in DebugFlags.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum DebugFlag { $($name),* }

        impl DebugFlag {
            pub const ALL: &[DebugFlag] = &[$(DebugFlag::$name),*];

            pub fn word(self) -> &'static str {
                match self { $(DebugFlag::$name => stringify!($name)),* }
            }

            /// Where the log's lines about it come from.
            pub const fn target(self) -> &'static str {
                match self { $(DebugFlag::$name => $target),* }
            }
        }
    };
}

subjects! {
    Agent "spur::agent",
    Backfill "spur::backfill",
    BurstBuffer "spur::burst_buffer",
    NodeFeatures "spur::node",
    Protocol "spur::protocol",
    Reservation "spur::reservation",
    Script "spur::script",
    Steps "spur::steps",
    TraceJobs "spur::jobs",
    Triggers "spur::triggers",
}

/// Slurm's other flags: nothing here has anything to say about them.
const SILENT: &[&str] = &[
    "Accrue",
    "AuditRPCs",
    "BackfillMap",
    "Cgroup",
    "CPU_Bind",
    "CpuFrequency",
    "Data",
    "DB_ARCHIVE",
    "DB_ASSOC",
    "DB_EVENT",
    "DB_JOB",
    "DB_QOS",
    "DB_QUERY",
    "DB_RESERVATION",
    "DB_RESOURCE",
    "DB_STEP",
    "DB_TRES",
    "DB_USAGE",
    "DB_WCKEY",
    "Dependency",
    "Elasticsearch",
    "Energy",
    "ExtSensors",
    "Federation",
    "FrontEnd",
    "Gang",
    "Gres",
    "Hetjob",
    "Interconnect",
    "JobAccountGather",
    "JobComp",
    "JobContainer",
    "License",
    "Network",
    "NetworkRaw",
    "NO_CONF_HASH",
    "Power",
    "Priority",
    "Profile",
    "Route",
    "SelectType",
    "Switch",
    "TimeCray",
    "WorkQueue",
];

/// What a word of DebugFlags comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    Flag(DebugFlag),
    /// Slurm knows it; here it would change nothing.
    Silent(&'static str),
    No,
}

impl DebugFlag {
    pub fn parse(word: &str) -> Known {
        let own = DebugFlag::ALL.iter().find(|flag| flag.word().eq_ignore_ascii_case(word));
        let silent = || SILENT.iter().find(|name| name.eq_ignore_ascii_case(word));
        own.map(|flag| Known::Flag(*flag)).or_else(|| silent().map(|name| Known::Silent(name))).unwrap_or(Known::No)
    }
}

record! {
    /// How loud the log is, or is to be; what is left out stays as it is.
    pub struct Loudness {
        pub level: Option<LogLevel>,
        pub flags: Vec<DebugFlag>,
    }

    /// What `scontrol setdebug` and `setdebugflags` ask for.
    pub struct LoudnessChange {
        pub level: Option<LogLevel>,
        pub add: Vec<DebugFlag>,
        pub remove: Vec<DebugFlag>,
    }
}

impl LoudnessChange {
    pub fn apply(&self, present: &Loudness) -> Loudness {
        let mut flags: std::collections::BTreeSet<DebugFlag> = present.flags.iter().copied().collect();
        flags.extend(&self.add);
        flags.retain(|flag| !self.remove.contains(flag));
        Loudness { level: self.level.or(present.level), flags: flags.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_words_or_numbers() {
        assert_eq!(LogLevel::parse("debug2"), Some(LogLevel::Debug2));
        assert_eq!(LogLevel::parse("5"), Some(LogLevel::Debug));
        assert_eq!((LogLevel::parse("10"), LogLevel::parse("loud")), (None, None));
        assert_eq!((LogLevel::Info.word(), LogLevel::Info.louder(2)), ("info", LogLevel::Debug));
    }

    #[test]
    fn flags_are_known_silent_or_unknown() {
        assert_eq!(DebugFlag::parse("tracejobs"), Known::Flag(DebugFlag::TraceJobs));
        assert_eq!(DebugFlag::parse("gres"), Known::Silent("Gres"));
        assert_eq!(DebugFlag::parse("bogus"), Known::No);
        let change = LoudnessChange { add: vec![DebugFlag::Agent], ..Default::default() };
        let with = change.apply(&Loudness { level: Some(LogLevel::Error), flags: vec![DebugFlag::Steps] });
        assert_eq!((with.level, with.flags), (Some(LogLevel::Error), vec![DebugFlag::Agent, DebugFlag::Steps]));
    }
}
