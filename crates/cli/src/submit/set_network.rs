//! How each option about the network changes the request.
use model::duration;
use model::spec::{Sharing, Size};
use model::time::Span;
use model::topology::{self, TopologyKind};

use super::set::{Argument, Done};
use super::{Problem, Request};

pub fn topology(request: &mut Request, given: &Argument) -> Done {
    let kind = TopologyKind::parse(given.text()).ok_or_else(|| {
        Problem::usage(format!("Invalid --topology specification: {:?} is not one of tree, block, none", given.text()))
    })?;
    request.spec.size.network.topology = Some(kind);
    Ok(())
}

/// `count[@time]`
pub fn switches(request: &mut Request, given: &Argument) -> Done {
    let (count, wait) = parse_switches(given.text()).ok_or_else(|| given.invalid())?;
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

/// Only as a variable: the time of `--switches`.
pub fn wait_for_switch(request: &mut Request, given: &Argument) -> Done {
    let secs = duration::parse(given.text()).and_then(|limit| limit.seconds()).ok_or_else(|| given.invalid())?;
    request.spec.size.network.switch_wait = Some(Span::from_secs(secs));
    Ok(())
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

/// The job's nodes can be cut into its segments.
pub fn check(size: &Size) -> Done {
    let segment = size.network.segment;
    let n_nodes = size.min_nodes.max(1);
    match segment > 0 && n_nodes > segment && !n_nodes.is_multiple_of(segment) {
        true => Err(Problem::error(topology::segment_problem(segment, n_nodes))),
        false => Ok(()),
    }
}
