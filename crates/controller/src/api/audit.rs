//! The audit, read from the files of all controllers, in one order.
use std::collections::VecDeque;
use std::pin::Pin;

use model::audit::{AuditPage, AuditQuery, AuditRecord};
use model::codec;
use tokio::sync::mpsc;
use tokio_stream::{Stream, StreamExt};
use tonic::Status;
use wire::proto::AuditReply;

use super::{Api, Streamed};
use crate::audit::AuditLog;
use crate::members;

const RECORDS_PER_PAGE: usize = 500;
/// The newest so many can be asked for; more are read as all.
const LAST_MAX: u32 = 100_000;

/// What one controller has, as it is read; a reader that goes away ends the reading.
pub fn of_one(log: AuditLog, query: AuditQuery) -> Streamed<AuditReply> {
    let (send, pages) = mpsc::channel(2);
    tokio::task::spawn_blocking(move || {
        let mut records = VecDeque::new();
        let read = log.read(&query, |record| {
            records.push_back(record);
            match is_bounded(&query) {
                true if records.len() > query.last as usize => records.pop_front().is_some(),
                false if records.len() == RECORDS_PER_PAGE => send.blocking_send(Ok(page(&mut records))).is_ok(),
                _ => true,
            }
        });
        while !records.is_empty() {
            if send.blocking_send(Ok(page(&mut records))).is_err() {
                return;
            }
        }
        if let Err(error) = read {
            let _ = send.blocking_send(Err(Status::internal(format!("the audit cannot be read: {error}"))));
        }
    });
    Box::pin(tokio_stream::wrappers::ReceiverStream::new(pages))
}

/// What all controllers have, the oldest first.
pub async fn of_all(api: &Api, query: AuditQuery) -> Streamed<AuditReply> {
    let standing = api.journal.standing();
    let others = standing.members.iter().filter(|member| member.id != standing.id);
    let asked = others.map(async |member| {
        let pages = members::read_audit(&api.connections, &member.address, &query).await;
        pages.map(|pages| AuditPart::new(member.id, Box::pin(pages))).ok_or(member.id)
    });
    let asked = futures::future::join_all(asked).await;
    if asked.is_empty() {
        return of_one(api.audit.clone(), query);
    }
    let mut merge = AuditMerge {
        parts: vec![AuditPart::new(standing.id, of_one(api.audit.clone(), query.clone()))],
        missing: Vec::new(),
    };
    for part in asked {
        match part {
            Ok(part) => merge.parts.push(part),
            Err(member) => merge.missing.push(member),
        }
    }
    let (send, pages) = mpsc::channel(2);
    tokio::spawn(async move { merge.send_to(&send, &query).await });
    Box::pin(tokio_stream::wrappers::ReceiverStream::new(pages))
}

/// What one controller has, as far as it was read.
struct AuditPart {
    controller: u64,
    records: VecDeque<AuditRecord>,
    pages: Pin<Box<dyn Stream<Item = Result<AuditReply, Status>> + Send>>,
}

impl AuditPart {
    fn new(controller: u64, pages: Pin<Box<dyn Stream<Item = Result<AuditReply, Status>> + Send>>) -> AuditPart {
        AuditPart { controller, records: VecDeque::new(), pages }
    }

    /// Its oldest record is at hand, if it has any left. Err: the controller went away.
    async fn fill(&mut self) -> Result<(), Status> {
        while self.records.is_empty() {
            let Some(page) = self.pages.next().await else { return Ok(()) };
            let page: AuditPage = super::read(&page?.page)?;
            self.records.extend(page.records);
        }
        Ok(())
    }
}

struct AuditMerge {
    parts: Vec<AuditPart>,
    missing: Vec<u64>,
}

impl AuditMerge {
    async fn send_to(mut self, send: &mpsc::Sender<Result<AuditReply, Status>>, query: &AuditQuery) {
        let mut records = VecDeque::new();
        while let Some(record) = self.next().await {
            records.push_back(record);
            if is_bounded(query) {
                if records.len() > query.last as usize {
                    records.pop_front();
                }
            } else if records.len() == RECORDS_PER_PAGE && send.send(Ok(page(&mut records))).await.is_err() {
                return;
            }
        }
        while !records.is_empty() {
            if send.send(Ok(page(&mut records))).await.is_err() {
                return;
            }
        }
        if !self.missing.is_empty() {
            let last = AuditPage { records: Vec::new(), missing: self.missing };
            let _ = send.send(Ok(AuditReply { page: codec::encode(&last).into() })).await;
        }
    }

    /// The oldest of what is left.
    async fn next(&mut self) -> Option<AuditRecord> {
        for part in &mut self.parts {
            if part.fill().await.is_err() {
                self.missing.push(part.controller);
                part.pages = Box::pin(tokio_stream::empty());
            }
        }
        let oldest = |part: &&mut AuditPart| part.records.front().map_or(u64::MAX, |record| record.at.0);
        let part = self.parts.iter_mut().min_by_key(oldest)?;
        let record = part.records.pop_front()?;
        Some(AuditRecord { controller: part.controller, ..record })
    }
}

fn is_bounded(query: &AuditQuery) -> bool {
    (1..=LAST_MAX).contains(&query.last)
}

fn page(records: &mut VecDeque<AuditRecord>) -> AuditReply {
    let n_records = records.len().min(RECORDS_PER_PAGE);
    let page = AuditPage { records: records.drain(..n_records).collect(), missing: Vec::new() };
    AuditReply { page: codec::encode(&page).into() }
}
