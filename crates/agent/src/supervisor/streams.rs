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
/// Output that is on its way to the client, at most: what the agent keeps of it for a client that does not read.
const SENT_BYTES_MAX: u64 = 1 << 20;
/// Exchanges of MPI that nobody has answered are kept up to this; then what the tasks say waits in their sockets.
const EXCHANGE_BYTES_MAX: usize = 64 << 20;
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
    /// Everything that is not output.
    exchange_bytes: usize,
    /// Bytes of output so far, how many of them have been sent, and how many of them the client has.
    total: u64,
    sent: u64,
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
        } else {
            self.exchange_bytes += exchange_bytes(&event);
        }
        self.events.push((self.total, event));
    }

    pub fn has_room_for_exchange(&self) -> bool {
        self.exchange_bytes < EXCHANGE_BYTES_MAX
    }

    pub fn has_room(&self) -> bool {
        self.kept_bytes < KEPT_BYTES_MAX
    }

    /// A client is there; it gets everything that is kept.
    pub fn attach(&mut self) {
        self.is_attached = true;
        self.is_abandoned = false;
        self.n_sent = 0;
        self.sent = self.received;
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
        // Nobody can have received what was not sent.
        self.received = self.received.max(self.base.saturating_add(total_bytes).min(self.sent));
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

    /// What the client has not been sent yet, as far as it may be under way.
    pub fn take(&mut self) -> Vec<FromSupervisor> {
        if !self.is_attached {
            return Vec::new();
        }
        let most = self.received + SENT_BYTES_MAX;
        let fits = |(end, event): &&(u64, FromStep)| !matches!(event, FromStep::Output { .. }) || *end <= most;
        let fresh: Vec<_> = self.events[self.n_sent..].iter().take_while(fits).cloned().collect();
        self.n_sent += fresh.len();
        self.sent = fresh.last().map_or(self.sent, |(end, _)| self.sent.max(*end));
        if fresh.iter().any(|(_, event)| matches!(event, FromStep::Fetched { .. })) {
            let n_sent = self.n_sent;
            self.forget_where(|index, event| index < n_sent && matches!(event, FromStep::Fetched { .. }));
        }
        fresh.into_iter().map(|(_, event)| FromSupervisor::Step(event)).collect()
    }

    /// What has been answered need not be said again.
    pub fn forget(&mut self, is_answered: impl Fn(&FromStep) -> bool) {
        self.forget_where(|_, event| is_answered(event));
    }

    /// Of events that are no output.
    fn forget_where(&mut self, goes: impl Fn(usize, &FromStep) -> bool) {
        let (n_sent, mut index) = (self.n_sent, 0);
        let (mut n_sent_gone, mut n_bytes_gone) = (0, 0);
        self.events.retain(|(_, event)| {
            let goes = goes(index, event);
            if goes {
                n_sent_gone += usize::from(index < n_sent);
                n_bytes_gone += exchange_bytes(event);
            }
            index += 1;
            !goes
        });
        self.n_sent -= n_sent_gone;
        self.exchange_bytes -= n_bytes_gone;
    }
}

/// What an event that is no output takes, roughly.
fn exchange_bytes(event: &FromStep) -> usize {
    let content = match event {
        FromStep::Output { .. } => return 0,
        FromStep::Started { tasks } => size_of_val(&tasks[..]),
        FromStep::Fence { entries, .. } => entries.iter().map(|(key, value)| key.len() + value.len() + 64).sum(),
        FromStep::Gather { data, group, .. } => data.len() + group.len(),
        FromStep::Fetched { data, .. } => data.len(),
        FromStep::Abort { text, .. } | FromStep::Failed { why: text } => text.len(),
        FromStep::TaskExited { .. } | FromStep::Fetch { .. } | FromStep::Finished => 0,
    };
    content + size_of::<FromStep>()
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

    #[test]
    fn receipts_release_no_more_than_was_sent() {
        let mut outbox = Outbox::default();
        outbox.attach();
        let mut n_taken = 0;
        for _ in 0..1000 {
            while outbox.has_room() {
                outbox.push(output(&[0; READ_BYTES]));
            }
            n_taken += outbox.take().len();
        }
        assert_eq!((n_taken * READ_BYTES) as u64, SENT_BYTES_MAX, "what nobody receives waits here");
        // However much a client says to have: only what went out.
        outbox.receive(1 << 62);
        assert_eq!(outbox.received, SENT_BYTES_MAX);
        assert_eq!((outbox.take().len() * READ_BYTES) as u64, SENT_BYTES_MAX);
        outbox.attach();
        outbox.receive(u64::MAX);
        assert_eq!(outbox.received, SENT_BYTES_MAX, "a new client has nothing yet");
        assert_eq!((outbox.take().len() * READ_BYTES) as u64, SENT_BYTES_MAX);
    }

    #[test]
    fn exchange_that_nobody_answers_is_bounded() {
        let mut outbox = Outbox::default();
        let gather = |sequence| FromStep::Gather { group: "0-1".into(), n_nodes: 2, sequence, data: vec![0; 1 << 20] };
        let mut n_kept = 0;
        while outbox.has_room_for_exchange() {
            outbox.push(gather(n_kept));
            n_kept += 1;
        }
        assert_eq!(n_kept as usize, EXCHANGE_BYTES_MAX >> 20);
        outbox.forget(|event| matches!(event, FromStep::Gather { .. }));
        assert_eq!(outbox.exchange_bytes, 0);
    }
}
