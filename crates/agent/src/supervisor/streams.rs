//! What a step has to say to its client, kept until the client has it; and what the client has to say to the tasks.
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::rc::Rc;

use model::attach::{FromStep, Stream};

use super::files::{TaskFileId, TaskFiles};
use crate::protocol::FromSupervisor;
use crate::sys;

/// Output that nobody has received is kept up to this; then the tasks' pipes are left to fill.
const KEPT_BYTES_MAX: usize = 4 << 20;
/// The client is asked for more input when every task has less than this before it.
const INPUT_LOW_BYTES: usize = 64 * 1024;
const READ_BYTES: usize = 64 * 1024;
/// How long the supervisor waits for whoever reads from a pipe that labelled output goes to.
const READER_PATIENCE_MILLIS: i32 = 1000;

/// Events in order. Output goes when it is acknowledged, the few others stay for a client that comes again; but an answer
/// to another node goes when it is sent, since whoever misses it asks again.
#[derive(Default)]
pub struct Outbox {
    events: Vec<(u64, FromStep)>,
    n_sent: usize,
    is_attached: bool,
    kept_bytes: usize,
    /// Bytes of output so far, and how many of them the client has.
    total: u64,
    received: u64,
    /// What the present client counts from.
    base: u64,
    /// Nobody will come for it.
    is_abandoned: bool,
}

impl Outbox {
    pub fn push(&mut self, event: FromStep) {
        if let FromStep::Output { data, .. } = &event {
            self.kept_bytes += data.len();
            self.total += data.len() as u64;
        }
        self.events.push((self.total, event));
    }

    pub fn has_room(&self) -> bool {
        self.kept_bytes < KEPT_BYTES_MAX
    }

    /// A client is there; it gets everything that is kept.
    pub fn attach(&mut self) {
        self.is_attached = true;
        self.is_abandoned = false;
        self.n_sent = 0;
        self.base = self.received;
    }

    pub fn detach(&mut self) {
        self.is_attached = false;
    }

    pub fn abandon(&mut self) {
        self.is_abandoned = !self.is_attached;
    }

    /// Whether whoever would have it is known to be gone.
    pub fn is_abandoned(&self) -> bool {
        self.is_abandoned
    }

    pub fn receive(&mut self, total_bytes: u64) {
        self.received = self.received.max((self.base + total_bytes).min(self.total));
        let received = self.received;
        let (mut index, mut n_sent, mut kept_bytes) = (0, self.n_sent, self.kept_bytes);
        self.events.retain(|(end, event)| {
            let was_sent = index < self.n_sent;
            index += 1;
            match event {
                FromStep::Output { data, .. } if was_sent && *end <= received => {
                    n_sent -= 1;
                    kept_bytes -= data.len();
                    false
                }
                _ => true,
            }
        });
        (self.n_sent, self.kept_bytes) = (n_sent, kept_bytes);
    }

    /// What the client has not been sent yet.
    pub fn take(&mut self) -> Vec<FromSupervisor> {
        if !self.is_attached {
            return Vec::new();
        }
        let fresh = self.events[self.n_sent..].iter().map(|(_, event)| FromSupervisor::Step(event.clone())).collect();
        self.events.retain(|(_, event)| !matches!(event, FromStep::Fetched { .. }));
        self.n_sent = self.events.len();
        fresh
    }

    /// What has been answered need not be said again.
    pub fn forget(&mut self, is_answered: impl Fn(&FromStep) -> bool) {
        let n_sent = self.n_sent;
        let mut index = 0;
        self.events.retain(|(_, event)| {
            let goes = is_answered(event);
            if goes && index < n_sent {
                self.n_sent -= 1;
            }
            index += 1;
            !goes
        });
    }
}

/// The supervisor's end of a task's output, and the file it is to write to, if it is not for the client.
pub struct OutputEnd {
    pub fd: OwnedFd,
    pub file: Option<LabelledFile>,
}

/// A file whose lines begin with the number of the task they are from.
pub struct LabelledFile {
    id: TaskFileId,
    /// None until the files of the run are open.
    file: Option<Rc<OwnedFd>>,
    width: usize,
    /// The last write found no room: the next does not wait for any.
    is_stuck: bool,
    /// The beginning of a line.
    partial: Vec<u8>,
}

impl LabelledFile {
    pub fn new(id: TaskFileId, n_tasks: u32) -> Self {
        LabelledFile { id, file: None, width: model::label::width(n_tasks), is_stuck: false, partial: Vec::new() }
    }

    pub fn find(&mut self, files: &TaskFiles) {
        self.file = files.noted(self.id);
    }

    fn add(&mut self, rank: u32, data: &[u8]) {
        self.partial.extend_from_slice(data);
        let is_long = self.partial.len() >= READ_BYTES;
        let whole = match self.partial.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            None if is_long => self.partial.len(),
            None => return,
        };
        let rest = self.partial.split_off(whole);
        let ready = std::mem::replace(&mut self.partial, rest);
        self.write(rank, &ready);
    }

    fn finish(&mut self, rank: u32) {
        let rest = std::mem::take(&mut self.partial);
        self.write(rank, &rest);
    }

    /// What cannot be written is lost, as it is for a task that does not look.
    fn write(&mut self, rank: u32, data: &[u8]) {
        let text = model::label::lines(self.width, rank, data);
        let mut rest = &text[..];
        let Some(file) = &self.file else { return };
        while !rest.is_empty() {
            match sys::write(file.as_fd(), rest) {
                Ok(0) => return,
                Ok(length) => {
                    rest = &rest[length..];
                    self.is_stuck = false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !self.is_stuck => {
                    self.is_stuck = true;
                    let mut room = [libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLOUT, revents: 0 }];
                    sys::poll(&mut room, READER_PATIENCE_MILLIS);
                }
                Err(_) => return,
            }
        }
    }
}

/// The reading end of a task's output.
pub struct OutputPipe {
    pub fd: OwnedFd,
    rank: u32,
    stream: Stream,
    /// Where it goes, if not to the client.
    file: Option<LabelledFile>,
}

impl OutputPipe {
    pub fn new(end: OutputEnd, rank: u32, stream: Stream) -> Self {
        let _ = sys::set_nonblocking(end.fd.as_fd());
        OutputPipe { fd: end.fd, rank, stream, file: end.file }
    }

    /// Nothing more will come.
    pub fn finish(&mut self) {
        if let Some(file) = &mut self.file {
            file.finish(self.rank);
        }
    }

    /// Reads once; false at the end.
    pub fn read(&mut self, outbox: &mut Outbox) -> Read {
        let mut data = vec![0; READ_BYTES];
        match sys::read(self.fd.as_fd(), &mut data) {
            Ok(0) => {
                self.finish();
                Read::End
            }
            Ok(length) => {
                data.truncate(length);
                match &mut self.file {
                    Some(file) => file.add(self.rank, &data),
                    None => outbox.push(FromStep::Output { rank: self.rank, stream: self.stream, data }),
                }
                Read::Some
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => Read::Nothing,
                io::ErrorKind::Interrupted => Read::Some,
                // A terminal that all its users have closed.
                _ => Read::End,
            },
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Read {
    Some,
    Nothing,
    End,
}

/// The writing end of a task's input.
pub struct InputPipe {
    fd: Option<OwnedFd>,
    waiting: VecDeque<u8>,
    is_ended: bool,
    /// Its end is a character, not a closing.
    is_terminal: bool,
}

impl InputPipe {
    pub fn new(fd: OwnedFd) -> Self {
        let _ = sys::set_nonblocking(fd.as_fd());
        InputPipe { fd: Some(fd), waiting: VecDeque::new(), is_ended: false, is_terminal: false }
    }

    pub fn terminal(fd: OwnedFd) -> Self {
        InputPipe { is_terminal: true, ..InputPipe::new(fd) }
    }

    pub fn push(&mut self, data: &[u8]) {
        if self.fd.is_some() && !self.is_ended {
            self.waiting.extend(data);
            self.write();
        }
    }

    pub fn end(&mut self) {
        if self.is_terminal && !self.is_ended {
            // Ctrl-D
            self.push(&[4]);
        }
        self.is_ended = true;
        self.write();
    }

    /// The descriptor to wait for, while something is waiting.
    pub fn poll_fd(&self) -> Option<libc::pollfd> {
        let fd = self.fd.as_ref().filter(|_| !self.waiting.is_empty())?;
        Some(libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 })
    }

    pub fn is_low(&self) -> bool {
        self.waiting.len() < INPUT_LOW_BYTES
    }

    pub fn write(&mut self) {
        while let Some(fd) = &self.fd
            && !self.waiting.is_empty()
        {
            let (head, _) = self.waiting.as_slices();
            match sys::write(fd.as_fd(), head) {
                Ok(length) => drop(self.waiting.drain(..length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Nobody reads it any more.
                Err(_) => self.close(),
            }
        }
        if self.is_ended && !self.is_terminal {
            self.close();
        }
    }

    pub fn close(&mut self) {
        self.fd = None;
        self.waiting.clear();
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        if let Some(fd) = self.fd.as_ref().filter(|_| self.is_terminal) {
            // SAFETY: the struct is valid; the kernel tells the foreground processes.
            unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCSWINSZ, &size) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(data: &[u8]) -> FromStep {
        FromStep::Output { rank: 0, stream: Stream::Stdout, data: data.to_vec() }
    }

    #[test]
    fn what_was_not_received_is_sent_again() {
        let mut outbox = Outbox::default();
        outbox.push(output(b"abc"));
        assert!(outbox.take().is_empty());
        outbox.attach();
        assert_eq!(outbox.take().len(), 1);
        outbox.push(output(b"de"));
        outbox.push(FromStep::Finished);
        assert_eq!(outbox.take().len(), 2);
        outbox.receive(3);
        outbox.attach();
        assert_eq!(outbox.take().len(), 2);
        outbox.receive(2);
        assert_eq!(outbox.kept_bytes, 0);
        outbox.attach();
        assert_eq!(outbox.take().len(), 1);
    }
}
