//! What every command needs: which cluster, a connection to it, and a small runtime to wait on.
use std::sync::OnceLock;

use config::Client;
use wire::Controller;

/// Runs `future` to its end on this thread; commands are short-lived and need no pool.
pub fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a command can always make its own event loop")
        .block_on(future)
}

/// As [`block_on`], for a future that asks the controller and waits for nothing else. Where one controller is all there is, the
/// calls themselves block, and no event loop is made: it would take longer than the question.
pub fn ask<F: Future>(question: F) -> F::Output {
    match cluster() {
        Ok(cluster) if cluster.controller_socket.is_lone() => at_once(question),
        _ => block_on(question),
    }
}

/// Runs a future without an event loop; whatever it waits for must wake it by itself.
fn at_once<F: Future>(future: F) -> F::Output {
    struct Sleeper(std::thread::Thread);
    impl std::task::Wake for Sleeper {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = std::pin::pin!(future);
    let waker = std::sync::Arc::new(Sleeper(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::park();
    }
}

/// The cluster this command is for.
pub fn cluster() -> Result<Client, String> {
    static FOUND: OnceLock<Result<Client, String>> = OnceLock::new();
    FOUND.get_or_init(|| config::client::find(None)).clone()
}

/// Connects to the cluster's controller; the error is ready to print.
pub async fn controller(cluster: &Client) -> Result<Controller, String> {
    Controller::connect(&cluster.controller_socket).await.map_err(|error| error.to_string())
}
