//! Brief calls between processes of one machine, both ends.
use wire::foreign_bytes::{answer_brief_caller, read_brief_answer};

use crate::event_loop::with_connections;

const PATH: &str = "/spur.v1.Controller/Ping\n";

fn request(head: &str, length: u32, body: &[u8]) -> Vec<u8> {
    let n_head = (head.len() as u32).to_le_bytes();
    [b"spurcall".as_slice(), &n_head, &length.to_le_bytes(), head.as_bytes(), body].concat()
}

fn piece(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind][..], &(content.len() as u32).to_le_bytes(), content].concat()
}

/// One message of gRPC.
fn message(content: &[u8]) -> Vec<u8> {
    [&[0][..], &(content.len() as u32).to_be_bytes(), content].concat()
}

pub fn request_seeds() -> Vec<Vec<u8>> {
    let short = request(&format!("{PATH}spur-pages:1\nte:trailers\n"), 8, &message(b"\x0a\x01x"));
    let long = request(PATH, 20_005, &message(&[7; 20_000]));
    // Longer than is read before its caller is judged.
    let judged = request(PATH, 65_600, &message(&[7; 65_595])[..60_000]);
    let pieces = [piece(b'D', &message(b"abc")), piece(b'D', b""), piece(b'T', b"")].concat();
    let in_pieces = request(PATH, u32::MAX, &pieces);
    vec![
        [short.clone(), short.clone()].concat(),
        [long, short].concat(),
        judged,
        in_pieces,
        request("no path", 0, b""),
        request(PATH, u32::MAX - 1, b"claimed"),
    ]
}

pub fn run_requests(bytes: &[u8]) {
    let heard = with_connections(|table| async move { answer_brief_caller(&table, bytes).await });
    heard.expect("a caller hears pieces of ours");
}

pub fn answer_seeds() -> Vec<Vec<u8>> {
    let headers = piece(b'H', b"content-type:application/grpc\n");
    let trailers = piece(b'T', b"grpc-status:5\ngrpc-message:no such job\n");
    vec![
        [headers.clone(), piece(b'D', &message(b"hello")), piece(b'D', b"\x00"), trailers.clone()].concat(),
        [headers.clone(), trailers].concat(),
        [headers.clone(), headers.clone()].concat(),
        [headers, b"D\xff\xff\xff\xff".to_vec(), vec![7; 300]].concat(),
    ]
}

pub fn run_answers(bytes: &[u8]) {
    let content = with_connections(|_| read_brief_answer(bytes));
    // Nothing is made up: an answer is no longer than what was said.
    assert!(content.is_none_or(|content| content.len() <= bytes.len()));
}
