//! Where files and sockets of a cluster are that a slurm.conf describes. Slurm has ports where we have sockets: these lie
//! in the directories that the daemons own, so that nobody else can sit down in their places.

/// Room that the kernel gives the path of a Unix socket, less some for temporary names beside it.
const SOCKET_PATH_MAX: usize = 100;
/// Room for the name of a node.
const NODE_NAME_ROOM: usize = 32;

pub(crate) fn controller_socket(state_dir: &str) -> String {
    let path = format!("{}/controller.sock", state_dir.trim_end_matches('/'));
    if path.len() <= SOCKET_PATH_MAX { path } else { format!("{}/controller.sock", short_directory(state_dir)) }
}

pub(crate) fn agent_socket(spool_dir: &str) -> String {
    let path = format!("{}/agent.sock", spool_dir.trim_end_matches('/'));
    let n_names = path.matches("%n").count();
    if path.len() + n_names * NODE_NAME_ROOM <= SOCKET_PATH_MAX + n_names * "%n".len() {
        return path;
    }
    format!("{}/agent-%n.sock", short_directory(spool_dir))
}

/// `%h` is the node's name too: here a node's host is known by no other. Every agent needs a spool of its own.
pub(crate) fn spool_dir(given: &str) -> String {
    let path = for_nodes(given);
    if path.contains("%n") { path } else { format!("{}/%n", path.trim_end_matches('/')) }
}

pub(crate) fn for_nodes(given: &str) -> String {
    given.replace("%h", "%n")
}

/// `/run/slurmd.pid` for several agents of one machine: `/run/slurmd-%n.pid`.
pub(crate) fn one_a_node(given: &str, n_nodes: usize) -> String {
    let path = for_nodes(given);
    if n_nodes < 2 || path.contains("%n") {
        return path;
    }
    let name_at = path.rfind('/').map_or(0, |slash| slash + 1);
    match path[name_at..].rfind('.') {
        Some(dot) if dot > 0 => format!("{}-%n{}", &path[..name_at + dot], &path[name_at + dot..]),
        _ => format!("{path}-%n"),
    }
}

/// Named after the directory it stands for, so that it is found again by everybody who reads the file.
fn short_directory(dir: &str) -> String {
    // FNV-1a: the same in every version.
    let hash = dir
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("/tmp/spur-{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_lie_with_the_daemons_unless_they_would_be_too_deep() {
        assert_eq!(controller_socket("/var/spool/slurmctld/"), "/var/spool/slurmctld/controller.sock");
        assert_eq!(agent_socket(&spool_dir("/var/spool/slurmd")), "/var/spool/slurmd/%n/agent.sock");
        assert_eq!(agent_socket(&spool_dir("/var/spool/slurmd.%h")), "/var/spool/slurmd.%n/agent.sock");
        let deep = format!("/tmp/{}", "x".repeat(100));
        assert!(controller_socket(&deep).starts_with("/tmp/spur-") && controller_socket(&deep).len() < 50);
        assert!(agent_socket(&spool_dir(&deep)).ends_with("/agent-%n.sock"));
    }

    #[test]
    fn agents_of_one_machine_do_not_share_a_pid_file() {
        assert_eq!(one_a_node("/run/slurmd.pid", 1), "/run/slurmd.pid");
        assert_eq!(one_a_node("/run/slurmd.pid", 2), "/run/slurmd-%n.pid");
        assert_eq!(one_a_node("/run.d/slurmd", 2), "/run.d/slurmd-%n");
        assert_eq!(one_a_node("/run/slurmd.%h.pid", 2), "/run/slurmd.%n.pid");
    }
}
