//! The configuration that all replicas judge by. Read from files by the `config` crate; part of the state.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::hand_out::HandOut;
use crate::health::HealthConfig;
use crate::hooks::HooksConfig;
use crate::license::LicenseCount;
use crate::node::NodeConfig;
use crate::pool::BurstBufferConfig;
use crate::preemption::PreemptionConfig;
use crate::priority::PriorityConfig;
use crate::secret::SecretText;
use crate::time::Span;
use crate::topology::{Topology, TopologyRules};
use crate::{NodeName, Partition};

/// Everything `spur.conf` says, with defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    pub cluster_name: String,
    pub nodes: Vec<NamedNode>,
    pub partitions: Vec<Partition>,
    pub controller: ControllerConfig,
    pub agent: AgentConfig,
    pub scheduler: SchedulerConfig,
    /// None: jobs cannot have burst buffers.
    pub burst_buffer: Option<BurstBufferConfig>,
    pub accounting: AccountingConfig,
    /// What the whole cluster has of each licence.
    pub licenses: Vec<LicenseCount>,
    /// How the network is described; none: all nodes are alike.
    pub topologies: Vec<Topology>,
    pub topology: TopologyRules,
    /// What a slurm.conf says, by its names for it. Nothing is decided by it: `scontrol show config` tells it again.
    #[serde(with = "crate::secret::given_keys", skip_serializing_if = "BTreeMap::is_empty")]
    pub as_given: BTreeMap<String, String>,
    /// What helps tasks find each other where srun does not say (`MpiDefault`); empty is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mpi_default: String,
    /// Kept for steps (`MpiParams`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi_ports: Option<crate::ports::PortRange>,
    pub hooks: HooksConfig,
    pub health: HealthConfig,
    pub jobs: crate::job_rules::JobRules,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedNode {
    pub name: NodeName,
    pub config: NodeConfig,
}

/// Where a cluster's controllers are reached on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    pub first: PathBuf,
    pub others: Vec<PathBuf>,
    /// How long a call is tried again; 0: not at all.
    pub patience_secs: u32,
    /// They are addresses of other machines, and this is the mark of the authority that they must show.
    pub authority: Option<[u8; 32]>,
    /// Who may listen there besides root and the caller: the owner of the configuration.
    pub owner: Option<u32>,
}

impl Sockets {
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.first).chain(&self.others).map(PathBuf::as_path)
    }

    /// There is one place to ask, on this machine, and no reason to ask twice.
    pub fn is_lone(&self) -> bool {
        self.others.is_empty() && self.patience_secs == 0 && self.authority.is_none()
    }

    pub fn display(&self) -> std::path::Display<'_> {
        self.first.display()
    }
}

impl From<PathBuf> for Sockets {
    fn from(first: PathBuf) -> Self {
        Sockets { first, ..Default::default() }
    }
}

impl From<&Path> for Sockets {
    fn from(path: &Path) -> Self {
        path.to_path_buf().into()
    }
}

impl From<&PathBuf> for Sockets {
    fn from(path: &PathBuf) -> Self {
        path.clone().into()
    }
}

impl From<&Sockets> for Sockets {
    fn from(sockets: &Sockets) -> Self {
        sockets.clone()
    }
}

/// How long commands look for a controller where there are several.
pub const PATIENCE_SECS: u32 = 30;

impl ControllerConfig {
    /// All sockets of the controllers on this machine.
    pub fn sockets(&self) -> Sockets {
        sockets(&self.socket, self.local_members, self.patience_secs)
    }
}

/// The sockets of so many controllers that share a machine, the first of which has this one.
pub fn sockets(first: &str, n_members: u32, patience_secs: u32) -> Sockets {
    Sockets {
        first: first.into(),
        others: (2..=n_members.max(1)).map(|member| for_member(first, member).into()).collect(),
        patience_secs: if n_members > 1 { patience_secs.max(PATIENCE_SECS) } else { patience_secs },
        authority: None,
        owner: None,
    }
}

/// Controllers that share a machine and a file have places of their own: `run/controller.sock`, `run/controller-2.sock` …
pub fn for_member(path: &str, member: u32) -> String {
    if member <= 1 || path.is_empty() {
        return path.to_owned();
    }
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let name = match name.rsplit_once('.') {
        Some((stem, kind)) if !stem.is_empty() => format!("{stem}-{member}.{kind}"),
        _ => format!("{name}-{member}"),
    };
    if path.contains('/') { format!("{folder}/{name}") } else { name }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControllerConfig {
    /// Host name shown to users.
    pub host: String,
    /// The socket on which commands and agents reach the controller.
    pub socket: String,
    pub state_dir: String,
    pub pid_file: String,
    pub log_file: String,
    /// A finished job stays visible this long.
    pub min_job_age: Span,
    /// Job ids go round after this one.
    pub max_job_id: u32,
    pub first_job_id: u32,
    /// One more than the highest task number.
    pub max_array_size: u32,
    pub max_job_count: u32,
    /// Of these, so many are one user's at most; 0: nine tenths.
    pub max_jobs_per_user: u32,
    /// A node that is silent this long is lost.
    pub node_timeout: Span,
    /// Users who may do everything, besides root and the user the controller runs as.
    pub admins: Vec<String>,
    /// Lost nodes that come back are used again without being resumed.
    pub return_to_service: bool,
    /// So are nodes that are down for any other reason, when their agent starts.
    pub returns_from_down: bool,
    /// Called as `mail_program -s SUBJECT USER`.
    pub mail_program: String,
    /// What `--json` without a value is shaped like.
    pub data_parser: crate::data_parser::DataParser,
    /// Where metrics are served over HTTP, an address of this machine such as `127.0.0.1:9341`; empty: nowhere.
    pub metrics_address: String,
    /// Where controllers and agents of other machines are heard, over TLS; empty: nowhere.
    pub listen: String,
    /// Where others reach this controller.
    pub address: String,
    /// No node vouches for root and administrators; without it, login nodes do.
    pub root_squash: bool,
    /// Nodes where users log in, besides those that joined as such: they vouch for every user.
    pub login_nodes: Vec<NodeName>,
    /// Certificates hold so long; they are renewed when two thirds of it have passed.
    pub certificate_lifetime: Span,
    /// So many controllers run on this machine, from this file.
    pub local_members: u32,
    /// How long commands try again where their controller does not answer; 0: not at all.
    pub patience_secs: u32,
    /// The tokens of `scontrol token` live so long at most.
    pub token_lifespan_max: Span,
    /// How much its log says.
    pub loudness: crate::loudness::Loudness,
    /// How many calls a user may make.
    pub call_limit: crate::call_limit::CallLimit,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentConfig {
    /// May contain `%n`, the node's name.
    pub spool_dir: String,
    pub socket: String,
    pub pid_file: String,
    pub log_file: String,
    /// Between SIGTERM and SIGKILL.
    pub kill_wait: Span,
    /// Processes that live so long after SIGKILL are given up, and their node is drained.
    pub unkillable_timeout: Span,
    pub heartbeat: Span,
    /// Jobs get no more memory than they asked for, no other CPUs, no other devices; where the kernel offers the means.
    pub constrain_memory: bool,
    pub constrain_cores: bool,
    pub constrain_devices: bool,
    /// Signals reach the tasks of a step, not what these have started; only SIGKILL, and the end of a job, reach everything.
    pub signal_tasks_only: bool,
    /// Programs with rights of their own (sudo, ping) that jobs need. Where there is none, no program gives a job any rights.
    pub setuid_helpers: Vec<String>,
    /// Between SIGTSTP and the freeze of a suspended job.
    pub suspend_grace: Span,
    /// Controllers of other machines, `host:port`; empty: they are on this one.
    pub controllers: Vec<String>,
    /// Where the agent keeps its certificate.
    pub tls_dir: String,
    /// Where commands of other machines are heard, over TLS, for `srun` and its like; empty: nowhere.
    pub listen: String,
    /// Where other machines reach this agent; empty: at the address from which it talks to the controllers.
    pub address: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SchedulerConfig {
    /// Most jobs looked at in one pass.
    pub depth: u32,
    /// Memory is handed out like CPUs; otherwise it is only recorded.
    pub tracks_memory: bool,
    /// CPUs one by one, whole cores, or whole sockets.
    pub hand_out: HandOut,
    /// Tasks share no core unless they say so (`CR_ONE_TASK_PER_CORE`).
    pub one_task_per_core: bool,
    /// Cores are given socket by socket unless a job says otherwise (`CR_CORE_DEFAULT_DIST_BLOCK`).
    pub fills_sockets: bool,
    /// Tasks fill node after node, whole nodes too, unless a job says otherwise (`CR_PACK_NODES`).
    pub fills_nodes: bool,
    pub default_memory_per_node_mb: Option<u64>,
    pub default_memory_per_cpu_mb: Option<u64>,
    /// For jobs with GPUs that say neither `--mem…` nor, of CPUs, `-c` or `--cpus-per-gpu`.
    pub default_memory_per_gpu_mb: Option<u64>,
    pub default_cpus_per_gpu: Option<u32>,
    /// Batch jobs are requeued after a node failure unless they say otherwise.
    pub requeues: bool,
    pub kill_on_invalid_dependency: bool,
    pub suspend_cpus: SuspendCpus,
    pub allow_owner_suspend: bool,
    pub backfill: BackfillConfig,
    pub priority: PriorityConfig,
    pub preemption: PreemptionConfig,
    /// What becomes of a job that breaks a partition's limits: it waits, or it is refused.
    pub partition_limits: PartitionLimits,
    pub max_memory_per_node_mb: Option<u64>,
    pub max_memory_per_cpu_mb: Option<u64>,
    pub disable_root_jobs: bool,
    /// Jobs may run so much longer than their limit.
    pub over_time_limit: Option<crate::spec::TimeLimit>,
    /// Jobs run so much longer than their reservation.
    pub reservation_over_run: Span,
}

/// How far the scheduler looks into the future.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackfillConfig {
    /// Later jobs may pass those that wait; otherwise each partition starts its jobs in order.
    pub is_on: bool,
    /// So many waiting jobs have a place in the future that later ones may not take: one is EASY, many are conservative.
    pub n_reservations: u32,
    /// How far the future reaches.
    pub window: Span,
    /// The step in which the future is seen.
    pub resolution: Span,
    /// A job whose start nobody can foresee keeps later ones off its nodes once it has waited so long.
    pub patience: Span,
    /// Of one user's, and of one partition's jobs, no more are tried behind jobs that wait.
    pub max_jobs_per_user: Option<u32>,
    pub max_jobs_per_partition: Option<u32>,
}

/// What is remembered of jobs, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountingConfig {
    pub records: bool,
    /// A file, or `postgres://…` without its password; empty: a file beside the journal.
    #[serde(with = "crate::secret::address")]
    pub database: String,
    /// The same with its password, where the controller's own file has it there.
    #[serde(skip)]
    pub database_address: SecretText,
    /// Where the password stands alone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub database_password_file: String,
    pub keeps_scripts: bool,
    pub keeps_environments: bool,
    /// Every job has an `.extern` step.
    pub has_extern: bool,
    /// Ended runs, or only their steps, are forgotten when they are as old as this.
    pub purge_jobs_after: Option<Span>,
    pub purge_steps_after: Option<Span>,
    pub enforce: Enforce,
    pub private: crate::private::PrivateData,
}

/// What of accounts and qualities of service is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Enforce {
    /// Who has no association may not run jobs.
    pub associations: bool,
    pub limits: bool,
    /// A job's QOS must be one that its association may use.
    pub qos: bool,
    /// A job starts only if it can end before limits on minutes are reached.
    pub safe: bool,
    /// Nothing is recorded of jobs, or of steps.
    pub no_jobs: bool,
    pub no_steps: bool,
    /// A job's workload key must be one of its user's.
    pub wckeys: bool,
}

impl Enforce {
    pub const NOTHING: Enforce = Enforce {
        associations: false,
        limits: false,
        qos: false,
        safe: false,
        no_jobs: false,
        no_steps: false,
        wckeys: false,
    };

    /// The words of `AccountingStorageEnforce`, each for itself. None: one is not known.
    pub fn parse(text: &str) -> Option<Enforce> {
        let mut found = Enforce::NOTHING;
        for word in text.split(',').map(|word| word.trim().to_lowercase()).filter(|word| !word.is_empty()) {
            match word.as_str() {
                "none" | "0" => (),
                "associations" | "1" => found.associations = true,
                "limits" | "2" => found.limits = true,
                "safe" => found.safe = true,
                "qos" => found.qos = true,
                "wckeys" => found.wckeys = true,
                "nojobs" => found.no_jobs = true,
                "nosteps" => found.no_steps = true,
                "all" => {
                    found = Enforce { associations: true, limits: true, qos: true, safe: true, wckeys: true, ..found };
                }
                _ => return None,
            }
        }
        Some(found)
    }

    /// With what each word asks for besides itself, as Slurm has it.
    pub fn with_implied(self) -> Enforce {
        Enforce {
            associations: self.associations || self.limits || self.safe || self.qos || self.wckeys,
            limits: self.limits || self.safe,
            no_steps: self.no_steps || self.no_jobs,
            ..self
        }
    }

    /// `associations,limits,qos,safe`, or `none`.
    pub fn words(self) -> String {
        let all = [
            (self.associations, "associations"),
            (self.limits, "limits"),
            (self.no_jobs, "nojobs"),
            (self.no_steps, "nosteps"),
            (self.qos, "qos"),
            (self.safe, "safe"),
            (self.wckeys, "wckeys"),
        ];
        let words: Vec<&str> = all.into_iter().filter(|(is_on, _)| *is_on).map(|(_, word)| word).collect();
        if words.is_empty() { "none".into() } else { words.join(",") }
    }
}

impl Default for Enforce {
    /// Who has a place in the tree keeps to its limits; others are welcome.
    fn default() -> Self {
        Enforce { limits: true, qos: true, ..Enforce::NOTHING }
    }
}

/// When limits of partitions refuse a job at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionLimits {
    /// Never: it waits for other rules.
    #[default]
    Wait,
    /// When none of its partitions would take it.
    Any,
    /// When one of its partitions would not take it.
    All,
}

/// Whether a manual suspend gives the CPUs to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SuspendCpus {
    #[default]
    Retain,
    Release,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            cluster_name: "spur".into(),
            nodes: Vec::new(),
            partitions: Vec::new(),
            controller: ControllerConfig::default(),
            agent: AgentConfig::default(),
            health: HealthConfig::default(),
            scheduler: SchedulerConfig::default(),
            burst_buffer: None,
            accounting: AccountingConfig::default(),
            licenses: Vec::new(),
            topologies: Vec::new(),
            topology: TopologyRules::default(),
            as_given: BTreeMap::new(),
            mpi_default: String::new(),
            mpi_ports: None,
            hooks: HooksConfig::default(),
            jobs: Default::default(),
        }
    }
}

impl Default for ControllerConfig {
    fn default() -> Self {
        ControllerConfig {
            host: "localhost".into(),
            socket: String::new(),
            state_dir: String::new(),
            pid_file: String::new(),
            log_file: String::new(),
            min_job_age: Span::from_secs(300),
            max_job_id: 0x03ff_0000,
            first_job_id: 1,
            max_array_size: 4_000_001,
            max_job_count: 1_000_000,
            max_jobs_per_user: 0,
            node_timeout: Span::from_secs(60),
            admins: Vec::new(),
            return_to_service: true,
            returns_from_down: false,
            mail_program: "/usr/bin/mail".into(),
            data_parser: Default::default(),
            metrics_address: String::new(),
            listen: String::new(),
            address: String::new(),
            root_squash: true,
            login_nodes: Vec::new(),
            certificate_lifetime: Span::from_secs(30 * 24 * 3600),
            local_members: 1,
            patience_secs: 0,
            token_lifespan_max: Span::from_secs(365 * 24 * 3600),
            loudness: Default::default(),
            call_limit: Default::default(),
        }
    }
}

impl Default for AgentConfig {
    fn default() -> Self {
        AgentConfig {
            spool_dir: String::new(),
            socket: String::new(),
            pid_file: String::new(),
            log_file: String::new(),
            kill_wait: Span::from_secs(30),
            unkillable_timeout: Span::from_secs(60),
            heartbeat: Span::from_secs(5),
            constrain_memory: true,
            constrain_cores: false,
            constrain_devices: false,
            signal_tasks_only: false,
            setuid_helpers: Vec::new(),
            suspend_grace: Span::from_secs(2),
            controllers: Vec::new(),
            tls_dir: String::new(),
            listen: String::new(),
            address: String::new(),
        }
    }
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        SchedulerConfig {
            depth: 10_000,
            tracks_memory: true,
            hand_out: HandOut::Cpus,
            one_task_per_core: false,
            fills_sockets: false,
            fills_nodes: false,
            default_memory_per_node_mb: None,
            default_memory_per_cpu_mb: None,
            default_memory_per_gpu_mb: None,
            default_cpus_per_gpu: None,
            requeues: true,
            kill_on_invalid_dependency: false,
            suspend_cpus: SuspendCpus::Retain,
            allow_owner_suspend: true,
            backfill: BackfillConfig::default(),
            priority: PriorityConfig::default(),
            preemption: PreemptionConfig::default(),
            partition_limits: PartitionLimits::Wait,
            max_memory_per_node_mb: None,
            max_memory_per_cpu_mb: None,
            disable_root_jobs: false,
            over_time_limit: None,
            reservation_over_run: Span(0),
        }
    }
}

impl Default for BackfillConfig {
    fn default() -> Self {
        BackfillConfig {
            is_on: true,
            n_reservations: 50,
            window: Span::from_secs(24 * 3600),
            resolution: Span::from_secs(60),
            patience: Span::from_secs(600),
            max_jobs_per_user: None,
            max_jobs_per_partition: None,
        }
    }
}

impl Config {
    /// As it was told to somebody who may not see the partitions.
    pub fn hides_partitions(&self) -> bool {
        self.accounting.private.partitions && self.partitions.is_empty()
    }

    pub fn partition(&self, name: &str) -> Option<&Partition> {
        self.partitions.iter().find(|partition| partition.name == name)
    }

    pub fn default_partition(&self) -> Option<&Partition> {
        self.partitions.iter().find(|partition| partition.is_default)
    }

    /// `path` with `%n` replaced by the node's name.
    pub fn for_node(path: &str, node: &str) -> String {
        path.replace("%n", node)
    }
}
