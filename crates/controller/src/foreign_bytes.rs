//! What reads the bytes of callers, scripts and backups, opened to crate `fuzz_targets` and to nothing else.
use journal::Machine;
use model::update::JobChanges;
use model::{JobSpec, Reject};
use serde_json::{Map, Value};
use wire::bounded_body::BodyBound;
use wire::origin::{From, Origin};
use wire::peer::Peer;

pub use crate::api::read as read_sent;
use crate::job_submit::{changes, fields};
use crate::machine::ClusterMachine;
use crate::plugin::{datawarp, pools};

/// How much of a call's body is read, of a user or of a stranger.
pub fn bound_of(call: &str, is_stranger: bool) -> BodyBound {
    let user = Origin { from: From::Local, user: Some(Peer { uid: 54_321, gid: 54_321, pid: None }) };
    let origin = if is_stranger { Origin { from: From::Stranger, user: None } } else { user };
    crate::rules::body(&origin, call)
}

/// Every call that somebody may make.
pub fn calls_heard() -> impl Iterator<Item = &'static str> {
    crate::rules::RULES.iter().chain(crate::rules::AGENT_RULES).map(|rule| rule.call)
}

/// A machine without a state, as a journal is read into.
pub fn empty_machine() -> impl Machine {
    ClusterMachine::new().0
}

/// What a script's answer makes of a submission.
pub fn change_submission(spec: &mut JobSpec, changed: &Map<String, Value>) -> Result<(), Reject> {
    fields::change(spec, changed)?;
    // The next script finds what this one has left.
    drop(fields::table(spec));
    Ok(())
}

/// What a script's answer makes of a change of a job.
pub fn change_update(update: &mut JobChanges, changed: &Map<String, Value>) -> Result<(), Reject> {
    changes::change(update, changed)?;
    drop(changes::table(update));
    Ok(())
}

/// What plugins tell of their pools, as JSON or nearly so; whether any of it was understood.
pub fn read_plugin_answer(text: &str) -> bool {
    let as_pools = pools::lua(text).is_ok();
    let as_datawarp = datawarp::pools(text).is_ok();
    let as_sessions = datawarp::sessions(text, text).is_some();
    as_pools || as_datawarp || as_sessions
}
