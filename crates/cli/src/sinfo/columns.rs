//! Every column of a group of nodes, by letter and by name.
use std::borrow::Cow;

use model::agent::Load;
use model::node_state::{Base, NodeState};
use model::partition::PartitionState;
use model::request::NodeView;
use model::spec::TimeLimit;
use model::{duration, hostlist};

use crate::job_view::put;
use crate::node_view::{self, Usage};
use crate::render::{Column, Cut, Key, Merge, natural, or_null, view};
use crate::version;

use super::group::Group;

view! {
    /// The view of nodes.
    Nodes of Group
}

/// The order in which `%all` shows the letters.
pub const ALL: &str = "abcdefghlmnoprstuvwzABCDEFGHILMNOPRSTUVXYZ";
/// Sorts partitions as they are configured: `#P`.
pub const CONFIGURED: char = '\u{1}';

const NONE: char = '\0';

/// A column about the partition.
const fn partition(
    letter: char,
    name: &'static str,
    title: &'static str,
    fill: for<'r, 'a, 's> fn(&'r Group<'a>, &'s mut String),
) -> Column<Nodes> {
    column(letter, name, title, fill).merging(Merge::NeverAcross)
}

/// A column that adds up or lists.
const fn total(
    letter: char,
    name: &'static str,
    title: &'static str,
    fill: for<'r, 'a, 's> fn(&'r Group<'a>, &'s mut String),
) -> Column<Nodes> {
    column(letter, name, title, fill).merging(Merge::Always)
}

/// A number that becomes a range.
const fn number(
    letter: char,
    name: &'static str,
    title: &'static str,
    fill: for<'r, 'a, 's> fn(&'r Group<'a>, &'s mut String),
) -> Column<Nodes> {
    column(letter, name, title, fill).merging(Merge::UnlessExact)
}

pub static COLUMNS: &[Column<Nodes>] = &[
    partition(CONFIGURED, "", "", |_, _| {}).sorted_by(|group| Key::Number(group.place as i64)),
    partition('P', "partition", "PARTITION", |group, out| {
        out.push_str(&group.partition.name);
        if group.partition.is_default {
            out.push('*');
        }
    })
    .sorted_by(|group| text(&group.partition.name))
    .cutting(Cut::BeforeLast),
    partition('R', "partitionname", "PARTITION", |group, out| out.push_str(&group.partition.name))
        .sorted_by(|group| text(&group.partition.name)),
    partition('a', "available", "AVAIL", |group, out| out.push_str(availability(group.partition.state)))
        .sorted_by(|group| Key::Number(openness(group.partition.state))),
    partition('l', "time", "TIMELIMIT", |group, out| write_time(group.partition.max_time, "infinite", out))
        .sorted_by(|group| limit_key(group.partition.max_time)),
    partition('L', "defaulttime", "DEFAULTTIME", |group, out| write_time(group.partition.default_time, "n/a", out))
        .sorted_by(as_it_is),
    partition('s', "size", "JOB_SIZE", write_job_size)
        .sorted_by(|group| Key::Number(group.partition.max_nodes.map_or(i64::MAX, i64::from))),
    partition('r', "root", "ROOT", |group, out| out.push_str(yes(group.partition.root_only))),
    partition('h', "oversubscribe", "OVERSUBSCRIBE", |group, out| {
        out.push_str(&node_view::oversubscribe(group.partition))
    }),
    partition('g', "groups", "GROUPS", |group, out| match &group.partition.allow_groups[..] {
        [] => out.push_str("all"),
        groups => out.push_str(&groups.join(",")),
    }),
    partition('p', "prioritytier", "PRIO_TIER", |group, out| put(out, group.partition.priority_tier))
        .sorted_by(|group| Key::Number(i64::from(group.partition.priority_tier))),
    partition('I', "priorityjobfactor", "PRIO_JOB_FACTOR", |group, out| put(out, group.partition.priority_job_factor))
        .sorted_by(as_it_is),
    partition('B', "maxcpuspernode", "MAX_CPUS_PER_NODE", |group, out| match group.partition.max_cpus_per_node {
        Some(most) => put(out, most),
        None => out.push_str("UNLIMITED"),
    })
    .sorted_by(as_it_is),
    partition('M', "preemptmode", "PREEMPT_MODE", |group, out| {
        let of_cluster = || group.scene.config.scheduler.preemption.mode_text();
        out.push_str(&group.partition.preempt_mode.map_or_else(of_cluster, |mode| mode.word().into()))
    })
    .sorted_by(as_it_is),
    partition('S', "allocnodes", "ALLOCNODES", |group, out| match &group.partition.alloc_nodes[..] {
        [] => out.push_str("all"),
        hosts => out.push_str(&hostlist::compress(hosts)),
    })
    // As Slurm has it.
    .sorted_by(|group| Key::Number(i64::from(group.partition.priority_job_factor))),
    partition('V', "cluster", "CLUSTER", |_, out| out.push_str("N/A")),
    column('t', "statecompact", "STATE", |group, out| write_state(group, NodeState::compact, out)).sorted_by(state_key),
    column('T', "statelong", "STATE", |group, out| write_state(group, NodeState::word, out)).sorted_by(state_key),
    column(NONE, "statecomplete", "STATECOMPLETE", |group, out| {
        // Of a node that is drained nobody asks how much is taken.
        let whole = |state: NodeState| match (state.drain, state.base) {
            (true, Base::Mixed) => NodeState { base: Base::Allocated, ..state },
            _ => state,
        };
        write_state(group, |state| whole(state).long().to_ascii_lowercase(), out)
    }),
    total('D', "nodes", "NODES", |group, out| put(out, group.nodes.len()))
        .sorted_by(|group| Key::Number(group.nodes.len() as i64)),
    total('N', "nodelist", "NODELIST", |group, out| match &group.nodes[..] {
        [only] => out.push_str(only.node.name.as_str()),
        nodes => out.push_str(&hostlist::compress(nodes.iter().map(|node| &node.node.name))),
    })
    .sorted_by(node_key)
    .cutting(Cut::Values),
    total('A', "nodeai", "NODES(A/I)", |group, out| {
        let [allocated, idle, ..] = node_counts(group);
        put(out, format_args!("{allocated}/{idle}"))
    })
    .sorted_by(|group| Key::Number(node_counts(group)[0] as i64)),
    total('F', "nodeaiot", "NODES(A/I/O/T)", |group, out| {
        let [allocated, idle, other, all] = node_counts(group);
        put(out, format_args!("{allocated}/{idle}/{other}/{all}"))
    })
    .sorted_by(|group| Key::Number(node_counts(group)[0] as i64)),
    total('C', "cpusstate", "CPUS(A/I/O/T)", |group, out| {
        let [allocated, idle, other, all] = cpu_counts(group);
        put(out, format_args!("{allocated}/{idle}/{other}/{all}"))
    })
    .sorted_by(as_it_is),
    number('c', "cpus", "CPUS", |group, out| write_least(group, |node| u64::from(node.node.config.all_cpus()), out))
        .sorted_by(|group| least(group, |node| u64::from(node.node.config.all_cpus()))),
    number('m', "memory", "MEMORY", |group, out| write_least(group, |node| node.node.config.all_memory_mb(), out))
        .sorted_by(|group| least(group, |node| node.node.config.all_memory_mb())),
    number('d', "disk", "TMP_DISK", |group, out| write_least(group, |node| node.node.config.tmp_disk_mb, out)),
    number('w', "weight", "WEIGHT", |group, out| write_least(group, |node| u64::from(node.node.config.weight), out))
        .sorted_by(|group| least(group, |node| u64::from(node.node.config.weight))),
    number('X', "sockets", "SOCKETS", |group, out| write_least(group, |node| node_view::sockets(node).0.into(), out)),
    number('Y', "cores", "CORES", |group, out| write_least(group, |node| node_view::sockets(node).1.into(), out)),
    number('Z', "threads", "THREADS", |group, out| write_least(group, |node| node_view::sockets(node).2.into(), out)),
    number('z', "socketcorethread", "S:C:T", |group, out| {
        write_least(group, |node| node_view::sockets(node).0.into(), out);
        out.push(':');
        write_least(group, |node| node_view::sockets(node).1.into(), out);
        out.push(':');
        write_least(group, |node| node_view::sockets(node).2.into(), out);
    }),
    number('e', "freemem", "FREE_MEM", |group, out| write_span(group, |load| load.free_mb, |mb| mb.to_string(), out))
        .sorted_by(|group| least(group, |node| node.load.as_ref().map_or(0, |load| load.free_mb))),
    number('O', "cpusload", "CPU_LOAD", |group, out| {
        write_span(group, |load| load.cpu_hundredths.into(), |load| node_view::hundredths(load as u32), out)
    })
    .sorted_by(|group| least(group, |node| node.load.as_ref().map_or(0, |load| load.cpu_hundredths.into()))),
    column('f', "features", "AVAIL_FEATURES", write_features),
    column('b', "features_act", "ACTIVE_FEATURES", |group, out| {
        or_null(&of_first(group, |node| node.node.features().join(",")), out)
    }),
    column('G', "gres", "GRES", |group, out| or_null(&of_first(group, node_view::gres), out)),
    column(NONE, "gresused", "GRES_USED", |group, out| or_null(&of_first(group, node_view::gres_used), out)),
    column(NONE, "allocmem", "ALLOCMEM", |group, out| {
        put(out, group.first().map_or(0, |node| node.node.used.memory_mb))
    }),
    column('n', "nodehost", "HOSTNAMES", |group, out| out.push_str(group.first().map_or("", node_view::host)))
        .cutting(Cut::Values),
    column('o', "nodeaddr", "NODE_ADDR", |group, out| out.push_str(group.first().map_or("", node_view::address)))
        .cutting(Cut::Values),
    column('i', "reservation", "RESERVATION", |group, out| {
        out.push_str(group.first().map_or("", |node| node.reservation.as_str()))
    })
    .sorted_by(as_it_is),
    column('E', "reason", "REASON", |group, out| match reason(group) {
        Some(reason) => out.push_str(&reason.text),
        None => out.push_str("none"),
    })
    .sorted_by(|group| text(reason(group).map_or("", |reason| &reason.text))),
    column('H', "timestamp", "TIMESTAMP", |group, out| {
        group.scene.clock.write_or(reason(group).map(|reason| reason.at), "Unknown", out)
    })
    .sorted_by(|group| Key::Number(reason(group).map_or(0, |reason| reason.at.secs() as i64))),
    column('u', "user", "USER", |group, out| match reason(group) {
        Some(reason) => out.push_str(&group.scene.names.user(reason.by_uid)),
        None => out.push_str("Unknown"),
    })
    .sorted_by(by_whom),
    column('U', "userlong", "USER", |group, out| match reason(group) {
        Some(reason) => put(out, format_args!("{}({})", group.scene.names.user(reason.by_uid), reason.by_uid)),
        None => out.push_str("Unknown"),
    })
    .sorted_by(by_whom),
    column('v', "version", "VERSION", |group, out| {
        let registered = group.first().is_some_and(|node| !node.node.machine.version.is_empty());
        or_null(if registered { version::SLURM } else { "" }, out)
    }),
    column(NONE, "comment", "COMMENT", |group, out| or_null(group.first().map_or("", |node| &node.node.comment), out)),
    column(NONE, "extra", "EXTRA", |group, out| or_null(group.first().map_or("", |node| &node.node.extra), out)),
    column(NONE, "port", "PORT", |group, out| put(out, group.first().map_or(0, node_view::port))),
];

fn text(text: &str) -> Key<'_> {
    Key::Text(Cow::Borrowed(text))
}

/// A letter that Slurm takes for a key, and that changes nothing.
fn as_it_is<'r>(_: &'r Group<'_>) -> Key<'r> {
    Key::Number(0)
}

/// Whoever gave the reason; no reason is more than any.
fn by_whom<'r>(group: &'r Group<'_>) -> Key<'r> {
    Key::Number(reason(group).map_or(i64::MAX, |reason| i64::from(reason.by_uid)))
}

/// As Slurm numbers these states.
fn openness(state: PartitionState) -> i64 {
    match state {
        PartitionState::Inactive => 0,
        PartitionState::Down => 1,
        PartitionState::Drain => 2,
        PartitionState::Up => 3,
    }
}

fn availability(state: PartitionState) -> &'static str {
    match state {
        PartitionState::Up => "up",
        PartitionState::Down => "down",
        PartitionState::Drain => "drain",
        PartitionState::Inactive => "inactive",
    }
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

fn write_time(limit: Option<TimeLimit>, none: &str, out: &mut String) {
    match limit {
        None => out.push_str(none),
        Some(TimeLimit::Unlimited) => out.push_str("infinite"),
        Some(TimeLimit::Secs(secs)) => out.push_str(&duration::show_short(secs)),
    }
}

fn limit_key(limit: Option<TimeLimit>) -> Key<'static> {
    match limit {
        Some(TimeLimit::Secs(secs)) => Key::Number(secs as i64),
        Some(TimeLimit::Unlimited) | None => Key::Number(i64::MAX),
    }
}

/// `1-infinite`, `1`, `2-4`: the nodes a job may have.
fn write_job_size(group: &Group, out: &mut String) {
    let least = group.partition.min_nodes.max(1);
    put(out, least);
    match group.partition.max_nodes {
        None => out.push_str("-infinite"),
        Some(most) if most > least => put(out, format_args!("-{most}")),
        Some(_) => {}
    }
}

fn write_state(group: &Group, word: impl Fn(NodeState) -> String, out: &mut String) {
    match group.first() {
        Some(node) => out.push_str(&word(node.state())),
        None => out.push_str("n/a"),
    }
}

/// As Slurm numbers its states, so that troubled nodes come first and idle ones late.
fn state_key<'r>(group: &'r Group) -> Key<'r> {
    let Some(node) = group.first() else { return Key::Number(-1) };
    let state = node.state();
    let base = match state.base {
        Base::Unknown => 0,
        Base::Down => 1,
        Base::Idle => 2,
        Base::Allocated => 3,
        Base::Mixed => 5,
    };
    let flags = [
        (state.reserved, 5),
        (state.drain, 9),
        (state.completing, 10),
        (state.silent, 11),
        (state.failed, 13),
        (state.maintenance, 15),
        (state.reboot_requested, 16),
        (state.reboot_issued, 20),
    ];
    Key::Number(flags.iter().fold(base, |sum, (is_so, bit)| sum | i64::from(*is_so) << bit))
}

/// Natural order: n9 before n10.
fn node_key<'r>(group: &'r Group) -> Key<'r> {
    let Some(name) =
        group.nodes.iter().map(|node| &node.node.name).min_by(|a, b| hostlist::natural_cmp(a.as_str(), b.as_str()))
    else {
        return Key::Absent;
    };
    natural(name.as_str())
}

fn node_counts(group: &Group) -> [usize; 4] {
    let count = |usage| group.nodes.iter().filter(|node| node_view::usage(node) == usage).count();
    [count(Usage::Allocated), count(Usage::Idle), count(Usage::Other), group.nodes.len()]
}

fn cpu_counts(group: &Group) -> [u32; 4] {
    let mut sums = [0; 4];
    for node in &group.nodes {
        sums.iter_mut().zip(node_view::cpu_counts(node)).for_each(|(sum, count)| *sum += count);
    }
    sums
}

/// The smallest, with a plus where others are larger.
fn write_least(group: &Group, number: impl Fn(&NodeView) -> u64, out: &mut String) {
    let (least, most) = group.range(number);
    put(out, least);
    if most > least {
        out.push('+');
    }
}

/// `12`, or `12-40` where nodes differ; nodes that have not said anything do not count.
fn write_span(group: &Group, number: impl Fn(&Load) -> u64, show: impl Fn(u64) -> String, out: &mut String) {
    let known = || group.nodes.iter().filter_map(|node| node.load.as_ref()).map(&number);
    match known().min().zip(known().max()) {
        None => out.push_str("N/A"),
        Some((least, most)) if least == most => out.push_str(&show(least)),
        Some((least, most)) => put(out, format_args!("{}-{}", show(least), show(most))),
    }
}

fn least(group: &Group, number: impl Fn(&NodeView) -> u64) -> Key<'static> {
    Key::Number(group.range(number).0 as i64)
}

fn write_features(group: &Group, out: &mut String) {
    or_null(&group.first().map(|node| node.node.config.features.join(",")).unwrap_or_default(), out)
}

fn of_first(group: &Group, text: impl Fn(&NodeView) -> String) -> String {
    group.first().map(text).unwrap_or_default()
}

fn reason<'a>(group: &Group<'a>) -> Option<&'a model::node::NodeReason> {
    group.first()?.node.reason.as_ref()
}
