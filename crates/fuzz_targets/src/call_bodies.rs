//! Bodies of calls, cut anywhere, through the bound of their call and into the decoders behind it.
use std::cell::OnceCell;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use controller::foreign_bytes::bound_of;
use http_body::Frame;
use http_body_util::StreamBody;
use tonic::codec::{DecodeBuf, Decoder, Streaming};
use tonic::codegen::http::Request;
use tonic::{Status, body::Body};
use wire::bounded_body;
use wire::connection_table::{ConnectionOwner, ConnectionSlot, ConnectionState, ConnectionTable};

use crate::call_table::{CALLS, CallRow};
use crate::event_loop::with_connections;

/// Bytes that come after the bytes that choose call, caller and cuts.
const CHOICES: usize = 3;

thread_local! {
    static CONNECTION: OnceCell<(UnixStream, ConnectionSlot)> = const { OnceCell::new() };
}

/// Of a user whose requests are counted.
fn connection(table: &ConnectionTable) -> Arc<ConnectionState> {
    CONNECTION.with(|cell| {
        let admitted = || {
            let (near, _) = UnixStream::pair().expect("two sockets");
            let slot = table.admit(ConnectionOwner::User(54_321), &near).expect("there is room");
            (near, slot)
        };
        cell.get_or_init(admitted).1.state().clone()
    })
}

/// Messages as they are.
struct WholeMessages;

impl Decoder for WholeMessages {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let n_bytes = from.remaining();
        Ok(Some(from.copy_to_bytes(n_bytes)))
    }
}

fn message(content: &[u8]) -> Vec<u8> {
    [&[0][..], &(content.len() as u32).to_be_bytes(), content].concat()
}

/// The body as it crosses the socket, into what the call's handler reads.
fn receive(row: &CallRow, is_stranger: bool, cuts: u8, body: &[u8]) {
    let bound = bound_of(row.call, is_stranger);
    let pieces: Vec<_> = crate::cut(body, cuts).into_iter().map(Bytes::copy_from_slice).collect();
    with_connections(|table| async move {
        let frames = tokio_stream::iter(pieces.into_iter().map(|piece| Ok::<_, Status>(Frame::data(piece))));
        let mut request = Request::new(Body::new(StreamBody::new(frames)));
        request.extensions_mut().insert(connection(&table));
        let (request, _hold) = bounded_body::bound(request, bound);
        let most = Some(bound.message_bytes);
        let mut messages = Streaming::<Bytes>::new_request(WholeMessages, request.into_body(), None, most);
        let mut n_messages = 0;
        while let Ok(Some(message)) = messages.message().await {
            n_messages += 1;
            assert!(message.len() <= bound.message_bytes, "{}: {} bytes came in", row.call, message.len());
            assert!(bound.is_stream || n_messages == 1, "{} takes one message", row.call);
            (row.read)(&message);
        }
    });
}

pub fn seeds() -> Vec<Vec<u8>> {
    let of_call = |(at, row): (usize, &CallRow)| {
        [0u8, 0x55, 0xfe].map(|turn| {
            let mut entropy = &vec![turn; 600][..];
            let body = message(&(row.draw)(&mut entropy));
            [&[at as u8, turn & 1, turn >> 4], body.as_slice()].concat()
        })
    };
    let seeds = CALLS.iter().enumerate().flat_map(of_call);
    // Two messages, and lengths that are only claimed.
    let two = [&[0, 0, 0][..], &message(b""), &message(b"")].concat();
    let claimed = [&[0, 0, 3][..], b"\0\xff\xff\xff\xff"].concat();
    seeds.chain([two, claimed]).filter(|seed| seed.len() < 16_384).collect()
}

pub fn run(bytes: &[u8]) {
    let Some((&[call, caller, cuts], body)) = bytes.split_first_chunk::<CHOICES>() else { return };
    receive(&CALLS[usize::from(call) % CALLS.len()], caller % 2 == 1, cuts, body);
}

pub fn drawn_seeds() -> Vec<Vec<u8>> {
    let of_call = |at: usize| (0..=255u8).map(|byte| byte.wrapping_mul(29).wrapping_add(at as u8)).collect::<Vec<_>>();
    (0..CALLS.len()).map(|at| [&[at as u8, 0, at as u8], of_call(at).as_slice()].concat()).collect()
}

/// The bytes choose the nouns instead of being them.
pub fn run_drawn(bytes: &[u8]) {
    let Some((&[call, caller, cuts], mut entropy)) = bytes.split_first_chunk::<CHOICES>() else { return };
    let row = &CALLS[usize::from(call) % CALLS.len()];
    let body = message(&(row.draw)(&mut entropy));
    receive(row, caller % 2 == 1, cuts, &body);
}
