//! Asks for resources and waits for them, for salloc and for srun outside an allocation.
use std::time::Duration;

use config::Client;
use model::command::Blob;
use model::request::{JobFilter, JobsPage};
use model::{BufferPhase, Command, Job, JobId, JobSpec, Phase, Reason, Reject};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};
use wire::{CallError, Controller};

use crate::sbatch::{error_code, only_partition};
use crate::submit::Program;
use crate::submit::request::Behaviour;
use crate::watch::Watch;

/// A start that takes no longer than this is not worth a word.
const PATIENCE: Duration = Duration::from_millis(250);
/// By then the scheduler has looked at a job that is to start at once; its word counts, whenever it comes.
const LOOKED_AT: Duration = Duration::from_secs(5);
const DISTANT: Duration = Duration::from_secs(86_400 * 365);

/// Resources that were given, with the watch that goes on.
pub struct Granted {
    pub job: Job,
    pub page: JobsPage,
    pub watch: Watch,
    pub waited: Duration,
}

/// Says what stands in the way and gives the exit code.
pub struct Failed(pub i32);

/// It has its nodes, but they have not all that its burst buffer is to hold.
fn is_being_prepared(job: &Job) -> bool {
    matches!(job.buffer, Some(BufferPhase::Deleting | BufferPhase::PreRun))
}

/// Submits and waits until the job has its nodes. Signals while waiting withdraw the request.
pub async fn obtain(
    program: Program,
    cluster: &Client,
    specs: &[JobSpec],
    blobs: &[Blob],
    behaviour: &Behaviour,
) -> Result<Granted, Failed> {
    let mut controller = match Controller::connect(&cluster.controller_socket).await {
        Ok(controller) => controller,
        Err(error) => return Err(refused(program, specs, &error)),
    };
    let mut signals = Interruptions::new();
    let id = match controller.submit_together(specs, blobs).await {
        Ok(submitted) => {
            let told = Some(&submitted.told).filter(|_| !behaviour.is_quiet);
            told.iter().flat_map(|told| told.lines()).for_each(|line| eprintln!("{}: {line}", program.name()));
            submitted.job
        }
        Err(error) => return Err(refused(program, specs, &error)),
    };
    // An allocation may see thousands of steps; only whoever waits for its own wants to hear of them.
    let with_steps = program == Program::Srun;
    let filter = JobFilter { jobs: vec![id.into()], with_finished: true, with_steps, ..JobFilter::default() };
    let mut watch = Watch::new(cluster, filter, Some(controller.clone()));
    let begun = Instant::now();
    let at_once = is_at_once(behaviour);
    let give_up = begun + if at_once { LOOKED_AT } else { behaviour.immediate.unwrap_or(DISTANT) };
    let mut talk = Talk { program, id, is_quiet: behaviour.is_quiet || at_once, has_spoken: false };
    let mut job = None;
    loop {
        tokio::select! {
            page = watch.next() => {
                let page = match page {
                    Ok(page) => page,
                    Err(error) => return Err(refused(program, specs, &error)),
                };
                let Some(now) = page.jobs.first().cloned() else { return Err(gone(program)) };
                // A short run may be over before it is seen; its step still waits for us.
                let is_prepared = !page.jobs.iter().any(is_being_prepared);
                let has_run = (now.holds_nodes() && is_prepared) || page.steps.iter().any(|step| step.job == id);
                if now.is_over() && !(has_run && program == Program::Srun) {
                    return Err(gone(program));
                }
                if has_run {
                    // Slurm starts the components of a whole only when it looks for gaps, so who waits for them is always told.
                    if specs.len() > 1 {
                        talk.waiting(&now);
                    }
                    talk.allocated();
                    return Ok(Granted { job: now, page, watch, waited: begun.elapsed() });
                }
                // Whoever wants to start at once is told at once that waiting would not help.
                if at_once && now.phase == Phase::Pending && is_judged(&now) {
                    withdraw(&mut controller, id).await;
                    return Err(not_at_once(program, &now, behaviour));
                }
                if begun.elapsed() >= PATIENCE {
                    talk.waiting(&now);
                }
                job = Some(now);
            }
            () = sleep_until(begun + PATIENCE), if !talk.has_spoken && job.is_some() => {
                talk.waiting(job.as_ref().expect("looked at above"));
            }
            () = sleep_until(give_up) => {
                withdraw(&mut controller, id).await;
                return Err(too_late(program, id, behaviour));
            }
            () = signals.next() => {
                withdraw(&mut controller, id).await;
                return Err(interrupted(program, id));
            }
        }
    }
}

/// Takes a request back, or ends what it has become.
pub async fn withdraw(controller: &mut Controller, id: JobId) {
    // Whatever goes wrong, the job is either gone or the controller cannot be reached.
    let _ = controller.command(Command::Cancel { jobs: vec![id.into()], hurry: false }).await;
}

struct Talk {
    program: Program,
    id: JobId,
    is_quiet: bool,
    has_spoken: bool,
}

impl Talk {
    fn waiting(&mut self, job: &Job) {
        if self.has_spoken {
            return;
        }
        self.has_spoken = true;
        if self.is_quiet {
            return;
        }
        let (name, id) = (self.program.name(), self.id);
        if let Some(why) = obstacle(job.reason) {
            eprintln!("{name}: {why}");
        }
        if self.program == Program::Salloc {
            eprintln!("{name}: Pending job allocation {id}");
        }
        eprintln!("{name}: job {id} queued and waiting for resources");
    }

    fn allocated(&self) {
        if self.has_spoken && !self.is_quiet {
            eprintln!("{}: job {} has been allocated resources", self.program.name(), self.id);
        }
    }
}

/// What Slurm says first when waiting alone will not help.
fn obstacle(reason: Option<Reason>) -> Option<&'static str> {
    match reason? {
        Reason::JobHeldUser | Reason::JobHeldAdmin => Some("Job is in held state, pending scheduler release"),
        Reason::PartitionDown => Some("Partition in DOWN state"),
        Reason::PartitionInactive => Some("Partition in INACTIVE state"),
        Reason::PartitionNodeLimit | Reason::PartitionTimeLimit | Reason::PartitionConfig => {
            Some("Requested partition configuration not available now")
        }
        _ => None,
    }
}

/// What the site's own script gives as its reason.
pub fn site_says(program: Program, error: &CallError) {
    if let CallError::Refused(reject @ (Reject::BySite { .. } | Reject::Told { .. })) = error {
        reject.details().lines().for_each(|line| eprintln!("{}: error: {line}", program.name()));
    }
}

/// The controller's refusal, as each command words it.
pub fn refused(program: Program, specs: &[JobSpec], error: &CallError) -> Failed {
    let name = program.name();
    if let (CallError::Refused(Reject::NoSuchPartition), Some(only)) = (error, only_partition(specs)) {
        eprintln!("{name}: error: invalid partition specified: {only}");
    }
    if let CallError::Refused(reject) = error {
        reject.details().lines().for_each(|line| eprintln!("{name}: error: {line}"));
    }
    eprintln!("{name}: error: {}", refusal(program, error));
    Failed(error_code(1))
}

/// What was refused, and why. Slurm's commands know themselves which devices there are.
pub fn refusal(program: Program, error: &CallError) -> String {
    match error {
        CallError::Refused(Reject::StepGres) => error.to_string(),
        _ => format!("{}: {error}", program.refusal()),
    }
}

fn gone(program: Program) -> Failed {
    let name = program.name();
    eprintln!("{name}: Job has been cancelled");
    eprintln!("{name}: error: {}: {}", program.refusal(), Reject::AlreadyOver);
    Failed(error_code(1))
}

/// One second is no time to wait: it starts now, or not at all.
fn is_at_once(behaviour: &Behaviour) -> bool {
    behaviour.immediate.is_some_and(|time| time <= Duration::from_secs(1))
}

/// A job that waits for its turn has a reason before the scheduler has looked at it; only what was found then is a word.
fn is_judged(job: &Job) -> bool {
    match job.reason {
        None => false,
        Some(Reason::Priority) => job.last_evaluated.is_some(),
        Some(_) => true,
    }
}

fn not_at_once(program: Program, job: &Job, behaviour: &Behaviour) -> Failed {
    let is_held = matches!(job.reason, Some(Reason::JobHeldUser | Reason::JobHeldAdmin));
    let why = match obstacle(job.reason) {
        Some(_) if is_held => "Job dependency problem",
        Some(why) => why,
        None => return too_late(program, job.id, behaviour),
    };
    eprintln!("{}: error: {}: {why}", program.name(), program.refusal());
    if is_held && program == Program::Salloc {
        eprintln!("salloc: Job allocation {} has been revoked.", job.id);
    }
    Failed(error_code(1))
}

fn too_late(program: Program, id: JobId, behaviour: &Behaviour) -> Failed {
    let why = match (program, is_at_once(behaviour)) {
        (Program::Salloc, false) => "Connection timed out",
        _ => "Requested nodes are busy",
    };
    eprintln!("{}: error: Unable to allocate resources: {why}", program.name());
    if program == Program::Salloc {
        eprintln!("salloc: Job allocation {id} has been revoked.");
    }
    let chosen = std::env::var("SLURM_EXIT_IMMEDIATE").ok().and_then(|text| text.parse().ok());
    Failed(chosen.unwrap_or_else(|| error_code(1)))
}

fn interrupted(program: Program, id: JobId) -> Failed {
    match program {
        Program::Salloc => {
            eprintln!("salloc: Job allocation {id} has been revoked.");
            eprintln!("salloc: Job aborted due to signal");
        }
        Program::Srun | Program::Sbatch => {
            eprintln!("srun: Job allocation {id} has been revoked");
            eprintln!("srun: Force Terminated JobId={id}");
        }
    }
    Failed(1)
}

/// Signals that take a waiting request back.
struct Interruptions {
    signals: Vec<Signal>,
}

impl Interruptions {
    fn new() -> Self {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()];
        Interruptions { signals: kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect() }
    }

    async fn next(&mut self) {
        let any = self.signals.iter_mut().map(|signal| Box::pin(signal.recv()));
        match any.len() {
            0 => std::future::pending().await,
            _ => drop(futures::future::select_all(any).await),
        }
    }
}
