//! Changing who the controllers are, and which of them leads.
use journal::{MembersError, ProposeError};
use model::members::Wish;
use model::trust::{TrustChange, controller_label};
use model::{Caller, Command, Reject};
use tokio::sync::oneshot;
use tonic::{Response, Status};
use wire::proto::Nothing;
use wire::refusal::to_status;

use super::{Answer, Api, again};

pub async fn change(api: &Api, by: Caller, wish: Wish) -> Answer<Nothing> {
    if !by.is_admin {
        return Err(to_status(&Reject::NotPermitted));
    }
    let changed = match wish {
        Wish::Add { id, address } => api.journal.add_member(id, &address).await,
        // Whoever leads then removes it.
        Wish::Remove { id } if api.journal.standing().id == id && !api.journal.is_lone() => {
            hand_over(api, None).await.and(Err(MembersError::Leads(id)))
        }
        Wish::Remove { id } => {
            let removed = api.journal.remove_member(id).await;
            // One that was removed by a controller that died over it has its certificate still.
            let has_more = matches!(removed, Err(MembersError::Unknown(_)))
                && api.published.now().trust().has_member(&controller_label(id));
            let removed = if has_more { Ok(()) } else { removed };
            if removed.is_ok() {
                let change = Command::Trust(TrustChange::RemoveController { member: id });
                api.door.propose(by, change).await.map_err(|refusal| super::refused(&refusal))?;
            }
            removed
        }
        Wish::Lead { id } => hand_over(api, id).await,
    };
    match changed {
        Ok(()) => {
            api.members_changed.notify_one();
            Ok(Response::new(Nothing {}))
        }
        Err(error @ (MembersError::Leads(_) | MembersError::Propose(ProposeError::NotLeader { .. }))) => {
            Err(again(error.to_string()))
        }
        Err(error) => Err(Status::failed_precondition(error.to_string())),
    }
}

async fn hand_over(api: &Api, to: Option<u64>) -> Result<(), MembersError> {
    let (tell, told) = oneshot::channel();
    let gone = || MembersError::Refused("this controller is stopping".into());
    api.hand_overs.send((to, tell)).await.map_err(|_| gone())?;
    told.await.map_err(|_| gone())?
}
