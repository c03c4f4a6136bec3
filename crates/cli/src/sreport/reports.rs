//! The reports: who is in each, in which order, with which columns.
use std::collections::BTreeMap;

use model::accounts::Accounts;
use model::config::Config;
use model::history::JobChoice;
use model::{JobId, Reservation, Timestamp};

use super::options::{Options, Subject};
use super::show::{Cell, Field, wide};
use super::usage::{self, Amounts, Part, Period};
use crate::zone::Clock;
use model::chronicle::NodeEvent;

/// Everything a report is made of.
pub struct Scene<'a> {
    pub options: &'a Options,
    pub config: &'a Config,
    pub accounts: &'a Accounts,
    pub reservations: &'a [Reservation],
    pub parts: &'a [Part],
    pub period: Period,
    pub clock: &'a Clock,
    /// When nodes were out of service.
    pub events: &'a [NodeEvent],
    /// When the cluster was first heard of, as far as that is known.
    pub began: Option<Timestamp>,
}

pub(super) type Row = Vec<(&'static str, Cell)>;

/// The columns of reports about users.
const USERS_FIRST: &[&str] = &["cluster", "login", "proper", "account", "tresname", "used", "energy"];

fn field(name: &'static str, title: &str, width: i32) -> Field {
    let wide = if matches!(width, 8 | 13 | 20) && !matches!(name, "account") { wide(width) } else { 0 };
    Field { name, title: title.into(), width, wide, is_always: false }
}

/// Columns by name, title and width.
pub(super) fn fields(table: &[(&'static str, &str, i32)]) -> Vec<Field> {
    table.iter().map(|(name, title, width)| field(name, title, *width)).collect()
}

pub(super) fn text(text: &str) -> Cell {
    Cell::Text(text.into())
}

/// What a user is called besides the login name.
fn proper_name(user: &str) -> String {
    wire::accounts::full_name(user).unwrap_or_default()
}

impl Scene<'_> {
    pub(super) fn tres(&self) -> Vec<String> {
        self.options.wanted_tres(&usage::capacity(self.config))
    }

    /// CPUs alone are the usual thing, with energy beside them; others are named.
    fn is_named(&self) -> bool {
        self.options.tres.is_some()
    }

    fn kind(&self) -> &'static str {
        match &self.options.tres {
            None => "CPU",
            Some(_) => "TRES",
        }
    }

    /// All that there could have been of a resource.
    pub(super) fn total(&self, name: &str) -> u64 {
        let since = self.began.unwrap_or_default();
        usage::capacity(self.config).get(name).copied().unwrap_or(0) * self.period.overlap(since, self.period.end)
    }

    /// One row for each resource that was asked for.
    fn rows_for(&self, head: &Row, used: &Amounts) -> Vec<Row> {
        let row = |name: &String| {
            let mut row = head.clone();
            let secs = used.get(name).copied().unwrap_or(0);
            row.push(("tresname", text(name)));
            row.push(("used", Cell::Secs(secs, self.total(name))));
            // Nothing measures it here.
            row.push(("energy", Cell::Secs(0, 0)));
            row
        };
        self.tres().iter().map(row).collect()
    }

    pub(super) fn show(
        &self,
        title: &str,
        with_secs: bool,
        fields: &[Field],
        usual: &[&'static str],
        rows: &[Row],
    ) -> Result<String, String> {
        let unit = self.options.usage_unit(self.kind());
        let heading = self.options.heading(title, self.period, with_secs, &unit, self.clock);
        let usual: Vec<&str> =
            usual.iter().copied().filter(|name| *name != if self.is_named() { "energy" } else { "tresname" }).collect();
        self.under(heading, fields, &usual, rows)
    }

    /// The table under its heading; an error has what could be shown.
    pub(super) fn under(
        &self,
        heading: String,
        fields: &[Field],
        usual: &[&str],
        rows: &[Row],
    ) -> Result<String, String> {
        match self.options.table(fields, usual, rows) {
            Ok(table) => Ok(heading + &table),
            Err(table) => Err(heading + &table),
        }
    }

    pub(super) fn cluster_cell(&self) -> (&'static str, Cell) {
        ("cluster", text(&self.config.cluster_name))
    }

    /// Accounts that were used, in the order of their tree, each with those below it, and then its users.
    pub fn by_account(&self) -> Result<String, String> {
        let mut of_users: BTreeMap<(&str, &str), Amounts> = BTreeMap::new();
        let mut of_accounts: BTreeMap<String, Amounts> = BTreeMap::new();
        for part in self.parts.iter().filter(|part| self.is_meant(part)) {
            usage::add(of_users.entry((&part.account, &part.user)).or_default(), &part.used);
            for account in self.above(&part.account) {
                usage::add(of_accounts.entry(account).or_default(), &part.used);
            }
        }
        let kept = self.kept_for();
        for ((account, user), used) in &kept {
            if !user.is_empty() {
                usage::add(of_users.entry((account, user)).or_default(), used);
            }
            for above in self.above(account) {
                usage::add(of_accounts.entry(above).or_default(), used);
            }
        }
        let mut rows = Vec::new();
        for (account, depth) in self.in_tree(of_accounts.keys()) {
            let wanted = &self.options.accounts;
            let is_in = wanted.is_empty() || self.above(&account).iter().any(|above| wanted.contains(above));
            if !is_in {
                continue;
            }
            let named = |depth: usize| match self.options.is_tree {
                true => format!("{}{account}", " ".repeat(depth)),
                false => account.clone(),
            };
            if self.options.users.is_empty() {
                let head = vec![self.cluster_cell(), ("account", text(&named(depth)))];
                rows.extend(self.rows_for(&head, &of_accounts[&account]));
            }
            for ((of, user), used) in of_users.iter().filter(|((of, _), _)| *of == account) {
                debug_assert_eq!(*of, account);
                let head = vec![
                    self.cluster_cell(),
                    ("account", text(&named(depth + 1))),
                    ("login", text(user)),
                    ("proper", text(&proper_name(user))),
                ];
                rows.extend(self.rows_for(&head, used));
            }
        }
        let fields = self.usage_fields("account", "Account", if self.options.is_tree { -20 } else { 15 });
        let usual = ["cluster", "account", "login", "proper", "tresname", "used", "energy"];
        self.show("Cluster/Account/User Utilization", true, &fields, &usual, &rows)
    }

    fn usage_fields(&self, name: &'static str, title: &str, width: i32) -> Vec<Field> {
        let own = Field { name, title: title.into(), width, wide: 0, is_always: false };
        let [cluster, energy] = [("cluster", "Cluster", 9), ("energy", "Energy", 8)];
        let [login, proper] = [("login", "Login", 9), ("proper", "Proper Name", 15)];
        let [tres, used] = [("tresname", "TRES Name", 14), ("used", "Used", 8)];
        [own].into_iter().chain(fields(&[cluster, energy, login, proper, tres, used])).collect()
    }

    pub fn by_user(&self) -> Result<String, String> {
        let kept = self.kept_for();
        let mut sums: BTreeMap<(&str, &str), Amounts> = BTreeMap::new();
        for part in self.parts.iter().filter(|part| self.is_meant(part) && self.is_in_accounts(part)) {
            usage::add(sums.entry((&part.user, &part.account)).or_default(), &part.used);
        }
        for ((account, user), used) in
            kept.iter().filter(|((account, user), _)| self.is_in(account) && !user.is_empty())
        {
            usage::add(sums.entry((user, account)).or_default(), used);
        }
        let sums = self.most_first(sums.into_iter().collect());
        let rows = sums.iter().flat_map(|((user, account), used)| self.user_rows(user, account, used));
        let rows: Vec<Row> = rows.collect();
        let fields = self.usage_fields("account", "Account", 15);
        self.show("Cluster/User/Account Utilization", true, &fields, USERS_FIRST, &rows)
    }

    /// Whoever used most comes first.
    fn most_first<K: Ord + Clone>(&self, mut sums: Vec<(K, Amounts)>) -> Vec<(K, Amounts)> {
        let first = self.tres().first().cloned().unwrap_or_else(|| "cpu".into());
        sums.sort_by_key(|(key, used)| (std::cmp::Reverse(used.get(&first).copied().unwrap_or(0)), key.clone()));
        sums
    }

    fn user_rows(&self, user: &str, account: &str, used: &Amounts) -> Vec<Row> {
        let head = vec![
            self.cluster_cell(),
            ("login", text(user)),
            ("proper", text(&proper_name(user))),
            ("account", text(account)),
        ];
        self.rows_for(&head, used)
    }

    /// Those who used most, by CPUs.
    pub fn top(&self) -> Result<String, String> {
        let kept = self.kept_for();
        let mut sums: BTreeMap<(&str, String), Amounts> = BTreeMap::new();
        for ((account, user), used) in
            kept.iter().filter(|((account, user), _)| self.is_in(account) && !user.is_empty())
        {
            let account = if self.options.groups_accounts { String::new() } else { account.clone() };
            usage::add(sums.entry((user, account)).or_default(), used);
        }
        for part in self.parts.iter().filter(|part| self.is_meant(part) && self.is_in_accounts(part)) {
            let account = if self.options.groups_accounts { String::new() } else { part.account.clone() };
            usage::add(sums.entry((&part.user, account)).or_default(), &part.used);
        }
        if self.options.groups_accounts {
            // All accounts of a user in one row.
            let accounts_of = |user: &str| {
                let mut names: Vec<&str> =
                    self.parts.iter().filter(|part| part.user == user).map(|part| part.account.as_str()).collect();
                names.extend(kept.keys().filter(|(_, of)| of == user).map(|(account, _)| account.as_str()));
                names.sort_unstable();
                names.dedup();
                names.join(", ")
            };
            sums = sums.into_iter().map(|((user, _), used)| ((user, accounts_of(user)), used)).collect();
        }
        let mut sums = self.most_first(sums.into_iter().collect());
        sums.truncate(self.options.top_count);
        let rows = sums.iter().flat_map(|((user, account), used)| self.user_rows(user, account, used));
        let rows: Vec<Row> = rows.collect();
        let fields = self.usage_fields("account", "Account", 15);
        self.show(&format!("Top {} Users", self.options.top_count), true, &fields, USERS_FIRST, &rows)
    }

    pub fn by_wckey(&self, users_first: bool) -> Result<String, String> {
        let mut sums: BTreeMap<(&str, &str), Amounts> = BTreeMap::new();
        let wanted = &self.options.wckeys;
        let is_meant = |part: &&Part| {
            self.is_meant(part) && !part.wckey.is_empty() && (wanted.is_empty() || wanted.contains(&part.wckey))
        };
        for part in self.parts.iter().filter(is_meant) {
            let key: (&str, &str) = if users_first { (&part.user, &part.wckey) } else { (&part.wckey, &part.user) };
            usage::add(sums.entry(key).or_default(), &part.used);
        }
        let mut rows = Vec::new();
        for ((first, second), used) in &sums {
            let (user, wckey) = if users_first { (first, second) } else { (second, first) };
            let head = vec![
                self.cluster_cell(),
                ("login", text(user)),
                ("proper", text(&proper_name(user))),
                ("wckey", text(wckey)),
            ];
            rows.extend(self.rows_for(&head, used));
        }
        let fields = self.usage_fields("wckey", "WCKey", 15);
        let by_user = ["cluster", "login", "proper", "wckey", "tresname", "used"];
        let by_wckey = ["cluster", "wckey", "login", "proper", "tresname", "used"];
        let (title, usual) = match users_first {
            true => ("Cluster/User/WCKey Utilization", by_user),
            false => ("Cluster/WCKey/User Utilization", by_wckey),
        };
        self.show(title, true, &fields, &usual, &rows)
    }

    /// What jobs of each size used, or how many there were.
    pub fn sizes(&self, by: Sizes) -> Result<String, String> {
        let is_individual = self.options.is_individual;
        let mut bounds = match (is_individual, self.options.grouping.is_empty()) {
            (true, _) => self.sizes_of_jobs(),
            (false, true) => vec![50, 250, 500, 1000],
            (false, false) => self.options.grouping.clone(),
        };
        bounds.sort_unstable();
        bounds.dedup();
        // Jobs of one size are in the group behind its bound: nothing is before the first.
        let first = usize::from(is_individual);
        let counted = self.tres().first().cloned().unwrap_or_else(|| "cpu".into());
        let counted_word = if counted == "cpu" { "CPUs" } else { "TRES" };
        let mut sums: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for part in self.parts.iter().filter(|part| !part.used.is_empty() && self.is_meant(part)) {
            let Some(name) = self.size_owner(part, by) else { continue };
            let group = bounds.iter().take_while(|bound| part.n_cpus >= **bound).count() - first;
            let groups = sums.entry(name).or_insert_with(|| vec![0; bounds.len() + 1 - first]);
            groups[group] += match self.options.prints_job_count {
                true => 1,
                false => part.used.get(&counted).copied().unwrap_or(0),
            };
        }
        let all: u64 = sums.values().flatten().sum();
        let (title, name, width): (&str, &'static str, i32) = match by {
            Sizes::Account => ("Account", "account", 9),
            Sizes::AccountAndWckey => ("Account", "account", -20),
            Sizes::Wckey => ("Wckey", "wckey", 9),
        };
        let mut fields =
            vec![field("cluster", "Cluster", 9), Field { name, title: title.into(), width, wide: 0, is_always: false }];
        let group_names =
            ["g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7", "g8", "g9", "g10", "g11", "g12", "g13", "g14", "g15"];
        let n_groups = (bounds.len() + 1 - first).min(group_names.len());
        for (place, group) in group_names.iter().enumerate().take(n_groups) {
            let from = if place == 0 { 0 } else { bounds[place - 1] };
            let title = match bounds.get(place) {
                Some(bound) if is_individual => format!("{bound} {counted_word}"),
                Some(bound) => format!("{from}-{} {counted_word}", bound.saturating_sub(1)),
                None => format!(">= {from} {counted_word}"),
            };
            fields.push(Field { name: group, title, width: 13, wide: wide(13), is_always: true });
        }
        fields.push(Field { is_always: true, ..field("percent", "% of cluster", 12) });
        let mut rows = Vec::new();
        for (owner, groups) in &sums {
            let total: u64 = groups.iter().sum();
            let mut row = vec![self.cluster_cell(), (name, text(owner))];
            for (place, value) in groups.iter().enumerate().take(n_groups) {
                let cell = if self.options.prints_job_count { Cell::Count(*value) } else { Cell::Secs(*value, total) };
                row.push((group_names[place], cell));
            }
            let percent = if all == 0 { 0.0 } else { total as f64 * 100.0 / all as f64 };
            row.push(("percent", Cell::Text(format!("{percent:.2}%"))));
            rows.push(row);
        }
        let usual: Vec<&str> = fields.iter().map(|field| field.name).collect();
        let unit = match self.options.prints_job_count {
            true => "Units are in number of jobs ran".to_string(),
            false => format!("Time reported in {}", self.options.unit.words()),
        };
        let unit = if self.is_named() { format!("TRES type is {counted}\n{unit}") } else { unit };
        let title = if by == Sizes::Wckey { "Job Sizes by Wckey" } else { "Job Sizes" };
        let heading = self.options.heading(title, self.period, true, &unit, self.clock);
        self.under(heading, &fields, &usual, &rows)
    }

    /// How many CPUs jobs had.
    fn sizes_of_jobs(&self) -> Vec<u32> {
        self.parts.iter().filter(|part| self.is_meant(part)).map(|part| part.n_cpus).collect()
    }

    /// In whose row a job is counted.
    fn size_owner(&self, part: &Part, by: Sizes) -> Option<String> {
        if by == Sizes::Wckey {
            let wanted = &self.options.wckeys;
            let is_wanted = !part.wckey.is_empty() && (wanted.is_empty() || wanted.contains(&part.wckey));
            return is_wanted.then(|| part.wckey.clone());
        }
        let above = self.above(&part.account);
        let owner = match (&self.options.accounts[..], self.options.is_flat) {
            (_, true) => part.account.clone(),
            ([], false) if self.options.account_as_parent => above.iter().rev().nth(1).or(above.first())?.clone(),
            ([], false) => above.last()?.clone(),
            (wanted, false) => above.iter().find(|name| wanted.contains(name))?.clone(),
        };
        match by {
            Sizes::AccountAndWckey if part.wckey.is_empty() => None,
            Sizes::AccountAndWckey => Some(format!("{owner}:{}", part.wckey)),
            _ => Some(owner),
        }
    }

    fn is_meant(&self, part: &Part) -> bool {
        let Options { users, wckeys, .. } = self.options;
        !part.used.is_empty()
            && (users.is_empty() || users.contains(&part.user))
            && (wckeys.is_empty() || wckeys.contains(&part.wckey))
    }

    fn is_in_accounts(&self, part: &Part) -> bool {
        self.is_in(&part.account)
    }

    fn is_in(&self, account: &str) -> bool {
        let wanted = &self.options.accounts;
        wanted.is_empty() || self.above(account).iter().any(|account| wanted.contains(account))
    }

    /// The account and those above it, up to the root.
    fn above(&self, account: &str) -> Vec<String> {
        match self.accounts.account_association(account) {
            Some(own) => self.accounts.lineage(own.id).map(|one| one.account.clone()).collect(),
            None => vec![account.to_string()],
        }
    }

    /// These accounts in the order of the tree, with their depth; those that are gone come last.
    fn in_tree<'b>(&self, names: impl Iterator<Item = &'b String>) -> Vec<(String, usize)> {
        let mut left: std::collections::BTreeSet<&String> = names.collect();
        let mut found = Vec::new();
        for (id, depth) in crate::sacctmgr::tree(self.accounts) {
            let one = &self.accounts.associations[&id];
            if one.is_account() && left.remove(&one.account) {
                found.push((one.account.clone(), depth));
            }
        }
        found.extend(left.into_iter().map(|name| (name.clone(), 0)));
        found
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    Account,
    AccountAndWckey,
    Wckey,
}

/// History is asked for what was there in the period.
pub fn query(period: Period, options: &Options) -> model::history::HistoryQuery {
    model::history::HistoryQuery {
        after: Some(period.start),
        before: Some(period.end.max(Timestamp(period.start.0 + 1))),
        partitions: options.partitions.clone(),
        jobs: options.jobs.iter().map(|id| JobChoice { job: JobId(*id), ..JobChoice::default() }).collect(),
        gids: options.gids.clone(),
        nodes: match options.subject {
            Subject::Jobs => options.nodes.iter().map(|node| node.as_str().into()).collect(),
            _ => Vec::new(),
        },
        with_duplicates: true,
        for_usage: true,
        ..Default::default()
    }
}
