//! What may hold a job in its phase. One file a feature; to add one, write the file and list it here.
use model::accounts::Accounts;
use model::{Job, JobId, Outcome, Phase, Reason, Task, Timestamp, Wake};

use crate::Cluster;

mod array_limit;
mod begin_time;
mod burst_buffer;
mod component;
mod corresponding;
mod deadline;
pub(crate) mod dependency;
mod held;
mod hooks;
mod launch;
mod partition;
mod preemption;
pub(crate) use array_limit::slots as array_slots;
pub(crate) use partition::limit as partition_limit;
pub use partition::{nodes_allowed, refusal as partition_refusal};
pub(crate) use reservation::changes as reservation_changes;
mod ports;
mod quality;
mod reservation;
pub(crate) use ports::changes as port_changes;
pub(crate) use quality::changed as qualities_changed;
mod retention;
mod suspend;
mod time_limit;
pub(crate) mod time_used;
mod warning;

pub(crate) enum Hold {
    Free,
    /// Free for now; to be asked again at that time.
    FreeUntil(Timestamp),
    /// Nothing to do until one of these.
    Wait(Option<Reason>, Vec<Wake>),
    /// The leader must first do this.
    Do(Task),
    /// The scheduler must first choose it to have its burst buffer filled.
    Stage,
    /// The job must end.
    End(Outcome, Option<Reason>),
}

/// In order: the first that holds the job wins, and names its reason. This order is the documented precedence of reasons.
const FEATURES: &[fn(&Cluster, &Job) -> Hold] = &[
    component::hold,
    deadline::hold,
    held::hold,
    dependency::hold,
    array_limit::hold,
    begin_time::hold,
    reservation::hold,
    quality::hold,
    partition::hold,
    ports::hold,
    burst_buffer::hold,
    hooks::hold,
    launch::hold,
    preemption::end,
    suspend::hold,
    preemption::warning,
    warning::hold,
    time_used::hold,
    time_limit::hold,
    hooks::hold_none,
    retention::hold,
];

/// What holds the job now, and when the free ones want to be asked again.
pub(crate) fn first_hold(cluster: &Cluster, job: &Job) -> (Hold, Option<Timestamp>) {
    let mut look_again: Option<Timestamp> = None;
    for feature in FEATURES {
        match feature(cluster, job) {
            Hold::Free => (),
            Hold::FreeUntil(at) => look_again = Some(look_again.map_or(at, |other| other.min(at))),
            hold => return (hold, look_again),
        }
    }
    (Hold::Free, look_again)
}

/// Holds the job until `task` is done in this phase.
fn need(job: &Job, task: Task) -> Hold {
    if job.done.contains(&task) { Hold::Free } else { Hold::Do(task) }
}

pub(crate) enum Failure {
    /// As if it had been done.
    CarryOn,
    /// The duty stands, so the leader does it again.
    Retry,
    /// The run is over; a batch job waits, held, for somebody to look.
    EndRun,
}

pub(crate) fn meaning_of_failure(task: Task) -> Failure {
    match task {
        Task::Launch | Task::ControllerProlog | Task::Prolog => Failure::EndRun,
        // The job is over whatever an epilog says; where one failed, the node is drained.
        Task::Warn | Task::Preempt | Task::Epilog | Task::ControllerEpilog | Task::Reboot => Failure::CarryOn,
        // A job is never left half frozen.
        Task::Stop | Task::Continue | Task::Kill | Task::Clear => Failure::Retry,
        // What becomes of buffers is told place by place.
        Task::StageIn | Task::PreRun | Task::PostRun | Task::StageOut | Task::Trim => Failure::Retry,
        Task::TearDown | Task::Create | Task::Destroy => Failure::Retry,
    }
}

fn is_pending(job: &Job) -> bool {
    job.phase == Phase::Pending
}
