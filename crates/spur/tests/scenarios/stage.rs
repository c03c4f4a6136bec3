//! A cluster without machines: agents that do at once what they are told, and a clock that goes when it is told to.
use model::command::{DutyResult, Exited};
use model::time::Span;
use model::{
    Caller, Command, Config, Duty, Entry, ExitStatus, JobRef, NodeName, Plan, Reject, Reply, StepId, Timestamp,
};
use state::{Cluster, apply, check};

/// Four nodes of eight CPUs in one partition.
const CONF: &str = r#"
cluster_name = "scenario"
[[nodes]]
names = "n[1-4]"
cpus = 8
memory_mb = 4000
[[partitions]]
name = "debug"
nodes = "ALL"
default = true
"#;

pub struct Stage {
    pub cluster: Cluster,
    pub now: Timestamp,
    pub user: &'static User,
}

pub struct User {
    pub name: &'static str,
    pub uid: u32,
}

const USERS: &[User] =
    &[User { name: "alice", uid: 1000 }, User { name: "bob", uid: 1001 }, User { name: "root", uid: 0 }];

impl Stage {
    pub fn new(conf: &str) -> Stage {
        let conf = if conf.is_empty() { CONF } else { conf };
        let config: Config = config::parse(conf, "spur.conf").unwrap_or_else(|problems| panic!("{problems}"));
        // 2026-11-15T12:00:00
        let now = Timestamp::from_secs(1_794_744_000);
        let mut stage = Stage { cluster: Cluster::of_today(), now, user: &USERS[0] };
        let names: Vec<NodeName> = config.nodes.iter().map(|node| node.name.clone()).collect();
        stage.command(Caller::SYSTEM, Command::Reconfigure { config: Box::new(config) }).expect("a new configuration");
        for node in names {
            stage.register(node);
        }
        stage
    }

    pub fn caller(&self) -> Caller {
        Caller { uid: self.user.uid, gid: self.user.uid, is_admin: self.user.uid == 0 }
    }

    /// Applies the command, and lets everything follow that follows by itself.
    pub fn command(&mut self, by: Caller, command: Command) -> Result<Reply, Reject> {
        let reply = self.apply(by, command);
        self.settle();
        reply
    }

    fn apply(&mut self, by: Caller, command: Command) -> Result<Reply, Reject> {
        let reply = apply(&mut self.cluster, &Entry { at: self.now, by, command }).reply;
        check::check(&self.cluster).unwrap_or_else(|violation| panic!("{violation}"));
        reply
    }

    fn settle(&mut self) {
        for _ in 0..1000 {
            let duties: Vec<Duty> = self.cluster.duties().cloned().collect();
            let last = self.cluster.history().last();
            let is_recorded = self.cluster.history().is_empty();
            if !is_recorded {
                let _ = self.apply(Caller::SYSTEM, Command::Recorded { up_to: last });
            }
            let is_idle = duties.is_empty() && is_recorded;
            for duty in duties {
                let _ = self.apply(Caller::SYSTEM, Command::DutyDone { duty, result: DutyResult::Done });
            }
            let plan = scheduler::plan(&self.cluster);
            if plan != Plan::default() {
                self.apply(Caller::SYSTEM, Command::AdoptPlan(plan)).expect("plans are adopted");
            } else if is_idle {
                return;
            }
        }
        panic!("never comes to rest");
    }

    fn register(&mut self, node: NodeName) {
        let command = Command::RegisterNode { node, machine: Default::default(), runs: Default::default() };
        self.command(Caller::SYSTEM, command).expect("the node is known");
    }

    pub fn direct(&mut self, direction: &str) {
        let words: Vec<&str> = direction.split_whitespace().collect();
        match words[..] {
            ["time", "passes", span] => self.pass(seconds(span)),
            [node, "is", "lost"] => {
                self.command(Caller::SYSTEM, Command::NodeLost { node: node.into() }).expect("a node that answers");
            }
            [node, "comes", "back"] => self.register(node.into()),
            ["job", job, "exits", code] => self.exit(job, ExitStatus::exited(code.parse().expect("an exit code"))),
            ["job", job, "is", "killed", "by", signal] => {
                self.exit(job, ExitStatus::signaled(signal.parse().expect("a signal's number")));
            }
            ["as", name] => self.user = USERS.iter().find(|user| user.name == name).expect("alice, bob or root"),
            _ => panic!("no such stage direction: {direction}"),
        }
    }

    fn pass(&mut self, secs: u64) {
        let until = self.now + Span::from_secs(secs);
        while let Some(deadline) = self.cluster.next_deadline().filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline);
            self.command(Caller::SYSTEM, Command::Tick).expect("ticks are taken");
        }
        self.now = until;
        self.command(Caller::SYSTEM, Command::Tick).expect("ticks are taken");
    }

    fn exit(&mut self, job: &str, exit: ExitStatus) {
        let named: JobRef = cli::job_ids::parse_job(job).expect("a job id");
        let ids = self.cluster.named(&named).expect("the job is there");
        for id in ids {
            let job = self.cluster.job(id).expect("named jobs are there");
            let Some(node) = job.allocation.first().cloned() else { continue };
            let exited =
                Exited { job: id, attempt: job.attempt, step: StepId::Batch, node, exit, ..Default::default() };
            self.command(Caller::SYSTEM, Command::Exited(exited)).expect("the job runs");
        }
    }
}

fn seconds(span: &str) -> u64 {
    let (number, unit) = span.split_at(span.len() - 1);
    let number: u64 = number.parse().expect("a number of seconds, minutes or hours");
    match unit {
        "s" => number,
        "m" => number * 60,
        "h" => number * 3600,
        _ => panic!("60s, 5m or 1h, not {span}"),
    }
}
