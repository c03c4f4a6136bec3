//! What is said of runs afterwards: in the state while it knows of the run, and in the row of one that it has forgotten.
use std::collections::BTreeSet;
use std::sync::Arc;

use accounting::{Batch, Store};
use model::accounts::Wckey;
use model::history::{AmendRequest, HistoryQuery, JobChoice, JobRecord, RunName};
use model::{Caller, Command, Reject};
use tokio::sync::mpsc;
use tonic::Status;
use wire::refusal::to_status;

use super::{History, unreadable};
use crate::door::{Door, Refusal};

impl History {
    /// All of them or none, as far as the caller's rights go.
    pub async fn amend(&self, by: Caller, wish: &AmendRequest, door: &Door) -> Result<(), Status> {
        let amendment = &wish.amendment;
        let is_operators = amendment.admin_comment.is_some() || amendment.system_comment.is_some();
        if is_operators && !by.is_admin {
            return Err(to_status(&Reject::NotPermitted));
        }
        let cluster = self.published.now();
        if !cluster.config().accounting.records {
            return Err(Status::failed_precondition("Slurm accounting storage is disabled"));
        }
        let store = self.up_to(cluster.history().last()).await?;
        let rows = rows(&store, wish, door).await?;
        if rows.iter().any(|row| !by.may_act_for(row.uid)) {
            return Err(to_status(&Reject::NotPermitted));
        }
        if let Some(wckey) = amendment.wckey.as_ref().filter(|wckey| !wckey.is_empty()) {
            let key = |row: &JobRecord| Wckey { name: wckey.clone(), user: row.user.clone(), cluster: String::new() };
            let is_unknown = |row: &JobRecord| !cluster.accounts().wckeys.contains(&key(row));
            if cluster.config().accounting.enforce.wckeys && rows.iter().any(is_unknown) {
                return Err(to_status(&Reject::BadWckey));
            }
        }
        let mut forgotten = Vec::new();
        for mut row in rows {
            let command = Command::AmendRun { run: row.run_name(), amendment: Box::new(amendment.clone()) };
            match door.propose(Caller::SYSTEM, command).await {
                Ok(_) => (),
                Err(Refusal::Rejected(Reject::NoSuchJob)) => {
                    row.amend(amendment);
                    forgotten.push(row);
                }
                Err(refusal) => return Err(crate::api::refused(&refusal)),
            }
        }
        let batch = Batch { jobs: forgotten, ..Batch::default() };
        store.write(batch).await.map_err(|failure| unreadable(&failure.to_string()))
    }
}

async fn rows(store: &Arc<dyn Store>, wish: &AmendRequest, door: &Door) -> Result<Vec<JobRecord>, Status> {
    let jobs = wish.runs.iter().map(|run| JobChoice { job: run.job, ..Default::default() }).collect();
    let key = |run: &RunName| (run.job, run.submitted, run.attempt);
    let named: BTreeSet<_> = wish.runs.iter().map(key).collect();
    let query = HistoryQuery { jobs, with_duplicates: true, whole_het_job: Some(false), ..Default::default() };
    let (sender, mut pages) = mpsc::channel(4);
    let (store, now) = (store.clone(), door.now());
    let reading = tokio::spawn(async move { store.read(query, now, sender).await });
    let mut rows = Vec::new();
    while let Some(page) = pages.recv().await {
        rows.extend(page.into_iter().map(|run| run.job).filter(|row| named.contains(&key(&row.run_name()))));
    }
    match reading.await {
        Ok(Ok(())) => Ok(rows),
        Ok(Err(failure)) => Err(unreadable(&failure.to_string())),
        Err(error) => Err(unreadable(&error.to_string())),
    }
}
