//! Who may make which call, in one table. What concerns a particular job, reservation or account is judged by the state; here
//! stands who is heard at all.
use tonic::Status;
use wire::bounded_body::BodyBound;
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
    /// How far away the users may be.
    pub reach: NodeReach,
    /// The least that a user must be. Whose job, reservation or account it is, and who coordinates that, the state judges.
    pub least: Level,
    /// How much it takes to read.
    pub body: BodyBound,
}

/// Through which nodes users are heard, who are vouched for: a node's word is that of whoever is root there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeReach {
    AnyNode,
    /// Not where they only have jobs.
    LoginNodes,
    /// Only where the kernel, or a token, says who they are.
    NoNode,
}

const USERS: &[Kind] = &[Kind::User];
const ALL_OF_US: &[Kind] = &[Kind::User, Kind::Node, Kind::Controller];

/// The calls that users make and that change something.
pub fn changing_calls() -> impl Iterator<Item = &'static str> {
    RULES.iter().filter(|rule| !rule.asks && rule.heard.contains(&Kind::User)).map(|rule| rule.call)
}

const fn does(call: &'static str, heard: &'static [Kind], body: BodyBound) -> Rule {
    Rule { call, heard, asks: false, reach: NodeReach::AnyNode, least: Level::User, body }
}

/// Only for administrators, as in Slurm.
const fn rules(call: &'static str, heard: &'static [Kind], body: BodyBound) -> Rule {
    Rule { call, heard, asks: false, reach: NodeReach::AnyNode, least: Level::Administrator, body }
}

const fn asks(call: &'static str, heard: &'static [Kind], body: BodyBound) -> Rule {
    Rule { call, heard, asks: true, reach: NodeReach::AnyNode, least: Level::User, body }
}

const fn within(reach: NodeReach, rule: Rule) -> Rule {
    Rule { reach, ..rule }
}

pub const RULES: &[Rule] = &[
    does("Submit", USERS, BodyBound::CONTENT),
    does("Cancel", USERS, BodyBound::CHANGE),
    does("Hold", USERS, BodyBound::CHANGE),
    does("Release", USERS, BodyBound::CHANGE),
    does("Requeue", USERS, BodyBound::CHANGE),
    does("Suspend", USERS, BodyBound::CHANGE),
    does("Resume", USERS, BodyBound::CHANGE),
    does("UpdateJob", USERS, BodyBound::CHANGE),
    does("Complete", USERS, BodyBound::CHANGE),
    does("CreateStep", USERS, BodyBound::CONTENT),
    does("CancelStep", USERS, BodyBound::CHANGE),
    rules("UpdateNodes", USERS, BodyBound::CHANGE),
    rules("UpdatePartition", USERS, BodyBound::CHANGE),
    within(NodeReach::LoginNodes, does("ChangeAccounts", USERS, BodyBound::CONTENT)),
    asks("Accounts", USERS, BodyBound::BRIEF),
    asks("Standing", USERS, BodyBound::BRIEF),
    asks("Chronicle", USERS, BodyBound::BRIEF),
    rules("CreatePartition", USERS, BodyBound::CHANGE),
    rules("DeletePartition", USERS, BodyBound::QUESTION),
    within(NodeReach::LoginNodes, does("CreateReservation", USERS, BodyBound::CHANGE)),
    within(NodeReach::LoginNodes, does("UpdateReservation", USERS, BodyBound::CHANGE)),
    within(NodeReach::LoginNodes, does("DeleteReservation", USERS, BodyBound::QUESTION)),
    rules("Reconfigure", USERS, BodyBound::BRIEF),
    rules("Shutdown", USERS, BodyBound::BRIEF),
    does("Signal", USERS, BodyBound::CHANGE),
    rules("SetDebug", USERS, BodyBound::BRIEF),
    rules("SetDampening", USERS, BodyBound::BRIEF),
    // Its program runs where the controller is.
    within(NodeReach::LoginNodes, does("SetTrigger", USERS, BodyBound::CHANGE)),
    does("ClearTriggers", USERS, BodyBound::QUESTION),
    asks("Triggers", USERS, BodyBound::BRIEF),
    asks("Jobs", USERS, BodyBound::QUESTION),
    asks("WatchJobs", USERS, BodyBound::QUESTION),
    asks("History", USERS, BodyBound::QUESTION),
    within(NodeReach::LoginNodes, does("AmendHistory", USERS, BodyBound::CHANGE)),
    asks("Nodes", USERS, BodyBound::BRIEF),
    asks("Configuration", USERS, BodyBound::BRIEF),
    asks("Reservations", USERS, BodyBound::BRIEF),
    asks("Licenses", USERS, BodyBound::BRIEF),
    asks("Diagnose", USERS, BodyBound::BRIEF),
    asks("Blob", USERS, BodyBound::BRIEF),
    asks("Burst", USERS, BodyBound::BRIEF),
    asks("WatchStaging", USERS, BodyBound::BRIEF),
    asks("Why", USERS, BodyBound::BRIEF),
    asks("BurstStatus", USERS, BodyBound::QUESTION),
    does("DropBuffer", USERS, BodyBound::QUESTION),
    rules("Backup", USERS, BodyBound::BRIEF),
    Rule {
        call: "Audit",
        heard: USERS,
        asks: true,
        reach: NodeReach::AnyNode,
        least: Level::Administrator,
        body: BodyBound::QUESTION,
    },
    does("Ping", ALL_OF_US, BodyBound::BRIEF),
    asks("Members", ALL_OF_US, BodyBound::BRIEF),
    rules("ChangeMembers", &[Kind::User, Kind::Controller], BodyBound::BRIEF),
    // The token says who it is.
    does("Join", &[Kind::User, Kind::Node, Kind::Controller, Kind::Stranger], BodyBound::BRIEF),
    does("Renew", &[Kind::Node, Kind::Controller], BodyBound::BRIEF),
    rules("MakeToken", USERS, BodyBound::BRIEF),
    rules("RemoveNode", USERS, BodyBound::BRIEF),
    asks("Locate", ALL_OF_US, BodyBound::BRIEF),
    // What a token's owner may, whoever has it may from anywhere.
    within(NodeReach::NoNode, does("UserToken", USERS, BodyBound::BRIEF)),
    within(NodeReach::NoNode, does("ChangeTokens", USERS, BodyBound::BRIEF)),
    // Another agent was told of a user by a node.
    asks("Vouch", &[Kind::Node], BodyBound::BRIEF),
    // On one machine, agents are known by being root or the controller's own user.
    does("Attend", &[Kind::User, Kind::Node], BodyBound::REPORTS),
];

/// Calls for agents that controllers pass on.
pub const AGENT_RULES: &[Rule] = &[
    does("Attach", USERS, BodyBound::STEP),
    does("Ask", USERS, BodyBound::PIECE),
    does("Mirror", USERS, BodyBound::PIECES),
];

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

/// Users whom a node vouches for may make the call.
pub fn is_heard_through(path: &str, is_login_node: bool) -> bool {
    match rule(path).map_or(NodeReach::AnyNode, |rule| rule.reach) {
        NodeReach::AnyNode => true,
        NodeReach::LoginNodes => is_login_node,
        NodeReach::NoNode => false,
    }
}

/// How much of a body is read. Calls that no rule knows, and strangers, have little to say.
pub fn body(origin: &Origin, path: &str) -> BodyBound {
    let bound = rule(path).map_or(BodyBound::BRIEF, |rule| rule.body);
    match kind(origin) {
        Kind::Stranger => bound.at_most(BodyBound::BRIEF.message_bytes),
        Kind::User | Kind::Node | Kind::Controller => bound,
    }
}

/// It changes something, or tries to, and is for the audit. Pings only seem to.
pub fn changes_something(path: &str) -> bool {
    rule(path).is_some_and(|rule| !rule.asks && rule.call != "Ping")
}

/// It only asks whether controllers answer, and which (`scontrol ping`).
pub fn asks_who_answers(path: &str) -> bool {
    rule(path).is_some_and(|rule| ["Ping", "Members"].contains(&rule.call))
}

pub fn only_asks(path: &str) -> bool {
    rule(path).is_some_and(|rule| rule.asks)
}

/// What controllers say to each other; `MemberGate` hears it from them alone.
const MEMBER_CALLS: [&str; 5] = ["Raft", "Stand", "End", "Alive", "ReadAudit"];

/// The call's name, if it is one.
pub fn known_call(path: &str) -> Option<&'static str> {
    let of_members = || MEMBER_CALLS.into_iter().find(|call| path.rsplit('/').next() == Some(call));
    rule(path).map(|rule| rule.call).or_else(of_members)
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
        [calls_of("Controller"), calls_of("Agent")].concat()
    }

    fn calls_of(service: &str) -> Vec<&'static str> {
        let service = CONTRACT.split(&format!("service {service} {{")).nth(1).unwrap().split("\n}").next().unwrap();
        service.lines().filter_map(|line| line.trim().strip_prefix("rpc ")?.split('(').next()).collect()
    }

    #[test]
    fn every_call_has_a_rule_and_every_rule_a_call() {
        let missing: Vec<_> = calls().into_iter().filter(|call| rule(call).is_none()).collect();
        assert!(missing.is_empty(), "without a rule in controller/src/rules.rs: {missing:?}");
        let extra: Vec<_> =
            RULES.iter().chain(AGENT_RULES).map(|rule| rule.call).filter(|call| !calls().contains(call)).collect();
        assert!(extra.is_empty(), "rules without a call: {extra:?}");
        assert_eq!(calls_of("Member"), MEMBER_CALLS);
    }

    #[test]
    fn what_outlasts_a_job_is_not_heard_through_its_nodes() {
        let heard = |call: &str| {
            [false, true].map(|is_login| is_heard_through(&format!("/spur.v1.Controller/{call}"), is_login))
        };
        for (call, nodes) in [
            ("Submit", [true, true]),
            ("CreateStep", [true, true]),
            ("Attach", [true, true]),
            ("ChangeAccounts", [false, true]),
            ("SetTrigger", [false, true]),
            ("UserToken", [false, false]),
            ("ChangeTokens", [false, false]),
        ] {
            assert_eq!(heard(call), nodes, "{call}");
        }
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

    #[test]
    fn streams_are_bounded_as_streams_and_strangers_say_little() {
        let streams: Vec<_> = CONTRACT
            .lines()
            .filter_map(|line| line.trim().strip_prefix("rpc ")?.split_once("(stream "))
            .map(|(call, _)| call)
            .collect();
        assert!(streams.contains(&"Attend") && streams.contains(&"Attach"));
        let stranger = Origin { from: From::Stranger, user: None };
        for call in calls() {
            assert_eq!(rule(call).unwrap().body.is_stream, streams.contains(&call), "{call}");
            assert!(body(&stranger, call).message_bytes <= 64 << 10, "{call}");
        }
        for rule in AGENT_RULES {
            assert_eq!(rule.body, BodyBound::of_agent_call(rule.call), "{}", rule.call);
        }
    }
}
