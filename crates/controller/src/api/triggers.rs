//! Triggers: who may set them is judged here, where it is known whom this controller can run programs as.
use std::sync::Arc;

use model::trigger::Trigger;
use model::{Command, Config};
use tonic::{Request, Response};
use wire::pages::in_batches;
use wire::proto::{CommandReply, CommandRequest, Nothing, TriggersReply};
use wire::refusal::to_status;

use super::{Answer, Api, Streamed, codec, listed, read, refused, request_id};
use crate::audit::AuditNotes;

/// The trigger is its caller's own, whatever it says.
pub async fn set(api: &Api, request: Request<CommandRequest>) -> Answer<CommandReply> {
    let by = api.caller(&request)?;
    let Command::SetTrigger { trigger } = read(&request.get_ref().command)? else {
        return Err(tonic::Status::invalid_argument("the command does not belong to this call"));
    };
    AuditNotes::about(request.extensions(), &trigger);
    let cluster = api.published.now();
    // SAFETY: a plain system call that cannot fail.
    let own = unsafe { libc::geteuid() };
    let user = api.names.user(by.uid);
    if !may_set(by.uid, &user, own, cluster.config()) {
        return Err(to_status(&model::Reject::NotPermitted));
    }
    // Whoever may not see a job does not hear of its end either.
    let reader = api.reader(&request)?;
    if trigger.job.and_then(|id| cluster.job(id)).is_some_and(|job| !reader.may_see_job(&cluster, job)) {
        return Err(to_status(&model::Reject::NoSuchJob));
    }
    let trigger = Box::new(Trigger { uid: by.uid, gid: by.gid, user, ..*trigger });
    let proposed = api.door.propose_once(by, Command::SetTrigger { trigger }, request_id(&request)).await;
    let reply = proposed.map_err(|refusal| refused(&refusal))?;
    Ok(Response::new(CommandReply { reply: codec::encode(&reply).into() }))
}

/// Root, the user of this controller and those who may do everything (SlurmUser), or all if the site says so.
fn may_set(uid: u32, user: &str, own: u32, config: &Config) -> bool {
    let is_trusted = [0, own].contains(&uid) || config.controller.admins.iter().any(|name| name == user);
    // Only root can run programs as others.
    (is_trusted || config.jobs.users_set_triggers) && [0, uid].contains(&own)
}

/// Triggers are looked up so many at a time.
const BATCH: usize = 64;

/// All that the caller may know of: not those about jobs that are private.
pub fn list(api: &Api, request: &Request<Nothing>) -> Answer<Streamed<TriggersReply>> {
    let (by, reader, cluster) = (api.caller(request)?, api.reader(request)?, api.published.now());
    let judged = cluster.clone();
    let is_seen = move |trigger: &Arc<Trigger>| {
        let job = trigger.job.and_then(|id| judged.job(id));
        by.may_act_for(trigger.uid) || job.is_none_or(|job| reader.may_see_job(&judged, job))
    };
    let after =
        move |last: Option<&Arc<Trigger>>| cluster.triggers_after(last.map(|last| last.id), BATCH).cloned().collect();
    let triggers = in_batches(after).filter(is_seen).map(|trigger| codec::encode(&*trigger).into());
    Ok(listed(request, TriggersReply::default(), triggers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_set_by_those_who_may_do_everything() {
        let mut config = Config::default();
        config.controller.admins = vec!["slurm".into()];
        let may = |uid, user, own| may_set(uid, user, own, &config);
        assert!(may(0, "root", 0) && may(64, "slurm", 0) && may(1000, "alice", 1000));
        assert!(!may(1000, "alice", 0), "nobody else, unless the site says so");
        assert!(
            !may(64, "slurm", 1000) && !may(0, "root", 1000),
            "a controller that is not root runs nothing as others"
        );
        config.jobs.users_set_triggers = true;
        assert!(may_set(1000, "alice", 0, &config) && !may_set(1000, "alice", 64, &config));
    }
}
