//! Other clusters: their trees of accounts may be kept here, as in a database that several clusters share.
use super::{Accounts, AdminLevel, User};

record! {
    pub struct OtherCluster {
        pub name: String,
        /// `capability`, `capacity`, `capapacity`, with `*` in front while it is only being set up; empty: none.
        pub classification: String,
        pub flags: std::collections::BTreeSet<String>,
    }
}

impl Accounts {
    /// As associations name it: nothing for this cluster. None: nobody knows it.
    pub fn cluster_known_as(&self, own_name: &str, name: &str) -> Option<String> {
        if name.eq_ignore_ascii_case(own_name) {
            return Some(String::new());
        }
        self.clusters.contains_key(&name.to_lowercase()).then(|| name.to_lowercase())
    }

    /// Those that are named, as associations name them, or all if none is. The error is the one that nobody knows.
    pub fn clusters_meant<'a>(
        &self,
        own_name: &str,
        names: impl IntoIterator<Item = &'a String>,
    ) -> Result<Vec<String>, String> {
        let mut named = names.into_iter().peekable();
        if named.peek().is_none() {
            return Ok(std::iter::once(String::new()).chain(self.clusters.keys().cloned()).collect());
        }
        named.map(|name| self.cluster_known_as(own_name, name).ok_or_else(|| name.clone())).collect()
    }
}

impl User {
    /// The account of jobs that name none; empty: the user has no place there.
    pub fn default_account_in(&self, cluster: &str) -> &str {
        match cluster {
            "" => &self.default_account,
            other => self.elsewhere.get(other).map_or("", String::as_str),
        }
    }

    pub fn set_default_account_in(&mut self, cluster: &str, account: &str) {
        match cluster {
            "" => self.default_account = account.into(),
            other => drop(self.elsewhere.insert(other.into(), account.into())),
        }
    }

    pub fn is_administrator(&self) -> bool {
        self.admin_level == AdminLevel::Administrator
    }
}
