//! What commands ask an agent about the runs on its node, and files that they bring (`sstat`, `scontrol listpids`, `sbcast`).
use serde::{Deserialize, Serialize};

use crate::staging::{Direction, Home};
use crate::{JobId, StepId, Usage};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Question {
    /// The runs that live here now, of one job or of all that the caller may see.
    Runs { job: Option<JobId> },
    /// A piece of a file, written with the caller's own rights.
    Write(Piece),
    /// A directory for such files, made with the caller's own rights; one that is there is fine.
    MakeDirectory { path: String },
    /// What was moved to and from a buffer's directory, so many files behind the first.
    Moved { home: Home, from: u64 },
    /// What went wrong with that, in full.
    MoveErrors { home: Home },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Runs(Vec<LiveRun>),
    Written,
    Moved(MovedFiles),
    MoveErrors(Vec<MoveError>),
    /// Why not, in the words of the system.
    Refused {
        why: String,
    },
}

record! {
    /// A run as its supervisor sees it at this moment.
    pub struct LiveRun {
        pub job: JobId,
        pub step: StepId,
        pub usage: Usage,
        pub processes: Vec<LiveProcess>,
    }

    pub struct MovedFiles {
        pub files: Vec<MovedFile>,
        /// There are more, behind so many.
        pub next: Option<u64>,
    }

    pub struct MovedFile {
        pub direction: Direction,
        /// Where it is now.
        pub path: String,
        pub size_bytes: u64,
        /// Of its bytes, as `xxh3-128` by pieces; empty: it was not verified, or shares its blocks with the source.
        pub hash: String,
    }

    pub struct MoveError {
        pub direction: Direction,
        pub text: String,
        /// Nothing failed, but the user should know.
        pub is_warning: bool,
    }

    pub struct LiveProcess {
        pub pid: u32,
        /// Its place on the node and its rank, where it is a task itself.
        pub task: Option<(u32, u32)>,
    }

    pub struct Piece {
        pub path: String,
        pub offset: u64,
        #[serde(with = "crate::bytes")]
        pub data: Vec<u8>,
        /// An old file of that name is written over; else it is in the way.
        pub replaces: bool,
        /// With the last piece: the file's mode, and its times where they are to be kept.
        pub last: Option<FileEnd>,
    }

    pub struct FileEnd {
        pub mode: u32,
        pub size: u64,
        pub times: Option<FileTimes>,
    }

    pub struct FileTimes {
        pub accessed_secs: i64,
        pub modified_secs: i64,
    }
}
