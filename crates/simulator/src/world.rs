//! Everything there is in one run of the simulation, and the one way into its log.
use std::collections::BTreeMap;

use model::{Caller, Command, Entry, NodeName, Reject, Reply, Timestamp, codec};
use state::{Cluster, apply, check};

use crate::agents::Agent;
use crate::dice::Dice;
use crate::faults;
use crate::leader::Leader;
use crate::promises::Promises;
use crate::setting;
use crate::stages::{self, Disks};
use crate::stopwatch::Stopwatch;
use crate::truth::{self, Truth};

pub struct World {
    pub(crate) seed: u64,
    pub(crate) dice: Dice,
    pub(crate) at: Timestamp,
    pub(crate) log: Vec<Entry>,
    pub(crate) cluster: Cluster,
    pub(crate) agents: BTreeMap<NodeName, Agent>,
    pub(crate) leader: Leader,
    pub(crate) truth: Truth,
    pub(crate) disks: Disks,
    pub(crate) promises: Promises,
    stopwatch: Stopwatch,
    /// The last snapshot, and how much of the log it holds.
    pub(crate) snapshot: Option<(Vec<u8>, usize)>,
    /// No more faults: everything comes to its end.
    pub(crate) is_healing: bool,
    last_number: u64,
}

impl World {
    pub fn new(seed: u64) -> World {
        let mut world = World {
            seed,
            dice: Dice::new(seed),
            at: Timestamp::from_secs(1_000_000),
            log: Vec::new(),
            cluster: Cluster::default(),
            agents: BTreeMap::new(),
            leader: Leader::default(),
            truth: Truth::default(),
            disks: Disks::default(),
            promises: Promises::default(),
            stopwatch: Stopwatch::default(),
            snapshot: None,
            is_healing: false,
            last_number: 0,
        };
        let _ = world.propose(Caller::SYSTEM, Command::AdoptRules { edition: state::rules::LATEST });
        let config = Box::new(setting::config(seed));
        let _ = world.propose(Caller::SYSTEM, Command::Reconfigure { config });
        if world.dice.one_in(2) {
            crate::accounts::first().into_iter().for_each(|command| drop(world.propose(Caller::SYSTEM, command)));
        }
        for number in 1..=setting::N_NODES {
            let name = setting::node_name(number);
            world.agents.insert(name.clone(), Agent::default());
            faults::connect(&mut world, &name);
        }
        world
    }

    /// Appends to the log and applies; everything must hold afterwards.
    pub(crate) fn propose(&mut self, by: Caller, command: Command) -> Result<Reply, Reject> {
        let before = self.cluster.clone();
        let entry = Entry { at: self.at, by, command };
        let reply = apply(&mut self.cluster, &entry).reply;
        let checked = self.check(&before, &entry, &reply);
        self.log.push(entry);
        self.ensure(checked);
        reply
    }

    pub(crate) fn ensure(&self, checked: Result<(), String>) {
        if let Err(violation) = checked {
            self.print_trace();
            panic!("seed {}, entry {}: {violation}", self.seed, self.log.len());
        }
    }

    fn check(&mut self, before: &Cluster, entry: &Entry, reply: &Result<Reply, Reject>) -> Result<(), String> {
        if let Err(Reject::Internal(why)) = reply {
            return Err(format!("a panic: {why}"));
        }
        if is_refused(reply) {
            check::left_no_trace(before, &self.cluster)?;
        }
        check::check(&self.cluster)?;
        truth::check(self)?;
        stages::check(self)?;
        stages::observe(before, self, &entry.command)?;
        self.stopwatch.observe(before, &self.cluster)?;
        self.promises.observe(before, &self.cluster, &entry.command, reply)
    }

    /// The last entries, to tell how it came to this.
    fn print_trace(&self) {
        let telling: Vec<&Entry> = self.log.iter().filter(|entry| !is_idle(entry)).collect();
        for entry in &telling[telling.len().saturating_sub(150)..] {
            let text = format!("{:?}", entry.command);
            eprintln!("{} {}", entry.at.secs(), text.chars().take(400).collect::<String>());
        }
    }

    /// A replica that replays the log, or a snapshot and the rest of it, is the same.
    pub fn check_replay(&self) {
        let mut replica = Cluster::default();
        for entry in &self.log {
            apply(&mut replica, entry);
        }
        assert!(replica == self.cluster, "seed {}: replay differs", self.seed);
        let Some((bytes, n_entries)) = &self.snapshot else { return };
        let mut replica: Cluster = codec::decode(bytes).expect("a snapshot can be read");
        for entry in &self.log[*n_entries..] {
            apply(&mut replica, entry);
        }
        assert!(replica == self.cluster, "seed {}: a snapshot with the rest of the log differs", self.seed);
    }

    pub(crate) fn agent(&mut self, name: &NodeName) -> &mut Agent {
        self.agents.get_mut(name).expect("every node has an agent")
    }

    /// The stream breaks; what was on its way is lost.
    pub(crate) fn disconnect(&mut self, name: &NodeName) {
        let agent = self.agent(name);
        agent.connection = None;
        agent.is_welcome = false;
        agent.inbox.clear();
        agent.stages.clear();
    }

    pub(crate) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}

/// Healing repeats some commands endlessly.
fn is_idle(entry: &Entry) -> bool {
    matches!(entry.command, Command::UpdateNodes { change: model::update::NodeChange::Resume, .. })
}

fn is_refused(reply: &Result<Reply, Reject>) -> bool {
    match reply {
        Err(_) => true,
        Ok(Reply::Each(results)) => results.iter().all(|result| result.result.is_err()),
        Ok(_) => false,
    }
}
