//! Who may make which call, in one table. What concerns a particular job, reservation or account is judged by the state; here
//! stands who is heard at all.
use tonic::Status;
use wire::origin::{From, Origin};

use crate::api::Level;

/// A kind of caller; the more particular stand later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A user of a controller's machine, or one that a node or a token vouches for.
    User,
    /// A node's agent, for itself.
    Node,
    /// A controller, for itself.
    Controller,
    /// Somebody without a certificate.
    Stranger,
}

pub struct Rule {
    pub call: &'static str,
    pub heard: &'static [Kind],
    /// It only asks: of several controllers, the leader makes sure that it still leads.
    pub asks: bool,
    /// The least that a user must be. Whose job, reservation or account it is, and who coordinates that, the state judges.
    pub least: Level,
}

const USERS: &[Kind] = &[Kind::User];
const ALL_OF_US: &[Kind] = &[Kind::User, Kind::Node, Kind::Controller];

/// The calls that users make and that change something.
pub fn changing_calls() -> impl Iterator<Item = &'static str> {
    RULES.iter().filter(|rule| !rule.asks && rule.heard.contains(&Kind::User)).map(|rule| rule.call)
}

const fn does(call: &'static str, heard: &'static [Kind]) -> Rule {
    Rule { call, heard, asks: false, least: Level::User }
}

/// Only for administrators, as in Slurm.
const fn rules(call: &'static str, heard: &'static [Kind]) -> Rule {
    Rule { call, heard, asks: false, least: Level::Administrator }
}

const fn asks(call: &'static str, heard: &'static [Kind]) -> Rule {
    Rule { call, heard, asks: true, least: Level::User }
}

pub const RULES: &[Rule] = &[
    does("Submit", USERS),
    does("Cancel", USERS),
    does("Hold", USERS),
    does("Release", USERS),
    does("Requeue", USERS),
    does("Suspend", USERS),
    does("Resume", USERS),
    does("UpdateJob", USERS),
    does("Complete", USERS),
    does("CreateStep", USERS),
    does("CancelStep", USERS),
    rules("UpdateNodes", USERS),
    rules("UpdatePartition", USERS),
    does("ChangeAccounts", USERS),
    asks("Accounts", USERS),
    asks("Standing", USERS),
    asks("Chronicle", USERS),
    rules("CreatePartition", USERS),
    rules("DeletePartition", USERS),
    does("CreateReservation", USERS),
    does("UpdateReservation", USERS),
    does("DeleteReservation", USERS),
    rules("Reconfigure", USERS),
    rules("Shutdown", USERS),
    does("Signal", USERS),
    rules("SetDebug", USERS),
    rules("SetDampening", USERS),
    does("SetTrigger", USERS),
    does("ClearTriggers", USERS),
    asks("Triggers", USERS),
    asks("Jobs", USERS),
    asks("WatchJobs", USERS),
    asks("History", USERS),
    does("AmendHistory", USERS),
    asks("Nodes", USERS),
    asks("Configuration", USERS),
    asks("Reservations", USERS),
    asks("Licenses", USERS),
    asks("Diagnose", USERS),
    asks("Blob", USERS),
    asks("Burst", USERS),
    asks("WatchStaging", USERS),
    asks("Why", USERS),
    asks("BurstStatus", USERS),
    does("DropBuffer", USERS),
    rules("Backup", USERS),
    Rule { call: "Audit", heard: USERS, asks: true, least: Level::Administrator },
    does("Ping", ALL_OF_US),
    asks("Members", ALL_OF_US),
    rules("ChangeMembers", &[Kind::User, Kind::Controller]),
    // The token says who it is.
    does("Join", &[Kind::User, Kind::Node, Kind::Controller, Kind::Stranger]),
    does("Renew", &[Kind::Node, Kind::Controller]),
    rules("MakeToken", USERS),
    rules("RemoveNode", USERS),
    asks("Locate", ALL_OF_US),
    does("UserToken", USERS),
    // On one machine, agents are known by being root or the controller's own user.
    does("Attend", &[Kind::User, Kind::Node]),
];

/// Calls for agents that controllers pass on.
pub const AGENT_RULES: &[Rule] = &[does("Attach", USERS), does("Ask", USERS), does("Mirror", USERS)];

pub fn kind(origin: &Origin) -> Kind {
    match (&origin.from, origin.user) {
        (From::Stranger, _) => Kind::Stranger,
        (_, Some(_)) => Kind::User,
        (From::Node(_), None) => Kind::Node,
        (From::Controller(_), None) => Kind::Controller,
        // The kernel always knows who it is, and so does a token.
        (From::Local | From::Bearer, None) => Kind::Stranger,
    }
}

/// Calls that no rule knows are users' questions: they are heard from users only.
pub fn check(origin: &Origin, path: &str) -> Result<(), Status> {
    let heard = rule(path).map_or(USERS, |rule| rule.heard);
    match heard.contains(&kind(origin)) {
        true => Ok(()),
        false => Err(Status::permission_denied("Access/permission denied")),
    }
}

/// What a user must be at least to make the call at all.
pub fn least(path: &str) -> Level {
    rule(path).map_or(Level::User, |rule| rule.least)
}

/// It changes something, or tries to, and is for the audit. Pings only seem to.
pub fn changes_something(path: &str) -> bool {
    rule(path).is_some_and(|rule| !rule.asks && rule.call != "Ping")
}

/// It asks for nothing, and tells nothing but that somebody answers.
pub fn is_ping(path: &str) -> bool {
    rule(path).is_some_and(|rule| rule.call == "Ping")
}

pub fn only_asks(path: &str) -> bool {
    rule(path).is_some_and(|rule| rule.asks)
}

fn rule(path: &str) -> Option<&'static Rule> {
    let call = path.rsplit('/').next().unwrap_or(path);
    RULES.iter().chain(AGENT_RULES).find(|rule| rule.call == call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::peer::Peer;

    const CONTRACT: &str = include_str!("../../../proto/spur.proto");

    /// Every call that a controller takes, as the contract has it.
    fn calls() -> Vec<&'static str> {
        let service =
            |name: &str| CONTRACT.split(&format!("service {name} {{")).nth(1).unwrap().split("\n}").next().unwrap();
        let lines = service("Controller").lines().chain(service("Agent").lines());
        lines.filter_map(|line| line.trim().strip_prefix("rpc ")?.split('(').next()).collect()
    }

    #[test]
    fn every_call_has_a_rule_and_every_rule_a_call() {
        let missing: Vec<_> = calls().into_iter().filter(|call| rule(call).is_none()).collect();
        assert!(missing.is_empty(), "without a rule in controller/src/rules.rs: {missing:?}");
        let extra: Vec<_> =
            RULES.iter().chain(AGENT_RULES).map(|rule| rule.call).filter(|call| !calls().contains(call)).collect();
        assert!(extra.is_empty(), "rules without a call: {extra:?}");
    }

    #[test]
    fn each_kind_of_caller_is_heard_where_its_rule_says_and_nowhere_else() {
        let user = Some(Peer { uid: 1000, gid: 1000, pid: None });
        let callers = [
            (Kind::User, Origin { from: From::Local, user }),
            (Kind::User, Origin { from: From::Node("n1".into()), user }),
            (Kind::Node, Origin { from: From::Node("n1".into()), user: None }),
            (Kind::Controller, Origin { from: From::Controller(2), user: None }),
            (Kind::User, Origin { from: From::Bearer, user }),
            (Kind::Stranger, Origin { from: From::Bearer, user: None }),
            (Kind::Stranger, Origin { from: From::Stranger, user: None }),
            (Kind::Stranger, Origin { from: From::Stranger, user }),
        ];
        for call in calls() {
            for (kind, origin) in &callers {
                let heard = rule(call).unwrap().heard.contains(kind);
                assert_eq!(
                    check(origin, &format!("/spur.v1.Controller/{call}")).is_ok(),
                    heard,
                    "{call} by {origin:?}"
                );
            }
        }
        let reserved: Vec<_> =
            RULES.iter().filter(|rule| rule.least == Level::Administrator).map(|rule| rule.call).collect();
        for call in calls() {
            for (level, is_allowed) in [
                (Level::User, !reserved.contains(&call)),
                (Level::Operator, !reserved.contains(&call)),
                (Level::Administrator, true),
            ] {
                assert_eq!(level >= least(call), is_allowed, "{call} by {level:?}");
            }
        }
        for expected in ["UpdateNodes", "Reconfigure", "Shutdown", "ChangeMembers", "MakeToken", "RemoveNode", "Backup"]
        {
            assert!(reserved.contains(&expected), "{expected} is for administrators");
        }
        let strangers: Vec<_> =
            RULES.iter().filter(|rule| rule.heard.contains(&Kind::Stranger)).map(|rule| rule.call).collect();
        assert_eq!(strangers, ["Join"]);
    }
}
