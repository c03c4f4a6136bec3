//! How each option about the network changes the request.
use model::duration;
use model::spec::{Sharing, Size};
use model::time::Span;
use model::topology::{self, TopologyKind};

use super::set::{Argument, Done};
use super::{Caller, Problem, Program, Request};

pub fn topology(request: &mut Request, given: &Argument) -> Done {
    let network = &mut request.spec.size.network;
    let wish = parse_topology(given.text()).map_err(Problem::usage)?;
    (network.topology, network.most_level, network.level_is_preferred) =
        (Some(wish.kind), wish.level, wish.is_preferred);
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
struct Wish {
    kind: TopologyKind,
    level: Option<u32>,
    is_preferred: bool,
}

/// `tree|block|none`, or `tree:level=N[:required|:preferred]`.
fn parse_topology(text: &str) -> Result<Wish, String> {
    let wrong = |why: &str| format!("Invalid --topology specification: {why}");
    let mut words = text.split(':');
    let kind = words.next().and_then(TopologyKind::parse);
    let kind = kind.ok_or_else(|| wrong(&format!("{text:?} is not one of tree, block, none")))?;
    let mut wish = Wish { kind, level: None, is_preferred: false };
    let mut is_said = false;
    for word in words {
        match word.split_once('=') {
            Some(("level", level)) if kind == TopologyKind::Tree && wish.level.is_none() => {
                let level = level.parse().ok().filter(|_| level.bytes().all(|byte| byte.is_ascii_digit()));
                wish.level = Some(level.ok_or_else(|| wrong(&format!("{word:?} needs a number")))?);
            }
            Some(("unit", _)) => {
                return Err(wrong("levels have no names here: say level=0 for one leaf switch, and so on"));
            }
            None if ["required", "preferred"].contains(&word) && wish.level.is_some() && !is_said => {
                (wish.is_preferred, is_said) = (word == "preferred", true);
            }
            _ => return Err(wrong(&format!("{word:?}: it is tree:level=NUMBER[:required|:preferred]"))),
        }
    }
    Ok(wish)
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
    fn a_topology_may_have_a_level() {
        let read = |text: &str| parse_topology(text).ok().map(|wish| (wish.kind, wish.level, wish.is_preferred));
        let tree = TopologyKind::Tree;
        for (text, expected) in [
            ("tree", Some((tree, None, false))),
            ("block", Some((TopologyKind::Block, None, false))),
            ("none", Some((TopologyKind::Flat, None, false))),
            ("tree:level=1", Some((tree, Some(1), false))),
            ("tree:level=0:required", Some((tree, Some(0), false))),
            ("tree:level=2:preferred", Some((tree, Some(2), true))),
            ("torus", None),
            ("", None),
            ("tree:", None),
            ("tree:level", None),
            ("tree:level=", None),
            ("tree:level=+1", None),
            ("tree:level=x", None),
            ("tree:level=1:level=2", None),
            ("tree:preferred", None),
            ("tree:level=1:preferred:required", None),
            ("tree:level=1:soft", None),
            ("tree:unit=rack", None),
            ("block:level=1", None),
        ] {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }

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
