//! What `scontrol create` and `scontrol update` may say of a reservation, one by one.
use serde::{Deserialize, Serialize};

use crate::license::LicenseCount;
use crate::partition_field::NodesChange;
use crate::reservation::{Flag, Members};
use crate::time::{Span, Timestamp};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Field {
    Start(Timestamp),
    End(Timestamp),
    /// None is for ever: a year, as Slurm has it.
    Duration(Option<Span>),
    LongerBy(Span),
    ShorterBy(Span),
    Nodes(NodesChange),
    /// So many nodes; the state picks them.
    NodeCount(u32),
    /// So many cores: in all, or one number for each node.
    CoreCounts(Vec<u32>),
    Features(String),
    Users(MembersChange),
    Accounts(MembersChange),
    Groups(MembersChange),
    Licenses(Vec<LicenseCount>),
    BurstBuffer(String),
    Flags(Vec<Flag>),
    AddFlags(Vec<Flag>),
    RemoveFlags(Vec<Flag>),
    /// With `PURGE_COMP=…`.
    PurgeAfter(Span),
    Partition(String),
    MaxStartDelay(Span),
    Comment(String),
    /// The next time of a reservation that repeats is left out.
    Skip,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MembersChange {
    To(Members),
    With(Members),
    Without(Members),
}

impl MembersChange {
    pub fn members(&self) -> &Members {
        match self {
            MembersChange::To(members) | MembersChange::With(members) | MembersChange::Without(members) => members,
        }
    }

    /// What becomes of `present`; none if a list would both let in and shut out, or lacks what is to be taken away.
    pub fn apply(&self, present: &Members) -> Option<Members> {
        let members = self.members();
        let mut changed = present.clone();
        match self {
            MembersChange::To(members) => return Some(members.clone()),
            MembersChange::With(_) => {
                if !present.names.is_empty() && present.are_excluded != members.are_excluded {
                    return None;
                }
                changed.are_excluded = members.are_excluded;
                let new = members.names.iter().filter(|name| !present.names.contains(name));
                changed.names.extend(new.cloned());
            }
            MembersChange::Without(_) => {
                if members.names.iter().any(|name| !present.names.contains(name)) {
                    return None;
                }
                changed.names.retain(|name| !members.names.contains(name));
            }
        }
        Some(changed)
    }
}
