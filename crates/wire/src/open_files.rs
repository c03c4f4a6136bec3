//! How many files this process may have open, and what of that is for connections.
use std::sync::OnceLock;

/// With fewer than these left for itself, a daemon cannot keep its journal or start programs.
const OWN_FILES_MIN: usize = 192;
const CONNECTIONS_MAX: usize = 1 << 19;

/// Takes all that the system lets this process have; gives how many files that is. Only the first call changes anything.
pub fn raise_limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the struct is valid.
        unsafe {
            if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
                return 1024;
            }
            let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0 {
                limit = raised;
            }
        }
        usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
    })
}

/// What of so many files connections may take; the rest is the daemon's own, at any time.
pub fn for_connections(n_files: usize) -> usize {
    let own = (n_files / 8).max(OWN_FILES_MIN).min(n_files / 2);
    (n_files - own).min(CONNECTIONS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_are_left_whatever_the_limit() {
        for (n_files, expected) in [(64, 32), (256, 128), (1024, 832), (65_536, 57_344), (usize::MAX, 1 << 19)] {
            assert_eq!(for_connections(n_files), expected, "{n_files}");
        }
    }
}
