//! Reservations in reports: what was kept and not used counts for those it was kept for, as in Slurm.
use std::collections::BTreeMap;

use model::Reservation;
use model::accounts::Association;
use model::config::NamedNode;
use model::reservation::Flag;

use super::options::Options;
use super::reports::{Scene, fields, text};
use super::show::Cell;
use super::usage::{self, Amounts};

impl Scene<'_> {
    /// Those of the period; what is kept for maintenance is nobody's.
    fn kept(&self) -> impl Iterator<Item = &Reservation> {
        self.reservations.iter().filter(|one| one.start < self.period.end && one.end > self.period.start)
    }

    fn cpus_of(&self, one: &Reservation) -> u64 {
        if !one.cpus.is_empty() {
            return one.cpus.values().map(|cpus| u64::from(*cpus)).sum();
        }
        let is_kept = |node: &&NamedNode| one.nodes.contains(&node.name);
        self.config.nodes.iter().filter(is_kept).map(|node| u64::from(node.config.cpus)).sum()
    }

    /// Seconds of CPUs in all, and those that jobs had.
    fn used_of(&self, one: &Reservation) -> (u64, u64) {
        let total = self.cpus_of(one) * self.period.overlap(one.start, one.end);
        let mut used = Amounts::new();
        let own = self.parts.iter().filter(|part| part.reservation == one.name);
        own.for_each(|part| usage::add(&mut used, &part.used));
        (total, used.get("cpu").copied().unwrap_or(0).min(total))
    }

    /// Seconds of CPUs that were kept from everybody else and used by nobody.
    pub(super) fn kept_idle_secs(&self) -> u64 {
        let ordinary = self.kept().filter(|one| !one.has(Flag::Maint));
        ordinary.map(|one| self.used_of(one)).map(|(total, used)| total - used).sum()
    }

    /// What each account and user is charged with for reservations that nobody used: the time without any job, in equal
    /// shares. An account without a user is charged as a whole.
    pub(super) fn kept_for(&self) -> BTreeMap<(String, String), Amounts> {
        let mut sums: BTreeMap<(String, String), Amounts> = BTreeMap::new();
        for one in self.kept().filter(|one| !one.has(Flag::Maint)) {
            let entitled = self.entitled(one);
            let busy: u64 =
                self.parts.iter().filter(|part| part.reservation == one.name).map(|part| part.ran_secs).sum();
            let idle = self.period.overlap(one.start, one.end).saturating_sub(busy);
            let each = idle * self.cpus_of(one) / (entitled.len() as u64).max(1);
            for place in entitled {
                let is_wanted = self.options.users.is_empty() || self.options.users.contains(&place.user);
                if each > 0 && is_wanted {
                    let sum = sums.entry((place.account.clone(), place.user.clone())).or_default();
                    usage::add(sum, &Amounts::from([("cpu".to_string(), each)]));
                }
            }
        }
        sums
    }

    /// The associations a reservation is for.
    fn entitled(&self, one: &Reservation) -> Vec<&Association> {
        let named = |members: &model::reservation::Members, name: &String| {
            !members.are_excluded && members.names.contains(name)
        };
        let is_for = |place: &&Association| {
            place.is_here()
                && match (one.users.names.is_empty(), one.accounts.names.is_empty()) {
                    (false, false) => named(&one.users, &place.user) && named(&one.accounts, &place.account),
                    (false, true) => named(&one.users, &place.user),
                    (true, false) => place.is_account() && named(&one.accounts, &place.account),
                    (true, true) => false,
                }
        };
        self.accounts.associations.values().filter(is_for).collect()
    }

    pub fn reservations(&self) -> Result<String, String> {
        let names = &self.options.names;
        let mut rows = Vec::new();
        let Options { nodes, flags, .. } = self.options;
        let is_asked = |one: &&Reservation| {
            !self.options.is_nothing
                && (names.is_empty() || names.contains(&one.name))
                && (nodes.is_empty() || one.nodes.iter().any(|node| nodes.iter().any(|asked| asked == node.as_str())))
                && flags.iter().all(|word| one.flags.iter().any(|flag| flag.word() == word))
        };
        for one in self.kept().filter(is_asked) {
            let places: Vec<String> = self.entitled(one).iter().map(|place| place.id.to_string()).collect();
            let own_flags: Vec<&str> = one.flags.iter().map(|flag| flag.word()).collect();
            let (total, allocated) = self.used_of(one);
            let secs = (one.end - one.start).secs();
            rows.push(vec![
                self.cluster_cell(),
                ("name", text(&one.name)),
                ("start", text(&self.clock.show(one.start))),
                ("end", text(&self.clock.show(one.end))),
                ("tresname", text("cpu")),
                ("allocated", Cell::Secs(allocated, total)),
                ("idle", Cell::Secs(total - allocated, total)),
                ("nodes", text(&model::hostlist::compress(one.nodes.iter().map(|node| node.as_str())))),
                ("totaltime", text(&model::duration::show(secs))),
                ("associations", text(&places.join(","))),
                ("flags", text(&own_flags.join(","))),
            ]);
        }
        let fields = fields(&[
            ("allocated", "Allocated", 20),
            ("associations", "Associations", 15),
            ("flags", "Flags", 20),
            ("cluster", "Cluster", 9),
            ("end", "End", 19),
            ("idle", "Idle", 20),
            ("name", "Name", 9),
            ("nodes", "Nodes", 15),
            ("start", "Start", 19),
            ("totaltime", "TotalTime", 9),
            ("tresname", "TRES Name", 14),
        ]);
        let usual = ["cluster", "name", "start", "end", "tresname", "allocated", "idle"];
        let unit = self.options.usage_unit("TRES");
        let heading = self.options.heading("Reservation Utilization", self.period, false, &unit, self.clock);
        self.under(heading, &fields, &usual, &rows)
    }
}
