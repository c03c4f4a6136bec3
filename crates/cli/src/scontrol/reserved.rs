//! What a reservation comes to on the nodes as they are.
use model::request::NodeView;
use model::reservation::Flag;
use model::{Reservation, Timestamp};

pub struct Reserved {
    pub start: Timestamp,
    pub end: Timestamp,
    pub n_cores: u32,
    /// `cpu=8,license/x=2`; empty: nothing.
    pub tres: String,
}

impl Reserved {
    pub fn of(reservation: &Reservation, nodes: &[NodeView], now: Timestamp) -> Reserved {
        let (start, end) = times(reservation, now);
        let own = crate::node_view::named(nodes, &reservation.nodes);
        let cpus_of = |view: &NodeView| match reservation.cpus.is_empty() {
            true => view.node.config.cpus,
            false => reservation.cpus.get(&view.node.name).copied().unwrap_or(0),
        };
        let n_cpus: u32 = own.iter().copied().map(cpus_of).sum();
        let cores_of = |view: &NodeView| cpus_of(view) / view.node.config.threads_per_core.max(1);
        let cpus = (n_cpus > 0).then(|| format!("cpu={n_cpus}"));
        let licenses = reservation.licenses.iter().map(|one| format!("license/{}={}", one.name, one.count));
        let tres: Vec<String> = cpus.into_iter().chain(licenses).collect();
        Reserved { start, end, n_cores: own.iter().copied().map(cores_of).sum(), tres: tres.join(",") }
    }
}

/// Its present or next time; one that floats stays ahead.
pub fn times(reservation: &Reservation, now: Timestamp) -> (Timestamp, Timestamp) {
    match reservation.has(Flag::TimeFloat) {
        true => reservation.window_after(now).unwrap_or_default(),
        false => (reservation.start, reservation.end),
    }
}
