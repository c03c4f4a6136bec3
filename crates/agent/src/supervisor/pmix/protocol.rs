//! What a supervisor and the process with its PMIx server say to each other.
use serde::{Deserialize, Serialize};

/// To the server.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToServer {
    /// First. The directory is the server's to choose.
    Setup(pmix::Job),
    /// To `Event::Fence` or `Event::Get`.
    Answer {
        number: u64,
        status: i32,
        #[serde(with = "model::bytes")]
        data: Vec<u8>,
    },
    /// What has this task put? Answered with `Event::Got`.
    Fetch { number: u64, rank: u32 },
}

/// From the server.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromServer {
    /// With the variables of each task.
    Ready {
        variables: Vec<(u32, Vec<(String, String)>)>,
    },
    /// There will be none; why.
    Failed {
        why: String,
    },
    Said(pmix::Event),
}
