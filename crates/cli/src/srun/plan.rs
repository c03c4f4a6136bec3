//! From srun's arguments to a step, and to a job around it where there is no allocation to run in.
use std::os::unix::fs::PermissionsExt;

use model::command::Blob;
use model::spec::OpenMode;
use model::step::{CpuBind, StepStream, TerminalSize};
use model::{JobId, JobKind, JobSpec, StepSpec, pattern};

use super::{gres, hosts, parts, programs};
use crate::sbatch::question;
use crate::submit::request::{Behaviour, Source, StepRequest};
use crate::submit::set_step::mpi_named;
use crate::submit::spec::finish;
use crate::submit::start::Built;
use crate::submit::{Caller, Problem, Program, Request, components, export, gpus, help};

const PROGRAM: Program = Program::Srun;

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub place: Place,
    pub step: StepSpec,
    pub blobs: Vec<Blob>,
    pub behaviour: Behaviour,
    pub options: StepRequest,
    pub streams: Streams,
    /// For stderr.
    pub talk: String,
    /// The component of a heterogeneous job to run in, where it was named.
    pub group: Option<u32>,
    /// The other parts of a step over several components.
    pub others: Vec<Plan>,
    /// The arguments say how many tasks or nodes, not only what the job has.
    pub has_own_size: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// In this job's allocation.
    Inside(JobId),
    /// In a job of its own.
    Alone(Box<JobSpec>),
}

/// Where the streams that srun carries end up on its own side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    /// A file to read instead of standard input.
    pub stdin: Option<String>,
    pub stdout: Local,
    pub stderr: Local,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Local {
    /// srun's own stream.
    #[default]
    Own,
    /// A file name pattern that is the same for all tasks.
    File(String),
    /// Wherever stdout goes.
    WithStdout,
}

/// Everything up to the first call, without sockets. `terminal` is the size of the user's.
pub fn build(
    arguments: &[String],
    caller: &Caller,
    terminal: impl Fn() -> TerminalSize,
) -> Result<Built<Plan>, Problem> {
    let sections = components::sections(PROGRAM, arguments)?;
    if let Some(question) = sections.iter().find_map(question) {
        return Ok(Built::Answer(help::answer(PROGRAM, question)));
    }
    let mut parts = Vec::new();
    for part in parts::of(&sections, caller)? {
        // A component without a program runs that of the next.
        let command = sections[part.section..].iter().map(|parsed| &parsed.operands).find(|words| !words.is_empty());
        let Some(command) = command else { return Err(Problem::fatal("No command given to execute.")) };
        parts.push(Plan { group: part.group, ..build_part(part.request, command, caller, &terminal)? });
    }
    let groups: Vec<u32> = parts.iter().filter_map(|part| part.group).collect();
    if groups.iter().enumerate().any(|(at, group)| groups[..at].contains(group)) {
        return Err(Problem::fatal("Duplicate het groups in single srun not supported"));
    }
    let mut parts = parts.into_iter();
    let mut first = parts.next().expect("there is always one");
    first.others = parts.collect();
    Ok(Built::Carry(Box::new(first)))
}

/// One part of the step; nearly always there is but one.
fn build_part(
    mut request: Request,
    command: &[String],
    caller: &Caller,
    terminal: impl Fn() -> TerminalSize,
) -> Result<Plan, Problem> {
    as_the_site_has_it(&mut request, caller);
    let program = &command[0];
    if !request.step.has_programs {
        check_program(program, caller)?;
    }
    let finished = finish(PROGRAM, &request, caller)?;
    let mut spec = finished.spec;
    let (step_streams, streams) = streams(&request);
    let told = caller.clone().telling(own_words(&request, spec.umask.unwrap_or(caller.umask), caller.niceness));
    let environment = Blob::of(export::environment(PROGRAM, request.export.as_deref(), &told));
    let basename = program.rsplit('/').next().unwrap_or(program).to_string();
    let is_inside = request.step.job.is_some();
    let is_named = !spec.name.is_empty()
        && (!is_inside || request.given.get("job-name").is_some_and(|given| given.source == Source::Arguments));
    let name = if is_named { spec.name.clone() } else { basename };
    let mut gres = gres::of_step(&request);
    if is_inside && !request.is_argument("gres") {
        gres.per_node = gres::by_environment(caller)?.or(gres.per_node);
    }
    let hosts = hosts::listed(&request, caller)?;
    if !hosts.is_empty() && !is_inside {
        hosts::ask_for(&hosts, &mut spec.size);
    }
    if request.step.broadcast.dest.is_some() && request.step.has_programs {
        return Err(Problem::error("--bcast brings one program; it cannot be used with --multi-prog"));
    }
    let is_brought = request.step.broadcast.dest.is_some();
    let arguments = with_path(command, &spec.work_dir, is_brought, caller);
    if is_brought && !std::path::Path::new(&arguments[0]).is_file() {
        return Err(Problem::fatal(format!("Can not execute {program}")));
    }
    if is_inside && hosts.is_empty() && request.is_argument("nodelist") {
        // All that are named take part; as many others as it has nodes besides.
        let n_named = spec.size.nodes.len() as u32;
        spec.size.min_nodes = spec.size.min_nodes.max(n_named);
    }
    let step = StepSpec {
        name: name.clone(),
        arguments,
        environment: environment.id,
        work_dir: spec.work_dir.clone(),
        n_tasks: spec.size.n_tasks,
        // A list of hosts says itself how many there are.
        min_nodes: match hosts.is_empty() {
            true => spec.size.min_nodes,
            false => hosts.iter().collect::<std::collections::BTreeSet<_>>().len() as u32,
        },
        tasks_per_node: spec.size.tasks_per_node,
        cpus_per_task: spec.size.cpus_per_task,
        memory: spec.size.memory,
        distribution: spec.size.distribution,
        packs: request.step.packs,
        nodes: spec.size.nodes.clone(),
        excluded: spec.size.excluded.clone(),
        stdin: step_streams.stdin,
        stdout: step_streams.stdout,
        stderr: step_streams.stderr,
        appends: spec.open_mode == OpenMode::Append,
        overlaps: request.step.overlaps,
        pty: request.step.pty.then(terminal),
        kill_on_bad_exit: request.step.kill_on_bad_exit.unwrap_or(false),
        submit_host: caller.host.clone(),
        programs: if request.step.has_programs { programs::read(program, &spec.size, caller)? } else { Vec::new() },
        cpu_bind: request.step.cpu_bind.clone(),
        tells_binding: request.step.tells_binding,
        max_nodes: spec.size.max_nodes.filter(|_| hosts.is_empty()),
        is_exact: is_exact(&request),
        overcommit: spec.size.overcommit,
        gres: gres.per_node,
        gres_per_task: gres.per_task,
        gres_total: gres.total,
        gpu_bind: gres.bind,
        tells_gpus: request.step.tells_gpus,
        asked: gpus::step_words(&request, &spec.size),
        hosts,
        mpi: match request.is_given("mpi") {
            true => request.step.mpi,
            false => mpi_named(&caller.mpi_default)?,
        },
        task_prolog: request.step.task_prolog.clone(),
        task_epilog: request.step.task_epilog.clone(),
        keeps_counts: request.step.keeps_counts,
        limits: if is_inside { spec.limits.clone() } else { Vec::new() },
        labels: request.step.labels,
        layout_words: request.step.layout_words.clone(),
        submit_line: caller.command_line.clone(),
        waits_for_program: request.step.broadcast.dest.is_some(),
        time_limit: request.step.time_limit.filter(|_| is_inside).map(crate::submit::set::time_limit),
        cpu_freq: request.step.cpu_freq.clone(),
        n_ports: request.step.n_ports,
        supervisor_verbosity: request.step.supervisor_verbosity,
        is_debugged: request.step.is_debugged,
    };
    let has_own_size = ["ntasks", "nodes", "ntasks-per-node"].iter().any(|name| request.is_argument(name));
    let place = match request.step.job {
        Some(job) => Place::Inside(job),
        None if request.step.relative.is_some() => {
            return Err(Problem::fatal("--relative option invalid for job allocation request"));
        }
        None => {
            spec.name = name;
            spec.command = program.clone();
            spec.environment = environment.id;
            (spec.stdin, spec.stdout, spec.stderr) = (None, None, None);
            spec.kind = JobKind::Run(Box::new(step.clone()));
            Place::Alone(Box::new(spec))
        }
    };
    let mut talk: String = finished.warnings.iter().map(|line| format!("srun: {line}\n")).collect();
    if request.behaviour.verbosity > 0 {
        talk.push_str(&help::defined_options(PROGRAM, &request));
    }
    Ok(Plan {
        place,
        step,
        blobs: vec![environment],
        behaviour: request.behaviour,
        options: request.step,
        streams,
        talk,
        group: None,
        others: Vec::new(),
        has_own_size,
    })
}

/// Asking for CPUs in so many words asks for no others.
fn is_exact(request: &Request) -> bool {
    let is_dedicated = ["exclusive", "cpus-per-task", "threads-per-core"].iter().any(|name| request.is_argument(name));
    request.step.is_exact || (request.step.job.is_some() && is_dedicated)
}

#[derive(Default)]
struct StepStreams {
    stdin: StepStream,
    stdout: StepStream,
    stderr: StepStream,
}

/// Files that tell tasks apart are opened where the tasks are; one file for all is opened here.
fn streams(request: &Request) -> (StepStreams, Streams) {
    let spec = &request.spec;
    let (stdin, stdin_file) = match spec.stdin.as_deref().map(place) {
        None => (StepStream::Client, Local::Own),
        Some(placed) => placed,
    };
    let (stdout, stdout_file) = match spec.stdout.as_deref().map(place) {
        None => (StepStream::Client, Local::Own),
        Some(placed) => placed,
    };
    let (stderr, stderr_file) = match (spec.stderr.as_deref().map(place), &spec.stdout) {
        (Some(placed), _) => placed,
        (None, None) => (StepStream::Client, Local::Own),
        (None, Some(_)) if stdout_file == Local::Own => (stdout.clone(), Local::Own),
        (None, Some(_)) => (stdout.clone(), Local::WithStdout),
    };
    let stdin_file = match stdin_file {
        Local::File(pattern) => Some(pattern),
        Local::Own | Local::WithStdout => None,
    };
    (StepStreams { stdin, stdout, stderr }, Streams { stdin: stdin_file, stdout: stdout_file, stderr: stderr_file })
}

fn place(text: &str) -> (StepStream, Local) {
    if text.eq_ignore_ascii_case("all") {
        return (StepStream::Client, Local::Own);
    }
    if text == "/dev/null" {
        return (StepStream::Nothing, Local::Own);
    }
    if let Ok(rank) = text.parse() {
        return (StepStream::ClientTask(rank), Local::Own);
    }
    if pattern::varies_by_task(text) || pattern::varies_by_node(text) {
        return (StepStream::File(text.to_string()), Local::Own);
    }
    (StepStream::Client, Local::File(text.to_string()))
}

/// A program that begins with a dot is the working directory's. What has no slash is looked for where it runs, in the PATH
/// that it has there; only one that is brought there must be found here.
fn with_path(command: &[String], work_dir: &str, is_brought: bool, caller: &Caller) -> Vec<String> {
    let mut words = command.to_vec();
    let Some(program) = words.first_mut() else { return words };
    if program.starts_with('.') {
        *program = format!("{work_dir}/{program}");
    } else if is_brought
        && !program.contains('/')
        && let Some(path) = in_path(program, caller)
    {
        *program = path;
    }
    words
}

/// What the site says about steps counts where the user says nothing.
fn as_the_site_has_it(request: &mut Request, caller: &Caller) {
    request.step.kill_on_bad_exit.get_or_insert(caller.kill_on_bad_exit);
    if !request.is_given("wait") {
        request.step.wait = caller.wait;
    }
}

/// With SLURM_TEST_EXEC a program that is not here either is not tried elsewhere.
fn check_program(program: &str, caller: &Caller) -> Result<(), Problem> {
    let is_here = program.contains('/') && is_program(&caller.absolute(program)) || in_path(program, caller).is_some();
    match caller.variable("SLURM_TEST_EXEC").is_none() || is_here {
        true => Ok(()),
        false => Err(Problem::fatal(format!("Can not execute {program}"))),
    }
}

fn is_program(path: &String) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn in_path(program: &str, caller: &Caller) -> Option<String> {
    let mut places = caller.variable("PATH").unwrap_or_default().split(':').filter(|place| !place.is_empty());
    places.find_map(|place| Some(format!("{place}/{program}")).filter(is_program))
}

/// What srun tells its tasks of its own options, and of itself.
fn own_words(request: &Request, umask: u32, niceness: i32) -> Vec<(&'static str, String)> {
    let mut words = vec![("SLURM_UMASK", format!("{umask:04o}")), ("SLURM_PRIO_PROCESS", niceness.to_string())];
    if let Some(count) = request.spec.size.tasks_per_node {
        words.push(("SLURM_NTASKS_PER_NODE", count.to_string()));
    }
    if request.step.labels {
        words.push(("SLURM_LABELIO", "1".into()));
    }
    if request.step.cpu_freq.is_asked() {
        words.push(("SLURM_CPU_FREQ_REQ", request.step.cpu_freq.words()));
    }
    if let (variable, Some(dependency)) = export::dependency(request) {
        words.push((variable, dependency));
    }
    if let Some(bind) = &request.mem_bind {
        words.extend(bind.of_step());
    }
    if let Some(given) = request.given.get("tres-per-task") {
        words.push(("SLURM_TRES_PER_TASK", given.value.clone().unwrap_or_default()));
    }
    // The level of its own log: 3 is that of plain messages.
    let loudness = 3 + request.behaviour.verbosity;
    words.push(("SRUN_DEBUG", (loudness - u32::from(request.behaviour.is_quiet)).to_string()));
    // Other bindings are told where they are made.
    if request.is_given("cpu-bind") && request.step.cpu_bind == CpuBind::None {
        let loudness = if request.step.tells_binding { "verbose" } else { "quiet" };
        words.extend([
            ("SLURM_CPU_BIND", format!("{loudness},none")),
            ("SLURM_CPU_BIND_LIST", String::new()),
            ("SLURM_CPU_BIND_TYPE", "none".into()),
            ("SLURM_CPU_BIND_VERBOSE", loudness.into()),
        ]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str, environment: &[(&str, &str)]) -> Result<Plan, String> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        let caller = Caller { work_dir: "/home/ada".into(), ..Caller::default() }.with_environment(environment);
        match build(&arguments, &caller, || TerminalSize { rows: 24, columns: 80 }) {
            Ok(Built::Carry(plan)) => Ok(*plan),
            Ok(Built::Answer(text)) => Err(text),
            Err(problem) => Err(format!("{}={}", problem.show(PROGRAM), problem.code)),
        }
    }

    #[test]
    fn nodes_that_are_named_are_among_those_of_the_step() {
        let inside = [("SLURM_JOB_ID", "17"), ("SLURM_NNODES", "3"), ("SLURM_JOB_NUM_NODES", "3")];
        let nodes = |line: &str| {
            let step = plan(&format!("{line} true"), &inside).unwrap().step;
            (step.min_nodes, step.max_nodes)
        };
        assert_eq!(nodes("-w n2").0, 3);
        assert_eq!(nodes("-N1 -w n2"), (1, Some(1)));
        assert_eq!(nodes("-n1 -w n2").0, 1);
        assert_eq!(nodes("").0, 3);
    }

    #[test]
    fn who_counts_tasks_by_gpus_gives_each_task_one() {
        use model::step::GpuBind;
        let bind = |line: &str| plan(&format!("{line} true"), &[]).unwrap().step.gpu_bind;
        assert_eq!(bind("--gpus=2 --ntasks-per-gpu=2"), GpuBind::Single(2));
        assert_eq!(bind("--gpus=2 --ntasks-per-gpu=2 --gpu-bind=none"), GpuBind::All);
        assert_eq!(bind("-n2 --gpus-per-task=2"), GpuBind::PerTask(2));
    }

    #[test]
    fn each_group_is_named_once() {
        let told = plan("--het-group=0 a : --het-group=0 b", &[("SLURM_JOB_ID", "17")]).unwrap_err();
        assert_eq!(told, "srun: fatal: Duplicate het groups in single srun not supported\n=1");
    }

    #[test]
    fn streams_go_where_they_are_sent() {
        let sent = |line: &str| {
            let plan = plan(&format!("{line} true"), &[]).unwrap();
            (plan.step.stdout, plan.streams.stdout, plan.step.stderr, plan.streams.stderr)
        };
        let file = |name: &str| StepStream::File(name.to_string());
        let here = |name: &str| Local::File(name.to_string());
        assert_eq!(sent(""), (StepStream::Client, Local::Own, StepStream::Client, Local::Own));
        assert_eq!(sent("-o o.%t"), (file("o.%t"), Local::Own, file("o.%t"), Local::Own));
        assert_eq!(sent("-o o -e e"), (StepStream::Client, here("o"), StepStream::Client, here("e")));
        assert_eq!(sent("-o o"), (StepStream::Client, here("o"), StepStream::Client, Local::WithStdout));
        assert_eq!(sent("-o none"), (StepStream::Nothing, Local::Own, StepStream::Nothing, Local::Own));
        assert_eq!(sent("-e none"), (StepStream::Client, Local::Own, StepStream::Nothing, Local::Own));
        assert_eq!(sent("-o 1").0, StepStream::ClientTask(1));
        assert_eq!(plan("-i in.txt cat", &[]).unwrap().streams.stdin.as_deref(), Some("in.txt"));
        assert_eq!(plan("-i none cat", &[]).unwrap().step.stdin, StepStream::Nothing);
    }

    #[test]
    fn inside_a_job_a_step_is_named_after_its_program() {
        let environment = [("SLURM_JOB_ID", "17"), ("SLURM_JOB_NAME", "batch"), ("SLURM_NTASKS", "4")];
        let inside = plan("/bin/hostname -f", &environment).unwrap();
        assert_eq!(inside.place, Place::Inside(JobId(17)));
        assert_eq!((inside.step.name.as_str(), inside.step.n_tasks), ("hostname", Some(4)));
        assert_eq!(inside.step.arguments, ["/bin/hostname", "-f"]);
        assert_eq!(plan("-J x true", &environment).unwrap().step.name, "x");
        let Place::Alone(spec) = plan("-n2 true", &[]).unwrap().place else { panic!("no job to be in") };
        assert_eq!((spec.name.as_str(), spec.size.n_tasks), ("true", Some(2)));
    }

    #[test]
    fn variables_of_srun_alone_count() {
        let inside = |line: &str, gres: &str| {
            let plan = plan(line, &[("SLURM_JOB_ID", "17"), ("SLURM_STEP_GRES", gres)]).unwrap();
            plan.step.gres.map(|units| units.iter().map(|unit| unit.to_string()).collect::<Vec<_>>().join(","))
        };
        assert_eq!(inside("true", "gpu:2"), Some("gpu:2".into()));
        assert_eq!(inside("true", "none"), Some(String::new()));
        assert_eq!(inside("--gres=gpu:1 true", "gpu:2"), Some("gpu:1".into()));
        let found = |program: &str| plan(program, &[("SLURM_TEST_EXEC", "1"), ("PATH", "/usr/bin:/bin")]).map(|_| ());
        assert_eq!(found("sh"), Ok(()));
        assert_eq!(found("nosuchprogram"), Err("srun: fatal: Can not execute nosuchprogram\n=1".into()));
        let plane = plan("-m plane -n4 true", &[("SLURM_DIST_PLANESIZE", "2")]).unwrap();
        assert_eq!(plane.step.distribution, model::spec::Distribution::Plane(2));
    }

    #[test]
    fn tasks_are_told_of_srun_itself() {
        let told = |line: &str| {
            let plan = plan(line, &[("SLURM_LABELIO", "0"), ("SLURM_UMASK", "0027")]).unwrap();
            let text = String::from_utf8(plan.blobs[0].content.clone()).unwrap();
            text.split_terminator('\0').collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told("true"), "SLURM_LABELIO=0 SLURM_UMASK=0027 SLURM_PRIO_PROCESS=0 SRUN_DEBUG=3");
        assert_eq!(told("-l true"), "SLURM_UMASK=0027 SLURM_PRIO_PROCESS=0 SLURM_LABELIO=1 SRUN_DEBUG=3");
        assert!(told("-Q -d singleton true").ends_with("SLURM_JOB_DEPENDENCY=singleton SRUN_DEBUG=2"));
        assert!(told("-vv --mem-bind=local true").contains("SLURM_MEM_BIND=quiet,local SLURM_MEM_BIND_LIST= "));
        assert!(told("--cpu-bind=none true").ends_with(
            "SLURM_CPU_BIND=quiet,none SLURM_CPU_BIND_LIST= SLURM_CPU_BIND_TYPE=none SLURM_CPU_BIND_VERBOSE=quiet"
        ));
    }

    #[test]
    fn what_only_steps_have_is_kept_for_them() {
        let step = |line: &str| plan(&format!("{line} true"), &[]).unwrap();
        let asked = step("--resv-ports=3 --cpu-freq=low --accel-bind=gn --slurmd-debug=info");
        assert_eq!((asked.step.n_ports, asked.step.cpu_freq.max.as_str()), (Some(3), "Low"));
        assert_eq!((asked.step.supervisor_verbosity, asked.talk.as_str()), (3, ""));
        let loud = step("--slurmd-debug=9 --resv-ports");
        assert_eq!((loud.step.supervisor_verbosity, loud.step.n_ports), (4, None));
        assert_eq!(loud.talk, "srun: Using srun's max debug increment of 4\n");
        let check = |line: &str, why: &str| assert_eq!(plan(line, &[]).unwrap_err(), why, "{line}");
        check("--accel-bind=z true", "srun: error: Invalid --accel-bind specification\n=255");
        check("--resv-ports=z true", "srun: error: Invalid numeric value \"z\" for --resv-port.\n=1");
    }

    #[test]
    fn mistakes_are_told_as_slurm_tells_them() {
        let check = |line: &str, expected: &str| assert_eq!(plan(line, &[]).unwrap_err(), expected, "{line}");
        check("", "srun: fatal: No command given to execute.\n=1");
        check("-n0 true", "srun: error: Invalid numeric value \"0\" for --ntasks.\n=1");
        check("-r 1 true", "srun: fatal: --relative option invalid for job allocation request\n=1");
        for wrong in ["x", "7_", "_7", "7_x", "7_1-2", "7+0"] {
            let told = format!("srun: error: Invalid numeric value \"{wrong}\" for --jobid.\n=1");
            check(&format!("--jobid={wrong} true"), &told);
        }
        let unknown = "srun: error: Couldn't find the specified plugin name for mpi/nosuch looking at all files\n\
                       srun: error: cannot find mpi plugin for mpi/nosuch\n\
                       srun: error: MPI: Cannot create context for mpi/nosuch\n\
                       srun: error: MPI: Unable to load any plugin\n\
                       srun: error: Invalid MPI type 'nosuch', --mpi=list for acceptable types\n=1";
        check("--mpi=nosuch true", unknown);
        let warning = "srun: Warning: can't run 1 processes on 2 nodes, setting nnodes to 1\n";
        assert_eq!(plan("-N2 -n1 true", &[]).unwrap().talk, warning);
    }
}
