//! The files of the audit: `audit/log` is written, `audit/log.1` to `log.35` are older, the highest number the oldest.
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use model::audit::{AuditQuery, AuditRecord};

/// The file that is written becomes an older one at this size.
const FILE_MAX_BYTES: u64 = 32 << 20;
/// Enough for a day of the longest records, as many as the gate lets through (`floods`).
const OLDER_FILES: u32 = 35;
/// Lines are on the disk after this long.
const SYNC_PAUSE: Duration = Duration::from_secs(1);

pub struct AuditFile {
    dir: PathBuf,
    writing: Arc<(Mutex<WrittenFile>, Condvar)>,
}

struct WrittenFile {
    file: File,
    n_bytes: u64,
    /// Something was written since the last sync.
    is_dirty: bool,
    is_over: bool,
    /// Records that the disk did not take, and has not been told of.
    n_lost: u32,
    /// A record may have been written in part.
    is_torn: bool,
    n_sync_failures: u64,
}

impl WrittenFile {
    fn append(&mut self, record: &AuditRecord) -> io::Result<()> {
        let mut line = if self.is_torn { vec![b'\n'] } else { Vec::new() };
        line.extend_from_slice(&line_of(record));
        self.is_torn = true;
        self.file.write_all(&line)?;
        self.is_torn = false;
        self.n_bytes += line.len() as u64;
        Ok(())
    }

    /// Says first how many records are missing here.
    fn append_after_loss(&mut self, record: &AuditRecord) -> io::Result<()> {
        if self.n_lost > 0 {
            let n_lost = self.n_lost;
            let about = "the disk took no records";
            let lost =
                AuditRecord { at: record.at, call: "lost".into(), about: about.into(), n_lost, ..Default::default() };
            self.append(&lost)?;
            self.n_lost = 0;
            tracing::warn!(target: "security", n_lost, "the audit is written again");
        }
        self.append(record)
    }
}

impl AuditFile {
    pub fn open(dir: &Path) -> io::Result<AuditFile> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let file = open_log(dir)?;
        let n_bytes = file.metadata()?.len();
        // A machine that lost its power may have left half a line: the next begins on one of its own.
        let is_torn = n_bytes > 0;
        let writing =
            WrittenFile { file, n_bytes, is_dirty: false, is_over: false, n_lost: 0, is_torn, n_sync_failures: 0 };
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
        match writing.append_after_loss(record) {
            Ok(()) if !writing.is_dirty => {
                writing.is_dirty = true;
                wake.notify_one();
            }
            Ok(()) => {}
            Err(error) => {
                if writing.n_lost == 0 {
                    tracing::error!(target: "security", %error, "the audit cannot be written; calls go on");
                }
                writing.n_lost = writing.n_lost.saturating_add(1);
            }
        }
    }

    fn turn_over(&self, writing: &mut WrittenFile) -> io::Result<()> {
        writing.file.sync_data()?;
        for number in (1..OLDER_FILES).rev() {
            match fs::rename(older(&self.dir, number), older(&self.dir, number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => (),
            }
        }
        fs::rename(self.dir.join("log"), older(&self.dir, 1))?;
        writing.file = open_log(&self.dir)?;
        writing.n_bytes = 0;
        Ok(())
    }

    /// The oldest first, until `take` has enough.
    pub fn read(&self, query: &AuditQuery, take: impl FnMut(AuditRecord) -> bool) -> io::Result<()> {
        let files = {
            // What is opened stays the same file, however files are turned over meanwhile.
            let _still = self.writing.0.lock().unwrap_or_else(PoisonError::into_inner);
            opened(&self.dir)?
        };
        read_files(files, query, take)
    }
}

/// The records of a daemon that may not run, from its directory.
pub fn read(dir: &Path, query: &AuditQuery, take: impl FnMut(AuditRecord) -> bool) -> io::Result<()> {
    fs::metadata(dir)?;
    read_files(opened(dir)?, query, take)
}

fn older(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("log.{number}"))
}

fn opened(dir: &Path) -> io::Result<Vec<File>> {
    let older = (1..=OLDER_FILES).rev().map(|number| older(dir, number));
    let opened = older.chain([dir.join("log")]).map(File::open);
    opened.filter(|file| !matches!(file, Err(error) if error.kind() == io::ErrorKind::NotFound)).collect()
}

fn read_files(files: Vec<File>, query: &AuditQuery, mut take: impl FnMut(AuditRecord) -> bool) -> io::Result<()> {
    for file in files {
        let mut lines = BufReader::new(file);
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

fn sync_again_and_again(writing: &(Mutex<WrittenFile>, Condvar)) {
    let (lock, wake) = writing;
    loop {
        let held = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held =
            wake.wait_while(held, |now| !now.is_dirty && !now.is_over).unwrap_or_else(PoisonError::into_inner);
        let is_over = held.is_over;
        held.is_dirty = false;
        let file = held.file.try_clone();
        drop(held);
        if let Err(error) = file.and_then(|file| file.sync_data()) {
            tracing::error!(target: "security", %error, "the audit does not reach the disk");
            lock.lock().unwrap_or_else(PoisonError::into_inner).n_sync_failures += 1;
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

    fn record(n: u32) -> AuditRecord {
        AuditRecord { at: model::Timestamp(u64::from(n) + 1), about: n.to_string(), ..AuditRecord::default() }
    }

    /// A directory that nobody else has.
    fn new_dir(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("spur-audit-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn records_outlive_the_file_they_were_written_to() {
        let dir = new_dir("files");
        let file = AuditFile::open(&dir).unwrap();
        let n_files = OLDER_FILES + 1;
        for n in 0..n_files + 2 {
            file.write(&record(n));
            let mut writing = file.writing.0.lock().unwrap();
            file.turn_over(&mut writing).unwrap();
        }
        file.write(&record(n_files + 2));
        let kept: Vec<String> = all(&file).into_iter().map(|record| record.about).collect();
        assert_eq!(kept, (3..n_files + 3).map(|n| n.to_string()).collect::<Vec<_>>());
        drop(file);
        // A line that was cut off is passed over.
        fs::write(dir.join("log"), b"{\"time\":\"1970-01-01T00:00:00Z\",\"at\":5,\"abo").unwrap();
        let file = AuditFile::open(&dir).unwrap();
        assert_eq!(all(&file).len() as u32, OLDER_FILES);
        file.write(&record(1));
        assert_eq!(all(&file).len() as u32, OLDER_FILES + 1);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn day_of_the_longest_records_is_kept() {
        let long = crate::shortened(&"\u{1b}".repeat(1000));
        let longest = AuditRecord {
            at: model::Timestamp(u64::MAX / 4),
            user: "u".repeat(64),
            behalf: "u".repeat(64),
            from: "f".repeat(64),
            call: "c".repeat(32),
            about: long.clone(),
            refused: long,
            n_more: u32::MAX,
            uid: Some(u32::MAX),
            ..AuditRecord::default()
        };
        let n_bytes = crate::floods::DAILY_MAX * line_of(&longest).len() as u64;
        assert!(n_bytes <= u64::from(OLDER_FILES) * FILE_MAX_BYTES, "{} MB a day", n_bytes >> 20);
    }

    /// A log that is a pipe: it is full when nobody reads, and cannot be synced.
    fn pipe_log(dir: &Path) -> File {
        let path = std::ffi::CString::new(dir.join("log").to_str().unwrap()).unwrap();
        // SAFETY: the path is a string that ends.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(dir.join("log")).unwrap()
    }

    #[test]
    fn records_that_the_disk_did_not_take_are_counted_afterwards() {
        let dir = new_dir("lost");
        let pipe = pipe_log(&dir);
        let file = AuditFile::open(&dir).unwrap();
        let lock = &file.writing.0;
        // Full, as a disk may be: writes fail instead of waiting.
        let set_flags = |flags: libc::c_int| {
            // SAFETY: a plain call on an open descriptor.
            unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&lock.lock().unwrap().file), libc::F_SETFL, flags) }
        };
        set_flags(libc::O_NONBLOCK);
        let mut n_written = 0;
        while lock.lock().unwrap().n_lost == 0 {
            file.write(&record(n_written));
            n_written += 1;
        }
        (0..6).for_each(|n| file.write(&record(n)));
        // Somebody has made room.
        let mut text = vec![0; 1 << 20];
        let n_read = io::Read::read(&mut &pipe, &mut text).unwrap();
        file.write(&record(4711));
        let mut rest = vec![0; 1 << 20];
        let n_rest = io::Read::read(&mut &pipe, &mut rest).unwrap();
        let all = [&text[..n_read], &rest[..n_rest]].concat();
        let records: Vec<AuditRecord> =
            all.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let [.., lost, last] = &records[..] else { panic!("{} records", records.len()) };
        assert_eq!((lost.call.as_str(), lost.n_lost), ("lost", 7));
        assert_eq!(last.about, "4711");
        assert_eq!(records.len() as u32, n_written - 1 + 2);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn every_record_is_synced() {
        let dir = new_dir("sync");
        let _pipe = pipe_log(&dir);
        let file = AuditFile::open(&dir).unwrap();
        // The kernel refuses to sync a pipe: who asks it hears so.
        for n in 1..=2 {
            file.write(&record(n));
            let until = std::time::Instant::now() + Duration::from_secs(30);
            while file.writing.0.lock().unwrap().n_sync_failures < u64::from(n) {
                assert!(std::time::Instant::now() < until, "record {n} was not synced");
                std::thread::yield_now();
            }
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}
