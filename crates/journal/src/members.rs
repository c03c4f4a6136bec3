//! Who the members are, how far each is, and how that changes while the journal runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openraft::error::{CheckIsLeaderError, ClientWriteError, RaftError};
use openraft::{BasicNode, ChangeMembers};

use crate::batch::Raft;
use crate::error::ProposeError;
use crate::front::{Journal, Leadership};
use crate::gather;

/// One member, as this one knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub id: u64,
    pub address: String,
    /// Others only follow.
    pub is_voter: bool,
    /// How far its log reaches; only the leader knows.
    pub last_log: Option<u64>,
}

/// What this member knows of itself and the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    pub id: u64,
    pub term: u64,
    pub leader: Option<u64>,
    pub last_log: u64,
    pub last_applied: u64,
    pub members: Vec<Member>,
    /// For a leader: when a majority was heard last.
    pub quorum_age: Option<Duration>,
}

/// Why the members stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MembersError {
    #[error(transparent)]
    Propose(#[from] ProposeError),
    #[error("{0} is a member already, at another address: remove it first")]
    Taken(u64),
    #[error("there is no member {0}")]
    Unknown(u64),
    #[error("member {0} is the last one")]
    Last(u64),
    #[error("member {0} leads: let another one lead first")]
    Leads(u64),
    #[error("{0}")]
    Refused(String),
}

impl<R: Send + Clone + std::fmt::Debug + 'static> Journal<R> {
    pub fn standing(&self) -> Standing {
        let now = self.shared.raft.metrics().borrow().clone();
        let membership = now.membership_config.membership();
        let voters: BTreeSet<u64> = membership.voter_ids().collect();
        let reached = |id: u64| {
            let matched = now.replication.as_ref()?.get(&id)?.as_ref().map(|log_id| log_id.index);
            Some(matched.unwrap_or_default())
        };
        let members = membership.nodes().map(|(id, node)| Member {
            id: *id,
            address: node.addr.clone(),
            is_voter: voters.contains(id),
            last_log: if *id == now.id { now.last_log_index } else { reached(*id) },
        });
        Standing {
            id: now.id,
            term: now.current_term,
            leader: now.current_leader,
            last_log: now.last_log_index.unwrap_or_default(),
            last_applied: now.last_applied.map_or(0, |log_id| log_id.index),
            members: members.collect(),
            quorum_age: now.millis_since_quorum_ack.map(Duration::from_millis),
        }
    }

    /// Whether there is nobody else who could lead.
    pub fn is_lone(&self) -> bool {
        let metrics = self.shared.raft.server_metrics();
        let now = metrics.borrow();
        now.membership_config.membership().voter_ids().all(|voter| voter == now.id)
    }

    /// The new member first follows until it is up to date, then it has a vote.
    pub async fn add_member(&self, id: u64, address: &str) -> Result<(), MembersError> {
        let known = self.standing().members;
        if known.iter().any(|member| member.id == id && member.address != address) {
            return Err(MembersError::Taken(id));
        }
        let raft = &self.shared.raft;
        let learned = raft.add_learner(id, BasicNode::new(address), true).await;
        learned.map_err(|error| refused(raft, error))?;
        let voted = raft.change_membership(ChangeMembers::AddVoterIds([id].into()), false).await;
        voted.map_err(|error| refused(raft, error)).map(|_| ())
    }

    /// It no longer hears anything, and has no vote.
    pub async fn remove_member(&self, id: u64) -> Result<(), MembersError> {
        let standing = self.standing();
        let Some(member) = standing.members.iter().find(|member| member.id == id) else {
            return Err(MembersError::Unknown(id));
        };
        if standing.members.iter().filter(|member| member.is_voter).count() == 1 && member.is_voter {
            return Err(MembersError::Last(id));
        }
        if standing.id == id {
            return Err(MembersError::Leads(id));
        }
        let raft = &self.shared.raft;
        let change: ChangeMembers<u64, BasicNode> = match member.is_voter {
            true => ChangeMembers::RemoveVoters([id].into()),
            false => ChangeMembers::RemoveNodes([id].into()),
        };
        let removed = raft.change_membership(change, false).await;
        removed.map_err(|error| refused(raft, error)).map(|_| ())
    }

    /// Tells a member that has moved where the others find it now.
    pub async fn move_member(&self, id: u64, address: &str) -> Result<(), MembersError> {
        let raft = &self.shared.raft;
        let nodes = BTreeMap::from([(id, BasicNode::new(address))]);
        let moved = raft.change_membership(ChangeMembers::SetNodes(nodes), false).await;
        moved.map_err(|error| refused(raft, error)).map(|_| ())
    }

    /// Returns when a majority has said that this member leads, and all that was acknowledged before the call is applied.
    pub async fn confirm(&self) -> Result<(), ProposeError> {
        let raft = &self.shared.raft;
        match raft.ensure_linearizable().await {
            Ok(_) => Ok(()),
            Err(RaftError::APIError(CheckIsLeaderError::ForwardToLeader(forward))) => {
                Err(ProposeError::NotLeader { leader: forward.leader_id })
            }
            Err(RaftError::APIError(CheckIsLeaderError::QuorumNotEnough(_))) => {
                Err(ProposeError::NotLeader { leader: None })
            }
            Err(RaftError::Fatal(fatal)) => Err(gather::stopped(&fatal)),
        }
    }

    /// A leader falls silent, so that another member may be elected; true when it leads no more. Whoever is to follow
    /// must `stand` when the others have stopped waiting for this one, which is `lease` after the silence began.
    pub async fn fall_silent(&self, patience: Duration) -> bool {
        let raft = &self.shared.raft;
        raft.runtime_config().heartbeat(false);
        let mut leadership = self.leadership();
        let lost = leadership.wait_for(|now| !matches!(now, Leadership::Leader { .. }));
        let is_lost = matches!(tokio::time::timeout(patience, lost).await, Ok(Ok(_)));
        raft.runtime_config().heartbeat(true);
        is_lost
    }

    /// Stands for election now.
    pub async fn stand(&self) -> Result<(), ProposeError> {
        self.shared.raft.trigger().elect().await.map_err(|fatal| gather::stopped(&fatal))
    }

    /// How long members trust a leader that has fallen silent.
    pub fn lease(&self) -> Duration {
        Duration::from_millis(self.shared.raft.config().election_timeout_max)
    }
}

fn refused(raft: &Raft, error: RaftError<u64, ClientWriteError<u64, BasicNode>>) -> MembersError {
    match error {
        RaftError::APIError(ClientWriteError::ForwardToLeader(forward)) => {
            ProposeError::NotLeader { leader: forward.leader_id }.into()
        }
        RaftError::APIError(ClientWriteError::ChangeMembershipError(error)) => MembersError::Refused(error.to_string()),
        RaftError::Fatal(_) => gather::why_stopped(raft).into(),
    }
}
