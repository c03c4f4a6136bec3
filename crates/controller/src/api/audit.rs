//! The audit, read from its files in pages.
use std::collections::VecDeque;

use model::audit::{AuditPage, AuditQuery};
use model::codec;
use tokio::sync::mpsc;
use tonic::Status;
use wire::proto::AuditReply;

use super::Streamed;
use crate::audit::AuditLog;

const RECORDS_PER_PAGE: usize = 500;
/// The newest so many can be asked for; more are read as all.
const LAST_MAX: u32 = 100_000;

/// Pages as they are read; a reader that goes away ends the reading.
pub fn pages(log: AuditLog, query: AuditQuery) -> Streamed<AuditReply> {
    let (send, pages) = mpsc::channel(2);
    tokio::task::spawn_blocking(move || {
        let mut records = VecDeque::new();
        let is_bounded = (1..=LAST_MAX).contains(&query.last);
        let read = log.read(&query, |record| {
            records.push_back(record);
            match is_bounded {
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

fn page(records: &mut VecDeque<model::audit::AuditRecord>) -> AuditReply {
    let n_records = records.len().min(RECORDS_PER_PAGE);
    let page = AuditPage { records: records.drain(..n_records).collect() };
    AuditReply { page: codec::encode(&page).into() }
}
