//! What needs an event loop is run on this thread's own.
use std::cell::OnceCell;

use tokio::runtime::{Builder, Runtime};
use wire::connection_table::{ConnectionLimits, ConnectionTable};

thread_local! {
    static LOOP: OnceCell<(Runtime, ConnectionTable)> = const { OnceCell::new() };
}

/// The work with a daemon's table of connections at hand.
pub fn with_connections<F: Future>(work: impl FnOnce(ConnectionTable) -> F) -> F::Output {
    LOOP.with(|cell| {
        let (runtime, table) = cell.get_or_init(|| {
            let runtime = Builder::new_current_thread().enable_all().build().expect("an event loop");
            let table = runtime.block_on(async { ConnectionTable::new(ConnectionLimits::of_process()) });
            (runtime, table)
        });
        runtime.block_on(work(table.clone()))
    })
}
