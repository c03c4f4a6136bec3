//! A disk in memory for a journal's files: as many as an input names, gone with the input.
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journal::files::{Files, OpenFile};

type Content = Arc<Mutex<Vec<u8>>>;

#[derive(Clone, Default)]
pub struct MemoryDisk(Arc<Mutex<BTreeMap<PathBuf, Content>>>);

struct OpenMemory(Content);

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryDisk {
    pub fn put(&self, path: PathBuf, content: Vec<u8>) {
        locked(&self.0).insert(path, Arc::new(Mutex::new(content)));
    }

    /// Names and contents, in order.
    pub fn contents(&self) -> Vec<(String, Vec<u8>)> {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        locked(&self.0).iter().map(|(path, content)| (name(path), locked(content).clone())).collect()
    }

    fn find(&self, path: &Path) -> io::Result<Content> {
        locked(&self.0).get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Files for MemoryDisk {
    fn create_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        Ok(self.contents().into_iter().map(|(name, _)| name).collect())
    }

    fn read(&self, file: &Path) -> io::Result<Vec<u8>> {
        Ok(locked(&*self.find(file)?).clone())
    }

    fn create(&self, file: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.put(file.into(), Vec::new());
        self.open(file)
    }

    fn open(&self, file: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(OpenMemory(self.find(file)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = locked(&self.0);
        let content = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.into(), content);
        Ok(())
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        locked(&self.0).remove(file).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Send + Sync>> {
        Ok(Box::new(()))
    }
}

impl OpenFile for OpenMemory {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut content = locked(&self.0);
        let end = offset as usize + bytes.len();
        if content.len() < end {
            content.resize(end, 0);
        }
        content[offset as usize..end].copy_from_slice(bytes);
        Ok(bytes.len())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = locked(&self.0);
        let rest = content.get(offset as usize..).unwrap_or_default();
        let n_read = rest.len().min(bytes.len());
        bytes[..n_read].copy_from_slice(&rest[..n_read]);
        Ok(n_read)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        locked(&self.0).resize(length as usize, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
