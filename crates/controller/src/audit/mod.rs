//! The audit log: every call that changes something, and every refusal, as a line of JSON in the state directory.
//!
//! ```text
//! router ──▶ AuditedCall (who, from where, which call) ──▶ the call adds what it is about ──▶ outcome ──▶ AuditFile
//! ```
//! A line is written before the answer goes out, and is on the disk a second later at most. The controller that leads
//! writes what it answers; others write only what they refuse.
mod file;
mod floods;

use std::fmt::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::Timestamp;
use model::audit::{AuditQuery, AuditRecord};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use wire::origin::{From, Origin};

use crate::names::Names;
use crate::rules;

use file::AuditFile;
use floods::{Flood, FloodGate};

/// What a record says of its subject is no longer than this.
const ABOUT_MAX_BYTES: usize = 400;

#[derive(Clone)]
pub struct AuditLog {
    file: Arc<AuditFile>,
    floods: Arc<Mutex<FloodGate>>,
    names: Arc<Names>,
}

impl AuditLog {
    pub fn open(state_dir: &Path, names: Arc<Names>) -> std::io::Result<AuditLog> {
        let file = Arc::new(AuditFile::open(&state_dir.join("audit"))?);
        Ok(AuditLog { file, floods: Arc::default(), names })
    }

    /// A call that is heard; none: it only asks, and is noted only if it is refused.
    pub fn begin(&self, origin: &Origin, request: &mut Request<Body>) -> AuditedCall {
        let notes = AuditNotes::default();
        let is_change = rules::changes_something(request.uri().path());
        if is_change {
            request.extensions_mut().insert(notes.clone());
        }
        let record = self.record_of(Some(origin), request);
        AuditedCall { log: self.clone(), record, notes, is_change }
    }

    /// A call that is not heard at all.
    pub fn unheard(&self, request: &Request<Body>, status: &Status) {
        let mut record = self.record_of(Origin::of(request).as_ref(), request);
        record.refused = status.message().to_owned();
        self.refused(record);
    }

    fn record_of(&self, origin: Option<&Origin>, request: &Request<Body>) -> AuditRecord {
        let path = request.uri().path();
        let uid = origin.and_then(|origin| origin.user).map(|user| user.uid);
        AuditRecord {
            uid,
            user: uid.map(|uid| self.names.user(uid)).unwrap_or_default(),
            from: origin.map_or_else(|| "unknown".to_owned(), |origin| place(origin, request)),
            call: shortened(path.rsplit('/').next().unwrap_or(path)),
            ..AuditRecord::default()
        }
    }

    /// A refusal costs its sender nothing: of many alike, only their number is kept.
    fn refused(&self, mut record: AuditRecord) {
        record.at = now();
        let flood = self.floods.lock().unwrap_or_else(PoisonError::into_inner).pass(&record);
        match flood {
            Flood::Hold => (),
            Flood::Pass { n_held_back } => {
                record.n_more = n_held_back;
                self.file.write(&record);
            }
        }
    }

    pub fn read(&self, query: &AuditQuery, take: impl FnMut(AuditRecord) -> bool) -> std::io::Result<()> {
        self.file.read(query, take)
    }
}

/// Where a call adds what it is about. In the extensions of its request.
#[derive(Clone, Debug, Default)]
pub struct AuditNotes(Arc<Mutex<NotedCall>>);

#[derive(Debug, Default)]
struct NotedCall {
    about: String,
    behalf: String,
    /// Why some of what the call named was refused, though the call was heard.
    refused: String,
}

impl AuditNotes {
    /// The value's own description, shortened.
    pub fn about(extensions: &tonic::Extensions, what: &dyn fmt::Debug) {
        let Some(notes) = extensions.get::<AuditNotes>() else { return };
        let mut text = Shortened::default();
        let _ = write!(text, "{what:?}");
        notes.noted().about = text.0;
    }

    /// Some of what the call named was refused.
    pub fn refused_in_part(extensions: &tonic::Extensions, why: &dyn fmt::Display) {
        if let Some(notes) = extensions.get::<AuditNotes>() {
            notes.noted().refused = shortened(&why.to_string());
        }
    }

    pub fn submitted(&self, job: u32, behalf: Option<String>) {
        let mut noted = self.noted();
        noted.about = format!("job {job}");
        noted.behalf = behalf.unwrap_or_default();
    }

    fn noted(&self) -> MutexGuard<'_, NotedCall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, record: &mut AuditRecord) {
        let noted = std::mem::take(&mut *self.noted());
        (record.about, record.behalf, record.refused) = (noted.about, noted.behalf, noted.refused);
    }
}

pub struct AuditedCall {
    log: AuditLog,
    record: AuditRecord,
    notes: AuditNotes,
    is_change: bool,
}

impl AuditedCall {
    /// What has become of it, as the head of the answer says.
    pub fn end(self, response: &Response<Body>) {
        let refusal = Status::from_header_map(response.headers()).filter(|status| status.code() != tonic::Code::Ok);
        match refusal {
            Some(status) => self.refuse(&status),
            None if self.is_change => {
                let AuditedCall { log, mut record, notes, .. } = self;
                notes.tell(&mut record);
                record.at = now();
                match record.refused.is_empty() {
                    true => log.file.write(&record),
                    false => log.refused(record),
                }
            }
            None => (),
        }
    }

    pub fn refuse(self, status: &Status) {
        use tonic::Code::{PermissionDenied, ResourceExhausted, Unauthenticated};
        // What merely does not exist, or is not understood, is no attempt at anything.
        if !self.is_change && ![PermissionDenied, Unauthenticated, ResourceExhausted].contains(&status.code()) {
            return;
        }
        let AuditedCall { log, mut record, notes, .. } = self;
        notes.tell(&mut record);
        record.refused = if status.message().is_empty() { "refused".into() } else { shortened(status.message()) };
        log.refused(record);
    }
}

/// Text that takes no more than [`ABOUT_MAX_BYTES`]; what is formatted into it stops there.
#[derive(Default)]
struct Shortened(String);

impl Write for Shortened {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = ABOUT_MAX_BYTES.saturating_sub(self.0.len());
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        self.0.push_str(&text[..end]);
        self.0.push('…');
        Err(fmt::Error)
    }
}

fn shortened(text: &str) -> String {
    let mut short = Shortened::default();
    let _ = short.write_str(text);
    short.0
}

fn place(origin: &Origin, request: &Request<Body>) -> String {
    match &origin.from {
        From::Local => "local".into(),
        From::Controller(member) => format!("controller {member}"),
        From::Node(name) => format!("node {name}"),
        From::Bearer => "token".into(),
        From::Stranger => match request.extensions().get::<wire::tls::listen::Caller>() {
            Some(caller) => format!("stranger {}", caller.address),
            None => "stranger".into(),
        },
    }
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(since.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_is_cut_at_its_bound_however_long_the_value() {
        let mut text = Shortened::default();
        let long = vec!["ä".repeat(1000); 1000];
        let _ = write!(text, "{long:?}");
        assert!(text.0.len() <= ABOUT_MAX_BYTES + '…'.len_utf8(), "{}", text.0.len());
        assert!(text.0.ends_with('…'));
    }
}
