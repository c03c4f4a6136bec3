//! Who a caller is to this cluster.
use model::Caller;
use model::accounts::AdminLevel;
use state::Cluster;
use wire::accounts;
use wire::peer::Peer;

use crate::names::Names;

/// Root, the user the controller runs as, the configured administrators, and users with an admin level may do everything.
pub fn caller(cluster: &Cluster, peer: Peer, names: &Names) -> Caller {
    // SAFETY: geteuid cannot fail.
    let own_uid = unsafe { libc::geteuid() };
    let admins = &cluster.config().controller.admins;
    let is_listed = || admins.iter().any(|admin| accounts::uid_of(admin) == Some(peer.uid));
    let has_level = || {
        let users = &cluster.accounts().users;
        !users.is_empty() && users.get(&names.user(peer.uid)).is_some_and(|user| user.admin_level > AdminLevel::None)
    };
    let is_admin = peer.uid == 0 || peer.uid == own_uid || is_listed() || has_level();
    Caller { uid: peer.uid, gid: peer.gid, is_admin }
}
