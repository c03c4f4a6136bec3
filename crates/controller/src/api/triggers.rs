//! Triggers: who may set them is judged here, where it is known whom this controller can run programs as.
use model::Command;
use model::trigger::Trigger;
use tonic::{Request, Response};
use wire::proto::{CommandReply, CommandRequest};
use wire::refusal::to_status;

use super::{Answer, Api, codec, read, refused, request_id};

/// The trigger is its caller's own, whatever it says.
pub async fn set(api: &Api, request: Request<CommandRequest>) -> Answer<CommandReply> {
    let by = api.caller(&request)?;
    let Command::SetTrigger { trigger } = read(&request.get_ref().command)? else {
        return Err(tonic::Status::invalid_argument("the command does not belong to this call"));
    };
    // SAFETY: a plain system call that cannot fail.
    let own = unsafe { libc::geteuid() };
    // Only root can run programs as others.
    if own != 0 && own != by.uid {
        return Err(to_status(&model::Reject::NotPermitted));
    }
    let user = api.names.user(by.uid);
    let trigger = Box::new(Trigger { uid: by.uid, gid: by.gid, user, ..*trigger });
    let proposed = api.door.propose_once(by, Command::SetTrigger { trigger }, request_id(&request)).await;
    let reply = proposed.map_err(|refusal| refused(&refusal))?;
    Ok(Response::new(CommandReply { reply: codec::encode(&reply).into() }))
}
