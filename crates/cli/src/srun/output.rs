//! Where the tasks' output goes: whole lines, labelled where that is wanted, written by a thread of its own so that a slow
//! reader never stops the rest of srun.
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};

use model::attach::Stream;
use tokio::sync::{mpsc, oneshot};

use crate::output::{TalkStream, pass};

/// A line that never ends is passed on in pieces of this size.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// Pieces on their way to the writer.
const QUEUE: usize = 64;

/// Cuts output into what may be written at once.
#[derive(Debug, Default)]
pub struct Lines {
    /// Digits of the highest rank, where lines are labelled.
    label_width: Option<usize>,
    /// Pass everything on as it comes.
    is_raw: bool,
    partial: BTreeMap<(u32, bool), Vec<u8>>,
}

impl Lines {
    /// One task cannot be mixed up with another, so its output needs no lines, unless they are labelled.
    pub fn new(n_tasks: u32, labels: bool, unbuffered: bool) -> Self {
        let width = model::label::width(n_tasks);
        let is_raw = !labels && (unbuffered || n_tasks <= 1);
        Lines { label_width: labels.then_some(width), is_raw, ..Lines::default() }
    }

    /// What of `data` may be written now.
    pub fn add(&mut self, rank: u32, stream: Stream, data: Vec<u8>) -> Vec<u8> {
        if self.is_raw {
            return data;
        }
        let width = self.label_width;
        let partial = self.partial.entry((rank, stream == Stream::Stderr)).or_default();
        partial.extend_from_slice(&data);
        let whole = match partial.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            None if partial.len() >= LINE_BYTES_MAX => partial.len(),
            None => return Vec::new(),
        };
        let rest = partial.split_off(whole);
        let ready = std::mem::replace(partial, rest);
        labelled(width, rank, ready)
    }

    /// What is left of last lines, in the order of ranks.
    pub fn finish(self) -> Vec<(Stream, Vec<u8>)> {
        let width = self.label_width;
        let rest = |((rank, is_error), data)| {
            (if is_error { Stream::Stderr } else { Stream::Stdout }, labelled(width, rank, data))
        };
        self.partial.into_iter().map(rest).collect()
    }
}

fn labelled(width: Option<usize>, rank: u32, data: Vec<u8>) -> Vec<u8> {
    match width {
        Some(width) => model::label::lines(width, rank, &data),
        None => data,
    }
}

/// Where a stream ends up on this side.
#[derive(Debug)]
pub enum Sink {
    Stdout,
    Stderr,
    File(File),
}

/// A piece of a task's output.
pub struct Piece {
    pub rank: u32,
    pub stream: Stream,
    pub data: Vec<u8>,
}

/// The thread that writes. It ends when the last sender of pieces is gone and everything is written.
pub struct Writer {
    pub pieces: mpsc::Sender<Piece>,
    pub done: oneshot::Receiver<()>,
    /// Nobody reads our output any more.
    pub broken: oneshot::Receiver<()>,
}

/// Without a sink of its own, what tasks write to stderr goes with the rest.
pub fn start(lines: Lines, stdout: Sink, stderr: Option<Sink>) -> Writer {
    let (pieces, mut queue) = mpsc::channel::<Piece>(QUEUE);
    let (finished, done) = oneshot::channel();
    let (refused, broken) = oneshot::channel();
    std::thread::spawn(move || {
        let mut outlet = Outlet { stdout, stderr, refused: Some(refused) };
        let mut lines = lines;
        while let Some(Piece { rank, stream, data }) = queue.blocking_recv() {
            let ready = lines.add(rank, stream, data);
            outlet.write(stream, &ready);
        }
        for (stream, rest) in lines.finish() {
            outlet.write(stream, &rest);
        }
        let _ = finished.send(());
    });
    Writer { pieces, done, broken }
}

struct Outlet {
    stdout: Sink,
    stderr: Option<Sink>,
    refused: Option<oneshot::Sender<()>>,
}

impl Outlet {
    fn write(&mut self, stream: Stream, data: &[u8]) {
        let sink = match (stream, &mut self.stderr) {
            (Stream::Stderr, Some(stderr)) => stderr,
            (Stream::Stdout | Stream::Stderr, _) => &mut self.stdout,
        };
        let is_refused = write(sink, data).is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        if is_refused && let Some(refused) = self.refused.take() {
            let _ = refused.send(());
        }
    }
}

fn write(sink: &mut Sink, data: &[u8]) -> io::Result<()> {
    match sink {
        Sink::Stdout => pass(TalkStream::Stdout, data),
        Sink::Stderr => pass(TalkStream::Stderr, data),
        Sink::File(file) => file.write_all(data),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn lines_are_whole_and_labelled() {
        let mut lines = Lines::new(12, true, false);
        assert_eq!(text(lines.add(3, Stream::Stdout, b"one\ntw".to_vec())), " 3: one\n");
        assert_eq!(text(lines.add(3, Stream::Stderr, b"err\n".to_vec())), " 3: err\n");
        assert_eq!(text(lines.add(11, Stream::Stdout, b"\n  a\n".to_vec())), "11: \n11:   a\n");
        assert_eq!(text(lines.add(3, Stream::Stdout, b"o".to_vec())), "");
        let rest: Vec<String> = lines.finish().into_iter().map(|(_, rest)| text(rest)).collect();
        assert_eq!(rest, [" 3: two\n", "", ""]);
    }

    #[test]
    fn one_task_is_passed_through() {
        let mut lines = Lines::new(1, false, false);
        assert_eq!(text(lines.add(0, Stream::Stdout, b"prompt> ".to_vec())), "prompt> ");
        let mut lines = Lines::new(2, false, false);
        assert_eq!(text(lines.add(0, Stream::Stdout, b"a\nb".to_vec())), "a\n");
        assert_eq!(lines.finish(), [(Stream::Stdout, b"b".to_vec())]);
    }
}
