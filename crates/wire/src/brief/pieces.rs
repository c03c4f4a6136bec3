//! What comes in pieces, as a body: an answer at the caller's end, a long request at the daemon's.
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tonic::codegen::StdError;

use super::{Piece, next_piece};

/// Reads pieces until the last; then gives what it read from, and whether all has come, to `done`.
pub struct Pieces<R, D: FnOnce(R, bool)> {
    /// None: it has ended.
    source: Option<(R, D)>,
    read: BytesMut,
}

impl<R, D: FnOnce(R, bool)> Pieces<R, D> {
    pub fn new(source: R, read: BytesMut, done: D) -> Self {
        Pieces { source: Some((source, done)), read }
    }

    fn end(&mut self, is_whole: bool) {
        if let Some((source, done)) = self.source.take() {
            done(source, is_whole);
        }
    }
}

impl<R, D: FnOnce(R, bool)> Drop for Pieces<R, D> {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl<R: AsyncRead + Unpin, D: FnOnce(R, bool) + Unpin> http_body::Body for Pieces<R, D> {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, StdError>>> {
        let pieces = self.get_mut();
        loop {
            let Some((source, _)) = &mut pieces.source else { return Poll::Ready(None) };
            let wrong: StdError = match next_piece(&mut pieces.read) {
                Ok(Some(Piece::Data(data))) => return Poll::Ready(Some(Ok(http_body::Frame::data(data)))),
                Ok(Some(Piece::Trailers(trailers))) => {
                    pieces.end(true);
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
            pieces.end(false);
            return Poll::Ready(Some(Err(wrong)));
        }
    }
}
