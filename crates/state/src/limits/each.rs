//! What is said of each job alone: by its association or one above it, or by a quality of service.
use model::Reason;
use model::accounts::{EachJob, Others, PerName};

use super::headroom::Verdict;
use super::want::Want;

/// Whose words they are: each has reasons of its own.
#[derive(Clone, Copy)]
pub enum Speaker {
    Association,
    Qos,
}

pub(super) fn concern(others: Others, want: &Want) -> bool {
    match others {
        Others::None => false,
        Others::Named => want.has_others(),
        Others::Everybody => true,
    }
}

/// A job is longer than any may be.
pub(super) fn is_too_long(each: &EachJob, want: &Want) -> bool {
    each.max_wall.is_some_and(|most| want.limit_secs() > u64::from(most) * 60)
}

/// In the order of the rules, after how many jobs there may be.
pub fn verdict(each: &EachJob, want: &Want) -> Verdict {
    if is_too_long(each, want) {
        return Verdict::Refused(Reason::AssocMaxWallDurationPerJobLimit);
    }
    if each.has_run_minutes {
        return Verdict::Unsaid;
    }
    match of_minutes(each, want, Speaker::Association) {
        Verdict::Passes => of_size(each, want, Speaker::Association),
        other => other,
    }
}

/// Minutes of resources that one job may use.
pub(super) fn of_minutes(each: &EachJob, want: &Want, speaker: Speaker) -> Verdict {
    let minutes = &each.minutes;
    let has_more = minutes.node != PerName::NO_LIMIT || minutes.memory_mb != PerName::NO_LIMIT;
    if has_more || concern(minutes.others, want) {
        return Verdict::Unsaid;
    }
    match minutes.cpu != PerName::NO_LIMIT && want.cpu_minutes() > minutes.cpu {
        true => Verdict::Refused(match speaker {
            Speaker::Association => Reason::AssocMaxCpuMinutesPerJobLimit,
            Speaker::Qos => Reason::QOSMaxCpuMinutesPerJobLimit,
        }),
        false => Verdict::Passes,
    }
}

/// What one job may have, and what of it on a node.
pub(super) fn of_size(each: &EachJob, want: &Want, speaker: Speaker) -> Verdict {
    let reasons = match speaker {
        Speaker::Association => {
            [Reason::AssocMaxCpuPerJobLimit, Reason::AssocMaxNodePerJobLimit, Reason::AssocMaxMemPerJob]
        }
        Speaker::Qos => [Reason::QOSMaxCpuPerJobLimit, Reason::QOSMaxNodePerJobLimit, Reason::QOSMaxMemoryPerJob],
    };
    match beyond(&each.job, want, reasons) {
        Verdict::Passes => (),
        other => return other,
    }
    // What falls on one node is not looked up: whoever has no more in all has no more there.
    match beyond(&each.node, want, reasons) {
        Verdict::Passes => Verdict::Passes,
        Verdict::Refused(_) | Verdict::Unsaid => Verdict::Unsaid,
    }
}

/// The only one of the limits that the job is beyond; which of several is told depends on who set them.
fn beyond(limits: &PerName, want: &Want, [of_cpus, of_nodes, of_memory]: [Reason; 3]) -> Verdict {
    if *limits == PerName::NONE {
        return Verdict::Passes;
    }
    if concern(limits.others, want) || (limits.memory_mb != PerName::NO_LIMIT && want.memory_mb.is_none()) {
        return Verdict::Unsaid;
    }
    let memory_mb = want.memory_mb.unwrap_or(0);
    match (want.cpus > limits.cpu, want.nodes > limits.node, memory_mb > limits.memory_mb) {
        (false, false, false) => Verdict::Passes,
        (true, false, false) => Verdict::Refused(of_cpus),
        (false, true, false) => Verdict::Refused(of_nodes),
        (false, false, true) => Verdict::Refused(of_memory),
        _ => Verdict::Unsaid,
    }
}
