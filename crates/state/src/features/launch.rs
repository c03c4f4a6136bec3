//! Starts the batch script, and makes sure that nothing of the job is left on its nodes.
use super::*;

pub(super) fn hold(_: &Cluster, job: &Job) -> Hold {
    match job.phase {
        // Allocations start nothing, and an `srun` job is launched as its first step.
        // One that was suspended before its launch is launched all the same, and then frozen.
        Phase::Starting | Phase::Running | Phase::Suspended if job.runs_script() && !job.launched => {
            Hold::Do(Task::Launch)
        }
        Phase::Ending if job.alive => need(job, Task::Kill),
        _ => Hold::Free,
    }
}
