//! A cluster built by commands, for tests of the plan made for it.
#![allow(dead_code, reason = "each test uses a part")]
use model::command::DutyResult;
use model::config::NamedNode;
use model::node::NodeConfig;
use model::spec::{JobSpec, Size};
use model::time::Span;
use model::{Caller, Command, Config, Duty, Entry, JobId, Owner, Partition, Plan, Reason, Reply, Task, Timestamp};
use state::{Cluster, apply};

pub struct World {
    pub cluster: Cluster,
    pub now: Timestamp,
}

pub fn partition(name: &str, nodes: &[&str]) -> Partition {
    Partition {
        name: name.into(),
        nodes: nodes.iter().map(|name| (*name).into()).collect(),
        is_default: name == "debug",
        ..Default::default()
    }
}

impl World {
    pub fn new(nodes: Vec<(&str, NodeConfig)>, mut partitions: Vec<Partition>) -> World {
        let names: Vec<&str> = nodes.iter().map(|(name, _)| *name).collect();
        partitions.push(partition("debug", &names));
        let nodes = nodes.into_iter().map(|(name, config)| NamedNode { name: name.into(), config });
        let config = Config { nodes: nodes.collect(), partitions, ..Default::default() };
        let mut world = World { cluster: Cluster::of_today(), now: Timestamp::from_secs(1) };
        world.apply(Command::Reconfigure { config: Box::new(config) });
        for name in names {
            let command =
                Command::RegisterNode { node: name.into(), machine: Default::default(), runs: Default::default() };
            world.apply(command);
        }
        world
    }

    /// n1 … n`count`, alike.
    pub fn alike(count: u32, cpus: u32, memory_mb: u64) -> World {
        let names: Vec<String> = (1..=count).map(|number| format!("n{number}")).collect();
        let config = NodeConfig { cpus, memory_mb, ..Default::default() };
        World::new(names.iter().map(|name| (name.as_str(), config.clone())).collect(), Vec::new())
    }

    pub fn apply(&mut self, command: Command) -> Reply {
        let entry = Entry { at: self.now, by: Caller::SYSTEM, command };
        let reply = apply(&mut self.cluster, &entry).reply.expect("the command is accepted");
        state::check::check(&self.cluster).unwrap();
        reply
    }

    pub fn submit(&mut self, size: Size) -> JobId {
        self.submit_spec(JobSpec { size, ..Default::default() })
    }

    pub fn submit_spec(&mut self, spec: JobSpec) -> JobId {
        match self.apply(Command::Submit { spec: Box::new(spec), blobs: Vec::new() }) {
            Reply::Submitted(id) => id,
            other => panic!("{other:?}"),
        }
    }

    /// Plans and adopts; every start must be accepted.
    pub fn schedule(&mut self) -> Plan {
        let plan = scheduler::plan(&self.cluster);
        let n_planned = plan.starts.len() as u32;
        let reply = self.apply(Command::AdoptPlan(plan.clone()));
        assert_eq!(reply, Reply::Adopted { n_started: n_planned, n_stale: 0 });
        plan
    }

    /// `n1:2x1 n2:1x1`: CPUs and tasks of a started job.
    pub fn placement(&self, job: JobId) -> String {
        let allocation = &self.cluster.job(job).unwrap().allocation;
        let shares = allocation.nodes.iter();
        let shares = shares.map(|share| format!("{}:{}x{}", share.node, share.cpus.len(), share.n_tasks));
        shares.collect::<Vec<_>>().join(" ")
    }

    pub fn reason(&self, job: JobId) -> (Option<Reason>, &str) {
        let job = self.cluster.job(job).unwrap();
        (job.reason, &job.reason_text)
    }

    /// The run ends by itself.
    pub fn finish(&mut self, job: JobId) {
        self.apply(Command::Cancel { jobs: vec![job.into()], hurry: false });
        let duty = self.cluster.duties().find(|duty| duty.owner == Owner::Job(job)).cloned();
        if let Some(duty) = duty {
            self.apply(Command::DutyDone { duty, result: DutyResult::Done });
        }
    }

    /// Time passes; jobs that have reached their limits end.
    pub fn pass(&mut self, secs: u64) {
        self.now = self.now + Span::from_secs(secs);
        self.apply(Command::Tick);
        let kills: Vec<Duty> = self.cluster.duties().filter(|duty| duty.task == Task::Kill).cloned().collect();
        for duty in kills {
            self.apply(Command::DutyDone { duty, result: DutyResult::Done });
        }
    }

    /// Seconds from now until the job is expected to start, and where.
    pub fn expected(&self, job: JobId) -> Option<(u64, &str)> {
        let job = self.cluster.job(job).unwrap();
        job.expected_start.map(|at| ((at - self.now).secs(), job.expected_nodes.as_str()))
    }

    pub fn is_running(&self, job: JobId) -> bool {
        self.cluster.job(job).is_some_and(|job| job.holds_nodes())
    }
}
