//! `scontrol token`: a word that stands for a user where the kernel cannot speak.
use model::time::Span;
use model::trust::{TokensRequest, TokensView, TrustChange};
use model::{Caller, Command, Reject, codec};
use tonic::{Response, Status};
use wire::origin::From;
use wire::peer::Peer;
use wire::proto::{CommandReply, UserTokenReply, UserTokenRequest};
use wire::refusal::to_status;
use wire::{accounts, bearer};

use super::authority::{Level, level};
use super::{Answer, Api, refused};

/// As Slurm has it.
const USUAL_LIFESPAN_SECS: u64 = 1800;

pub async fn make(api: &Api, by: Caller, from: &From, request: UserTokenRequest) -> Answer<UserTokenReply> {
    let own = api.names.user(by.uid);
    let user = if request.user.is_empty() { own.clone() } else { request.user };
    if user != own && !is_administrator(api, by) {
        return Err(to_status(&Reject::NotPermitted));
    }
    by_the_kernel(from)?;
    // Tokens are known by the name that the user database has.
    let user = accounts::account_of(&user).ok_or_else(|| to_status(&Reject::NoSuchUser))?.name;
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
    // A token of the same second as a revocation would be revoked, too: it is dated ahead.
    let revoked_secs = api.published.now().trust().user_tokens.get(&user).map_or(0, |known| known.revoked_secs);
    let issued_secs = api.door.now().secs().max(revoked_secs + 1);
    if knows_tokens(api) {
        let until_secs = issued_secs.saturating_add(lifespan);
        propose(api, TrustChange::NoteUserToken { user: user.clone(), issued_secs, until_secs }).await?;
    }
    let token = bearer::sign(&key, &user, issued_secs, lifespan);
    tracing::info!(by = own, user, lifespan, "a token was given out");
    Ok(Response::new(UserTokenReply { token }))
}

/// `spur token list|revoke|rotate`
pub async fn change(api: &Api, by: Caller, from: &From, asked: TokensRequest) -> Answer<CommandReply> {
    by_the_kernel(from)?;
    let is_administrator = is_administrator(api, by);
    match asked {
        TokensRequest::List => (),
        _ if !knows_tokens(api) => {
            return Err(Status::failed_precondition("tokens are revoked when all controllers are of this release"));
        }
        TokensRequest::Revoke { user } => {
            let account = accounts::account_of(&user);
            // Whoever has left the user database may have tokens still.
            let user = account.map_or(user, |account| account.name);
            if !is_administrator && user != api.names.user(by.uid) {
                return Err(to_status(&Reject::NotPermitted));
            }
            propose(api, TrustChange::RevokeUserTokens { user }).await?;
        }
        TokensRequest::Rotate { .. } if !is_administrator => return Err(to_status(&Reject::NotPermitted)),
        TokensRequest::Rotate { at_once } => {
            let cluster = api.published.now();
            let longest = cluster.config().controller.token_lifespan_max;
            let old_until = (!at_once).then(|| api.door.now() + longest);
            let fresh: [u8; 32] = wire::random::bytes();
            propose(api, TrustChange::RotateJwtKey { key: fresh.to_vec(), old_until }).await?;
        }
    }
    let cluster = api.published.now();
    let (trust, own) = (cluster.trust(), api.names.user(by.uid));
    let users = trust.user_tokens.iter().filter(|(user, _)| is_administrator || **user == own);
    let view = TokensView {
        users: users.map(|(user, known)| (user.clone(), known.clone())).collect(),
        old_keys_until: trust.old_jwt_keys.iter().map(|old| old.until).collect(),
    };
    Ok(Response::new(CommandReply { reply: codec::encode(&view).into() }))
}

/// A token that begets tokens would never end, and a node that asked for one would have its user for good.
fn by_the_kernel(from: &From) -> Result<(), Status> {
    match from {
        From::Local => Ok(()),
        From::Bearer | From::Node(_) | From::Controller(_) | From::Stranger => Err(to_status(&Reject::NotPermitted)),
    }
}

fn is_administrator(api: &Api, by: Caller) -> bool {
    let peer = Peer { uid: by.uid, gid: by.gid, pid: None };
    level(&api.published.now(), peer, &api.names) == Level::Administrator
}

/// Controllers of earlier releases cannot read such entries.
fn knows_tokens(api: &Api) -> bool {
    api.published.now().rules() >= 3
}

async fn propose(api: &Api, change: TrustChange) -> Result<(), Status> {
    let proposed = api.door.propose(Caller::SYSTEM, Command::Trust(change)).await;
    proposed.map(|_| ()).map_err(|refusal| refused(&refusal))
}

/// The key is made when the first token is asked for; of two that are made at once, the first one stays.
async fn key(api: &Api) -> Result<Vec<u8>, Status> {
    let known = api.published.now().trust().jwt_key.clone();
    if !known.is_empty() {
        return Ok(known);
    }
    let fresh: [u8; 32] = wire::random::bytes();
    propose(api, TrustChange::KeepJwtKey { key: fresh.to_vec() }).await?;
    Ok(api.published.now().trust().jwt_key.clone())
}
