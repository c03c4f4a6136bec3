//! The words of `scontrol`, each with the fewest letters that name it.
use super::jobs::Verb;
use super::update_job::is_short_for;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    All,
    Details,
    Help,
    Hide,
    Job(Verb),
    OneLiner,
    Ping,
    Takeover,
    Quiet,
    Quit,
    Reconfigure,
    Show,
    Update,
    Verbose,
    Version,
    Write,
    ListPids,
    ListJobs,
    ListSteps,
    Notify,
    Create,
    Delete,
    Completing,
    WaitJob,
    Shutdown,
    Abort,
    PidInfo,
    Token,
    Reboot,
    CancelReboot,
    ErrorText,
    SetDebug,
    SetDebugFlags,
    SchedLogLevel,
    Dampening,
    /// Slurm has it, we do not.
    Unsupported(&'static str),
}

pub const KEYWORDS: &[(&str, usize, Keyword)] = &[
    ("abort", 5, Keyword::Abort),
    ("all", 3, Keyword::All),
    ("cancel_reboot", 3, Keyword::CancelReboot),
    ("cluster", 2, Keyword::Unsupported("cluster")),
    ("completing", 2, Keyword::Completing),
    ("create", 2, Keyword::Create),
    ("delete", 3, Keyword::Delete),
    ("details", 3, Keyword::Details),
    ("errnumstr", 2, Keyword::ErrorText),
    ("exit", 1, Keyword::Quit),
    ("fairsharedampeningfactor", 3, Keyword::Dampening),
    ("fsdampeningfactor", 3, Keyword::Dampening),
    ("help", 2, Keyword::Help),
    ("hide", 2, Keyword::Hide),
    ("hold", 3, Keyword::Job(Verb::Hold)),
    ("holdu", 5, Keyword::Job(Verb::UserHold)),
    ("listjobs", 5, Keyword::ListJobs),
    ("listpids", 1, Keyword::ListPids),
    ("liststeps", 5, Keyword::ListSteps),
    ("notify", 1, Keyword::Notify),
    ("oneliner", 1, Keyword::OneLiner),
    ("pidinfo", 3, Keyword::PidInfo),
    ("ping", 3, Keyword::Ping),
    ("power", 2, Keyword::Unsupported("power")),
    ("quiet", 4, Keyword::Quiet),
    ("quit", 4, Keyword::Quit),
    ("reboot", 3, Keyword::Reboot),
    ("reboot_nodes", 7, Keyword::Reboot),
    ("reconfigure", 3, Keyword::Reconfigure),
    ("release", 3, Keyword::Job(Verb::Release)),
    ("requeue", 3, Keyword::Job(Verb::Requeue)),
    ("requeuehold", 8, Keyword::Job(Verb::RequeueHold)),
    ("resume", 3, Keyword::Job(Verb::Resume)),
    ("schedloglevel", 3, Keyword::SchedLogLevel),
    ("setdebug", 2, Keyword::SetDebug),
    ("setdebugflags", 9, Keyword::SetDebugFlags),
    ("show", 3, Keyword::Show),
    ("shutdown", 4, Keyword::Shutdown),
    ("suspend", 2, Keyword::Job(Verb::Suspend)),
    ("takeover", 8, Keyword::Takeover),
    ("token", 3, Keyword::Token),
    ("top", 3, Keyword::Job(Verb::Top)),
    ("uhold", 2, Keyword::Job(Verb::UserHold)),
    ("update", 1, Keyword::Update),
    ("verbose", 4, Keyword::Verbose),
    ("version", 4, Keyword::Version),
    ("wait_job", 2, Keyword::WaitJob),
    ("write", 2, Keyword::Write),
];

impl Keyword {
    pub fn parse(word: &str) -> Option<Keyword> {
        let exact = KEYWORDS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(word));
        let short = || KEYWORDS.iter().find(|(name, least, _)| is_short_for(word, name, *least));
        exact.or_else(short).map(|(.., keyword)| *keyword)
    }
}

/// What to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entity {
    Aliases,
    Associations,
    BurstBuffer,
    BurstStatus,
    Config,
    Daemons,
    Federation,
    HostList,
    HostListSorted,
    HostNames,
    Job,
    Licenses,
    Node,
    Partition,
    Reservation,
    Slurmd,
    Step,
    Topoconf,
    Topology,
    Unsupported(&'static str),
}

pub const ENTITIES: &[(&str, usize, Entity)] = &[
    ("aliases", 1, Entity::Aliases),
    ("assoc_mgr", 2, Entity::Associations),
    ("bbstat", 2, Entity::BurstStatus),
    ("burstbuffer", 2, Entity::BurstBuffer),
    ("config", 1, Entity::Config),
    ("daemons", 1, Entity::Daemons),
    ("dwstat", 2, Entity::BurstStatus),
    ("federation", 1, Entity::Federation),
    ("frontend", 2, Entity::Unsupported("frontend")),
    ("hostlist", 5, Entity::HostList),
    ("hostlistsorted", 9, Entity::HostListSorted),
    ("hostnames", 5, Entity::HostNames),
    ("jobs", 1, Entity::Job),
    ("jobid", 1, Entity::Job),
    ("licenses", 1, Entity::Licenses),
    ("nodes", 1, Entity::Node),
    ("nodename", 1, Entity::Node),
    ("partitions", 1, Entity::Partition),
    ("partitionname", 1, Entity::Partition),
    ("reservations", 1, Entity::Reservation),
    ("reservationname", 1, Entity::Reservation),
    ("slurmd", 2, Entity::Slurmd),
    ("steps", 2, Entity::Step),
    ("stepid", 2, Entity::Step),
    ("topoconf", 5, Entity::Topoconf),
    ("topology", 1, Entity::Topology),
];

impl Entity {
    pub fn parse(word: &str) -> Option<Entity> {
        ENTITIES.iter().find(|(name, least, _)| is_short_for(word, name, *least)).map(|(.., entity)| *entity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_may_be_abbreviated() {
        for (word, keyword) in [
            ("show", Some(Keyword::Show)),
            ("SHO", Some(Keyword::Show)),
            ("sh", None),
            ("pin", Some(Keyword::Ping)),
            ("rel", Some(Keyword::Job(Verb::Release))),
            ("requeue", Some(Keyword::Job(Verb::Requeue))),
            ("requeueh", Some(Keyword::Job(Verb::RequeueHold))),
            ("susp", Some(Keyword::Job(Verb::Suspend))),
            ("resu", Some(Keyword::Job(Verb::Resume))),
            ("hold", Some(Keyword::Job(Verb::Hold))),
            ("uhold", Some(Keyword::Job(Verb::UserHold))),
            ("listpids", Some(Keyword::ListPids)),
            ("nosuch", None),
        ] {
            assert_eq!(Keyword::parse(word), keyword, "{word}");
        }
        for (word, entity) in [
            ("job", Some(Entity::Job)),
            ("jobs", Some(Entity::Job)),
            ("jobid", Some(Entity::Job)),
            ("node", Some(Entity::Node)),
            ("part", Some(Entity::Partition)),
            ("hostname", Some(Entity::HostNames)),
            ("hostlist", Some(Entity::HostList)),
            ("hostlistsorted", Some(Entity::HostListSorted)),
            ("nosuch", None),
        ] {
            assert_eq!(Entity::parse(word), entity, "{word}");
        }
    }
}
