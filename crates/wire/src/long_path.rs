//! Sockets whose path is longer than the kernel takes: the directory is opened, and the socket named through it.
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What fits into the kernel's address, with the zero behind it.
const PATH_BYTES_MOST: usize = 107;

/// A path to connect to, or to listen at, for as long as this value lives.
pub struct SocketPath {
    path: PathBuf,
    _directory: Option<File>,
}

impl SocketPath {
    pub fn of(socket: &Path) -> io::Result<SocketPath> {
        let (Some(parent), Some(name)) = (socket.parent(), socket.file_name()) else {
            return Ok(SocketPath { path: socket.into(), _directory: None });
        };
        if socket.as_os_str().len() <= PATH_BYTES_MOST {
            return Ok(SocketPath { path: socket.into(), _directory: None });
        }
        let directory = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(parent)?;
        let path = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
        Ok(SocketPath { path, _directory: Some(directory) })
    }
}

impl AsRef<Path> for SocketPath {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn socket_is_reached_however_deep_it_lies() {
        for depth in [1, 5, 30] {
            let root = std::env::temp_dir().join(format!("spur-deep-{depth}-{}", std::process::id()));
            let deep = (0..depth).fold(root.clone(), |path, _| path.join("a-directory-with-a-name"));
            std::fs::create_dir_all(&deep).unwrap();
            let socket = deep.join("controller.sock");
            let _listener = UnixListener::bind(SocketPath::of(&socket).unwrap()).unwrap();
            UnixStream::connect(SocketPath::of(&socket).unwrap()).unwrap();
            assert!(socket.exists());
            std::fs::remove_dir_all(root).unwrap();
        }
        assert!(SocketPath::of(&Path::new("/no").join("x".repeat(120)).join("socket")).is_err());
    }
}
