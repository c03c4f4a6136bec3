//! Where files and sockets of a cluster are that a slurm.conf describes. Slurm has ports where we have sockets: these lie
//! in the directories that the daemons own, however deep these are (`wire::long_path`), so that nobody else can sit
//! down in their places.

pub(crate) fn controller_socket(state_dir: &str) -> String {
    format!("{}/controller.sock", state_dir.trim_end_matches('/'))
}

pub(crate) fn agent_socket(spool_dir: &str) -> String {
    format!("{}/agent.sock", spool_dir.trim_end_matches('/'))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_lie_with_the_daemons_however_deep() {
        assert_eq!(controller_socket("/var/spool/slurmctld/"), "/var/spool/slurmctld/controller.sock");
        assert_eq!(agent_socket(&spool_dir("/var/spool/slurmd")), "/var/spool/slurmd/%n/agent.sock");
        assert_eq!(agent_socket(&spool_dir("/var/spool/slurmd.%h")), "/var/spool/slurmd.%n/agent.sock");
        let deep = format!("/tmp/{}", "x".repeat(100));
        assert_eq!(controller_socket(&deep), format!("{deep}/controller.sock"));
        assert_eq!(agent_socket(&spool_dir(&deep)), format!("{deep}/%n/agent.sock"));
    }

    #[test]
    fn agents_of_one_machine_do_not_share_a_pid_file() {
        assert_eq!(one_a_node("/run/slurmd.pid", 1), "/run/slurmd.pid");
        assert_eq!(one_a_node("/run/slurmd.pid", 2), "/run/slurmd-%n.pid");
        assert_eq!(one_a_node("/run.d/slurmd", 2), "/run.d/slurmd-%n");
        assert_eq!(one_a_node("/run/slurmd.%h.pid", 2), "/run/slurmd.%n.pid");
    }
}
