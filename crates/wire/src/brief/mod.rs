//! A call in few words: what gRPC says between two processes of one machine, without HTTP/2 around it.
//!
//! A command lives for a millisecond, and most of that went into a protocol made for long connections. On a Unix socket a caller
//! may therefore begin with [`GREETING`] instead of HTTP/2's preface and give its one request at once; the answer comes in pieces.
//! Paths, headers, messages and trailers are those of gRPC, so whoever answers never knows which way a call came.
//!
//! ```text
//! request: GREETING, length of head (u32), length of body (u32), head, body      then the next request, if any
//! head:    the path, then `name:value` lines
//! answer:  pieces of kind (1 byte), length (u32), content: one HEADERS, any number of DATA, one TRAILERS
//! ```
//!
//! A request that goes on while it is answered has [`IN_PIECES`] for its length, comes in DATA and ends with TRAILERS; it is the
//! last on its connection.
mod answer;
mod ask;
#[doc(hidden)]
pub mod foreign_bytes;
mod long_body;
mod pieces;

use bytes::{Buf, Bytes, BytesMut};
use tonic::codegen::http::{HeaderMap, HeaderName, HeaderValue};

pub use answer::incoming;
pub use ask::Brief;

/// Nothing that begins so is HTTP.
const GREETING: &[u8; 8] = b"spurcall";
const HEADERS: u8 = b'H';
const DATA: u8 = b'D';
const TRAILERS: u8 = b'T';
/// Kind and length.
const PIECE_HEAD_BYTES: usize = 5;
const HEAD_MAX_BYTES: usize = 16 * 1024;
const IN_PIECES: u32 = u32::MAX;

/// A part of an answer, or of a request that comes in pieces.
#[derive(Debug, PartialEq)]
enum Piece {
    Headers(HeaderMap),
    Data(Bytes),
    Trailers(HeaderMap),
}

fn write_headers(headers: &HeaderMap, into: &mut Vec<u8>) {
    for (name, value) in headers {
        into.extend_from_slice(name.as_str().as_bytes());
        into.push(b':');
        into.extend_from_slice(value.as_bytes());
        into.push(b'\n');
    }
}

fn read_headers(lines: &[u8]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        headers.append(name, HeaderValue::from_bytes(&line[colon + 1..]).ok()?);
    }
    Some(headers)
}

fn write_piece(kind: u8, content: &[u8], into: &mut Vec<u8>) {
    write_piece_head(kind, content.len(), into);
    into.extend_from_slice(content);
}

fn write_piece_head(kind: u8, n_bytes: usize, into: &mut Vec<u8>) {
    into.push(kind);
    into.extend_from_slice(&(n_bytes as u32).to_le_bytes());
}

fn write_lines(kind: u8, headers: &HeaderMap, into: &mut Vec<u8>) {
    let start = into.len();
    write_piece(kind, &[], into);
    write_headers(headers, into);
    let length = (into.len() - start - PIECE_HEAD_BYTES) as u32;
    into[start + 1..start + PIECE_HEAD_BYTES].copy_from_slice(&length.to_le_bytes());
}

const WRONG: &str = "the other end cannot be understood; is it of another version?";

/// The first piece of what was read, or what has come of it if it is data; `n_left` is what is still to come of that. Headers
/// and trailers come whole. An error is nothing in our words.
fn next_piece(read: &mut BytesMut, n_left: &mut usize) -> Result<Option<Piece>, &'static str> {
    if *n_left > 0 {
        if read.is_empty() {
            return Ok(None);
        }
        let n_here = read.len().min(*n_left);
        *n_left -= n_here;
        return Ok(Some(Piece::Data(read.split_to(n_here).freeze())));
    }
    let Some((&kind, rest)) = read.split_first() else { return Ok(None) };
    if ![HEADERS, DATA, TRAILERS].contains(&kind) {
        return Err(WRONG);
    }
    let Some((length, rest)) = rest.split_first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if kind == DATA {
        let n_here = rest.len().min(length);
        read.advance(PIECE_HEAD_BYTES);
        *n_left = length - n_here;
        // What is awaited is read in large parts.
        if *n_left > 0 {
            read.reserve(n_here + (*n_left).min(READ_AHEAD_MAX_BYTES));
        }
        return Ok(Some(Piece::Data(read.split_to(n_here).freeze())));
    }
    if length > LINES_MAX_BYTES {
        return Err(WRONG);
    }
    if rest.len() < length {
        read.reserve(length - rest.len());
        return Ok(None);
    }
    read.advance(PIECE_HEAD_BYTES);
    let content = read.split_to(length).freeze();
    let lines = read_headers(&content).ok_or(WRONG)?;
    Ok(Some(if kind == HEADERS { Piece::Headers(lines) } else { Piece::Trailers(lines) }))
}

/// Headers and trailers of an answer hold a refusal and what it is about.
const LINES_MAX_BYTES: usize = 1 << 20;
/// A length that was only announced takes no more room than this before its bytes come.
const READ_AHEAD_MAX_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_was_written_wherever_it_is_cut() {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", HeaderValue::from_static("5"));
        headers.insert("grpc-message", HeaderValue::from_static("a:b c"));
        let mut written = Vec::new();
        write_lines(HEADERS, &headers, &mut written);
        write_piece(DATA, b"one\ntwo", &mut written);
        write_piece(DATA, b"", &mut written);
        write_lines(TRAILERS, &HeaderMap::new(), &mut written);
        let expected =
            [Piece::Headers(headers), Piece::Data(Bytes::from_static(b"one\ntwo")), Piece::Trailers(HeaderMap::new())];
        for cut in 0..written.len() {
            let (mut read, mut n_left) = (BytesMut::from(&written[..cut]), 0);
            let mut pieces = Vec::new();
            while let Some(piece) = next_piece(&mut read, &mut n_left).expect("so far it is right") {
                pieces.push(piece);
            }
            read.extend_from_slice(&written[cut..]);
            while let Some(piece) = next_piece(&mut read, &mut n_left).expect("it is right") {
                pieces.push(piece);
            }
            assert_eq!(joined(pieces), expected, "cut at {cut}");
        }
    }

    /// Where data was cut does not matter.
    fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
        let mut whole: Vec<Piece> = Vec::new();
        for piece in pieces {
            match (whole.last_mut(), piece) {
                (Some(Piece::Data(before)), Piece::Data(data)) => *before = [&before[..], &data].concat().into(),
                (_, piece) => whole.push(piece),
            }
        }
        whole
    }

    #[test]
    fn what_is_no_answer_of_ours_is_told_at_once() {
        assert!(next_piece(&mut BytesMut::from(&b"\0\0\x12\x04"[..]), &mut 0).is_err());
        let mut written = Vec::new();
        write_piece(TRAILERS, b"no colon\n", &mut written);
        assert!(next_piece(&mut BytesMut::from(&written[..]), &mut 0).is_err());
    }
}
