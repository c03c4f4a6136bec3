//! Answers of any size: no message is larger than a page, whatever the state holds.
//!
//! A list comes in several messages, each made when its reader comes to it; a noun that is larger than a page comes in
//! pieces, which the caller puts together. A noun is made when its reader comes to it, and counts as unread until it is.
//! Callers of earlier releases, who do not say [`PAGES_HEADER`], get what they know: everything in one message.
use std::pin::Pin;

use bytes::Bytes;
use model::codec;
use tokio_stream::{Stream, StreamExt};
use tonic::{Status, Streaming};

use crate::proto::{
    AccountsReply, BurstReply, ChronicleReply, ConfigurationReply, DiagnoseReply, HistoryReply, JobsReply,
    LicensesReply, MembersReply, NodesReply, ReservationsReply, StagingReply, StandingReply, TriggersReply, WhyReply,
};
use crate::refusal::CallError;
use crate::unread_answers::AnswerStock;

/// With a request: the caller puts pages together.
pub const PAGES_HEADER: &str = "spur-pages";
/// What a page holds, but for one item that is larger.
pub const PAGE_BYTES: usize = 1 << 20;

/// An answer whose messages add up to one.
pub trait PagedReply: Default + Send + 'static {
    /// Takes in what the next message holds.
    fn add(&mut self, next: Self);
}

/// An answer that holds one noun.
pub trait NounInPages: PagedReply {
    /// Its bytes count for the caller until the last piece of them is gone.
    fn kept(self, stock: &AnswerStock) -> Self;

    /// The answer in messages of [`PAGE_BYTES`] each, at least one. Nothing is copied.
    fn pages(self) -> Vec<Self>;
}

/// An answer that holds a list.
pub trait ListInPages: PagedReply {
    fn push(&mut self, item: Bytes);
}

/// A noun, the pieces of which stand in the same field of several messages.
macro_rules! paged_nouns {
    ($($reply:ident . $field:ident),* $(,)?) => { $(
        impl NounInPages for $reply {
            fn kept(mut self, stock: &AnswerStock) -> Self {
                self.$field = stock.keep(std::mem::take(&mut self.$field));
                self
            }

            #[allow(clippy::field_reassign_with_default, reason = "most of these messages have no other field")]
            fn pages(mut self) -> Vec<Self> {
                let mut rest = cut(std::mem::take(&mut self.$field)).into_iter();
                self.$field = rest.next().unwrap_or_default();
                let others = rest.map(|piece| {
                    let mut next = Self::default();
                    next.$field = piece;
                    next
                });
                std::iter::once(self).chain(others).collect()
            }
        }

        impl PagedReply for $reply {
            fn add(&mut self, next: Self) {
                self.$field = [&self.$field[..], &next.$field[..]].concat().into();
            }
        }
    )* };
}

/// A list, the items of which stand in several messages.
macro_rules! paged_lists {
    ($($reply:ident . $field:ident),* $(,)?) => { $(
        impl ListInPages for $reply {
            fn push(&mut self, item: Bytes) {
                self.$field.push(item);
            }
        }

        impl PagedReply for $reply {
            fn add(&mut self, next: Self) {
                self.$field.extend(next.$field);
            }
        }
    )* };
}

paged_nouns!(
    AccountsReply.accounts,
    StandingReply.standing,
    ChronicleReply.chronicle,
    ConfigurationReply.config,
    DiagnoseReply.diagnosis,
    BurstReply.page,
    WhyReply.why,
    MembersReply.members,
);
paged_lists!(NodesReply.nodes, ReservationsReply.reservations, TriggersReply.triggers, LicensesReply.licenses,);

/// A stream of nouns: one that is larger than a page goes on in the next message.
pub trait NounReply: Send + 'static {
    fn of(noun: Bytes, continues: bool) -> Self;
    fn into_noun(self) -> (Bytes, bool);
}

macro_rules! streamed_nouns {
    ($($reply:ident . $field:ident),* $(,)?) => { $(
        impl NounReply for $reply {
            fn of(noun: Bytes, continues: bool) -> Self {
                $reply { $field: noun, continues }
            }

            fn into_noun(self) -> (Bytes, bool) {
                (self.$field, self.continues)
            }
        }
    )* };
}

streamed_nouns!(JobsReply.page, HistoryReply.page, StagingReply.page);

/// The caller puts pages together.
pub fn are_taken<T>(request: &tonic::Request<T>) -> bool {
    request.metadata().contains_key(PAGES_HEADER)
}

/// The messages of one noun of a stream.
pub fn messages<R: NounReply>(noun: Vec<u8>, takes_pages: bool) -> impl Iterator<Item = R> + Send {
    let noun = Bytes::from(noun);
    let pieces = if takes_pages { cut(noun) } else { vec![noun] };
    let last = pieces.len() - 1;
    pieces.into_iter().enumerate().map(move |(number, piece)| R::of(piece, number < last))
}

/// At least one piece; no copies are made.
fn cut(mut noun: Bytes) -> Vec<Bytes> {
    let mut pieces = Vec::with_capacity(noun.len() / PAGE_BYTES + 1);
    while noun.len() > PAGE_BYTES {
        pieces.push(noun.split_to(PAGE_BYTES));
    }
    pieces.push(noun);
    pieces
}

/// All messages of an answer in one.
pub(crate) async fn whole<R: PagedReply>(mut answer: Streaming<R>) -> Result<R, CallError> {
    let first = answer.message().await?;
    let mut all = first.ok_or_else(|| CallError::Broken("the answer has no beginning".into()))?;
    // Adding piece by piece would copy the beginning again and again.
    let mut rest = Vec::new();
    while let Some(next) = answer.message().await? {
        rest.push(next);
    }
    while rest.len() > 1 {
        let mut halves = rest.into_iter();
        rest = std::iter::from_fn(|| {
            let mut left = halves.next()?;
            if let Some(right) = halves.next() {
                left.add(right);
            }
            Some(left)
        })
        .collect();
    }
    if let Some(next) = rest.pop() {
        all.add(next);
    }
    Ok(all)
}

/// The nouns of a stream, each put together.
pub(crate) fn nouns<R: NounReply, T: codec::Decode + 'static>(
    replies: Streaming<R>,
) -> impl Stream<Item = Result<T, CallError>> + use<R, T> {
    let mut begun: Vec<u8> = Vec::new();
    let put_together = move |reply: Result<R, Status>| {
        let (piece, continues) = match reply {
            Ok(reply) => reply.into_noun(),
            Err(status) => return Some(Err(status.into())),
        };
        if continues || !begun.is_empty() {
            begun.extend_from_slice(&piece);
        }
        match (continues, begun.is_empty()) {
            (true, _) => None,
            (false, true) => Some(crate::client::read(&piece)),
            (false, false) => Some(crate::client::read(&std::mem::take(&mut begun))),
        }
    };
    replies.filter_map(put_together)
}

/// As servers give them.
pub type Messages<R> = Pin<Box<dyn Stream<Item = Result<R, Status>> + Send>>;

/// The noun that answers a request, in pages if its caller takes them; made when it is asked for.
pub fn noun<R: NounInPages>(
    stock: AnswerStock,
    takes_pages: bool,
    make: impl FnOnce() -> R + Send + 'static,
) -> Messages<R> {
    let made = std::iter::once(make).flat_map(move |make| noun_pages(make().kept(&stock), takes_pages));
    Box::pin(tokio_stream::iter(made.map(Ok)))
}

/// As [`noun`], of one that is there and kept.
pub fn made_noun<R: NounInPages>(noun: R, takes_pages: bool) -> Messages<R> {
    Box::pin(tokio_stream::iter(noun_pages(noun, takes_pages).into_iter().map(Ok)))
}

fn noun_pages<R: NounInPages>(noun: R, takes_pages: bool) -> Vec<R> {
    if takes_pages { noun.pages() } else { vec![noun] }
}

/// The list that answers a request, page by page if its caller takes them: `first` holds what is no item. At least one.
pub fn list<R: ListInPages>(
    first: R,
    takes_pages: bool,
    items: impl Iterator<Item = Bytes> + Send + 'static,
) -> Messages<R> {
    Box::pin(tokio_stream::iter(list_pages(first, takes_pages, items).map(Ok)))
}

fn list_pages<R: ListInPages>(
    first: R,
    takes_pages: bool,
    items: impl Iterator<Item = Bytes> + Send,
) -> impl Iterator<Item = R> + Send {
    let mut items = items.peekable();
    let mut first = Some(first);
    std::iter::from_fn(move || {
        if first.is_none() && items.peek().is_none() {
            return None;
        }
        let mut page = first.take().unwrap_or_default();
        let mut n_bytes = 0;
        let has_room =
            |item: &Bytes, n_bytes: usize| !takes_pages || n_bytes == 0 || n_bytes + item.len() <= PAGE_BYTES;
        while let Some(item) = items.next_if(|item| has_room(item, n_bytes)) {
            n_bytes += item.len();
            page.push(item);
        }
        Some(page)
    })
}

/// Items that are looked up a few at a time: what the last one was says where to go on.
pub fn in_batches<T>(mut after: impl FnMut(Option<&T>) -> Vec<T>) -> impl Iterator<Item = T>
where
    T: Clone,
{
    let mut batch = Vec::new().into_iter();
    let mut last = None;
    std::iter::from_fn(move || {
        let next = batch.next().or_else(|| {
            batch = after(last.as_ref()).into_iter();
            batch.next()
        });
        last.clone_from(&next);
        next
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put_together<R: PagedReply>(pages: Vec<R>) -> R {
        pages
            .into_iter()
            .reduce(|mut all, next| {
                all.add(next);
                all
            })
            .expect("there is always a page")
    }

    #[test]
    fn pages_of_any_answer_add_up_to_it() {
        for n_bytes in [0, 1, PAGE_BYTES, PAGE_BYTES + 1, 3 * PAGE_BYTES] {
            let noun: Bytes = (0..n_bytes).map(|at| at as u8).collect::<Vec<_>>().into();
            let config = ConfigurationReply { config: noun.clone(), next_job: 7, ..Default::default() };
            let pages = config.clone().pages();
            assert!(pages.iter().all(|page| page.config.len() <= PAGE_BYTES));
            assert_eq!(put_together(pages), config);
            let nodes = NodesReply { nodes: vec![noun, vec![1; 7].into(), vec![2; PAGE_BYTES].into()], now_micros: 9 };
            let first = NodesReply { now_micros: 9, ..Default::default() };
            let pages: Vec<NodesReply> = list_pages(first, true, nodes.nodes.clone().into_iter()).collect();
            assert!(pages.iter().all(|page| page.nodes.len() == 1 || page.nodes.iter().map(Bytes::len).sum::<usize>() <= PAGE_BYTES));
            assert_eq!(put_together(pages), nodes);
        }
    }

    #[test]
    fn list_is_made_as_it_is_read() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicUsize, Ordering};
        let (n_made, counted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = counted.clone();
        let numbers = in_batches(move |last: Option<&usize>| {
            let next = last.map_or(0, |last| last + 1);
            seen.fetch_add(1, Ordering::Relaxed);
            (next..(next + 3).min(100)).collect()
        });
        let made = n_made.clone();
        let items = numbers.map(move |number| {
            made.fetch_add(1, Ordering::Relaxed);
            Bytes::from(vec![number as u8; PAGE_BYTES / 4])
        });
        let mut pages = list_pages(NodesReply::default(), true, items);
        assert_eq!(pages.next().unwrap().nodes.len(), 4);
        // And the one that found no room.
        assert_eq!(n_made.load(Ordering::Relaxed), 5);
        assert_eq!(pages.map(|page| page.nodes.len()).sum::<usize>(), 96);
        assert_eq!(counted.load(Ordering::Relaxed), 35);
        assert_eq!(list_pages(NodesReply::default(), true, std::iter::empty()).count(), 1);
    }

    #[test]
    fn noun_larger_than_a_page_goes_on_in_the_next_message() {
        let sizes = |n_bytes: usize, takes_pages| -> Vec<(usize, bool)> {
            let replies = messages::<JobsReply>(vec![1; n_bytes], takes_pages);
            replies.map(|reply| (reply.page.len(), reply.continues)).collect()
        };
        assert_eq!(sizes(0, true), [(0, false)]);
        assert_eq!(sizes(PAGE_BYTES, true), [(PAGE_BYTES, false)]);
        assert_eq!(sizes(PAGE_BYTES + 1, true), [(PAGE_BYTES, true), (1, false)]);
        assert_eq!(sizes(PAGE_BYTES + 1, false), [(PAGE_BYTES + 1, false)]);
    }
}
