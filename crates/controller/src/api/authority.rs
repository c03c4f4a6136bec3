//! Who a caller is to this cluster.
use model::Caller;
use state::Cluster;
use wire::accounts;
use wire::peer::Peer;

/// Root, the user the controller runs as, and the configured administrators may do everything.
pub fn caller(cluster: &Cluster, peer: Peer) -> Caller {
    // SAFETY: geteuid cannot fail.
    let own_uid = unsafe { libc::geteuid() };
    let admins = &cluster.config().controller.admins;
    let is_listed = || admins.iter().any(|admin| accounts::uid_of(admin) == Some(peer.uid));
    let is_admin = peer.uid == 0 || peer.uid == own_uid || is_listed();
    Caller { uid: peer.uid, gid: peer.gid, is_admin }
}
