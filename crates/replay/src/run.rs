//! The event loop: submissions, ends, deadlines and plans in the order of their times, all through `state::apply`.
use std::collections::{BTreeMap, BTreeSet};

use model::command::{Blob, DutyResult, Exited};
use model::spec::{JobSpec, Memory, Size, TimeLimit};
use model::time::Span;
use model::{
    BlobId, Caller, Command, Config, Entry, Event, ExitStatus, JobId, JobKind, Phase, Plan, Reject, Reply, StepId,
    Timestamp,
};
use state::{Cluster, apply};

use crate::cluster;
use crate::outcome::{Outcome, Run};
use crate::workload::{Request, Workload};

/// Where the workload's second 0 is.
const BEGIN: Timestamp = Timestamp(1_000_000_000_000_000);
/// What looks like waiting for nothing is given up after so many looks.
const N_IDLE_LOOKS: u32 = 1_000;
const SCRIPT: BlobId = BlobId([1, 0, 0, 0]);

/// A request that the cluster did not take.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub name: String,
    pub why: String,
}

/// Which request a job is, and what its last run has come to.
struct Book {
    request: usize,
    started: Timestamp,
    ended: Timestamp,
}

struct Player<'a> {
    workload: &'a Workload,
    partitions: BTreeSet<String>,
    users: BTreeMap<&'a str, u32>,
    cluster: Cluster,
    now: Timestamp,
    /// Every job that is not over.
    jobs: BTreeMap<JobId, Book>,
    /// When the script of a running job may be over.
    ends: BTreeSet<(Timestamp, JobId)>,
    outcome: Outcome,
}

/// Runs the workload to its end. `progress` hears how many requests are over.
pub fn run(config: &Config, workload: &Workload, progress: &mut dyn FnMut(usize)) -> Outcome {
    run_with(config, workload, progress, &mut |_, _| ())
}

/// As [`run`]; `change` sees every plan before it is adopted, and may put jobs elsewhere.
pub fn run_with(
    config: &Config,
    workload: &Workload,
    progress: &mut dyn FnMut(usize),
    change: &mut dyn FnMut(&Cluster, &mut Plan),
) -> Outcome {
    let mut player = Player::new(config, workload);
    let mut next_request = 0;
    let mut n_idle = 0;
    loop {
        let arrival = workload.requests.get(next_request).map(|request| BEGIN + Span::from_secs(request.submitted));
        let end = player.ends.first().map(|(at, _)| *at);
        let times = [arrival, end, player.cluster.next_deadline()];
        let Some(at) = times.into_iter().flatten().min() else { break };
        player.now = at.max(player.now);
        player.end_runs();
        player.tick();
        while let Some(request) = workload.requests.get(next_request)
            && BEGIN + Span::from_secs(request.submitted) <= player.now
        {
            player.submit(next_request, request);
            next_request += 1;
        }
        let has_started = player.plan(change);
        progress(player.outcome.runs.len() + player.outcome.refused.len());
        let is_idle = !has_started && player.ends.is_empty() && next_request == workload.requests.len();
        n_idle = if is_idle { n_idle + 1 } else { 0 };
        if n_idle > N_IDLE_LOOKS || (is_idle && player.cluster.n_queued() == 0) {
            break;
        }
    }
    player.outcome.n_never_started = player.jobs.len();
    player.outcome.runs.sort_by_key(|run| run.request);
    player.outcome
}

impl<'a> Player<'a> {
    fn new(config: &Config, workload: &'a Workload) -> Player<'a> {
        let config = cluster::for_replay(config);
        let mut users = BTreeMap::new();
        for request in &workload.requests {
            let next = 1_000 + users.len() as u32;
            users.entry(request.user.as_str()).or_insert(next);
        }
        let mut player = Player {
            workload,
            partitions: config.partitions.iter().map(|partition| partition.name.clone()).collect(),
            users,
            cluster: Cluster::of_today(),
            now: BEGIN,
            jobs: BTreeMap::new(),
            ends: BTreeSet::new(),
            outcome: Outcome { n_cpus: cluster::n_cpus(&config), ..Default::default() },
        };
        let nodes: Vec<_> = config.nodes.iter().map(|node| node.name.clone()).collect();
        player.must(Command::Reconfigure { config: Box::new(config) });
        for node in nodes {
            player.must(Command::RegisterNode { node, machine: Default::default(), runs: Vec::new() });
        }
        player
    }

    fn apply(&mut self, command: Command) -> Result<Reply, Reject> {
        let applied = apply(&mut self.cluster, &Entry { at: self.now, by: Caller::SYSTEM, command });
        for event in applied.events {
            if let Event::JobChanged { job, from, to, at } = event {
                self.note(job, from, to, at);
            }
        }
        applied.reply
    }

    fn note(&mut self, id: JobId, from: Phase, to: Phase, at: Timestamp) {
        let Some(book) = self.jobs.get_mut(&id) else { return };
        match (from, to) {
            (Phase::Starting, Phase::Running) => {
                let run_time = self.workload.requests[book.request].run_time;
                (book.started, book.ended) = (at, at);
                self.ends.insert((at + Span::from_secs(run_time), id));
            }
            (Phase::Running | Phase::Suspended, Phase::Ending) => book.ended = at,
            (_, Phase::Done) => {
                let since = |at: Timestamp| (at - BEGIN).secs();
                let (started, ended) = (since(book.started), since(book.ended));
                self.outcome.runs.push(Run { request: book.request, started, ended });
                self.jobs.remove(&id);
            }
            _ => (),
        }
    }

    fn must(&mut self, command: Command) -> Reply {
        self.apply(command).expect("the state takes what the leader tells it")
    }

    fn submit(&mut self, index: usize, request: &Request) {
        let size = Size {
            min_nodes: request.n_nodes.unwrap_or(1),
            max_nodes: request.n_nodes,
            n_tasks: Some(request.n_cpus),
            memory: request.memory_mb_per_cpu.map_or(Memory::Default, Memory::PerCpuMb),
            ..Default::default()
        };
        let partition = self.partitions.get(&request.partition).cloned();
        let spec = JobSpec {
            name: request.name.clone(),
            uid: self.users[request.user.as_str()],
            user: request.user.clone(),
            account: request.account.clone(),
            partitions: partition.into_iter().collect(),
            kind: JobKind::Batch { script: SCRIPT },
            environment: SCRIPT,
            size,
            time_limit: Some(TimeLimit::Secs(request.limit.div_ceil(60) * 60)),
            requeue: Some(true),
            ..Default::default()
        };
        let blobs = vec![Blob { id: SCRIPT, content: b"#!/bin/sh\n".to_vec() }];
        match self.apply(Command::Submit { spec: Box::new(spec), blobs }) {
            Ok(Reply::Submitted(id)) => {
                self.jobs.insert(id, Book { request: index, started: BEGIN, ended: BEGIN });
            }
            Ok(other) => unreachable!("a submission is answered with {other:?}"),
            Err(reject) => {
                self.outcome.refused.push(Refusal { name: request.name.clone(), why: reject.to_string() });
            }
        }
    }

    fn tick(&mut self) {
        if self.cluster.next_deadline().is_some_and(|deadline| deadline <= self.now) {
            self.must(Command::Tick);
            self.do_duties();
        }
    }

    /// Scripts that have had their time exit; those that stood still meanwhile go on.
    fn end_runs(&mut self) {
        while let Some((at, id)) = self.ends.first().copied()
            && at <= self.now
        {
            self.ends.pop_first();
            let Some(job) = self.cluster.job(id).filter(|job| job.holds_nodes()) else { continue };
            let request = &self.workload.requests[self.jobs[&id].request];
            let left = Span::from_secs(request.run_time) - job.run_time(self.now);
            if left > Span::default() {
                self.ends.insert((self.now + left, id));
                continue;
            }
            let node = job.script_node().expect("it holds nodes").clone();
            let (attempt, step, exit) = (job.attempt, StepId::Batch, ExitStatus::SUCCESS);
            self.must(Command::Exited(Exited { job: id, attempt, step, node, exit, ..Default::default() }));
            self.do_duties();
        }
    }

    /// Agents that obey at once.
    fn do_duties(&mut self) {
        loop {
            let duties: Vec<_> = self.cluster.duties().cloned().collect();
            if duties.is_empty() {
                break;
            }
            for duty in duties {
                // A duty may have gone with the one before it.
                let _ = self.apply(Command::DutyDone { duty, result: DutyResult::Done });
            }
        }
    }

    /// True: something has been started.
    fn plan(&mut self, change: &mut dyn FnMut(&Cluster, &mut Plan)) -> bool {
        let mut outlook = scheduler::look(&self.cluster);
        change(&self.cluster, &mut outlook.plan);
        self.outcome.n_plans += 1;
        let has_started = !outlook.plan.starts.is_empty();
        if outlook.plan != Plan::default() {
            self.must(Command::AdoptPlan(outlook.plan));
            self.do_duties();
        }
        has_started
    }
}
