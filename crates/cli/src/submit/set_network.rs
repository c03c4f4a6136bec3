//! How each option about the network changes the request.
use model::duration;
use model::spec::{Sharing, Size};
use model::time::Span;
use model::topology::{self, TopologyKind};

use super::set::{Argument, Done};
use super::{Caller, Problem, Program, Request};

pub fn topology(request: &mut Request, given: &Argument) -> Done {
    let kind = TopologyKind::parse(given.text()).ok_or_else(|| {
        Problem::usage(format!("Invalid --topology specification: {:?} is not one of tree, block, none", given.text()))
    })?;
    request.spec.size.network.topology = Some(kind);
    Ok(())
}

/// `count[@time]`
pub fn switches(request: &mut Request, given: &Argument) -> Done {
    let (count, wait) = parse_switches(given.text()).ok_or_else(|| Problem::numeric("switches", given.text()))?;
    let network = &mut request.spec.size.network;
    network.n_switches = count;
    if wait.is_some() {
        network.switch_wait = wait;
    }
    Ok(())
}

/// A count, and how long to wait for it.
pub fn parse_switches(text: &str) -> Option<(u32, Option<Span>)> {
    let (count, wait) = match text.split_once('@') {
        Some((count, wait)) => (count, Some(duration::parse(wait)?.seconds()?)),
        None => (text, None),
    };
    let is_number = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    Some((count.parse().ok().filter(|_| is_number)?, wait.map(Span::from_secs)))
}

pub fn segment(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.network.segment = given.count()?;
    Ok(())
}

pub fn spread_segments(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.network.spreads_segments = given.is_on();
    Ok(())
}

pub fn consolidate_segments(request: &mut Request, given: &Argument) -> Done {
    request.spec.size.network.consolidates_segments = given.is_on();
    Ok(())
}

/// `--exclusive=topo`
pub fn own_units(request: &mut Request) {
    request.spec.size.sharing = Sharing::WholeNodes;
    request.spec.size.network.owns_units = true;
}

/// How long to wait for few switches may stand in a variable of its own; the job's nodes can be cut into its segments.
pub fn settle(program: Program, size: &mut Size, caller: &Caller) -> Done {
    let name = match program {
        Program::Sbatch => "SBATCH_WAIT4SWITCH",
        Program::Salloc => "SALLOC_WAIT4SWITCH",
        Program::Srun => "SLURM_WAIT4SWITCH",
    };
    let network = &mut size.network;
    if let (true, None, Some(text)) = (network.n_switches > 0, network.switch_wait, caller.variable(name)) {
        let wait = duration::parse(text).and_then(|limit| limit.seconds());
        let wait = wait.ok_or_else(|| Problem::usage(format!("Invalid {name} specification")))?;
        network.switch_wait = Some(Span::from_secs(wait));
    }
    let segment = size.network.segment;
    let n_nodes = size.min_nodes.max(1);
    match segment > 0 && n_nodes > segment && !n_nodes.is_multiple_of(segment) {
        true => Err(Problem::error(topology::segment_problem(segment, n_nodes))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_a_count_and_perhaps_a_time() {
        let secs = |text: &str| parse_switches(text).map(|(count, wait)| (count, wait.map(|wait| wait.secs())));
        for (text, expected) in [
            ("2", Some((2, None))),
            ("1@10", Some((1, Some(600)))),
            ("1@0:15", Some((1, Some(15)))),
            ("3@1-0", Some((3, Some(86_400)))),
            ("0", Some((0, None))),
            ("", None),
            ("x", None),
            ("1@", None),
            ("1@x", None),
            ("+1", None),
        ] {
            assert_eq!(secs(text), expected, "{text:?}");
        }
    }
}
