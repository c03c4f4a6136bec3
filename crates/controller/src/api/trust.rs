//! Machines that join, renew their certificates, and leave.
use std::time::Duration;

use model::time::Span;
use model::trust::{JoinRequest, JoinToken, Joined, Role, Trust, TrustChange, controller_label, node_label};
use model::{Caller, Command, NodeName, Reject, Timestamp, codec};
use tonic::{Response, Status};
use wire::origin::{From, Origin};
use wire::proto::{CommandReply, Nothing, TokenReply};
use wire::refusal::to_status;
use wire::tls::Principal;
use wire::tls::authority::{Authority, Issued};
use wire::tls::token::{self, Token};

use super::{Answer, Api, refused};
use crate::leader::neighbours;

/// Long enough to walk to the other machine.
const TOKEN_LIFETIME: Span = Span::from_secs(3600);

/// A renewal whose answer got lost leaves a certificate behind; every one is kept in the state until it ends.
const STANDING_MAX: usize = 64;

pub async fn make_token(api: &Api, by: Caller, role: Role) -> Answer<TokenReply> {
    if !by.is_admin {
        return Err(to_status(&Reject::NotPermitted));
    }
    let trust = trust(api)?;
    if role == Role::Login && api.published.now().rules() < 3 {
        return Err(Status::failed_precondition("login nodes join when all controllers are of this release"));
    }
    let token = Token::new(&trust.ca_certificate).ok_or_else(|| Status::internal("the authority is unreadable"))?;
    let change =
        TrustChange::AddToken { hash: token.hash(), token: JoinToken { until: api.door.now() + TOKEN_LIFETIME, role } };
    propose(api, by, change).await?;
    Ok(Response::new(TokenReply { token: token.to_string(), controllers: addresses(api) }))
}

/// The token is all that whoever asks has to show.
pub async fn join(api: &Api, request: JoinRequest) -> Answer<CommandReply> {
    let trust = trust(api)?;
    let hash = token::hash(&request.secret);
    // No certificate is made for somebody who knocks without a token.
    let Some(granted) = trust.tokens.get(&hash).map(|token| token.role) else {
        return Err(Status::permission_denied("the join token was used, has expired, or is none of ours"));
    };
    // Whoever joins need not know which kind of node the token makes.
    let role = match (request.role, granted) {
        (Role::Node | Role::Login, Role::Login) => Role::Login,
        (asked, _) => asked,
    };
    if let (Role::Node, Some(node)) = (role, &request.node)
        && api.published.now().config().controller.login_nodes.contains(&node.name)
    {
        // It would be believed about every user: only who was given such a token may take the name.
        let why = format!("{} is one of `login_nodes`: it joins with a token of `spur token --login`", node.name);
        return Err(Status::permission_denied(why));
    }
    let member = match role {
        Role::Node | Role::Login => 0,
        Role::Controller => {
            let highest = api.journal.standing().members.iter().map(|member| member.id).max().unwrap_or(1);
            trust.last_member.max(highest) + 1
        }
    };
    let principal = match (&role, &request.node) {
        (Role::Controller, _) => Principal::Controller(member),
        (Role::Node | Role::Login, Some(node)) if is_name(node.name.as_str()) => Principal::Node(node.name.to_string()),
        (Role::Node | Role::Login, _) => return Err(Status::invalid_argument("a node must say its name")),
    };
    let issued = sign(api, &trust, &principal, &request.public_key)?;
    let node = request.node.filter(|_| role != Role::Controller).map(Box::new);
    let until = Timestamp::from_secs(issued.until_secs);
    let fingerprint = issued.fingerprint.clone();
    propose(api, Caller::SYSTEM, TrustChange::Enroll { hash, role, member, node, fingerprint, until }).await?;
    tracing::info!(?principal, "joined the cluster");
    Ok(joined(api, &trust, issued, member))
}

/// Whoever shows a certificate that holds gets the next one. Whether it still does is judged when the entry is applied.
pub async fn renew(api: &Api, origin: &Origin, shown: String, public_key: &[u8]) -> Answer<CommandReply> {
    let trust = trust(api)?;
    let (principal, name) = match &origin.from {
        From::Node(node) => (Principal::Node(node.clone()), node_label(node)),
        From::Controller(member) => (Principal::Controller(*member), controller_label(*member)),
        From::Local | From::Bearer | From::Stranger => return Err(to_status(&Reject::NotPermitted)),
    };
    if trust.n_standing(&name, api.door.now()) >= STANDING_MAX {
        return Err(Status::resource_exhausted(format!("{name} has {STANDING_MAX} certificates that hold")));
    }
    let issued = sign(api, &trust, &principal, public_key)?;
    let (fingerprint, until) = (issued.fingerprint.clone(), Timestamp::from_secs(issued.until_secs));
    propose(api, Caller::SYSTEM, TrustChange::Renew { name, fingerprint, until, shown }).await?;
    Ok(joined(api, &trust, issued, 0))
}

pub async fn remove_node(api: &Api, by: Caller, node: NodeName) -> Answer<Nothing> {
    propose(api, by, TrustChange::RemoveNode { node: node.clone() }).await?;
    api.agents.close(&node);
    Ok(Response::new(Nothing {}))
}

fn trust(api: &Api) -> Result<Trust, Status> {
    let trust = api.published.now().trust().clone();
    match trust.ca_key.is_empty() {
        true => Err(Status::failed_precondition("this cluster is one machine: it was not made with `spur init`")),
        false => Ok((*trust).clone()),
    }
}

fn sign(api: &Api, trust: &Trust, who: &Principal, public_key: &[u8]) -> Result<Issued, Status> {
    let lifetime = Duration::from_micros(api.published.now().config().controller.certificate_lifetime.0);
    let signed = Authority::open(&trust.ca_key).and_then(|authority| authority.sign(who, public_key, lifetime));
    signed.map_err(|error| Status::invalid_argument(error.to_string()))
}

fn joined(api: &Api, trust: &Trust, issued: Issued, member: u64) -> Response<CommandReply> {
    let cluster = api.published.now();
    let config = (**cluster.config()).clone();
    let joined = Joined {
        certificate: issued.pem,
        ca_certificate: trust.ca_certificate.clone(),
        from_secs: issued.from_secs,
        until_secs: issued.until_secs,
        member,
        controllers: addresses(api),
        config,
    };
    Response::new(CommandReply { reply: codec::encode(&joined).into() })
}

/// Those that other machines can reach.
fn addresses(api: &Api) -> Vec<String> {
    neighbours::addresses(&api.published.now(), &api.journal)
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.len() <= 120
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

async fn propose(api: &Api, by: Caller, change: TrustChange) -> Result<(), Status> {
    api.door.propose(by, Command::Trust(change)).await.map(|_| ()).map_err(|refusal| refused(&refusal))
}
