//! What users may not see of each other (`PrivateData`).
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PrivateData {
    pub accounts: bool,
    pub events: bool,
    pub jobs: bool,
    pub nodes: bool,
    pub partitions: bool,
    pub reservations: bool,
    pub usage: bool,
    pub users: bool,
}

impl PrivateData {
    /// Slurm's words. None: one is not known.
    pub fn parse(text: &str) -> Option<PrivateData> {
        let mut found = PrivateData::default();
        for word in text.split(',').map(|word| word.trim().to_lowercase()).filter(|word| !word.is_empty()) {
            match word.as_str() {
                "none" => found = PrivateData::default(),
                // Nodes of the cloud are plain nodes here, which are always shown.
                "cloud" => (),
                "all" => {
                    found = PrivateData {
                        accounts: true,
                        events: true,
                        jobs: true,
                        nodes: true,
                        partitions: true,
                        reservations: true,
                        usage: true,
                        users: true,
                    }
                }
                word => *found.words_mut().into_iter().find(|(name, _)| *name == word)?.1 = true,
            }
        }
        Some(found)
    }

    fn words_mut(&mut self) -> [(&'static str, &mut bool); 8] {
        [
            ("accounts", &mut self.accounts),
            ("events", &mut self.events),
            ("jobs", &mut self.jobs),
            ("nodes", &mut self.nodes),
            ("partitions", &mut self.partitions),
            ("reservations", &mut self.reservations),
            ("usage", &mut self.usage),
            ("users", &mut self.users),
        ]
    }

    /// `jobs,usage`, or `none`.
    pub fn words(mut self) -> String {
        let set: Vec<&str> =
            self.words_mut().into_iter().filter(|(_, is_set)| **is_set).map(|(name, _)| name).collect();
        if set.is_empty() { "none".into() } else { set.join(",") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written() {
        for text in ["none", "jobs,usage", "accounts,events,jobs,nodes,partitions,reservations,usage,users"] {
            assert_eq!(PrivateData::parse(text).unwrap().words(), text);
        }
        assert_eq!(PrivateData::parse("Users, jobs").unwrap().words(), "jobs,users");
        assert_eq!(PrivateData::parse("jobs,secrets"), None);
    }
}
