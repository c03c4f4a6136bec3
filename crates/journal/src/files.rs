//! The file layer: the few operations the journal asks of a disk. Tests put a faulty disk behind it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// A disk. Names are durable only after `sync_directory`, contents only after `OpenFile::sync`.
pub trait Files: Send + Sync + 'static {
    fn create_directory(&self, dir: &Path) -> io::Result<()>;
    /// The names of the files in `dir`, in no particular order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    fn read(&self, file: &Path) -> io::Result<Vec<u8>>;
    /// Makes the file, or empties it.
    fn create(&self, file: &Path) -> io::Result<Box<dyn OpenFile>>;
    fn open(&self, file: &Path) -> io::Result<Box<dyn OpenFile>>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, file: &Path) -> io::Result<()>;
    fn sync_directory(&self, dir: &Path) -> io::Result<()>;
    /// Holds the file for this process alone until the guard is dropped; `WouldBlock` when somebody else does.
    fn lock(&self, file: &Path) -> io::Result<Box<dyn Send + Sync>>;
}

pub trait OpenFile: Send + Sync {
    /// May write less than asked, as the kernel may.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// The contents, and what is needed to read them back, are on the disk when this returns.
    fn sync(&self) -> io::Result<()>;
}

/// Writes all bytes or fails.
pub(crate) fn write_all(file: &dyn OpenFile, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = &bytes[n..];
                offset += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(crate) fn read_exact(file: &dyn OpenFile, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.read_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                bytes = &mut bytes[n..];
                offset += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Puts a whole file in place so that after a crash either the old or the new one is there, never a part.
pub(crate) fn replace(files: &dyn Files, path: &Path, parts: impl IntoIterator<Item = Vec<u8>>) -> io::Result<()> {
    let temporary = path.with_extension(TEMPORARY);
    let written = files.create(&temporary).and_then(|file| {
        let mut end = 0;
        for part in parts {
            write_all(&*file, &part, end)?;
            end += part.len() as u64;
        }
        file.sync()
    });
    // Part of a file would take the room that is missing.
    written.inspect_err(|_| drop(files.remove(&temporary)))?;
    files.rename(&temporary, path)?;
    files.sync_directory(path.parent().expect("journal files live in the journal directory"))
}

/// Extension of files that are not yet in place; leftovers are removed when a journal opens.
pub(crate) const TEMPORARY: &str = "new";
/// The log holds scripts, environments and keys, whatever the directory's own mode is.
const PRIVATE: u32 = 0o600;

/// The disk of this machine.
#[derive(Debug, Clone, Copy)]
pub struct RealFiles;

impl Files for RealFiles {
    fn create_directory(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)?;
        match dir.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => self.sync_directory(parent),
            _ => Ok(()),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn read(&self, file: &Path) -> io::Result<Vec<u8>> {
        fs::read(file)
    }

    fn create(&self, file: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(PRIVATE).open(file)?))
    }

    fn open(&self, file: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(OpenOptions::new().read(true).write(true).open(file)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        fs::remove_file(file)
    }

    fn sync_directory(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn lock(&self, file: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(PRIVATE).open(file)?;
        file.try_lock().map_err(io::Error::from)?;
        Ok(Box::new(file))
    }
}

impl OpenFile for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, bytes, offset)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
