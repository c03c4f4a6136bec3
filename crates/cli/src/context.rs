//! What every command needs: which cluster, a connection to it, and a small runtime to wait on.
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

/// The cluster this command is for.
pub fn cluster() -> Result<Client, String> {
    config::client::find(None)
}

/// Connects to the cluster's controller; the error is ready to print.
pub async fn controller(cluster: &Client) -> Result<Controller, String> {
    Controller::connect(&cluster.controller_socket).await.map_err(|error| error.to_string())
}
