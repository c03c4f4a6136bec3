//! `scontrol token`: a word that stands for a user where the kernel cannot speak.
use model::time::Span;
use model::trust::TrustChange;
use model::{Caller, Command, Reject};
use tonic::{Response, Status};
use wire::origin::From;
use wire::peer::Peer;
use wire::proto::{UserTokenReply, UserTokenRequest};
use wire::refusal::to_status;
use wire::{accounts, bearer};

use super::authority::{Level, level};
use super::{Answer, Api, refused};

/// As Slurm has it.
const USUAL_LIFESPAN_SECS: u64 = 1800;

pub async fn make(api: &Api, by: Caller, from: &From, request: UserTokenRequest) -> Answer<UserTokenReply> {
    let own = api.names.user(by.uid);
    let user = if request.user.is_empty() { own.clone() } else { request.user };
    let peer = Peer { uid: by.uid, gid: by.gid, pid: None };
    let is_administrator = || level(&api.published.now(), peer, &api.names) == Level::Administrator;
    if user != own && !is_administrator() {
        return Err(to_status(&Reject::NotPermitted));
    }
    // A token that begets tokens would never end.
    if *from == From::Bearer {
        return Err(to_status(&Reject::NotPermitted));
    }
    if accounts::account_of(&user).is_none() {
        return Err(to_status(&Reject::NoSuchUser));
    }
    let lifespan = match request.lifespan_secs {
        0 => USUAL_LIFESPAN_SECS,
        secs => secs,
    };
    let longest = api.published.now().config().controller.token_lifespan_max;
    if Span::from_secs(lifespan) > longest {
        let why = format!("lifespan={lifespan}: tokens of this cluster live {} seconds at most", longest.secs());
        return Err(Status::invalid_argument(why));
    }
    let key = key(api).await?;
    let token = bearer::sign(&key, &user, api.door.now().secs(), lifespan);
    tracing::info!(by = own, user, lifespan, "a token was given out");
    Ok(Response::new(UserTokenReply { token }))
}

/// The key is made when the first token is asked for; of two that are made at once, the first one stays.
async fn key(api: &Api) -> Result<Vec<u8>, Status> {
    let known = api.published.now().trust().jwt_key.clone();
    if !known.is_empty() {
        return Ok(known);
    }
    let fresh: [u8; 32] = wire::random::bytes();
    let change = Command::Trust(TrustChange::KeepJwtKey { key: fresh.to_vec() });
    api.door.propose(Caller::SYSTEM, change).await.map_err(|refusal| refused(&refusal))?;
    Ok(api.published.now().trust().jwt_key.clone())
}
