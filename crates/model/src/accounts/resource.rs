//! Licences that licence servers give out, kept with the accounts: each cluster may use its part of them.
use std::collections::{BTreeMap, BTreeSet};

use super::Accounts;

record! {
    pub struct Resource {
        pub id: u32,
        pub name: String,
        pub server: String,
        /// What manages them (`flexlm`); nothing is asked of it.
        pub server_type: String,
        pub description: String,
        pub count: u32,
        /// Percent of the count, by cluster as associations name it.
        pub shares: BTreeMap<String, u16>,
    }

    /// What is said of one that is added or changed.
    pub struct ResourceEdit {
        pub count: Option<u32>,
        pub description: Option<String>,
        pub server_type: Option<String>,
        /// Of each of the clusters that are named.
        pub percent: Option<u16>,
    }

    /// Which ones; empty lists let everything pass.
    pub struct ResourceFilter {
        pub names: BTreeSet<String>,
        pub servers: BTreeSet<String>,
        pub server_types: BTreeSet<String>,
        pub descriptions: BTreeSet<String>,
        pub ids: BTreeSet<u32>,
        pub clusters: BTreeSet<String>,
        pub percents: BTreeSet<u16>,
    }
}

/// All of it is given out.
pub const WHOLE: u32 = 100;

impl Resource {
    /// As jobs ask for it.
    pub fn license(&self) -> String {
        format!("{}@{}", self.name, self.server)
    }

    /// Percent that clusters may use.
    pub fn allocated(&self) -> u32 {
        self.shares.values().copied().map(u32::from).sum()
    }

    /// What a cluster with such a share may use.
    pub fn part(&self, percent: u16) -> u32 {
        (u64::from(self.count) * u64::from(percent) / u64::from(WHOLE)).try_into().unwrap_or(u32::MAX)
    }
}

impl ResourceEdit {
    /// All that concerns the resource itself, not its clusters.
    pub fn set(&self, resource: &mut Resource) {
        let set = |target: &mut String, value: &Option<String>| {
            if let Some(value) = value {
                target.clone_from(value);
            }
        };
        set(&mut resource.description, &self.description);
        set(&mut resource.server_type, &self.server_type);
        resource.count = self.count.unwrap_or(resource.count);
    }
}

impl ResourceFilter {
    /// Whether it is about the parts of clusters, not about whole resources.
    pub fn is_about_shares(&self) -> bool {
        !self.clusters.is_empty() || !self.percents.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        *self == ResourceFilter::default()
    }

    pub fn passes(&self, resource: &Resource) -> bool {
        let passes = |wanted: &BTreeSet<String>, value: &String| wanted.is_empty() || wanted.contains(value);
        passes(&self.names, &resource.name)
            && passes(&self.servers, &resource.server)
            && passes(&self.server_types, &resource.server_type)
            && passes(&self.descriptions, &resource.description)
            && (self.ids.is_empty() || self.ids.contains(&resource.id))
    }

    pub fn passes_share(&self, cluster: &str, percent: u16) -> bool {
        (self.clusters.is_empty() || self.clusters.contains(cluster))
            && (self.percents.is_empty() || self.percents.contains(&percent))
    }

    /// With clusters named as associations name them. The error is the one that nobody knows.
    pub fn seen_from(mut self, accounts: &Accounts, own_name: &str) -> Result<ResourceFilter, String> {
        if !self.clusters.is_empty() {
            self.clusters = accounts.clusters_meant(own_name, &self.clusters)?.into_iter().collect();
        }
        Ok(self)
    }
}

impl Accounts {
    pub fn resource(&self, name: &str, server: &str) -> Option<&Resource> {
        self.resources.values().find(|one| one.name == name && one.server == server)
    }

    /// The licences that jobs of this cluster may have.
    pub fn licenses_here(&self) -> impl Iterator<Item = (String, u32)> + '_ {
        self.resources.values().filter_map(|one| Some((one.license(), one.part(*one.shares.get("")?))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_the_whole_licences_of_its_part() {
        let one =
            Resource { count: 7, shares: BTreeMap::from([("".into(), 50), ("o".into(), 25)]), ..Default::default() };
        assert_eq!((one.part(50), one.part(25), one.part(100), one.part(0), one.allocated()), (3, 1, 7, 0, 75));
    }
}
