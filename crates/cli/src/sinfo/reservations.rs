//! `sinfo -T`: the reservations.
use model::{Reservation, duration, hostlist};

use crate::scontrol::reserved::times;
use crate::scontrol::show_reservation::state;
use crate::zone::Clock;

pub fn table(reservations: &[Reservation], clock: &Clock, heading: bool) -> String {
    if reservations.is_empty() {
        return "No reservations in the system\n".into();
    }
    let width = reservations.iter().map(|one| one.name.len()).max().unwrap_or(0).max(9);
    let mut out = String::new();
    let mut row = |name: &str, state: &str, start: &str, end: &str, duration: &str, nodes: &str| {
        out.push_str(&format!("{name:<width$}  {state:>8}  {start:>19}  {end:>19}  {duration:>11}  {nodes}\n"));
    };
    if heading {
        row("RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST");
    }
    for one in reservations {
        let (start, end) = times(one, clock.now());
        let nodes = hostlist::compress(one.nodes.iter().map(|name| name.as_str()));
        row(
            &one.name,
            state(one, clock.now()),
            &clock.show(start),
            &clock.show(end),
            &duration::show((end - start).secs()),
            &nodes,
        );
    }
    out
}
