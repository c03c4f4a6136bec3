//! The files of the audit: `audit/log` is written, `audit/log.1` to `log.9` are older, the highest number the oldest.
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use model::audit::{AuditQuery, AuditRecord};

/// The file that is written becomes an older one at this size.
const FILE_MAX_BYTES: u64 = 32 << 20;
const OLDER_FILES: u32 = 9;
/// Lines are on the disk after this long.
const SYNC_PAUSE: Duration = Duration::from_secs(1);

pub struct AuditFile {
    dir: PathBuf,
    writing: Arc<(Mutex<Writing>, Condvar)>,
}

struct Writing {
    file: File,
    n_bytes: u64,
    /// Something was written since the last sync.
    is_dirty: bool,
    is_over: bool,
    /// Records that the disk did not take.
    n_lost: u64,
}

impl AuditFile {
    pub fn open(dir: &Path) -> io::Result<AuditFile> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let mut file = open_log(dir)?;
        let n_bytes = file.metadata()?.len();
        // A machine that lost its power may have left half a line: the next begins on one of its own.
        if n_bytes > 0 {
            file.write_all(b"\n")?;
        }
        let writing = Writing { file, n_bytes, is_dirty: false, is_over: false, n_lost: 0 };
        let writing = Arc::new((Mutex::new(writing), Condvar::new()));
        let synced = writing.clone();
        std::thread::Builder::new().name("audit".into()).spawn(move || sync_again_and_again(&synced))?;
        Ok(AuditFile { dir: dir.to_owned(), writing })
    }

    /// A call is not refused because its record cannot be written; that it was not, the log says.
    pub fn write(&self, record: &AuditRecord) {
        let (lock, wake) = &*self.writing;
        let mut writing = lock.lock().unwrap_or_else(PoisonError::into_inner);
        if writing.n_bytes >= FILE_MAX_BYTES
            && let Err(error) = self.turn_over(&mut writing)
        {
            tracing::error!(target: "security", %error, "the audit's file is not turned over");
        }
        let line = line_of(record);
        match writing.file.write_all(&line) {
            Ok(()) => {
                if std::mem::take(&mut writing.n_lost) > 0 {
                    tracing::warn!(target: "security", "the audit is written again");
                }
                writing.n_bytes += line.len() as u64;
                if !writing.is_dirty {
                    writing.is_dirty = true;
                    wake.notify_one();
                }
            }
            Err(error) => {
                if writing.n_lost == 0 {
                    tracing::error!(target: "security", %error, "the audit cannot be written; calls go on");
                }
                writing.n_lost += 1;
            }
        }
    }

    fn turn_over(&self, writing: &mut Writing) -> io::Result<()> {
        writing.file.sync_data()?;
        for number in (1..OLDER_FILES).rev() {
            match fs::rename(self.older(number), self.older(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => (),
            }
        }
        fs::rename(self.dir.join("log"), self.older(1))?;
        writing.file = open_log(&self.dir)?;
        writing.n_bytes = 0;
        Ok(())
    }

    fn older(&self, number: u32) -> PathBuf {
        self.dir.join(format!("log.{number}"))
    }

    /// The oldest first, until `take` has enough.
    pub fn read(&self, query: &AuditQuery, mut take: impl FnMut(AuditRecord) -> bool) -> io::Result<()> {
        let files = {
            // What is opened stays the same file, however files are turned over meanwhile.
            let _still = self.writing.0.lock().unwrap_or_else(PoisonError::into_inner);
            let older = (1..=OLDER_FILES).rev().map(|number| self.older(number));
            let opened = older.chain([self.dir.join("log")]).map(File::open);
            opened
                .filter(|file| !matches!(file, Err(error) if error.kind() == io::ErrorKind::NotFound))
                .collect::<Vec<_>>()
        };
        for file in files {
            let mut lines = BufReader::new(file?);
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line)? > 0 {
                // The last line of a machine that lost its power may be cut off.
                let record = serde_json::from_slice::<AuditRecord>(&line).ok();
                line.clear();
                if let Some(record) = record.filter(|record| query.wants(record))
                    && !take(record)
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Drop for AuditFile {
    fn drop(&mut self) {
        let (lock, wake) = &*self.writing;
        lock.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        wake.notify_one();
    }
}

fn open_log(dir: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(dir.join("log"))
}

fn line_of(record: &AuditRecord) -> Vec<u8> {
    let moment = jiff::Timestamp::from_microsecond(record.at.0 as i64).unwrap_or_default();
    let mut line = format!("{{\"time\":\"{moment}\",").into_bytes();
    // Its braces are ours to share; every record has a time.
    line.extend_from_slice(&serde_json::to_vec(record).expect("a record has no unwritable values")[1..]);
    line.push(b'\n');
    line
}

fn sync_again_and_again(writing: &(Mutex<Writing>, Condvar)) {
    let (lock, wake) = writing;
    loop {
        let held = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held =
            wake.wait_while(held, |now| !now.is_dirty && !now.is_over).unwrap_or_else(PoisonError::into_inner);
        let is_over = held.is_over;
        held.is_dirty = false;
        let file = held.file.try_clone();
        drop(held);
        if let Ok(Err(error)) = file.map(|file| file.sync_data()) {
            tracing::error!(target: "security", %error, "the audit does not reach the disk");
        }
        if is_over {
            return;
        }
        std::thread::sleep(SYNC_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(file: &AuditFile) -> Vec<AuditRecord> {
        let mut records = Vec::new();
        file.read(&AuditQuery::default(), |record| {
            records.push(record);
            true
        })
        .unwrap();
        records
    }

    #[test]
    fn records_outlive_the_file_they_were_written_to() {
        let dir = std::env::temp_dir().join(format!("spur-audit-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        let record = |n: u32| AuditRecord {
            at: model::Timestamp(u64::from(n) + 1),
            about: n.to_string(),
            ..AuditRecord::default()
        };
        let file = AuditFile::open(&dir).unwrap();
        for n in 0..12 {
            file.write(&record(n));
            let mut writing = file.writing.0.lock().unwrap();
            file.turn_over(&mut writing).unwrap();
        }
        file.write(&record(12));
        let kept: Vec<String> = all(&file).into_iter().map(|record| record.about).collect();
        assert_eq!(kept, ["3", "4", "5", "6", "7", "8", "9", "10", "11", "12"]);
        drop(file);
        // A line that was cut off is passed over.
        fs::write(dir.join("log"), b"{\"time\":\"1970-01-01T00:00:00Z\",\"at\":5,\"abo").unwrap();
        let file = AuditFile::open(&dir).unwrap();
        assert_eq!(all(&file).len(), 9);
        fs::remove_dir_all(&dir).unwrap();
    }
}
