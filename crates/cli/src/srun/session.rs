//! A running step as srun sees it: news from its nodes, the user's signals, deadlines, and the end.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use config::Client;
use model::attach::ToStep;
use model::request::{SignalRequest, SignalScope};
use model::step::StepStream;
use model::{Command, Job, Phase, Step, StepId, StepPhase};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{sleep_until, timeout};
use wire::Controller;

use super::connection::{Connection, News, Standing};
use super::fence::{Fence, Told};
use super::files;
use super::output::{self, Lines};
use super::plan::Plan;
use super::signals::{Heard, Signals};
use super::tasks::{Tasks, describe};
use super::{broadcast, chatter};
use super::{input, terminal};
use crate::live;
use crate::watch::Watch;

/// After the controller has the step as ended, its nodes get this long to say so themselves.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long srun waits for the controller to know that the step is over.
const RECORD_PATIENCE: Duration = Duration::from_secs(10);
/// Two interrupts within this end the step.
const INTERRUPT_AGAIN: Duration = Duration::from_secs(1);
/// What Slurm adds to KillWait when it says how long it will wait.
const KILL_WAIT_MARGIN_SECS: u64 = 2;
/// A call that matters less than the step itself.
const CALL_PATIENCE: Duration = Duration::from_secs(5);

/// One step, carried by srun from its start to its end.
pub struct Session<'a> {
    cluster: &'a Client,
    plan: &'a Plan,
    part: Part,
    /// `17.0`
    name: String,
    step: Step,
    nodes: Vec<NodeEnd>,
    fence: Fence<(String, String)>,
    /// One for each group of tasks that has met (`--mpi=pmix`).
    meetings: BTreeMap<String, Fence<u8>>,
    tasks: Tasks,
    /// Node and process id of each task, by rank; kept for a debugger only.
    places: BTreeMap<u32, (String, u32)>,
    has_told_debugger: bool,
    news: mpsc::UnboundedReceiver<(usize, News)>,
    written: oneshot::Receiver<()>,
    broken: Option<oneshot::Receiver<()>>,
    /// The controller knows that the step is over.
    is_recorded: bool,
    /// "Job step aborted" was said.
    is_aborted: bool,
    /// The user asked for the end, and needs no report of it.
    is_unwanted: bool,
    has_failed: bool,
    is_terminating: bool,
    interrupted_at: Option<Instant>,
    give_up_at: Option<Instant>,
    /// When those that were asked to end are made to.
    kill_at: Option<Instant>,
    started_at: Instant,
}

/// What this is of a step in several parts, each with a session of its own.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The rank of its first task.
    pub first_rank: u32,
    /// Of the whole step.
    pub n_tasks: u32,
    /// It speaks for all.
    pub leads: bool,
}

struct NodeEnd {
    name: String,
    to: mpsc::Sender<ToStep>,
    standing: Standing,
    task: AbortHandle,
    is_finished: bool,
}

impl NodeEnd {
    /// In its turn, without keeping the session waiting.
    fn pass(&self, message: ToStep) {
        let to = self.to.clone();
        tokio::spawn(async move { to.send(message).await });
    }
}

impl<'a> Session<'a> {
    /// Opens files and connections. The error is ready to print.
    pub async fn open(cluster: &'a Client, plan: &'a Plan, job: Job, step: Step) -> Result<Self, String> {
        let part = Part { first_rank: 0, n_tasks: step.n_tasks, leads: true };
        Self::open_part(cluster, plan, job, step, part).await
    }

    /// As `open`, for one part of a step in several.
    pub async fn open_part(
        cluster: &'a Client,
        plan: &'a Plan,
        job: Job,
        step: Step,
        part: Part,
    ) -> Result<Self, String> {
        if plan.behaviour.verbosity > 0 {
            chatter::begun(&job, &step).iter().for_each(|line| eprintln!("srun: {line}"));
        }
        let is_one_of_several = part.n_tasks > step.n_tasks;
        let opening = match (plan.step.appends, is_one_of_several, part.leads) {
            (true, ..) | (false, true, false) => files::Opening::Append,
            (false, true, true) => files::Opening::EmptyShared,
            (false, false, _) => files::Opening::Empty,
        };
        let files = files::open(&plan.streams, opening, &job, &step)?;
        let begins = broadcast::deliver(cluster, plan, &step).await?;
        let lines = Lines::new(part.n_tasks, plan.options.labels, plan.options.unbuffered || plan.options.pty);
        let writer = output::start(lines, files.stdout, files.stderr);
        let (news_in, news) = mpsc::unbounded_channel();
        let mut nodes = Vec::new();
        for (index, (share, begin)) in step.shares.iter().zip(begins).enumerate() {
            let standing: Standing = Arc::new(Mutex::new(begin.into_iter().collect()));
            let connection = Connection {
                way: live::way(cluster, share.node.as_str()),
                open: ToStep::Open { job: step.job, attempt: step.attempt, step: step.id },
                standing: standing.clone(),
                node: index,
                output: writer.pieces.clone(),
                news: news_in.clone(),
            };
            let (to, task) = connection.start();
            nodes.push(NodeEnd { name: share.node.to_string(), to, standing, task, is_finished: false });
        }
        if plan.step.stdin != StepStream::Nothing && !matches!(plan.step.stdin, StepStream::File(_)) {
            // Input can be read only once: the first part has it.
            let source = if part.leads { files.stdin } else { input::Source::Nothing };
            carry_input(&plan.step.stdin, &step, &nodes, source);
        }
        Ok(Session {
            // A short step may be over before this looks for it.
            is_recorded: is_over(plan, Some(&job), Some(&step)),
            cluster,
            plan,
            part,
            name: format!("{}.{}", step.job, step.id),
            tasks: Tasks::new(step.n_tasks).brief(is_set("SLURM_SRUN_REDUCE_TASK_EXIT_MSG")),
            fence: Fence::new(step.shares.len()),
            meetings: BTreeMap::new(),
            places: BTreeMap::new(),
            has_told_debugger: false,
            step,
            nodes,
            news,
            written: writer.done,
            broken: Some(writer.broken),
            is_aborted: false,
            is_unwanted: false,
            has_failed: false,
            is_terminating: false,
            interrupted_at: None,
            give_up_at: None,
            kill_at: None,
            started_at: Instant::now(),
        })
    }

    /// Until all tasks have ended and all output is written; gives the exit code.
    pub async fn carry(mut self, mut watch: Watch) -> i32 {
        let raw = if self.plan.options.pty { terminal::RawTerminal::enter() } else { None };
        let mut signals = Signals::new();
        let mut is_watching = true;
        while self.nodes.iter().any(|node| !node.is_finished) {
            let (wait_ends_at, limit_ends_at) = (self.wait_ends_at(), self.limit_ends_at());
            tokio::select! {
                biased;
                news = self.news.recv() => match news {
                    Some((node, news)) => self.hear(node, news).await,
                    None => break,
                },
                heard = signals.next() => self.on_signal(heard).await,
                () = at(self.tasks.tell_at()) => {
                    let told = self.tasks.tell(Instant::now());
                    self.report(told);
                }
                () = at(wait_ends_at) => self.on_stragglers().await,
                () = at(limit_ends_at) => self.on_time_limit().await,
                () = at(self.kill_at) => {
                    self.kill_at = None;
                    self.cancel().await;
                }
                () = at(self.give_up_at) => {
                    self.give_up();
                    break;
                }
                () = broken(&mut self.broken) => {
                    self.broken = None;
                    self.signal(libc::SIGPIPE as u32).await;
                }
                page = watch.next(), if is_watching => match page {
                    Ok(page) => {
                        let job = page.jobs.iter().find(|job| job.id == self.step.job);
                        let step = page.steps.iter().find(|step| step.id == self.step.id && step.job == self.step.job);
                        self.on_change(job, step).await;
                    }
                    // Refused for good: the nodes' own word is all that is left.
                    Err(_) => is_watching = false,
                },
            }
        }
        if is_watching {
            self.await_record(&mut watch).await;
        }
        self.finish(raw).await
    }

    /// Whoever comes next finds what the step held free again, as far as the controller can be asked.
    async fn await_record(&mut self, watch: &mut Watch) {
        let recorded = timeout(RECORD_PATIENCE, async {
            while !self.is_recorded {
                let Ok(page) = watch.next().await else { return };
                let job = page.jobs.iter().find(|job| job.id == self.step.job);
                let step = page.steps.iter().find(|step| step.id == self.step.id && step.job == self.step.job);
                self.note_record(job, step);
            }
        });
        // A controller that is away must not keep the user waiting.
        let _ = recorded.await;
    }

    fn note_record(&mut self, job: Option<&Job>, step: Option<&Step>) {
        self.is_recorded = is_over(self.plan, job, step);
    }

    async fn hear(&mut self, node: usize, news: News) {
        match news {
            News::Started { tasks } => {
                let name = &self.nodes[node].name;
                let n_tasks = tasks.len();
                self.debug(&format!("launch/slurm: _task_start: Node {name}, {n_tasks} tasks started"));
                if self.step.spec.is_debugged {
                    self.tell_debugger(node, &tasks);
                }
            }
            News::Ended { rank, exit } => {
                let name = self.nodes[node].name.clone();
                let own_rank = rank.saturating_sub(self.part.first_rank);
                let is_new = self.tasks.ended(&name, own_rank, exit, Instant::now());
                if is_new {
                    chatter::ended(&self.name, &name, rank, exit).iter().for_each(|line| self.debug(line));
                    if self.is_unwanted && !exit.is_success() {
                        self.debug(&format!("launch/slurm: _task_finish: {name}: task {rank}: {}", describe(exit)));
                    }
                }
                let ends_all = self.plan.options.kill_on_bad_exit == Some(true);
                if is_new && ends_all && !exit.is_success() && !self.is_terminating && !self.tasks.all_ended() {
                    let told = self.tasks.tell_all();
                    self.report(told);
                    self.terminate().await;
                }
            }
            News::Fence { sequence, entries } => {
                let (nodes, sequence, entries) = match self.fence.enter(node, sequence, entries) {
                    Told::Nobody => return,
                    Told::Everybody(sequence, all) => (&self.nodes[..], sequence, all),
                    Told::Again(sequence, all) => (&self.nodes[node..=node], sequence, all),
                };
                nodes.iter().for_each(|node| node.pass(ToStep::Fence { sequence, entries: entries.clone() }));
            }
            News::Gather { group, n_nodes, sequence, data } => {
                let meeting = self.meetings.entry(group.clone()).or_insert_with(|| Fence::new(n_nodes as usize));
                let (nodes, sequence, data) = match meeting.enter(node, sequence, data) {
                    Told::Nobody => return,
                    // Who does not belong to the group has not asked, and does not mind.
                    Told::Everybody(sequence, all) => (&self.nodes[..], sequence, all),
                    Told::Again(sequence, all) => (&self.nodes[node..=node], sequence, all),
                };
                let message = || ToStep::Gathered { group: group.clone(), sequence, data: data.clone() };
                nodes.iter().for_each(|node| node.pass(message()));
            }
            News::Fetch { number, node: target, rank } => {
                let asked = ToStep::Fetch { from: node as u32, number, rank };
                if self.nodes.get(target as usize).is_none_or(|target| target.is_finished) {
                    self.nodes[node].pass(ToStep::Fetched { number, status: pmix::NOT_FOUND, data: Vec::new() });
                } else if let Some(target) = self.nodes.get(target as usize) {
                    // A node whose stream breaks before it answers is asked again.
                    let mut standing = target.standing.lock().expect("nobody panics with it");
                    if !standing.contains(&asked) {
                        standing.push(asked.clone());
                    }
                    target.pass(asked);
                }
            }
            News::Fetched { to, number, status, data } => {
                let is_it = |asked: &ToStep| matches!(asked, ToStep::Fetch { from, number: own, .. } if *from == to && *own == number);
                self.nodes[node].standing.lock().expect("nobody panics with it").retain(|asked| !is_it(asked));
                if let Some(asker) = self.nodes.get(to as usize) {
                    asker.pass(ToStep::Fetched { number, status, data });
                }
            }
            News::Abort { rank, text } => {
                if !self.is_terminating {
                    eprintln!("srun: error: task {rank} called abort: {}", text.trim_end());
                    self.terminate().await;
                }
            }
            News::Finished => {
                self.nodes[node].is_finished = true;
                self.answer_for(node);
            }
            News::Away(why) => {
                let name = &self.nodes[node].name;
                eprintln!("srun: warning: {name} is not reached from here: {why}; still trying");
            }
            News::Failed(why) => {
                self.nodes[node].is_finished = true;
                self.answer_for(node);
                if !self.tasks.all_ended() && !self.is_terminating && !self.is_aborted {
                    self.has_failed = true;
                    let name = &self.nodes[node].name;
                    eprintln!("srun: error: {name}: task launch failed: {why}");
                }
            }
        }
    }

    /// What others still want to know of a node whose tasks have ended is not found there any more.
    fn answer_for(&self, node: usize) {
        let standing = std::mem::take(&mut *self.nodes[node].standing.lock().expect("nobody panics with it"));
        for message in standing {
            let ToStep::Fetch { from, number, .. } = message else { continue };
            if let Some(asker) = self.nodes.get(from as usize) {
                asker.pass(ToStep::Fetched { number, status: pmix::NOT_FOUND, data: Vec::new() });
            }
        }
    }

    /// What the controller knows of the step.
    async fn on_change(&mut self, job: Option<&Job>, step: Option<&Step>) {
        self.note_record(job, step);
        let job_ends = job.is_none_or(|job| job.phase > Phase::Suspended);
        let step_phase = step.map_or(StepPhase::Done, |step| step.phase);
        if let Some(step) = step {
            self.step = step.clone();
        }
        let was_ended = step_phase == StepPhase::Ending || (job_ends && step_phase != StepPhase::Done);
        if was_ended && !self.tasks.all_ended() && !self.is_terminating {
            self.say_aborted().await;
        }
        if step_phase == StepPhase::Done || job.is_none() {
            self.give_up_at.get_or_insert_with(|| Instant::now() + LAST_WORDS);
        }
    }

    async fn on_signal(&mut self, heard: Heard) {
        match heard {
            Heard::Interrupt => self.on_interrupt().await,
            Heard::End(signal) => {
                if signal == libc::SIGQUIT {
                    self.say("Quit");
                }
                self.force(libc::SIGKILL as u32).await;
            }
            Heard::Forward(signal) => self.signal(signal as u32).await,
            Heard::Resized => {
                if self.plan.options.pty {
                    let size = terminal::size();
                    self.send(&ToStep::Resize { rows: size.rows, columns: size.columns });
                }
            }
        }
    }

    async fn on_interrupt(&mut self) {
        let now = Instant::now();
        let is_second = self.interrupted_at.is_some_and(|at| now - at < INTERRUPT_AGAIN);
        self.interrupted_at = Some(now);
        let options = &self.plan.options;
        if options.ignores_status_key && !is_second {
            self.say(&format!("sending Ctrl-C to StepId={}", self.name));
            self.signal(libc::SIGINT as u32).await;
            return;
        }
        if !is_second && !options.quits_on_interrupt {
            self.say("interrupt (one more within 1 sec to abort)");
            for line in self.tasks.status(&self.name) {
                self.say(&line);
            }
            return;
        }
        self.say(&format!("sending Ctrl-C to StepId={}", self.name));
        self.is_unwanted = true;
        self.signal(libc::SIGINT as u32).await;
        self.force(libc::SIGTERM as u32).await;
    }

    /// Ends the step because the user says so.
    async fn force(&mut self, signal: u32) {
        self.say("forcing job termination");
        self.say_aborted().await;
        self.is_terminating = true;
        if signal == libc::SIGKILL as u32 {
            self.signal(signal).await;
        }
        self.cancel().await;
    }

    /// Ends the step because of what a task did: the others are asked first.
    async fn terminate(&mut self) {
        self.is_terminating = true;
        self.say(&format!("launch/slurm: _step_signal: Terminating StepId={}", self.name));
        self.signal(libc::SIGTERM as u32).await;
        let secs = self.kill_wait_secs().await;
        self.kill_at = Some(Instant::now() + Duration::from_secs(secs));
    }

    /// `-W`: the first task ended a while ago and others go on.
    async fn on_stragglers(&mut self) {
        let secs = self.plan.options.wait.unwrap_or_default().as_secs();
        self.say(&format!("First task exited {secs}s ago"));
        for line in self.tasks.status(&self.name) {
            self.say(&line);
        }
        self.is_terminating = true;
        self.say(&format!("launch/slurm: _step_signal: Terminating StepId={}", self.name));
        self.say_aborted().await;
        self.signal(libc::SIGKILL as u32).await;
        self.cancel().await;
    }

    fn wait_ends_at(&self) -> Option<Instant> {
        let wait = self.plan.options.wait.filter(|_| !self.is_terminating && !self.tasks.all_ended())?;
        Some(self.tasks.first_end()? + wait)
    }

    /// A step's own time limit, inside an allocation; a job's is the controller's business.
    fn limit_ends_at(&self) -> Option<Instant> {
        if self.is_terminating || !matches!(self.plan.place, super::plan::Place::Inside(_)) {
            return None;
        }
        // The step's own record: an administrator may have changed it.
        let limit = self.step.spec.time_limit?.span()?;
        Some(self.started_at + Duration::from_secs(limit.secs()))
    }

    async fn on_time_limit(&mut self) {
        eprintln!("srun: error: *** STEP {} CANCELLED DUE TO TIME LIMIT ***", self.name);
        self.say_aborted().await;
        self.is_terminating = true;
        self.cancel().await;
    }

    /// The step is over and some nodes have not said so.
    fn give_up(&mut self) {
        for node in self.nodes.iter().filter(|node| !node.is_finished) {
            node.task.abort();
            self.has_failed = true;
            if !self.tasks.all_ended() && !self.is_aborted {
                eprintln!("srun: error: Node failure on {}", node.name);
            }
        }
    }

    async fn finish(mut self, raw: Option<terminal::RawTerminal>) -> i32 {
        for node in self.nodes.drain(..) {
            node.task.abort();
        }
        let _ = self.written.await;
        // What srun itself has to say needs an ordinary terminal.
        drop(raw);
        if self.is_unwanted {
            self.tasks.keep_quiet();
        }
        for line in self.tasks.tell_all() {
            eprintln!("srun: error: {line}");
        }
        if self.tasks.any_forced() && !self.is_aborted && !self.plan.behaviour.is_quiet {
            eprintln!("srun: Force Terminated StepId={}", self.name);
        }
        let code = self.tasks.code();
        let known = i32::from(self.step.exit.shell_code());
        match code {
            0 if self.has_failed || !self.tasks.all_ended() => known.max(1),
            code => code,
        }
    }

    /// Where each task is, once all have begun (`--debugger-test`).
    fn tell_debugger(&mut self, node: usize, tasks: &[(u32, u32)]) {
        let name = &self.nodes[node].name;
        self.places.extend(tasks.iter().map(|(rank, pid)| (*rank, (name.clone(), *pid))));
        if self.places.len() as u32 != self.step.n_tasks || std::mem::replace(&mut self.has_told_debugger, true) {
            return;
        }
        for (rank, (host, pid)) in &self.places {
            let command = self.step.spec.command(*rank).unwrap_or_default();
            let program = command.first().map(String::as_str).unwrap_or_default();
            eprintln!("srun: task:{rank}, host:{host}, pid:{pid}, executable:{program}");
        }
    }

    fn report(&self, lines: Vec<String>) {
        if !self.is_unwanted {
            for line in lines {
                eprintln!("srun: error: {line}");
            }
        }
    }

    fn say(&self, text: &str) {
        if self.part.leads && !self.plan.behaviour.is_quiet {
            eprintln!("srun: {text}");
        }
    }

    fn debug(&self, text: &str) {
        if self.plan.behaviour.verbosity > 0 {
            eprintln!("srun: {text}");
        }
    }

    async fn say_aborted(&mut self) {
        if std::mem::replace(&mut self.is_aborted, true) {
            return;
        }
        let secs = self.kill_wait_secs().await + KILL_WAIT_MARGIN_SECS;
        self.say(&format!("Job step aborted: Waiting up to {secs} seconds for job step to finish."));
    }

    async fn kill_wait_secs(&self) -> u64 {
        let asked = timeout(CALL_PATIENCE, async {
            let mut controller = Controller::connect(&self.cluster.controller_socket).await.ok()?;
            Some(controller.configuration().await.ok()?.config.agent.kill_wait.secs())
        });
        asked.await.ok().flatten().unwrap_or(model::config::AgentConfig::default().kill_wait.secs())
    }

    /// Through the controller, which is not held up by input that tasks do not read; straight to the nodes if it is away.
    async fn signal(&self, signal: u32) {
        let request = SignalRequest {
            jobs: vec![self.step.job.into()],
            signal,
            scope: SignalScope::Step(self.step.id),
            message: String::new(),
        };
        let asked = timeout(CALL_PATIENCE, async {
            let mut controller = Controller::connect(&self.cluster.controller_socket).await.ok()?;
            controller.signal(&request).await.ok()
        });
        if !matches!(asked.await, Ok(Some(_))) {
            self.send(&ToStep::Signal { signal });
        }
    }

    async fn cancel(&self) {
        let StepId::Number(_) = self.step.id else { return };
        let command = Command::CancelStep { job: self.step.job, step: self.step.id };
        let asked = timeout(CALL_PATIENCE, async {
            let mut controller = Controller::connect(&self.cluster.controller_socket).await.ok()?;
            // A refusal means that it is over already.
            Some(controller.command(command).await)
        });
        if !matches!(asked.await, Ok(Some(_))) {
            self.send(&ToStep::Signal { signal: libc::SIGKILL as u32 });
        }
    }

    /// To every node that still listens; a full queue means it cannot listen now.
    fn send(&self, message: &ToStep) {
        for node in self.nodes.iter().filter(|node| !node.is_finished) {
            let _ = node.to.try_send(message.clone());
        }
    }
}

/// Passes input on to the nodes that have readers of it, and its end.
fn carry_input(stream: &StepStream, step: &Step, nodes: &[NodeEnd], source: input::Source) {
    let only = match stream {
        StepStream::ClientTask(rank) => Some(*rank),
        StepStream::Client | StepStream::Nothing | StepStream::File(_) => None,
    };
    let ranks = step.ranks();
    let has_it = |index: usize| only.is_none_or(|rank| ranks[index].contains(&rank));
    let targets: Vec<(bool, mpsc::Sender<ToStep>)> =
        nodes.iter().enumerate().map(|(index, node)| (has_it(index), node.to.clone())).collect();
    let mut pieces = input::start(source);
    tokio::spawn(async move {
        while let Some(data) = pieces.recv().await {
            for (_, node) in targets.iter().filter(|(has_it, _)| *has_it) {
                let _ = node.send(ToStep::Input { rank: only, data: data.clone() }).await;
            }
        }
        for (_, node) in &targets {
            let _ = node.send(ToStep::EndOfInput).await;
        }
    });
}

/// Whether the controller has the step's end, and that of the job that was made for it.
fn is_over(plan: &Plan, job: Option<&Job>, step: Option<&Step>) -> bool {
    let step_is_over = step.is_none_or(|step| step.phase == StepPhase::Done);
    let job_is_over = job.is_none_or(|job| job.phase > Phase::Suspended);
    let is_alone = matches!(plan.place, super::plan::Place::Alone(_));
    step_is_over && (!is_alone || job_is_over)
}

/// Sleeps until a moment, or for ever.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

async fn broken(word: &mut Option<oneshot::Receiver<()>>) {
    match word {
        // The writer's end without a word is no news.
        Some(receiver) => match receiver.await {
            Ok(()) => {}
            Err(_) => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

/// There, and not 0.
fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| value.trim().parse() != Ok(0))
}
