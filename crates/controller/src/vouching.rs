//! What a node's word about a user is worth. A node is never more than the ordinary users who have jobs on it, or who log in to it:
//! whoever is root there can say anything in their names, and must be able to say nothing in anybody else's.
use state::Cluster;
use wire::accounts;
use wire::peer::Peer;

use crate::api::authority::{Level, level};
use crate::names::Names;

/// Who is nobody in particular.
const NOBODY: u32 = 65_534;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vouched {
    /// In a group that this machine's user database has the user in.
    Believed(Peer),
    /// As nobody: may ask what anybody may.
    Squashed(Peer),
}

/// Of a user whom `node` names.
pub fn vouched(cluster: &Cluster, names: &Names, node: &str, said: Peer) -> Vouched {
    let is_login = cluster.is_login_node(node);
    let believed = |gid| Vouched::Believed(Peer { uid: said.uid, gid, pid: None });
    let known = accounts::vouched_gid(said.uid, said.gid);
    let (Some(gid), true) = (known, is_login || cluster.has_job_on(said.uid, node)) else { return squashed() };
    let is_mighty = level(cluster, Peer { gid, ..said }, names) > Level::User;
    match is_mighty && (!is_login || cluster.config().controller.root_squash) {
        true => squashed(),
        false => believed(gid),
    }
}

fn squashed() -> Vouched {
    let gid = accounts::account(NOBODY).map_or(NOBODY, |account| account.gid);
    Vouched::Squashed(Peer { uid: NOBODY, gid, pid: None })
}
