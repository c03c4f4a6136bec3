//! One supervisor's life: starts the tasks, watches them, ends what is left of them, writes the result.
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use model::agent::KillNote;
use model::ask::{LiveProcess, LiveRun};
use model::attach::{FromStep, Stream, ToStep};
use model::command::Exited;
use model::time::Span;
use model::{ExitStatus, StepId};

use super::carried_out::CarriedOut;
use super::clearing::Charge;
use super::control::Control;
use super::files::{StreamEnd, TaskFiles};
use super::freezer::Freezer;
use super::identity::Identity;
use super::measure::{Meter, own_peak_bytes};
use super::memory::Memory;
use super::streams::{InputPipe, Outbox, OutputPipe, Read};
use super::task::TaskBirth;
use super::work::{self, NotStarted, Prepared};
use super::{delivered, notes, pmi, pmix, task};
use crate::cgroup::Cgroup;
use crate::protocol::{FromSupervisor, Start, ToSupervisor, Whom};
use crate::spool::{self, Mark};
use crate::{frame, run, sys, unkillable};

/// Slurm's status of a script whose output file cannot be opened.
const NO_FILES: ExitStatus = ExitStatus { code: 0, signal: 53 };
/// How long a finished step waits for its client to fetch the rest.
const LINGER_MILLIS: i64 = 60_000;
const RETRY_MILLIS: i64 = 20;
/// A supervisor that has grown so much since its first run does not take another.
const GROWN_MAX_BYTES: u64 = 2 << 20;
/// Only SIGKILL ends a supervisor before its run.
pub const IGNORED: [i32; 5] = [libc::SIGPIPE, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

struct Task {
    rank: u32,
    pid: i32,
    exit: Option<ExitStatus>,
    output: Option<OutputPipe>,
    errors: Option<OutputPipe>,
    input: Option<InputPipe>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The program is still on its way (`--bcast`).
    Held,
    Running,
    /// The tasks have ended; whatever else there is must go.
    Clearing {
        since: i64,
    },
    /// The result is written; the client may still want the end of the output.
    Lingering {
        until: i64,
    },
    Over,
}

struct Watch<'a> {
    start: Start,
    identity: &'a Identity,
    control: Control,
    record: File,
    signals: &'a OwnedFd,
    charge: Charge,
    meter: Meter,
    memory: Memory,
    pmi: Option<pmi::Server>,
    pmix: Option<pmix::Server>,
    freezer: Freezer,
    tasks: Vec<Task>,
    outbox: Outbox,
    /// Client input that the client has not been given credit for.
    input_bytes: u64,
    /// Where notes about the run go; none for a step, whose client gets them.
    notes: Option<std::rc::Rc<OwnedFd>>,
    /// When SIGTERM turns into SIGKILL.
    kill_at: Option<i64>,
    /// That the run is being ended is said once, by the first node.
    has_said_end: bool,
    not_started: Option<NotStarted>,
    carried_out: CarriedOut,
    /// What ended it before a task was started.
    ended_unborn: Option<i32>,
    /// Processes that nothing can end.
    unkillable: Vec<i32>,
    phase: Phase,
}

/// The life of one supervisor, in a process just forked: run after run of one user, until its agent lets it go.
pub fn supervise_all(line: UnixStream, identity: &Identity) {
    let signals = take_signals();
    let (mut line, mut usual_bytes) = (Some(line), None);
    while let Some(stream) = line.take() {
        let Ok((control, start, record)) = Control::open(stream) else { return };
        let (mut control, leaves_some) = supervise(control, start, record, &signals, identity);
        if leaves_some {
            // They are this process's children: another run must not have them.
            return control.flush_all();
        }
        // The next run's tasks begin as its copies: theirs is not told from what it has had itself.
        let peak_bytes = own_peak_bytes();
        match peak_bytes < *usual_bytes.get_or_insert(peak_bytes) + GROWN_MAX_BYTES {
            true => line = control.stand_by(),
            false => control.flush_all(),
        }
    }
}

/// One run; gives the line back when nothing is held of it any more, and says whether something is left all the same.
fn supervise(
    control: Control,
    start: Start,
    mut record: File,
    signals: &OwnedFd,
    identity: &Identity,
) -> (Control, bool) {
    let _ = record.write_all(&frame::encode(&Mark::Born { pid: std::process::id() }));
    let cgroup =
        start.cgroup.as_ref().and_then(|parent| Cgroup::create(Path::new(parent), &spool::slot_name(start.slot)).ok());
    let is_first_node = start.launch.step == StepId::Batch || start.launch.node_index == 0;
    let mut meter = Meter::new(sys::monotonic_millis());
    let pmi = pmi::Server::new(&start.launch);
    let memory = Memory::new(&start, cgroup.as_ref(), &mut meter);
    let mut watch = Watch {
        start,
        identity,
        control,
        record,
        signals,
        charge: Charge { cgroup, servant: None },
        meter,
        memory,
        pmi,
        pmix: None,
        freezer: Freezer::default(),
        tasks: Vec::new(),
        outbox: Outbox::default(),
        input_bytes: 0,
        notes: None,
        kill_at: None,
        has_said_end: !is_first_node,
        not_started: None,
        carried_out: CarriedOut::default(),
        ended_unborn: None,
        unkillable: Vec::new(),
        phase: Phase::Running,
    };
    match watch.start.launch.step_spec.as_ref().is_some_and(|spec| spec.waits_for_program) {
        true => watch.phase = Phase::Held,
        false => watch.launch(),
    }
    watch.attend();
    (watch.control, !watch.unkillable.is_empty())
}

/// A session of its own; children's ends as events; nothing else interrupts; orphans of the run come here.
fn take_signals() -> OwnedFd {
    // SAFETY: plain calls on valid values in a process with one thread.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        for signal in IGNORED {
            libc::signal(signal, libc::SIG_IGN);
        }
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        OwnedFd::from_raw_fd(sys::check(fd).expect("a process can have a signalfd"))
    }
}

impl Watch<'_> {
    fn launch(&mut self) {
        let (mut prepared, mut files) = match work::prepare(&self.start, self.identity) {
            Ok(prepared) => prepared,
            Err(why) => return self.not_started = Some(why),
        };
        // A task that is alone opens its files itself, which spares a process.
        let opens_itself = |only: &Prepared| only.plan.scripts.is_empty() && !only.has_labels();
        if !matches!(&prepared[..], [only] if opens_itself(only)) {
            let opened = files.open_beside(self.identity, self.umask(), self.charge.cgroup.as_ref());
            if let Err(why) = opened {
                return self.not_started = Some(why.into());
            }
        }
        prepared.iter_mut().for_each(|prepared| prepared.find_files(&files));
        self.pmix = match pmix::Server::start(&self.start, self.identity) {
            Ok(server) => server,
            Err(why) => return self.not_started = Some(why.into()),
        };
        self.charge.servant = self.pmix.as_ref().map(pmix::Server::pid);
        for prepared in prepared {
            if let Err(why) = self.start_task(prepared, &mut files) {
                self.not_started = Some(why.into());
                self.charge.kill();
                return;
            }
        }
        if self.start.launch.step != StepId::Batch {
            let tasks = self.tasks.iter().map(|task| (task.rank, task.pid as u32)).collect();
            self.outbox.push(FromStep::Started { tasks });
            self.tell_of_tasks();
        }
        if self.start.launch.is_suspended {
            self.freezer.freeze_at_once(&self.charge);
        }
    }

    fn umask(&self) -> u32 {
        self.start.launch.job_spec.umask.unwrap_or(0o022)
    }

    fn start_task(&mut self, mut prepared: Prepared, files: &mut TaskFiles) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("cannot start a process: {error}");
        if let Some(server) = &mut self.pmi {
            let (line, variables) = server.add_task(prepared.rank).map_err(failed)?;
            variables.iter().for_each(|(name, value)| prepared.plan.environment.add(name, value));
            prepared.plan.line = Some(line);
        }
        if let Some(server) = &self.pmix {
            let variables = server.variables(prepared.rank);
            variables.iter().for_each(|(name, value)| prepared.plan.environment.replace(name, value));
        }
        let launch = &self.start.launch;
        let own = launch.step_spec.as_ref().map(|step| &step.limits).filter(|limits| !limits.is_empty());
        let limits = own.unwrap_or(&launch.job_spec.limits);
        let birth = TaskBirth {
            identity: self.identity,
            limits,
            umask: self.umask(),
            no_new_privileges: launch.no_new_privileges,
            cgroup: self.charge.cgroup.as_ref(),
            held: self.memory.held(),
        };
        let pid = task::start(&mut prepared.plan, files, &birth)?;
        if prepared.plan.is_batch
            && let StreamEnd::File(id) = prepared.plan.stderr
        {
            self.notes = files.noted(id);
        }
        let rank = prepared.rank;
        self.meter.add_task(rank, pid);
        let input = match (prepared.input, &prepared.output) {
            (Some(fd), _) => Some(InputPipe::new(fd)),
            (None, Some(near)) if prepared.is_terminal => {
                Some(InputPipe::terminal(near.fd.try_clone().map_err(failed)?))
            }
            (None, _) => None,
        };
        self.tasks.push(Task {
            rank,
            pid,
            exit: None,
            output: prepared.output.map(|fd| OutputPipe::new(fd, rank, Stream::Stdout)),
            errors: prepared.errors.map(|fd| OutputPipe::new(fd, rank, Stream::Stderr)),
            input,
        });
        Ok(())
    }

    fn attend(&mut self) {
        // What came along with the first frame makes no descriptor ready.
        self.obey();
        loop {
            self.advance();
            if self.phase == Phase::Over {
                return;
            }
            for message in self.outbox.take() {
                self.control.send(&message);
            }
            self.wait();
        }
    }

    /// Moves on as far as possible without waiting.
    fn advance(&mut self) {
        let now = sys::monotonic_millis();
        if self.phase == Phase::Running {
            if self.tasks.iter().all(|task| task.exit.is_some()) {
                self.phase = Phase::Clearing { since: now };
            } else if self.kill_at.is_some_and(|at| now >= at) {
                self.charge.kill();
                self.kill_at = Some(now + RETRY_MILLIS);
            }
            if self.phase == Phase::Running && now >= self.meter.next_at() {
                self.meter.look(&self.charge.members(), now);
                if self.memory.is_above(self.meter.rss_now_bytes()) {
                    self.charge.kill();
                }
            }
            let frozen = self.freezer.advance(&self.charge, now);
            self.answer(frozen);
        }
        if let Phase::Clearing { since } = self.phase {
            if let Some(mut server) = self.pmix.take() {
                server.end();
            }
            let patience = (self.start.unkillable_timeout.0 / 1000) as i64;
            if !self.reap() && self.charge.is_empty() {
                self.conclude(now);
            } else if patience > 0 && now >= since + patience {
                self.unkillable = self.charge.members();
                self.conclude(now);
            } else {
                self.charge.kill();
            }
        }
        if let Phase::Lingering { until } = self.phase
            && now >= until
        {
            self.phase = Phase::Over;
        }
    }

    fn conclude(&mut self, now: i64) {
        self.drain();
        if let Some(note) = self.memory.note(&self.start) {
            self.say(&note);
        }
        let out_of_memory = self.memory.has_run_out();
        self.memory.held().release();
        let worst = self.tasks.iter().filter_map(|task| task.exit).fold(ExitStatus::SUCCESS, ExitStatus::worse);
        let launch = &self.start.launch;
        let exited = Exited {
            job: launch.job,
            attempt: launch.attempt,
            step: launch.step,
            node: self.start.node.clone(),
            exit: match &self.not_started {
                Some(_) => NO_FILES,
                None if self.ended_unborn.is_some() => ExitStatus::signaled(self.ended_unborn.unwrap_or(0) as u8),
                None if out_of_memory => ExitStatus::OUT_OF_MEMORY,
                None => worst,
            },
            out_of_memory,
            launch_error: self.not_started.as_ref().map(|not| not.why.clone()),
            drained_for: match &self.not_started {
                _ if !self.unkillable.is_empty() => unkillable::reason(&self.unkillable),
                Some(not) if not.is_the_nodes_fault => run::LAUNCH_FAILED.into(),
                _ => String::new(),
            },
            usage: Some(Box::new(self.meter.usage())),
        };
        let _ = self.record.write_all(&frame::encode(&Mark::Result(exited.clone())));
        let ended = FromSupervisor::Ended(exited);
        if launch.step == StepId::Batch {
            self.control.send_soon(&ended);
            self.phase = Phase::Over;
            return;
        }
        self.control.send(&ended);
        self.outbox.push(match &self.not_started {
            Some(not) => FromStep::Failed { why: not.why.clone() },
            None => FromStep::Finished,
        });
        self.phase = match self.outbox.is_abandoned() {
            true => Phase::Over,
            false => Phase::Lingering { until: now + LINGER_MILLIS },
        };
    }

    /// All that is in the pipes; their writers are gone.
    fn drain(&mut self) {
        for task in &mut self.tasks {
            for pipe in [&mut task.output, &mut task.errors] {
                while let Some(open) = pipe {
                    if open.read(&mut self.outbox) != Read::Some {
                        open.finish();
                        *pipe = None;
                    }
                }
            }
        }
    }

    fn wait(&mut self) {
        let has_room = self.outbox.has_room();
        let readable = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut fds = vec![readable(self.signals.as_raw_fd()), self.control.poll_fd()];
        for task in &self.tasks {
            let outputs = [&task.output, &task.errors].into_iter().flatten().filter(|_| has_room);
            fds.extend(outputs.map(|pipe| readable(pipe.fd.as_raw_fd())));
            fds.extend(task.input.as_ref().and_then(InputPipe::poll_fd));
        }
        if self.outbox.has_room_for_exchange() {
            fds.extend(self.pmi.iter().flat_map(pmi::Server::poll_fds));
            fds.extend(self.pmix.as_ref().map(pmix::Server::poll_fd));
        }
        sys::poll(&mut fds, self.timeout());
        let is_ready = |index: usize| fds[index].revents != 0;
        let (signals_ready, control_ready, streams_ready) =
            (is_ready(0), is_ready(1), fds[2..].iter().any(|fd| fd.revents != 0));
        if streams_ready {
            self.move_streams();
            self.attend_pmi();
        }
        if signals_ready {
            let mut events = [0; 128 * 4];
            while sys::read(self.signals.as_fd(), &mut events).is_ok() {}
            self.reap();
        }
        if control_ready {
            self.obey();
        }
        self.give_credit();
    }

    fn attend_pmi(&mut self) {
        if !self.outbox.has_room_for_exchange() {
            return;
        }
        if let Some(server) = &mut self.pmix {
            server.attend().into_iter().for_each(|news| self.outbox.push(news));
        }
        let Some(server) = &mut self.pmi else { return };
        for news in server.attend() {
            self.outbox.push(match news {
                pmi::News::Fence { sequence, entries } => FromStep::Fence { sequence, entries },
                pmi::News::Abort { rank, text } => FromStep::Abort { rank, text },
            });
        }
    }

    fn timeout(&self) -> i32 {
        let now = sys::monotonic_millis();
        let at = match self.phase {
            Phase::Held => None,
            Phase::Running => {
                [Some(self.meter.next_at()), self.kill_at, self.freezer.due()].into_iter().flatten().min()
            }
            Phase::Clearing { .. } => Some(now + RETRY_MILLIS),
            Phase::Lingering { until } => Some(until),
            Phase::Over => Some(now),
        };
        // Rounded up, so that the moment has come when the wait is over.
        at.map_or(-1, |at| (at - now).clamp(0, i64::from(i32::MAX)) as i32)
    }

    fn move_streams(&mut self) {
        for task in &mut self.tasks {
            if let Some(input) = &mut task.input {
                input.write();
            }
            for pipe in [&mut task.output, &mut task.errors] {
                while let Some(open) = pipe {
                    if !self.outbox.has_room() {
                        break;
                    }
                    match open.read(&mut self.outbox) {
                        Read::Some => {}
                        Read::Nothing => break,
                        Read::End => *pipe = None,
                    }
                }
            }
        }
    }

    /// Collects the dead; true if there are children left.
    fn reap(&mut self) -> bool {
        loop {
            // SAFETY: all three are plain data that the calls fill.
            let (mut waiting, mut status, mut account): (libc::siginfo_t, i32, libc::rusage) =
                unsafe { (std::mem::zeroed(), 0, std::mem::zeroed()) };
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            // SAFETY: `waiting` is valid.
            if unsafe { libc::waitid(libc::P_ALL, 0, &mut waiting, flags) } != 0 {
                return false;
            }
            // SAFETY: the call has filled it; no child is zero.
            let pid = unsafe { waiting.si_pid() };
            if pid == 0 {
                return true;
            }
            let is_servant = self.charge.servant == Some(pid);
            if !is_servant {
                self.meter.note_zombie(pid);
            }
            // SAFETY: `status` and `account` are valid.
            if unsafe { libc::wait4(pid, &mut status, libc::WNOHANG, &mut account) } == pid && !is_servant {
                self.meter.note_end(pid, &account);
                self.note_end(pid, status);
            }
        }
    }

    fn note_end(&mut self, pid: i32, status: i32) {
        let Some(index) = self.tasks.iter().position(|task| task.pid == pid && task.exit.is_none()) else { return };
        let exit = match ExitStatus::from_wait_status(status) {
            exit if i32::from(exit.signal) == libc::SIGKILL && self.memory.has_run_out() => ExitStatus::OUT_OF_MEMORY,
            exit => exit,
        };
        let task = &mut self.tasks[index];
        task.exit = Some(exit);
        if let Some(input) = &mut task.input {
            input.close();
        }
        if self.start.launch.step == StepId::Batch {
            return;
        }
        // What it has written comes before its end.
        let rank = task.rank;
        self.move_streams();
        if self.tells_of_tasks() {
            self.say(&notes::task_ended(&self.start, rank, pid, exit));
        }
        self.outbox.push(FromStep::TaskExited { rank, exit });
        if let Some(server) = &mut self.pmix {
            server.note_end(rank).into_iter().for_each(|news| self.outbox.push(news));
        }
    }

    fn obey(&mut self) {
        let mut messages = Vec::new();
        let is_new = self.control.receive(&mut messages);
        if !self.control.is_connected() || is_new {
            self.outbox.detach();
        }
        for message in messages {
            match message {
                ToSupervisor::Kill { kill_wait, note } => self.kill(kill_wait, note),
                ToSupervisor::Signal { request, .. } | ToSupervisor::Say { request, .. }
                    if !self.carried_out.is_new(request) => {}
                ToSupervisor::Signal { signal, whom, .. } => self.signal(signal as i32, whom),
                ToSupervisor::Say { text, .. } => self.say(&format!("slurmstepd: error: {text}\n")),
                ToSupervisor::Freeze { number, grace } => {
                    // What is not started yet is born frozen.
                    self.start.launch.is_suspended = true;
                    let frozen = self.freezer.freeze(&self.charge, number, grace, sys::monotonic_millis());
                    self.answer(frozen);
                }
                ToSupervisor::Thaw { number } => {
                    self.start.launch.is_suspended = false;
                    let mut done = self.freezer.thaw(&self.charge);
                    done.push(number);
                    self.answer(done);
                }
                ToSupervisor::Measure { number } => {
                    let run = Box::new(self.measure());
                    self.control.send(&FromSupervisor::Measured { number, run });
                }
                ToSupervisor::Attach => self.outbox.attach(),
                ToSupervisor::Detach => self.outbox.detach(),
                ToSupervisor::Step(message) => self.hear(message),
                // It has one.
                ToSupervisor::Start(_) => {}
                ToSupervisor::Release => {
                    self.outbox.abandon();
                    if let Phase::Lingering { .. } = self.phase {
                        self.phase = Phase::Over;
                    }
                }
            }
        }
    }

    fn measure(&mut self) -> LiveRun {
        let members = self.charge.members();
        self.meter.look(&members, sys::monotonic_millis());
        let task_of = |pid: i32| {
            let at = self.tasks.iter().position(|task| task.pid == pid)?;
            Some((at as u32, self.tasks[at].rank))
        };
        let processes = members.iter().map(|pid| LiveProcess { pid: *pid as u32, task: task_of(*pid) }).collect();
        let launch = &self.start.launch;
        LiveRun { job: launch.job, step: launch.step, usage: self.meter.usage(), processes }
    }

    fn hear(&mut self, message: ToStep) {
        match message {
            ToStep::Open { .. } | ToStep::Observe { .. } => {}
            ToStep::Input { rank, data } => {
                self.input_bytes += data.len() as u64;
                let meant = |task: &&mut Task| rank.is_none_or(|rank| rank == task.rank);
                self.tasks
                    .iter_mut()
                    .filter(meant)
                    .filter_map(|task| task.input.as_mut())
                    .for_each(|to| to.push(&data));
            }
            ToStep::EndOfInput => self.tasks.iter_mut().filter_map(|task| task.input.as_mut()).for_each(InputPipe::end),
            ToStep::Resize { rows, columns } => {
                self.tasks.iter().filter_map(|task| task.input.as_ref()).for_each(|to| to.resize(rows, columns));
            }
            ToStep::Signal { signal } => self.signal(signal as i32, Whom::Everyone),
            ToStep::Begin { program, libraries } => {
                if self.phase == Phase::Held {
                    self.phase = Phase::Running;
                    delivered::note(&mut self.start.launch, program, libraries);
                    self.launch();
                }
            }
            ToStep::Fence { sequence, entries } => {
                self.outbox
                    .forget(|event| matches!(event, FromStep::Fence { sequence: number, .. } if *number <= sequence));
                if let Some(server) = &mut self.pmi {
                    server.fenced(sequence, entries);
                }
            }
            ToStep::Gathered { group, sequence, data } => {
                self.outbox.forget(|event| {
                    matches!(event, FromStep::Gather { group: own, sequence: number, .. } if *own == group && *number == sequence)
                });
                if let Some(server) = &mut self.pmix {
                    server.gathered(&group, sequence, data);
                }
            }
            ToStep::Fetch { from, number, rank } => {
                if let Some(server) = &mut self.pmix {
                    server.fetch(from, number, rank);
                }
            }
            ToStep::Fetched { number, status, data } => {
                self.outbox.forget(|event| matches!(event, FromStep::Fetch { number: own, .. } if *own == number));
                if let Some(server) = &mut self.pmix {
                    server.fetched(number, status, data);
                }
            }
            ToStep::Received { total_bytes } => self.outbox.receive(total_bytes),
        }
    }

    fn give_credit(&mut self) {
        let mut inputs = self.tasks.iter().filter_map(|task| task.input.as_ref());
        if self.input_bytes > 0 && inputs.all(InputPipe::is_low) {
            self.control.send(&FromSupervisor::InputTaken { bytes: self.input_bytes });
            self.input_bytes = 0;
        }
    }

    fn signal(&mut self, signal: i32, whom: Whom) {
        if matches!(signal, libc::SIGTERM | libc::SIGKILL) {
            self.say_end(KillNote::Cancelled);
            self.end_unborn(signal);
        }
        let launch = &self.start.launch;
        let tasks_only = launch.signal_tasks_only && launch.step != StepId::Batch && signal != libc::SIGKILL;
        match whom {
            Whom::Everyone if !tasks_only => self.charge.signal(signal),
            Whom::Everyone | Whom::Leaders => {
                let living = self.tasks.iter().filter(|task| task.exit.is_none());
                living.for_each(|task| sys::kill(task.pid, signal));
            }
        }
    }

    /// A step that is still held ends at once.
    fn end_unborn(&mut self, signal: i32) {
        if self.phase == Phase::Held {
            self.ended_unborn = Some(signal);
            self.phase = Phase::Clearing { since: sys::monotonic_millis() };
        }
    }

    fn kill(&mut self, kill_wait: Span, note: KillNote) {
        self.end_unborn(libc::SIGKILL);
        // What stands still for a debugger is not made to run in order to end.
        let kill_wait = if self.is_debugged() { Span::default() } else { kill_wait };
        if self.phase != Phase::Running {
            return;
        }
        let at = sys::monotonic_millis() + (kill_wait.0.div_ceil(1000)) as i64;
        if let Some(before) = self.kill_at {
            self.kill_at = Some(before.min(at));
            return;
        }
        self.kill_at = Some(at);
        self.say_end(note);
        if kill_wait.0 > 0 {
            let done = self.freezer.thaw(&self.charge);
            self.answer(done);
            self.charge.thaw();
            self.charge.signal(libc::SIGTERM);
        }
    }

    fn answer(&mut self, numbers: Vec<u64>) {
        numbers.into_iter().for_each(|number| self.control.send(&FromSupervisor::Done { number }));
    }

    fn is_debugged(&self) -> bool {
        self.start.launch.step_spec.as_ref().is_some_and(|spec| spec.is_debugged)
    }

    /// `--slurmd-debug`
    fn tells_of_tasks(&self) -> bool {
        self.start.launch.step_spec.as_ref().is_some_and(|spec| spec.supervisor_verbosity > 0)
    }

    fn tell_of_tasks(&mut self) {
        if self.tells_of_tasks() {
            let tasks: Vec<(u32, i32)> = self.tasks.iter().map(|task| (task.rank, task.pid)).collect();
            self.say(&notes::tasks_started(&self.start, &tasks));
        }
    }

    fn say_end(&mut self, note: KillNote) {
        if !self.has_said_end
            && let Some(text) = notes::kill_note(&self.start, note)
        {
            self.has_said_end = true;
            self.say(&text);
        }
    }

    fn say(&mut self, text: &str) {
        match &self.notes {
            Some(file) => drop(sys::write(file.as_fd(), text.as_bytes())),
            None => {
                let rank = self.tasks.first().map_or(self.start.launch.rank(0), |task| task.rank);
                let data = text.as_bytes().to_vec();
                self.outbox.push(FromStep::Output { rank, stream: Stream::Stderr, data });
            }
        }
    }
}
