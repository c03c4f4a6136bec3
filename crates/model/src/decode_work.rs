//! How much work the decoding of one message may take: few bytes may stand for many CPUs or array tasks.
//!
//! Values that expand when they are read pay for it here. Messages of callers have so much to spend; the log, which holds only
//! what was taken before, has no bound.
use std::cell::Cell;
use std::fmt;

/// For one message of a caller.
pub const MESSAGE_MOST: u64 = 1 << 18;

thread_local! {
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// A message asks for more than its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuchWork;

impl fmt::Display for TooMuchWork {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("its sets and lists are too costly")
    }
}

impl std::error::Error for TooMuchWork {}

/// Does the work, in which no more than so many steps may be spent.
pub fn within<T>(n_steps: u64, work: impl FnOnce() -> T) -> T {
    /// Gives back what was allowed before, also if the work panics.
    struct AllowedBefore(Option<u64>);
    impl Drop for AllowedBefore {
        fn drop(&mut self) {
            LEFT.set(self.0);
        }
    }
    let _before = AllowedBefore(LEFT.replace(Some(n_steps)));
    work()
}

/// Takes so many steps off.
pub fn spend(n_steps: u64) -> Result<(), TooMuchWork> {
    match LEFT.get() {
        None => Ok(()),
        Some(left) => {
            let left = left.checked_sub(n_steps).ok_or(TooMuchWork)?;
            LEFT.set(Some(left));
            Ok(())
        }
    }
}
