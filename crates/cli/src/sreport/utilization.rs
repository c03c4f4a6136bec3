//! `sreport cluster utilization`: what the cluster did with its time.
use std::collections::HashMap;

use model::capacity::billing_by_node;
use model::chronicle::NodeEvent;
use model::config::NamedNode;
use model::reservation::Flag;
use model::{NodeName, Reservation};

use super::reports::{Row, Scene, fields, text};
use super::show::Cell;
use super::usage::{self, Amounts};

impl Scene<'_> {
    pub fn utilization(&self) -> Result<String, String> {
        let mut used = Amounts::new();
        self.parts.iter().for_each(|part| usage::add(&mut used, &part.used));
        let planned: u64 = self.parts.iter().map(|part| part.planned_cpu_secs).sum();
        *used.entry("cpu".into()).or_default() += self.kept_idle_secs();
        let capacity = usage::capacity(self.config);
        let row = |name: &String| {
            let total = self.total(name);
            let allocated = used.get(name).copied().unwrap_or(0).min(total);
            let down = self.down_secs(name).min(total - allocated);
            let maintained = self.maintained_secs(name).min(total - allocated - down);
            let planned = if name == "cpu" { planned.min(total - allocated - down - maintained) } else { 0 };
            let cell = |secs: u64| Cell::Secs(secs, total);
            let whole = capacity.get(name).copied().unwrap_or(0) * self.period.secs();
            vec![
                self.cluster_cell(),
                ("tresname", text(name)),
                ("trescount", Cell::Count(capacity.get(name).copied().unwrap_or(0))),
                ("allocated", cell(allocated)),
                ("down", cell(down)),
                ("planneddown", cell(maintained)),
                ("plndown", cell(maintained)),
                ("idle", cell(total - allocated - down - maintained - planned)),
                ("planned", cell(planned)),
                ("reserved", cell(planned)),
                ("overcommitted", cell(used.get(name).copied().unwrap_or(0).saturating_sub(total))),
                ("reported", Cell::Secs(total, total.max(whole))),
            ]
        };
        // Of a time when it was not there the cluster has nothing to report.
        let is_there = |name: &&String| self.total(name) > 0 && !self.options.leave_out(&self.config.cluster_name);
        let rows: Vec<Row> = self.tres().iter().filter(is_there).map(row).collect();
        let fields = fields(&[
            ("allocated", "Allocated", 8),
            ("cluster", "Cluster", 9),
            ("down", "Down", 8),
            ("idle", "Idle", 8),
            ("planneddown", "PLND Down", 8),
            ("plndown", "PLND Down", 8),
            ("planned", "Planned", 8),
            ("reserved", "Planned", 8),
            ("overcommitted", "Over Comm", 9),
            ("reported", "Reported", 8),
            ("trescount", "TRES Count", 10),
            ("tresname", "TRES Name", 14),
        ]);
        let usual = ["cluster", "tresname", "allocated", "down", "planneddown", "idle", "planned", "reported"];
        self.show("Cluster Utilization", false, &fields, &usual, &rows)
    }

    /// What nodes were out of service for in the period unplanned, in seconds of the resource.
    fn down_secs(&self, name: &str) -> u64 {
        let by_node = self.amounts(name);
        // It may have had others then; of CPUs that is known.
        let amount = |event: &NodeEvent| match name {
            "cpu" => u64::from(event.n_cpus),
            _ => by_node.get(&event.node).copied().unwrap_or(0),
        };
        let within = |event: &NodeEvent| {
            let (from, until) = (event.from, event.until.unwrap_or(self.period.end));
            let kept = self.maintenance().filter(|one| one.nodes.contains(&event.node));
            let planned: u64 = kept.map(|one| self.period.overlap(one.start.max(from), one.end.min(until))).sum();
            self.period.overlap(from, until).saturating_sub(planned)
        };
        self.events.iter().map(|event| within(event) * amount(event)).sum()
    }

    fn maintenance(&self) -> impl Iterator<Item = &Reservation> {
        self.reservations.iter().filter(|one| one.has(Flag::Maint))
    }

    /// What was kept for maintenance in the period, in seconds of the resource.
    fn maintained_secs(&self, name: &str) -> u64 {
        let by_node = self.amounts(name);
        let of = |one: &Reservation| {
            let kept = one.nodes.iter().filter_map(|node| by_node.get(node));
            self.period.overlap(one.start, one.end) * kept.sum::<u64>()
        };
        self.maintenance().map(of).sum()
    }

    /// How much of the resource each node has.
    fn amounts(&self, name: &str) -> HashMap<NodeName, u64> {
        let billing = billing_by_node(self.config);
        let amount = |node: &NamedNode| match name {
            "cpu" => u64::from(node.config.cpus),
            "billing" => billing[&node.name],
            "mem" => node.config.memory_mb,
            "node" => 1,
            _ => 0,
        };
        self.config.nodes.iter().map(|node| (node.name.clone(), amount(node))).collect()
    }
}

#[cfg(test)]
mod tests {
    use model::Timestamp;
    use model::accounts::Accounts;
    use model::config::Config;
    use model::node::NodeConfig;

    use super::super::options::Options;
    use super::super::usage::Period;
    use super::*;
    use crate::zone::Clock;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    /// Two nodes of four CPUs for a hundred seconds: one is down for thirty, twenty of them during its maintenance.
    #[test]
    fn an_outage_is_down_unless_it_was_planned() {
        let node = |name: &str| NamedNode {
            name: name.into(),
            config: NodeConfig { cpus: 4, memory_mb: 100, ..Default::default() },
        };
        let config = Config { nodes: vec![node("n1"), node("n2")], ..Default::default() };
        let maintenance = Reservation {
            start: at(1020),
            end: at(1060),
            nodes: ["n1".into()].into(),
            flags: [Flag::Maint].into(),
            ..Default::default()
        };
        let event =
            NodeEvent { node: "n1".into(), from: at(1010), until: Some(at(1040)), n_cpus: 4, ..Default::default() };
        let options = Options { parsable2: true, no_heading: true, ..Options::default() };
        let clock = Clock::utc(at(2000));
        let scene = Scene {
            options: &options,
            config: &config,
            accounts: &Accounts::default(),
            reservations: &[maintenance],
            parts: &[],
            period: Period { start: at(1000), end: at(1100) },
            clock: &clock,
            events: &[event],
            began: None,
        };
        assert_eq!((scene.down_secs("cpu"), scene.maintained_secs("cpu")), (40, 160));
        assert_eq!((scene.down_secs("node"), scene.maintained_secs("node")), (10, 40));
        assert_eq!((scene.down_secs("mem"), scene.maintained_secs("mem")), (1000, 4000));
        assert_eq!(scene.utilization().unwrap().lines().count(), 1);
        let later = Scene { began: Some(at(5000)), ..scene };
        assert_eq!(later.utilization().unwrap(), "", "it was not there");
        let elsewhere = Options { clusters: vec!["other".into()], ..options.clone() };
        let scene = Scene { options: &elsewhere, began: None, ..later };
        assert_eq!(scene.utilization().unwrap(), "");
    }
}
