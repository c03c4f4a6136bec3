//! How much of every countable resource: what a job asks for, what it holds, and Slurm's TRES spelling of it.
use std::fmt::Write;

use crate::accounts::Amounts;
use crate::billing;
use crate::config::Config;
use crate::license::LicenseCount;
use crate::spec::Memory;
use crate::{Job, JobSpec, NodeShare, Phase, Step, size};

record! {
    pub struct Amount {
        pub n_nodes: u32,
        pub n_cpus: u32,
        pub n_tasks: u32,
        pub memory_mb: u64,
        /// `gpu`, `gpu:a100` and how many in all.
        pub gres: Vec<(String, u64)>,
        /// `lua`, and how many MiB of its burst buffers.
        pub buffers: Vec<(String, u64)>,
        /// What it is billed as; none: as its CPUs.
        pub billed: Option<u64>,
    }
}

impl Amount {
    pub fn is_nothing(&self) -> bool {
        *self == Amount::default()
    }

    pub fn billing(&self) -> u64 {
        self.billed.unwrap_or(self.n_cpus.into())
    }

    /// As the partition bills it.
    pub fn billed_in(self, config: &Config, partition: &str, licenses: &[LicenseCount]) -> Amount {
        let partition = config.partition(partition).filter(|partition| !partition.billing_weights.is_empty());
        if partition.is_none() || self.is_nothing() {
            return self;
        }
        let billing = billing::billed(config, partition, Amounts::new(&self, licenses)).billing;
        Amount { billed: Some(billing), ..self }
    }

    /// What a step is counted as: of whole cores those CPUs that it asked for.
    pub fn of_step(step: &Step) -> Amount {
        let n_cpus = step.shares.iter().map(NodeShare::n_working_cpus).sum();
        Amount { n_cpus, n_tasks: step.n_tasks, ..Amount::of_shares(&step.shares) }
    }

    pub fn of_shares(shares: &[NodeShare]) -> Amount {
        let mut amount = Amount {
            n_nodes: shares.len() as u32,
            n_cpus: shares.iter().map(|share| share.cpus.len()).sum(),
            n_tasks: shares.iter().map(|share| share.n_tasks).sum(),
            memory_mb: shares.iter().map(|share| share.memory_mb).sum(),
            ..Amount::default()
        };
        for gres in shares.iter().flat_map(|share| &share.gres) {
            amount.add_gres(&gres.name, &gres.kind, u64::from(gres.units.len()));
        }
        amount
    }

    pub fn add(&mut self, other: &Amount) {
        self.n_nodes += other.n_nodes;
        self.n_cpus += other.n_cpus;
        self.n_tasks += other.n_tasks;
        self.memory_mb += other.memory_mb;
        other.gres.iter().for_each(|(name, count)| self.add_named(name.clone(), *count));
    }

    pub fn add_gres(&mut self, name: &str, kind: &str, count: u64) {
        self.add_named(name.to_string(), count);
        if !kind.is_empty() {
            self.add_named(format!("{name}:{kind}"), count);
        }
    }

    fn add_named(&mut self, name: String, count: u64) {
        match self.gres.iter_mut().find(|(known, _)| *known == name) {
            Some((_, total)) => *total += count,
            None => self.gres.push((name, count)),
        }
    }

    /// `cpu=1,mem=100M,node=1,billing=1,gres/gpu=1`, as squeue and scontrol show it.
    pub fn tres(&self) -> String {
        let mut text = format!("cpu={}", self.n_cpus);
        if self.memory_mb > 0 {
            write!(text, ",mem={}", size::show_megabytes(self.memory_mb)).expect("a String takes everything");
        }
        write!(text, ",node={},billing={}", self.n_nodes, self.billing()).expect("a String takes everything");
        for (name, megabytes) in &self.buffers {
            write!(text, ",bb/{name}={}", size::show_megabytes(*megabytes)).expect("a String takes everything");
        }
        for (name, count) in &self.gres {
            write!(text, ",gres/{name}={count}").expect("a String takes everything");
        }
        text
    }
}

impl Job {
    /// What it holds, or asks for, as its partition bills it.
    pub fn billed(&self, config: &Config, amount: Amount) -> Amount {
        let (partition, licenses) = match self.has_nodes() {
            true => (Some(&self.partition), &self.licenses[..]),
            false => (self.spec.partitions.first(), self.spec.licenses.certain()),
        };
        amount.billed_in(config, partition.map_or("", String::as_str), licenses)
    }

    pub fn has_nodes(&self) -> bool {
        self.phase != Phase::Pending && !self.allocation.nodes.is_empty()
    }

    /// What it holds, or held; nothing if it never had nodes.
    pub fn held(&self) -> Amount {
        if !self.has_nodes() {
            return Amount::default();
        }
        let n_tasks = self.n_tasks_on(self.allocation.nodes.len() as u32);
        let buffers = self.spec.buffer_tres(self.allocation.nodes.len() as u32);
        Amount { n_tasks, buffers, ..Amount::of_shares(&self.allocation.nodes) }
    }

    /// The least that would do.
    pub fn asked(&self) -> Amount {
        self.spec.asked()
    }

    fn n_tasks_on(&self, n_nodes: u32) -> u32 {
        self.spec.size.n_tasks_on(n_nodes)
    }
}

impl JobSpec {
    /// The least that would do of nodes, CPUs and megabytes; None: how much memory it is depends on what else is asked for.
    pub fn asked_of_nodes(&self) -> (u32, u32, Option<u64>) {
        let (n_nodes, _, n_cpus) = self.least();
        let memory_mb = match self.size.memory {
            Memory::Default | Memory::WholeNode => Some(0),
            Memory::PerNodeMb(megabytes) => Some(megabytes * u64::from(n_nodes)),
            Memory::PerCpuMb(megabytes) => Some(megabytes * u64::from(n_cpus)),
            Memory::PerGpuMb(_) => None,
        };
        (n_nodes, n_cpus, memory_mb)
    }

    /// Nodes, tasks and CPUs.
    fn least(&self) -> (u32, u32, u32) {
        let size = &self.size;
        let for_tasks = match (size.n_tasks, size.tasks_per_node) {
            (Some(n_tasks), Some(per_node)) if per_node > 0 => n_tasks.div_ceil(per_node),
            _ => 1,
        };
        let n_nodes = size.min_nodes.max(for_tasks).max(1);
        let n_tasks = size.n_tasks_on(n_nodes);
        let per_node = size.min_cpus_per_node.unwrap_or(1) * n_nodes;
        (n_nodes, n_tasks, (n_tasks * size.n_cpus_per_task()).max(per_node))
    }

    /// The least that would do.
    pub fn asked(&self) -> Amount {
        let size = &self.size;
        let (n_nodes, n_tasks, n_cpus) = self.least();
        let buffers = self.buffer_tres(n_nodes);
        let mut amount = Amount { n_nodes, n_cpus, n_tasks, buffers, ..Amount::default() };
        for gres in &size.gres {
            amount.add_gres(&gres.name, &gres.kind, u64::from(gres.count) * u64::from(n_nodes));
        }
        for gres in &size.gres_per_task {
            amount.add_gres(&gres.name, &gres.kind, u64::from(gres.count) * u64::from(n_tasks));
        }
        for gres in &size.gres_total {
            amount.add_gres(&gres.name, &gres.kind, gres.count.into());
        }
        amount.memory_mb = match (self.asked_of_nodes(), size.memory) {
            ((.., None), Memory::PerGpuMb(megabytes)) => {
                let gpus = amount.gres.iter().find(|(name, _)| name == "gpu");
                megabytes * gpus.map_or(0, |(_, count)| *count)
            }
            ((.., megabytes), _) => megabytes.unwrap_or(0),
        };
        amount
    }

    fn buffer_tres(&self, n_nodes: u32) -> Vec<(String, u64)> {
        let Some(request) = &self.buffer else { return Vec::new() };
        let megabytes = request.tres_mb.saturating_add(request.tres_mb_per_node.saturating_mul(n_nodes.into()));
        if megabytes == 0 { Vec::new() } else { vec![(request.plugin.word().to_owned(), megabytes)] }
    }
}
