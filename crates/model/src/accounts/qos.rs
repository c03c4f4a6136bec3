//! Qualities of service: a priority, limits, and who gives way to whom.
use std::collections::BTreeSet;

use super::{Accounts, NORMAL, Tres};

record! {
    pub struct Qos {
        pub id: u32,
        pub name: String,
        pub description: String,
        pub priority: u32,
        pub flags: BTreeSet<String>,
        /// QOS whose jobs give way to this one's.
        pub preempt: BTreeSet<String>,
        /// Lower case; empty: the cluster's.
        pub preempt_mode: String,
        pub grace_secs: u32,
        pub preempt_exempt_secs: Option<u32>,
        /// Thousandths; None: 1.
        pub usage_factor_thousandths: Option<u32>,
        pub usage_threshold_thousandths: Option<u32>,
        pub limit_factor_thousandths: Option<u32>,
        pub limits: QosLimits,
    }

    pub struct QosLimits {
        pub grp_jobs: Option<u32>,
        pub grp_jobs_accrue: Option<u32>,
        pub grp_submit: Option<u32>,
        /// Minutes.
        pub grp_wall: Option<u32>,
        pub grp_tres: Tres,
        pub grp_tres_mins: Tres,
        pub grp_tres_run_mins: Tres,
        pub max_wall: Option<u32>,
        pub max_tres_per_job: Tres,
        pub max_tres_per_node: Tres,
        pub max_tres_mins_per_job: Tres,
        pub max_jobs_per_user: Option<u32>,
        pub max_jobs_accrue_per_user: Option<u32>,
        pub max_submit_per_user: Option<u32>,
        pub max_tres_per_user: Tres,
        pub max_tres_run_mins_per_user: Tres,
        pub max_jobs_per_account: Option<u32>,
        pub max_jobs_accrue_per_account: Option<u32>,
        pub max_submit_per_account: Option<u32>,
        pub max_tres_per_account: Tres,
        pub max_tres_run_mins_per_account: Tres,
        pub min_tres_per_job: Tres,
        pub min_priority: Option<u32>,
    }
}

impl Accounts {
    /// With the QOS that everybody has to begin with. It is there, for all who look, before anybody has changed anything.
    pub fn with_normal_qos(mut self) -> Accounts {
        if self.qos.is_empty() && self.accounts.is_empty() {
            self.last_qos += 1;
            let (name, description) = (NORMAL.to_string(), "Normal QOS default".to_string());
            self.qos.insert(NORMAL.into(), Qos { id: self.last_qos, name, description, ..Qos::default() });
        }
        self
    }
}

impl Qos {
    pub fn has_flag(&self, name: &str) -> bool {
        self.flags.iter().any(|flag| flag.eq_ignore_ascii_case(name))
    }
}
