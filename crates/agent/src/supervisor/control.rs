//! The supervisor's line to the agent: a socket it was born with, and once that is broken a place where the next agent finds it.
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::frame::{self, Incoming};
use crate::protocol::{FromSupervisor, Start, ToSupervisor};
use crate::{spool, sys};

pub struct Control {
    stream: Option<UnixStream>,
    listener: Option<UnixListener>,
    incoming: Incoming,
    outgoing: Vec<u8>,
    sent: usize,
    runs_dir: PathBuf,
    socket_name: String,
}

impl Control {
    /// Waits for a run, and its record.
    pub fn open(stream: UnixStream) -> io::Result<(Control, Start, File)> {
        stream.set_nonblocking(false)?;
        let (mut incoming, mut record) = (Incoming::default(), None);
        let mut buffer = vec![0; 16 * 1024];
        loop {
            match sys::receive_with_fds(stream.as_fd(), &mut buffer) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((length, fds)) => {
                    incoming.push(&buffer[..length]);
                    record = fds.into_iter().last().or(record);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            loop {
                match incoming.take() {
                    Ok(Some(ToSupervisor::Start(start))) => {
                        let record = record.ok_or(io::ErrorKind::InvalidData)?;
                        return Ok((Control::new(stream, incoming, &start), *start, record.into()));
                    }
                    // Meant for the run before this one.
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => return Err(io::ErrorKind::InvalidData.into()),
                }
            }
        }
    }

    fn new(stream: UnixStream, incoming: Incoming, start: &Start) -> Self {
        let _ = stream.set_nonblocking(true);
        Control {
            stream: Some(stream),
            listener: None,
            incoming,
            outgoing: Vec::new(),
            sent: 0,
            runs_dir: Path::new(&start.spool_dir).join("runs"),
            socket_name: spool::socket_name(start.slot),
        }
    }

    /// The run is over and let go of: offers itself for another, if its agent is the one that it was born to.
    pub fn stand_by(mut self) -> Option<UnixStream> {
        if self.listener.is_some() {
            return None;
        }
        self.send(&FromSupervisor::StandsBy);
        self.flush_all();
        self.stream.take()
    }

    /// What to wait for.
    pub fn poll_fd(&self) -> libc::pollfd {
        let (fd, events) = match (&self.stream, &self.listener) {
            (Some(stream), _) if self.sent < self.outgoing.len() => (stream.as_raw_fd(), libc::POLLIN | libc::POLLOUT),
            (Some(stream), _) => (stream.as_raw_fd(), libc::POLLIN),
            (None, Some(listener)) => (listener.as_raw_fd(), libc::POLLIN),
            (None, None) => (-1, 0),
        };
        libc::pollfd { fd, events, revents: 0 }
    }

    pub fn is_connected(&self) -> bool {
        self.stream.is_some()
    }

    pub fn send(&mut self, message: &FromSupervisor) {
        self.send_soon(message);
        self.flush();
    }

    /// To go out with the next that is sent.
    pub fn send_soon(&mut self, message: &FromSupervisor) {
        if self.stream.is_some() {
            frame::append(&mut self.outgoing, message);
        }
    }

    fn flush(&mut self) {
        while let Some(stream) = &mut self.stream
            && self.sent < self.outgoing.len()
        {
            match stream.write(&self.outgoing[self.sent..]) {
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.lose(),
            }
        }
        self.outgoing.clear();
        self.sent = 0;
    }

    /// Waits until all has been handed to the kernel, or the agent is gone.
    pub fn flush_all(&mut self) {
        while self.stream.is_some() && self.sent < self.outgoing.len() {
            let mut fds = [self.poll_fd()];
            fds[0].events = libc::POLLOUT;
            sys::poll(&mut fds, -1);
            self.flush();
        }
    }

    /// Takes what has come; `true` first if a new agent has connected.
    pub fn receive(&mut self, messages: &mut Vec<ToSupervisor>) -> bool {
        let is_new = self.accept();
        let mut buffer = [0; 4096];
        while let Some(stream) = &mut self.stream {
            match stream.read(&mut buffer) {
                Ok(0) => self.lose(),
                Ok(length) => self.incoming.push(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.lose(),
            }
        }
        self.flush();
        loop {
            match self.incoming.take() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => return is_new,
                Err(_) => {
                    self.lose();
                    return is_new;
                }
            }
        }
    }

    fn accept(&mut self) -> bool {
        if self.stream.is_some() {
            return false;
        }
        let Some(listener) = &self.listener else { return false };
        let Ok((stream, _)) = listener.accept() else { return false };
        let _ = stream.set_nonblocking(true);
        self.stream = Some(stream);
        self.incoming = Incoming::default();
        self.outgoing.clear();
        self.sent = 0;
        true
    }

    /// The agent is gone: listens for the next. Messages that came whole are still taken.
    fn lose(&mut self) {
        self.stream = None;
        self.outgoing.clear();
        self.sent = 0;
        if self.listener.is_none() {
            self.listener = listen(&self.runs_dir, &self.socket_name).ok();
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if self.listener.is_some() {
            let _ = std::fs::remove_file(self.runs_dir.join(&self.socket_name));
        }
    }
}

/// Through the directory's descriptor: the path itself may be too long for a socket's name.
fn listen(dir: &Path, name: &str) -> io::Result<UnixListener> {
    let _ = std::fs::remove_file(dir.join(name));
    let listener = UnixListener::bind(through(File::open(dir)?.as_fd(), name))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// A short path of a file in an open directory.
pub fn through(dir: BorrowedFd, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()))
}
