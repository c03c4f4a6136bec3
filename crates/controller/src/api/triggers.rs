//! Triggers: who may set them is judged here, where it is known whom this controller can run programs as.
use model::Command;
use model::trigger::Trigger;
use tonic::{Request, Response};
use wire::proto::{CommandReply, CommandRequest, Nothing, TriggersReply};
use wire::refusal::to_status;

use super::{Answer, Api, codec, read, refused, request_id};

/// The trigger is its caller's own, whatever it says.
pub async fn set(api: &Api, request: Request<CommandRequest>) -> Answer<CommandReply> {
    let by = api.caller(&request)?;
    let Command::SetTrigger { trigger } = read(&request.get_ref().command)? else {
        return Err(tonic::Status::invalid_argument("the command does not belong to this call"));
    };
    let cluster = api.published.now();
    // SAFETY: a plain system call that cannot fail.
    let own = unsafe { libc::geteuid() };
    if by.uid != own && by.uid != 0 && !cluster.config().jobs.users_set_triggers {
        return Err(to_status(&model::Reject::NotPermitted));
    }
    // Only root can run programs as others.
    if own != 0 && own != by.uid {
        return Err(to_status(&model::Reject::NotPermitted));
    }
    // Whoever may not see a job does not hear of its end either.
    let reader = api.reader(&request)?;
    if trigger.job.and_then(|id| cluster.job(id)).is_some_and(|job| !reader.may_see_job(&cluster, job)) {
        return Err(to_status(&model::Reject::NoSuchJob));
    }
    let user = api.names.user(by.uid);
    let trigger = Box::new(Trigger { uid: by.uid, gid: by.gid, user, ..*trigger });
    let proposed = api.door.propose_once(by, Command::SetTrigger { trigger }, request_id(&request)).await;
    let reply = proposed.map_err(|refusal| refused(&refusal))?;
    Ok(Response::new(CommandReply { reply: codec::encode(&reply).into() }))
}

/// All that the caller may know of: not those about jobs that are private.
pub fn list(api: &Api, request: &Request<Nothing>) -> Answer<TriggersReply> {
    let (by, reader, cluster) = (api.caller(request)?, api.reader(request)?, api.published.now());
    let is_seen = |trigger: &&std::sync::Arc<Trigger>| {
        let job = trigger.job.and_then(|id| cluster.job(id));
        by.may_act_for(trigger.uid) || job.is_none_or(|job| reader.may_see_job(&cluster, job))
    };
    let triggers = cluster.triggers().filter(is_seen).map(|trigger| codec::encode(&**trigger).into()).collect();
    Ok(Response::new(TriggersReply { triggers }))
}
