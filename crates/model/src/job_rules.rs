//! What a site decides for all jobs: when they are requeued of their own accord, where mails go, what steps do by default.
use serde::{Deserialize, Serialize};

use crate::TaskSet;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobRules {
    /// Batch jobs that end with one of these codes are requeued (`RequeueExit`).
    pub requeue_exit: TaskSet,
    /// The same, but held (`RequeueExitHold`).
    pub requeue_exit_hold: TaskSet,
    /// A job that was requeued of its own accord so often is held (`MaxBatchRequeue`).
    pub max_requeues: u32,
    /// So long a requeued job waits before it can start again, in seconds (`AuthInfo=cred_expire` and one more).
    pub requeue_delay_secs: u32,
    /// Output of jobs that do not say otherwise is added to files that are there (`JobFileAppend`).
    pub appends_output: bool,
    /// What is put behind the names of users who give no address (`MailDomain`); empty: nothing.
    pub mail_domain: String,
    /// Whoever may use a reservation may delete it (`SlurmctldParameters=user_resv_delete`).
    pub users_delete_reservations: bool,
    /// Any user may have programs run on the controller's machine (`SlurmctldParameters=allow_user_triggers`).
    pub users_set_triggers: bool,
    /// Jobs with a memory limit cannot ask to be looked at less often (`JobAcctGatherFrequency`), in seconds; 0: they can.
    pub accounting_secs: u32,
    /// A step whose task fails is ended (`KillOnBadExit`), unless its srun says otherwise.
    pub kill_on_bad_exit: bool,
    /// Jobs may say what of their nodes is left to the system (`AllowSpecResourcesUsage`).
    pub may_spare: bool,
    /// Longer batch scripts are refused (`SchedulerParameters=max_script_size`).
    pub max_script_bytes: u64,
    /// So long after its first task a step is ended (`WaitTime`), in seconds; 0: not at all.
    pub wait_secs: u32,
}

impl Default for JobRules {
    fn default() -> Self {
        JobRules {
            requeue_exit: TaskSet::default(),
            requeue_exit_hold: TaskSet::default(),
            max_requeues: 5,
            requeue_delay_secs: 0,
            appends_output: false,
            mail_domain: String::new(),
            users_delete_reservations: false,
            users_set_triggers: false,
            accounting_secs: 0,
            kill_on_bad_exit: false,
            may_spare: false,
            max_script_bytes: 4 << 20,
            wait_secs: 0,
        }
    }
}

impl JobRules {
    /// Where mails about a user's job go, if it does not say.
    pub fn address(&self, user: &str) -> String {
        if self.mail_domain.is_empty() { user.to_string() } else { format!("{user}@{}", self.mail_domain) }
    }
}
