//! Where a user's own cluster lives, also when the environment says nothing.
use std::path::{Path, PathBuf};

/// The configuration of the cluster that this user started with `spur up`.
pub fn own_conf() -> Option<PathBuf> {
    Some(home()?.join(".spur/spur.conf"))
}

/// `$HOME`, or what the password file says.
pub fn home() -> Option<PathBuf> {
    if let Some(home) = std::env::var_os("HOME").filter(|home| Path::new(home).is_absolute()) {
        return Some(home.into());
    }
    let uid = effective_uid()?;
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    home_of(&accounts, uid).map(PathBuf::from)
}

fn effective_uid() -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    Some(std::fs::metadata("/proc/self").ok()?.uid())
}

fn home_of(accounts: &str, uid: u32) -> Option<&str> {
    accounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let is_user = fields.get(2)?.parse() == Ok(uid);
        fields.get(5).copied().filter(|home| is_user && home.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_of_a_uid_is_read_from_the_password_file() {
        let accounts = "root:x:0:0:root:/root:/bin/bash\nbroken\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(home_of(accounts, 1000), Some("/home/ann"));
        assert_eq!(home_of(accounts, 0), Some("/root"));
        assert_eq!(home_of(accounts, 7), None);
    }
}
