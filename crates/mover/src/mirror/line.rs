//! Frames on a socket, with an ear for whoever calls it all off.
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::{DATA, END};
use crate::hash::ChunkHash;
use crate::pace::Stop;

const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A peer that says nothing for so long is given up.
const PATIENCE: Duration = Duration::from_secs(60);
const OUT_BYTES: usize = 256 << 10;
const IN_BYTES: usize = 512 << 10;
const FRAME_MAX_BYTES: usize = 8 << 20;

pub struct Line<'a> {
    socket: UnixStream,
    stop: &'a Stop,
    out: Vec<u8>,
    input: Vec<u8>,
    start: usize,
    end: usize,
    /// Of all frames but those whose bytes a chunk's hash covers.
    said: ChunkHash,
    heard: ChunkHash,
}

impl<'a> Line<'a> {
    pub fn new(socket: UnixStream, stop: &'a Stop) -> Result<Self> {
        socket.set_read_timeout(Some(LOOK_EVERY))?;
        socket.set_write_timeout(Some(LOOK_EVERY))?;
        let (out, input) = (Vec::with_capacity(OUT_BYTES * 2), vec![0; IN_BYTES]);
        Ok(Line { socket, stop, out, input, start: 0, end: 0, said: ChunkHash::new(), heard: ChunkHash::new() })
    }

    /// Sent with what follows, or by `flush`.
    pub fn say(&mut self, kind: u8, body: &[u8]) -> Result<()> {
        self.out.extend_from_slice(&(body.len() as u32 + 1).to_le_bytes());
        self.out.push(kind);
        self.out.extend_from_slice(body);
        if ![DATA, END].contains(&kind) {
            self.said.update(&[kind]);
            self.said.update(body);
        }
        if self.out.len() >= OUT_BYTES { self.flush() } else { Ok(()) }
    }

    pub fn flush(&mut self) -> Result<()> {
        let mut done = 0;
        let mut patience = Instant::now() + PATIENCE;
        while done < self.out.len() {
            match self.socket.write(&self.out[done..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(length) => {
                    done += length;
                    patience = Instant::now() + PATIENCE;
                }
                Err(error) => self.bear(error, patience)?,
            }
        }
        self.out.clear();
        Ok(())
    }

    /// The next frame: its kind, and what it says.
    pub fn hear(&mut self) -> Result<(u8, &[u8])> {
        self.have(4)?;
        let head = self.input[self.start..self.start + 4].try_into().expect("four bytes");
        let length = u32::from_le_bytes(head) as usize;
        if length == 0 || length > FRAME_MAX_BYTES {
            return Err(Error::new(ErrorKind::InvalidData, "a frame of an impossible length"));
        }
        self.start += 4;
        self.have(length)?;
        let frame = &self.input[self.start..self.start + length];
        self.start += length;
        if ![DATA, END].contains(&frame[0]) {
            self.heard.update(frame);
        }
        Ok((frame[0], &frame[1..]))
    }

    pub fn said(&self) -> u128 {
        self.said.finish()
    }

    pub fn heard(&self) -> u128 {
        self.heard.finish()
    }

    /// Reads until so much is there.
    fn have(&mut self, length: usize) -> Result<()> {
        if self.end - self.start >= length {
            return Ok(());
        }
        self.input.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.input.len() < length {
            self.input.resize(length, 0);
        }
        let mut patience = Instant::now() + PATIENCE;
        while self.end < length {
            match self.socket.read(&mut self.input[self.end..]) {
                Ok(0) => return Err(Error::new(ErrorKind::UnexpectedEof, "the other end is gone")),
                Ok(read) => {
                    self.end += read;
                    patience = Instant::now() + PATIENCE;
                }
                Err(error) => self.bear(error, patience)?,
            }
        }
        Ok(())
    }

    fn bear(&self, error: Error, patience: Instant) -> Result<()> {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
            _ => return Err(error),
        }
        if self.stop.is_set() {
            return Err(Error::other("called off"));
        }
        if Instant::now() > patience {
            return Err(Error::new(ErrorKind::TimedOut, "the other end says nothing"));
        }
        Ok(())
    }
}
