//! What a supervisor and the process with its PMIx server say to each other.
use serde::{Deserialize, Serialize};

/// To the server.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToServer {
    /// First.
    Setup(Setup),
    /// To `Fence` or `Get`.
    Answer {
        number: u64,
        status: i32,
        #[serde(with = "model::bytes")]
        data: Vec<u8>,
    },
    /// What has this task put? Answered with `Got`.
    Fetch { number: u64, rank: u32 },
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Setup {
    pub namespace: String,
    pub id: String,
    pub uid: u32,
    pub gid: u32,
    /// Names and ranks.
    pub nodes: Vec<(String, Vec<u32>)>,
    pub here: usize,
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
    /// All tasks here that take part have entered a fence.
    Fence {
        number: u64,
        ranks: Vec<u32>,
        #[serde(with = "model::bytes")]
        data: Vec<u8>,
    },
    /// A task wants what one on another node has put.
    Get {
        number: u64,
        rank: u32,
    },
    /// To `Fetch`.
    Got {
        number: u64,
        status: i32,
        #[serde(with = "model::bytes")]
        data: Vec<u8>,
    },
    Abort {
        rank: u32,
        text: String,
    },
    /// A task uses the server.
    Came {
        rank: u32,
    },
    /// It has said good-bye.
    Left {
        rank: u32,
    },
}
