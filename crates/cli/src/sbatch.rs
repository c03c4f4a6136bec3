//! `sbatch`: hands a script to the cluster and says its number.
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use model::command::Blob;
use model::request::JobFilter;
use model::{Job, JobId, JobKind, JobSpec, Outcome, Reject};
use wire::CallError;

use crate::context;
use crate::data_back;
use crate::getopt::Parsed;
use crate::output::print;
use crate::submit::request::{Behaviour, Question};
use crate::submit::spec::finish;
use crate::submit::{Caller, Problem, Program, Request, components, directives, export, help};
use crate::watch::Watch;

const PROGRAM: Program = Program::Sbatch;

/// What the arguments come to.
#[derive(Clone, Debug, PartialEq)]
pub enum Built {
    /// Something to print, nothing to submit.
    Answer(String),
    Submission(Box<Submission>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    pub spec: JobSpec,
    /// The other components of a heterogeneous job.
    pub more: Vec<JobSpec>,
    pub blobs: Vec<Blob>,
    pub behaviour: Behaviour,
    /// For stderr, each line without the command's name.
    pub talk: String,
    /// The cluster was named, so `--parsable` names it too.
    pub names_cluster: bool,
}

/// Where the script is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    File(String),
    Stdin,
}

/// A script as it was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Its whole path; empty for standard input.
    pub path: String,
    pub content: Vec<u8>,
}

/// Everything up to the call, without sockets. `fetch` reads the script.
pub fn build(
    arguments: &[String],
    caller: &Caller,
    fetch: impl FnOnce(&Source) -> Result<Script, Problem>,
) -> Result<Built, Problem> {
    let sections = components::sections(PROGRAM, arguments)?;
    if let Some(question) = sections.iter().find_map(question) {
        return Ok(Built::Answer(help::answer(PROGRAM, question)));
    }
    let wrap = sections.iter().find_map(|parsed| parsed.value("wrap"));
    let operands = &sections.last().expect("there is always one").operands;
    let script = match (wrap, operands.first()) {
        (Some(_), Some(_)) => return Err(Problem::error("Script arguments not permitted with --wrap option")),
        (Some(command), None) => Script { path: String::new(), content: wrapped(command) },
        (None, Some(file)) => fetch(&Source::File(file.clone()))?,
        (None, None) => fetch(&Source::Stdin)?,
    };
    check(&script.content)?;
    let text = String::from_utf8_lossy(&script.content);
    let name = match (wrap, &script.path) {
        (Some(_), _) => "wrap",
        (None, path) if path.is_empty() => PROGRAM.name(),
        (None, path) => path.rsplit('/').next().unwrap_or(path),
    };
    let mut requests = components::requests(PROGRAM, &sections, caller, Some((name, &text)))?;
    if let Some(question) = requests.iter().find_map(|request| request.behaviour.asks) {
        return Ok(Built::Answer(help::answer(PROGRAM, question)));
    }
    let environment = Blob::of(export::of_batch(&requests[0], caller)?);
    let name = name.to_string();
    let mut talk = String::new();
    if directives::says_packjob(&text) {
        talk.push_str(
            "sbatch: Warning: the \"packjob\" component separator is being deprecated. Please, use \"hetjob\" instead.\n",
        );
    }
    let script_blob = Blob::of(with_directives(script.content, &mut requests));
    let mut specs = Vec::new();
    for request in &requests {
        let finished = finish(PROGRAM, request, caller)?;
        let mut spec = finished.spec;
        if spec.name.is_empty() {
            spec.name = name.clone();
        }
        spec.command = script.path.clone();
        spec.arguments = operands.iter().skip(1).cloned().collect();
        spec.environment = environment.id;
        spec.kind = JobKind::Batch { script: script_blob.id };
        specs.push(spec);
        talk.extend(finished.warnings.iter().map(|line| format!("sbatch: {line}\n")));
        if request.behaviour.verbosity > 0 {
            talk.push_str(&help::defined_options(PROGRAM, request));
        }
    }
    let names_cluster = requests.iter().any(|request| request.is_given("clusters"));
    // The last has inherited what the others said of it.
    let behaviour = requests.pop().expect("there is always one").behaviour;
    let spec = specs.remove(0);
    let blobs = vec![script_blob, environment];
    Ok(Built::Submission(Box::new(Submission { spec, more: specs, blobs, names_cluster, behaviour, talk })))
}

/// A question among the arguments is answered before anything is read.
pub fn question(parsed: &Parsed) -> Option<Question> {
    parsed.options.iter().find_map(|(long, value)| match (*long, value.as_deref()) {
        ("help", _) => Some(Question::Help),
        ("usage", _) => Some(Question::Usage),
        ("version", _) => Some(Question::Version),
        ("mpi", Some("list")) => Some(Question::MpiList),
        _ => None,
    })
}

fn wrapped(command: &str) -> Vec<u8> {
    format!("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{command}\n").into_bytes()
}

/// What `--bbf` names is put into the script, behind its first line, as in Slurm: whether it is directives or not.
/// The components of a heterogeneous job share a script, so they keep theirs beside it.
fn with_directives(mut script: Vec<u8>, requests: &mut [Request]) -> Vec<u8> {
    let [request] = requests else { return script };
    let mut added = std::mem::take(&mut request.spec.burst_buffer_file).into_bytes();
    if added.is_empty() {
        return script;
    }
    if added.last() != Some(&b'\n') {
        added.push(b'\n');
    }
    let behind = match script.iter().position(|byte| *byte == b'\n') {
        Some(end) => end + 1,
        None => {
            script.push(b'\n');
            script.len()
        }
    };
    script.splice(behind..behind, added);
    script
}

/// Refuses what could not run as a script.
fn check(script: &[u8]) -> Result<(), Problem> {
    if script.is_empty() {
        return Err(Problem::error("Batch script is empty!"));
    }
    if script.iter().all(u8::is_ascii_whitespace) {
        return Err(Problem::error("Batch script contains only whitespace!"));
    }
    if !script.starts_with(b"#!") {
        return Err(errors(&[
            "This does not look like a batch script.  The first",
            "line must start with #! followed by the path to an interpreter.",
            "For instance: #!/bin/sh",
        ]));
    }
    if script.contains(&0) {
        return Err(errors(&["The Slurm controller does not allow scripts that", "contain a NULL character '\\0'."]));
    }
    if script.windows(2).any(|pair| pair == b"\r\n") {
        return Err(errors(&[
            "Batch script contains DOS line breaks (\\r\\n)",
            "instead of expected UNIX line breaks (\\n).",
        ]));
    }
    Ok(())
}

fn errors(lines: &[&str]) -> Problem {
    let line = |text: &&str| crate::submit::problem::Line::Error(text.to_string());
    Problem { lines: lines.iter().map(line).collect(), code: 1 }
}

/// Reads a script from its file or from standard input.
pub fn fetch(source: &Source, caller: &Caller) -> Result<Script, Problem> {
    match source {
        Source::Stdin => {
            let mut content = Vec::new();
            std::io::stdin()
                .read_to_end(&mut content)
                .map_err(|error| Problem::error(format!("Unable to read the script: {error}")))?;
            Ok(Script { path: String::new(), content })
        }
        Source::File(name) => {
            let path = locate(name, caller);
            let Ok(mut file) = std::fs::File::open(&path) else {
                let shown = if Path::new(&path).exists() { &path } else { name };
                return Err(Problem::error(format!("Unable to open file {shown}")));
            };
            let mut content = Vec::new();
            // A directory opens but cannot be read; that is an empty script to Slurm.
            if file.read_to_end(&mut content).is_err() {
                content.clear();
            }
            Ok(Script { path, content })
        }
    }
}

/// The path as given, or for a bare name the first such file on `PATH`.
fn locate(name: &str, caller: &Caller) -> String {
    let here = caller.absolute(name);
    if name.contains('/') || Path::new(&here).exists() {
        return here;
    }
    let path = caller.environment.iter().find(|(known, _)| known == "PATH");
    let folders = path.map(|(_, value)| value.as_bytes()).unwrap_or_default();
    for folder in folders.split(|byte| *byte == b':') {
        let file = Path::new(std::ffi::OsStr::from_bytes(folder)).join(name);
        if file.is_file() {
            return file.to_string_lossy().into_owned();
        }
    }
    here
}

pub fn run(arguments: &[String]) -> i32 {
    let caller = match Caller::current("") {
        Ok(caller) => caller,
        Err(why) => return fail(&Problem::usage(why)),
    };
    let cluster = context::cluster();
    let caller = match &cluster {
        Ok(cluster) => Caller { cluster_name: cluster.cluster_name.clone(), ..caller.at(cluster) },
        Err(_) => caller,
    };
    match build(arguments, &caller, |source| fetch(source, &caller)) {
        Err(problem) => fail(&problem),
        Ok(Built::Answer(text)) => {
            print(&text);
            0
        }
        Ok(Built::Submission(submission)) => match cluster {
            Ok(cluster) if submission.behaviour.waits => context::block_on(submit(&cluster, &submission)),
            Ok(cluster) => context::ask(submit(&cluster, &submission)),
            Err(why) => fail(&Problem::error(why)),
        },
    }
}

async fn submit(cluster: &config::Client, submission: &Submission) -> i32 {
    let Submission { spec, more, blobs, behaviour, .. } = submission;
    let specs: Vec<JobSpec> = std::iter::once(spec).chain(more).cloned().collect();
    eprint!("{}", submission.talk);
    eprint!("{}", help::connections(PROGRAM, behaviour.verbosity, cluster));
    let mut controller = match wire::Controller::connect(&cluster.controller_socket).await {
        Ok(controller) => controller,
        Err(error) => return refused(&specs, &error),
    };
    if behaviour.is_test {
        return match controller.test_submit(&specs, blobs).await {
            Ok(submitted) => {
                submitted.told.lines().chain([submitted.text.as_str()]).for_each(|line| eprintln!("sbatch: {line}"));
                0
            }
            Err(error) => {
                crate::allocation::site_says(PROGRAM, &error);
                eprintln!("allocation failure: {error}");
                error_code(1)
            }
        };
    }
    let submitted = match controller.submit_together(&specs, blobs).await {
        Ok(submitted) => submitted,
        Err(error) => return refused(&specs, &error),
    };
    let job = submitted.job;
    if !behaviour.is_quiet {
        submitted.told.lines().for_each(|line| eprintln!("sbatch: {line}"));
        print(&announcement(job, submission, &cluster.cluster_name));
    }
    if !behaviour.waits {
        return 0;
    }
    let code = wait(cluster, controller, job).await;
    let is_whole = !behaviour.waits_for_data || data_back::wait("sbatch", cluster, job).await;
    if is_whole { code } else { code.max(1) }
}

/// The one partition that is named, which must be the wrong one.
pub fn only_partition(specs: &[JobSpec]) -> Option<&String> {
    let mut named = specs.iter().flat_map(|spec| &spec.partitions);
    named.next().filter(|first| named.all(|other| other == *first))
}

/// What a submission is answered with.
pub fn announcement(job: JobId, submission: &Submission, cluster_name: &str) -> String {
    match (submission.behaviour.is_parsable, submission.names_cluster) {
        (true, true) => format!("{job};{cluster_name}\n"),
        (true, false) => format!("{job}\n"),
        (false, true) => format!("Submitted batch job {job} on cluster {cluster_name}\n"),
        (false, false) => format!("Submitted batch job {job}\n"),
    }
}

/// Waits for the job, or all tasks of the array; the exit code is the highest of them.
async fn wait(cluster: &config::Client, controller: wire::Controller, job: JobId) -> i32 {
    let filter = JobFilter { jobs: vec![job.into()], with_finished: true, ..JobFilter::default() };
    let mut watch = Watch::new(cluster, filter, Some(controller));
    let mut code = 0;
    loop {
        let page = match watch.next().await {
            Ok(page) => page,
            Err(CallError::Refused(Reject::NoSuchJob)) => return code,
            Err(error) => return fail(&Problem::error(format!("Unable to wait for job {job}: {error}"))),
        };
        if page.jobs.is_empty() {
            return code;
        }
        code = page.jobs.iter().filter(|job| job.is_over()).map(wait_code).fold(code, i32::max);
        if page.jobs.iter().all(Job::is_over) {
            return code;
        }
    }
}

fn wait_code(job: &Job) -> i32 {
    match job.outcome {
        Some(Outcome::Cancelled) => 0,
        _ => i32::from(job.exit.wait_code()),
    }
}

fn refused(specs: &[JobSpec], error: &CallError) -> i32 {
    if let (CallError::Refused(Reject::NoSuchPartition), Some(only)) = (error, only_partition(specs)) {
        eprintln!("sbatch: error: invalid partition specified: {only}");
    }
    if let CallError::Refused(reject) = error {
        reject.details().lines().for_each(|line| eprintln!("sbatch: error: {line}"));
    }
    fail(&Problem::error(crate::allocation::refusal(PROGRAM, error)))
}

fn fail(problem: &Problem) -> i32 {
    problem.print(PROGRAM);
    error_code(problem.code)
}

/// A site may choose what errors exit with.
pub fn error_code(code: i32) -> i32 {
    std::env::var("SLURM_EXIT_ERROR").ok().and_then(|text| text.parse().ok()).unwrap_or(code)
}
