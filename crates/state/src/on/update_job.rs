//! `scontrol update job`: what may change, by whom, and when.
use std::sync::Arc;

use model::priority::shown;
use model::spec::{Sharing, TimeLimit};
use model::time::Span;
use model::update::{JobChanges, TimeLimitChange};
use model::{Caller, Job, JobId, JobRef, JobSpec, Phase, Reject, Timestamp, feature_sets, features};

use super::job::{pending_only, touched};
use super::submit::QosChoice;
use super::{Answer, each, resize, submit};
use crate::buffers::life;
use crate::features::dependency::would_wait_for_itself;
use crate::settle::{self, forget_wait};
use crate::{Cluster, arrays, job_life, limits, network};

pub(crate) fn update(cluster: &mut Cluster, by: Caller, named: &JobRef, changes: &JobChanges) -> Answer {
    each(cluster, by, std::slice::from_ref(named), |cluster, id| {
        if let Some(text) = &changes.burst_buffer {
            return forget_buffer(cluster, by, id, text);
        }
        let job = &cluster.jobs[&id];
        if job.is_over() {
            return Err(Reject::AlreadyOver);
        }
        if let Some(wish) = &changes.step_limit {
            resize::limit_steps(cluster, by, id, wish)?;
            touched(cluster, id);
            return Ok(());
        }
        if changes.special_exit == Some(true) {
            resize::note_special_exit(cluster, id)?;
            touched(cluster, id);
            return Ok(());
        }
        if let Some(kept) = resize::kept_nodes(cluster, job, changes)? {
            resize::shrink(cluster, id, &kept);
            touched(cluster, id);
            return Ok(());
        }
        let mut spec = changed_spec(by, job, changes, cluster.now)?;
        if changes.nodes.is_some() || changes.segment.is_some() || changes.min_nodes.is_some() {
            network::settle_named(cluster, &mut spec);
        }
        if changes.memory.is_some() {
            submit::ask_for_nodes_with_memory(cluster, &mut spec.size);
        }
        let has_given_qos = gives_any_qos(cluster, by, changes);
        let association = charged_to(cluster, by, job, changes, &mut spec)?;
        if needs_pending(changes) {
            pending_only(job)?;
            submit::admissible(cluster, by, &spec)?;
        }
        if changes.min_nodes.is_some_and(|wanted| wanted > most_nodes(cluster, &spec)) {
            return Err(Reject::TooManyNodes);
        }
        let may_break_limits = by.is_admin && by.uid != job.spec.uid;
        if job.phase == Phase::Pending && !may_break_limits {
            limits::still_admits(cluster, &spec, association)?;
        }
        let dependency = changes.dependency.as_ref().unwrap_or(&job.dependency);
        let may_be_ring = changes.dependency.is_some() || changes.name.is_some();
        if !dependency.is_well_formed() || may_be_ring && would_wait_for_itself(cluster, id, &spec.name, dependency) {
            return Err(Reject::BadDependency);
        }
        if !by.is_admin {
            beyond_owner(cluster, job, changes)?;
        }
        // A new importance is no release, but for an operator's of what a burst buffer holds.
        let may_release = |held| held == model::HeldBy::BurstBuffer && by.is_admin;
        if changes.priority.is_some_and(|priority| priority > 0) && job.held.is_some_and(|held| !may_release(held)) {
            return Err(Reject::JobHeld);
        }
        let first = if changes.comes_first == Some(true) { Some(first_priority(cluster, by, job)?) } else { None };
        // The queue's order, and the list of names, are found by the old values.
        forget_wait(cluster, id);
        job_life::forget_name(cluster, id);
        let limit = changes.array_limit;
        let dependency = changes.dependency.as_ref().map(|wanted| submit::of_known_jobs(cluster, wanted));
        let (nice_before, now) = (cluster.jobs[&id].spec.nice, cluster.now);
        let job = cluster.job_mut(id);
        job.spec = Arc::new(spec);
        job.association = association;
        if changes.qos.is_some() || changes.account.is_some() {
            job.has_given_qos = has_given_qos;
        }
        if let Some(dependency) = dependency {
            job.dependency = dependency;
            job.dependency_failed = false;
        }
        if let Some(priority) = changes.priority {
            job.priority = priority.max(1);
            Arc::make_mut(&mut job.spec).priority = Some(job.priority);
            if priority > 0 && changes.nice.is_none() {
                Arc::make_mut(&mut job.spec).nice = 0;
            }
            job.held = if priority == 0 { Some(model::HeldBy::Admin) } else { None };
        }
        if let (Some(nice), None) = (changes.nice, changes.priority) {
            let before = i64::from(job.priority) + i64::from(nice_before);
            job.priority = (before - i64::from(nice)).clamp(1, i64::from(u32::MAX - 1)) as u32;
        }
        if changes.nice.is_some() || changes.site_factor.is_some() {
            // What it is worth now counts, even if it is less.
            job.priority_base = 0;
        }
        if let Some(priority) = first {
            job.priority = priority;
            Arc::make_mut(&mut job.spec).priority = Some(priority);
        }
        if let Some(factor) = changes.site_factor {
            job.site_factor = factor;
        }
        if let Some(text) = &changes.admin_comment {
            job.admin_comment.clone_from(text);
        }
        if changes.resets_age == Some(true) && job.eligible.is_some() {
            job.aged_from = Some(now);
        }
        if let Some(first) = changes.partitions.as_ref().and_then(|partitions| partitions.first()) {
            job.partition = first.clone();
        }
        if let (Some(limit), Some(array)) = (limit, job.array_id()) {
            arrays::set_limit(cluster, array, (limit > 0).then_some(limit));
        }
        let is_worth_other = changes.nice.is_some() || changes.site_factor.is_some();
        if is_worth_other && cluster.jobs[&id].phase == Phase::Pending && cluster.rules() >= 3 {
            // Also of one that is not eligible now: nothing else would weigh it before.
            settle::weigh(cluster, id);
        }
        job_life::remember_name(cluster, id);
        touched(cluster, id);
        Ok(())
    })
}

/// What only operators may change of a job, even of their own.
fn beyond_owner(cluster: &Cluster, job: &Job, changes: &JobChanges) -> Result<(), Reject> {
    let is_raised = changes.priority.is_some_and(|priority| priority > shown(&cluster.config, job, cluster.now));
    let is_beyond =
        changes.site_factor.is_some() || changes.admin_comment.is_some() || changes.nice.is_some_and(|nice| nice < 0);
    if is_raised || is_beyond { Err(Reject::BeyondOwner) } else { Ok(()) }
}

/// The nodes of its largest partition.
fn most_nodes(cluster: &Cluster, spec: &JobSpec) -> u32 {
    let partitions = spec.partitions.iter().filter_map(|name| cluster.config.partition(name));
    partitions.map(|partition| partition.nodes.len() as u32).max().unwrap_or(u32::MAX)
}

/// Another account or partition may be another association; a QOS must be one that it may use. Administrators give any.
fn charged_to(
    cluster: &Cluster,
    by: Caller,
    job: &Job,
    changes: &JobChanges,
    spec: &mut JobSpec,
) -> Result<u32, Reject> {
    let moves = changes.account.is_some() || changes.qos.is_some() || changes.partitions.is_some();
    if !moves {
        return Ok(job.association);
    }
    if changes.account.is_some() && changes.qos.is_none() {
        // Its QOS stays only if the other account has it.
        let kept = std::mem::take(&mut spec.qos);
        let mut with = JobSpec { qos: kept, ..spec.clone() };
        if let Ok(association) = submit::place_in_accounts(cluster, &mut with) {
            *spec = with;
            return Ok(association);
        }
    }
    let is_given = gives_any_qos(cluster, by, changes);
    submit::place_choosing(cluster, spec, if is_given { QosChoice::OfAll } else { QosChoice::OfItsOwn })
}

/// Administrators are not bound to the QOS of the job's association.
fn gives_any_qos(cluster: &Cluster, by: Caller, changes: &JobChanges) -> bool {
    let is_there = |name: &String| cluster.accounts.qos.contains_key(name);
    by.is_admin && cluster.rules() >= 3 && changes.qos.as_ref().is_some_and(is_there)
}

/// `BurstBuffer=`: an operator gives up what is left of a finished job's buffer. Nothing else can be changed of it.
fn forget_buffer(cluster: &mut Cluster, by: Caller, id: JobId, text: &str) -> Result<(), Reject> {
    let may = by.is_admin && text.is_empty() && cluster.jobs[&id].is_over() && cluster.buffers.contains_key(&id);
    if !may {
        return Err(Reject::NotSupported);
    }
    life::remove(cluster, id);
    touched(cluster, id);
    Ok(())
}

/// A priority above those of the user's other waiting jobs.
fn first_priority(cluster: &Cluster, by: Caller, job: &Job) -> Result<u32, Reject> {
    if !by.is_admin {
        return Err(Reject::NotPermitted);
    }
    pending_only(job)?;
    let others = cluster.jobs().filter(|other| other.id != job.id && other.phase == Phase::Pending);
    let priority = |job: &Job| shown(&cluster.config, job, cluster.now);
    let highest = others.filter(|other| other.spec.uid == job.spec.uid).map(|other| priority(other)).max();
    Ok(highest.map_or(priority(job), |highest| priority(job).max(highest.saturating_add(1).min(u32::MAX - 1))))
}

fn needs_pending(changes: &JobChanges) -> bool {
    changes.partitions.is_some()
        || changes.licenses.is_some()
        || changes.reservations.is_some()
        || changes.begin.is_some()
        || changes.dependency.is_some()
        || changes.min_nodes.is_some()
        || changes.n_cpus.is_some()
        || changes.sockets_per_node.is_some()
        || changes.cores_per_socket.is_some()
        || changes.threads_per_core.is_some()
        || changes.delay_boot_secs.is_some()
        || changes.max_nodes.is_some()
        || changes.n_tasks.is_some()
        || changes.cpus_per_task.is_some()
        || changes.memory.is_some()
        || changes.shares.is_some()
        || changes.contiguous.is_some()
        || changes.tmp_disk_mb.is_some()
        || changes.min_cpus_per_node.is_some()
        || changes.preference.is_some()
        || changes.tasks_per_node.is_some()
        || changes.time_min.is_some()
        || changes.gres.is_some()
        || changes.nodes.is_some()
        || changes.excluded.is_some()
        || changes.features.is_some()
        || changes.stdin.is_some()
        || changes.stdout.is_some()
        || changes.stderr.is_some()
        || changes.work_dir.is_some()
        || changes.segment.is_some()
        || changes.spreads_segments.is_some()
        || changes.consolidates_segments.is_some()
}

fn changed_spec(by: Caller, job: &Job, changes: &JobChanges, now: Timestamp) -> Result<JobSpec, Reject> {
    let mut spec = (*job.spec).clone();
    set(&mut spec.name, &changes.name);
    set(&mut spec.comment, &changes.comment);
    set(&mut spec.account, &changes.account);
    set(&mut spec.qos, &changes.qos);
    set(&mut spec.wckey, &changes.wckey);
    set(&mut spec.partitions, &changes.partitions);
    set(&mut spec.dependency, &changes.dependency);
    set(&mut spec.nice, &changes.nice);
    set(&mut spec.work_dir, &changes.work_dir);
    set(&mut spec.licenses, &changes.licenses);
    set(&mut spec.reservations, &changes.reservations);
    let new_groups = changes.groups.iter().flatten().filter(|group| !job.spec.groups.contains(group));
    if by.uid == spec.uid {
        spec.groups.extend(new_groups.cloned());
    }
    set(&mut spec.size.min_nodes, &changes.min_nodes);
    let network = &mut spec.size.network;
    set(&mut network.n_switches, &changes.n_switches);
    set(&mut network.segment, &changes.segment);
    set(&mut network.spreads_segments, &changes.spreads_segments);
    set(&mut network.consolidates_segments, &changes.consolidates_segments);
    set_some(&mut network.switch_wait, &changes.switch_wait_secs.map(Span::from_secs));
    set(&mut spec.size.memory, &changes.memory);
    set(&mut spec.size.gres, &changes.gres);
    set(&mut spec.size.nodes, &changes.nodes);
    if changes.nodes.is_some() {
        spec.size.network.among.clear();
    }
    set(&mut spec.size.excluded, &changes.excluded);
    set_some(&mut spec.begin, &changes.begin);
    set_some(&mut spec.deadline, &changes.deadline);
    set_some(&mut spec.requeue, &changes.requeue);
    set_some(&mut spec.size.max_nodes, &changes.max_nodes);
    set_some(&mut spec.size.n_tasks, &changes.n_tasks);
    set_some(&mut spec.size.cpus_per_task, &changes.cpus_per_task);
    set_some(&mut spec.size.sockets_per_node, &changes.sockets_per_node);
    set_some(&mut spec.size.cores_per_socket, &changes.cores_per_socket);
    set_some(&mut spec.size.threads_per_core, &changes.threads_per_core);
    set(&mut spec.delay_boot, &changes.delay_boot_secs.map(Span::from_secs));
    if let Some(n_cpus) = changes.n_cpus {
        spec.size.n_tasks = Some(n_cpus.div_ceil(spec.size.n_cpus_per_task()).max(1));
    }
    set_some(&mut spec.stdin, &changes.stdin);
    set_some(&mut spec.stdout, &changes.stdout);
    set_some(&mut spec.stderr, &changes.stderr);
    if let Some(features) = &changes.features {
        let wish = match features.as_str() {
            "" => feature_sets::Wish::default(),
            text => feature_sets::parse(text).map_err(Reject::BadConstraint)?,
        };
        spec.size.constraint = wish.constraint;
        spec.size.feature_sets = wish.sets;
        spec.size.features = features.clone();
    }
    set(&mut spec.size.contiguous, &changes.contiguous);
    set(&mut spec.size.tmp_disk_mb, &changes.tmp_disk_mb);
    set_some(&mut spec.size.min_cpus_per_node, &changes.min_cpus_per_node);
    set_some(&mut spec.size.tasks_per_node, &changes.tasks_per_node);
    set_some(&mut spec.time_min, &changes.time_min);
    if let Some(shares) = changes.shares {
        spec.size.sharing = if shares { Sharing::Oversubscribe } else { Sharing::WholeNodes };
    }
    if let Some(preference) = &changes.preference {
        spec.size.preference = match preference.as_str() {
            "" => None,
            text => Some(features::parse(text).map_err(Reject::BadConstraint)?),
        };
        spec.size.preferred.clone_from(preference);
    }
    if let Some(to) = &changes.mail_to {
        spec.mail.get_or_insert_default().to = to.clone();
    }
    if let Some(kinds) = &changes.mail_kinds {
        spec.mail.get_or_insert_default().kinds = kinds.clone();
    }
    if changes.array_limit.is_some() && job.array_id().is_none() {
        return Err(Reject::InvalidValue("ArrayTaskThrottle".into()));
    }
    if let Some(change) = limit_change(job, changes, now)? {
        let limit = changed_limit(spec.time_limit, change)?;
        let longer = match (limit, spec.time_limit) {
            (TimeLimit::Unlimited, Some(TimeLimit::Secs(_))) => true,
            (TimeLimit::Secs(new), Some(TimeLimit::Secs(old))) => new > old,
            _ => false,
        };
        if longer && !by.is_admin && job.phase != Phase::Pending {
            return Err(Reject::BeyondOwner);
        }
        spec.time_limit = Some(limit);
    }
    Ok(spec)
}

/// `EndTime=` is a time limit that is over then.
fn limit_change(job: &Job, changes: &JobChanges, now: Timestamp) -> Result<Option<TimeLimitChange>, Reject> {
    let Some(end) = changes.end else { return Ok(changes.time_limit) };
    if !matches!(job.phase, Phase::Running | Phase::Suspended) {
        return Err(Reject::NotRunning);
    }
    let secs = (job.run_time(now) + (end - now)).secs();
    Ok(Some(TimeLimitChange::To(TimeLimit::Secs(secs.div_ceil(60) * 60))))
}

fn changed_limit(present: Option<TimeLimit>, change: TimeLimitChange) -> Result<TimeLimit, Reject> {
    match (change, present) {
        (TimeLimitChange::To(limit), _) => Ok(limit),
        (_, None | Some(TimeLimit::Unlimited)) => Err(Reject::InvalidValue("TimeLimit".into())),
        (TimeLimitChange::LongerBySecs(secs), Some(TimeLimit::Secs(now))) => {
            Ok(TimeLimit::Secs(now.saturating_add(secs)))
        }
        (TimeLimitChange::ShorterBySecs(secs), Some(TimeLimit::Secs(now))) => match now.checked_sub(secs) {
            Some(left) if left > 0 => Ok(TimeLimit::Secs(left)),
            _ => Err(Reject::InvalidValue("TimeLimit".into())),
        },
    }
}

fn set<T: Clone>(field: &mut T, change: &Option<T>) {
    if let Some(value) = change {
        *field = value.clone();
    }
}

fn set_some<T: Clone>(field: &mut Option<T>, change: &Option<T>) {
    if change.is_some() {
        *field = change.clone();
    }
}
