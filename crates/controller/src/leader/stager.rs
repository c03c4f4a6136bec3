//! Does the duties of burst buffers: each directory has its own order and its own answer, and one that cannot be reached
//! keeps nobody else waiting. Like the runner it remembers nothing that the state does not know.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use model::agent::Order;
use model::buffer::Place;
use model::command::PlaceResult;
use model::staging::{Access, HeldHome, Home, Inventory, Removal, StageResult};
use model::time::Span;
use model::{Caller, Command, Duty, JobId, NodeName, Owner, Task};
use state::Cluster;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::numbers;
use super::stage_orders::{Errand, errands};
use crate::agents::Agents;
use crate::door::{Door, Refusal};
use crate::machine::Published;

/// What failed, but must be done, rests this long, then twice as long, and so on.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

pub enum Notice {
    /// An agent has registered: whatever it has to do is ordered again.
    Connected(NodeName),
    Answered {
        node: NodeName,
        number: u64,
        result: StageResult,
    },
    Inventory {
        node: NodeName,
        inventory: Inventory,
    },
    /// The order may be given again if it still stands.
    Again(Key),
}

/// Notices that are heeded before the state is looked at again.
const AT_ONCE_MAX: usize = 4096;

/// One directory of one buffer.
type Key = (Owner, Access, NodeName);

#[derive(Clone)]
pub struct Handle {
    notices: mpsc::UnboundedSender<Notice>,
}

impl Handle {
    pub fn tell(&self, notice: Notice) {
        // The stager ends with the lead.
        let _ = self.notices.send(notice);
    }
}

pub fn start(door: Arc<Door>, published: Published, agents: Arc<Agents>, loops: &mut JoinSet<()>) -> Handle {
    let (notices, inbox) = mpsc::unbounded_channel();
    let handle = Handle { notices };
    let (open, numbers, rests) = (HashMap::new(), HashMap::new(), HashMap::new());
    let stager =
        Stager { door, published, agents, handle: handle.clone(), open, numbers, rests, next: numbers::beginning() };
    loops.spawn(stager.run(inbox));
    handle
}

struct Stager {
    door: Arc<Door>,
    published: Published,
    agents: Arc<Agents>,
    handle: Handle,
    /// Orders given, or answered and on their way to the log.
    open: HashMap<Key, Open>,
    numbers: HashMap<u64, Key>,
    /// How long a directory that fails again and again rests, and its last complaint.
    rests: HashMap<Key, (Duration, StageResult)>,
    next: u64,
}

struct Open {
    duty: Duty,
    number: u64,
}

impl Stager {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Notice>) {
        let mut changes = self.published.changes();
        loop {
            let cluster = changes.borrow_and_update().clone();
            self.take_up(&cluster);
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                notice = inbox.recv() => {
                    let Some(notice) = notice else { return };
                    self.heed(notice);
                    // What is new in the state is not kept waiting for however much agents say.
                    for _ in 0..AT_ONCE_MAX {
                        let Ok(notice) = inbox.try_recv() else { break };
                        self.heed(notice);
                    }
                }
            }
        }
    }

    /// Forgets what no longer stands, orders what is new.
    fn take_up(&mut self, cluster: &Cluster) {
        let stands = |key: &Key, open: &Open| cluster.duty(&key.0) == Some(&open.duty);
        let over: Vec<Key> =
            self.open.iter().filter(|(key, open)| !stands(key, open)).map(|(key, _)| key.clone()).collect();
        over.iter().for_each(|key| self.forget(key));
        self.rests.retain(|key, _| cluster.duty(&key.0).is_some());
        for duty in cluster.duties().filter(|duty| matches!(duty.owner, Owner::Buffer(_) | Owner::Persistent(_))) {
            for errand in errands(cluster, duty) {
                self.send(duty, errand);
            }
        }
    }

    fn send(&mut self, duty: &Duty, errand: Errand) {
        let key = (duty.owner.clone(), errand.access, errand.node.clone());
        if self.open.contains_key(&key) {
            return;
        }
        self.next += 1;
        // One that is not connected is asked when it comes.
        if self.agents.send(&errand.node, numbered(errand.order, self.next)) {
            self.numbers.insert(self.next, key.clone());
            self.open.insert(key, Open { duty: duty.clone(), number: self.next });
        }
    }

    fn heed(&mut self, notice: Notice) {
        match notice {
            Notice::Connected(node) => {
                let concerned: Vec<Key> = self.open.keys().filter(|key| key.2 == node).cloned().collect();
                concerned.iter().for_each(|key| self.forget(key));
            }
            Notice::Answered { node, number, result } => self.answered(&node, number, result),
            Notice::Inventory { node, inventory } => self.compare(&node, &inventory),
            Notice::Again(key) => self.forget(&key),
        }
    }

    fn answered(&mut self, node: &NodeName, number: u64, result: StageResult) {
        if self.numbers.get(&number).is_some_and(|key| key.2 != *node) {
            return tracing::warn!(%node, number, "an answer to an order that another node was given");
        }
        let Some(key) = self.numbers.remove(&number) else { return };
        let Some(open) = self.open.get(&key) else { return };
        let duty = open.duty.clone();
        let is_tried_again = matches!(duty.task, Task::TearDown | Task::Trim | Task::Destroy);
        let (rest, is_news) = match (&result, self.rests.get(&key)) {
            (StageResult::Done(_), _) => (Duration::ZERO, true),
            (StageResult::Failed(_), None) => (FIRST_REST, true),
            (StageResult::Failed(_), Some((rest, last))) => ((*rest * 2).min(LONGEST_REST), *last != result),
        };
        if is_tried_again && rest > Duration::ZERO {
            self.rests.insert(key.clone(), (rest, result.clone()));
        }
        let (door, handle) = (self.door.clone(), self.handle.clone());
        tokio::spawn(async move {
            let mut rest = if is_tried_again { rest } else { Duration::ZERO };
            if is_news || !is_tried_again {
                let results = vec![PlaceResult { access: key.1, node: key.2.clone(), result }];
                let proposed = door.propose(Caller::SYSTEM, Command::Staged { duty, results }).await;
                if let Err(Refusal::NotWritten(why)) = proposed {
                    tracing::warn!(why, "what became of a burst buffer was not written");
                    rest = rest.max(FIRST_REST);
                }
            }
            tokio::time::sleep(rest).await;
            handle.tell(Notice::Again(key));
        });
    }

    /// What an agent has and nobody knows of goes; movers whose work was given to another stop.
    fn compare(&mut self, node: &NodeName, inventory: &Inventory) {
        let cluster = self.published.now();
        for held in &inventory.homes {
            let Some(home) = held.home.clone() else { continue };
            match standing(&cluster, node, &home) {
                Standing::Ours => self.measure(&cluster, node, &home, held.used_bytes),
                Standing::Anothers if held.is_moving => {
                    self.agents.send(node, Order::StopMover { home, attempt: held.attempt });
                }
                Standing::Anothers => (),
                Standing::Nobodys if is_young(&cluster, held) => {
                    tracing::info!(%node, ?home, "a directory of a job that there never was is left alone for ten minutes");
                }
                Standing::Nobodys => {
                    tracing::warn!(%node, ?home, "a directory that no burst buffer has is removed");
                    self.agents.send(node, remove(home, held));
                }
            }
        }
    }

    /// What holds more than it may is told once, and once more when it no longer does.
    fn measure(&self, cluster: &Cluster, node: &NodeName, home: &Home, used_bytes: u64) {
        let Home::Job { job, epoch, access } = home else { return };
        let Some(buffer) = cluster.buffer(*job) else { return };
        let spaces = buffer.spaces.iter().filter(|space| space.access == *access);
        let may: u64 = spaces.map(|space| space.bytes).sum();
        let is_over_limit = may > 0 && used_bytes > may;
        let place = buffer.places.iter().find(|place| place.access == *access && place.node == *node);
        if place.is_none_or(|place| place.is_over_limit == is_over_limit) {
            return;
        }
        let (job, epoch, access, node) = (*job, *epoch, *access, node.clone());
        let command = Command::BufferMeasured { job, epoch, access, node, used_bytes, is_over_limit };
        let door = self.door.clone();
        tokio::spawn(async move {
            // A later inventory says it again.
            let _ = door.propose(Caller::SYSTEM, command).await;
        });
    }

    fn forget(&mut self, key: &Key) {
        if let Some(open) = self.open.remove(key) {
            self.numbers.remove(&open.number);
        }
    }
}

/// Nobody here has made it, and somebody may be about to need it.
fn is_young(cluster: &Cluster, held: &HeldHome) -> bool {
    const OLD_AFTER: Span = Span::from_secs(600);
    let was_never = |job: JobId| job >= cluster.next_job() && cluster.job(job).is_none();
    matches!(held.home, Some(Home::Job { job, .. }) if was_never(job)) && held.age < OLD_AFTER
}

enum Standing {
    Ours,
    /// Another agent cares for it.
    Anothers,
    Nobodys,
}

fn standing(cluster: &Cluster, node: &NodeName, home: &Home) -> Standing {
    match home {
        Home::Job { job, epoch, access } => {
            let Some(buffer) = cluster.buffer(*job) else { return Standing::Nobodys };
            let is_of_that = |place: &&Place| place.access == *access && buffer.epoch_of(place) == *epoch;
            let mut places = buffer.places.iter().filter(is_of_that);
            if places.clone().next().is_none() {
                return Standing::Nobodys;
            }
            match places.any(|place| place.node == *node) {
                true => Standing::Ours,
                // A shared directory is seen by all agents.
                false if *access == Access::Shared => Standing::Anothers,
                false => Standing::Nobodys,
            }
        }
        // Never removed by an inventory: nobody's data is lost because of a state that was.
        Home::Persistent { name } => match cluster.persistent(name) {
            Some(buffer) if buffer.node == *node => Standing::Ours,
            _ => Standing::Anothers,
        },
    }
}

fn remove(home: Home, held: &HeldHome) -> Order {
    let (root, pool) = (held.root.clone(), held.pool.clone());
    Order::Remove { number: 0, removal: Removal { home: Some(home), attempt: u32::MAX, root, pool } }
}

fn numbered(order: Order, new: u64) -> Order {
    match order {
        Order::Stage { work, .. } => Order::Stage { number: new, work },
        Order::Remove { removal, .. } => Order::Remove { number: new, removal },
        other => other,
    }
}
