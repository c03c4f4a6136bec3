//! What the agent knows of its runs and owes the controller. The only place where both are changed.
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use model::StepId;
use model::agent::{KILL_FAILED, Report};
use model::ask::LiveRun;
use model::attach::FromStep;
use model::command::Exited;
use model::node::{Machine, Run};
use tokio::sync::mpsc::Sender;
use tokio::sync::{oneshot, watch};

use crate::Options;
use crate::audited::AgentAudit;
use crate::care::Care;
use crate::gate::Heard;
use crate::hooks::Hooks;
use crate::killed::Killed;
use crate::launcher;
use crate::protocol::{RunId, ToSupervisor};
use crate::spool::Spool;
use crate::staging::Staging;
use crate::standby::Standby;
use crate::step_answers::{AnswerQueue, EncodedEvent, UserShares};
use crate::supervisor_words::SupervisorWords;
use crate::writing::WriterTurns;

/// How many acknowledged runs are remembered, to answer orders that come twice.
const OVER_MAX: usize = 20_000;
/// Those that look on at one run.
const ONLOOKERS_MAX: usize = 16;
/// Those that wait to hear of one run's processes.
const MEASURING_MAX: usize = 64;
/// Reports to the controller that have not gone out. What is beyond is lost: ends are reported again, orders come again.
pub const REPORTS_MAX: usize = 16_384;

pub struct Agent {
    pub options: Options,
    pub machine: Machine,
    pub spool: Spool,
    pub cgroup: Option<PathBuf>,
    pub launcher: Sender<launcher::Order>,
    pub standby: Standby,
    /// Tells those that wait for a launch.
    pub launched: watch::Sender<u64>,
    pub table: Mutex<Table>,
    pub staging: Staging,
    pub hooks: Hooks,
    pub care: Care,
    /// Where other machines reach it.
    pub heard: Heard,
    pub writers: WriterTurns,
    /// What waits for the clients of each user.
    pub shares: UserShares,
    pub audit: AgentAudit,
}

pub struct Table {
    pub runs: HashMap<RunId, Entry>,
    /// Not acknowledged, by sequence; and the same runs by name.
    reports: BTreeMap<u64, Owed>,
    unreported: HashSet<RunId>,
    next_sequence: u64,
    n_questions: u64,
    pub killed: Killed,
    pub slots: Slots,
    over: HashSet<RunId>,
    over_order: VecDeque<RunId>,
    /// The present stream to the controller.
    pub link: Option<Sender<Report>>,
}

/// A run whose supervisor lives, or is being looked for.
pub struct Entry {
    pub uid: u32,
    pub slot: u32,
    pub to: SupervisorWords,
    /// Nothing is left of it but, at most, a supervisor with the rest of its output.
    pub has_ended: bool,
    /// It was told to end, and that is seen to (`unkillable`).
    pub is_being_ended: bool,
    pub on_end: Vec<oneshot::Sender<()>>,
    /// Those that wait for `Done` with this number.
    pub on_done: HashMap<u64, oneshot::Sender<()>>,
    client: Option<AnswerQueue>,
    /// Those that look on.
    observers: Vec<AnswerQueue>,
    /// What was printed last, for observers to come.
    recent: Recent,
    /// Those that wait for `Measured` with this number.
    on_measured: HashMap<u64, oneshot::Sender<LiveRun>>,
}

impl Agent {
    pub fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no panic while the table is held")
    }

    /// Marks the environments of a run's processes.
    pub fn tag(&self, run: RunId) -> String {
        format!("{}:{run}", self.spool.dir().display())
    }
}

impl Entry {
    pub fn new(uid: u32, slot: u32, to: SupervisorWords) -> Self {
        Entry {
            uid,
            slot,
            to,
            has_ended: false,
            is_being_ended: false,
            on_end: Vec::new(),
            on_done: HashMap::new(),
            client: None,
            observers: Vec::new(),
            recent: Recent::default(),
            on_measured: HashMap::new(),
        }
    }

    /// Asks what its processes use. None: so many wait for that already that it does not seem to answer.
    pub fn measure(&mut self, number: u64) -> Option<oneshot::Receiver<LiveRun>> {
        self.on_measured.retain(|_, waiter| !waiter.is_closed());
        if self.on_measured.len() >= MEASURING_MAX {
            return None;
        }
        let (tell, told) = oneshot::channel();
        self.on_measured.insert(number, tell);
        self.to.say(ToSupervisor::Measure { number });
        Some(told)
    }

    pub fn measured(&mut self, number: u64, measured: LiveRun) {
        if let Some(waiter) = self.on_measured.remove(&number) {
            let _ = waiter.send(measured);
        }
    }

    /// Another client's turn ends with this.
    pub fn take_client(&mut self, client: AnswerQueue) {
        if let Some(before) = self.client.replace(client) {
            before.replace();
        }
        self.to.say(ToSupervisor::Attach);
    }

    /// A client has come that is still there.
    pub fn is_attended(&self) -> bool {
        self.client.as_ref().is_some_and(|client| !client.has_parted())
    }

    /// From what was printed last on. The error says why not.
    pub fn take_onlooker(&mut self, onlooker: AnswerQueue) -> Result<(), &'static str> {
        self.observers.retain(|other| !other.has_parted());
        if self.observers.len() >= ONLOOKERS_MAX {
            return Err("too many look on at this step already");
        }
        if !onlooker.become_onlooker() {
            return Err("too many look on for this user already");
        }
        for piece in self.recent.pieces() {
            onlooker.push(&EncodedEvent::of(piece));
        }
        self.observers.push(onlooker);
        Ok(())
    }

    /// Its supervisor has said this for the client and the onlookers.
    pub fn tell_clients(&mut self, event: &FromStep) {
        self.recent.note(event);
        let event = EncodedEvent::of(event);
        self.observers.retain(|onlooker| onlooker.push(&event));
        if let Some(client) = &self.client {
            client.push(&event);
        }
    }

    /// The supervisor has ended, perhaps before it had said all.
    fn tell_of_end(&self) {
        let ended = EncodedEvent::of(&FromStep::Finished);
        for onlooker in &self.observers {
            onlooker.push(&ended);
        }
        let gone = FromStep::Failed { why: "the step's supervisor is gone".to_owned() };
        if let Some(client) = &self.client {
            client.push(&EncodedEvent::of(&gone));
        }
    }
}

impl Table {
    pub fn new(killed: Killed) -> Self {
        // Not from zero: an acknowledgement of another agent's life must not fit by chance.
        let next_sequence = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(1, |since| since.as_micros() as u64);
        Table {
            runs: HashMap::new(),
            reports: BTreeMap::new(),
            unreported: HashSet::new(),
            next_sequence,
            n_questions: 0,
            killed,
            slots: Slots::default(),
            over: HashSet::new(),
            over_order: VecDeque::new(),
            link: None,
        }
    }

    /// Launched before, whatever has become of it.
    pub fn knows(&self, run: RunId) -> bool {
        self.runs.contains_key(&run) || self.is_over(run) || self.unreported.contains(&run)
    }

    /// Ended and acknowledged.
    pub fn is_over(&self, run: RunId) -> bool {
        self.over.contains(&run)
    }

    /// The runs that the controller must think of as being here: until it knows of their ends.
    pub fn live_runs(&self) -> Vec<Run> {
        let living = self.runs.iter().filter(|(_, entry)| !entry.has_ended).map(|(run, _)| *run);
        let mut runs: Vec<(u32, u32)> = living
            .chain(self.reports.values().map(|owed| id_of(&owed.exited)))
            .map(|run| (run.job.0, run.attempt))
            .collect();
        runs.sort_unstable();
        runs.dedup();
        runs.into_iter().map(|(job, attempt)| Run { job: model::JobId(job), attempt }).collect()
    }

    pub fn of_run(&self, run: &Run, step: Option<StepId>) -> Vec<RunId> {
        let is_meant =
            |id: &&RunId| id.job == run.job && id.attempt == run.attempt && step.is_none_or(|s| s == id.step);
        self.runs.keys().filter(is_meant).copied().collect()
    }

    /// The spool has this result in this slot; the controller is to learn it.
    pub fn note_exit(&mut self, slot: u32, exited: Exited) {
        let run = id_of(&exited);
        let is_given_up = exited.drained_for.starts_with(KILL_FAILED);
        let mut waiters = Vec::new();
        if let Some(entry) = self.runs.get_mut(&run) {
            if entry.has_ended {
                return;
            }
            entry.has_ended = true;
            waiters.extend(entry.on_end.drain(..).chain(entry.on_done.drain().map(|(_, waiter)| waiter)));
        }
        if !is_given_up {
            tell_all(std::mem::take(&mut waiters));
        }
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        if is_given_up {
            // What cannot be killed keeps the cgroup: no later run gets it from this agent.
            self.slots.hold(slot);
        }
        self.unreported.insert(run);
        self.slots.hold(slot);
        self.reports.insert(sequence, Owed { slot, exited: exited.clone(), waiters });
        self.report(Report::Exited { sequence, exited });
    }

    /// Says it on the present stream, if there is one. Answers may be lost: orders come again.
    pub fn report(&self, report: Report) {
        if let Some(link) = &self.link {
            let _ = link.try_send(report);
        }
    }

    pub fn report_all_again(&self) {
        self.report_again(u64::MAX);
    }

    /// What was first reported before this sequence and has not been acknowledged: the controller could not write it.
    pub fn report_again(&self, before: u64) {
        for (sequence, owed) in self.reports.range(..before) {
            self.report(Report::Exited { sequence: *sequence, exited: owed.exited.clone() });
        }
    }

    pub fn next_question(&mut self) -> u64 {
        self.n_questions += 1;
        self.n_questions
    }

    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// The controller has it: the record goes.
    pub fn acknowledge(&mut self, sequence: u64, spool: &Spool) {
        let Some(Owed { slot, exited, waiters }) = self.reports.remove(&sequence) else { return };
        tell_all(waiters);
        let run = id_of(&exited);
        self.unreported.remove(&run);
        spool.forget(slot);
        self.slots.let_go(slot);
        if self.over.insert(run) {
            self.over_order.push_back(run);
        }
        if self.over_order.len() > OVER_MAX
            && let Some(oldest) = self.over_order.pop_front()
        {
            self.over.remove(&oldest);
        }
    }

    /// A run that has a supervisor, or will have one at once.
    pub fn add(&mut self, run: RunId, entry: Entry) {
        self.slots.hold(entry.slot);
        self.runs.insert(run, entry);
    }

    pub fn remove(&mut self, run: RunId) {
        if let Some(entry) = self.runs.remove(&run) {
            entry.tell_of_end();
            self.slots.let_go(entry.slot);
        }
    }
}

fn tell_all(waiters: Vec<oneshot::Sender<()>>) {
    for waiter in waiters {
        let _ = waiter.send(());
    }
}

/// A report that has not been acknowledged.
struct Owed {
    slot: u32,
    exited: Exited,
    /// Those that may say that the run is over only when the controller knows what is left of it: its node is drained first.
    waiters: Vec<oneshot::Sender<()>>,
}

/// Which slots are taken; the lowest free one is given first. A slot is held by its supervisor and by its report.
#[derive(Default)]
pub struct Slots {
    holders: BTreeMap<u32, u32>,
    /// Below the next number that was never given.
    free: BTreeSet<u32>,
    next: u32,
}

impl Slots {
    /// One that nobody holds yet; to be held, or tried again later.
    pub fn pick(&mut self) -> u32 {
        self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    pub fn hold(&mut self, slot: u32) {
        if slot >= self.next {
            self.free.extend(self.next..slot);
            self.next = slot + 1;
        }
        self.free.remove(&slot);
        *self.holders.entry(slot).or_default() += 1;
    }

    pub fn let_go(&mut self, slot: u32) {
        let Some(count) = self.holders.get_mut(&slot) else { return };
        *count -= 1;
        if *count == 0 {
            self.holders.remove(&slot);
            self.free.insert(slot);
        }
    }
}

pub fn id_of(exited: &Exited) -> RunId {
    RunId { job: exited.job, attempt: exited.attempt, step: exited.step }
}

/// The last pieces of a run's output.
#[derive(Default)]
pub struct Recent {
    pieces: std::collections::VecDeque<FromStep>,
    n_bytes: usize,
}

/// As much as somebody who comes late is shown.
const RECENT_BYTES_MAX: usize = 32 << 10;
const RECENT_PIECES_MAX: usize = 128;

impl Recent {
    pub fn note(&mut self, event: &FromStep) {
        let FromStep::Output { data, .. } = event else { return };
        if data.len() > RECENT_BYTES_MAX {
            return;
        }
        self.n_bytes += data.len();
        self.pieces.push_back(event.clone());
        while self.n_bytes > RECENT_BYTES_MAX || self.pieces.len() > RECENT_PIECES_MAX {
            let Some(FromStep::Output { data, .. }) = self.pieces.pop_front() else { return };
            self.n_bytes -= data.len();
        }
    }

    pub fn pieces(&self) -> impl Iterator<Item = &FromStep> {
        self.pieces.iter()
    }
}
