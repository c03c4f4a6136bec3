//! The audit log: every call that changes something, and every refusal, as a line of JSON in the state directory.
//!
//! ```text
//! router ──▶ AuditedCall (who, from where, which call) ──▶ the call adds what it is about ──▶ outcome ──▶ AuditBook
//! ```
//! A line is written before the answer goes out, and is on the disk a second later at most (crate `audit`). The controller
//! that leads writes what it answers; others write what they refuse and what they pass on to agents.
use std::fmt::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::audit::{AuditBook, Shortened, shortened};
use model::audit::{AuditQuery, AuditRecord};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use wire::origin::{From, Origin};

use crate::names::Names;
use crate::rules;

#[derive(Clone)]
pub struct AuditLog {
    book: AuditBook,
    names: Arc<Names>,
}

impl AuditLog {
    pub fn open(state_dir: &Path, names: Arc<Names>) -> std::io::Result<AuditLog> {
        Ok(AuditLog { book: AuditBook::open(&state_dir.join("audit"))?, names })
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
        record.refused = why(status);
        self.book.write(record);
    }

    /// What the daemon itself does at a word that is no call: a signal, say.
    pub fn own(&self, call: &str, about: &str, refused: &str) {
        let user = self.names.user(0);
        let (call, from) = (call.to_owned(), "local".to_owned());
        let (about, refused) = (shortened(about), shortened(refused));
        self.book.write(AuditRecord { uid: Some(0), user, from, call, about, refused, ..AuditRecord::default() });
    }

    fn record_of(&self, origin: Option<&Origin>, request: &Request<Body>) -> AuditRecord {
        let path = request.uri().path();
        let uid = origin.and_then(|origin| origin.user).map(|user| user.uid);
        AuditRecord {
            uid,
            user: uid.map(|uid| self.names.user(uid)).unwrap_or_default(),
            from: origin.map_or_else(|| "unknown".to_owned(), |origin| place(origin, request)),
            // What a caller makes up is no call, and does not count as another one.
            call: rules::known_call(path).unwrap_or("unknown").to_owned(),
            ..AuditRecord::default()
        }
    }

    pub fn read(&self, query: &AuditQuery, take: impl FnMut(AuditRecord) -> bool) -> std::io::Result<()> {
        self.book.read(query, take)
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
        notes.noted().about = text.text;
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
    /// Of a call that goes to another daemon.
    pub fn about(&self, what: &str) {
        self.notes.noted().about = shortened(what);
    }

    /// What has become of it, as the head of the answer says.
    pub fn end(self, response: &Response<Body>) {
        let refusal = Status::from_header_map(response.headers()).filter(|status| status.code() != tonic::Code::Ok);
        match refusal {
            Some(status) => self.refuse(&status),
            None if self.is_change => {
                let AuditedCall { log, mut record, notes, .. } = self;
                notes.tell(&mut record);
                log.book.write(record);
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
        record.refused = why(status);
        log.book.write(record);
    }
}

fn why(status: &Status) -> String {
    if status.message().is_empty() { "refused".into() } else { shortened(status.message()) }
}

fn place(origin: &Origin, request: &Request<Body>) -> String {
    match (&origin.from, request.extensions().get::<wire::tls::listen::Caller>()) {
        (From::Stranger, Some(caller)) => format!("stranger {}", caller.address),
        _ => origin.place(),
    }
}
