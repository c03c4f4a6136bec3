//! The audit of a daemon: what it was asked for and what it refused, in files of its own.
//!
//! ```text
//! record ─▶ FloodGate (told one by one, or counted) ─▶ AuditFile: a line of JSON, synced within a second
//! ```
//! A controller and an agent each have one. Nothing that callers do fills it faster than the gate lets.
mod file;
mod floods;
mod shortened;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::Timestamp;
use model::audit::{AuditQuery, AuditRecord};

pub use file::read;
pub use shortened::{Shortened, shortened};

use file::AuditFile;
use floods::FloodGate;

/// Counts of what was held back are written so often.
const COUNTS_PAUSE: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub struct AuditBook(Arc<Book>);

struct Book {
    file: AuditFile,
    floods: Mutex<FloodGate>,
}

impl AuditBook {
    pub fn open(dir: &Path) -> io::Result<AuditBook> {
        let book = Arc::new(Book { file: AuditFile::open(dir)?, floods: Mutex::default() });
        let counting = Arc::downgrade(&book);
        std::thread::Builder::new().name("audit-counts".into()).spawn(move || {
            loop {
                std::thread::sleep(COUNTS_PAUSE);
                let Some(book) = counting.upgrade() else { return };
                book.write_counts(now());
            }
        })?;
        Ok(AuditBook(book))
    }

    /// Of now. An empty `refused` says that it was allowed.
    pub fn write(&self, mut record: AuditRecord) {
        record.at = now();
        self.0.write(record);
    }

    /// The oldest first, until `take` has enough.
    pub fn read(&self, query: &AuditQuery, take: impl FnMut(AuditRecord) -> bool) -> io::Result<()> {
        self.0.file.read(query, take)
    }
}

impl Book {
    fn write(&self, record: AuditRecord) {
        let (is_told, counts) = self.gate().pass(&record);
        counts.iter().for_each(|count| self.file.write(count));
        if is_told {
            self.file.write(&record);
        }
    }

    fn write_counts(&self, at: Timestamp) {
        let counts = self.gate().counts_of_past_minute(at);
        counts.iter().for_each(|count| self.file.write(count));
    }

    fn gate(&self) -> std::sync::MutexGuard<'_, FloodGate> {
        self.floods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Book {
    fn drop(&mut self) {
        self.write_counts(Timestamp(u64::MAX));
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(since.as_micros() as u64)
}
