//! A small cluster in which every step is taken by hand.
use model::command::{DutyResult, Exited, JobResult};
use model::config::NamedNode;
use model::node::{NodeConfig, Run};
use model::plan::{Grant, Start};
use model::spec::JobSpec;
use model::{
    Caller, Command, Config, Duty, Entry, ExitStatus, Job, JobId, JobKind, JobRef, Node, Owner, Partition, Plan,
    Reject, Reply, StepId, Task, Timestamp,
};
use state::{Cluster, apply, check};

pub const ALICE: Caller = Caller { uid: 1000, gid: 1000, is_admin: false };
pub const BOB: Caller = Caller { uid: 1001, gid: 1001, is_admin: false };
pub const ROOT: Caller = Caller::SYSTEM;

pub struct Lab {
    pub cluster: Cluster,
    pub secs: u64,
}

pub fn config() -> Config {
    let node = |number: u32| NamedNode {
        name: format!("n{number}").into(),
        config: NodeConfig { cpus: 4, memory_mb: 1000, ..Default::default() },
    };
    let nodes: Vec<NamedNode> = (1..=3).map(node).collect();
    let partition = Partition {
        name: "debug".into(),
        nodes: nodes.iter().map(|node| node.name.clone()).collect(),
        is_default: true,
        ..Default::default()
    };
    Config { nodes, partitions: vec![partition], ..Default::default() }
}

/// A batch job of Alice's, one task.
pub fn batch() -> JobSpec {
    JobSpec { uid: 1000, name: "job".into(), kind: JobKind::Batch { script: Default::default() }, ..Default::default() }
}

impl Lab {
    pub fn new() -> Lab {
        let mut lab = Lab { cluster: Cluster::of_today(), secs: 1000 };
        lab.ok(ROOT, Command::Reconfigure { config: Box::new(config()) });
        for name in ["n1", "n2", "n3"] {
            lab.register(name, &[]);
        }
        lab
    }

    pub fn apply(&mut self, by: Caller, command: Command) -> Result<Reply, Reject> {
        let before = self.cluster.clone();
        let entry = Entry { at: Timestamp::from_secs(self.secs), by, command };
        let reply = apply(&mut self.cluster, &entry).reply;
        check::check(&self.cluster).unwrap_or_else(|violation| panic!("{violation}"));
        if reply.is_err() {
            check::left_no_trace(&before, &self.cluster).unwrap();
        }
        reply
    }

    pub fn ok(&mut self, by: Caller, command: Command) -> Reply {
        self.apply(by, command).expect("the command is taken")
    }

    /// The one result of a command about one job.
    pub fn each(&mut self, by: Caller, command: Command) -> Result<(), Reject> {
        match self.apply(by, command)? {
            Reply::Each(results) => match &results[..] {
                [JobResult { result, .. }] => result.clone(),
                several => panic!("one result, not {several:?}"),
            },
            other => panic!("a result each, not {other:?}"),
        }
    }

    pub fn at(&mut self, secs: u64) -> &mut Self {
        self.secs = secs;
        self.ok(ROOT, Command::Tick);
        self
    }

    pub fn submit(&mut self, spec: JobSpec) -> JobId {
        let by = Caller { uid: spec.uid, gid: spec.gid, is_admin: false };
        match self.ok(by, Command::Submit { spec: Box::new(spec), blobs: Vec::new() }) {
            Reply::Submitted(id) => id,
            other => panic!("{other:?}"),
        }
    }

    /// Places the job, or one task of it, on one node; says whether the state took it.
    pub fn place(&mut self, job: JobId, task: Option<u32>, node: &str) -> bool {
        let size = &self.job(job).spec.size;
        let n_tasks = size.n_tasks.unwrap_or(1);
        let part = size.part_of(&self.node(node).config, n_tasks);
        let grant =
            Grant { node: node.into(), n_cpus: part.n_cpus, memory_mb: part.memory_mb, n_tasks, ..Default::default() };
        let is_exclusive = size.wants_whole_nodes();
        let start =
            Start { job, task, partition: "debug".into(), nodes: vec![grant], is_exclusive, ..Default::default() };
        let plan = Plan { starts: vec![start], ..Default::default() };
        self.ok(ROOT, Command::AdoptPlan(plan)) == Reply::Adopted { n_started: 1, n_stale: 0 }
    }

    /// A batch job that runs on the node.
    pub fn running(&mut self, spec: JobSpec, node: &str) -> JobId {
        let job = self.submit(spec);
        assert!(self.place(job, None, node));
        self.done(job, Task::Launch);
        job
    }

    pub fn duty(&self, job: JobId) -> Option<Task> {
        self.cluster.duty(&Owner::Job(job)).map(|duty| duty.task)
    }

    /// The job's present duty, which is `task`, is done.
    pub fn done(&mut self, job: JobId, task: Task) {
        assert_eq!(self.duty(job), Some(task));
        let duty = self.cluster.duty(&Owner::Job(job)).expect("just seen").clone();
        self.ok(ROOT, Command::DutyDone { duty, result: DutyResult::Done });
    }

    pub fn fail(&mut self, job: JobId, task: Task) {
        let sequence = if matches!(task, Task::Stop | Task::Continue) { self.job(job).n_switches } else { 0 };
        let duty = Duty { owner: Owner::Job(job), attempt: self.job(job).attempt, task, sequence };
        let result = DutyResult::Failed { node: "n1".into(), why: "no such user".into() };
        self.ok(ROOT, Command::DutyDone { duty, result });
    }

    pub fn exit(&mut self, job: JobId, exit: ExitStatus) -> Result<Reply, Reject> {
        let record = self.job(job);
        let node = record.allocation.first().expect("it runs somewhere").clone();
        let exited = Exited { job, attempt: record.attempt, step: StepId::Batch, node, exit, ..Default::default() };
        self.apply(ROOT, Command::Exited(exited))
    }

    pub fn register(&mut self, node: &str, runs: &[Run]) {
        let command = Command::RegisterNode { node: node.into(), machine: Default::default(), runs: runs.to_vec() };
        self.ok(ROOT, command);
    }

    pub fn job(&self, id: JobId) -> &Job {
        self.cluster.job(id).expect("the job is known")
    }

    pub fn node(&self, name: &str) -> &Node {
        self.cluster.node(name).expect("the node is known")
    }
}

pub fn named(text: &str) -> JobRef {
    match text.split_once('_') {
        None => JobRef { job: text.parse().expect("an id"), ..Default::default() },
        Some((job, tasks)) => {
            let (tasks, _) = model::ranges::parse_array(tasks).expect("tasks");
            JobRef::tasks(job.parse().expect("an id"), tasks)
        }
    }
}

pub fn cancel(job: JobId) -> Command {
    Command::Cancel { jobs: vec![job.into()], hurry: false }
}

pub fn requeue(job: JobId) -> Command {
    Command::Requeue { jobs: vec![job.into()], hold: false }
}
