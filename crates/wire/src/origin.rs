//! Where a call comes from, and for whom: the kernel's word, a certificate's, or that of a daemon that passes the call on.
//!
//! A daemon that passes a call on writes where it came from into a header. The header is believed only from those who could
//! be anybody anyway: controllers (by certificate, or on this machine by being root or the same user), and, for users of its own
//! machine, a node.
use tonic::codegen::http;
use tonic::transport::server::UdsConnectInfo;

use crate::peer::Peer;
use crate::tls::Principal;
use crate::tls::listen::Caller;

pub const HEADER: &str = "spur-origin";
/// The certificate that was shown to the controller that passed the call on.
pub const CERTIFICATE_HEADER: &str = "spur-certificate";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub from: From,
    /// None: the daemon itself.
    pub user: Option<Peer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum From {
    /// A process on this machine, or on that of the controller that passed its call on.
    Local,
    Controller(u64),
    Node(String),
    /// Somebody with a token that this cluster has signed.
    Bearer,
    /// Nobody we know: it has no certificate.
    Stranger,
}

impl Origin {
    /// Of a request that has just come in.
    pub fn of<B>(request: &http::Request<B>) -> Option<Origin> {
        let said = request.headers().get(HEADER).and_then(|value| value.to_str().ok());
        Origin::judged(said, request.extensions())
    }

    /// By the kernel's word alone.
    pub fn of_local<B>(request: &http::Request<B>) -> Option<Origin> {
        Origin::judged(None, request.extensions())
    }

    /// As [`Origin::of`], for a request that has gone through no router.
    pub fn of_call<T>(request: &tonic::Request<T>) -> Option<Origin> {
        let said = request.metadata().get(HEADER).and_then(|value| value.to_str().ok());
        Origin::judged(said, request.extensions())
    }

    /// The fingerprint of the certificate that this call's first connection has shown, if it is known.
    pub fn shown_certificate<T>(request: &tonic::Request<T>) -> Option<String> {
        let metadata = request.metadata();
        match metadata.contains_key(HEADER) && may_pass_on(request.extensions()) {
            true => Some(metadata.get(CERTIFICATE_HEADER)?.to_str().ok()?.to_owned()),
            false => Some(request.extensions().get::<Caller>()?.fingerprint.clone()),
        }
    }

    /// The certificate that another controller says it was shown with a call it passes on.
    pub fn passed_on_certificate<B>(request: &http::Request<B>) -> Option<&str> {
        let value = request.headers().get(CERTIFICATE_HEADER).filter(|_| may_pass_on(request.extensions()))?;
        value.to_str().ok()
    }

    fn judged(said: Option<&str>, extensions: &http::Extensions) -> Option<Origin> {
        let said = said.and_then(Origin::read);
        let connection = Origin::of_connection(extensions)?;
        Some(match (&connection.from, said) {
            (From::Local, Some(said)) if connection.user.is_some_and(|user| is_own(user.uid)) => said,
            (From::Controller(_), Some(said)) => said,
            (From::Node(name), Some(said)) if said.from == From::Local => {
                Origin { from: From::Node(name.clone()), user: said.user }
            }
            _ => connection,
        })
    }

    fn of_connection(extensions: &http::Extensions) -> Option<Origin> {
        if let Some(caller) = extensions.get::<Caller>() {
            let from = match &caller.principal {
                Some(Principal::Controller(member)) => From::Controller(*member),
                Some(Principal::Node(name)) => From::Node(name.clone()),
                None => From::Stranger,
            };
            return Some(Origin { from, user: None });
        }
        let credentials = extensions.get::<UdsConnectInfo>()?.peer_cred?;
        let user = Peer { uid: credentials.uid(), gid: credentials.gid(), pid: credentials.pid() };
        Some(Origin { from: From::Local, user: Some(user) })
    }

    /// As it stands in the header.
    pub fn written(&self) -> String {
        let from = match &self.from {
            From::Local => "local".to_owned(),
            From::Controller(member) => format!("controller:{member}"),
            From::Node(name) => format!("node:{name}"),
            From::Bearer => "bearer".to_owned(),
            From::Stranger => "stranger".to_owned(),
        };
        match self.user {
            Some(user) => format!("{from} {} {}", user.uid, user.gid),
            None => from,
        }
    }

    /// As people read it.
    pub fn place(&self) -> String {
        match &self.from {
            From::Local => "local".into(),
            From::Controller(member) => format!("controller {member}"),
            From::Node(name) => format!("node {name}"),
            From::Bearer => "token".into(),
            From::Stranger => "stranger".into(),
        }
    }

    pub(crate) fn read(text: &str) -> Option<Origin> {
        let mut words = text.split(' ');
        let from = match words.next()? {
            "local" => From::Local,
            "stranger" => From::Stranger,
            "bearer" => From::Bearer,
            word => match word.strip_prefix("controller:") {
                Some(member) => From::Controller(member.parse().ok()?),
                None => From::Node(word.strip_prefix("node:")?.to_owned()),
            },
        };
        let user = match words.next() {
            Some(uid) => Some(Peer { uid: uid.parse().ok()?, gid: words.next()?.parse().ok()?, pid: None }),
            None => None,
        };
        words.next().is_none().then_some(Origin { from, user })
    }
}

/// The connection is that of a controller.
fn may_pass_on(extensions: &http::Extensions) -> bool {
    Origin::of_connection(extensions).is_some_and(|connection| match connection.from {
        From::Controller(_) => true,
        From::Local => connection.user.is_some_and(|user| is_own(user.uid)),
        From::Node(_) | From::Bearer | From::Stranger => false,
    })
}

/// Root, and whoever this daemon runs as, need not lie to us.
fn is_own(uid: u32) -> bool {
    // SAFETY: geteuid cannot fail.
    uid == 0 || uid == unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_the_same() {
        let user = Some(Peer { uid: 1000, gid: 100, pid: None });
        for from in [From::Local, From::Controller(3), From::Node("n1".into()), From::Bearer, From::Stranger] {
            for user in [None, user] {
                let origin = Origin { from: from.clone(), user };
                assert_eq!(Origin::read(&origin.written()), Some(origin));
            }
        }
        for wrong in ["", "root", "local 0", "local 0 x", "local 0 0 0", "node"] {
            assert_eq!(Origin::read(wrong), None, "{wrong}");
        }
    }
}
