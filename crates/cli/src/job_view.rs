//! A job as its viewers see it: everything that is derived from the record rather than stored in it.
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt::Write;

use model::amount::Amount;
use model::capacity::Measures;
use model::config::Config;
use model::gres::GresRequest;
use model::pattern::{self, PatternValues};
use model::priority::Factors;
use model::spec::{JobSpec, Memory, Sharing, TimeLimit, TresWords};
use model::staging::NodeProgress;
use model::{Job, JobKind, NodeName, Partition, Phase, Plugin, Timestamp, hostlist};

use crate::staging_view;
use crate::zone::Clock;

/// What all rows of one answer share.
pub struct Scene<'a> {
    pub clock: &'a Clock,
    pub config: &'a Config,
    /// The longest list of array tasks shown; SLURM_BITSTR_LEN.
    pub tasks_width: usize,
    /// How far data of the jobs is on its way.
    pub progress: &'a [NodeProgress],
    /// Memory in the largest fitting unit; otherwise always in megabytes.
    pub converts: bool,
    /// Names of files as the job has them, not as they were given.
    pub expands_patterns: bool,
    /// CPUs of the largest node of each partition, once somebody has asked.
    pub largest: OnceCell<BTreeMap<String, u32>>,
    /// What sizes of jobs are compared with, once somebody has asked.
    pub measures: OnceCell<Measures>,
}

impl Scene<'_> {
    fn largest_node(&self, partition: &str) -> u32 {
        let largest = self.largest.get_or_init(|| {
            let cpus: BTreeMap<&NodeName, u32> =
                self.config.nodes.iter().map(|node| (&node.name, node.config.cpus)).collect();
            let most = |partition: &Partition| partition.nodes.iter().filter_map(|node| cpus.get(node)).max().copied();
            let all = self.config.partitions.iter();
            all.map(|partition| (partition.name.clone(), most(partition).unwrap_or(1).max(1))).collect()
        });
        largest.get(partition).copied().unwrap_or(u32::MAX)
    }
}

/// Slurm's limit for lists of array tasks.
pub const TASKS_WIDTH: usize = 64;

/// One job, or one task that still waits inside its array's record.
#[derive(Clone, Copy)]
pub struct JobView<'a> {
    pub job: &'a Job,
    /// The task this row stands for, when an array's waiting part is spread out.
    pub task: Option<u32>,
    /// The partition this row stands for, when each of a job's has its own.
    pub partition: Option<&'a str>,
    pub scene: &'a Scene<'a>,
}

impl<'a> JobView<'a> {
    pub fn new(job: &'a Job, scene: &'a Scene<'a>) -> Self {
        JobView { job, task: None, partition: None, scene }
    }

    pub fn spec(&self) -> &'a JobSpec {
        &self.job.spec
    }

    /// Those it asked for, as Slurm shows them also of a job that runs in one of them; else the one that drew it in.
    pub fn reservation(&self) -> String {
        match self.spec().reservations.is_empty() {
            true => self.job.reservation.clone(),
            false => self.spec().reservations.join(","),
        }
    }

    pub fn now(&self) -> Timestamp {
        self.scene.clock.now()
    }

    /// `12`, `12_3`, `12_[1-5%2]`, `12+1`
    pub fn write_id(&self, out: &mut String) {
        if let Some(het) = &self.job.het {
            return put(out, format_args!("{}+{}", het.leader, het.offset));
        }
        match self.job.array_id() {
            None => put(out, self.job.id),
            Some(array) => {
                put(out, array);
                out.push('_');
                match self.task.or(self.job.array_task()) {
                    Some(task) => put(out, task),
                    None => {
                        out.push('[');
                        self.write_waiting(out);
                        out.push(']');
                    }
                }
            }
        }
    }

    /// `3`, `1-5%2` or `N/A`
    pub fn write_task(&self, out: &mut String) {
        match self.task.or(self.job.array_task()) {
            Some(task) => put(out, task),
            None if self.job.waiting_tasks.is_some() => self.write_waiting(out),
            None => out.push_str("N/A"),
        }
    }

    fn write_waiting(&self, out: &mut String) {
        let Some(tasks) = &self.job.waiting_tasks else { return };
        if self.scene.tasks_width == 0 {
            put(out, tasks);
        } else {
            out.push_str(&tasks.show_within(self.scene.tasks_width));
        }
        if let Some(limit) = self.spec().array.as_ref().and_then(|array| array.limit) {
            out.push('%');
            put(out, limit);
        }
    }

    pub fn has_nodes(&self) -> bool {
        self.job.has_nodes()
    }

    /// Held, or asked for while it waits.
    pub fn amount(&self) -> Amount {
        if self.has_nodes() { self.job.held() } else { self.job.asked() }
    }

    /// `n[1-3]`, empty while it has none.
    pub fn node_list(&self) -> String {
        if !self.has_nodes() {
            return String::new();
        }
        match &self.job.allocation.nodes[..] {
            [only] => only.node.to_string(),
            nodes => hostlist::compress(nodes.iter().map(|share| &share.node)),
        }
    }

    /// For a job that waits: no fewer than its CPUs would fill of the largest nodes of its partition.
    pub fn n_nodes(&self) -> u32 {
        let amount = self.amount();
        if self.has_nodes() || amount.n_cpus <= amount.n_nodes || self.spec().size.overcommit {
            return amount.n_nodes;
        }
        let partition = self.spec().partitions.first().map_or(self.job.partition.as_str(), String::as_str);
        let filled = amount.n_cpus.div_ceil(self.scene.largest_node(partition));
        amount.n_nodes.max(filled).min(self.spec().size.max_nodes.unwrap_or(u32::MAX).max(amount.n_nodes))
    }

    pub fn n_tasks(&self) -> u32 {
        self.amount().n_tasks
    }

    pub fn n_cpus(&self) -> u32 {
        self.amount().n_cpus
    }

    /// CPUs that every node must have.
    pub fn min_cpus_per_node(&self) -> u32 {
        let size = &self.spec().size;
        let for_tasks = size.tasks_per_node.unwrap_or(1).max(1) * size.n_cpus_per_task();
        size.min_cpus_per_node.unwrap_or(1).max(for_tasks)
    }

    /// What was asked for, with the defaults of partition and cluster.
    pub fn memory(&self) -> Memory {
        let spec = self.spec();
        if spec.size.memory != Memory::Default {
            return spec.size.memory;
        }
        let config = self.scene.config;
        let partition = config.partition(&self.job.partition);
        let per_cpu = partition
            .and_then(|partition| partition.default_memory_per_cpu_mb)
            .or(config.scheduler.default_memory_per_cpu_mb);
        let per_node = partition
            .and_then(|partition| partition.default_memory_per_node_mb)
            .or(config.scheduler.default_memory_per_node_mb);
        match (per_cpu, per_node) {
            (Some(megabytes), _) => Memory::PerCpuMb(megabytes),
            (None, Some(megabytes)) => Memory::PerNodeMb(megabytes),
            (None, None) => Memory::Default,
        }
    }

    pub fn min_memory_mb(&self) -> u64 {
        match self.memory() {
            Memory::Default | Memory::WholeNode => 0,
            Memory::PerNodeMb(megabytes) | Memory::PerCpuMb(megabytes) => megabytes,
            Memory::PerGpuMb(_) => 0,
        }
    }

    /// `cpu=1,mem=100M,node=1,billing=1,gres/gpu=1`
    pub fn tres(&self) -> String {
        self.job.billed(self.scene.config, self.amount()).tres()
    }

    pub fn billing(&self) -> u64 {
        self.job.billed(self.scene.config, self.amount()).billing()
    }

    /// `gres:gpu:2`, `gpu:2` where the cluster decided it, or nothing.
    pub fn cpus_per_tres(&self) -> String {
        self.spec()
            .size
            .cpus_per_gpu
            .map_or(String::new(), |cpus| of_each_gpu(cpus.into(), self.spec().tres_words.cpus_by_default))
    }

    pub fn memory_per_tres(&self) -> String {
        match self.spec().size.memory {
            Memory::PerGpuMb(megabytes) => of_each_gpu(megabytes, self.spec().tres_words.memory_by_default),
            _ => String::new(),
        }
    }

    /// `gpu:closest`, or nothing.
    pub fn tres_bind(&self) -> String {
        of_gpus(&self.spec().gpu_bind_words)
    }

    pub fn tres_freq(&self) -> String {
        of_gpus(&self.spec().gpu_freq_words)
    }

    pub fn tres_per_job(&self) -> String {
        self.tres_words(|words| &words.per_job, &self.spec().size.gres_total)
    }

    pub fn tres_per_node(&self) -> String {
        self.tres_words(|words| &words.per_node, &self.spec().size.gres)
    }

    pub fn tres_per_task(&self) -> String {
        self.tres_words(|words| &words.per_task, &self.spec().size.gres_per_task)
    }

    /// As it was asked for; where that is not known, as it is held.
    fn tres_words(&self, words: impl Fn(&TresWords) -> &String, units: &[GresRequest]) -> String {
        let said = &self.spec().tres_words;
        if [&said.per_job, &said.per_node, &said.per_socket, &said.per_task].iter().any(|words| !words.is_empty()) {
            return words(said).clone();
        }
        units.iter().map(|gres| format!("gres:{gres}")).collect::<Vec<_>>().join(",")
    }

    /// Slurm resolves a missing limit by the partition when it shows it.
    pub fn time_limit(&self) -> TimeLimit {
        if let Some(limit) = self.spec().time_limit {
            return limit;
        }
        let partition = self.scene.config.partition(&self.job.partition);
        partition.and_then(|partition| partition.default_time.or(partition.max_time)).unwrap_or(TimeLimit::Unlimited)
    }

    /// Started, or expected to.
    pub fn start_time(&self) -> Option<Timestamp> {
        if self.job.phase == Phase::Pending {
            return self.job.expected_start.or(self.spec().begin.filter(|begin| *begin > self.now()));
        }
        self.job.started
    }

    /// When it became eligible; of one that waits for its time, when it will.
    pub fn eligible(&self) -> Option<Timestamp> {
        let begin = self.spec().begin.filter(|_| self.job.phase == Phase::Pending && self.job.held.is_none());
        self.job.eligible.or(begin)
    }

    /// When it was looked at last: at the latest when it came.
    pub fn last_evaluated(&self) -> Timestamp {
        self.job.last_evaluated.unwrap_or(self.job.submitted)
    }

    /// Ended, or expected to.
    pub fn end_time(&self) -> Option<Timestamp> {
        if self.job.phase != Phase::Pending {
            // Whoever makes room has no more time than that.
            let grace = self.job.preempt_ends.filter(|_| self.job.ended.is_none());
            return self.job.end_time().into_iter().chain(grace).min();
        }
        Some(self.start_time()? + self.time_limit().span()?)
    }

    pub fn run_secs(&self) -> u64 {
        if self.job.phase == Phase::Pending {
            return 0;
        }
        self.job.run_time(self.now()).secs()
    }

    /// The reason's word, or the longer text where there is one.
    pub fn reason(&self) -> Cow<'a, str> {
        if self.job.is_staging_out() {
            return match self.job.buffer_failure.as_str() {
                "" => match self.job.spec.buffer.as_ref().map(|request| request.plugin) {
                    Some(Plugin::Lua) if self.job.held.is_some() => {
                        "burst_buffer/lua: JobHeldAdmin: Stage-out in progress".into()
                    }
                    Some(Plugin::Lua) => "burst_buffer/lua: Stage-out in progress".into(),
                    Some(Plugin::DataWarp) => "burst_buffer/datawarp: Stage-out in progress".into(),
                    Some(Plugin::Native) | None => {
                        let text = "burst_buffer/native: Stage-out in progress";
                        match staging_view::obstacle(self.job, self.scene.progress) {
                            Some(what) => format!("{text}: {what}").into(),
                            None => text.into(),
                        }
                    }
                },
                text => text.into(),
            };
        }
        let word = match (self.job.reason_word(), self.job.reason_text.as_str()) {
            (None, _) => "None",
            (Some(word), "") => word,
            // The text of an end has blanks, and programs read this column word by word.
            (Some(word), _) if self.job.is_over() => word,
            (Some(_), text) => text,
        };
        word.into()
    }

    /// What the system has to say of the job, a line each.
    pub fn system_comment(&self) -> String {
        let line = |remark: &model::job::Remark| {
            format!("{} {}", self.scene.clock.show(remark.at).replace('T', " "), remark.text)
        };
        self.job.remarks.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// As `reason`, without what the network lacks: that is for those who ask about the job.
    pub fn short_reason(&self) -> Cow<'a, str> {
        match &self.job.reason {
            Some(reason) if topology::Unfit::is_text(&self.job.reason_text) => reason.word().into(),
            _ => self.reason(),
        }
    }

    /// How long it waits for few switches at most.
    pub fn switch_wait(&self) -> Option<model::time::Span> {
        let wish = &self.spec().size.network;
        let most = self.scene.config.topology.max_switch_wait();
        (wish.n_switches > 0).then(|| wish.switch_wait.map_or(most, |wait| wait.min(most)))
    }

    pub fn priority(&self) -> u32 {
        if self.job.held.is_some() || self.job.is_suspended_by_hand() {
            return 0;
        }
        // Each partition of a waiting job weighs for itself.
        if let Some(partition) = self.partition.filter(|_| self.job.priority_grows) {
            let measures = self.scene.measures.get_or_init(|| Measures::of(self.scene.config));
            let factors = Factors::of(self.scene.config, measures, self.job, partition, self.now());
            return model::priority::total(self.scene.config, self.job, &factors);
        }
        model::priority::shown(self.scene.config, self.job, self.now())
    }

    /// `YES`, `NO` or `OK`: whether others may share what it holds.
    pub fn oversubscribe(&self) -> &'static str {
        match self.spec().size.sharing {
            Sharing::Default if self.job.allocation.is_exclusive => "NO",
            Sharing::Default => "OK",
            Sharing::WholeNodes => "NO",
            Sharing::OneUser => "USER",
            Sharing::Oversubscribe => "YES",
        }
    }

    pub fn requeues(&self) -> bool {
        self.spec().requeue.unwrap_or(self.scene.config.scheduler.requeues)
    }

    /// The script's path with its arguments; empty for scripts that came over stdin.
    pub fn command(&self) -> String {
        let spec = self.spec();
        if !spec.is_batch() || spec.arguments.is_empty() {
            return spec.command.clone();
        }
        format!("{} {}", spec.command, spec.arguments.join(" ")).trim_start().to_string()
    }

    /// The node that runs the script, or the host that asked.
    pub fn batch_host(&self) -> Option<&'a str> {
        match self.spec().kind {
            JobKind::Batch { .. } if self.has_nodes() => self.job.script_node().map(|node| node.as_str()),
            JobKind::Batch { .. } => None,
            JobKind::Allocation | JobKind::Run(_) => Some(&self.spec().submit_host),
        }
    }

    pub fn stdin(&self) -> String {
        match &self.spec().stdin {
            Some(pattern) => self.in_work_dir(pattern),
            None => "/dev/null".into(),
        }
    }

    /// A pattern of the user's own stays one, as squeue shows it; only the default name is filled in.
    pub fn stdout(&self) -> String {
        if let Some(pattern) = &self.spec().stdout {
            return self.in_work_dir(pattern);
        }
        let default = if self.job.array.is_some() { "slurm-%A_%a.out" } else { "slurm-%j.out" };
        self.in_work_dir(&pattern::expand(default, &self.pattern_values()))
    }

    /// What stands for many is the first of them.
    fn pattern_values(&self) -> PatternValues {
        PatternValues {
            job: self.job.id.0,
            array_job: self.job.array_id().map(|id| id.0),
            array_task: self.task.or(self.job.array_task()),
            step: Some("batch".to_string()),
            node_name: self.job.script_node().map(|node| node.to_string()).unwrap_or_default(),
            user: self.spec().user.clone(),
            job_name: self.spec().name.clone(),
            ..PatternValues::default()
        }
    }

    pub fn stderr(&self) -> String {
        match &self.spec().stderr {
            Some(pattern) => self.in_work_dir(pattern),
            None => self.stdout(),
        }
    }

    /// As `scontrol show job` fills in a file's name: five letters, read as they stand, without widths or escapes.
    pub fn plainly_filled(&self, name: &str) -> String {
        let values = self.pattern_values();
        let task = values.array_task.unwrap_or(pattern::NO_TASK);
        [
            ("%A", values.array_job.unwrap_or(values.job).to_string()),
            ("%a", task.to_string()),
            ("%j", values.job.to_string()),
            ("%u", values.user),
            ("%x", values.job_name),
        ]
        .iter()
        .fold(name.to_string(), |name, (letter, value)| name.replace(letter, value))
    }

    fn in_work_dir(&self, name: &str) -> String {
        let expanded = self.scene.expands_patterns.then(|| pattern::expand(name, &self.pattern_values()));
        let name = expanded.as_deref().unwrap_or(name);
        if name.starts_with('/') {
            return name.to_string();
        }
        format!("{}/{name}", self.spec().work_dir.trim_end_matches('/'))
    }

    /// `afterok:12(unfulfilled)`, empty when there is nothing to wait for.
    pub fn dependency(&self) -> String {
        let dependency = &self.job.dependency;
        let sign = if dependency.any_is_enough { "?" } else { "," };
        let terms: Vec<String> = dependency.terms.iter().map(|term| format!("{term}(unfulfilled)")).collect();
        terms.join(sign)
    }
}

/// Appends anything that can be shown; a String takes everything.
pub fn put(out: &mut String, value: impl std::fmt::Display) {
    write!(out, "{value}").expect("a String takes everything");
}

fn of_each_gpu(count: u64, is_by_default: bool) -> String {
    if is_by_default { format!("gpu:{count}") } else { format!("gres:gpu:{count}") }
}

fn of_gpus(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!("gpu:{words}") }
}
