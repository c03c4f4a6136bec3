//! What an association may use. A limit that is not set is the parent's.
use super::Tres;

record! {
    pub struct Limits {
        pub grp_jobs: Option<u32>,
        pub grp_jobs_accrue: Option<u32>,
        pub grp_submit: Option<u32>,
        /// Minutes.
        pub grp_wall: Option<u32>,
        pub grp_tres: Tres,
        pub grp_tres_mins: Tres,
        pub grp_tres_run_mins: Tres,
        pub max_jobs: Option<u32>,
        pub max_jobs_accrue: Option<u32>,
        pub max_submit: Option<u32>,
        /// Minutes.
        pub max_wall: Option<u32>,
        pub max_tres: Tres,
        pub max_tres_per_node: Tres,
        pub max_tres_mins: Tres,
        pub max_tres_run_mins: Tres,
        pub min_priority: Option<u32>,
        pub priority: Option<u32>,
    }
}
