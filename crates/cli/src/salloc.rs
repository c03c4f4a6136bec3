//! `salloc`: holds an allocation while the user's command, or a shell, runs in it.
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus as ProcessStatus, Stdio};
use std::time::Duration;

use config::Client;
use model::command::Blob;
use model::spec::Memory;
use model::{Command, ExitStatus, Job, JobKind, JobSpec, hostlist};
use tokio::process::Child;
use wire::Controller;

use crate::allocation::{self, Failed, Granted};
use crate::data_back;
use crate::sbatch::{error_code, question};
use crate::submit::request::{Behaviour, Bell};
use crate::submit::spec::finish;
use crate::submit::{Caller, Problem, Program, Request, components, export, help, login};
use crate::watch::Watch;

use crate::submit::start::{Built, start};

const PROGRAM: Program = Program::Salloc;
/// A wait that is worth a bell.
const BELL_AFTER: Duration = Duration::from_secs(10);

/// What the arguments come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub spec: JobSpec,
    /// The other components of a heterogeneous job.
    pub more: Vec<JobSpec>,
    pub blobs: Vec<Blob>,
    pub behaviour: Behaviour,
    /// The user's command, or the shell.
    pub command: Vec<String>,
    /// For stderr.
    pub talk: String,
    /// Options that steps in the allocation find as variables.
    pub told: Vec<(String, String)>,
}

/// Everything up to the first call, without sockets.
pub fn build(arguments: &[String], caller: &Caller) -> Result<Built<Plan>, Problem> {
    let mut sections = components::sections(PROGRAM, arguments)?;
    if let Some(question) = sections.iter().find_map(question) {
        return Ok(Built::Answer(help::answer(PROGRAM, question)));
    }
    let mut requests = components::requests(PROGRAM, &sections, caller, None)?;
    let environment = Blob::of(export::environment(PROGRAM, None, caller));
    let no_shell = requests.iter().any(|request| request.behaviour.no_shell);
    let (mut specs, mut talk) = (Vec::new(), String::new());
    for request in &requests {
        let finished = finish(PROGRAM, request, caller)?;
        let mut spec = finished.spec;
        if spec.name.is_empty() {
            let name = if no_shell { "no-shell" } else { "interactive" };
            spec.name = name.to_string();
        }
        spec.environment = environment.id;
        spec.kind = JobKind::Allocation;
        specs.push(spec);
        talk.extend(finished.warnings.iter().map(|line| format!("salloc: {line}\n")));
        if request.behaviour.verbosity > 0 {
            talk.push_str(&help::defined_options(PROGRAM, request));
        }
    }
    let given = export::told(&requests[0]);
    let mut told = login_variables(&requests[0], caller)?;
    told.extend(given.filter_map(|(name, value)| Some((name.to_string(), value?))));
    // The last has inherited what the others said of it.
    let behaviour = requests.pop().expect("there is always one").behaviour;
    let operands = sections.pop().expect("there is always one").operands;
    let command = if operands.is_empty() { vec![shell(caller)] } else { operands };
    let spec = specs.remove(0);
    Ok(Built::Carry(Box::new(Plan { spec, more: specs, blobs: vec![environment], behaviour, command, talk, told })))
}

/// `--get-user-env`: what the command finds beside its caller's environment.
fn login_variables(request: &Request, caller: &Caller) -> Result<Vec<(String, String)>, Problem> {
    let Some(asked) = request.login else { return Ok(Vec::new()) };
    if caller.uid != 0 {
        return Err(Problem::error("SlurmdUser must be root to use --get-user-env"));
    }
    let account = request.user.as_ref().unwrap_or_else(|| caller.account());
    let text = |word: OsString| word.into_string().ok();
    let variables = login::environment(asked, account, caller)?.into_iter();
    Ok(variables.filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect())
}

fn shell(caller: &Caller) -> String {
    let own = caller.variable("SHELL").unwrap_or_else(|| &caller.account().shell);
    if own.is_empty() { "/bin/sh".to_string() } else { own.to_string() }
}

pub fn run(arguments: &[String]) -> i32 {
    start(PROGRAM, |caller| build(arguments, caller), carry_out)
}

async fn carry_out(cluster: &Client, plan: Plan) -> i32 {
    eprint!("{}", plan.talk);
    eprint!("{}", help::connections(PROGRAM, plan.behaviour.verbosity, cluster));
    let Plan { spec, more, blobs, behaviour, command, .. } = &plan;
    let specs: Vec<JobSpec> = std::iter::once(spec).chain(more).cloned().collect();
    let granted = match allocation::obtain(PROGRAM, cluster, &specs, blobs, behaviour).await {
        Ok(granted) => granted,
        Err(Failed(code)) => return code,
    };
    ring(behaviour.bell, granted.waited);
    let id = granted.job.id;
    say(behaviour, &format!("Granted job allocation {id}"));
    if behaviour.no_shell {
        return 0;
    }
    let Granted { job, page, mut watch, .. } = granted;
    if job.hook.is_some() && !await_nodes(&job, &mut watch, behaviour).await {
        return error_code(1);
    }
    let mut variables = match more.is_empty() {
        true => variables(&job, spec, &cluster.cluster_name),
        false => het_variables(&page.jobs, &cluster.cluster_name),
    };
    variables.extend(buffer_variables(&page.jobs));
    variables.extend(plan.told.clone());
    let child = match spawn(command, &job, variables) {
        Ok(child) => child,
        Err(why) => {
            eprintln!("salloc: error: {why}");
            relinquish(cluster, &job, behaviour, ExitStatus::exited(1)).await;
            return error_code(1);
        }
    };
    let (status, is_revoked) = attend(child, watch, &job, behaviour).await;
    let exit = ExitStatus::from_wait_status(status.into_raw());
    if !is_revoked {
        relinquish(cluster, &job, behaviour, exit).await;
    }
    let is_whole = !behaviour.waits_for_data || data_back::wait("salloc", cluster, job.id).await;
    if is_whole { code(exit) } else { code(exit).max(1) }
}

/// A command that a signal ended gives what Slurm's salloc gives.
fn code(exit: ExitStatus) -> i32 {
    match exit.signal {
        0 => exit.code.into(),
        signal if i32::from(signal) == libc::SIGKILL => 0,
        _ => 1,
    }
}

/// The nodes are being prepared; false: that failed, and the allocation is gone.
async fn await_nodes(job: &Job, watch: &mut Watch, behaviour: &Behaviour) -> bool {
    say(behaviour, "Waiting for resource configuration");
    loop {
        let page = watch.next().await;
        let now = page.ok().and_then(|page| page.jobs.into_iter().find(|known| known.id == job.id));
        match now {
            Some(now) if now.is_over() => break,
            Some(now) if now.hook.is_none() => {
                let nodes = hostlist::compress_in_order(now.allocation.names().map(|name| name.as_str()));
                say(behaviour, &format!("Nodes {nodes} are ready for job"));
                return true;
            }
            Some(_) => {}
            None => break,
        }
    }
    say(behaviour, &format!("Job allocation {} has been revoked.", job.id));
    eprintln!("salloc: error: Job allocation {} has been revoked", job.id);
    false
}

fn ring(bell: Bell, waited: Duration) {
    let is_due = match bell {
        Bell::Always => true,
        Bell::AfterDelay => waited >= BELL_AFTER,
        Bell::Never => false,
    };
    if is_due && crate::output::TalkStream::Stdout.is_terminal() {
        crate::output::draw("\x07");
    }
}

fn say(behaviour: &Behaviour, text: &str) {
    if !behaviour.is_quiet {
        eprintln!("salloc: {text}");
    }
}

fn spawn(command: &[String], job: &Job, variables: Vec<(String, String)>) -> Result<Child, String> {
    let program = &command[0];
    let mut process = tokio::process::Command::new(program);
    process.args(&command[1..]).envs(variables).current_dir(&job.spec.work_dir).stdin(Stdio::inherit());
    process.spawn().map_err(|error| {
        // A folder of PATH that is closed to the caller has no say about names that are nowhere else.
        let is_nowhere = match error.kind() {
            ErrorKind::NotFound => true,
            ErrorKind::PermissionDenied => !program.contains('/'),
            _ => false,
        };
        match is_nowhere {
            true => format!("_fork_command: Unable to find command \"{program}\""),
            false => format!("_fork_command: Unable to run command \"{program}\": {error}"),
        }
    })
}

/// Waits for the command; tells the user, and the command if it is to know, when the allocation goes first.
async fn attend(mut child: Child, mut watch: Watch, job: &Job, behaviour: &Behaviour) -> (ProcessStatus, bool) {
    let mut signals = crate::srun::signals::Signals::new();
    let mut is_revoked = false;
    let mut is_watching = true;
    loop {
        tokio::select! {
            biased;
            status = child.wait() => {
                return (status.unwrap_or_else(|_| ProcessStatus::from_raw(1 << 8)), is_revoked);
            }
            heard = signals.next() => {
                use crate::srun::signals::Heard;
                match heard {
                    // The terminal gives these to the command as well.
                    Heard::Interrupt | Heard::End(libc::SIGQUIT) | Heard::Resized => {}
                    Heard::End(signal) | Heard::Forward(signal) => signal_child(&child, signal),
                }
            }
            page = watch.next(), if is_watching && !is_revoked => match page {
                Ok(page) => {
                    page.notices.iter().for_each(|text| eprintln!("salloc: {text}"));
                    let now = page.jobs.iter().find(|known| known.id == job.id);
                    if now.is_none_or(|now| now.is_over()) {
                        is_revoked = true;
                        say(behaviour, &format!("Job allocation {} has been revoked.", job.id));
                        if let Some(signal) = behaviour.kill_command {
                            signal_child(&child, signal as i32);
                        }
                    }
                }
                Err(_) => is_watching = false,
            },
        }
    }
}

fn signal_child(child: &Child, signal: i32) {
    if let Some(pid) = child.id() {
        // SAFETY: a plain system call; the child is not reaped while its id is known.
        unsafe { libc::kill(pid as i32, signal) };
    }
}

async fn relinquish(cluster: &Client, job: &Job, behaviour: &Behaviour, exit: ExitStatus) {
    say(behaviour, &format!("Relinquishing job allocation {}", job.id));
    let command = Command::Complete { job: job.id, exit };
    let done = match Controller::connect(&cluster.controller_socket).await {
        Ok(mut controller) => controller.command(command).await.map(drop),
        Err(error) => Err(error),
    };
    match done {
        Ok(()) | Err(wire::CallError::Refused(model::Reject::AlreadyOver | model::Reject::NoSuchJob)) => {}
        Err(error) => eprintln!("salloc: error: Unable to clean up job allocation {}: {error}", job.id),
    }
}

/// What the command finds in its environment, each name with a `SPUR_` twin.
pub fn variables(job: &Job, spec: &JobSpec, cluster_name: &str) -> Vec<(String, String)> {
    let nodes = hostlist::compress_in_order(job.allocation.names().map(|name| name.as_str()));
    let n_nodes = job.allocation.nodes.len().to_string();
    let id = job.id.to_string();
    let cpus = by_node(job.allocation.nodes.iter().map(|share| share.n_working_cpus()));
    let tasks = by_node(job.allocation.nodes.iter().map(|share| share.n_tasks_told(&spec.size)));
    let mut known: Vec<(&str, String)> = vec![
        ("CLUSTER_NAME", cluster_name.to_string()),
        ("JOBID", id.clone()),
        ("JOB_CPUS_PER_NODE", cpus),
        ("JOB_ID", id),
        ("JOB_NAME", spec.name.clone()),
        ("JOB_NODELIST", nodes.clone()),
        ("JOB_NUM_NODES", n_nodes.clone()),
        ("JOB_PARTITION", job.partition.clone()),
        ("NNODES", n_nodes),
        ("NODELIST", nodes),
        ("NODE_ALIASES", "(null)".to_string()),
        ("SUBMIT_DIR", std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned()),
        ("SUBMIT_HOST", spec.submit_host.clone()),
        ("TASKS_PER_NODE", tasks),
    ];
    let size = &spec.size;
    let mut add = |name: &'static str, value: Option<String>| known.extend(value.map(|value| (name, value)));
    let n_tasks =
        size.n_tasks.or_else(|| size.tasks_per_node.map(|per_node| per_node * job.allocation.nodes.len() as u32));
    add("NTASKS", n_tasks.map(|count| count.to_string()));
    add("NPROCS", n_tasks.map(|count| count.to_string()));
    add("NTASKS_PER_NODE", size.tasks_per_node.map(|count| count.to_string()));
    add("CPUS_PER_TASK", size.cpus_per_task.map(|count| count.to_string()));
    // The job knows what was filled in for it.
    add("JOB_ACCOUNT", Some(job.spec.account.clone()).filter(|account| !account.is_empty()));
    add("JOB_QOS", Some(job.spec.qos.clone()).filter(|qos| !qos.is_empty()));
    add("OVERCOMMIT", size.overcommit.then(|| "1".to_string()));
    match size.memory {
        Memory::PerNodeMb(megabytes) => add("MEM_PER_NODE", Some(megabytes.to_string())),
        Memory::PerCpuMb(megabytes) => add("MEM_PER_CPU", Some(megabytes.to_string())),
        Memory::PerGpuMb(megabytes) => add("MEM_PER_GPU", Some(megabytes.to_string())),
        Memory::Default | Memory::WholeNode => {}
    }
    known
        .into_iter()
        .flat_map(|(name, value)| [(format!("SLURM_{name}"), value.clone()), (format!("SPUR_{name}"), value)])
        .collect()
}

/// Where the allocation's burst buffers are.
fn buffer_variables(jobs: &[Job]) -> impl Iterator<Item = (String, String)> {
    let all = jobs.iter().flat_map(|job| &job.buffer_environment);
    all.filter_map(|variable| variable.split_once('=')).map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// What a command in a heterogeneous allocation finds: each component's under the number of its group, and the sums.
pub fn het_variables(jobs: &[Job], cluster_name: &str) -> Vec<(String, String)> {
    const OF_ALL: [&str; 3] = ["CLUSTER_NAME", "SUBMIT_DIR", "SUBMIT_HOST"];
    let mut known: Vec<(String, String)> = Vec::new();
    let mut n_tasks = 0;
    for (group, job) in jobs.iter().enumerate() {
        for (name, value) in variables(job, &job.spec, cluster_name) {
            let Some(bare) = name.strip_prefix("SLURM_") else { continue };
            if OF_ALL.contains(&bare) {
                if group == 0 {
                    known.push((bare.to_string(), value));
                }
                continue;
            }
            known.push((format!("{bare}_HET_GROUP_{group}"), value.clone()));
            known.push((format!("{bare}_PACK_GROUP_{group}"), value));
        }
        n_tasks += job.spec.size.n_tasks_on(job.allocation.nodes.len() as u32);
    }
    let id = jobs.first().map(|job| job.id.to_string()).unwrap_or_default();
    for (name, value) in [
        ("HET_SIZE", jobs.len().to_string()),
        ("PACK_SIZE", jobs.len().to_string()),
        ("JOB_ID", id.clone()),
        ("JOBID", id),
        ("NTASKS", n_tasks.to_string()),
        ("NPROCS", n_tasks.to_string()),
    ] {
        known.push((name.to_string(), value));
    }
    known
        .into_iter()
        .flat_map(|(name, value)| [(format!("SLURM_{name}"), value.clone()), (format!("SPUR_{name}"), value)])
        .collect()
}

/// `2(x3),1`: equal neighbours are counted.
fn by_node(counts: impl Iterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for count in counts {
        match runs.last_mut() {
            Some((known, times)) if *known == count => *times += 1,
            _ => runs.push((count, 1)),
        }
    }
    let show = |(count, times): &(u32, u32)| match times {
        1 => count.to_string(),
        times => format!("{count}(x{times})"),
    };
    runs.iter().map(show).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<Plan, String> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        let account = crate::users::Account { shell: "/bin/zsh".into(), ..Default::default() };
        let caller = Caller { work_dir: "/home/ada".into(), account: account.into(), ..Caller::default() };
        match build(&arguments, &caller) {
            Ok(Built::Carry(plan)) => Ok(*plan),
            Ok(Built::Answer(text)) => Err(text),
            Err(problem) => Err(format!("{}={}", problem.show(PROGRAM), problem.code)),
        }
    }

    #[test]
    fn without_a_command_it_is_the_shell() {
        assert_eq!(plan("-n2").unwrap().command, ["/bin/zsh"]);
        assert_eq!(plan("-n2").unwrap().spec.name, "interactive");
        assert_eq!(plan("-n2 srun -n1 true").unwrap().command, ["srun", "-n1", "true"]);
        assert_eq!(plan("--no-shell").unwrap().spec.name, "no-shell");
    }

    #[test]
    fn mistakes_are_told_as_slurm_tells_them() {
        let check = |line: &str, expected: &str| assert_eq!(plan(line).unwrap_err(), expected, "{line}");
        let hint = "Try \"salloc --help\" for more information\n=255";
        check("--nosuch true", &format!("salloc: unrecognized option '--nosuch'\n{hint}"));
        check("--parsable true", &format!("salloc: unrecognized option '--parsable'\n{hint}"));
        check("-a 1 true", &format!("salloc: invalid option -- 'a'\n{hint}"));
        check("-n0 true", "salloc: error: Invalid numeric value \"0\" for --ntasks.\n=1");
        check("-w n[1 true", "salloc: error: Job submit/allocate failed: Invalid node name specified\n=1");
        check("--wait=5 true", "salloc: error: Invalid --wait-all-nodes specification\n=255");
    }

    #[test]
    fn equal_neighbours_are_counted() {
        assert_eq!(by_node([2, 2, 2, 1].into_iter()), "2(x3),1");
        assert_eq!(by_node([4].into_iter()), "4");
    }
}
