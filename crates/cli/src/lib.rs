//! Every command: parse, ask, render. Parsing and rendering are pure functions; only the asking touches sockets.

/// In place of the standard library's, which panic when the terminal is gone: a command whose talk nobody hears any more
/// still has to end its job.
macro_rules! eprint {
    ($($words:tt)*) => {{
        $crate::output::tell(format_args!($($words)*));
    }};
}
macro_rules! eprintln {
    ($($words:tt)*) => {{
        $crate::output::tell(format_args!("{}\n", format_args!($($words)*)));
    }};
}
/// Likewise; what is printed is plain (`output`).
macro_rules! print {
    ($($words:tt)*) => {{
        let _ = $crate::output::print(&format!($($words)*));
    }};
}
macro_rules! println {
    ($($words:tt)*) => {{
        let _ = $crate::output::print(&format!("{}\n", format_args!($($words)*)));
    }};
}

pub mod accounting;
pub mod allocation;
pub mod choices;
pub mod context;
mod data_back;
pub mod delivery;
#[cfg(test)]
mod fixture;
pub mod getopt;
pub mod job_ids;
pub mod job_view;
pub mod json;
pub mod live;
pub mod manual;
pub mod network;
pub mod node_view;
pub mod operate;
pub mod output;
pub mod render;
pub mod sacct;
pub mod sacctmgr;
pub mod salloc;
pub mod sattach;
pub mod sbatch;
pub mod sbcast;
pub mod scancel;
pub mod scontrol;
pub mod sdiag;
pub mod sgather;
pub mod sinfo;
pub mod sprio;
pub mod squeue;
pub mod sreport;
pub mod srun;
pub mod sshare;
pub mod sstat;
pub mod stage;
pub mod staging_view;
pub mod strigger;
pub mod submit;
pub mod table;
pub mod trouble;
pub mod users;
pub mod version;
pub mod viewer;
pub mod watch;
pub mod zone;
