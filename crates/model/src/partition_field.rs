//! The rules of a partition, one by one, as a `slurm.conf` and `scontrol update` name them: text to field, field to partition.
use serde::{Deserialize, Serialize};

use crate::duration::{self, Limit};
use crate::partition::{OverSubscribe, PartitionState, PreemptMode};
use crate::spec::TimeLimit;
use crate::time::Span;
use crate::{NodeName, Partition, hostlist, size};

/// One rule with its new value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Field {
    AllocNodes(Vec<String>),
    AllowAccounts(Vec<String>),
    AllowGroups(Vec<String>),
    AllowQos(Vec<String>),
    BillingWeights(String),
    Alternate(String),
    Default(bool),
    DefaultTime(Option<TimeLimit>),
    DefCpuPerGpu(Option<u32>),
    DefMemPerCpu(Option<u64>),
    DefMemPerGpu(Option<u64>),
    DefMemPerNode(Option<u64>),
    DenyAccounts(Vec<String>),
    DenyQos(Vec<String>),
    DisableRootJobs(bool),
    ExclusiveUser(bool),
    GraceTime(Span),
    Hidden(bool),
    LeastLoaded(bool),
    MaxCpusPerNode(Option<u32>),
    MaxCpusPerSocket(Option<u32>),
    MaxMemPerCpu(Option<u64>),
    MaxMemPerNode(Option<u64>),
    MaxNodes(Option<u32>),
    MaxTime(Option<TimeLimit>),
    MinNodes(u32),
    Nodes(NodesChange),
    OverSubscribe(OverSubscribe),
    OverTimeLimit(Option<TimeLimit>),
    PreemptMode(PreemptMode),
    PriorityJobFactor(u32),
    PriorityTier(u32),
    /// Both of them.
    Priority(u32),
    Qos(String),
    ReqResv(bool),
    RootOnly(bool),
    State(PartitionState),
}

/// Which nodes a partition or a reservation has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum NodesChange {
    All,
    To(Vec<NodeName>),
    With(Vec<NodeName>),
    Without(Vec<NodeName>),
}

/// Why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mistake {
    UnknownKey,
    /// What would be right.
    Expected(&'static str),
}

impl NodesChange {
    /// `n[1-4]`, `ALL`; `+n5` and `-n5` change what is there.
    pub fn parse(text: &str) -> Option<NodesChange> {
        let names = |text: &str| -> Option<Vec<NodeName>> {
            Some(hostlist::expand(text).ok()?.into_iter().map(NodeName::from).collect())
        };
        Some(match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(more), _) => NodesChange::With(names(more)?),
            (_, Some(fewer)) => NodesChange::Without(names(fewer)?),
            _ if text.eq_ignore_ascii_case("ALL") => NodesChange::All,
            _ => NodesChange::To(names(text)?),
        })
    }

    /// What becomes of `present`; `all` are the cluster's nodes.
    pub fn apply(&self, present: &[NodeName], all: impl Iterator<Item = NodeName>) -> Vec<NodeName> {
        let mut nodes: Vec<NodeName> = match self {
            NodesChange::All => all.collect(),
            NodesChange::To(names) => names.clone(),
            NodesChange::With(names) => present.iter().chain(names).cloned().collect(),
            NodesChange::Without(names) => present.iter().filter(|name| !names.contains(name)).cloned().collect(),
        };
        nodes.sort_by(|a, b| hostlist::natural_cmp(a.as_str(), b.as_str()));
        nodes.dedup();
        nodes
    }

    pub fn named(&self) -> &[NodeName] {
        match self {
            NodesChange::All => &[],
            NodesChange::To(names) | NodesChange::With(names) | NodesChange::Without(names) => names,
        }
    }
}

type Read = fn(&str) -> Result<Field, Mistake>;

/// Every rule by its whole name, and the fewest letters of it that `scontrol` takes.
const FIELDS: &[(&str, usize, Read)] = &[
    ("AllocNodes", 6, |text| Ok(Field::AllocNodes(hosts(text)?))),
    ("AllowAccounts", 7, |text| Ok(Field::AllowAccounts(names(text)))),
    ("AllowGroups", 6, |text| Ok(Field::AllowGroups(names(text)))),
    ("AllowQos", 6, |text| Ok(Field::AllowQos(names(text)))),
    ("Alternate", 3, |text| Ok(Field::Alternate(text.into()))),
    ("DefaultTime", 8, |text| Ok(Field::DefaultTime(time(text)?))),
    ("DefTime", 7, |text| Ok(Field::DefaultTime(time(text)?))),
    ("Default", 7, |text| Ok(Field::Default(flag(text)?))),
    ("DefCpuPerGPU", 7, |text| Ok(Field::DefCpuPerGpu(count(text)?))),
    ("DefMemPerCPU", 10, |text| Ok(Field::DefMemPerCpu(megabytes(text)?))),
    ("DefMemPerGPU", 10, |text| Ok(Field::DefMemPerGpu(megabytes(text)?))),
    ("DefMemPerNode", 10, |text| Ok(Field::DefMemPerNode(megabytes(text)?))),
    ("DenyAccounts", 5, |text| Ok(Field::DenyAccounts(names(text)))),
    ("DenyQos", 5, |text| Ok(Field::DenyQos(names(text)))),
    ("DisableRootJobs", 1, |text| Ok(Field::DisableRootJobs(flag(text)?))),
    ("ExclusiveUser", 1, |text| Ok(Field::ExclusiveUser(flag(text)?))),
    ("GraceTime", 5, |text| Ok(Field::GraceTime(span(text)?))),
    ("Hidden", 1, |text| Ok(Field::Hidden(flag(text)?))),
    ("LLN", 1, |text| Ok(Field::LeastLoaded(flag(text)?))),
    ("MaxCPUsPerNode", 11, |text| Ok(Field::MaxCpusPerNode(count(text)?))),
    ("MaxCPUsPerSocket", 11, |text| Ok(Field::MaxCpusPerSocket(count(text)?))),
    ("MaxMemPerCPU", 10, |text| Ok(Field::MaxMemPerCpu(megabytes(text)?))),
    ("MaxMemPerNode", 10, |text| Ok(Field::MaxMemPerNode(megabytes(text)?))),
    ("MaxNodes", 4, |text| Ok(Field::MaxNodes(n_nodes(text)?))),
    ("MaxTime", 4, |text| Ok(Field::MaxTime(time(text)?))),
    ("MinNodes", 2, |text| text.parse().map(Field::MinNodes).map_err(|_| Mistake::Expected("a whole number"))),
    ("Nodes", 3, |text| NodesChange::parse(text).map(Field::Nodes).ok_or(Mistake::Expected("a list of nodes"))),
    ("OverSubscribe", 5, |text| Ok(Field::OverSubscribe(oversubscribe(text)?))),
    ("Shared", 2, |text| Ok(Field::OverSubscribe(oversubscribe(text)?))),
    ("OverTimeLimit", 5, |text| Ok(Field::OverTimeLimit(time(text)?))),
    ("PreemptMode", 3, |text| {
        PreemptMode::parse(text)
            .map(Field::PreemptMode)
            .ok_or(Mistake::Expected("OFF, CANCEL, REQUEUE, SUSPEND or GANG"))
    }),
    ("PriorityJobFactor", 9, |text| Ok(Field::PriorityJobFactor(small(text)?))),
    ("PriorityTier", 9, |text| Ok(Field::PriorityTier(small(text)?))),
    ("Priority", 3, |text| Ok(Field::Priority(small(text)?))),
    ("QOS", 3, |text| Ok(Field::Qos(text.into()))),
    ("TRESBillingWeights", 4, |text| match crate::billing::Weights::parse(text) {
        Ok(_) => Ok(Field::BillingWeights(text.into())),
        Err(_) => Err(Mistake::Expected("weights such as CPU=1.0,Mem=0.25G,GRES/gpu=2")),
    }),
    ("ReqResv", 3, |text| Ok(Field::ReqResv(flag(text)?))),
    ("RootOnly", 3, |text| Ok(Field::RootOnly(flag(text)?))),
    ("State", 2, |text| state(text).map(Field::State)),
];

/// The rule that a word names, whole or cut short.
pub fn parse(key: &str, value: &str) -> Result<Field, Mistake> {
    let is_short = |name: &str, least: usize| {
        key.len() >= least
            && name.len() >= key.len()
            && name.as_bytes()[..key.len()].eq_ignore_ascii_case(key.as_bytes())
    };
    let exact = FIELDS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(key));
    let found = exact.or_else(|| FIELDS.iter().find(|(name, least, _)| is_short(name, *least)));
    found.map_or(Err(Mistake::UnknownKey), |(.., read)| read(value))
}

/// The whole names of all rules.
pub fn all_names() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().map(|(name, ..)| *name)
}

/// The whole name of what a word names; the word itself if that is nothing.
pub fn whole_name(key: &str) -> &str {
    let is_short =
        |name: &&str| name.len() >= key.len() && name.as_bytes()[..key.len()].eq_ignore_ascii_case(key.as_bytes());
    let names = || FIELDS.iter().map(|(name, ..)| *name);
    names().find(|name| name.eq_ignore_ascii_case(key)).or_else(|| names().find(is_short)).unwrap_or(key)
}

impl Partition {
    /// Takes one rule. `all` are the cluster's nodes in their order.
    pub fn set(&mut self, field: Field, all: &mut dyn Iterator<Item = NodeName>) {
        match field {
            Field::AllocNodes(hosts) => self.alloc_nodes = hosts,
            Field::AllowAccounts(names) => self.allow_accounts = names,
            Field::AllowGroups(names) => self.allow_groups = names,
            Field::AllowQos(names) => self.allow_qos = names,
            Field::BillingWeights(text) => self.billing_weights = text,
            Field::Alternate(name) => self.alternate = name,
            Field::Default(is_default) => self.is_default = is_default,
            Field::DefaultTime(limit) => self.default_time = limit,
            Field::DefCpuPerGpu(count) => self.default_cpus_per_gpu = count,
            // A limit for each CPU, and one for each node, exclude each other.
            Field::DefMemPerCpu(size) => {
                self.default_memory_per_cpu_mb = size;
                self.default_memory_per_node_mb = None;
            }
            Field::DefMemPerGpu(size) => self.default_memory_per_gpu_mb = size,
            Field::DefMemPerNode(size) => {
                self.default_memory_per_node_mb = size;
                self.default_memory_per_cpu_mb = None;
            }
            Field::DenyAccounts(names) => self.deny_accounts = names,
            Field::DenyQos(names) => self.deny_qos = names,
            Field::DisableRootJobs(is) => self.disable_root_jobs = is,
            Field::ExclusiveUser(is) => self.exclusive_user = is,
            Field::GraceTime(span) => self.grace_time = span,
            Field::Hidden(is) => self.is_hidden = is,
            Field::LeastLoaded(is) => self.least_loaded = is,
            Field::MaxCpusPerNode(count) => self.max_cpus_per_node = count,
            Field::MaxCpusPerSocket(count) => self.max_cpus_per_socket = count,
            Field::MaxMemPerCpu(size) => {
                self.max_memory_per_cpu_mb = size;
                self.max_memory_per_node_mb = None;
            }
            Field::MaxMemPerNode(size) => {
                self.max_memory_per_node_mb = size;
                self.max_memory_per_cpu_mb = None;
            }
            Field::MaxNodes(count) => self.max_nodes = count,
            Field::MaxTime(limit) => self.max_time = limit,
            Field::MinNodes(count) => self.min_nodes = count,
            Field::Nodes(change) => {
                self.nodes = change.apply(&self.nodes, all);
                self.nodes_text = match change {
                    NodesChange::All => "ALL".into(),
                    _ => hostlist::compress(self.nodes.iter().map(NodeName::as_str)),
                };
            }
            Field::OverSubscribe(sharing) => {
                self.oversubscribe = sharing;
                self.exclusive_nodes = sharing == OverSubscribe::Exclusive;
            }
            Field::OverTimeLimit(limit) => self.over_time_limit = limit,
            Field::PreemptMode(mode) => self.preempt_mode = Some(mode),
            Field::PriorityJobFactor(factor) => self.priority_job_factor = factor,
            Field::PriorityTier(tier) => self.priority_tier = tier,
            Field::Priority(both) => (self.priority_job_factor, self.priority_tier) = (both, both),
            Field::Qos(name) => self.qos = name,
            Field::ReqResv(is) => self.requires_reservation = is,
            Field::RootOnly(is) => self.root_only = is,
            Field::State(state) => self.state = state,
        }
    }
}

fn names(text: &str) -> Vec<String> {
    if text.eq_ignore_ascii_case("ALL") {
        return Vec::new();
    }
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_string).collect()
}

fn hosts(text: &str) -> Result<Vec<String>, Mistake> {
    if text.is_empty() || text.eq_ignore_ascii_case("ALL") {
        return Ok(Vec::new());
    }
    hostlist::expand(text).map_err(|_| Mistake::Expected("a list of hosts, or ALL"))
}

fn flag(text: &str) -> Result<bool, Mistake> {
    match text.to_ascii_uppercase().as_str() {
        "YES" | "TRUE" | "1" | "UP" => Ok(true),
        "NO" | "FALSE" | "0" | "DOWN" => Ok(false),
        _ => Err(Mistake::Expected("YES or NO")),
    }
}

fn is_unlimited(text: &str) -> bool {
    text.eq_ignore_ascii_case("UNLIMITED") || text.eq_ignore_ascii_case("INFINITE") || text == "-1"
}

fn time(text: &str) -> Result<Option<TimeLimit>, Mistake> {
    if text.eq_ignore_ascii_case("NONE") {
        return Ok(None);
    }
    match duration::parse_limit(text) {
        Some(Limit::Seconds(secs)) => Ok(Some(TimeLimit::Secs(secs))),
        Some(Limit::Unlimited) => Ok(Some(TimeLimit::Unlimited)),
        None => Err(Mistake::Expected("minutes, a time like 1-12:00:00, or UNLIMITED")),
    }
}

/// Seconds, as a number or a time.
fn span(text: &str) -> Result<Span, Mistake> {
    let secs = match text.parse::<u32>() {
        Ok(secs) => Some(u64::from(secs)),
        Err(_) if text.contains([':', '-']) => duration::parse(text).and_then(Limit::seconds),
        Err(_) => None,
    };
    secs.map(Span::from_secs).ok_or(Mistake::Expected("a number of seconds"))
}

fn count(text: &str) -> Result<Option<u32>, Mistake> {
    if is_unlimited(text) {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| Mistake::Expected("a whole number, or UNLIMITED"))
}

fn n_nodes(text: &str) -> Result<Option<u32>, Mistake> {
    match count(text) {
        Ok(Some(0)) | Err(_) => Err(Mistake::Expected("a whole number from 1, or UNLIMITED")),
        right => right,
    }
}

fn small(text: &str) -> Result<u32, Mistake> {
    let number = text.parse().ok().filter(|number| *number <= 65_533);
    number.ok_or(Mistake::Expected("a whole number from 0 to 65533"))
}

fn megabytes(text: &str) -> Result<Option<u64>, Mistake> {
    let expected = Mistake::Expected("a number of megabytes, or UNLIMITED");
    let size = if is_unlimited(text) { Some(0) } else { size::parse_megabytes(text) };
    size.map(|size| (size > 0).then_some(size)).ok_or(expected)
}

fn oversubscribe(text: &str) -> Result<OverSubscribe, Mistake> {
    OverSubscribe::parse(text).ok_or(Mistake::Expected("EXCLUSIVE, FORCE[:COUNT], YES[:COUNT] or NO"))
}

fn state(text: &str) -> Result<PartitionState, Mistake> {
    [PartitionState::Up, PartitionState::Down, PartitionState::Drain, PartitionState::Inactive]
        .into_iter()
        .find(|state| state.word().eq_ignore_ascii_case(text))
        .ok_or(Mistake::Expected("UP, DOWN, DRAIN or INACTIVE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_changes_its_own_field() {
        let all = || ["n1", "n2", "n3"].map(NodeName::from).into_iter();
        let shown = |line: &str| {
            let mut partition = Partition::blank();
            let before = format!("{partition:#?}");
            for pair in line.split(' ') {
                let (key, value) = pair.split_once('=').expect("a pair");
                partition.set(parse(key, value).expect("a rule"), &mut all());
            }
            let after = format!("{partition:#?}");
            let changed = after.lines().filter(|line| !before.contains(*line));
            changed.map(|line| line.trim().trim_end_matches(',')).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown("maxnodes=3"), "max_nodes: Some( 3");
        assert_eq!(shown("Hidden=yes rootonly=YES"), "is_hidden: true root_only: true");
        assert_eq!(shown("maxn=unlimited"), "");
        assert_eq!(shown("oversub=force:2"), "oversubscribe: Force( 2");
        let mut partition = Partition::blank();
        for (text, nodes) in [("ALL", 3), ("-n2", 2), ("n1", 1), ("+n3", 2)] {
            partition.set(parse("Nodes", text).expect("nodes"), &mut all());
            assert_eq!(partition.nodes.len(), nodes, "{text}");
        }
        assert_eq!(partition.nodes_text, "n[1,3]");
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        assert_eq!(parse("foo", "bar"), Err(Mistake::UnknownKey));
        for (key, value) in [
            ("Default", "maybe"),
            ("MaxTime", "x"),
            ("MaxNodes", "x"),
            ("OverSubscribe", "x"),
            ("OverSubscribe", "no:3"),
            ("PriorityTier", "99999"),
            ("State", "x"),
            ("PreemptMode", "x"),
            ("GraceTime", "x"),
        ] {
            assert!(matches!(parse(key, value), Err(Mistake::Expected(_))), "{key}={value}");
        }
    }
}
