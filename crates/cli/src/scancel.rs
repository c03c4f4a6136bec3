//! `scancel`: ends or signals jobs, by number or by what they are.
use std::collections::BTreeSet;

use model::command::JobResult;
use model::request::{JobFilter, SignalRequest, SignalScope};
use model::signal::{self, Signal};
use model::{Command, Job, JobId, JobRef, Reject, StepId, TaskSet, hostlist, job_state::JobState, plain_text};
use wire::{CallError, Controller};

use crate::context;
use crate::getopt::{self, Flag, Operands, Value, flag};
use crate::job_ids::{self, Target};
use crate::squeue::is_meant;
use crate::{users, version};

#[rustfmt::skip]
pub const FLAGS: &[Flag] = &[
    flag("account", Some('A'), Value::Required),
    flag("admin-comment", None, Value::Required),
    flag("batch", Some('b'), Value::None),
    flag("clusters", Some('M'), Value::Required),
    flag("cron", None, Value::None),
    flag("ctld", Some('c'), Value::None),
    flag("full", Some('f'), Value::None),
    flag("help", None, Value::None),
    flag("hurry", Some('H'), Value::None),
    flag("interactive", Some('i'), Value::None),
    flag("jobname", None, Value::Required),
    flag("me", None, Value::None),
    flag("name", Some('n'), Value::Required),
    flag("nodelist", Some('w'), Value::Required),
    flag("partition", Some('p'), Value::Required),
    flag("qos", Some('q'), Value::Required),
    flag("quiet", Some('Q'), Value::None),
    flag("reservation", Some('R'), Value::Required),
    flag("sibling", None, Value::Required),
    flag("signal", Some('s'), Value::Required),
    flag("state", Some('t'), Value::Required),
    flag("usage", None, Value::None),
    flag("user", Some('u'), Value::Required),
    flag("verbose", Some('v'), Value::None),
    flag("version", Some('V'), Value::None),
    flag("wckey", None, Value::Required),
];

/// What is to be done, and to which jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub targets: Vec<Target>,
    pub filter: Filter,
    /// None ends the job.
    pub signal: Option<Signal>,
    pub scope: Scope,
    pub asks: bool,
    /// What is in burst buffers is given up.
    pub hurry: bool,
    pub verbosity: u32,
    pub is_quiet: bool,
    /// Empty: the one that is configured.
    pub clusters: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    #[default]
    Steps,
    BatchShell,
    Everything,
}

/// Which jobs, besides those that are named. Nothing is no restriction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    pub uid: Option<u32>,
    pub account: Option<String>,
    pub name: Option<String>,
    pub partition: Option<String>,
    pub qos: Option<String>,
    pub wckey: Option<String>,
    pub reservation: Option<String>,
    pub state: Option<JobState>,
    pub nodes: Vec<String>,
}

impl Filter {
    fn is_empty(&self) -> bool {
        *self == Filter::default()
    }

    /// In Slurm's words.
    fn told(&self) -> String {
        let user = self.uid.map(|uid| users::Names::default().user(uid));
        let nodes = (!self.nodes.is_empty()).then(|| self.nodes.join(","));
        let state = self.state.map(|state| state.name().to_string());
        let words = [
            ("account", &self.account),
            ("job_name", &self.name),
            ("nodelist", &nodes),
            ("partition", &self.partition),
            ("qos", &self.qos),
            ("reservation", &self.reservation),
            ("state", &state),
            ("user_name", &user),
            ("wckey", &self.wckey),
        ];
        let word = |(name, value): &(&str, &Option<String>)| value.as_ref().map(|value| format!("{name}={value} "));
        words.iter().filter_map(word).collect()
    }

    /// The texts of jobs are plain here (`output::SHOWING`), so what is asked for is compared as plainly.
    fn passes(&self, job: &Job) -> bool {
        let is =
            |asked: &Option<String>, has: &str| asked.as_deref().is_none_or(|asked| plain_text::shown(asked) == has);
        let is_there = |name: &&String| job.holds_nodes() && job.allocation.share(name).is_some();
        self.uid.is_none_or(|uid| uid == job.spec.uid)
            && is(&self.account, &job.spec.account)
            && is(&self.name, &job.spec.name)
            && is(&self.qos, &job.spec.qos)
            && is(&self.wckey, &job.spec.wckey)
            && self.partition.as_ref().is_none_or(|asked| in_partition(job, asked))
            && self
                .reservation
                .as_ref()
                .is_none_or(|name| job.reservation == *name || job.spec.reservations.contains(name))
            && self.state.is_none_or(|state| state == job.base_state())
            && (self.nodes.is_empty() || self.nodes.iter().any(|name| is_there(&name)))
    }
}

fn in_partition(job: &Job, asked: &str) -> bool {
    job.partition == asked
        || (job.base_state() == JobState::Pending && job.spec.partitions.iter().any(|name| name == asked))
}

/// What the arguments come to.
#[derive(Clone, Debug, PartialEq)]
pub enum Built {
    Answer(String),
    Plan(Box<Plan>),
}

/// What to tell the user instead; the whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake(pub String);

fn error(text: impl std::fmt::Display) -> Mistake {
    Mistake(format!("scancel: error: {text}\n"))
}

/// Everything up to the first call. `variable` knows the caller's environment, `uid_of` the users.
pub fn build(
    arguments: &[String],
    variable: impl Fn(&str) -> Option<String>,
    own_uid: u32,
    uid_of: impl Fn(&str) -> Option<u32>,
) -> Result<Built, Mistake> {
    let parsed = getopt::parse(FLAGS, Operands::Mixed, arguments)
        .map_err(|text| Mistake(format!("scancel: {text}\nTry \"scancel --help\" for more information\n")))?;
    let mut plan = by_environment(variable, &uid_of)?;
    for (long, value) in &parsed.options {
        let value = value.as_deref().unwrap_or_default();
        let owned = || Some(value.to_string());
        match *long {
            "account" => plan.filter.account = Some(value.to_lowercase()),
            "batch" => plan.scope = Scope::BatchShell,
            "full" => plan.scope = Scope::Everything,
            "help" => return Ok(Built::Answer(HELP.to_string())),
            "usage" => return Ok(Built::Answer(USAGE.to_string())),
            "version" => return Ok(Built::Answer(version::line())),
            "interactive" => plan.asks = true,
            "me" => plan.filter.uid = Some(own_uid),
            "name" | "jobname" => plan.filter.name = owned(),
            "nodelist" => {
                plan.filter.nodes =
                    hostlist::expand(value).map_err(|why| error(format!("Invalid node list: {why}")))?;
            }
            "partition" => plan.filter.partition = owned(),
            "qos" => plan.filter.qos = Some(value.to_lowercase()),
            "quiet" => plan.is_quiet = true,
            "reservation" => plan.filter.reservation = owned(),
            "signal" => {
                let signal = signal::parse(value).ok_or_else(|| Mistake(format!("Unknown job signal: {value}\n")))?;
                plan.signal = Some(signal);
            }
            "state" => plan.filter.state = Some(state(value)?),
            "user" => {
                plan.filter.uid = Some(uid_of(value).ok_or_else(|| error(format!("Invalid user name: {value}")))?);
            }
            "verbose" => plan.verbosity += 1,
            "wckey" => plan.filter.wckey = owned(),
            "clusters" => plan.clusters = value.split(',').map(str::to_string).collect(),
            "admin-comment" | "sibling" => {
                return Err(error(format!("--{long} is not supported by this version of Spur")));
            }
            "hurry" => plan.hurry = true,
            // Requests always go through the controller, and no job is one of scrontab's that only `--cron` ends.
            "ctld" | "cron" => {}
            other => unreachable!("{other} is not in the table"),
        }
    }
    for word in parsed.operands.iter().flat_map(|operand| words(operand)) {
        plan.targets.push(job_ids::parse(word).ok_or_else(|| error(format!("Invalid job id {word}")))?);
    }
    if plan.targets.is_empty() && plan.filter.is_empty() {
        return Err(error("No job identification provided"));
    }
    if plan.is_quiet {
        plan.verbosity = 0;
    }
    Ok(Built::Plan(Box::new(plan)))
}

/// What `SCANCEL_…` variables ask for; options go before them.
fn by_environment(
    variable: impl Fn(&str) -> Option<String>,
    uid_of: impl Fn(&str) -> Option<u32>,
) -> Result<Plan, Mistake> {
    let is_on = |name: &str| {
        let value = variable(name)?;
        match value.chars().next() {
            Some('t' | 'T') => Some(Ok(true)),
            Some('f' | 'F') => Some(Ok(false)),
            _ => Some(Err(error(format!("Unrecognized {name} value: {value}")))),
        }
    };
    let flag = |name: &str| is_on(name).transpose().map(|flag| flag == Some(true));
    let mut plan = Plan { hurry: variable("SCANCEL_HURRY").is_some(), ..Plan::default() };
    // Accounts and QOS are known in small letters.
    plan.filter.account = variable("SCANCEL_ACCOUNT").map(|name| name.to_lowercase());
    plan.filter.name = variable("SCANCEL_NAME");
    plan.filter.partition = variable("SCANCEL_PARTITION");
    plan.filter.qos = variable("SCANCEL_QOS").map(|name| name.to_lowercase());
    plan.filter.wckey = variable("SCANCEL_WCKEY");
    if flag("SCANCEL_BATCH")? {
        plan.scope = Scope::BatchShell;
    }
    if flag("SCANCEL_FULL")? {
        plan.scope = Scope::Everything;
    }
    plan.asks = flag("SCANCEL_INTERACTIVE")?;
    plan.verbosity = flag("SCANCEL_VERBOSE")?.into();
    if let Some(text) = variable("SCANCEL_STATE") {
        let valid = "Valid job states are PENDING, RUNNING, and SUSPENDED";
        let wrong = |_| Mistake(format!("Unrecognized SCANCEL_STATE value: {text}\n{valid}\n"));
        plan.filter.state = Some(state(&text).map_err(wrong)?);
    }
    if let Some(name) = variable("SCANCEL_USER") {
        plan.filter.uid = Some(uid_of(&name).ok_or_else(|| error(format!("Invalid user name: {name}")))?);
    }
    Ok(plan)
}

/// An operand may be a list; an empty one is no id either.
fn words(operand: &str) -> Vec<&str> {
    match job_ids::split_list(operand) {
        words if words.is_empty() => vec![operand],
        words => words,
    }
}

fn state(text: &str) -> Result<JobState, Mistake> {
    let known = text.parse().ok();
    known.filter(|state| matches!(state, JobState::Pending | JobState::Running | JobState::Suspended)).ok_or_else(
        || {
            Mistake(format!(
                "Invalid job state specified: {text}\nValid job states are PENDING, RUNNING, and SUSPENDED\n"
            ))
        },
    )
}

pub fn run(arguments: &[String]) -> i32 {
    let own_uid = users::own_uid();
    let plan = match build(arguments, |name| std::env::var(name).ok(), own_uid, uid_of) {
        Ok(Built::Answer(text)) => {
            crate::output::print(&text);
            return 0;
        }
        Ok(Built::Plan(mut plan)) => {
            if let Some(names) = std::env::var("SLURM_CLUSTERS").ok().filter(|_| plan.clusters.is_empty()) {
                plan.clusters = names.split(',').filter(|name| !name.is_empty()).map(str::to_string).collect();
            }
            plan
        }
        Err(Mistake(text)) => {
            eprint!("{text}");
            return 1;
        }
    };
    context::ask(carry_out(*plan)).unwrap_or_else(|why| {
        eprintln!("scancel: error: {why}");
        1
    })
}

async fn carry_out(mut plan: Plan) -> Result<i32, String> {
    let cluster = context::cluster()?;
    if let Some(other) = plan.clusters.iter().find(|name| **name != cluster.cluster_name && *name != "all") {
        return Err(format!(
            "'{other}' can't be reached now, or it is an invalid entry for --cluster.  \
             Use 'sacctmgr list clusters' to see available clusters."
        ));
    }
    let mut controller = context::controller(&cluster).await?;
    if !plan.filter.is_empty() || plan.asks {
        plan.targets = chosen(&mut controller, &plan).await?;
    }
    let mut code = 0;
    let mut jobs = Vec::new();
    for target in plan.targets.clone() {
        match target.step {
            Some(step) => code = code.max(one_step(&mut controller, &plan, &target.job, step).await),
            None => jobs.push(target.job),
        }
    }
    if !jobs.is_empty() {
        code = code.max(whole_jobs(&mut controller, &plan, jobs).await?);
    }
    Ok(code)
}

/// The targets that pass the filter, each confirmed where the user wants to be asked.
async fn chosen(controller: &mut Controller, plan: &Plan) -> Result<Vec<Target>, String> {
    let filter = JobFilter {
        jobs: plan.targets.iter().map(|target| target.job.clone()).collect(),
        uids: plan.filter.uid.into_iter().collect(),
        with_finished: !plan.targets.is_empty(),
        ..JobFilter::default()
    };
    let jobs = match controller.all_jobs(&filter).await {
        Ok(page) => page.jobs,
        Err(CallError::Refused(Reject::NoSuchJob)) => Vec::new(),
        Err(error) => return Err(error.to_string()),
    };
    // The data of one that is over can still be given up.
    let has_something = |job: &Job| !job.is_over() || plan.hurry && job.is_staging_out();
    // Who is named and cannot be meant is told; what only filters leave out is not.
    let can_be_meant = |target: &Target| jobs.iter().any(|job| has_something(job) && names(&target.job, job));
    for target in plan.targets.iter().filter(|target| !can_be_meant(target)) {
        let is_known = jobs.iter().any(|job| names(&target.job, job));
        let why = if is_known { Reject::AlreadyOver } else { Reject::NoSuchJob };
        if !plan.is_quiet {
            eprintln!("scancel: error: Kill job error on job id {}: {why}", shown(&target.job));
        }
    }
    let passes = |job: &&Job| has_something(job) && plan.filter.passes(job);
    if plan.verbosity > 0 && !plan.filter.is_empty() && !jobs.iter().any(|job| passes(&job)) {
        eprintln!("scancel: error: No active jobs match ALL job filters, including: {}", plan.filter.told());
    }
    let meant: BTreeSet<JobId> = jobs.iter().filter(passes).map(|job| job.id).collect();
    // Whoever ends a whole ends its components.
    let is_covered =
        |job: &Job| job.het.as_ref().is_some_and(|het| het.leader != job.id && meant.contains(&het.leader));
    let mut targets = Vec::new();
    for job in jobs.iter().filter(|job| meant.contains(&job.id)) {
        let steps: Vec<StepId> =
            plan.targets.iter().filter(|target| names(&target.job, job)).filter_map(|target| target.step).collect();
        if steps.is_empty() && !is_covered(job) {
            let target = Target { job: reference(job), step: None };
            if !plan.asks || confirm(&format!("job_id={}", shown(&target.job)), job) {
                targets.push(target);
            }
        }
        for step in steps {
            if !plan.asks || confirm(&format!("step_id={}.{step}", reference(job)), job) {
                targets.push(Target { job: job.id.into(), step: Some(step) });
            }
        }
    }
    Ok(targets)
}

fn names(named: &JobRef, job: &Job) -> bool {
    if job.het.is_some() {
        return is_meant(named, job);
    }
    let is_task = |tasks: &model::TaskSet| job.array_task().is_some_and(|task| tasks.contains(task));
    match &named.tasks {
        None => named.job == job.id || Some(named.job) == job.array_id(),
        Some(tasks) => Some(named.job) == job.array_id() && (is_task(tasks) || job.waiting_tasks.is_some()),
    }
}

/// How the record is addressed so that exactly it is meant.
fn reference(job: &Job) -> JobRef {
    match (job.array_id(), job.array_task(), &job.waiting_tasks) {
        (Some(array), Some(task), _) => JobRef::task(array, task),
        (Some(array), None, Some(waiting)) => JobRef::tasks(array, waiting.clone()),
        _ => job.id.into(),
    }
}

fn confirm(what: &str, job: &Job) -> bool {
    let mut answer = String::new();
    loop {
        print!("Cancel {what} name={} partition={} [y/n]? ", job.spec.name, job.partition);
        answer.clear();
        match std::io::stdin().read_line(&mut answer) {
            Ok(0) | Err(_) => return false,
            Ok(_) => match answer.trim().chars().next() {
                Some('y' | 'Y') => return true,
                Some('n' | 'N') => return false,
                _ => {}
            },
        }
    }
}

/// All jobs in one call.
async fn whole_jobs(controller: &mut Controller, plan: &Plan, jobs: Vec<JobRef>) -> Result<i32, String> {
    let ends = match (plan.signal, plan.scope) {
        (None, Scope::Steps | Scope::Everything) => true,
        (Some(Signal::KILL), Scope::Steps | Scope::Everything) => true,
        (None | Some(_), _) => false,
    };
    let kind = if plan.scope == Scope::BatchShell { "batch " } else { "" };
    if plan.verbosity > 0 {
        for job in &jobs {
            match ends {
                true => eprintln!("scancel: Terminating {kind}job {}", shown(job)),
                false => eprintln!("scancel: Signal {} to {kind}job {}", signal_of(plan).number(), shown(job)),
            }
        }
    }
    let answer = if ends {
        controller.command_each(Command::Cancel { jobs: jobs.clone(), hurry: plan.hurry }).await
    } else {
        let scope = match plan.scope {
            Scope::Steps => SignalScope::Steps,
            Scope::BatchShell => SignalScope::BatchShell,
            Scope::Everything => SignalScope::Everything,
        };
        let request = SignalRequest {
            jobs: jobs.clone(),
            signal: signal_of(plan).number().into(),
            scope,
            message: String::new(),
        };
        controller.signal(&request).await
    };
    let mut results = match answer {
        Ok(results) => results,
        // One job that cannot be had may be refused as a whole.
        Err(CallError::Refused(reject)) => {
            jobs.iter().map(|job| JobResult { job: job.clone(), result: Err(reject.clone()) }).collect()
        }
        Err(error) => return Err(error.to_string()),
    };
    let missing = missing_tasks(&jobs, &results, ends);
    results.extend(missing);
    let is_tolerant = ends && plan.signal.is_none();
    let code = report(&results, is_tolerant, plan.verbosity > 0, plan.is_quiet);
    if is_tolerant && !plan.hurry && !plan.is_quiet {
        tell_of_data(controller, &results, plan.verbosity > 0).await;
    }
    Ok(code)
}

/// Tasks that were named and that nothing was heard of. As in Slurm, who ends them is told what was named, who signals them of each.
fn missing_tasks(jobs: &[JobRef], results: &[JobResult], ends: bool) -> Vec<JobResult> {
    let refused = |job: JobRef| JobResult { job, result: Err(Reject::NoSuchJob) };
    let mut missing = Vec::new();
    for named in jobs {
        let Some(mut left) = named.tasks.clone() else { continue };
        for heard in results.iter().map(|one| &one.job).filter(|heard| heard.job == named.job) {
            match &heard.tasks {
                Some(tasks) => left.remove_all(tasks),
                None => left = TaskSet::new(),
            }
        }
        match ends {
            true if !left.is_empty() => missing.push(refused(named.clone())),
            true => (),
            false => missing.extend(left.iter().map(|task| refused(JobRef::task(named.job, task)))),
        }
    }
    missing
}

/// Whoever ends a job whose data is still on its way out is told that this changes nothing, and what would.
async fn tell_of_data(controller: &mut Controller, results: &[JobResult], is_told: bool) {
    let over = results.iter().filter(|one| one.result == Err(Reject::AlreadyOver)).map(|one| one.job.clone());
    let filter = JobFilter { jobs: over.collect(), with_finished: true, ..JobFilter::default() };
    if filter.jobs.is_empty() {
        return;
    }
    // Only a hint: if it cannot be had, there is none.
    let Ok(page) = controller.all_jobs(&filter).await else { return };
    for named in
        filter.jobs.iter().filter(|named| page.jobs.iter().any(|job| job.is_staging_out() && names(named, job)))
    {
        if !is_told {
            eprintln!("scancel: error: Kill job error on job id {}: {}", shown(named), Reject::AlreadyOver);
        }
        eprintln!("scancel: its data is being staged out: --hurry gives it up");
    }
}

/// `12`, `12_3`, `12_[3-5]`
fn shown(job: &JobRef) -> String {
    match &job.tasks {
        Some(tasks) if tasks.len() != 1 => format!("{}_[{tasks}]", job.job),
        _ => job.to_string(),
    }
}

fn signal_of(plan: &Plan) -> Signal {
    plan.signal.unwrap_or(Signal::KILL)
}

/// As Slurm leaves: what remains of its number for this in a byte.
const DENIED: i32 = 2002 & 0xff;

/// Says what failed; a job that is over, or unknown, is no failure for someone who wants it gone.
fn report(results: &[JobResult], is_tolerant: bool, is_verbose: bool, is_quiet: bool) -> i32 {
    let mut code = 0;
    let mut said = BTreeSet::new();
    for JobResult { job, result } in results {
        let Err(reject) = result else { continue };
        let is_gone = matches!(reject, Reject::NoSuchJob | Reject::AlreadyOver);
        let line = format!("scancel: error: Kill job error on job id {}: {reject}", shown(job));
        if (!(is_gone && is_tolerant) || is_verbose) && !(is_quiet && is_gone) && said.insert(line.clone()) {
            eprintln!("{line}");
        }
        if !(is_gone && is_tolerant) {
            code = code.max(if *reject == Reject::NotPermitted { DENIED } else { 1 });
        }
    }
    code
}

async fn one_step(controller: &mut Controller, plan: &Plan, job: &JobRef, step: StepId) -> i32 {
    match step_call(controller, plan, job, step).await {
        Ok(()) => 0,
        Err(CallError::Refused(reject)) => {
            if !plan.is_quiet {
                eprintln!("scancel: error: Kill job error on job step id {job}.{step}: {reject}");
            }
            1
        }
        Err(error) => {
            eprintln!("scancel: error: {error}");
            1
        }
    }
}

async fn step_call(controller: &mut Controller, plan: &Plan, job: &JobRef, step: StepId) -> Result<(), CallError> {
    if let (None | Some(Signal::KILL), StepId::Number(_)) = (plan.signal, step) {
        let id = match (&job.tasks, job.component) {
            (None, None) => job.job,
            _ => task_id(controller, job).await?,
        };
        if plan.verbosity > 0 {
            eprintln!("scancel: Terminating step {job}.{step}");
        }
        controller.command(Command::CancelStep { job: id, step }).await?;
        return Ok(());
    }
    let scope = match step {
        StepId::Batch => SignalScope::BatchShell,
        StepId::Number(_) => SignalScope::Step(step),
    };
    if plan.verbosity > 0 {
        eprintln!("scancel: Signal {} to step {job}.{step}", signal_of(plan).number());
    }
    let request = SignalRequest {
        jobs: vec![job.clone()],
        signal: signal_of(plan).number().into(),
        scope,
        message: String::new(),
    };
    for JobResult { result, .. } in controller.signal(&request).await? {
        result.map_err(CallError::Refused)?;
    }
    Ok(())
}

async fn task_id(controller: &mut Controller, job: &JobRef) -> Result<model::JobId, CallError> {
    let filter = JobFilter { jobs: vec![job.clone()], ..JobFilter::default() };
    let page = controller.all_jobs(&filter).await?;
    let task = page.jobs.iter().find(|job| job.array_task().is_some() || job.het.is_some());
    task.map(|job| job.id).ok_or(CallError::Refused(Reject::NoSuchJob))
}

/// A number counts only if it is a user's.
fn uid_of(name: &str) -> Option<u32> {
    users::uid_of(name).filter(|uid| users::user_name(*uid).is_some())
}

const USAGE: &str = "\
Usage: scancel [-A account] [--batch] [--full] [--interactive] [-n job_name]
               [-p partition] [-Q] [-q qos] [-R reservation] [-s signal | integer]
               [-t PENDING | RUNNING | SUSPENDED] [--usage] [-u user_name]
               [--hurry] [-V] [-v] [-w hosts...] [--wckey=wckey]
               [job_id[_array_id][.step_id]]
";

pub const HELP: &str = "\
Usage: scancel [OPTIONS] [job_id[_array_id][.step_id]]

  -A, --account=account           only jobs of this account
  -b, --batch                     signal the batch shell only
      --cron                      no difference: no job here is scrontab's
      --ctld                      no difference: everything goes through the controller
  -f, --full                      signal the batch shell and all steps
  -H, --hurry                     no stage out for burst buffers
  -i, --interactive               ask before each job
      --me                        only own jobs
  -M, --clusters=name             the cluster to ask; only the configured one is known
  -n, --name=job_name             only jobs with this name; also --jobname
  -p, --partition=partition       only jobs in this partition
  -Q, --quiet                     no messages about jobs that are gone
  -q, --qos=qos                   only jobs of this quality of service
  -R, --reservation=reservation   only jobs in this reservation
  -s, --signal=name | integer     send this signal instead of ending the job
  -t, --state=state               only jobs that are PENDING, RUNNING or SUSPENDED
  -u, --user=user_name            only jobs of this user
  -V, --version                   show the version
  -v, --verbose                   say what is done
  -w, --nodelist                  only jobs on these nodes
      --wckey=wckey               only jobs with this workload key

Help options:
      --help                      show this text
      --usage                     show the options in short
";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Result<&str, &str>) {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        let known = |name: &str| (name == "root").then_some(0);
        let shown = match build(&arguments, |_| None, 7, known) {
            Ok(Built::Answer(text)) => Ok(text),
            Ok(Built::Plan(plan)) => {
                let target = |target: &Target| match target.step {
                    Some(step) => format!("{}.{step}", target.job),
                    None => target.job.to_string(),
                };
                Ok(plan.targets.iter().map(target).collect::<Vec<_>>().join(" "))
            }
            Err(Mistake(text)) => Err(text),
        };
        assert_eq!(shown.as_ref().map(String::as_str).map_err(String::as_str), expected, "{line}");
    }

    #[test]
    fn variables_ask_for_what_options_leave_open() {
        let planned = |line: &str, environment: &[(&str, &str)]| {
            let arguments: Vec<String> = line.split_whitespace().map(str::to_string).collect();
            let variable = |name: &str| {
                environment
                    .iter()
                    .find(|(known, _)| name == format!("SCANCEL_{known}"))
                    .map(|(_, value)| value.to_string())
            };
            match build(&arguments, variable, 7, |name| (name == "root").then_some(0)) {
                Ok(Built::Plan(plan)) => Ok(*plan),
                Ok(Built::Answer(text)) | Err(Mistake(text)) => Err(text),
            }
        };
        let plan = planned("", &[("STATE", "PENDING"), ("USER", "root"), ("NAME", "x"), ("VERBOSE", "true")]).unwrap();
        let filter = &plan.filter;
        assert_eq!((filter.state, filter.uid, filter.name.as_deref()), (Some(JobState::Pending), Some(0), Some("x")));
        assert_eq!(plan.verbosity, 1);
        let plan = planned("-t RUNNING 5", &[("STATE", "PENDING"), ("BATCH", "t"), ("FULL", "f")]).unwrap();
        assert_eq!((plan.filter.state, plan.scope), (Some(JobState::Running), Scope::BatchShell));
        let plan = planned("-A AcctB", &[("QOS", "High"), ("ACCOUNT", "other")]).unwrap();
        assert_eq!((plan.filter.account.as_deref(), plan.filter.qos.as_deref()), (Some("acctb"), Some("high")));
        let wrong = planned("5", &[("BATCH", "1")]).unwrap_err();
        assert_eq!(wrong, "scancel: error: Unrecognized SCANCEL_BATCH value: 1\n");
        assert!(planned("5", &[("STATE", "x")]).unwrap_err().starts_with("Unrecognized SCANCEL_STATE value: x\n"));
    }

    #[test]
    fn tasks_that_are_not_there_are_told() {
        let job = |text: &str| job_ids::parse_job(text).unwrap();
        let heard = [JobResult { job: job("9_[3-6]"), result: Ok(()) }];
        let told = |named: &str, ends| {
            let missing = missing_tasks(&[job(named)], &heard, ends);
            missing.iter().map(|one| shown(&one.job)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told("9_[2-7]", true), "9_[2-7]");
        assert_eq!(told("9_[2-7]", false), "9_2 9_7");
        assert_eq!((told("9_[3-4]", true), told("9", false)), (String::new(), String::new()));
    }

    #[test]
    fn jobs_are_named_in_every_form() {
        check("12 13", Ok("12 13"));
        check("-M here,there 12", Ok("12"));
        check("1,2", Ok("1 2"));
        check("12_3 12.0", Ok("12_3 12.0"));
        check("-u root", Ok(""));
        check("--me -t PD", Ok(""));
    }

    #[test]
    fn mistakes_are_told_as_slurm_tells_them() {
        check("", Err("scancel: error: No job identification provided\n"));
        check("x", Err("scancel: error: Invalid job id x\n"));
        check("1 x", Err("scancel: error: Invalid job id x\n"));
        check("0", Err("scancel: error: Invalid job id 0\n"));
        check("999999_[1", Err("scancel: error: Invalid job id 999999_[1\n"));
        check("-1", Err("scancel: invalid option -- '1'\nTry \"scancel --help\" for more information\n"));
        check(
            "--nosuch",
            Err("scancel: unrecognized option '--nosuch'\nTry \"scancel --help\" for more information\n"),
        );
        check("-s", Err("scancel: option requires an argument -- 's'\nTry \"scancel --help\" for more information\n"));
        check("-s NOSUCH 1", Err("Unknown job signal: NOSUCH\n"));
        check("-s 0 1", Err("Unknown job signal: 0\n"));
        let states = "Valid job states are PENDING, RUNNING, and SUSPENDED";
        check("-t nosuch", Err(&format!("Invalid job state specified: nosuch\n{states}\n")));
        check("-u nosuch", Err("scancel: error: Invalid user name: nosuch\n"));
    }
}
