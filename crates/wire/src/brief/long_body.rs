//! A body of known length that is read only as far as somebody wants it. What is left goes back to whoever reads the connection.
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use tokio::io::AsyncReadExt;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::oneshot;
use tonic::Status;

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;

/// A connection in the middle of a body, or behind it.
#[derive(Debug)]
pub struct Leftover {
    pub stream: OwnedReadHalf,
    pub read: BytesMut,
    pub n_left: usize,
}

pub struct LongBody {
    /// None: given back.
    rest: Option<(Leftover, oneshot::Sender<Leftover>)>,
}

impl LongBody {
    pub fn new(stream: OwnedReadHalf, read: BytesMut, length: usize) -> (LongBody, oneshot::Receiver<Leftover>) {
        let (give, left) = oneshot::channel();
        (LongBody { rest: Some((Leftover { stream, read, n_left: length }, give)) }, left)
    }

    fn give_back(&mut self) {
        if let Some((leftover, give)) = self.rest.take() {
            // The connection ends where nobody waits for it.
            let _ = give.send(leftover);
        }
    }
}

impl Drop for LongBody {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl http_body::Body for LongBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let body = self.get_mut();
        let Some((leftover, _)) = &mut body.rest else { return Poll::Ready(None) };
        if leftover.read.is_empty() {
            leftover.read.reserve(READ_BYTES);
            match ready!(pin!(leftover.stream.read_buf(&mut leftover.read)).poll(context)) {
                Ok(n_read) if n_read > 0 => {}
                Ok(_) | Err(_) => {
                    // What was announced does not come any more; neither does another request.
                    body.rest = None;
                    return Poll::Ready(Some(Err(Status::cancelled("the connection was closed"))));
                }
            }
        }
        let n_here = leftover.read.len().min(leftover.n_left);
        leftover.n_left -= n_here;
        let data = leftover.read.split_to(n_here).freeze();
        if leftover.n_left == 0 {
            body.give_back();
        }
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn size_hint(&self) -> SizeHint {
        let n_left = self.rest.as_ref().map_or(0, |(leftover, _)| leftover.n_left);
        SizeHint::with_exact(n_left as u64)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.as_ref().is_none_or(|(leftover, _)| leftover.n_left == 0)
    }
}
