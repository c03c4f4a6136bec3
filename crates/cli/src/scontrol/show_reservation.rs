//! `scontrol show reservation` and `show licenses`.
use model::request::{LicenseView, NodeView};
use model::reservation::Flag;
use model::{CpuSet, NodeName, Reservation, Timestamp, duration, hostlist, license};

use crate::zone::Clock;

use super::Reply;
use super::record::{Style, close, or_null};
use super::reserved::Reserved;
use crate::json::{self, Shape};

pub fn reservations(name: Option<&str>, all: &[Reservation], nodes: &[NodeView], clock: &Clock, style: Style) -> Reply {
    let found: Vec<&Reservation> = all.iter().filter(|one| name.is_none_or(|name| one.name == name)).collect();
    match (found.is_empty(), name) {
        (true, Some(name)) => return Reply { code: 1, ..Reply::text(format!("Reservation {name} not found\n")) },
        (true, None) => return Reply::text("No reservations in the system\n".into()),
        (false, _) => {}
    }
    let mut out = String::new();
    found.iter().for_each(|one| write(one, nodes, clock, style, &mut out));
    Reply::text(out)
}

/// `ACTIVE` while it is its time.
pub fn state(reservation: &Reservation, now: Timestamp) -> &'static str {
    if reservation.is_active(now) { "ACTIVE" } else { "INACTIVE" }
}

fn write(reservation: &Reservation, nodes: &[NodeView], clock: &Clock, style: Style, out: &mut String) {
    let Reserved { start, end, n_cores, tres } = Reserved::of(reservation, nodes, clock.now());
    let list = hostlist::compress(reservation.nodes.iter().map(|name| name.as_str()));
    let delay = reservation.max_start_delay.map_or("(null)".into(), |span| duration::show(span.secs()));
    let licenses = license::show(&reservation.licenses, ",");
    let mut lines = vec![
        format!(
            "ReservationName={} StartTime={} EndTime={} Duration={}",
            reservation.name,
            clock.show(start),
            clock.show(end),
            duration::show((end - start).secs()),
        ),
        format!(
            "Nodes={} NodeCnt={} CoreCnt={n_cores} Features={} PartitionName={} Flags={}",
            or_null(&list),
            reservation.nodes.len(),
            or_null(&reservation.features),
            or_null(&reservation.partition),
            reservation.flags_text(),
        ),
    ];
    lines.extend(core_lines(reservation, nodes));
    lines.extend([
        format!("TRES={}", or_null(&tres)),
        format!(
            "Users={} Groups={} Accounts={} Licenses={} State={} BurstBuffer={} Watts=n/a",
            or_null(&reservation.users.show()),
            or_null(&reservation.groups.show()),
            or_null(&reservation.accounts.show()),
            or_null(&licenses),
            state(reservation, clock.now()),
            or_null(&reservation.burst_buffer),
        ),
        format!("MaxStartDelay={delay}"),
    ]);
    if !reservation.comment.is_empty() {
        lines.push(format!("Comment={}", reservation.comment));
    }
    close(style, &lines, out);
}

/// Which cores of each node it keeps, where that is said (FIRST_CORES).
fn core_lines(reservation: &Reservation, nodes: &[NodeView]) -> Vec<String> {
    if !reservation.has(Flag::FirstCores) {
        return Vec::new();
    }
    let threads = |name: &NodeName| {
        nodes.iter().find(|view| view.node.name == *name).map_or(1, |view| view.node.config.n_threads_per_core())
    };
    let cores = |(name, n_cpus): (&NodeName, &u32)| {
        let ids: CpuSet = (0..n_cpus / threads(name)).collect();
        format!("  NodeName={name} CoreIDs={ids}")
    };
    reservation.cpus.iter().map(cores).collect()
}

/// The same for programs; whoever is not there is no reason to fail.
pub fn document(
    name: Option<&str>,
    all: &[Reservation],
    nodes: &[NodeView],
    clock: &Clock,
    (shape, cluster): (Shape, &str),
) -> Reply {
    let found = all.iter().filter(|one| name.is_none_or(|name| one.name == name));
    let list: Vec<_> = found.map(|one| (one, Reserved::of(one, nodes, clock.now()))).collect();
    Reply::text(json::reservations(shape, cluster, &list))
}

pub fn licenses(name: Option<&str>, all: &[LicenseView], style: Style, as_json: Option<(Shape, &str)>) -> Reply {
    if let Some((shape, cluster)) = as_json {
        let found: Vec<&LicenseView> = all.iter().filter(|one| name.is_none_or(|name| one.name == name)).collect();
        return Reply::text(json::licenses(shape, cluster, &found));
    }
    if all.is_empty() {
        return Reply::text("No licenses configured in Slurm.\n".into());
    }
    let found: Vec<&LicenseView> = all.iter().filter(|one| name.is_none_or(|name| one.name == name)).collect();
    let mut out = String::new();
    let separator = if style.one_line { " " } else { "\n    " };
    for license in found {
        let free = license.total.saturating_sub(license.used);
        out.push_str(&format!(
            "LicenseName={}{separator}Total={} Used={} Free={free} Reserved={} Remote={}\n",
            license.name,
            license.total,
            license.used,
            license.reserved,
            if license.is_remote { "yes" } else { "no" }
        ));
    }
    Reply::text(out)
}
