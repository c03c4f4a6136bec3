//! The replicated state machine. `apply` is the only way `Cluster` changes.
//!
//! ```text
//! Entry{at, by, command} ──apply──▶ Cluster ──duties()──▶ leader's runner ──▶ world
//!          ▲                                                                   │
//!          └──────────── DutyDone / Exited (again commands) ◀──────────────────┘
//! ```
use std::panic::{AssertUnwindSafe, catch_unwind};

use model::command::Applied;
use model::{Caller, Command, Entry, Reject, Reply};

mod access;
mod accrual;
mod acting_for_others;
mod arrays;
mod batch_host;
mod blobs;
pub mod buffers;
pub mod check;
mod chronicle;
mod cluster;
mod derived;
mod fair_share;
mod features;
mod gang;
mod het;
pub mod history;
mod job_life;
mod ledger;
mod licenses;
pub mod limits;
mod machine_sizes;
mod network;
mod on;
mod only_step;
mod plan_due;
mod ports;
pub mod preemption;
mod queue;
mod reboots;
mod requests;
mod reservations;
pub mod rules;
mod runnable_users;
mod settle;
pub mod sharing;
mod step_layout;
mod step_life;
mod triggers;
mod work_bounds;

pub use acting_for_others::{acts_as_another, is_owners_alone, submits_as_another};
pub use blobs::{judge_content, judge_submission};
pub use cluster::Cluster;
pub use features::{nodes_allowed, partition_refusal};
pub use machine_sizes::judge_machines;
pub use network::{network_ask, shape_for, spares_units};
pub use on::step::need_not_wait;
pub use on::submit::{admissible, fits_its_reservations};
pub use ports::may_have_ports;
pub use queue::QueueKey;
pub use runnable_users::{JobHome, home_of_jobs_of, owners_of_submission};
pub use work_bounds::{environments, judge_refs, judge_specs, judge_work};

/// Applies one committed entry. Total and deterministic: no clock, no randomness, no I/O.
/// A bug that panics leaves the state as it was and answers with an internal error, so it cannot stop every replica.
pub fn apply(cluster: &mut Cluster, entry: &Entry) -> Applied {
    let before = cluster.clone();
    match catch_unwind(AssertUnwindSafe(|| apply_unguarded(cluster, entry))) {
        Ok(applied) => applied,
        Err(panic) => {
            *cluster = before;
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("panic").to_string();
            Applied { reply: Err(Reject::Internal(text)), events: Vec::new() }
        }
    }
}

fn apply_unguarded(cluster: &mut Cluster, entry: &Entry) -> Applied {
    chronicle::note_beginning(cluster, entry.at);
    cluster.now = cluster.now.max(entry.at);
    limits::adapt(cluster);
    let reply = dispatch(cluster, entry.by, &entry.command);
    settle::settle_all(cluster);
    reboots::settle(cluster);
    triggers::settle(cluster);
    Applied { reply, events: std::mem::take(&mut cluster.events) }
}

fn dispatch(cluster: &mut Cluster, by: Caller, command: &Command) -> Result<Reply, Reject> {
    gang::heed(cluster, command);
    match command {
        Command::Submit { spec, blobs } => on::submit::submit(cluster, by, spec, blobs),
        Command::SubmitTogether { specs, blobs } => het::submit(cluster, by, specs, blobs),
        Command::AdoptPlan(plan) => on::plan::adopt(cluster, plan),
        Command::DutyDone { duty, result } => on::report::duty_done(cluster, duty, result),
        Command::Staged { duty, results } => on::buffer::staged(cluster, duty, results),
        Command::DropBuffer { buffer } => on::buffer::drop_buffer(cluster, by, buffer),
        Command::SessionsSeen { sessions } => buffers::sessions::seen(cluster, sessions),
        Command::BufferMeasured { job, epoch, access, node, used_bytes, is_over_limit } => {
            let measured =
                buffers::limit::Measured { access: *access, node, used_bytes: *used_bytes, is_over: *is_over_limit };
            buffers::limit::measured(cluster, *job, *epoch, &measured)
        }
        Command::PoolsReported { plugin, pools } => on::buffer::pools_reported(cluster, *plugin, pools),
        Command::PoolsSeen { node, pools } => on::buffer::pools_seen(cluster, node, pools),
        Command::Exited(exited) => on::report::exited(cluster, exited),
        Command::Cancel { jobs, hurry } => on::job::cancel(cluster, by, jobs, *hurry),
        Command::Complete { job, exit } => on::job::complete(cluster, by, *job, *exit),
        Command::Hold { jobs, by_user } => on::job::hold(cluster, by, jobs, *by_user),
        Command::Release { jobs } => on::job::release(cluster, by, jobs),
        Command::Requeue { jobs, hold } => on::job::requeue(cluster, by, jobs, *hold),
        Command::Suspend { jobs } => on::suspend::suspend(cluster, by, jobs),
        Command::Resume { jobs } => on::suspend::resume(cluster, by, jobs),
        Command::NoteStopped { jobs, is_stopped } => on::suspend::note_stopped(cluster, jobs, *is_stopped),
        Command::UpdateJob { job, changes } => on::update_job::update(cluster, by, job, changes),
        Command::CreateStep { job, spec, blobs } => on::step::create(cluster, by, *job, spec, blobs),
        Command::CreateStepTogether { parts, blobs } => on::step::create_together(cluster, by, parts, blobs),
        Command::CancelStep { job, step } => on::step::cancel(cluster, by, *job, *step),
        Command::RegisterNode { node, machine, runs } => on::node::register(cluster, node, machine, runs),
        Command::NodeLost { node } => on::node::lost(cluster, node),
        Command::UpdateNodes { nodes, change } => on::node::update(cluster, by, nodes, change),
        Command::UpdatePartition { name, changes } => on::partition::update(cluster, by, name, changes),
        Command::CreatePartition { name, fields } => on::partition::create(cluster, by, name, fields),
        Command::DeletePartition { name } => on::partition::delete(cluster, by, name),
        Command::CreateReservation { name, fields, utc_offset_secs } => {
            on::reservation::create(cluster, by, name, fields, *utc_offset_secs)
        }
        Command::UpdateReservation { name, fields } => on::reservation::update(cluster, by, name, fields),
        Command::DeleteReservation { name } => on::reservation::delete(cluster, by, name),
        Command::Begin { config } => on::config::begin(cluster, config),
        Command::AdoptRules { edition } => rules::adopt(cluster, *edition),
        Command::Reconfigure { config } => on::config::reconfigure(cluster, config),
        Command::ChangeAccounts { change, by_name } => on::accounts::change(cluster, by, by_name, change),
        Command::AmendRun { run, amendment } => on::history::amend(cluster, run, amendment),
        Command::Recorded { up_to } => on::history::recorded(cluster, *up_to),
        Command::ContinueIds { after } => on::history::continue_ids(cluster, *after),
        Command::Tick => on::tick::tick(cluster),
        Command::SetTrigger { trigger } => triggers::set(cluster, by, trigger),
        Command::SetDampening { factor } => on::config::set_dampening(cluster, by, *factor),
        Command::ClearTriggers { filter } => triggers::clear(cluster, by, filter),
        Command::TriggerRan { id, n_fired } => triggers::ran(cluster, *id, *n_fired),
        Command::Happened { kinds } => {
            kinds.iter().for_each(|kind| triggers::happened(cluster, *kind));
            Ok(Reply::Ok)
        }
        Command::Restore { state } => on::config::restore(cluster, by, state),
        Command::Trust(change) => on::trust::change(cluster, by, change),
        Command::Once { request, command } => requests::once(cluster, by, *request, command),
    }
}
