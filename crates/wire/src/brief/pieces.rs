//! What comes in pieces, as a body: an answer at the caller's end, a long request at the daemon's.
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tonic::codegen::StdError;

use super::{Piece, next_piece};

/// How it ended that pieces were read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Whole,
    /// The other side has gone, or says what cannot be understood.
    Broken,
    /// Nobody here wants to read on.
    Unwanted,
}

/// Reads pieces until the last; then gives what it read from, and how it ended, to `done`.
pub struct Pieces<R, D: FnOnce(R, End)> {
    /// None: it has ended.
    source: Option<(R, D)>,
    read: BytesMut,
    /// Of the piece of data that is coming.
    n_left: usize,
}

impl<R, D: FnOnce(R, End)> Pieces<R, D> {
    pub fn new(source: R, read: BytesMut, done: D) -> Self {
        Pieces { source: Some((source, done)), read, n_left: 0 }
    }

    fn end(&mut self, end: End) {
        if let Some((source, done)) = self.source.take() {
            done(source, end);
        }
    }
}

impl<R, D: FnOnce(R, End)> Drop for Pieces<R, D> {
    fn drop(&mut self) {
        self.end(End::Unwanted);
    }
}

impl<R: AsyncRead + Unpin, D: FnOnce(R, End) + Unpin> http_body::Body for Pieces<R, D> {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, StdError>>> {
        let pieces = self.get_mut();
        loop {
            let Some((source, _)) = &mut pieces.source else { return Poll::Ready(None) };
            let wrong: StdError = match next_piece(&mut pieces.read, &mut pieces.n_left) {
                Ok(Some(Piece::Data(data))) if data.is_empty() => continue,
                Ok(Some(Piece::Data(data))) => return Poll::Ready(Some(Ok(http_body::Frame::data(data)))),
                Ok(Some(Piece::Trailers(trailers))) => {
                    pieces.end(End::Whole);
                    // An answer that is only a refusal has said all in its headers.
                    return Poll::Ready((!trailers.is_empty()).then(|| Ok(http_body::Frame::trailers(trailers))));
                }
                Ok(Some(Piece::Headers(_))) => "it begins twice".into(),
                Err(wrong) => wrong.into(),
                Ok(None) => match ready!(pin!(source.read_buf(&mut pieces.read)).poll(context)) {
                    Ok(0) => "the connection was closed".into(),
                    Ok(_) => continue,
                    Err(error) => error.into(),
                },
            };
            pieces.end(End::Broken);
            return Poll::Ready(Some(Err(wrong)));
        }
    }
}
