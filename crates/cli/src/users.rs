//! User and group names as commands show them. Asked once each.
use std::cell::RefCell;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;

pub use wire::accounts::{Account, account, account_of, gid_of, group_name, uid_of, user_name};

/// Names that were looked up already.
#[derive(Default)]
pub struct Names {
    users: RefCell<HashMap<u32, String>>,
}

impl Names {
    /// The user's name, or the number where there is none.
    pub fn user(&self, uid: u32) -> String {
        self.users.borrow_mut().entry(uid).or_insert_with(|| user_name(uid).unwrap_or_else(|| uid.to_string())).clone()
    }
}

/// Who runs this command.
pub fn own_uid() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Root, SlurmUser (the user the controller runs as) and administrators see hidden partitions without asking for them.
pub fn sees_hidden(config: &model::Config) -> bool {
    let own = own_uid();
    let runs_it = std::fs::metadata(&config.controller.socket).is_ok_and(|socket| socket.uid() == own);
    own == 0 || runs_it || config.controller.admins.iter().any(|admin| uid_of(admin) == Some(own))
}

pub fn own_gid() -> u32 {
    rustix::process::getgid().as_raw()
}
