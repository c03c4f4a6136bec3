//! Requests that come again: what was answered to them, for a while.
//!
//! A sender that hears nothing (a leader died, a connection broke) sends the same request, with the same id, to whoever leads
//! then. A request that was carried out is answered from here. One that was rejected changed nothing and may be judged anew.
use imbl::{OrdMap, OrdSet};
use model::command::RequestId;
use model::time::Span;
use model::{Caller, Command, Reject, Reply, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{Cluster, dispatch};

/// Nobody sends a request again after this long.
const KEPT: Span = Span::from_secs(600);
/// However fast they come; the oldest go first.
const KEPT_MAX: usize = 200_000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    answered: OrdMap<RequestId, Answered>,
    by_age: OrdSet<(Timestamp, RequestId)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Answered {
    uid: u32,
    reply: Reply,
}

pub(crate) fn once(cluster: &mut Cluster, by: Caller, request: RequestId, command: &Command) -> Result<Reply, Reject> {
    if let Some(answered) = cluster.requests.answered.get(&request) {
        // An id is a secret between its sender and us.
        return if answered.uid == by.uid { Ok(answered.reply.clone()) } else { Err(Reject::NotPermitted) };
    }
    if matches!(command, Command::Once { .. }) {
        return Err(Reject::NotSupported);
    }
    let reply = dispatch(cluster, by, command)?;
    let now = cluster.now;
    let requests = &mut cluster.requests;
    while let Some((at, id)) = requests.by_age.get_min().copied()
        && (at + KEPT < now || requests.by_age.len() >= KEPT_MAX)
    {
        requests.by_age.remove(&(at, id));
        requests.answered.remove(&id);
    }
    requests.by_age.insert((now, request));
    requests.answered.insert(request, Answered { uid: by.uid, reply: reply.clone() });
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Entry;

    fn ask(cluster: &mut Cluster, at_secs: u64, uid: u32, request: u64) -> Result<Reply, Reject> {
        let change = model::update::NodeChange::Comment("seen".into());
        let command = Box::new(Command::UpdateNodes { nodes: Vec::new(), change });
        let command = Command::Once { request: RequestId(request, 0), command };
        let by = Caller { uid, is_admin: uid == 0, ..Caller::SYSTEM };
        crate::apply(cluster, &Entry { at: Timestamp::from_secs(at_secs), by, command }).reply
    }

    #[test]
    fn a_request_that_comes_again_is_answered_and_not_carried_out() {
        let mut cluster = Cluster::default();
        assert_eq!(ask(&mut cluster, 1000, 0, 7), Ok(Reply::Ok));
        let before = cluster.clone();
        assert_eq!(ask(&mut cluster, 1000, 0, 7), Ok(Reply::Ok));
        assert_eq!(cluster, before, "nothing was done the second time");
        assert_eq!(ask(&mut cluster, 1000, 5, 7), Err(Reject::NotPermitted), "somebody else cannot fetch the answer");
        assert_eq!(ask(&mut cluster, 1001, 5, 8), Err(Reject::NotPermitted), "a reject is not remembered");
        assert_eq!(cluster.requests.answered.len(), 1);
        assert_eq!(ask(&mut cluster, 1700, 0, 9), Ok(Reply::Ok));
        assert_eq!(cluster.requests.answered.len(), 1, "old answers go");
    }
}
